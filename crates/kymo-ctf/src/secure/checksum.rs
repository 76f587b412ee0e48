//! Checksums of what is stored behind the header of a packet.

use kymo_machine::ByteOrder;
use md5::{Digest, Md5};
use sha1::Sha1;

use super::Checksum;

impl Checksum {
    /// What the header of a packet says where this is what it holds; `None` where it has no
    /// checksum.
    pub(super) fn of(self, stored: &[u8], order: ByteOrder) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Md5 => Some(first_four(&Md5::digest(stored), order)),
            Self::Sha1 => Some(first_four(&Sha1::digest(stored), order)),
            Self::Crc32 => Some(crc32fast::hash(stored)),
        }
    }
}

/// The first four bytes of a digest as a number.
fn first_four(digest: &[u8], order: ByteOrder) -> u32 {
    let first = digest.first_chunk().copied().unwrap_or_default();
    match order {
        ByteOrder::Little => u32::from_le_bytes(first),
        ByteOrder::Big => u32::from_be_bytes(first),
    }
}
