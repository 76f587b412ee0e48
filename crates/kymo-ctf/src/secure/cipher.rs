//! AES-GCM: what is stored is a nonce, the encrypted bytes and a tag, by which a wrong key or an
//! altered packet is known. The tag is also of the packet's header, which is not encrypted.

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aes::Aes192;
use aes_gcm::aes::cipher::consts::U12;
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, AesGcm, KeyInit};

use super::{Key, NONCE_BYTES, OpenError};

/// Bytes of a tag.
const TAG_BYTES: usize = 16;
/// Bytes that are stored beside those that are encrypted.
pub(super) const EXTRA_BYTES: usize = NONCE_BYTES + TAG_BYTES;

/// AES-GCM with a key of one of the three sizes.
#[derive(Clone)]
pub(super) enum Cipher {
    Aes128(Box<Aes128Gcm>),
    Aes192(Box<AesGcm<Aes192, U12>>),
    Aes256(Box<Aes256Gcm>),
}

impl Cipher {
    /// The cipher with a key of 16, 24 or 32 bytes.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(Box::new(Aes128Gcm::new_from_slice(key).ok()?)),
            24 => Self::Aes192(Box::new(AesGcm::new_from_slice(key).ok()?)),
            32 => Self::Aes256(Box::new(Aes256Gcm::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }

    /// Encrypts in place, and gives the tag, which is of `header`, too.
    fn encrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        header: &[u8],
        bytes: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let (nonce, bytes) = (nonce.into(), InOutBuf::from(bytes));
        let tag = match self {
            Self::Aes128(aes) => aes.encrypt_inout_detached(nonce, header, bytes),
            Self::Aes192(aes) => aes.encrypt_inout_detached(nonce, header, bytes),
            Self::Aes256(aes) => aes.encrypt_inout_detached(nonce, header, bytes),
        };
        // Only 64 GiB are too many, and packets have less than four.
        tag.map(Into::into).unwrap_or_default()
    }

    /// Decrypts in place if the tag is right, which is compared in constant time.
    fn decrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        header: &[u8],
        bytes: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> bool {
        let (nonce, bytes, tag) = (nonce.into(), InOutBuf::from(bytes), tag.into());
        let result = match self {
            Self::Aes128(aes) => aes.decrypt_inout_detached(nonce, header, bytes, tag),
            Self::Aes192(aes) => aes.decrypt_inout_detached(nonce, header, bytes, tag),
            Self::Aes256(aes) => aes.decrypt_inout_detached(nonce, header, bytes, tag),
        };
        result.is_ok()
    }
}

/// Encrypts `content`, and makes sure that it stays with its `header`.
pub(super) fn encrypt(
    content: &[u8],
    header: &[u8],
    key: &Key,
    nonce: [u8; NONCE_BYTES],
) -> Vec<u8> {
    let mut stored = Vec::with_capacity(EXTRA_BYTES + content.len());
    stored.extend_from_slice(&nonce);
    stored.extend_from_slice(content);
    let encrypted = &mut stored[NONCE_BYTES..];
    let tag = key.cipher().encrypt(&nonce, header, encrypted);
    stored.extend_from_slice(&tag);
    stored
}

/// What was encrypted with one of the keys, for this `header` or, by other programs, for any.
pub(super) fn decrypt(stored: &[u8], header: &[u8], keys: &[Key]) -> Result<Vec<u8>, OpenError> {
    if keys.is_empty() {
        return Err(OpenError::KeyNeeded);
    }
    let (nonce, rest) = stored.split_first_chunk().ok_or(OpenError::Encryption)?;
    let (encrypted, tag) = rest.split_last_chunk().ok_or(OpenError::Encryption)?;
    let mut content = encrypted.to_vec();
    // With a wrong tag nothing is decrypted, so that the next attempt finds what there was. A tag that is of
    // the header is right for no other one, nor for none: to be lenient here opens nothing that was altered.
    let fits = [header, &[]].into_iter().any(|header| {
        keys.iter()
            .any(|key| key.cipher().decrypt(nonce, header, &mut content, tag))
    });
    match fits {
        true => Ok(content),
        false => Err(OpenError::Encryption),
    }
}
