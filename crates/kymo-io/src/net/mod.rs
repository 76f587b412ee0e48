//! Addresses as people write them, sockets that datagrams leave by, and heads of HTTP answers.

mod address;
mod departure;
mod http;

pub use address::{Address, is_loopback};
pub use departure::Departure;
pub use http::{reason_phrase, response_head};
