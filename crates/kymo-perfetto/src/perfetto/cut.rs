//! A part of a trace: packets stay as they are, go, or lose some events.
//!
//! Packets refer to those before them, which may go. What is interned, described and set stays, whatever becomes
//! of the events beside it. What counts on from packet to packet (times of some clocks, values of some counters,
//! which thread ran before) is [carried](Pending) from packets that go to the next one that stays.

use std::collections::BTreeSet;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use foldhash::{HashMap, HashSet};
use kymo_text::Line;

use super::clocks::readings;
use super::ftrace::{Bundle, switches, wakings};
use super::sequence::Sequence;
use super::{Begun, Found, Reader, Sequences, inflate, most_inflated};
use crate::builder::{Builder, Stop};
use crate::message::{compact, event, ftrace, packet, process_tree, trace};
use crate::proto::write::{bytes as put_bytes, int as put_int, uint as put_uint, varint};
use crate::proto::{Field, Fields, Wire, fields, first, varints};
use crate::tracks::{Id, Tracks};

/// Threads of which it is kept that a packet which goes has said their process.
const MOST_THREADS: usize = 1 << 20;

/// Writes the packets of a trace that stay.
///
/// # Errors
///
/// Those of the output.
pub(crate) fn cut(bytes: &[u8], builder: &mut Builder, out: &mut dyn Write) -> io::Result<()> {
    let mut cut = Cut {
        reader: Reader::new(bytes, builder),
        sequences: Sequences::default(),
        pending: HashMap::default(),
        broken: HashSet::default(),
        threads: BTreeSet::new(),
    };
    match cut.file(bytes, out) {
        Ok(()) | Err(Stop::TooMuch) => Ok(()),
        Err(Stop::Io(error)) => Err(error),
    }
}

/// What becomes of a part of the file.
enum Part {
    Same,
    Gone,
    Changed(Line),
}

struct Cut<'b> {
    reader: Reader<'b>,
    sequences: Sequences,
    /// By the number of the sequence.
    pending: HashMap<u32, Pending>,
    /// The CPUs whose last switch has gone: what it says of the thread that runs, the next one lacks.
    broken: HashSet<u32>,
    /// Threads whose process an event has said that has gone.
    threads: BTreeSet<i64>,
}

/// The fields of a message, and their bytes.
fn raw(message: &[u8]) -> impl Iterator<Item = (Field<'_>, &[u8])> {
    let mut rest = Fields::new(message);
    std::iter::from_fn(move || {
        let begin = rest.position();
        let field = rest.next()?.ok()?;
        Some((field, &message[begin..rest.position()]))
    })
}

