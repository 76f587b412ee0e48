//! What surrounds the events of a chunk: their packet, their stream.

use std::sync::Arc;

use kymo_model::{Chunk, EventClass, Fault, Pick, Recording, Schema, Selection, Value};

use super::eval::{Constant, Number, Source};
use super::names::{Picks, Surroundings};

/// What to capture of the packets of a recording.
#[derive(Debug)]
pub(crate) struct Packets {
    plans: Vec<PacketPlan>,
    /// For each stream the position of its plan.
    of_stream: Vec<usize>,
    /// What the packets of a class without streams have.
    nothing: Schema,
}

/// What to capture of the packets of the streams of one class.
#[derive(Debug)]
struct PacketPlan {
    stream_class: u64,
    schema: Arc<Schema>,
    picks: Vec<Pick>,
}

impl Packets {
    /// Nothing yet, of the packets of each class of streams.
    fn new<R: Recording>(recording: &R) -> Self {
        let mut plans: Vec<PacketPlan> = Vec::new();
        let streams = recording.streams().iter();
        let of_stream = streams.map(|stream| {
            let known = plans
                .iter()
                .position(|plan| plan.stream_class == stream.class);
            known.unwrap_or_else(|| {
                plans.push(PacketPlan {
                    stream_class: stream.class,
                    schema: Arc::clone(&stream.packet_schema),
                    picks: Vec::new(),
                });
                plans.len() - 1
            })
        });
        Self {
            of_stream: of_stream.collect(),
            plans,
            nothing: Schema::new(),
        }
    }

    /// Makes a plan for each event class of a recording, or none: `plan` picks fields of the class
    /// and of its packets.
    pub(super) fn of_classes<R: Recording, P>(
        recording: &R,
        mut plan: impl FnMut(usize, Surroundings<'_>, &mut Picks) -> Option<P>,
    ) -> (Self, Vec<Option<P>>) {
        let mut packets = Self::new(recording);
        let classes = recording.event_classes().iter().enumerate();
        let plans = classes.map(|(position, class)| {
            let packet = packets.position(class);
            let mut picks = Picks::default();
            if let Some(packet) = packet {
                picks.packet = std::mem::take(&mut packets.plans[packet].picks);
            }
            let plan = plan(position, packets.around(recording, class), &mut picks);
            if let Some(packet) = packet {
                packets.plans[packet].picks = picks.packet;
            }
            plan
        });
        let plans = plans.collect();
        (packets, plans)
    }

    /// An event class and what surrounds it.
    pub(super) fn around<'a, R: Recording>(
        &'a self,
        recording: &'a R,
        class: &'a EventClass,
    ) -> Surroundings<'a> {
        let packet = self.position(class);
        Surroundings {
            class,
            packet: packet.map_or(&self.nothing, |packet| &self.plans[packet].schema),
            trace: recording.name(),
            recording: recording.path(),
            kind: crate::any::kind_of_class(recording.format(), class),
        }
    }

    /// The field of packets in a slot, and their schema; of those around the events of a class.
    pub(super) fn pick(&self, class: &EventClass, slot: usize) -> Option<(&Schema, &Pick)> {
        let plan = &self.plans[self.position(class)?];
        Some((&plan.schema, plan.picks.get(slot)?))
    }

    /// The plan for the packets in which events of a class are.
    fn position(&self, class: &EventClass) -> Option<usize> {
        let mut plans = self.plans.iter();
        plans.position(|plan| plan.stream_class == class.stream_class)
    }
}

/// What is known of the events of a chunk beside their own fields.
#[derive(Debug)]
pub(crate) struct Surround {
    packet: Selection,
    /// Recording and packet plan that `packet` is of.
    packet_of: Option<(usize, usize)>,
    stream_id: Option<u64>,
    stream_name: Arc<str>,
}

impl Default for Surround {
    /// Before the first chunk.
    fn default() -> Self {
        Self {
            packet: Selection::default(),
            packet_of: None,
            stream_id: None,
            stream_name: Arc::from(""),
        }
    }
}

impl Surround {
    /// Begins a chunk; `packets` is of its recording, whose position is `number`.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    pub(crate) fn begin_chunk<R: Recording>(
        &mut self,
        packets: &Packets,
        (number, recording): (usize, &R),
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let stream = &recording.streams()[chunk.stream];
        self.stream_id = stream.id;
        self.stream_name = Arc::clone(&stream.name);
        let packet = packets.of_stream[chunk.stream];
        if self.packet_of != Some((number, packet)) {
            let plan = &packets.plans[packet];
            self.packet = Selection::new(&plan.schema, plan.picks.iter().cloned());
            self.packet_of = Some((number, packet));
        }
        self.packet.clear();
        match self.packet.is_empty() {
            true => Ok(()),
            false => recording.visit_packet(chunk, &mut self.packet),
        }
    }

    /// A value of an event, of which `event` holds the fields that were captured, and `time` is the
    /// time in nanoseconds.
    #[inline]
    pub(crate) fn value<'a>(
        &'a self,
        source: &'a Source,
        event: Option<&'a Selection>,
        time: Option<i64>,
    ) -> Value<'a> {
        match source {
            Source::Event(slot) => event.map_or(Value::Missing, |event| event.value(*slot)),
            Source::Packet(slot) => self.packet.value(*slot),
            Source::Time => time.map_or(Value::Missing, Value::Sint),
            Source::StreamId => self.stream_id.map_or(Value::Missing, Value::Uint),
            Source::StreamName => Value::Text(self.stream_name.as_bytes()),
            Source::Constant(Constant::Text(text)) => Value::Text(text),
            Source::Constant(Constant::Bool(value)) => Value::Bool(*value),
            Source::Constant(Constant::Number(Number::Float(value))) => Value::Float(*value),
            // A number of 64 bits, with or without a sign.
            Source::Constant(Constant::Number(Number::Integer(value))) => {
                u64::try_from(*value).map_or(Value::Sint(*value as i64), Value::Uint)
            }
        }
    }
}
