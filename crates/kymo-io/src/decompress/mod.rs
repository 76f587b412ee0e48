//! Compressed files: gzip and Zstandard.
//!
//! Content is decoded once, into temporary storage, whatever reads it then and how often. That way every
//! format works as on a plain file.

mod gz;
mod zst;

use std::io;
use std::path::{Path, PathBuf};

use crate::Bytes;
use crate::spool::Spool;

/// Files that were compressed more often than this are left as they are.
const MOST_LAYERS: usize = 4;

/// The number of bytes at the beginning of a file that show whether it is compressed.
pub const LONGEST_MAGIC: usize = 4;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// By gzip, in one member or several.
    Gzip,
    /// By Zstandard, in one frame or several.
    Zstandard,
}

impl Compression {
    /// How a file is compressed that begins so. Its name does not matter.
    pub fn detect(begin: &[u8]) -> Option<Self> {
        match *begin.first_chunk::<LONGEST_MAGIC>()? {
            // The method, of which there is one, and flags, of which three do not exist.
            [0x1f, 0x8b, 8, flags] if flags & 0xe0 == 0 => Some(Self::Gzip),
            zst::MAGIC => Some(Self::Zstandard),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some(Self::Zstandard),
            _ => None,
        }
    }
}

/// What a compressed file holds.
#[derive(Debug)]
pub struct Content {
    /// The bytes.
    pub bytes: Bytes,
    /// How the file was compressed, if it was.
    pub compression: Option<Compression>,
    /// What is lost, if the file is cut off or damaged: the bytes are those before it.
    pub damage: Option<String>,
}

/// What some bytes hold: they are decompressed if they are compressed, more than once if need be.
///
/// # Errors
///
/// If nothing can be decompressed, or the content is larger than temporary storage may be.
pub fn content(bytes: Bytes) -> io::Result<Content> {
    content_within(bytes, u64::MAX)
}

/// The same of content that is not larger than a limit.
///
/// # Errors
///
/// As of [`content`].
pub fn content_within(bytes: Bytes, limit: u64) -> io::Result<Content> {
    let mut content = Content {
        bytes,
        compression: None,
        damage: None,
    };
    for _ in 0..MOST_LAYERS {
        let Some(compression) = Compression::detect(&content.bytes) else {
            break;
        };
        let mut spool = Spool::within(limit);
        let damage = match compression {
            Compression::Gzip => gz::decode(&content.bytes, &mut spool)?,
            Compression::Zstandard => zst::decode(&content.bytes, &mut spool)?,
        };
        if let Some(damage) = damage {
            if spool.length() == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, damage));
            }
            content.damage.get_or_insert(damage);
        }
        content.bytes = spool.finish()?;
        content.compression.get_or_insert(compression);
    }
    Ok(content)
}

/// The path without `.gz` and `.zst` at its end: what the file was called before it was compressed.
pub fn without_compression(path: &Path) -> PathBuf {
    match path.extension().and_then(|name| name.to_str()) {
        Some("gz" | "zst") => path.with_extension(""),
        _ => path.to_path_buf(),
    }
}

/// The name of a recording that is a file: without directories, endings of compression, and its own ending.
pub fn stem(path: &Path) -> Option<String> {
    let path = without_compression(path);
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

/// The message about content that ends too early.
fn cut(at: u64, decoded: u64) -> String {
    format!(
        "the compressed file is cut off at byte {at}: what comes after the first {decoded} bytes of its \
         content is lost"
    )
}

/// The message about content that cannot be decoded beyond some place.
fn damaged(at: u64, decoded: u64, why: impl std::fmt::Display) -> String {
    format!(
        "the compressed file is damaged near byte {at} ({why}): what comes after the first {decoded} bytes \
         of its content is lost"
    )
}

#[cfg(test)]
mod tests;