impl Cut<'_> {
    fn file(&mut self, bytes: &[u8], out: &mut dyn Write) -> Result<(), Stop> {
        let mut budget = most_inflated(bytes);
        let mut whole = Line::new();
        let mut at = 0;
        // Damage ends it.
        for (field, bytes) in raw(bytes) {
            let part = match (field.number, field.wire) {
                (trace::PACKET, Wire::Bytes(packet)) => {
                    match first(packet, packet::COMPRESSED_PACKETS) {
                        None => self.packet(at, packet)?,
                        Some(inner) => self.compressed(at, inner.bytes(), &mut budget)?,
                    }
                }
                _ => Part::Same,
            };
            at += bytes.len();
            match part {
                Part::Same => out.write_all(bytes)?,
                Part::Gone => {}
                Part::Changed(packet) => {
                    whole.clear();
                    put_bytes(trace::PACKET, packet.as_bytes(), &mut whole);
                    out.write_all(whole.as_bytes())?;
                }
            }
        }
        whole.clear();
        self.processes(&mut whole);
        Ok(out.write_all(whole.as_bytes())?)
    }

    /// A packet that holds others: they are compressed again if some of them change.
    fn compressed(&mut self, at: usize, inner: &[u8], budget: &mut u64) -> Result<Part, Stop> {
        let mut plain = Line::new();
        let mut is_same = true;
        inflate(at, inner, budget, &mut |at, found| {
            match found {
                Found::Packet(packet) => match self.packet(at, packet)? {
                    Part::Same => put_bytes(trace::PACKET, packet, &mut plain),
                    Part::Gone => is_same = false,
                    Part::Changed(packet) => {
                        is_same = false;
                        put_bytes(trace::PACKET, packet.as_bytes(), &mut plain);
                    }
                },
                // Nobody puts anything else there.
                Found::Other(_) => {}
                Found::Damage(..) => is_same = false,
            }
            Ok(())
        })?;
        if is_same {
            return Ok(Part::Same);
        }
        if plain.is_empty() {
            return Ok(Part::Gone);
        }
        let mut compressed = ZlibEncoder::new(Vec::new(), Compression::default());
        compressed.write_all(plain.as_bytes())?;
        let mut packet = Line::new();
        put_bytes(
            packet::COMPRESSED_PACKETS,
            &compressed.finish()?,
            &mut packet,
        );
        Ok(Part::Changed(packet))
    }

    fn packet(&mut self, at: usize, message: &[u8]) -> Result<Part, Stop> {
        let Some(head) = self.reader.head(at, message) else {
            // What is damaged stays so.
            return Ok(Part::Same);
        };
        let mut begun = self.reader.begin(&mut self.sequences, &head, message);
        let pending = self.pending.entry(begun.sequence.number).or_default();
        if head.clears() {
            pending.counters.clear();
        }
        // Its time, where it counts from that of the packet before.
        let counted = begun.clock.and_then(|clock| {
            let counter = begun.sequence.clocks.get(&clock)?;
            counter.is_incremental.then_some((clock, head.timestamp?))
        });
        let missing = counted.and_then(|(clock, _)| pending.clocks.remove(&clock));
        let mut found = Line::new();
        let (mut is_same, mut matters) = (missing.is_none(), false);
        for (field, bytes) in raw(message) {
            let part = match field.number {
                packet::TRACK_EVENT => track_event(&mut self.reader, pending, &mut begun, field)?,
                packet::FTRACE_EVENTS => {
                    let (broken, threads) = (&mut self.broken, &mut self.threads);
                    bundle(&mut self.reader, broken, threads, field.wire.bytes())?
                }
                packet::TIMESTAMP if missing.is_some() => {
                    let time = missing.unwrap_or(0).wrapping_add(field.wire.uint());
                    put_uint(packet::TIMESTAMP, time, &mut found);
                    continue;
                }
                _ => {
                    self.reader.content(&mut begun, field)?;
                    matters |= !is_envelope(field);
                    found.push(bytes);
                    continue;
                }
            };
            matters |= !matches!(part, Part::Gone);
            match part {
                Part::Same => found.push(bytes),
                Part::Gone => is_same = false,
                Part::Changed(content) => {
                    is_same = false;
                    put_bytes(field.number, content.as_bytes(), &mut found);
                }
            }
        }
        let is_gone = !is_same && !matters;
        if is_gone && let Some((clock, time)) = counted {
            let time = missing.unwrap_or(0).wrapping_add(time);
            pending.clocks.insert(clock, time);
        }
        for field in fields(message) {
            match field.number {
                packet::CLOCK_SNAPSHOT => {
                    for reading in readings(field.wire.bytes()) {
                        pending.clocks.remove(&reading.id);
                    }
                }
                packet::THREAD_DESCRIPTOR => pending.deltas = Default::default(),
                _ => {}
            }
        }
        Ok(match (is_same, is_gone) {
            (true, _) => Part::Same,
            (false, true) => Part::Gone,
            (false, false) => Part::Changed(found),
        })
    }

    /// Says of which processes threads are, where the events that said so are gone.
    fn processes(&self, out: &mut Line) {
        let mut tree = Line::new();
        for &number in &self.threads {
            let process = self.reader.builder.tracks.process_of(&Id::Number(number));
            let Some(&Id::Number(process)) = process else {
                continue;
            };
            let mut thread = Line::new();
            put_int(process_tree::TID, number, &mut thread);
            put_int(process_tree::TGID, process, &mut thread);
            put_bytes(process_tree::THREADS, thread.as_bytes(), &mut tree);
        }
        if !tree.is_empty() {
            let mut packet = Line::new();
            put_bytes(packet::PROCESS_TREE, tree.as_bytes(), &mut packet);
            put_bytes(trace::PACKET, packet.as_bytes(), out);
        }
    }
}

/// Whether a field of a packet only says of whom the rest of it is, and when.
fn is_envelope(field: Field<'_>) -> bool {
    match field.number {
        packet::TRUSTED_UID
        | packet::TRUSTED_PID
        | packet::TIMESTAMP
        | packet::TIMESTAMP_CLOCK_ID
        | packet::SEQUENCE
        | packet::MACHINE_ID => true,
        packet::SEQUENCE_FLAGS => field.wire.uint() & packet::CLEARED == 0,
        _ => false,
    }
}

fn track_event(
    reader: &mut Reader<'_>,
    pending: &mut Pending,
    begun: &mut Begun<'_>,
    field: Field<'_>,
) -> Result<Part, Stop> {
    reader.content(begun, field)?;
    let stays = reader.builder.cut().any(begun.time);
    let (message, tracks) = (field.wire.bytes(), &reader.builder.tracks);
    Ok(match stays {
        // What was lost has said what it counts from.
        true if begun.needs_more => Part::Same,
        false if begun.needs_more => Part::Gone,
        true => match pending.pay(message, begun.sequence, tracks) {
            Some(event) => Part::Changed(event),
            None => Part::Same,
        },
        false => {
            pending.owe(message, begun.sequence, tracks);
            Part::Gone
        }
    })
}

