//! From packets as they were found to streams of chunks: which packets make a stream, in which
//! order, at what times, and what was lost between them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use kymo_model::{Chunk, Cursor, Event, FaultCode, FaultReport};
use kymo_time::{Clock, Ticks, Timestamp};

use super::losses::{self, Counters};
use super::packet::Reader;
use super::quirks::Quirks;
use super::scan::{Found, MOST_FAULTS};
use super::table::{Row, Table};
use super::{Packet, report};
use crate::class::{Dialect, TraceClass};

/// A trace may have this many streams beyond one for each file: what is kept of a stream is larger
/// than a packet may be.
const MANY_STREAMS: usize = 1 << 16;

/// What makes packets belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    stream_class: u32,
    id: Option<u64>,
    /// The file, where packets of several files cannot be put in order or may be of different
    /// streams.
    file: Option<u32>,
}

/// A stream: its packets in their final order.
#[derive(Debug)]
pub(super) struct Stream {
    /// Position in [`TraceClass::streams`].
    pub(super) class: usize,
    /// Number of the stream, where its packets tell.
    pub(super) id: Option<u64>,
    pub(super) packets: Table,
    counters: Counters,
    /// Whether a packet of it must be opened before it is read.
    secured: bool,
    /// Ticks of the last event, where the last packet's own end cannot be relied on.
    last_event: Option<u64>,
}

/// A stream whose packets are being found.
#[derive(Debug)]
struct Growing {
    key: Key,
    has_clock: bool,
    /// Whether the time of an event depends on what came before.
    narrow_events: bool,
    several_files: bool,
    secured: bool,
    /// The packet found last.
    before: Option<Row>,
    packets: Table,
}

