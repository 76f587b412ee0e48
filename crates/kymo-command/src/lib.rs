//! What the command lines of kymo's programs share: options that say which recordings are opened and how, opening them
//! and reporting what is wrong with them, standard output and error, exit statuses.
//!
//! `kymo` and `kymo-query` are made with it.

pub mod args;
pub mod key;
pub mod live;
pub mod open;
pub mod points;
#[cfg(unix)]
pub mod signals;
pub mod symbols;
pub mod terminal;