/// What the events of a sequence that have gone have added, and those that stay do not know of.
#[derive(Debug, Default)]
struct Pending {
    /// Units of clocks, by their numbers.
    clocks: HashMap<u64, u64>,
    /// Of [`DELTAS`].
    deltas: [i64; DELTAS.len()],
    /// By the numbers of the tracks of counters.
    counters: HashMap<u64, i64>,
}

/// Fields of an event that say how much was added since the one before.
const DELTAS: [u32; 3] = [
    event::TIMESTAMP_DELTA_US,
    event::THREAD_TIME_DELTA_US,
    event::THREAD_INSTRUCTIONS_DELTA,
];

impl Pending {
    /// Notes what an event adds that goes.
    fn owe(&mut self, message: &[u8], sequence: &Sequence, tracks: &Tracks) {
        let counters = Counters::of(message, sequence, tracks);
        let mut extra = 0;
        for field in fields(message) {
            if let Some(delta) = DELTAS.iter().position(|&delta| delta == field.number) {
                let sum = &mut self.deltas[delta];
                *sum = sum.wrapping_add(field.wire.int());
            }
            for (counter, value) in counters.values(field, &mut extra) {
                if let Some(counter) = counter {
                    let sum = self.counters.entry(counter).or_default();
                    *sum = sum.wrapping_add(value);
                }
            }
        }
    }

    /// An event that stays, with what those before it have added; `None` where that is nothing.
    fn pay(&mut self, message: &[u8], sequence: &Sequence, tracks: &Tracks) -> Option<Line> {
        let has_none = self.counters.is_empty() && self.deltas == [0; DELTAS.len()];
        if has_none {
            return None;
        }
        let counters = Counters::of(message, sequence, tracks);
        let (mut extra, mut is_changed) = (0, false);
        let mut event = Line::new();
        for (field, bytes) in raw(message) {
            let delta = DELTAS.iter().position(|&delta| delta == field.number);
            let delta = delta.map_or(0, |delta| std::mem::take(&mut self.deltas[delta]));
            if delta != 0 {
                put_int(
                    field.number,
                    field.wire.int().wrapping_add(delta),
                    &mut event,
                );
                is_changed = true;
                continue;
            }
            let mut sums = Vec::new();
            let mut is_other = false;
            for (counter, value) in counters.values(field, &mut extra) {
                let sum = counter.and_then(|counter| self.counters.remove(&counter));
                is_other |= sum.is_some();
                sums.push(value.wrapping_add(sum.unwrap_or(0)));
            }
            match is_other {
                true => sums
                    .iter()
                    .for_each(|&sum| put_int(field.number, sum, &mut event)),
                false => event.push(bytes),
            }
            is_changed |= is_other;
        }
        is_changed.then_some(event)
    }
}

/// The counters that an event adds to, in place of saying their values.
struct Counters {
    own: Option<u64>,
    /// Each of them, where it is such a counter.
    extra: Vec<Option<u64>>,
}

impl Counters {
    fn of(message: &[u8], sequence: &Sequence, tracks: &Tracks) -> Self {
        let adds = |uuid: u64| {
            let counter = tracks.descriptor(uuid)?.counter.as_ref()?;
            counter.is_incremental.then_some(uuid)
        };
        let (mut is_counter, mut own, mut extra) = (false, sequence.defaults.track, Vec::new());
        for field in fields(message) {
            match field.number {
                event::TYPE => is_counter = field.wire.uint() == event::COUNT,
                event::TRACK_UUID => own = Some(field.wire.uint()),
                event::EXTRA_COUNTER_TRACKS => extra.extend(varints(field.wire).map(adds)),
                _ => {}
            }
        }
        if extra.is_empty() {
            extra = sequence.defaults.extra.iter().copied().map(adds).collect();
        }
        Self {
            own: own.filter(|_| is_counter).and_then(adds),
            extra,
        }
    }

    /// The values that a field has, and the counters that they are added to. `extra` counts those of further
    /// counters.
    fn values<'a>(
        &'a self,
        field: Field<'a>,
        extra: &'a mut usize,
    ) -> impl Iterator<Item = (Option<u64>, i64)> {
        let is_own = field.number == event::COUNTER_VALUE;
        let is_extra = field.number == event::EXTRA_COUNTER_VALUES;
        let own = is_own.then(|| (self.own, field.wire.int()));
        let further = varints(field.wire).take_while(move |_| is_extra);
        let further = further.map(move |value| {
            let counter = self.extra.get(*extra).copied().flatten();
            *extra += 1;
            (counter, value as i64)
        });
        own.into_iter().chain(further)
    }
}

