//! What takes the place of ciphers, compression and digests in a build without the feature `secure`.

use std::borrow::Cow;

use kymo_machine::ByteOrder;

use super::{Key, Limits, NONCE_BYTES, OpenError, Protection, SealError};
use crate::metadata::rfc::PacketHeader;

/// The size of a key is checked, and nothing is encrypted with it.
#[derive(Clone)]
pub(super) struct Cipher;

impl Cipher {
    /// Whether a key has 16, 24 or 32 bytes.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        matches!(key.len(), 16 | 24 | 32).then_some(Self)
    }
}

pub(super) fn open<'p>(
    _packet: &'p [u8],
    _header: PacketHeader,
    _stored: &'p [u8],
    _order: ByteOrder,
    _keys: &[Key],
    _limits: &Limits,
) -> Result<Cow<'p, [u8]>, OpenError> {
    Err(OpenError::NotBuilt)
}

pub(super) fn seal(
    _packet: &[u8],
    _header: PacketHeader,
    _content: &[u8],
    _order: ByteOrder,
    _protection: &Protection,
    _nonce: impl FnOnce() -> [u8; NONCE_BYTES],
) -> Result<Vec<u8>, SealError> {
    Err(SealError::NotBuilt)
}
