//! Round-robin databases.

mod zone;

pub use zone::LocalZone;
