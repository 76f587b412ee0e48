//! Chosen fields of events, captured while they are decoded.
//!
//! A [`Selection`] is a [`Visitor`] that keeps the values of a few fields of one
//! [`Schema`] in slots, and ignores the rest. Filters are built on it. The slots are reused from event to event: capturing allocates nothing
//! once the buffer for texts is as long as those of one event.
//!
//! ```
//! use kymo_model::{Base, Kind, Pick, Schema, Scope, Selection, Value, Visitor};
//!
//! let mut schema = Schema::new();
//! let payload = schema.push_root(Scope::Payload, Kind::Struct);
//! let list = schema.push_child(payload, Some("list".into()), Kind::Array { length: None });
//! let element = schema.push_child(
//!     list,
//!     None,
//!     Kind::Uint { bits: 8, base: Base::Decimal, labels: None },
//! );
//!
//! // The second element of the list.
//! let mut selection = Selection::new(&schema, [Pick { field: element, elements: vec![1] }]);
//! selection.begin_struct(payload);
//! selection.begin_array(list, 3);
//! for value in [10, 20, 30] {
//!     selection.uint(element, value);
//! }
//! selection.end_array(list);
//! selection.end_struct(payload);
//! assert_eq!(selection.value(0), Value::Uint(20));
//! ```

use crate::targets::Targets;
use crate::{FieldId, Schema, Visitor, Wide};

/// Bytes of texts that a selection which was released has room for.
const KEPT: usize = 512;

/// A value of a field, borrowed from where it was captured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// The field was not there: an option that was not selected, an element beyond the
    /// end, an optional that held nothing.
    Missing,
    /// An unsigned integer.
    Uint(u64),
    /// A signed integer.
    Sint(i64),
    /// A floating point number; one of 128 bits was rounded to the nearest.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A bit array or bit map.
    Bits(u64),
    /// Text: UTF-8, unless the recording is wrong. An integer of more than 64 bits is the text
    /// that shows it.
    Text(&'a [u8]),
    /// Bytes that are not text.
    Blob(&'a [u8]),
    /// An array: its length.
    Array(u64),
    /// Another compound field; it was there.
    Compound,
}

impl Value<'_> {
    /// The value as a number, if it is one.
    pub fn to_f64(self) -> Option<f64> {
        match self {
            Self::Uint(value) | Self::Bits(value) => Some(value as f64),
            Self::Sint(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Bool(value) => Some(f64::from(u8::from(value))),
            _ => None,
        }
    }
}

/// A field, and where it lies in arrays which of their elements is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pick {
    /// The field.
    pub field: FieldId,
    /// For each array on the way from the scope's root to the field, outermost first,
    /// the element counted from 0. Where one is missing, the last element counts.
    pub elements: Vec<u64>,
}

impl From<FieldId> for Pick {
    fn from(field: FieldId) -> Self {
        Self {
            field,
            elements: Vec::new(),
        }
    }
}

/// A value as it is kept: texts lie in the selection's buffer.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Missing,
    Uint(u64),
    Sint(i64),
    Float(f64),
    Bool(bool),
    Bits(u64),
    Text(usize, usize),
    Blob(usize, usize),
    Array(u64),
    Compound,
}

/// Captures chosen fields of the events of one class (or of packets of one stream).
///
/// It may be used for several schemas if what was chosen is the same in them, but is
/// meant for one: fields of another are ignored or mistaken.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The slots of fields.
    targets: Targets<usize>,
    slots: Vec<Slot>,
    bytes: Vec<u8>,
}

impl Selection {
    /// Captures the fields of these picks: each has a slot, numbered from 0.
    ///
    /// # Panics
    ///
    /// If a field is not of this schema.
    pub fn new(schema: &Schema, picks: impl IntoIterator<Item = Pick>) -> Self {
        let mut selection = Self {
            targets: Targets::new(schema),
            ..Self::default()
        };
        for pick in picks {
            selection.add(schema, &pick);
        }
        selection
    }

    fn add(&mut self, schema: &Schema, pick: &Pick) {
        let elements = self.targets.elements(schema, pick);
        let slot = self.slots.len();
        self.slots.push(Slot::Missing);
        self.targets.push(pick.field, elements, slot);
    }

    /// The fields that it looks at: the chosen ones, and those that determine which of their elements are meant.
    /// Sorted.
    pub fn fields(&self) -> Vec<FieldId> {
        self.targets.fields()
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is chosen.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Forgets the values, before the next event.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.fill(Slot::Missing);
        self.bytes.clear();
    }

    /// Forgets the values, and gives back the memory of long texts: for a selection that may not be
    /// used for long, one of very many.
    pub fn release(&mut self) {
        self.clear();
        self.bytes.shrink_to(KEPT);
    }