/// Events of the kernel: each of them stays or goes.
fn bundle(
    reader: &mut Reader<'_>,
    broken: &mut HashSet<u32>,
    threads: &mut BTreeSet<i64>,
    message: &[u8],
) -> Result<Part, Stop> {
    let bundle = reader.begin_bundle(message);
    let mut found = Line::new();
    let (mut is_same, mut has_events) = (true, false);
    for (field, bytes) in raw(message) {
        let content = field.wire.bytes();
        match field.number {
            ftrace::EVENT => {
                reader.kernel_event(bundle, content)?;
                let time = first(content, ftrace::TIMESTAMP).map_or(0, Wire::uint);
                let time = reader.kernel_time(bundle, time);
                let stays = reader.builder.cut().any(time);
                if first(content, ftrace::SCHED_SWITCH).is_some() {
                    note_switch(broken, bundle.cpu, stays);
                }
                if stays {
                    found.push(bytes);
                    has_events = true;
                    continue;
                }
                is_same = false;
                if first(content, ftrace::PRINT).is_some() && threads.len() < MOST_THREADS {
                    threads.insert(first(content, ftrace::PID).map_or(0, Wire::int));
                }
            }
            ftrace::COMPACT_SCHED => {
                let before = found.len();
                is_same &= compacted(reader, broken, bundle, (content, bytes), &mut found)?;
                has_events |= found.len() > before;
            }
            _ => found.push(bytes),
        }
    }
    Ok(match (is_same, has_events) {
        (true, _) => Part::Same,
        (false, true) => Part::Changed(found),
        (false, false) => Part::Gone,
    })
}

fn note_switch(broken: &mut HashSet<u32>, cpu: u32, stays: bool) {
    match stays {
        true => broken.remove(&cpu),
        false => broken.insert(cpu),
    };
}

/// Events in the compact form. Where some of them go, or the switch before them is gone, switches that stay get
/// the full form, which says what ran before. Whether they stay as they are.
fn compacted(
    reader: &mut Reader<'_>,
    broken: &mut HashSet<u32>,
    bundle: Bundle,
    (message, bytes): (&[u8], &[u8]),
    out: &mut Line,
) -> Result<bool, Stop> {
    let mut running = reader.running.get(&bundle.cpu).cloned();
    reader.compact(bundle, message)?;
    let stays = reader.builder.cut();
    let mut stay = stays.rows.iter().copied();
    let has_switches = switches(message).next().is_some();
    if stays.rows.iter().all(|&stays| stays) && !(has_switches && broken.contains(&bundle.cpu)) {
        out.push(bytes);
        return Ok(true);
    }
    for switch in switches(message) {
        let before = running.replace((switch.pid, switch.prio, switch.comm.to_vec()));
        let stays = stay.next().unwrap_or(false);
        note_switch(broken, bundle.cpu, stays);
        if !stays {
            continue;
        }
        // Fields are numbered as `SWITCH` names them.
        let mut content = Line::new();
        if let Some((pid, prio, comm)) = &before {
            put_bytes(1, comm, &mut content);
            put_int(2, *pid, &mut content);
            put_int(3, *prio, &mut content);
        }
        put_int(4, switch.prev_state, &mut content);
        put_bytes(5, switch.comm, &mut content);
        put_int(6, switch.pid, &mut content);
        put_int(7, switch.prio, &mut content);
        let mut event = Line::new();
        put_uint(ftrace::TIMESTAMP, switch.time, &mut event);
        if let Some((pid, ..)) = before {
            put_int(ftrace::PID, pid, &mut event);
        }
        put_bytes(ftrace::SCHED_SWITCH, content.as_bytes(), &mut event);
        put_bytes(ftrace::EVENT, event.as_bytes(), out);
    }
    let mut columns: [(u32, Line); 5] = [
        compact::WAKING_TIMESTAMP,
        compact::WAKING_PID,
        compact::WAKING_TARGET_CPU,
        compact::WAKING_PRIO,
        compact::WAKING_COMM,
    ]
    .map(|number| (number, Line::new()));
    let mut last = 0;
    for waking in wakings(message).filter(|_| stay.next().unwrap_or(false)) {
        let since = waking.time.wrapping_sub(last);
        last = waking.time;
        // Those of which there are fewer end sooner.
        let values = [
            Some(since),
            waking.pid,
            waking.target_cpu,
            waking.prio,
            waking.comm,
        ];
        for ((_, column), value) in columns.iter_mut().zip(values) {
            value.into_iter().for_each(|value| varint(value, column));
        }
    }
    if !columns[0].1.is_empty() {
        let mut content = Line::new();
        let names = raw(message).filter(|(field, _)| field.number == compact::INTERN_TABLE);
        names.for_each(|(_, bytes)| content.push(bytes));
        for (number, column) in &columns {
            put_bytes(*number, column.as_bytes(), &mut content);
        }
        put_bytes(ftrace::COMPACT_SCHED, content.as_bytes(), out);
    }
    Ok(false)
}
