//! A large trace: a recorded one of LTTng, repeated with later clocks.
//!
//! Packets are copied, and in the copies only what counts is changed: times of packets and events, sequence
//! numbers, lost events, and with several copies of each stream their numbers.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use kymo::AnyRecording;
use kymo_ctf::trace::Trace;
use kymo_machine::ByteOrder;
use kymo_machine::bits::{read_uint, write_uint};
use kymo_model::{Chunk, Cursor, Event, FieldId, Kind, Recording, Schema};

use crate::args::Args;
use crate::process::root;
use crate::{Outcome, conformance};

/// What is repeated if nothing else is named.
pub(crate) const USUAL: &str = "examples/lttng-small";

/// `cargo xtask make-trace`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let from: Option<PathBuf> = args.value("--from")?;
    let copies: u64 = args.value("--streams")?.unwrap_or(1).max(1);
    let events = args.word().ok_or("make-trace needs a number of events")?;
    let events = events.replace('_', "").parse()?;
    let to = args.word().ok_or("make-trace needs a new directory")?;
    args.finish()?;
    let from = from.unwrap_or_else(|| root().join(USUAL));
    make(&from, events, copies, Path::new(&to))
}

/// Makes a trace of `events` events from the first one found at a path, with `copies` copies of each of its
/// streams.
pub(crate) fn make(from: &Path, events: u64, copies: u64, to: &Path) -> Outcome {
    let recordings = conformance::open(from)?;
    let trace = recordings.iter().find_map(AnyRecording::as_ctf);
    let trace = trace.ok_or_else(|| format!("{}: not a CTF trace", from.display()))?;
    let streams = (0..trace.streams().len()).map(|stream| Model::new(trace, stream));
    let mut streams: Vec<Model<'_>> = streams.collect::<Outcome<_>>()?;
    streams.retain(|stream| stream.events() > 0);
    let all: u64 = streams.iter().map(Model::events).sum();
    let times = || streams.iter().flat_map(|stream| stream.packets.iter());
    let first = times().map(|packet| packet.begin).min();
    let last = times().map(|packet| packet.end).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Err(format!("{}: no events", from.display()).into());
    };
    // A repetition begins as long after the one before it as one event after the other.
    let period = (last - first) + (last - first).div_ceil(all) + 1;
    std::fs::create_dir_all(to)?;
    std::fs::copy(trace.metadata_path(), to.join("metadata"))?;
    let mut left = events;
    // What is left when all streams have been repeated as a whole is of the first ones.
    let whole = events / (all * copies);
    left -= whole * all * copies;
    for copy in 0..copies {
        for (number, stream) in streams.iter().enumerate() {
            let more = left.min(stream.events());
            left -= more;
            let name = to.join(format!("stream-{number}-{copy}"));
            let number = copy * streams.len() as u64 + number as u64;
            let number = (copies > 1).then_some(number);
            stream.write(&name, whole * stream.events() + more, period, number)?;
        }
    }
    Ok(())
}

/// A number in a packet: its first bit, its size.
type Place = (u64, u32);

/// A packet that is repeated.
struct Packet<'t> {
    bytes: &'t [u8],
    begin: u64,
    end: u64,
    /// Where its events begin, and their times are.
    events: Vec<(u64, Place)>,
}

/// A stream that is repeated.
struct Model<'t> {
    packets: Vec<Packet<'t>>,
    order: ByteOrder,
    /// Integers of the header and the context of each packet, by their names.
    fields: Vec<(String, Place)>,
}

impl<'t> Model<'t> {
    fn new(trace: &'t Trace, stream: usize) -> Outcome<Self> {
        let mut model = Self {
            packets: Vec::new(),
            order: ByteOrder::Little,
            fields: Vec::new(),
        };
        let schema = &trace.streams()[stream].packet_schema;
        let mut bit = 0;
        for (number, field) in schema.fields().iter().enumerate() {
            if field.parent.is_none() {
                model.field(schema, FieldId(number as u32), &mut bit)?;
            }
        }
        let header = trace.decoder().header_schema(trace.stream_class(stream));
        let id_bits = header.fields().iter().find_map(|field| match field.kind {
            Kind::Uint { bits, .. } => Some(bits),
            _ => None,
        });
        for chunk in trace.chunks(stream) {
            let packet = trace.packet(stream, chunk.number);
            let packet = packet.ok_or("a chunk without a packet")?;
            let bytes = trace.packet_bytes(&packet);
            let magic = |order| read_uint(bytes, 0, 32, order) == Some(0xc1fc_1fc1);
            model.order = match magic(ByteOrder::Little) {
                true => ByteOrder::Little,
                false => ByteOrder::Big,
            };
            let packet = model.packet(trace, &chunk, bytes, id_bits.unwrap_or(0))?;
            model.packets.push(packet);
        }
        Ok(model)
    }

