//! How values leave a decoder.

use crate::batch::Number;
use crate::{FieldId, Wide};

/// Gets every value of what is decoded, in the order it was recorded.
///
/// Every method has an empty default, so a visitor names only what it wants; what it
/// does not name costs nothing, since decoders are compiled for each visitor.
/// Compound fields call their `begin`, then the calls of their parts, then their `end`.
pub trait Visitor {
    /// Whether [`Visitor::at`] and [`Visitor::after`] are called.
    const POSITIONS: bool = false;

    /// Called before each value and compound field begins (after alignment), and before
    /// each compound field ends, with the position in bits from the start of the chunk.
    #[inline(always)]
    fn at(&mut self, _bit: u64) {}

    /// Called after each value that is not a compound, with the bit position where it ends.
    #[inline(always)]
    fn after(&mut self, _bit: u64) {}

    /// Whether it wants the value of a field that costs something to make, as a text out of a
    /// format. It may be given values that it does not want.
    #[inline(always)]
    fn wants(&self, _field: FieldId) -> bool {
        true
    }

    /// An unsigned integer.
    #[inline(always)]
    fn uint(&mut self, _field: FieldId, _value: u64) {}

    /// A signed integer.
    #[inline(always)]
    fn sint(&mut self, _field: FieldId, _value: i64) {}

    /// An integer of more than 64 bits.
    #[inline(always)]
    fn wide(&mut self, _field: FieldId, _value: Wide<'_>) {}

    /// A floating point number of 16, 32 or 64 bits, widened.
    #[inline(always)]
    fn float(&mut self, _field: FieldId, _value: f64) {}

    /// A floating point number of 128 bits: its bits.
    #[inline(always)]
    fn float128(&mut self, _field: FieldId, _bits: u128) {}

    /// A truth value.
    #[inline(always)]
    fn boolean(&mut self, _field: FieldId, _value: bool) {}

    /// A bit array or bit map of up to 64 bits.
    #[inline(always)]
    fn bits(&mut self, _field: FieldId, _value: u64) {}

    /// Text without its terminating zero: UTF-8, unless the recording is wrong.
    #[inline(always)]
    fn text(&mut self, _field: FieldId, _text: &[u8]) {}

    /// Bytes that are not text.
    #[inline(always)]
    fn blob(&mut self, _field: FieldId, _bytes: &[u8]) {}

    /// A structure begins.
    #[inline(always)]
    fn begin_struct(&mut self, _field: FieldId) {}

    /// A structure ends.
    #[inline(always)]
    fn end_struct(&mut self, _field: FieldId) {}

    /// An array of `length` elements begins.
    #[inline(always)]
    fn begin_array(&mut self, _field: FieldId, _length: u64) {}

    /// Elements of an array that are numbers one behind the other in some bytes: unless a visitor has its own way, one
    /// after the other.
    #[inline(always)]
    fn numbers(&mut self, field: FieldId, bytes: &[u8], number: Number) {
        number.visit(field, bytes, self);
    }

    /// An array ends.
    #[inline(always)]
    fn end_array(&mut self, _field: FieldId) {}

    /// An optional begins: what it holds follows when `present`. `selector` is the value
    /// that says so, as bits.
    #[inline(always)]
    fn begin_optional(&mut self, _field: FieldId, _present: bool, _selector: u64) {}

    /// An optional ends.
    #[inline(always)]
    fn end_optional(&mut self, _field: FieldId) {}

    /// A variant begins, of which the option `selected` (a position among the field's
    /// children) follows. `selector` is the value that selected it, as bits.
    #[inline(always)]
    fn begin_variant(&mut self, _field: FieldId, _selected: u32, _selector: u64) {}

    /// A variant ends.
    #[inline(always)]
    fn end_variant(&mut self, _field: FieldId) {}
}

/// Wants nothing: decoding with it finds where an event ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Visitor for Nothing {
    #[inline(always)]
    fn wants(&self, _field: FieldId) -> bool {
        false
    }
}

/// Gives each value to two visitors, so that an event is decoded once for both.
#[derive(Debug)]
pub struct Both<'a, A, B>(
    /// The one that gets it first.
    pub &'a mut A,
    /// The other one.
    pub &'a mut B,
);

/// Methods that call the same ones of both.
macro_rules! both {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[inline(always)]
        fn $method(&mut self, $($argument: $type),*) {
            self.0.$method($($argument),*);
            self.1.$method($($argument),*);
        }
    )*};
}

impl<A: Visitor, B: Visitor> Visitor for Both<'_, A, B> {
    const POSITIONS: bool = A::POSITIONS || B::POSITIONS;

    #[inline(always)]
    fn wants(&self, field: FieldId) -> bool {
        self.0.wants(field) || self.1.wants(field)
    }

    both! {
        at(bit: u64);
        after(bit: u64);
        uint(field: FieldId, value: u64);
        sint(field: FieldId, value: i64);
        wide(field: FieldId, value: Wide<'_>);
        float(field: FieldId, value: f64);
        float128(field: FieldId, bits: u128);
        boolean(field: FieldId, value: bool);
        bits(field: FieldId, value: u64);
        text(field: FieldId, text: &[u8]);
        blob(field: FieldId, bytes: &[u8]);
        begin_struct(field: FieldId);
        end_struct(field: FieldId);
        begin_array(field: FieldId, length: u64);
        numbers(field: FieldId, bytes: &[u8], number: Number);
        end_array(field: FieldId);
        begin_optional(field: FieldId, present: bool, selector: u64);
        end_optional(field: FieldId);
        begin_variant(field: FieldId, selected: u32, selector: u64);
        end_variant(field: FieldId);
    }
}
