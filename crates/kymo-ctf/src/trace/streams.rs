//! From packets as they were found to streams of chunks: which packets make a stream, in which
//! order, at what times, and what was lost between them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use kymo_model::{Chunk, Cursor, Event, FaultCode, FaultReport, Nothing};
use kymo_time::{Clock, Ticks, Timestamp};

use super::losses::{self, Counters};
use super::packet::Reader;
use super::quirks::Quirks;
use super::scan::{FileFaults, Found, MOST_FAULTS};
use super::sorted::{self, LeftOut};
use super::table::{Row, Table};
use super::{Packet, report};
use crate::class::{Dialect, TraceClass};

/// A trace may have this many streams beyond one for each file: what is kept of a stream is larger
/// than a packet may be.
const MANY_STREAMS: usize = 1 << 16;

/// Number of packets at the end of a stream that are searched for the one from which a file continues.
const NEAR: usize = 4;

/// What makes packets belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) stream_class: u32,
    pub(super) id: Option<u64>,
    /// The file, where packets of several files cannot be put in order or may be of different
    /// streams.
    pub(super) file: Option<u32>,
}

/// A stream: its packets in their final order.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) key: Key,
    /// Position in [`TraceClass::streams`].
    pub(super) class: usize,
    /// Number of the stream, if its packets state it.
    pub(super) id: Option<u64>,
    pub(super) packets: Table,
    /// The number of packets before these, which have vanished.
    pub(super) first: usize,
    pub(super) counters: Counters,
    /// Whether a packet of it must be opened before it is read.
    pub(super) secured: bool,
    /// Ticks of the last event, where the last packet's own end cannot be relied on.
    pub(super) last_event: Option<u64>,
}

/// A stream whose packets are being searched for.
#[derive(Debug)]
struct Growing {
    key: Key,
    has_clock: bool,
    /// Whether the time of an event depends on what came before.
    narrow_events: bool,
    several_files: bool,
    secured: bool,
    /// Whether all packets contain all bits of the time at which they begin.
    reports_begin: bool,
    /// The packet found last.
    before: Option<Row>,
    packets: Table,
}