/// Makes streams of packets.
pub(super) struct Assembly<'a> {
    class: &'a TraceClass,
    reader: Reader<'a>,
    quirks: Quirks,
    positions: HashMap<Key, usize>,
    streams: Vec<Growing>,
    /// The first packet that is left out since there are too many streams.
    left_out: Option<Packet>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(reader: Reader<'a>, quirks: Quirks) -> Self {
        Self {
            class: reader.class,
            reader,
            quirks,
            positions: HashMap::new(),
            streams: Vec::new(),
            left_out: None,
        }
    }

    /// Adds a packet. Those of a file come in their order there.
    pub(super) fn add(&mut self, found: Found) {
        let key = Key {
            stream_class: found.stream_class,
            id: found.stream_id,
            file: (found.stream_id.is_none() || found.begin.is_none()).then_some(found.packet.file),
        };
        let known = self.positions.get(&key).copied();
        if known.is_none() && self.streams.len() >= MANY_STREAMS + self.reader.files.len() {
            self.left_out.get_or_insert(found.packet);
            return;
        }
        let position = known.unwrap_or_else(|| {
            let class = self.class.streams.get(key.stream_class as usize);
            let header = class.and_then(|class| class.event_header.as_ref());
            self.streams.push(Growing {
                key,
                has_clock: class.is_some_and(|class| class.clock.is_some()),
                narrow_events: header.is_some_and(report::has_narrow_event_clock),
                several_files: false,
                secured: false,
                before: None,
                packets: Table::default(),
            });
            self.positions.insert(key, self.streams.len() - 1);
            self.streams.len() - 1
        });
        let row = self.row(&self.streams[position], &found);
        let mut corrected = row;
        if self.quirks.event_before_packet
            && let Some(begin) = row.begin
            && let Some(first) = self.first_event(key.stream_class as usize, &row.packet)
        {
            corrected.begin = Some(begin.min(first));
        }
        let stream = &mut self.streams[position];
        stream.several_files |= stream
            .before
            .is_some_and(|before| before.packet.file != row.packet.file);
        stream.secured |= found.secured;
        stream.before = Some(row);
        stream.packets.push(&corrected);
    }

    /// The streams of all packets that were added.
    pub(super) fn streams(mut self, faults: &mut Vec<FaultReport>) -> Vec<Stream> {
        let mut streams = Vec::with_capacity(self.streams.len());
        for growing in std::mem::take(&mut self.streams) {
            let mut packets = growing.packets;
            if growing.several_files {
                packets = in_order(&packets);
            }
            packets.shrink();
            faults.extend(self.check_order(&packets));
            let class = growing.key.stream_class as usize;
            let last_event = packets
                .len()
                .checked_sub(1)
                .filter(|_| self.quirks.event_after_packet && growing.has_clock)
                .and_then(|last| self.last_event(class, &packets.get(last)?.packet));
            streams.push(Stream {
                class,
                id: growing.key.id,
                packets,
                counters: match self.class.dialect {
                    Dialect::Rfc11 => Counters::AsOfBeginning,
                    Dialect::Ctf18 | Dialect::Ctf2 => Counters::AsOfEnd,
                },
                secured: growing.secured,
                last_event,
            });
        }
        if self.class.dialect == Dialect::Rfc11 {
            count_together(&mut streams);
        }
        faults.extend(self.left_out.and_then(|packet| {
            let count = streams.len();
            let message =
                format!("the trace has more than {count} streams; those that follow are left out");
            self.fault(FaultCode::LengthLimit, &packet, message)
        }));
        streams.sort_by_cached_key(|stream| self.rank(stream));
        for stream in streams.iter().filter(|stream| stream.secured) {
            self.tell_missing(stream, faults);
        }
        streams
    }

    /// Streams are ordered by the file with their first packet, then by number.
    fn rank(&self, stream: &Stream) -> (&'a Path, usize, Option<u64>) {
        let first = stream.packets.get(0);
        let file = first.and_then(|first| self.reader.files.get(first.packet.file as usize));
        let path = file.map_or(Path::new(""), |file| file.path.as_path());
        (path, stream.class, stream.id)
    }

    /// Completes the numbers of the clock: a number of fewer than 64 bits goes on from the one
    /// before it in the same file. Where a packet does not say when it begins, its clock begins at
    /// 0; but if its events have numbers of fewer than 64 bits, these go on from the end of the
    /// packet before, or where that is not said either, from the last event there (in CTF 2 from 0
    /// all the same).
    fn row(&self, stream: &Growing, found: &Found) -> Row {
        let class = stream.key.stream_class as usize;
        let carries = stream.has_clock && self.class.dialect != Dialect::Ctf2;
        let carried = || {
            let before = stream
                .before
                .filter(|before| carries && before.packet.file == found.packet.file)?;
            match before.end {
                Some(end) => Some(end),
                None if stream.narrow_events => self.last_event(class, &before.packet),
                None => before.begin,
            }
        };
        let ticks = |number: Option<(u64, u32)>| number.filter(|_| stream.has_clock);
        let begin = ticks(found.begin).map(|begin| match begin {
            (ticks, 64..) => ticks,
            (ticks, bits) => {
                carried().map_or(ticks, |carried| Ticks(carried).advance(ticks, bits).0)
            }
        });
        let mut packet = found.packet;
        packet.clock = match begin {
            Some(begin) => begin,
            None if stream.narrow_events => carried().unwrap_or(0),
            None => 0,
        };
        let end = ticks(found.end).map(|end| match end {
            (0, _) if self.quirks.zero_end && begin != Some(0) => {
                self.last_event(class, &packet).unwrap_or(packet.clock)
            }
            (ticks, 64..) => ticks,
            (ticks, bits) => Ticks(packet.clock).advance(ticks, bits).0,
        });
        Row {
            packet,
            begin,
            end,
            discarded: found.discarded,
            sequence: found.sequence,
        }
    }

    /// Ticks of the first event of a packet.
    fn first_event(&self, class: usize, packet: &Packet) -> Option<u64> {
        let mut cursor = packet.cursor(self.reader, class).ok()?;
        cursor.next_event().ok()?.and_then(|event| event.ticks())
    }

    /// Ticks of the clock after the last event of a packet that can be decoded, or at the
    /// packet's beginning if there is none.
    fn last_event(&self, class: usize, packet: &Packet) -> Option<u64> {
        let mut cursor = packet.cursor(self.reader, class).ok()?;
        while let Ok(Some(_)) = cursor.next_event() {}
        Some(cursor.clock())
    }

    /// The first packet of a stream that begins before the one before it, or ends before it
    /// begins.
    fn check_order(&self, packets: &Table) -> Option<FaultReport> {
        let mut before = None;
        let (packet, message) = packets.rows(0).find_map(|row| {
            let before = before.replace(row).and_then(|before: Row| before.begin);
            match (before, row.begin, row.end) {
                (_, Some(begin), Some(end)) if end < begin => Some((
                    row.packet,
                    format!("the packet ends at {end} ticks, before it begins at {begin}"),
                )),
                (Some(before), Some(begin), _) if begin < before => Some((
                    row.packet,
                    format!("the packet begins at {begin} ticks, before the packet before it, which begins at {before}"),
                )),
                _ => None,
            }
        })?;
        self.fault(FaultCode::NotMonotonic, &packet, message)
    }

    /// Tells of the packets that a secured stream lacks. What tracers lose is no damage; but who
    /// secures packets wants to know when one was taken away.
    fn tell_missing(&self, stream: &Stream, faults: &mut Vec<FaultReport>) {
        let mut told = 0;
        let mut before = None;
        for (number, row) in stream.packets.rows(0).enumerate() {
            let (_, lost) = stream.counters.lost(number, &row, before.as_ref());
            before = Some(row);
            let (Some(count), Some((next, bits))) =
                (lost.and_then(|lost| lost.count), row.sequence)
            else {
                continue;
            };
            told += 1;
            if told > MOST_FAULTS {
                return;
            }
            let mask = 1u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1);
            let (first, last) = (next.wrapping_sub(count) & mask, next.wrapping_sub(1) & mask);
            let message = match count {
                1 => {
                    format!("packet {last} of the section, which comes before this one, is missing")
                }
                _ => format!(
                    "packets {first} to {last} of the section, which come before this one, are missing"
                ),
            };
            faults.extend(self.fault(FaultCode::MissingPacket, &row.packet, message));
        }
    }

    fn fault(&self, code: FaultCode, packet: &Packet, message: String) -> Option<FaultReport> {
        let file = self.reader.files.get(packet.file as usize)?;
        Some(FaultReport {
            code,
            file: Arc::clone(&file.path),
            offset: packet.offset,
            packet: Some(u64::from(packet.number)),
            event: None,
            field: None,
            message,
        })
    }
}

