//! Secured packets of RFC v1.1 (§5): compressed, encrypted, with a checksum.
//!
//! [`open`] makes of a packet as it is stored the plain one, [`seal`] the other way round. Both
//! know packets only: no files, no keys but those they are given, no source of chance.
//!
//! What follows the header of 48 bytes is the *content*. Writing compresses it, encrypts that, and
//! takes the checksum of what comes out, which is what is stored; the header stays in the clear.
//! What the RFC leaves open is decided in `docs/formats/ctf-rfc-v1.1.md`.
//!
//! Without the crate's feature `secure`, which brings ciphers, compression and digests, plain packets are read as
//! with it, and [`open`] and [`seal`] fail with `NotBuilt` where one of them would be needed.

#[cfg(feature = "secure")]
mod checksum;
#[cfg(feature = "secure")]
mod cipher;
#[cfg(feature = "secure")]
mod compression;
mod key;
#[cfg(feature = "secure")]
mod packet;
#[cfg(not(feature = "secure"))]
#[path = "without.rs"]
mod packet;
#[cfg(all(test, feature = "secure"))]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::io;

use kymo_machine::ByteOrder;

pub use self::key::{Key, KeyError};

use crate::metadata::rfc::{HEADER_BYTES, PacketHeader};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 12;

/// Makes the random bytes of an encrypted packet, which must not be used twice with one key.
pub type Nonce = fn() -> io::Result<[u8; NONCE_BYTES]>;

/// The size of sealed packets is a multiple of this number of bytes: the RFC aligns packets to pages.
pub const PAGE: usize = 4096;

/// How the content of packets is compressed (RFC v1.1 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all: scheme 0.
    #[default]
    None,
    /// Scheme 1.
    Bzip2,
    /// Scheme 2.
    Gzip,
}

impl Compression {
    /// The one of a scheme that is known.
    fn of_scheme(scheme: u8) -> Self {
        match scheme {
            1 => Self::Bzip2,
            2 => Self::Gzip,
            _ => Self::None,
        }
    }

    fn scheme(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Bzip2 => 1,
            Self::Gzip => 2,
        }
    }
}

/// What the checksum of packets is (RFC v1.1 §5). Its field has 32 bits: of a longer digest it
/// holds the first four bytes, in the packet's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// There is none: scheme 0.
    #[default]
    None,
    /// Scheme 1.
    Md5,
    /// Scheme 2.
    Sha1,
    /// Scheme 3: that of gzip and Ethernet.
    Crc32,
}

impl Checksum {
    /// The one of a scheme that is known.
    fn of_scheme(scheme: u8) -> Self {
        match scheme {
            1 => Self::Md5,
            2 => Self::Sha1,
            3 => Self::Crc32,
            _ => Self::None,
        }
    }

    fn scheme(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Md5 => 1,
            Self::Sha1 => 2,
            Self::Crc32 => 3,
        }
    }
}

/// How packets are secured.
#[derive(Clone, Debug, Default)]
pub struct Protection {
    /// How their content is compressed.
    pub compression: Compression,
    /// With which key it is encrypted; not at all without one.
    pub key: Option<Key>,
    /// What its checksum is.
    pub checksum: Checksum,
}

/// How large the content of a compressed packet may become: a few bytes can be made of very many
/// equal ones. The size of a packet is that with its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes.
    pub most: usize,
    /// Maximum number of bytes, as a multiple of the packet's size.
    pub ratio: usize,
    /// Number of bytes that is always allowed, whatever the ratio.
    pub free: usize,
}

/// What is free for the packets of a recording together, each of which gets a part by its size. Were
/// it free for each of them, many small ones could ask for very much.
const FREE_FOR_ALL: u64 = 64 << 20;

impl Default for Limits {
    /// 64 MiB, 256 times, 4 MiB.
    fn default() -> Self {
        Self {
            most: 64 << 20,
            ratio: 256,
            free: 4 << 20,
        }
    }
}

impl Limits {
    /// The default ones for a packet of `packet` bytes among `all` bytes of packets. Whatever these hold, they
    /// become at most 64 MiB and 256 times as much together.
    pub fn among(packet: u64, all: u64) -> Self {
        let limits = Self::default();
        let share = FREE_FOR_ALL.saturating_mul(packet) / all.max(packet).max(1);
        Self {
            free: usize::try_from(share).map_or(limits.free, |share| share.min(limits.free)),
            ..limits
        }
    }

    /// How many bytes the content of a packet of `packet` bytes may have.
    fn of(&self, packet: usize) -> usize {
        packet
            .saturating_mul(self.ratio)
            .max(self.free)
            .min(self.most)
    }
}

