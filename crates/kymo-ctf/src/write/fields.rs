//! The values of an event as a library user gives them.

use std::fmt;

use kymo_model::{FieldId, Visitor, Wide};

use super::encode::{Encode, Expected};

/// A field's identifier where it does not matter: the order determines which field it is.
const NEXT: FieldId = FieldId(0);

/// Takes the values of an event, one after the other, in the order of its class: common context,
/// context of the class, payload. Their structures begin and end by themselves; those within them
/// are [given explicitly](Self::structure).
///
/// What is given for a compound is given by a function that hands back what it was handed.
///
/// The first value that does not fit its field is reported by the error of the event, which is then
/// not written.
///
/// ```
/// # use kymo_ctf::write::Fields;
/// fn values(fields: &mut Fields<'_, '_>) {
///     fields.uint(7).text("eth0").array(2, |fields, n| fields.sint(n as i64));
/// }
/// ```
pub struct Fields<'f, 'e> {
    encode: &'f mut Encode<'e>,
    depth: u32,
}

impl fmt::Debug for Fields<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").finish_non_exhaustive()
    }
}

impl<'f, 'e> Fields<'f, 'e> {
    pub(super) fn new(encode: &'f mut Encode<'e>) -> Self {
        Self { encode, depth: 0 }
    }

    /// Goes through ends and beginnings of the structures of scopes.
    pub(super) fn settle(&mut self) {
        while self.depth == 0 && !self.encode.has_stopped() {
            match self.encode.expected() {
                Expected::BeginStruct(field) if self.is_root(field) => {
                    self.encode.begin_struct(field);
                }
                Expected::EndStruct(field) if self.is_root(field) => self.encode.end_struct(field),
                _ => return,
            }
        }
    }

    fn is_root(&self, field: FieldId) -> bool {
        let field = self.encode.schema().fields().get(field.index());
        field.is_some_and(|field| field.parent.is_none())
    }

    fn next(&mut self) -> &mut Encode<'e> {
        self.settle();
        self.encode
    }

    /// An unsigned integer; where the field is a signed one, it must fit.
    pub fn uint(&mut self, value: u64) -> &mut Self {
        self.next().uint(NEXT, value);
        self
    }

    /// A signed integer; where the field is an unsigned one, it must fit.
    pub fn sint(&mut self, value: i64) -> &mut Self {
        self.next().sint(NEXT, value);
        self
    }

    /// Adds an integer of more than 64 bits, the size of its field; smaller ones are accepted by
    /// [`uint`](Self::uint) and [`sint`](Self::sint).
    pub fn wide(&mut self, value: Wide<'_>) -> &mut Self {
        self.next().wide(NEXT, value);
        self
    }

    /// A floating point number, rounded to the size of its field.
    pub fn float(&mut self, value: f64) -> &mut Self {
        self.next().float(NEXT, value);
        self
    }

    /// The bits of a floating point number of 128 bits.
    pub fn float128(&mut self, bits: u128) -> &mut Self {
        self.next().float128(NEXT, bits);
        self
    }

    /// A truth value.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.next().boolean(NEXT, value);
        self
    }

    /// A bit array or bit map.
    pub fn bits(&mut self, value: u64) -> &mut Self {
        self.next().bits(NEXT, value);
        self
    }

    /// Text, without a zero in it.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.next().text(NEXT, text.as_bytes());
        self
    }

    /// Bytes.
    pub fn blob(&mut self, bytes: &[u8]) -> &mut Self {
        self.next().blob(NEXT, bytes);
        self
    }

    /// Leaves a number to the writer: the length of an array, text or bytes that follow, or what
    /// selects the option that follows.
    pub fn fill(&mut self) -> &mut Self {
        self.next().fill();
        self
    }

    /// A structure within a structure.
    pub fn structure(&mut self, members: impl FnOnce(&mut Self) -> &mut Self) -> &mut Self {
        self.next().begin_struct(NEXT);
        self.within(members);
        self.encode.end_struct(NEXT);
        self
    }

    /// An array: `element` gives the element at each position.
    pub fn array(
        &mut self,
        length: u64,
        mut element: impl FnMut(&mut Self, u64) -> &mut Self,
    ) -> &mut Self {
        self.next().begin_array(NEXT, length);
        self.within(|fields| {
            for position in 0..length {
                if fields.encode.has_stopped() {
                    break;
                }
                element(fields, position);
            }
            fields
        });
        self.encode.end_array(NEXT);
        self
    }

    /// An optional that holds something.
    pub fn some(&mut self, content: impl FnOnce(&mut Self) -> &mut Self) -> &mut Self {
        self.next().begin_optional(NEXT, true, 0);
        self.within(content);
        self.encode.end_optional(NEXT);
        self
    }

    /// An optional that holds nothing.
    pub fn none(&mut self) -> &mut Self {
        self.next().begin_optional(NEXT, false, 0);
        self.encode.end_optional(NEXT);
        self
    }

    /// A variant: the position of the option, and what it holds.
    pub fn option(
        &mut self,
        option: u32,
        content: impl FnOnce(&mut Self) -> &mut Self,
    ) -> &mut Self {
        self.next().begin_variant(NEXT, option, 0);
        self.within(content);
        self.encode.end_variant(NEXT);
        self
    }

    fn within(&mut self, parts: impl FnOnce(&mut Self) -> &mut Self) {
        self.depth += 1;
        parts(self);
        self.depth -= 1;
    }
}
