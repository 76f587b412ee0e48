//! Values of event classes whose own context is a member of their payload: RFC v1.1 has no other
//! place for it.

use kymo_ctf::write::Encode;
use kymo_model::{FieldId, Schema, Scope, Visitor};

use crate::hand_on::hand_on_values;

/// Presents values to an encoder as if the specific context were the first member of the payload.
pub(super) struct Nested<'n, 'e> {
    encode: &'n mut Encode<'e>,
    context: Option<FieldId>,
    payload: Option<FieldId>,
}

impl<'n, 'e> Nested<'n, 'e> {
    /// For events with this schema.
    pub(super) fn new(encode: &'n mut Encode<'e>, schema: &Schema) -> Self {
        Self {
            encode,
            context: schema.root(Scope::SpecificContext),
            payload: schema.root(Scope::Payload),
        }
    }
}

impl Visitor for Nested<'_, '_> {
    hand_on_values! { self, field => Some(&mut *self.encode) }

    fn begin_struct(&mut self, field: FieldId) {
        if Some(field) == self.context {
            // The payload begins with it.
            self.encode.begin_struct(field);
        }
        if Some(field) != self.payload || self.context.is_none() {
            self.encode.begin_struct(field);
        }
    }

    fn end_struct(&mut self, field: FieldId) {
        self.encode.end_struct(field);
        if Some(field) == self.context && self.payload.is_none() {
            self.encode.end_struct(field);
        }
    }
}
