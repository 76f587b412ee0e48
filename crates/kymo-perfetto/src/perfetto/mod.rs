//! Reading of Perfetto's traces.
//!
//! A trace is a sequence of packets. All snapshots of clocks are gathered first, since the one that
//! is nearest to an event may come after it; then each packet becomes rows, tracks, names.

mod annotation;
mod clocks;
mod cut;
mod event;
mod ftrace;
mod sequence;
pub(crate) mod write;

use std::io::{self, Read};
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use foldhash::HashMap;
use kymo_model::FaultCode;

pub(crate) use self::cut::cut;

use self::annotation::Annotations;
use self::clocks::{Clocks, Snapshots, key};
use self::event::Numbers;
use self::ftrace::Running;
use self::sequence::Sequence;
use crate::builder::{Args, Builder, Stop};
use crate::message::{counter, packet, process, process_tree, thread, trace, track};
use crate::proto::{Field, Fields, Wire, fields, first};
use crate::recording::Times;
use crate::tracks::{CounterUnit, Descriptor, Id, name_of};

/// Maximum number of sequences whose state is kept.
const MOST_SEQUENCES: usize = 1 << 16;
/// Bytes that one packet of compressed ones may become.
const MOST_INFLATED: u64 = 64 << 20;
/// Maximum size of all of them together, as a multiple of the file size, in addition to that.
const MOST_RATIO: u64 = 64;

/// Reads a trace.
///
/// # Errors
///
/// When its events cannot be sorted.
pub(crate) fn read(bytes: &[u8], builder: &mut Builder) -> io::Result<Times> {
    let mut reader = Reader::new(bytes, builder);
    let mut sequences = Sequences::default();
    let mut budget = most_inflated(bytes);
    let read = packets(bytes, &mut budget, &mut |at, found| match found {
        Found::Packet(packet) => reader.packet(&mut sequences, at, packet),
        Found::Other(number) => {
            reader.unknown("fields of the trace that are not read", number);
            Ok(())
        }
        Found::Damage(code, message) => {
            reader.builder.fault(code, at, message.to_string());
            Ok(())
        }
    });
    let from_unix_epoch = reader.clocks.from_unix_epoch;
    match read {
        Ok(()) => {}
        Err(Stop::Io(error)) => return Err(error),
        Err(Stop::TooMuch) => {
            let message = "its events take far more space than the file; what follows is not read";
            builder.fault(FaultCode::LengthLimit, 0, message.into());
        }
    }
    if from_unix_epoch.is_some() {
        let note = "times are placed by the first snapshot of the real-time clock";
        builder.notes.push(note.into());
    }
    Ok(Times { from_unix_epoch })
}

/// The bytes that the compressed packets of a file may become.
fn most_inflated(bytes: &[u8]) -> u64 {
    MOST_RATIO
        .saturating_mul(bytes.len() as u64)
        .saturating_add(MOST_INFLATED)
}

