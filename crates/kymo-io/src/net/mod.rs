//! Addresses as people write them, and sockets that datagrams leave by.

mod address;
mod departure;

pub use address::{Address, is_loopback};
pub use departure::Departure;