/// Makes streams of packets.
pub(super) struct Assembly<'a> {
    class: &'a TraceClass,
    reader: Reader<'a>,
    quirks: Quirks,
    /// Whether packets are put in the order of time.
    sorts: bool,
    positions: HashMap<Key, usize>,
    streams: Vec<Growing>,
    /// The first packet that is left out since there are too many streams.
    left_out: Option<Packet>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(reader: Reader<'a>, quirks: Quirks, sorts: bool) -> Self {
        Self {
            class: reader.class,
            reader,
            quirks,
            sorts,
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
            self.streams.push(self.growing(key));
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
        stream.reports_begin &= found.begin.is_some_and(|(_, bits)| bits >= 64);
        stream.before = Some(row);
        stream.packets.push(&corrected);
    }

    /// A stream without packets.
    fn growing(&self, key: Key) -> Growing {
        let class = self.class.streams.get(key.stream_class as usize);
        let header = class.and_then(|class| class.event_header.as_ref());
        Growing {
            key,
            has_clock: class.is_some_and(|class| class.clock.is_some()),
            narrow_events: header.is_some_and(report::has_narrow_event_clock),
            several_files: false,
            secured: false,
            reports_begin: true,
            before: None,
            packets: Table::default(),
        }
    }

    /// The streams of all packets that were added.
    pub(super) fn streams(mut self, faults: &mut Vec<FaultReport>) -> Vec<Stream> {
        let growing = std::mem::take(&mut self.streams).into_iter();
        let mut streams: Vec<Stream> = growing.map(|stream| self.stream(stream, faults)).collect();
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
            self.report_missing(stream, faults);
        }
        streams
    }

    /// A stream of all its packets.
    fn stream(&self, growing: Growing, faults: &mut Vec<FaultReport>) -> Stream {
        let mut packets = growing.packets;
        if growing.several_files {
            packets = in_order(&packets);
        }
        let class = growing.key.stream_class as usize;
        let disorder = self.check_order(&packets);
        let is_disordered = disorder.is_some();
        faults.extend(disorder);
        if self.sorts && growing.reports_begin && growing.has_clock && sorted::overlap(&packets) {
            packets = self.sorted(class, packets, faults);
        }
        packets.shrink();
        Stream {
            key: growing.key,
            class,
            id: growing.key.id,
            last_event: self.end_of(class, &packets),
            counters: match self.class.dialect {
                Dialect::Rfc11 => Counters::AsOfBeginning,
                Dialect::Ctf18 | Dialect::Ctf2 => {
                    let in_time = || losses::in_time(&packets).map(Counters::OfTime);
                    let of_time = is_disordered.then(in_time).flatten();
                    of_time.unwrap_or(Counters::AsOfEnd)
                }
            },
            packets,
            first: 0,
            secured: growing.secured,
        }
    }

    /// Ticks of the last event of a stream, where the last packet's own end cannot be relied on.
    pub(super) fn end_of(&self, class: usize, packets: &Table) -> Option<u64> {
        let has_clock = self.class.streams.get(class)?.clock.is_some();
        let last = packets.len().checked_sub(1)?;
        match self.quirks.event_after_packet && has_clock {
            true => self.last_event(class, &packets.get(last)?.packet),
            false => None,
        }
    }

    /// Continues streams whose packets are known: new packets are kept separately.
    pub(super) fn go_on(&mut self, streams: &[Stream]) {
        for stream in streams {
            let growing = self.growing(stream.key);
            self.positions.insert(stream.key, self.streams.len());
            self.streams.push(growing);
        }
    }

    /// The packets that follow are those of a file from a number on. Clocks go on from the packet before.
    pub(super) fn go_on_in(&mut self, streams: &[Stream], file: u32, number: u32) {
        for (growing, stream) in self.streams.iter_mut().zip(streams) {
            let len = stream.packets.len();
            let last = (len.saturating_sub(NEAR)..len).rev();
            let mut rows = last.filter_map(|at| stream.packets.get(at));
            growing.before = rows.find(|row| row.packet.file == file && row.packet.number < number);
        }
    }

    /// What was added to each of the streams that were known, and the other streams.
    pub(super) fn added(
        mut self,
        known: usize,
        faults: &mut Vec<FaultReport>,
    ) -> (Vec<Table>, Vec<Stream>) {
        let others = self.streams.split_off(known.min(self.streams.len()));
        let added = std::mem::take(&mut self.streams).into_iter();
        let added = added.map(|stream| stream.packets).collect();
        self.streams = others;
        (added, self.streams(faults))
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

    /// Packets in the order of time, where they can be put so.
    fn sorted(&self, class: usize, packets: Table, faults: &mut Vec<FaultReport>) -> Table {
        let bytes = |row: &Row| row.packet.data(self.reader.files);
        let is_same = |left: &Row, right: &Row| {
            (left.begin, left.end) == (right.begin, right.end) && bytes(left) == bytes(right)
        };
        let Some(found) = sorted::sorted(&packets, |row| self.span(class, row), is_same) else {
            return packets;
        };
        let mut of_files: HashMap<u32, FileFaults> = HashMap::new();
        for (row, why) in found.left_out {
            let message = match why {
                LeftOut::Copy => "the packet is a copy of another one: it is left out",
                LeftOut::NoPlace => {
                    "the packets of its stream are out of order, and its times contradict theirs: \
                     it is left out"
                }
            };
            let of_file = of_files.entry(row.packet.file).or_default();
            let fault = self.fault(FaultCode::NotMonotonic, &row.packet, message.to_owned());
            fault
                .into_iter()
                .for_each(|fault| of_file.add(fault, faults));
        }
        for of_file in of_files.into_values() {
            of_file.finish(faults);
        }
        found.packets
    }

    /// The times between which the events of a packet are, if all of it can be decoded and its events
    /// are in order and not beyond its own times.
    fn span(&self, class: usize, row: &Row) -> Option<(u64, u64)> {
        let begin = row.begin?;
        let mut last = begin;
        let mut cursor = row.packet.cursor(self.reader, class).ok()?;
        while let Some(event) = cursor.next_event().ok()? {
            event.visit(&mut Nothing).ok()?;
            let ticks = event.ticks().unwrap_or(last);
            if ticks < last {
                return None;
            }
            last = ticks;
        }
        let end = row.end.unwrap_or(last);
        (end >= last || self.quirks.event_after_packet).then_some((begin, end.max(last)))
    }

    /// Reports the packets that a secured stream lacks. What tracers lose is not damage; but who
    /// secures packets wants to know when one was taken away.
    fn report_missing(&self, stream: &Stream, faults: &mut Vec<FaultReport>) {
        let mut reported = 0;
        let mut before = None;
        for (number, row) in stream.packets.rows(0).enumerate() {
            let (_, lost) = stream.counters.lost(number, &row, before.as_ref());
            before = Some(row);
            let (Some(count), Some((next, bits))) =
                (lost.and_then(|lost| lost.count), row.sequence)
            else {
                continue;
            };
            reported += 1;
            if reported > MOST_FAULTS {
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
        let reported = losses::of_section(&tables).into_iter().flatten();
        for (position, reported) in section.into_iter().zip(reported) {
            streams[position].counters = Counters::OfSection(reported);
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
    /// Counts again what was lost, after packets were added or taken away.
    pub(super) fn count_again(streams: &mut [Self], dialect: Dialect) {
        if dialect == Dialect::Rfc11 {
            for stream in &mut *streams {
                stream.counters = Counters::AsOfBeginning;
            }
            count_together(streams);
            return;
        }
        for stream in streams {
            if let Counters::OfTime(_) = stream.counters {
                let reported = losses::in_time(&stream.packets);
                stream.counters = reported.map_or(Counters::AsOfEnd, Counters::OfTime);
            }
        }
    }

    /// Sets when the last event was.
    pub(super) fn set_last_event(&mut self, ticks: Option<u64>) {
        self.last_event = ticks;
    }

    /// The chunks of its packets, from one on. `position` is the stream's own among all.
    pub(super) fn chunks(
        &self,
        position: usize,
        from: usize,
        clock: Option<&Clock>,
        quirks: Quirks,
    ) -> impl Iterator<Item = Chunk> {
        let first = self.first;
        // Chunks that have vanished keep their numbers.
        let rows_before = usize::MAX - first;
        let from = from.checked_sub(first).unwrap_or(rows_before);
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
                number: first + number,
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
