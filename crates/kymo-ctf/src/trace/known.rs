//! The packets of a trace as bytes, to be kept until its files change: opening it again reads no packet then.
//!
//! Only what is found without a fault is kept, and only of dialects in which packets need not be opened before they
//! are read. All numbers are LEB128; an optional one is a byte, 0 or 1, and the number where it is 1.
//!
//! | content | of each stream, after the number of streams |
//! |---|---|
//! | number | position of its class |
//! | optional | number of the stream |
//! | optional | its file, where packets of several files are different streams |
//! | optional | ticks of its last event, where the end of its last packet cannot be relied on |
//! | number, number | number of its packets, bytes of their rows |
//! | | the rows, as a [`table`](super::table) has them |

use std::hash::{DefaultHasher, Hash, Hasher};

use kymo_io::{Bytes, FileState};

use super::losses::Counters;
use super::refresh::Watched;
use super::streams::{Key, Stream};
use super::table::{self, Row, Table};
use super::{Options, StreamFile, Trace};
use crate::class::{Dialect, TraceClass};

/// What packets are found in: as long as it is the same, they are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketSource {
    /// Device, inode, size in bytes, and time of the last change of each file.
    pub files: Vec<[u64; 4]>,
    /// Where the files are, how they are read, and by which version of this crate.
    pub how: Vec<u8>,
}

/// Returns the [table](Trace::packet_table) of a source, if it is kept.
pub type KnownPackets<'k> = &'k dyn Fn(&PacketSource) -> Option<Bytes>;

impl PacketSource {
    /// That of the files of a trace as they were before they are scanned. `None` if one of them is not a file of this
    /// system, or packets need more than the files to be read.
    pub(super) fn new(watched: &Watched, files: &[StreamFile], options: &Options) -> Option<Self> {
        if options.compares_indexes || !options.keys.is_empty() {
            return None;
        }
        let indexes = files.iter().filter_map(|file| file.index.as_ref());
        let of_indexes = indexes.map(|(path, bytes)| {
            let state = FileState::of(path).ok()?;
            Some(state.with_length(bytes.len() as u64))
        });
        let states = watched.states().chain(of_indexes);
        let numbers = states.map(|state| state?.to_numbers());
        let mut hasher = DefaultHasher::new();
        for file in files {
            let index = file.index.as_ref().map(|(path, _)| path);
            (kymo_io::absolute(&file.path), index.is_some()).hash(&mut hasher);
        }
        let (version, sorts) = (env!("CARGO_PKG_VERSION"), options.sorts_packets);
        let hash = hasher.finish();
        Some(Self {
            files: numbers.collect::<Option<_>>()?,
            how: format!("packets {version} {sorts} {hash:016x}").into_bytes(),
        })
    }
}

impl Trace {
    /// The packets of the trace as they were found when it was opened, for
    /// [`new_with_packets`](Self::new_with_packets), and what they were found in. `None` if they are known already,
    /// if something was wrong with them or has changed since, or if they are not to be kept.
    pub fn packet_table(&self) -> Option<(&PacketSource, Vec<u8>)> {
        let source = self.packet_source.as_ref()?;
        let mut bytes = Vec::new();
        table::write(&mut bytes, self.streams.len() as u64);
        for stream in &self.streams {
            table::write(&mut bytes, stream.key.stream_class.into());
            let file = stream.key.file.map(u64::from);
            for number in [stream.key.id, file, stream.last_event] {
                bytes.push(number.is_some().into());
                if let Some(number) = number {
                    table::write(&mut bytes, number);
                }
            }
            let rows = stream.packets.bytes();
            table::write(&mut bytes, stream.packets.len() as u64);
            table::write(&mut bytes, rows.len() as u64);
            bytes.extend(rows);
        }
        Some((source, bytes))
    }
}

/// The streams that lie in the bytes of a packet table; `None` if they cannot be those of these files.
pub(super) fn streams(
    mut bytes: &[u8],
    class: &TraceClass,
    files: &[StreamFile],
) -> Option<Vec<Stream>> {
    let lengths: Vec<u64> = files.iter().map(|file| file.bytes.len() as u64).collect();
    let is_within = |row: &Row| {
        let packet = &row.packet;
        let length = lengths.get(packet.file as usize);
        let end = packet.offset.checked_add(packet.total_bits / 8);
        packet.content_bits <= packet.total_bits
            && end.zip(length).is_some_and(|(end, &length)| end <= length)
    };
    let rest = &mut bytes;
    let mut streams = Vec::new();
    for _ in 0..number(rest)? {
        let stream_class = u32::try_from(number(rest)?).ok()?;
        let position = stream_class as usize;
        class.streams.get(position)?;
        let (id, file, last_event) = (optional(rest)?, optional(rest)?, optional(rest)?);
        let file = match file {
            Some(file) => Some(u32::try_from(file).ok()?),
            None => None,
        };
        let (len, size) = (number(rest)?, number(rest)?);
        let rows = rest.split_off(..usize::try_from(size).ok()?)?;
        streams.push(Stream {
            key: Key {
                stream_class,
                id,
                file,
            },
            class: position,
            id,
            packets: Table::of_bytes(rows, usize::try_from(len).ok()?, is_within)?,
            first: 0,
            counters: Counters::AsOfEnd,
            secured: false,
            last_event,
        });
    }
    rest.is_empty().then_some(streams)
}

/// Whether the packets of a dialect can be kept: streams of RFC v1.1 count together, and may be secured.
pub(super) fn can_keep(dialect: Dialect) -> bool {
    dialect != Dialect::Rfc11
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    (!rest.is_empty()).then(|| table::read(rest))
}

fn optional(rest: &mut &[u8]) -> Option<Option<u64>> {
    match rest.split_off_first()? {
        0 => Some(None),
        _ => number(rest).map(Some),
    }
}