/// Finds the sections whose streams count their losses together.
fn count_together(streams: &mut [Stream]) {
    let mut sections: HashMap<usize, Vec<usize>> = HashMap::new();
    for (position, stream) in streams.iter().enumerate() {
        sections.entry(stream.class).or_default().push(position);
    }
    for section in sections.into_values().filter(|section| section.len() > 1) {
        let tables: Vec<&Table> = section.iter().map(|&at| &streams[at].packets).collect();
        let told = losses::of_section(&tables).into_iter().flatten();
        for (position, told) in section.into_iter().zip(told) {
            streams[position].counters = Counters::OfSection(told);
        }
    }
}

/// Packets of several files in the order of time, each of them once: overlapping snapshots of a
/// session hold the same packets.
fn in_order(packets: &Table) -> Table {
    let mut order: Vec<(Option<u64>, usize)> = packets
        .rows(0)
        .enumerate()
        .map(|(position, row)| (row.begin, position))
        .collect();
    // Packets of the same time stay in their order.
    order.sort_unstable();
    let mut ordered = Table::default();
    let mut before: Option<Row> = None;
    for (_, position) in order {
        if let Some(row) = packets.get(position)
            && !before.is_some_and(|before| row.is_copy_of(&before))
        {
            ordered.push(&row);
            before = Some(row);
        }
    }
    ordered
}

impl Stream {
    /// The chunks of its packets, from one on. `position` is the stream's own among all.
    pub(super) fn chunks(
        &self,
        position: usize,
        from: usize,
        clock: Option<&Clock>,
        quirks: Quirks,
    ) -> impl Iterator<Item = Chunk> {
        let mut rows = self.packets.rows(from.saturating_sub(1));
        let mut before = match from {
            0 => None,
            _ => rows.next(),
        };
        let mut following = rows.next();
        (from..).map_while(move |number| {
            let row = following?;
            following = rows.next();
            let (begin_time, end_time) = match clock {
                Some(clock) => {
                    let end = match quirks.event_after_packet {
                        true => following.map_or(self.last_event, |next| next.begin),
                        false => row.end,
                    };
                    row.bounds(clock, end)
                }
                None => (None, None),
            };
            let (lost_events, lost_chunks) = self.counters.lost(number, &row, before.as_ref());
            let chunk = Chunk {
                stream: position,
                number,
                bytes: row.packet.total_bits / 8,
                begin: row.begin,
                end: row.end,
                begin_time,
                end_time,
                lost_events,
                lost_chunks,
            };
            before = Some(row);
            Some(chunk)
        })
    }
}

impl Row {
    /// The times between which all events of a packet lie, where they can be relied on; `end` is
    /// the end of its last event at the latest.
    fn bounds(&self, clock: &Clock, end: Option<u64>) -> (Option<Timestamp>, Option<Timestamp>) {
        if let (Some(begin), Some(end)) = (self.begin, end)
            && end < begin
        {
            return (None, None);
        }
        let time = |ticks: Option<u64>| ticks.and_then(|ticks| clock.timestamp(ticks));
        (time(self.begin), time(end))
    }

    /// Whether this is the same packet as another one, in another file.
    fn is_copy_of(&self, other: &Self) -> bool {
        self.packet.file != other.packet.file
            && self.begin.is_some()
            && (self.begin, self.end, self.sequence) == (other.begin, other.end, other.sequence)
            && (self.packet.total_bits, self.packet.content_bits)
                == (other.packet.total_bits, other.packet.content_bits)
    }
}
