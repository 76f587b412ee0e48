//! Addresses as people write them, sockets that datagrams leave by, and statuses of HTTP.

mod address;
mod departure;
mod status;

pub use address::{Address, is_loopback};
pub use departure::Departure;
pub use status::reason_phrase;