    /// The value in a slot.
    ///
    /// # Panics
    ///
    /// If the slot does not exist.
    #[inline]
    pub fn value(&self, slot: usize) -> Value<'_> {
        match self.slots[slot] {
            Slot::Missing => Value::Missing,
            Slot::Uint(value) => Value::Uint(value),
            Slot::Sint(value) => Value::Sint(value),
            Slot::Float(value) => Value::Float(value),
            Slot::Bool(value) => Value::Bool(value),
            Slot::Bits(value) => Value::Bits(value),
            Slot::Text(begin, end) => Value::Text(&self.bytes[begin..end]),
            Slot::Blob(begin, end) => Value::Blob(&self.bytes[begin..end]),
            Slot::Array(length) => Value::Array(length),
            Slot::Compound => Value::Compound,
        }
    }

    #[inline(always)]
    fn put(&mut self, field: FieldId, slot: impl FnOnce(&mut Vec<u8>) -> Slot) {
        if self.targets.has(field) {
            self.act(field, slot);
        }
    }

    #[inline]
    fn act(&mut self, field: FieldId, slot: impl FnOnce(&mut Vec<u8>) -> Slot) {
        self.targets.count(field);
        let mut hits = self.targets.hits(field).peekable();
        if hits.peek().is_some() {
            let slot = slot(&mut self.bytes);
            for &target in hits {
                self.slots[target] = slot;
            }
        }
    }
}

fn keep(buffer: &mut Vec<u8>, bytes: &[u8]) -> (usize, usize) {
    let begin = buffer.len();
    buffer.extend_from_slice(bytes);
    (begin, buffer.len())
}

impl Visitor for Selection {
    #[inline]
    fn wants(&self, field: FieldId) -> bool {
        self.targets.has(field)
    }

    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        self.put(field, |_| Slot::Uint(value));
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        self.put(field, |_| Slot::Sint(value));
    }

    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        self.put(field, |buffer| {
            let begin = buffer.len();
            buffer.extend(b"0x");
            buffer.extend(value.digits());
            Slot::Text(begin, buffer.len())
        });
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.put(field, |_| Slot::Float(value));
    }

    #[inline]
    fn float128(&mut self, field: FieldId, bits: u128) {
        self.put(field, |_| Slot::Float(narrow_float128(bits)));
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.put(field, |_| Slot::Bool(value));
    }

    #[inline]
    fn bits(&mut self, field: FieldId, value: u64) {
        self.put(field, |_| Slot::Bits(value));
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.put(field, |buffer| {
            let (begin, end) = keep(buffer, text);
            Slot::Text(begin, end)
        });
    }

    #[inline]
    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.put(field, |buffer| {
            let (begin, end) = keep(buffer, bytes);
            Slot::Blob(begin, end)
        });
    }

    #[inline]
    fn begin_struct(&mut self, field: FieldId) {
        self.put(field, |_| Slot::Compound);
    }

    #[inline]
    fn begin_array(&mut self, field: FieldId, length: u64) {
        self.put(field, |_| Slot::Array(length));
    }

    #[inline]
    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        self.put(field, |_| {
            if present {
                Slot::Compound
            } else {
                Slot::Missing
            }
        });
    }

    #[inline]
    fn begin_variant(&mut self, field: FieldId, _selected: u32, _selector: u64) {
        self.put(field, |_| Slot::Compound);
    }
}

