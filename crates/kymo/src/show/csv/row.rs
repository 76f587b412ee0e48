//! The cells of an event: those of its packet, and its own.

use kymo_model::Fault;
use kymo_text::Line;

use super::field_renderer::CellRenderer;
use super::plan::{Column, Plan};
use crate::show::packet::{PacketFields, Visible};
use crate::show::table::Table;

/// The cells of one event after the other.
#[derive(Debug, Default)]
pub(crate) struct Row {
    packets: Table<PacketPlan>,
    columns: Vec<Column>,
    packet: Cells,
    event: Cells,
    stack: Vec<bool>,
}

#[derive(Debug)]
struct PacketPlan {
    fields: PacketFields,
    plan: Plan,
    columns: Vec<Column>,
}

/// Values of cells, one after the other.
#[derive(Debug, Default)]
struct Cells {
    text: Line,
    ends: Vec<usize>,
}

impl Row {
    /// Keeps what the events of a packet have in common: `fields` specifies what is shown of the packets of
    /// that stream, `visit` decodes the packet.
    pub(crate) fn packet(
        &mut self,
        recording: usize,
        stream: usize,
        fields: impl FnOnce() -> PacketFields,
        visit: impl FnOnce(&mut Visible<'_, CellRenderer<'_>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.packet.clear();
        self.stack.clear();
        let packet = self.packets.get(recording, stream, || {
            let fields = fields();
            let mut columns = Vec::new();
            let plan = Plan::new(&fields.schema, &fields.hidden, &mut columns);
            PacketPlan {
                fields,
                plan,
                columns,
            }
        });
        self.columns.clone_from(&packet.columns);
        let mut field_renderer = self.packet.field_renderer(&packet.plan, &mut self.stack);
        packet.fields.visit(&mut field_renderer, visit)
    }

    /// The columns of the packet.
    pub(crate) fn packet_columns(&self) -> &[Column] {
        &self.columns
    }

    /// Takes the cells of an event of the packet, which `visit` decodes. `false` where they are more than so
    /// many bytes.
    pub(crate) fn event(
        &mut self,
        plan: &Plan,
        most: usize,
        visit: impl FnOnce(&mut CellRenderer<'_>) -> Result<(), Fault>,
    ) -> Result<bool, Fault> {
        self.event.clear();
        self.stack.clear();
        self.event.text.bound(most);
        visit(&mut self.event.field_renderer(plan, &mut self.stack))?;
        Ok(!self.event.text.is_cut())
    }

    /// A cell, those of the packet first.
    pub(crate) fn get(&self, cell: usize) -> Option<&[u8]> {
        match cell.checked_sub(self.packet.ends.len()) {
            Some(cell) => self.event.get(cell),
            None => self.packet.get(cell),
        }
    }
}

impl Cells {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn field_renderer<'a>(
        &'a mut self,
        plan: &'a Plan,
        stack: &'a mut Vec<bool>,
    ) -> CellRenderer<'a> {
        CellRenderer::new(plan, &mut self.text, stack, &mut self.ends)
    }

    fn get(&self, cell: usize) -> Option<&[u8]> {
        let begin = match cell.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.as_bytes().get(begin..*self.ends.get(cell)?)
    }
}
