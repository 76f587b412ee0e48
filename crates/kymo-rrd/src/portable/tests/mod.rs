//! Portable files: what is in them, what they survive, what they refuse.

mod bytes;
mod crash;
mod hostile;
mod made_up;
mod size;
mod updates;
