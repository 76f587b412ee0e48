//! Writes the annotations of events, in any thread.

use std::sync::Arc;

use kymo_model::{Chunk, Event, Fault, Recording};
use kymo_text::Line;

use super::names::Names;
use super::pen::{Pen, Plan};
use crate::convert::losses::Losses;
use crate::convert::marks::Porter;
use crate::convert::samples::SamplesPen;
use crate::show::Painter;
use crate::show::packet::{PacketFields, Visible};
use crate::show::table::Table;
use crate::{AnyRecording, EntryKind};

/// Writes what comes after the name of an event, and before that the values that decide on its
/// place.
#[derive(Debug)]
pub struct PerfettoPainter {
    porter: Porter,
    names: Arc<Names>,
    losses: Arc<Losses>,
    classes: Table<Plan>,
    streams: Table<StreamPlan>,
    recording: usize,
    kind: EntryKind,
    /// The annotations of the packet.
    packet: Line,
    open: Vec<usize>,
}

#[derive(Debug)]
struct StreamPlan {
    fields: PacketFields,
    plan: Plan,
}

impl PerfettoPainter {
    pub(super) fn new(porter: Porter, names: Arc<Names>, losses: Arc<Losses>) -> Self {
        Self {
            porter,
            names,
            losses,
            classes: Table::default(),
            streams: Table::default(),
            recording: 0,
            kind: EntryKind::Event,
            packet: Line::new(),
            open: Vec::new(),
        }
    }
}

impl Painter for PerfettoPainter {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.recording = recording;
        self.kind = of.entry_kind();
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
        if !stream.fields.shown {
            return Ok(());
        }
        of.visit_packet(
            chunk,
            &mut Visible {
                hidden: &stream.fields.hidden,
                to: &mut Pen {
                    line: &mut self.packet,
                    plan: &stream.plan,
                    open: &mut self.open,
                    names,
                    losses: &self.losses,
                },
            },
        )
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        if self.kind == EntryKind::Sample {
            return event.visit(&mut SamplesPen { line: out });
        }
        self.porter.carry(event, out)?;
        let (recording, index) = (self.recording, event.class_index());
        let names = &self.names;
        let plan = self.classes.get(recording, index, || {
            Plan::new(&event.class().schema, names.fields(recording, index), names)
        });
        self.open.clear();
        out.push(self.packet.as_bytes());
        event.visit(&mut Pen {
            line: out,
            plan,
            open: &mut self.open,
            names,
            losses: &self.losses,
        })
    }
}