/// Why a packet cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// It is shorter than its header, or than that says.
    Size,
    /// It has a scheme of a number that the RFC does not know.
    Scheme {
        /// The field of the header.
        field: &'static str,
        /// The number.
        scheme: u8,
    },
    /// Its content is not what its checksum was made of.
    Checksum {
        /// The checksum of the content.
        found: u32,
        /// The one in the header.
        expected: u32,
    },
    /// It is encrypted, and no key is given.
    KeyNeeded,
    /// No key opens it: it was encrypted with another key, or altered.
    Encryption,
    /// What it holds is not what its compression makes.
    Compression,
    /// Its content would become larger than this, in bytes.
    Limit(usize),
    /// It is compressed, encrypted or has a checksum, and the crate was built without the feature `secure`.
    NotBuilt,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size => f.write_str("the packet is shorter than its header says"),
            Self::Scheme { field, scheme } => {
                write!(f, "the packet's {field} is {scheme}, which the RFC does not know")
            }
            Self::Checksum { found, expected } => write!(
                f,
                "the packet's content has the checksum {found:#010x}, its header says {expected:#010x}: it was altered"
            ),
            Self::KeyNeeded => f.write_str(
                "the packet is encrypted, and no key is given; hint: `--key-file FILE` names a file with it",
            ),
            Self::Encryption => f.write_str(
                "the packet cannot be decrypted: its key is another one, or it was altered",
            ),
            Self::Compression => {
                f.write_str("the packet cannot be decompressed: its content is damaged")
            }
            Self::Limit(most) => write!(
                f,
                "the packet's content would have more than {most} bytes when decompressed, which is more than kymo makes of a packet of its size"
            ),
            Self::NotBuilt => f.write_str(NOT_BUILT),
        }
    }
}

impl std::error::Error for OpenError {}

/// What both errors say where the feature is missing.
const NOT_BUILT: &str =
    "the program was built without support of secured packets (kymo-ctf's feature `secure`)";

/// Why a packet cannot be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// It is shorter than its header, or than that says.
    Size,
    /// It is sealed already.
    Sealed,
    /// It would have 4 GiB or more, which its header cannot hold.
    TooLarge,
    /// The crate was built without the feature `secure`.
    NotBuilt,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotBuilt => NOT_BUILT,
            Self::Size => "the packet is shorter than its header says",
            Self::Sealed => "the packet is compressed, encrypted, or has a checksum already",
            Self::TooLarge => {
                "the packet would have 4 GiB or more: its header cannot hold the size"
            }
        })
    }
}

impl std::error::Error for SealError {}

/// Whether a packet of a trace of RFC v1.1 and a byte order is compressed, encrypted, or has a checksum.
pub fn is_secured(packet: &[u8], order: ByteOrder) -> bool {
    PacketHeader::read(packet, order).is_some_and(|header| header.is_secured())
}

/// How a packet of a trace of RFC v1.1 and a byte order is secured; of an encrypted one with the first of `keys` that
/// opens it.
///
/// # Errors
///
/// None of them does, or the packet is not as it should be.
pub fn protection_of(
    packet: &[u8],
    order: ByteOrder,
    keys: &[Key],
) -> Result<Protection, OpenError> {
    let header = PacketHeader::read(packet, order).ok_or(OpenError::Size)?;
    let key = match header.encryption {
        0 => None,
        _ => {
            let mut failed = OpenError::KeyNeeded;
            let opens = |key: &&Key| {
                let opened = open(packet, order, std::slice::from_ref(key), &Limits::default());
                opened.map_err(|error| failed = error).is_ok()
            };
            let key = keys.iter().find(opens).cloned();
            Some(key.ok_or(failed)?)
        }
    };
    Ok(Protection {
        compression: Compression::of_scheme(header.compression),
        key,
        checksum: Checksum::of_scheme(header.checksum_scheme),
    })
}

/// Opens a packet of a trace of a byte order: verifies its checksum, decrypts with the first key
/// that fits, and decompresses.
///
/// `packet` begins with the header and may go on behind the content. Where that is stored as it is,
/// the packet itself is returned; otherwise one without schemes, checksum and padding, whose sizes are
/// those of the plain content.
///
/// # Errors
///
/// Whatever of it is not as it should be.
pub fn open<'p>(
    packet: &'p [u8],
    order: ByteOrder,
    keys: &[Key],
    limits: &Limits,
) -> Result<Cow<'p, [u8]>, OpenError> {
    let header = PacketHeader::read(packet, order).ok_or(OpenError::Size)?;
    let stored = packet
        .get(HEADER_BYTES..header.content_size as usize)
        .ok_or(OpenError::Size)?;
    if let Some((field, .., scheme)) = header.unknown_scheme() {
        return Err(OpenError::Scheme { field, scheme });
    }
    match header.is_secured() {
        true => packet::open(packet, header, stored, order, keys, limits),
        false => Ok(Cow::Borrowed(packet)),
    }
}

/// Seals a plain packet of a trace of a byte order: compresses its content, encrypts that, takes the
/// checksum, writes all of it to the header, and pads to a multiple of [`PAGE`] bytes.
///
/// `packet` begins with a header that has the size of the content, and may go on behind
/// that. Content that would shrink to so little that [`open`] might take it for an attack is not
/// compressed. What is encrypted stays with its header: with another one it cannot be opened. `nonce` makes the 12 random bytes of an encrypted packet: they must not come twice
/// with a key.
///
/// # Errors
///
/// If it is not a plain packet, or becomes too large.
pub fn seal(
    packet: &[u8],
    order: ByteOrder,
    protection: &Protection,
    nonce: impl FnOnce() -> [u8; NONCE_BYTES],
) -> Result<Vec<u8>, SealError> {
    let header = PacketHeader::read(packet, order).ok_or(SealError::Size)?;
    let content = packet
        .get(HEADER_BYTES..header.content_size as usize)
        .ok_or(SealError::Size)?;
    if header.is_secured() {
        return Err(SealError::Sealed);
    }
    packet::seal(packet, header, content, order, protection, nonce)
}
