//! Writes the annotations of events, in any thread.

use std::sync::Arc;

use kymo_model::{Chunk, Event, EventClass, Fault, Recording};
use kymo_perfetto::{Annotation, AnnotationKind, AnnotationOf};
use kymo_text::Line;

use super::field_renderer::{FieldRenderer, Plan};
use super::names::FieldNames;
use crate::convert::binding::entry_kind;
use crate::convert::losses::Losses;
use crate::pipeline::RowBuffers;
use crate::show::Renderer;
use crate::show::packet::PacketFields;
use crate::show::table::Table;
use crate::timeline::Filler;
use crate::{AnyRecording, EntryKind};

/// Writes what comes after the name of an event; the values that decide on its place are columns.
#[derive(Debug)]
pub struct PerfettoRenderer<'m> {
    filler: Filler<'m>,
    names: Arc<FieldNames>,
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
    fn new(class: &EventClass, numbers: &[u64], names: &FieldNames, is_log: bool) -> Self {
        let mut number = Line::new();
        if is_log {
            let kind = (AnnotationOf::Event, AnnotationKind::Uint);
            let annotation = Annotation::new(kind.0, names.event_class, kind.1);
            let begin = annotation.begin(&mut number);
            Annotation::value(AnnotationKind::Uint, class.id, &mut number);
            Annotation::end(begin, &mut number);
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

impl<'m> PerfettoRenderer<'m> {
    pub(super) fn new(filler: Filler<'m>, names: Arc<FieldNames>, losses: Arc<Losses>) -> Self {
        Self {
            filler,
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

impl Renderer for PerfettoRenderer<'_> {
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        self.recording = recording;
        self.kind = entry_kind(source);
        self.is_log = source.is_log();
        self.filler.chunk(recording, source, chunk)?;
        self.packet.clear();
        self.open.clear();
        let names = &self.names;
        let stream = self.streams.get(recording, chunk.stream, || {
            let fields = PacketFields::of(source, chunk.stream);
            let numbers = names.packet_fields(recording, chunk.stream);
            let plan = Plan::new(&fields.schema, numbers, names);
            StreamPlan { fields, plan }
        });
        let mut field_renderer = FieldRenderer {
            line: &mut self.packet,
            plan: &stream.plan,
            open: &mut self.open,
            names,
            losses: &self.losses,
        };
        let fields = &stream.fields;
        fields.visit(&mut field_renderer, |visitor| {
            source.visit_packet(chunk, visitor)
        })
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        if self.kind == EntryKind::Sample {
            return self.filler.event(event);
        }
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
        let mut field_renderer = FieldRenderer {
            line: out,
            plan: &class.plan,
            open: &mut self.open,
            names,
            losses: &self.losses,
        };
        self.filler.event_with(event, &mut field_renderer)
    }

    fn take_rows(&mut self) -> RowBuffers {
        self.filler.take()
    }

    fn row_bytes(&self) -> usize {
        self.filler.byte_size()
    }
}