/// All snapshots of clocks.
fn snapshots(bytes: &[u8]) -> Snapshots {
    let mut snapshots = Snapshots::default();
    let mut budget = most_inflated(bytes);
    // Damage is reported when packets are read.
    let _ = packets(bytes, &mut budget, &mut |_, found| {
        if let Found::Packet(packet) = found {
            let mut sequence = 0;
            for field in fields(packet) {
                match field.number {
                    packet::SEQUENCE => sequence = field.wire.uint() as u32,
                    packet::CLOCK_SNAPSHOT => {
                        snapshots.add(sequence_of(packet, sequence), field.wire.bytes())
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    });
    snapshots
}

/// The sequence of a packet, which may be stated after what needs it.
fn sequence_of(packet: &[u8], known: u32) -> u32 {
    match known {
        0 => first(packet, packet::SEQUENCE).map_or(0, |wire| wire.uint() as u32),
        known => known,
    }
}

/// What is found in a trace.
enum Found<'a> {
    Packet(&'a [u8]),
    /// A field that is not a packet.
    Other(u32),
    Damage(FaultCode, &'a str),
}

/// Calls `take` for each packet, those of compressed ones included, with the place in the file.
fn packets(
    bytes: &[u8],
    budget: &mut u64,
    take: &mut dyn FnMut(usize, Found<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut all = Fields::new(bytes);
    loop {
        let at = all.position();
        match all.next() {
            None => return Ok(()),
            Some(Err(wrong)) => {
                let (code, message) = match wrong.is_cut {
                    true => (FaultCode::Truncated, "the file ends within a packet"),
                    false => (FaultCode::Magic, "no packet; what follows is not read"),
                };
                return take(at, Found::Damage(code, message));
            }
            Some(Ok(field)) => match (field.number, field.wire) {
                (trace::PACKET, Wire::Bytes(packet)) => {
                    let compressed = first(packet, packet::COMPRESSED_PACKETS);
                    match compressed {
                        None => take(at, Found::Packet(packet))?,
                        Some(compressed) => inflate(at, compressed.bytes(), budget, take)?,
                    }
                }
                (number, _) => take(at, Found::Other(number))?,
            },
        }
    }
}

/// The same for the packets that one compressed packet holds.
fn inflate(
    at: usize,
    compressed: &[u8],
    budget: &mut u64,
    take: &mut dyn FnMut(usize, Found<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let limit = MOST_INFLATED.min(*budget);
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(compressed)
        .take(limit)
        .read_to_end(&mut plain);
    *budget -= plain.len() as u64;
    if let Err(error) = read {
        let message = format!("compressed packets cannot be decompressed to their end: {error}");
        take(at, Found::Damage(FaultCode::Compression, &message))?;
    } else if plain.len() as u64 == limit {
        let message = format!("compressed packets become more than {limit} bytes");
        take(at, Found::Damage(FaultCode::PacketLimit, &message))?;
    }
    for field in Fields::new(&plain) {
        match field.map(|field| (field.number, field.wire)) {
            Ok((trace::PACKET, Wire::Bytes(packet))) => take(at, Found::Packet(packet))?,
            Ok((number, _)) => take(at, Found::Other(number))?,
            Err(_) => {
                let message = "compressed packets end within a packet";
                take(at, Found::Damage(FaultCode::Truncated, message))?;
            }
        }
    }
    Ok(())
}

/// Makes rows of packets.
struct Reader<'b> {
    builder: &'b mut Builder,
    clocks: Clocks,
    args: Args,
    /// The value of a counter.
    values: Args,
    annotations: Annotations,
    numbers: Numbers,
    running: Running,
    /// Bytes of the names that all sequences have interned.
    interned: usize,
}

/// The sequences of a trace, by their numbers.
type Sequences = HashMap<u32, Sequence>;

/// What a packet says before its content is read.
#[derive(Default)]
struct Head {
    timestamp: Option<u64>,
    clock: Option<u64>,
    sequence: u32,
    flags: u64,
    is_cleared: bool,
    is_after_loss: bool,
}

impl Head {
    /// Whether what was interned before is forgotten.
    fn clears(&self) -> bool {
        self.is_cleared || self.flags & packet::CLEARED != 0
    }
}

/// A packet whose head was read.
struct Begun<'s> {
    sequence: &'s mut Sequence,
    /// The clock of its time, if it has a time.
    clock: Option<u64>,
    /// Its time on the clock of the trace.
    time: Option<i64>,
    /// Whether names that its events need were lost.
    needs_more: bool,
}

impl<'b> Reader<'b> {
    /// Gathers the clocks of a trace, which come first.
    fn new(bytes: &[u8], builder: &'b mut Builder) -> Self {
        let snapshots = snapshots(bytes);
        builder.count_many(
            "readings of clocks that are too many, left out",
            snapshots.folded,
        );
        Self {
            clocks: snapshots.finish(),
            builder,
            args: Args::default(),
            values: Args::default(),
            annotations: Annotations::default(),
            numbers: Numbers::default(),
            running: Running::default(),
            interned: 0,
        }
    }

    /// Counts something by its number.
    fn unknown(&mut self, what: &str, number: u32) {
        self.builder.count(&format!("{what}, number {number}"));
    }

    fn packet(&mut self, sequences: &mut Sequences, at: usize, message: &[u8]) -> Result<(), Stop> {
        let Some(head) = self.head(at, message) else {
            return Ok(());
        };
        let mut begun = self.begin(sequences, &head, message);
        for field in fields(message) {
            self.content(&mut begun, field)?;
        }
        Ok(())
    }

    /// What a packet says before its content; `None` of a damaged one.
    fn head(&mut self, at: usize, message: &[u8]) -> Option<Head> {
        let mut head = Head::default();
        for field in Fields::new(message) {
            let Ok(field) = field else {
                let text = "a packet is damaged, and skipped";
                self.builder
                    .fault(FaultCode::BeyondContent, at, text.into());
                return None;
            };
            let value = field.wire.uint();
            match field.number {
                packet::TIMESTAMP => head.timestamp = Some(value),
                packet::TIMESTAMP_CLOCK_ID => head.clock = Some(value),
                packet::SEQUENCE => head.sequence = value as u32,
                packet::SEQUENCE_FLAGS => head.flags = value,
                packet::STATE_CLEARED => head.is_cleared = value != 0,
                packet::PREVIOUS_DROPPED => head.is_after_loss = value != 0,
                _ => {}
            }
        }
        Some(head)
    }

    /// Learns what the content of a packet needs.
    fn begin<'s>(
        &mut self,
        sequences: &'s mut Sequences,
        head: &Head,
        message: &[u8],
    ) -> Begun<'s> {
        let has_room = sequences.len() < MOST_SEQUENCES || sequences.contains_key(&head.sequence);
        let number = if has_room { head.sequence } else { u32::MAX };
        let sequence = sequences
            .entry(number)
            .or_insert_with(|| Sequence::new(number));
        if !has_room {
            self.builder
                .count("packets of sequences that are too many, which share their names");
        }
        if head.is_after_loss {
            self.builder
                .count("packets before which others were dropped");
        }
        if head.clears() {
            sequence.clear(&mut self.interned);
        }
        // What interned names and defaults say, the rest of the packet needs.
        for field in fields(message) {
            match field.number {
                packet::INTERNED_DATA => {
                    let (folded, locations) =
                        sequence.intern(field.wire.bytes(), &mut self.interned);
                    self.builder
                        .count_many("interned names that are too many, left out", folded);
                    self.builder
                        .count_many("places in source code, not read", locations);
                }
                packet::DEFAULTS => sequence.set_defaults(field.wire.bytes()),
                _ => {}
            }
        }
        let (mut clock, mut time) = (None, None);
        if let Some(timestamp) = head.timestamp {
            let own = head
                .clock
                .or(sequence.defaults.clock)
                .filter(|&clock| clock != 0);
            let own = own.unwrap_or(crate::message::clocks::BOOTTIME);
            clock = Some(own);
            let nanos = sequence.nanos(own, timestamp);
            time = nanos.and_then(|nanos| self.on_trace(own, sequence.number, nanos));
            if nanos.is_none() {
                self.builder
                    .count("packets whose time is more nanoseconds than 63 bits hold");
            }
        }
        Begun {
            needs_more: head.flags & packet::NEEDS_STATE != 0 && !sequence.is_valid,
            sequence,
            clock,
            time,
        }
    }

    /// Reads a field of a packet.
    fn content(&mut self, begun: &mut Begun<'_>, field: Field<'_>) -> Result<(), Stop> {
        let wire = field.wire;
        let sequence = &mut *begun.sequence;
        match field.number {
            packet::TRACK_EVENT if begun.needs_more => {
                self.builder
                    .count("events that need names which were lost, skipped");
            }
            packet::TRACK_EVENT => self.track_event(sequence, wire.bytes(), begun.time)?,
            packet::FTRACE_EVENTS => self.bundle(wire.bytes())?,
            packet::TRACK_DESCRIPTOR => self.descriptor(wire.bytes()),
            packet::PROCESS_TREE => self.process_tree(wire.bytes()),
            packet::CLOCK_SNAPSHOT => sequence.set_clocks(wire.bytes()),
            packet::PROCESS_DESCRIPTOR => {
                self.process(wire.bytes());
            }
            packet::THREAD_DESCRIPTOR => {
                let (process, thread) = self.thread(wire.bytes());
                sequence.thread = Some((process, thread));
                let reference = first(wire.bytes(), thread::REFERENCE_TIMESTAMP_US);
                sequence.reference_us = reference.map_or(0, Wire::int);
            }
            packet::TRUSTED_UID
            | packet::TIMESTAMP
            | packet::SEQUENCE
            | packet::INTERNED_DATA
            | packet::SEQUENCE_FLAGS
            | packet::SYNCHRONIZATION_MARKER
            | packet::STATE_CLEARED
            | packet::PREVIOUS_DROPPED
            | packet::TIMESTAMP_CLOCK_ID
            | packet::DEFAULTS
            | packet::TRUSTED_PID
            | packet::FIRST_ON_SEQUENCE
            | packet::MACHINE_ID => {}
            other => self.unknown("packets that are not read", other),
        }
        Ok(())
    }

    /// A time of a clock as one of the trace's; as it is where nothing leads there.
    fn on_trace(&mut self, clock: u64, sequence: u32, nanos: i64) -> Option<i64> {
        let time = self.clocks.convert(key(sequence, clock), nanos);
        if time.is_none() {
            let what = format!("times of clock {clock}, which no snapshot leads from, as they are");
            self.builder.count(&what);
        }
        time.or(Some(nanos))
    }

    fn descriptor(&mut self, message: &[u8]) {
        let mut found = Descriptor::default();
        let mut uuid = 0;
        for field in fields(message) {
            let wire = field.wire;
            match field.number {
                track::UUID => uuid = wire.uint(),
                track::PARENT_UUID => found.parent = Some(wire.uint()),
                track::NAME | track::STATIC_NAME | track::ATRACE_NAME => {
                    found.name = Some(name_of(wire.bytes()));
                }
                track::PROCESS => found.process = Some(self.process(wire.bytes())),
                track::THREAD => {
                    let (process, thread) = self.thread(wire.bytes());
                    found.thread = Some((Id::Number(process), Id::Number(thread)));
                }
                track::COUNTER => found.counter = Some(unit(wire.bytes())),
                _ => {}
            }
        }
        // The name of a track that is a process or a thread is theirs.
        if let Some(name) = &found.name {
            let tracks = &mut self.builder.tracks;
            match (&found.thread, &found.process) {
                _ if found.counter.is_some() => {}
                (Some((process, thread)), _) => {
                    tracks.name_thread(Some(process.clone()), thread.clone(), name.as_bytes());
                }
                (None, Some(process)) => tracks.name_process(process.clone(), name.as_bytes()),
                (None, None) => {}
            }
        }
        self.builder.tracks.describe(uuid, found);
    }

    /// Learns the name of a process.
    fn process(&mut self, message: &[u8]) -> Id {
        let (mut pid, mut name, mut command) = (0, &[][..], &[][..]);
        for field in fields(message) {
            match field.number {
                process::PID => pid = field.wire.int(),
                process::NAME => name = field.wire.bytes(),
                process::CMDLINE if command.is_empty() => command = field.wire.bytes(),
                _ => {}
            }
        }
        let name = if name.is_empty() { command } else { name };
        self.builder.tracks.name_process(Id::Number(pid), name);
        Id::Number(pid)
    }

    /// Learns the name of a thread.
    fn thread(&mut self, message: &[u8]) -> (i64, i64) {
        let (mut pid, mut tid, mut name) = (0, 0, &[][..]);
        for field in fields(message) {
            match field.number {
                thread::PID => pid = field.wire.int(),
                thread::TID => tid = field.wire.int(),
                thread::NAME => name = field.wire.bytes(),
                _ => {}
            }
        }
        let (process, thread) = (Id::Number(pid), Id::Number(tid));
        let tracks = &mut self.builder.tracks;
        tracks.belongs(thread.clone(), process.clone());
        tracks.name_thread(Some(process), thread, name);
        (pid, tid)
    }

    fn process_tree(&mut self, message: &[u8]) {
        let tracks = &mut self.builder.tracks;
        for field in fields(message) {
            let part = field.wire.bytes();
            let number = |number| first(part, number).map(|wire| Id::Number(wire.int()));
            let text = |number| first(part, number).map_or(&[][..], |wire| wire.bytes());
            match field.number {
                process_tree::PROCESSES => {
                    if let Some(process) = number(process_tree::PID) {
                        // Its first thread has the number of the process.
                        tracks.belongs(process.clone(), process.clone());
                        tracks.name_process(process, text(process_tree::CMDLINE));
                    }
                }
                process_tree::THREADS => {
                    let thread = number(process_tree::TID);
                    let process = number(process_tree::TGID);
                    if let Some(thread) = thread {
                        tracks.name_thread(None, thread.clone(), text(process_tree::NAME));
                        if let Some(process) = process {
                            tracks.belongs(thread, process);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// What is said of a counter.
fn unit(message: &[u8]) -> CounterUnit {
    let mut found = CounterUnit::default();
    for field in fields(message) {
        match field.number {
            counter::UNIT => {
                let unit: Option<Arc<str>> = match field.wire.uint() {
                    1 => Some("ns".into()),
                    2 => Some("count".into()),
                    3 => Some("bytes".into()),
                    _ => None,
                };
                found.unit = found.unit.or(unit);
            }
            counter::UNIT_NAME => found.unit = Some(name_of(field.wire.bytes())),
            counter::UNIT_MULTIPLIER => {
                found.multiplier = Some(field.wire.int()).filter(|&multiplier| multiplier != 0);
            }
            counter::IS_INCREMENTAL => found.is_incremental = field.wire.uint() != 0,
            _ => {}
        }
    }
    found
}
