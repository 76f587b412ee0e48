//! The bytes of datagrams. All numbers are big endian.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroize;

use super::{Content, LONGEST_NAME};
use crate::secure::Key;

/// The size in bytes that no datagram exceeds, by what UDP can carry over IPv4.
pub const LARGEST_DATAGRAM: usize = 65_507;
/// Datagrams can be limited to so few bytes, and no fewer.
pub const SMALLEST_DATAGRAM: usize = 256;

const MAGIC: &[u8; 4] = b"kymo";
const VERSION: u8 = 2;
/// Flag of a datagram with a tag.
const AUTHENTICATED: u8 = 1;
/// Size of the header that all datagrams have.
const HEADER_BYTES: usize = 24;
/// Size of the tag at the end.
const TAG_BYTES: usize = 16;
/// Size of the checksum that stands there without a key.
const CHECKSUM_BYTES: usize = 4;
/// Size of what comes before the bytes of a fragment.
const FRAGMENT_HEADER_BYTES: usize = 20;
/// Size of a range that is asked for.
const RANGE_BYTES: usize = 20;
/// Stands for all fragments there are.
pub(super) const ALL: u32 = u32::MAX;

/// Proves that a datagram is from somebody who has the key.
#[derive(Clone)]
pub(super) struct Seal(Hmac<Sha256>);

impl Seal {
    /// Not the key itself is used: that encrypts packets.
    pub(super) fn new(key: &Key) -> Option<Self> {
        let mut derived = Hmac::<Sha256>::new_from_slice(key.bytes()).ok()?;
        derived.update(b"kymo ctf-udp 1");
        let mut derived = derived.finalize().into_bytes();
        let seal = Hmac::new_from_slice(&derived).ok().map(Self);
        derived[..].zeroize();
        seal
    }

    fn tag(&self, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let mut mac = self.0.clone();
        mac.update(bytes);
        let tag = mac.finalize().into_bytes();
        tag.first_chunk().copied().unwrap_or_default()
    }

    /// Compares in constant time.
    fn verify(&self, bytes: &[u8], tag: &[u8]) -> bool {
        let mut mac = self.0.clone();
        mac.update(bytes);
        mac.verify_truncated_left(tag).is_ok()
    }
}

/// Why a datagram is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It does not begin as those of kymo do.
    Foreign,
    /// It is of a version that kymo does not know.
    Version,
    /// It has a tag, and no key is given.
    KeyNeeded,
    /// It has no tag or a wrong one: it is not from a holder of the key, or it was altered.
    Tag,
    /// Its checksum is a wrong one: it was altered on the way.
    Checksum,
    /// It ends too early, or has what cannot be.
    Damaged,
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram<'d> {
    pub(super) session: u64,
    /// Number among all from the same side.
    pub(super) number: u64,
    pub(super) body: Body<'d>,
}

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'d> {
    /// Sender: a part of a packet.
    Fragment(Fragment<'d>),
    /// Sender: everything is sent; the directory has `directory` packets.
    End { directory: u32 },
    /// Sender: packets of a stream before this one are no longer kept.
    Gone { stream: u32, before: u32 },
    /// Sender: how many packets have arrived so far?
    Ask,
    /// Receiver: what is missing.
    Request(Ranges<'d>),
    /// Receiver: it accepts no more packets.
    Done {
        /// Packets that have arrived, but for those of the directory; `None` if the receiver does not report it.
        arrived: Option<u64>,
    },
    /// Receiver: the number of packets that have arrived so far, without those of the directory.
    Arrived(u64),
}

/// A part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment<'d> {
    pub(super) stream: u32,
    pub(super) packet: u32,
    /// Bytes of the packet.
    pub(super) size: u32,
    /// Number of the fragment in the packet.
    pub(super) fragment: u32,
    /// Bytes of every fragment of the packet but the last.
    pub(super) fragment_size: u16,
    pub(super) bytes: &'d [u8],
}

impl Fragment<'_> {
    /// How many fragments a packet has: one at least.
    pub(super) fn count(size: u32, fragment_size: u16) -> u32 {
        size.div_ceil(u32::from(fragment_size).max(1)).max(1)
    }

    /// Whether it can be what it says.
    fn is_possible(&self) -> bool {
        let size = u64::from(self.fragment_size);
        let begin = u64::from(self.fragment) * size;
        let length = u64::from(self.size).saturating_sub(begin).min(size);
        size > 0
            && self.fragment < Self::count(self.size, self.fragment_size)
            && self.bytes.len() as u64 == length
    }
}

