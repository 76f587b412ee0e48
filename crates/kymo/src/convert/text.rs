//! Fields of events as text: `KEY=VALUE` with blanks between, keys and values as in CSV.

use kymo_model::{Chunk, Event, EventClass, Fault, FieldId, Recording};
use kymo_text::Line;

use crate::AnyRecording;
use crate::show::csv::{Column, Plan, Row, header_hidden, names};
use crate::show::packet::PacketFields;

/// Writes the fields of events, with those of their packets before them.
#[derive(Debug, Default)]
pub(super) struct FieldText {
    row: Row,
    text: Line,
}

/// How the fields of a class become text.
#[derive(Debug)]
pub(super) struct FieldPlan {
    plan: Plan,
    /// Of each field of the packet that has a cell, and then of each of the [`fields`](Self::fields), its
    /// key; `None` where it is left out.
    pub(super) keys: Vec<Option<String>>,
    /// The fields of the class that have cells.
    pub(super) fields: Vec<FieldId>,
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
}

impl FieldText {
    /// Keeps what the events of a chunk have in common.
    pub(super) fn chunk(
        &mut self,
        recording: usize,
        of: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault> {
        let fields = || PacketFields::of(of, chunk.stream);
        self.row.packet(recording, chunk.stream, fields, |visitor| {
            of.visit_packet(chunk, visitor)
        })
    }

    /// The columns of the packets of the chunk.
    pub(super) fn packet_columns(&self) -> &[Column] {
        self.row.packet_columns()
    }

    /// The text of an event of the chunk; `None` where it has more than so many bytes.
    pub(super) fn of<E: Event>(
        &mut self,
        event: &E,
        plan: &FieldPlan,
        most: usize,
    ) -> Result<Option<&[u8]>, Fault> {
        if !self.row.event(event, &plan.plan, most)? {
            return Ok(None);
        }
        self.text.clear();
        self.text.bound(most);
        for (cell, key) in plan.keys.iter().enumerate() {
            let Some(key) = key else { continue };
            if !self.text.is_empty() {
                self.text.push_byte(b' ');
            }
            self.text.push(key.as_bytes());
            self.text.push_byte(b'=');
            self.text.push(self.row.get(cell).unwrap_or_default());
        }
        Ok((!self.text.is_cut()).then(|| self.text.as_bytes()))
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
