//! Fields of events as text: `KEY=VALUE` with blanks between, keys and values as in CSV.

use kymo_model::{Chunk, EventClass, Fault, FieldId, Recording};
use kymo_text::{Line, Stamp};

use crate::AnyRecording;
use crate::show::csv::{CellFrame, Column, FieldRenderer, Part, Plan, Row, header_hidden, names};
use crate::show::json;
use crate::show::packet::PacketFields;

/// Writes the fields of events, with those of their packets before them.
#[derive(Debug, Default)]
pub(super) struct FieldText {
    packet: Row,
    stack: Vec<bool>,
}

/// Which fields of a class become text, and by which names.
#[derive(Debug)]
pub(super) struct FieldPlan {
    plan: Plan,
    /// Of each field of the packet that has a cell, and then of each of the [`fields`](Self::fields), its
    /// key; `None` where it is left out.
    pub(super) keys: Vec<Option<String>>,
    /// The fields of the class that have cells.
    pub(super) fields: Vec<FieldId>,
}

/// How the fields of a class become text.
#[derive(Debug)]
pub(super) struct TextPlan {
    json: json::Plan,
    parts: Vec<TextPart>,
    /// What comes before the values of the packet.
    packet: Vec<Option<Stamp>>,
}

/// What a field is in the text.
#[derive(Debug)]
enum TextPart {
    /// A structure whose members have keys of their own.
    Spread,
    /// What comes before the value: a blank, the key.
    Key(Stamp),
    /// It is left out.
    Skipped,
    /// It is within a value.
    Inside,
}

impl FieldPlan {
    /// The plan of a class whose packets have these columns.
    pub(super) fn new(class: &EventClass, packet: &[Column]) -> Self {
        let hidden = header_hidden(class);
        let mut columns = packet.to_vec();
        let plan = Plan::new(&class.schema, &hidden, &mut columns);
        Self {
            keys: names(&columns).into_iter().map(Some).collect(),
            fields: plan.fields(&hidden).collect(),
            plan,
        }
    }

    /// The same, ready to write.
    pub(super) fn finish(self) -> TextPlan {
        let stamp = |key: String| Stamp::new(format!(" {key}=").as_bytes());
        let mut parts: Vec<TextPart> = self
            .plan
            .parts
            .iter()
            .map(|part| match part {
                Part::Spread => TextPart::Spread,
                Part::Column | Part::Inside => TextPart::Inside,
            })
            .collect();
        let mut packet: Vec<Option<Stamp>> =
            self.keys.into_iter().map(|key| key.map(stamp)).collect();
        let keys = packet.split_off(packet.len() - self.fields.len());
        for (field, key) in self.fields.into_iter().zip(keys) {
            parts[field.index()] = key.map_or(TextPart::Skipped, TextPart::Key);
        }
        TextPlan {
            json: self.plan.json,
            parts,
            packet,
        }
    }
}

impl FieldText {
    /// Keeps what the events of a chunk have in common.
    pub(super) fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let fields = || PacketFields::of(source, chunk.stream);
        self.packet
            .packet(recording, chunk.stream, fields, |visitor| {
                source.visit_packet(chunk, visitor)
            })
    }

    /// The columns of the packets of the chunk.
    pub(super) fn packet_columns(&self) -> &[Column] {
        self.packet.packet_columns()
    }

    /// Appends the text of an event of the chunk, which `visit` decodes. It begins with a blank.
    pub(super) fn write(
        &mut self,
        plan: &TextPlan,
        out: &mut Line,
        visit: impl FnOnce(&mut FieldRenderer<'_, Keys<'_>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        for (cell, key) in plan.packet.iter().enumerate() {
            if let Some(key) = key {
                out.stamp(key);
                out.push(self.packet.get(cell).unwrap_or_default());
            }
        }
        self.stack.clear();
        visit(&mut FieldRenderer {
            cells: Keys(&plan.parts),
            json: json::FieldRenderer {
                line: out,
                plan: &plan.json,
                stack: &mut self.stack,
            },
            depth: 0,
        })
    }
}

/// Values behind their keys.
pub(super) struct Keys<'a>(&'a [TextPart]);

impl CellFrame for Keys<'_> {
    #[inline]
    fn is_spread(&self, field: FieldId) -> bool {
        matches!(self.0[field.index()], TextPart::Spread)
    }

    #[inline]
    fn begin(&mut self, field: FieldId, line: &mut Line) -> bool {
        match &self.0[field.index()] {
            TextPart::Key(key) => line.stamp(key),
            TextPart::Skipped => return false,
            TextPart::Spread | TextPart::Inside => {}
        }
        true
    }
}

/// A name as a format that makes it.
pub(super) fn format_of(name: &[u8]) -> Vec<u8> {
    let mut format = Vec::with_capacity(name.len());
    for &byte in without_zeros(name).iter() {
        format.push(byte);
        if byte == b'%' {
            format.push(byte);
        }
    }
    format
}

/// A text whose zero bytes are written as `\x00`.
pub(super) fn without_zeros(text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !text.contains(&0) {
        return text.into();
    }
    text.split(|&byte| byte == 0)
        .collect::<Vec<_>>()
        .join(&b"\\x00"[..])
        .into()
}