/// The double nearest to a floating point number of 128 bits (IEEE 754 binary128), ties
/// to even.
pub fn narrow_float128(bits: u128) -> f64 {
    const FRACTION: u32 = 112;
    let sign = ((bits >> 127) as u64) << 63;
    let exponent = ((bits >> FRACTION) & 0x7fff) as i32;
    let fraction = bits & ((1 << FRACTION) - 1);
    if exponent == 0x7fff {
        let quiet_nan = u64::from(fraction != 0) << 51;
        return f64::from_bits(sign | 0x7ff << 52 | quiet_nan);
    }
    // Numbers too small for a double's exponent (all subnormal ones of 128 bits are)
    // lose bits of their fraction.
    let exponent = exponent - 16_383;
    if exponent > 1_023 {
        return f64::from_bits(sign | 0x7ff << 52);
    }
    let shift = (FRACTION - 52) + (-1_022 - exponent).clamp(0, 60) as u32;
    let significand = fraction | 1 << FRACTION;
    let mut rounded = (significand >> shift) as u64;
    let rest = significand & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    if rest > half || (rest == half && rounded & 1 == 1) {
        rounded += 1;
    }
    // The leading bit of the significand adds 1 to the exponent, as does a carry.
    let biased = (exponent + 1_022).max(0) as u64;
    f64::from_bits(sign | ((biased << 52) + rounded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Base, Kind, Scope};

    fn uint() -> Kind {
        Kind::Uint {
            bits: 8,
            base: Base::Decimal,
            labels: None,
        }
    }

    #[test]
    fn values_of_all_kinds_are_kept() {
        let mut schema = Schema::new();
        let root = schema.push_root(Scope::Payload, Kind::Struct);
        let a = schema.push_child(root, Some("a".into()), uint());
        let b = schema.push_child(root, Some("b".into()), Kind::Text);
        let c = schema.push_child(root, Some("c".into()), Kind::Blob);
        let unwanted = schema.push_child(root, Some("d".into()), Kind::Text);
        let mut selection = Selection::new(&schema, [c, b, a, root, b].map(Pick::from));
        for round in 0..2u64 {
            selection.clear();
            assert_eq!(selection.value(2), Value::Missing);
            selection.begin_struct(root);
            selection.uint(a, round);
            selection.text(b, b"text");
            selection.blob(c, b"\0\x01");
            selection.text(unwanted, b"not kept");
            selection.end_struct(root);
            assert_eq!(selection.value(0), Value::Blob(b"\0\x01"));
            assert_eq!(selection.value(1), Value::Text(b"text"));
            assert_eq!(selection.value(2), Value::Uint(round));
            assert_eq!(selection.value(3), Value::Compound);
            assert_eq!(selection.value(4), Value::Text(b"text"));
            assert_eq!(selection.bytes.len(), 6, "one copy each, of wanted ones");
        }
    }

    #[test]
    fn long_texts_give_their_memory_back() {
        let mut schema = Schema::new();
        let text = schema.push_root(Scope::Payload, Kind::Text);
        let mut selection = Selection::new(&schema, [text.into()]);
        selection.text(text, &[b'a'; 1 << 16]);
        selection.clear();
        assert!(selection.bytes.capacity() >= 1 << 16, "for the next event");
        selection.release();
        assert_eq!(selection.value(0), Value::Missing);
        assert!(selection.bytes.capacity() < 1 << 16);
    }

    #[test]
    fn elements_of_nested_arrays_are_counted_each_in_its_array() {
        let mut schema = Schema::new();
        let root = schema.push_root(Scope::Payload, Kind::Struct);
        let rows = schema.push_child(root, Some("rows".into()), Kind::Array { length: None });
        let row = schema.push_child(rows, None, Kind::Array { length: None });
        let cell = schema.push_child(row, None, uint());
        let at = |elements: &[u64]| Pick {
            field: cell,
            elements: elements.to_vec(),
        };
        let paths = [at(&[1, 0]), at(&[0, 2]), at(&[1, 9]), at(&[]), at(&[0])];
        let mut selection = Selection::new(&schema, paths);
        selection.begin_struct(root);
        selection.begin_array(rows, 2);
        for values in [[1, 2, 3], [4, 5, 6]] {
            selection.begin_array(row, 3);
            for value in values {
                selection.uint(cell, value);
            }
            selection.end_array(row);
        }
        selection.end_array(rows);
        selection.end_struct(root);
        let values: Vec<_> = (0..5).map(|slot| selection.value(slot)).collect();
        assert_eq!(
            values,
            [
                Value::Uint(4),
                Value::Uint(3),
                Value::Missing,
                Value::Uint(6),
                Value::Uint(3),
            ]
        );
    }

    #[test]
    fn wide_floats_round_to_the_nearest() {
        let wide = |sign: u128, exponent: i32, fraction: u128| {
            sign << 127 | ((exponent + 16_383) as u128) << 112 | fraction
        };
        assert_eq!(narrow_float128(wide(0, 0, 0)), 1.0);
        assert_eq!(narrow_float128(wide(1, 1, 1 << 111)), -3.0);
        assert_eq!(narrow_float128(0), 0.0);
        assert_eq!(narrow_float128(1 << 127).to_bits(), 1 << 63);
        assert_eq!(narrow_float128(wide(0, 1_024, 0)), f64::INFINITY);
        assert_eq!(
            narrow_float128(wide(0, 1_023, (1 << 112) - 1)),
            f64::INFINITY
        );
        assert_eq!(narrow_float128(wide(0, 16_384, 0)), f64::INFINITY);
        assert!(narrow_float128(wide(0, 16_384, 1)).is_nan());
        // A tie goes to even, anything above it up.
        assert_eq!(narrow_float128(wide(0, 0, 1 << 59)), 1.0);
        assert_eq!(
            narrow_float128(wide(0, 0, (1 << 59) + 1)),
            1.0 + f64::EPSILON
        );
        // Subnormal doubles.
        assert_eq!(narrow_float128(wide(0, -1_022, 0)), f64::MIN_POSITIVE);
        assert_eq!(narrow_float128(wide(0, -1_074, 0)), f64::from_bits(1));
        assert_eq!(narrow_float128(wide(0, -1_075, 0)), 0.0);
        assert_eq!(narrow_float128(wide(0, -1_075, 1)), f64::from_bits(1));
        assert_eq!(narrow_float128(wide(0, -1_080, 0)), 0.0);
    }
}
