//! Databases and their parts as text, as rrdtool writes and reads them.

pub mod duration;
pub mod info;
pub mod numbers;
pub mod xml;
