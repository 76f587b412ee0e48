//! How machines write numbers: byte order and bit fields. No input or output.

pub mod bits;

/// The order in which the bytes of a number follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first; also the order of network protocols.
    Big,
}
