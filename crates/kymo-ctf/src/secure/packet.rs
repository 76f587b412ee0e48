//! Packets opened and sealed, by the ciphers, compression and digests of the feature `secure`.

use std::borrow::Cow;

use kymo_machine::ByteOrder;

pub(super) use super::cipher::Cipher;
use super::{
    Checksum, Compression, Key, Limits, NONCE_BYTES, OpenError, PAGE, Protection, SealError,
    cipher, compression,
};
use crate::metadata::rfc::{HEADER_BYTES, PacketHeader};

/// Opens a packet that is secured by schemes that are known; `stored` is what follows its header.
pub(super) fn open<'p>(
    packet: &'p [u8],
    header: PacketHeader,
    stored: &'p [u8],
    order: ByteOrder,
    keys: &[Key],
    limits: &Limits,
) -> Result<Cow<'p, [u8]>, OpenError> {
    let checksum = Checksum::of_scheme(header.checksum_scheme);
    if let Some(found) = checksum.of(stored, order)
        && found != header.checksum
    {
        let expected = header.checksum;
        return Err(OpenError::Checksum { found, expected });
    }
    let decrypted = match header.encryption {
        0 => Cow::Borrowed(stored),
        _ => Cow::Owned(cipher::decrypt(stored, &sealed_header(packet), keys)?),
    };
    let content = match Compression::of_scheme(header.compression) {
        Compression::None => decrypted,
        compressed => {
            let most = limits.of(packet.len().min(header.packet_size as usize));
            Cow::Owned(compression::decompress(compressed, &decrypted, most)?)
        }
    };
    if matches!(content, Cow::Borrowed(_)) {
        return Ok(Cow::Borrowed(packet));
    }
    let size = HEADER_BYTES.saturating_add(content.len());
    let size = u32::try_from(size).map_err(|_| OpenError::Limit(u32::MAX as usize))?;
    let mut plain = Vec::with_capacity(size as usize);
    plain.extend_from_slice(&packet[..HEADER_BYTES]);
    plain.extend_from_slice(&content);
    let header = PacketHeader {
        content_size: size,
        packet_size: size,
        checksum: 0,
        compression: 0,
        encryption: 0,
        checksum_scheme: 0,
        ..header
    };
    header.write(&mut plain, order);
    Ok(Cow::Owned(plain))
}

/// Seals a plain packet; `content` is what follows its header.
pub(super) fn seal(
    packet: &[u8],
    header: PacketHeader,
    content: &[u8],
    order: ByteOrder,
    protection: &Protection,
    nonce: impl FnOnce() -> [u8; NONCE_BYTES],
) -> Result<Vec<u8>, SealError> {
    let extra = protection.key.as_ref().map_or(0, |_| cipher::EXTRA_BYTES);
    let size_of = |content: usize| {
        let size = HEADER_BYTES.saturating_add(content).saturating_add(extra);
        Some((size, size.checked_next_multiple_of(PAGE)?))
    };
    // In a large recording nothing is free.
    let limits = Limits {
        free: 0,
        ..Limits::default()
    };
    let shrinks_too_much = |compressed: &Vec<u8>| {
        size_of(compressed.len()).is_some_and(|(_, padded)| limits.of(padded) < content.len())
    };
    let compressed = Some(protection.compression)
        .filter(|&compression| compression != Compression::None)
        .map(|compression| compression::compress(compression, content))
        .filter(|compressed| !shrinks_too_much(compressed));
    let compression = match compressed {
        Some(_) => protection.compression,
        None => Compression::None,
    };
    let content = compressed.map_or(Cow::Borrowed(content), Cow::Owned);
    let (size, padded) = size_of(content.len()).ok_or(SealError::TooLarge)?;
    let (Ok(content_size), Ok(packet_size)) = (u32::try_from(size), u32::try_from(padded)) else {
        return Err(SealError::TooLarge);
    };
    let mut header = PacketHeader {
        content_size,
        packet_size,
        checksum: 0,
        compression: compression.scheme(),
        encryption: protection.key.is_some().into(),
        checksum_scheme: protection.checksum.scheme(),
        ..header
    };
    let mut sealed = Vec::with_capacity(padded);
    sealed.extend_from_slice(&packet[..HEADER_BYTES]);
    header.write(&mut sealed, order);
    let stored = match &protection.key {
        Some(key) => Cow::Owned(cipher::encrypt(
            &content,
            &sealed_header(&sealed),
            key,
            nonce(),
        )),
        None => content,
    };
    sealed.extend_from_slice(&stored);
    sealed.resize(padded, 0);
    header.checksum = protection.checksum.of(&stored, order).unwrap_or(0);
    header.write(&mut sealed, order);
    Ok(sealed)
}

/// The header of a packet as encryption seals it: without a checksum, which is of what encryption makes.
fn sealed_header(packet: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = packet.first_chunk().copied().unwrap_or([0; HEADER_BYTES]);
    let has_checksum = header[47] != 0;
    if has_checksum {
        header[16..20].fill(0);
    }
    header
}
