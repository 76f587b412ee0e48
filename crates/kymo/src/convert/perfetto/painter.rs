//! Writes the annotations of events, in any thread.

use std::sync::Arc;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording};
use kymo_text::Line;

use super::names::Names;
use super::pen::{Pen, Plan};
use super::{message, proto};
use crate::convert::losses::Losses;
use crate::convert::marks::Porter;
use crate::samples::{self, SamplesPen};
use crate::show::Painter;
use crate::show::packet::PacketFields;
use crate::show::table::Table;
use crate::{AnyRecording, EntryKind};

/// Writes what comes after the name of an event, and before that the values that decide on its
/// place.
#[derive(Debug)]
pub struct PerfettoPainter<'m> {
    porter: Porter<'m>,
    names: Arc<Names>,
    losses: Arc<Losses>,
    classes: Table<ClassPlan>,
    streams: Table<StreamPlan>,
    recording: usize,
    kind: EntryKind,
    is_log: bool,
    /// The annotations of the packet.
    packet: Line,
    open: Vec<usize>,
}

#[derive(Debug)]
struct ClassPlan {
    /// The number of the class, where events have it as an annotation.
    number: Vec<u8>,
    plan: Plan,
}

impl ClassPlan {
    fn new(class: &EventClass, numbers: &[u64], names: &Names, is_log: bool) -> Self {
        let mut number = Line::new();
        if is_log {
            let annotation = proto::begin(message::ANNOTATIONS, &mut number);
            proto::uint(message::NAME_IID, names.event_class, &mut number);
            proto::uint(message::UINT_VALUE, class.id, &mut number);
            proto::end(annotation, &mut number);
        }
        Self {
            number: number.as_bytes().to_vec(),
            plan: Plan::new(&class.schema, numbers, names),
        }
    }
}

#[derive(Debug)]
struct StreamPlan {
    fields: PacketFields,
    plan: Plan,
}

impl<'m> PerfettoPainter<'m> {
    pub(super) fn new(porter: Porter<'m>, names: Arc<Names>, losses: Arc<Losses>) -> Self {
        Self {
            porter,
            names,
            losses,
            classes: Table::default(),
            streams: Table::default(),
            recording: 0,
            kind: EntryKind::Event,
            is_log: false,
            packet: Line::new(),
            open: Vec::new(),
        }
    }
}

impl Painter for PerfettoPainter<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        self.kind = samples::kind(of);
        self.is_log = of.is_log();
        self.porter.chunk(recording, of, chunk)?;
        self.packet.clear();
        self.open.clear();
        let names = &self.names;
        let stream = self.streams.get(recording, chunk.stream, || {
            let fields = PacketFields::of(of, chunk.stream);
            let numbers = names.packet_fields(recording, chunk.stream);
            let plan = Plan::new(&fields.schema, numbers, names);
            StreamPlan { fields, plan }
        });
        let mut pen = Pen {
            line: &mut self.packet,
            plan: &stream.plan,
            open: &mut self.open,
            names,
            losses: &self.losses,
        };
        let fields = &stream.fields;
        fields.visit(&mut pen, |visitor| of.visit_packet(chunk, visitor))
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        if self.kind == EntryKind::Sample {
            return event.visit(&mut SamplesPen { line: out });
        }
        self.porter.carry(event, out)?;
        let (recording, index) = (self.recording, event.class_index());
        let names = &self.names;
        let is_log = self.is_log;
        let class = self.classes.get(recording, index, || {
            let numbers = names.fields(recording, index);
            ClassPlan::new(event.class(), numbers, names, is_log)
        });
        self.open.clear();
        out.push(self.packet.as_bytes());
        out.push(&class.number);
        event.visit(&mut Pen {
            line: out,
            plan: &class.plan,
            open: &mut self.open,
            names,
            losses: &self.losses,
        })
    }
}