/// What a receiver asks for: packets, or fragments of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) stream: u32,
    pub(super) packet: u32,
    pub(super) packets: u32,
    pub(super) fragment: u32,
    /// [`ALL`] for whole packets.
    pub(super) fragments: u32,
}

/// Ranges in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranges<'d>(&'d [u8]);

impl Ranges<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = Range> {
        self.0.chunks_exact(RANGE_BYTES).map(|bytes| {
            let number = |at: usize| number(&bytes[at * 4..]).unwrap_or_default();
            Range {
                stream: number(0),
                packet: number(1),
                packets: number(2),
                fragment: number(3),
                fragments: number(4),
            }
        })
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn long(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// CRC-32, that of gzip and Ethernet.
fn checksum_of(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32fast::hash(bytes).to_be_bytes()
}

/// The session that a datagram says it is of, whatever else is in it and whoever sent it; `None` if it is not one
/// of kymo's.
pub fn session_of(datagram: &[u8]) -> Option<u64> {
    long(datagram.get(8..).filter(|_| is_envelope(datagram))?)
}

/// Whether a datagram begins as those of kymo do.
fn is_envelope(datagram: &[u8]) -> bool {
    datagram.starts_with(MAGIC)
}

impl<'d> Datagram<'d> {
    /// Reads a datagram, which must be from a holder of the key if there is one.
    pub(super) fn read(datagram: &'d [u8], seal: Option<&Seal>) -> Result<Self, Unreadable> {
        if !is_envelope(datagram) {
            return Err(Unreadable::Foreign);
        }
        let [version, kind, flags] = match datagram {
            [_, _, _, _, version, kind, flags, ..] => [*version, *kind, *flags],
            _ => return Err(Unreadable::Damaged),
        };
        if version != VERSION {
            return Err(Unreadable::Version);
        }
        let is_authenticated = flags & AUTHENTICATED != 0;
        let datagram = match (seal, is_authenticated) {
            (None, false) => {
                let (bytes, checksum) = datagram
                    .split_last_chunk::<CHECKSUM_BYTES>()
                    .ok_or(Unreadable::Damaged)?;
                if checksum_of(bytes) != *checksum {
                    return Err(Unreadable::Checksum);
                }
                bytes
            }
            (None, true) => return Err(Unreadable::KeyNeeded),
            (Some(_), false) => return Err(Unreadable::Tag),
            (Some(seal), true) => {
                let (bytes, tag) = datagram
                    .split_last_chunk::<TAG_BYTES>()
                    .ok_or(Unreadable::Damaged)?;
                if !seal.verify(bytes, tag) {
                    return Err(Unreadable::Tag);
                }
                bytes
            }
        };
        Self::plain(datagram, kind).ok_or(Unreadable::Damaged)
    }

    fn plain(datagram: &'d [u8], kind: u8) -> Option<Self> {
        let rest = datagram.get(HEADER_BYTES..)?;
        let word = |at: usize| number(rest.get(at * 4..)?);
        let body = match kind {
            1 => {
                let fragment_size = word(4)? >> 16;
                let fragment = Fragment {
                    stream: word(0)?,
                    packet: word(1)?,
                    size: word(2)?,
                    fragment: word(3)?,
                    fragment_size: u16::try_from(fragment_size).ok()?,
                    bytes: rest.get(FRAGMENT_HEADER_BYTES..)?,
                };
                Body::Fragment(Some(fragment).filter(Fragment::is_possible)?)
            }
            2 => Body::End {
                directory: word(0)?,
            },
            3 => Body::Gone {
                stream: word(0)?,
                before: word(1)?,
            },
            4 => Body::Request(Ranges(rest)),
            5 => Body::Done {
                arrived: long(rest),
            },
            6 => Body::Ask,
            7 => Body::Arrived(long(rest)?),
            _ => return None,
        };
        Some(Self {
            session: long(&datagram[8..])?,
            number: long(&datagram[16..])?,
            body,
        })
    }
}

/// Makes the datagrams of one side of a session.
pub(super) struct Writer {
    pub(super) session: u64,
    seal: Option<Seal>,
    /// Number of the next one.
    number: u64,
    /// The size that none exceeds.
    size: usize,
}

impl Writer {
    /// `number` is that of the first datagram.
    pub(super) fn new(session: u64, seal: Option<Seal>, size: usize, number: u64) -> Self {
        Self {
            session,
            seal,
            number,
            size: size.clamp(SMALLEST_DATAGRAM, LARGEST_DATAGRAM),
        }
    }

    /// Bytes of a packet that fit a datagram.
    pub(super) fn fragment_size(&self) -> u16 {
        let size = self.size - HEADER_BYTES - FRAGMENT_HEADER_BYTES - self.end_bytes();
        u16::try_from(size).unwrap_or(u16::MAX)
    }

    /// Size of what is behind the body.
    fn end_bytes(&self) -> usize {
        self.seal.as_ref().map_or(CHECKSUM_BYTES, |_| TAG_BYTES)
    }

    fn datagram(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(self.size);
        datagram.extend(MAGIC);
        let flags = self.seal.as_ref().map_or(0, |_| AUTHENTICATED);
        datagram.extend([VERSION, kind, flags, 0]);
        datagram.extend(self.session.to_be_bytes());
        datagram.extend(self.number.to_be_bytes());
        self.number = self.number.wrapping_add(1);
        body(&mut datagram);
        match &self.seal {
            Some(seal) => {
                let tag = seal.tag(&datagram);
                datagram.extend(tag);
            }
            None => {
                let checksum = checksum_of(&datagram);
                datagram.extend(checksum);
            }
        }
        datagram
    }

    pub(super) fn fragment(&mut self, fragment: &Fragment<'_>) -> Vec<u8> {
        self.datagram(1, |datagram| {
            for number in [
                fragment.stream,
                fragment.packet,
                fragment.size,
                fragment.fragment,
                u32::from(fragment.fragment_size) << 16,
            ] {
                datagram.extend(number.to_be_bytes());
            }
            datagram.extend(fragment.bytes);
        })
    }

    pub(super) fn end(&mut self, directory: u32) -> Vec<u8> {
        self.datagram(2, |datagram| datagram.extend(directory.to_be_bytes()))
    }

    pub(super) fn gone(&mut self, stream: u32, before: u32) -> Vec<u8> {
        self.datagram(3, |datagram| {
            datagram.extend(stream.to_be_bytes());
            datagram.extend(before.to_be_bytes());
        })
    }

    /// Asks for as many of the ranges as fit, and returns how many these are.
    pub(super) fn request(&mut self, ranges: &[Range]) -> (Vec<u8>, usize) {
        let most = (self.size - HEADER_BYTES - self.end_bytes()) / RANGE_BYTES;
        let asked = &ranges[..most.min(ranges.len())];
        let datagram = self.datagram(4, |datagram| {
            for range in asked {
                let Range {
                    stream,
                    packet,
                    packets,
                    fragment,
                    fragments,
                } = *range;
                for number in [stream, packet, packets, fragment, fragments] {
                    datagram.extend(number.to_be_bytes());
                }
            }
        });
        (datagram, asked.len())
    }

    pub(super) fn done(&mut self, arrived: u64) -> Vec<u8> {
        self.datagram(5, |datagram| datagram.extend(arrived.to_be_bytes()))
    }

    pub(super) fn ask(&mut self) -> Vec<u8> {
        self.datagram(6, |_| {})
    }

    pub(super) fn arrived(&mut self, arrived: u64) -> Vec<u8> {
        self.datagram(7, |datagram| datagram.extend(arrived.to_be_bytes()))
    }
}

/// A packet of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// What a stream is.
    Stream {
        stream: u32,
        content: Content,
        name: String,
    },
    /// How many packets the streams from the first on have.
    Totals(Vec<u32>),
}

impl Entry {
    pub(super) fn write(&self) -> Vec<u8> {
        match self {
            Self::Stream {
                stream,
                content,
                name,
            } => {
                let content = match content {
                    Content::Metadata => 0,
                    Content::Packets => 1,
                };
                let mut bytes = vec![0, content];
                bytes.extend(stream.to_be_bytes());
                bytes.extend(name.as_bytes());
                bytes
            }
            Self::Totals(totals) => {
                let mut bytes = vec![1];
                bytes.extend(totals.iter().flat_map(|total| total.to_be_bytes()));
                bytes
            }
        }
    }

    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        match packet {
            [0, content, rest @ ..] => {
                let (stream, name) = rest.split_first_chunk()?;
                Some(Self::Stream {
                    stream: u32::from_be_bytes(*stream),
                    content: match content {
                        0 => Content::Metadata,
                        1 => Content::Packets,
                        _ => return None,
                    },
                    name: std::str::from_utf8(name)
                        .ok()
                        .filter(|name| name.len() <= LONGEST_NAME)?
                        .to_owned(),
                })
            }
            [1, totals @ ..] => {
                let totals = totals.chunks(4).map(number);
                Some(Self::Totals(totals.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }
}
