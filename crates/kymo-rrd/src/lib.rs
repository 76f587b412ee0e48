//! Round-robin databases.

pub mod numbers;
