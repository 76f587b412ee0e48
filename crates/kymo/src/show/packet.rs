//! The fields of packets that are shown: not those that only matter to readers.

use std::sync::Arc;

use kymo_model::{Fault, FieldId, Recording, Schema, Scope, Visitor};

use crate::hand_on::{hand_on, hand_on_values};

/// Which fields of a stream's packets are shown.
#[derive(Debug)]
pub(crate) struct PacketFields {
    pub(crate) schema: Arc<Schema>,
    /// Of each field, whether it is left out.
    pub(crate) hidden: Vec<bool>,
    /// Whether there is a packet context to show: one of which every member is left out
    /// is not, one that has no member is.
    pub(crate) shown: bool,
}

impl PacketFields {
    pub(crate) fn of<R: Recording>(recording: &R, stream: usize) -> Self {
        let schema = Arc::clone(&recording.streams()[stream].packet_schema);
        Self::new(schema, |field| {
            recording.is_packet_bookkeeping(stream, field)
        })
    }

    pub(crate) fn new(schema: Arc<Schema>, bookkeeping: impl Fn(FieldId) -> bool) -> Self {
        let root = schema.root(Scope::PacketContext);
        let mut hidden = Vec::with_capacity(schema.fields().len());
        for (position, field) in schema.fields().iter().enumerate() {
            let id = FieldId(position as u32);
            hidden.push(match field.parent {
                Some(parent) => hidden[parent.index()] || bookkeeping(id),
                None => Some(id) != root,
            });
        }
        let shown = root.is_some_and(|root| {
            let members = &schema.field(root).children;
            members.is_empty() || members.iter().any(|member| !hidden[member.index()])
        });
        Self {
            schema,
            hidden,
            shown,
        }
    }
}

impl PacketFields {
    /// Hands what is shown of a packet to a visitor: `visit` decodes the packet.
    pub(crate) fn visit<V>(
        &self,
        to: &mut V,
        visit: impl FnOnce(&mut Visible<'_, V>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if !self.shown {
            return Ok(());
        }
        let hidden = &self.hidden;
        visit(&mut Visible { hidden, to })
    }
}

/// For each field, whether no sibling that is shown comes before it.
pub(crate) fn leading(schema: &Schema, hidden: &[bool]) -> Vec<bool> {
    let fields = schema.fields();
    let mut has_shown_child = vec![false; fields.len()];
    let lead = |(position, field): (usize, &kymo_model::Field)| match field.parent {
        None => true,
        Some(parent) => {
            let before = has_shown_child[parent.index()];
            has_shown_child[parent.index()] |= !hidden.get(position).is_some_and(|&hidden| hidden);
            !before
        }
    };
    fields.iter().enumerate().map(lead).collect()
}

/// Hands on what is not left out.
pub(crate) struct Visible<'a, V> {
    hidden: &'a [bool],
    to: &'a mut V,
}

impl<V: Visitor> Visible<'_, V> {
    fn of(&mut self, field: FieldId) -> Option<&mut V> {
        (!self.hidden[field.index()]).then_some(&mut *self.to)
    }
}

impl<V: Visitor> Visitor for Visible<'_, V> {
    hand_on_values! { self, field => self.of(field) }

    hand_on! { self, field => self.of(field);
        begin_struct();
        end_struct();
    }
}