    /// Finds the integers of a part of the schema of packets: all of LTTng are whole bytes side by side.
    fn field(&mut self, schema: &Schema, id: FieldId, bit: &mut u64) -> Outcome {
        let field = schema.field(id);
        match field.kind {
            Kind::Struct => {
                let mut members = field.children.iter();
                members.try_for_each(|&child| self.field(schema, child, bit))
            }
            Kind::Array { length: Some(16) } => {
                *bit += 128;
                Ok(())
            }
            Kind::Blob => {
                *bit += 128;
                Ok(())
            }
            Kind::Uint { bits, .. } => {
                let name = field.name.as_deref().unwrap_or_default();
                self.fields.push((name.to_string(), (*bit, bits)));
                *bit += u64::from(bits);
                Ok(())
            }
            _ => Err("the packets are not as those of LTTng: another kind of field".into()),
        }
    }

    fn place(&self, name: &str) -> Option<Place> {
        let field = self.fields.iter().find(|(known, _)| known == name);
        field.map(|&(_, place)| place)
    }

    fn read(&self, bytes: &[u8], (bit, size): Place) -> u64 {
        read_uint(bytes, bit, size, self.order).unwrap_or(0)
    }

    fn packet(
        &self,
        trace: &'t Trace,
        chunk: &Chunk,
        bytes: &'t [u8],
        id_bits: u32,
    ) -> Outcome<Packet<'t>> {
        let other = "the packets are not as those of LTTng";
        let time = |name: &str| Some(self.read(bytes, self.place(name)?));
        let (begin, end) = (time("timestamp_begin"), time("timestamp_end"));
        if begin.is_none() || begin != chunk.begin || end.is_none() || end != chunk.end {
            return Err(format!("{other}: other times").into());
        }
        let mut packet = Packet {
            bytes,
            begin: begin.unwrap_or(0),
            end: end.unwrap_or(0),
            events: Vec::new(),
        };
        let mut cursor = trace.cursor(chunk);
        while let Ok(Some(event)) = cursor.next_event() {
            let begin = event.begin_bit();
            let is_full = self.read(bytes, (begin, id_bits)) == (1 << id_bits) - 1;
            // LTTng's two headers: 5 and 27 bits, or 16 and 32; where these do not do, 32 and 64 more.
            let place = match (is_full, id_bits) {
                (false, 5) => (begin + 5, 27),
                (false, 16) => (begin + 16, 32),
                (true, _) => (begin + u64::from(id_bits.next_multiple_of(8)) + 32, 64),
                _ => return Err(format!("{other}: other event headers").into()),
            };
            let ticks = event.ticks().unwrap_or(0);
            if self.read(bytes, place) != ticks & (u64::MAX >> (64 - place.1)) {
                return Err(format!("{other}: other times of events").into());
            }
            packet.events.push((begin, place));
        }
        Ok(packet)
    }

    fn events(&self) -> u64 {
        let counts = self.packets.iter().map(|packet| packet.events.len() as u64);
        counts.sum()
    }

    /// Writes the given number of events, one repetition after the other.
    fn write(&self, to: &Path, mut left: u64, period: u64, number: Option<u64>) -> Outcome {
        let mut file = BufWriter::with_capacity(1 << 20, File::create_new(to)?);
        let places = ["timestamp_begin", "timestamp_end"].map(|name| self.place(name));
        let sequence = self.place("packet_seq_num");
        let discarded = self.place("events_discarded");
        let last = self.packets.last();
        let lost = last
            .zip(discarded)
            .map_or(0, |(packet, place)| self.read(packet.bytes, place));
        let mut copy = Vec::new();
        for round in 0.. {
            for packet in &self.packets {
                if left == 0 {
                    file.flush()?;
                    return Ok(());
                }
                copy.clear();
                copy.extend_from_slice(packet.bytes);
                let mut add = |(bit, size): Place, more: u64| {
                    let value = read_uint(&copy, bit, size, self.order).unwrap_or(0);
                    write_uint(&mut copy, bit, size, self.order, value.wrapping_add(more));
                };
                let shift = period * round;
                places.into_iter().flatten().for_each(|at| add(at, shift));
                packet.events.iter().for_each(|&(_, at)| add(at, shift));
                if let Some(place) = sequence {
                    add(place, round * self.packets.len() as u64);
                }
                if let Some(place) = discarded {
                    add(place, round * lost);
                }
                let mut set = |name: &str, value: u64| {
                    if let Some((bit, size)) = self.place(name) {
                        write_uint(&mut copy, bit, size, self.order, value);
                    }
                };
                if let Some(number) = number {
                    set("stream_instance_id", number);
                    set("cpu_id", number);
                }
                if let Ok(&(end, _)) = usize::try_from(left)
                    .map_err(|_| ())
                    .and_then(|left| packet.events.get(left).ok_or(()))
                {
                    set("content_size", end);
                }
                left -= left.min(packet.events.len() as u64);
                file.write_all(&copy)?;
            }
        }
        Ok(())
    }
}
