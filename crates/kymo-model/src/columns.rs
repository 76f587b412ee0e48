//! Chosen fields of the events of one class, column by column.
//!
//! The columnar surface of the decoder: a column of times and one typed column for each
//! chosen field, filled event by event and handed out in batches. A field that an event
//! does not hold (an option that was not selected, an element beyond the end) is a row
//! that is not valid.

use crate::select::{Pick, Selection, Value};
use crate::{Event, Fault, FieldId, Kind, Schema};

/// Which rows of a column hold a value: one bit a row, the first row the least
/// significant bit of the first byte, as in Apache Arrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    bits: Vec<u8>,
    rows: usize,
    valid: usize,
}

impl Validity {
    fn push(&mut self, valid: bool) {
        if self.rows.is_multiple_of(8) {
            self.bits.push(0);
        }
        if valid && let Some(last) = self.bits.last_mut() {
            *last |= 1 << (self.rows % 8);
        }
        self.rows += 1;
        self.valid += usize::from(valid);
    }

    fn clear(&mut self) {
        *self = Self {
            bits: std::mem::take(&mut self.bits),
            ..Self::default()
        };
        self.bits.clear();
    }

    /// Whether a row holds a value; rows beyond the end do not.
    pub fn get(&self, row: usize) -> bool {
        row < self.rows && self.bits[row / 8] >> (row % 8) & 1 == 1
    }

    /// The bits.
    pub fn bits(&self) -> &[u8] {
        &self.bits
    }

    /// Number of rows that hold a value.
    pub fn count(&self) -> usize {
        self.valid
    }
}

/// The values of a column. A row that is not valid holds a zero, or no bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// Unsigned integers, bit arrays and bit maps.
    Uint(Vec<u64>),
    /// Signed integers.
    Sint(Vec<i64>),
    /// Floating point numbers.
    Float(Vec<f64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Texts.
    Text(Strings),
    /// Bytes that are no texts.
    Blob(Strings),
}

/// Byte strings, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where each begins, and at the end where the last one ends.
    offsets: Vec<usize>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            offsets: vec![0],
        }
    }
}

impl Strings {
    fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.offsets.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.truncate(1);
    }

    /// The string of a row; `None` beyond the last row.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let end = *self.offsets.get(row.checked_add(1)?)?;
        Some(&self.bytes[self.offsets[row]..end])
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All strings without a gap.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each string begins in [`Strings::bytes`], and where the last one ends.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }
}

/// The values of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Which field, and which elements of the arrays it lies in.
    pub pick: Pick,
    /// Its values.
    pub data: ColumnData,
    /// Which rows hold a value.
    pub validity: Validity,
}

impl Column {
    fn new(schema: &Schema, pick: Pick) -> Result<Self, NotColumnar> {
        let data = match schema.field(pick.field).kind {
            Kind::Uint { .. } | Kind::BitArray { .. } | Kind::BitMap { .. } => {
                ColumnData::Uint(Vec::new())
            }
            Kind::Sint { .. } => ColumnData::Sint(Vec::new()),
            Kind::Float { .. } => ColumnData::Float(Vec::new()),
            Kind::Bool { .. } => ColumnData::Bool(Vec::new()),
            Kind::Text => ColumnData::Text(Strings::default()),
            Kind::Blob => ColumnData::Blob(Strings::default()),
            Kind::Struct | Kind::Array { .. } | Kind::Optional | Kind::Variant => {
                return Err(NotColumnar(pick.field));
            }
        };
        Ok(Self {
            pick,
            data,
            validity: Validity::default(),
        })
    }

    fn push(&mut self, value: Value<'_>) {
        let valid = match (&mut self.data, value) {
            (ColumnData::Uint(rows), Value::Uint(value) | Value::Bits(value)) => push(rows, value),
            (ColumnData::Sint(rows), Value::Sint(value)) => push(rows, value),
            (ColumnData::Float(rows), Value::Float(value)) => push(rows, value),
            (ColumnData::Bool(rows), Value::Bool(value)) => push(rows, value),
            (ColumnData::Text(rows), Value::Text(value))
            | (ColumnData::Blob(rows), Value::Blob(value)) => {
                rows.push(value);
                true
            }
            (ColumnData::Uint(rows), _) => !push(rows, 0),
            (ColumnData::Sint(rows), _) => !push(rows, 0),
            (ColumnData::Float(rows), _) => !push(rows, 0.0),
            (ColumnData::Bool(rows), _) => !push(rows, false),
            (ColumnData::Text(rows) | ColumnData::Blob(rows), _) => {
                rows.push(b"");
                false
            }
        };
        self.validity.push(valid);
    }

    fn clear(&mut self) {
        match &mut self.data {
            ColumnData::Uint(rows) => rows.clear(),
            ColumnData::Sint(rows) => rows.clear(),
            ColumnData::Float(rows) => rows.clear(),
            ColumnData::Bool(rows) => rows.clear(),
            ColumnData::Text(rows) | ColumnData::Blob(rows) => rows.clear(),
        }
        self.validity.clear();
    }
}

fn push<T>(rows: &mut Vec<T>, value: T) -> bool {
    rows.push(value);
    true
}

/// A compound field was chosen: its parts make columns, it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotColumnar(pub FieldId);

impl std::fmt::Display for NotColumnar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "field {} is a compound: choose parts of it", self.0.0)
    }
}

impl std::error::Error for NotColumnar {}

/// A batch of rows of one event class.
#[derive(Clone, Debug)]
pub struct Columns {
    selection: Selection,
    /// Nanoseconds on the common line.
    times: Vec<i64>,
    times_validity: Validity,
    columns: Vec<Column>,
}

impl Columns {
    /// Columns for these fields of the events whose class has this schema.
    ///
    /// # Errors
    ///
    /// A chosen field is a compound.
    ///
    /// # Panics
    ///
    /// If a field is not of this schema.
    pub fn new(
        schema: &Schema,
        fields: impl IntoIterator<Item = Pick>,
    ) -> Result<Self, NotColumnar> {
        let columns = fields
            .into_iter()
            .map(|pick| Column::new(schema, pick))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            selection: Selection::new(schema, columns.iter().map(|column| column.pick.clone())),
            times: Vec::new(),
            times_validity: Validity::default(),
            columns,
        })
    }

    /// Adds an event as the last row. Where no field is chosen the event is not decoded.
    ///
    /// # Errors
    ///
    /// The fault at which decoding stopped; no row was added.
    pub fn push<E: Event>(&mut self, event: &E) -> Result<(), Fault> {
        self.selection.clear();
        if !self.columns.is_empty() {
            event.visit(&mut self.selection)?;
        }
        let time = event.timestamp();
        self.times.push(time.map_or(0, |time| time.as_nanos()));
        self.times_validity.push(time.is_some());
        for (slot, column) in self.columns.iter_mut().enumerate() {
            column.push(self.selection.value(slot));
        }
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// When each event happened, in nanoseconds on the common line, and which rows know it.
    pub fn times(&self) -> (&[i64], &Validity) {
        (&self.times, &self.times_validity)
    }

    /// The columns, in the order the fields were chosen.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Removes all rows and keeps their memory for the next batch.
    pub fn clear(&mut self) {
        self.times.clear();
        self.times_validity.clear();
        self.columns.iter_mut().for_each(Column::clear);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kymo_time::Timestamp;

    use super::*;
    use crate::{Base, EventClass, FaultCode, Scope, Visitor};

    /// An event of two fields: a number, and text that may be missing.
    struct TestEvent<'a> {
        class: &'a EventClass,
        time: Option<i64>,
        number: u64,
        text: Option<&'a str>,
        broken: bool,
    }

    impl Event for TestEvent<'_> {
        fn class(&self) -> &EventClass {
            self.class
        }
        fn class_index(&self) -> usize {
            0
        }
        fn timestamp(&self) -> Option<Timestamp> {
            self.time.map(Timestamp::from_nanos)
        }
        fn ticks(&self) -> Option<u64> {
            None
        }
        fn number(&self) -> u64 {
            0
        }
        fn begin_bit(&self) -> u64 {
            0
        }
        fn visit<V: Visitor>(&self, visitor: &mut V) -> Result<(), Fault> {
            visitor.begin_struct(FieldId(0));
            visitor.uint(FieldId(1), self.number);
            if self.broken {
                return Err(Fault::new(FaultCode::BeyondContent, 0, 0));
            }
            let present = self.text.is_some();
            visitor.begin_optional(FieldId(2), present, present.into());
            if let Some(text) = self.text {
                visitor.text(FieldId(3), text.as_bytes());
            }
            visitor.end_optional(FieldId(2));
            visitor.end_struct(FieldId(0));
            Ok(())
        }
    }

    fn class() -> EventClass {
        let mut schema = Schema::new();
        let root = schema.push_root(Scope::Payload, Kind::Struct);
        let number = Kind::Uint {
            bits: 64,
            base: Base::Decimal,
            labels: None,
        };
        schema.push_child(root, Some("number".into()), number);
        let optional = schema.push_child(root, Some("text".into()), Kind::Optional);
        schema.push_child(optional, None, Kind::Text);
        EventClass {
            id: 0,
            stream_class: 0,
            name: Some(Arc::from("test")),
            log_level: None,
            emf_uri: None,
            schema,
        }
    }

    #[test]
    fn batches_fill_and_empty() {
        let class = class();
        let mut columns =
            Columns::new(&class.schema, [FieldId(3), FieldId(1)].map(Pick::from)).unwrap();
        for batch in 0..2 {
            for row in 0..20u64 {
                let event = TestEvent {
                    class: &class,
                    time: (row != 5).then_some(row as i64 - 3),
                    number: row * 10 + batch,
                    text: (row % 3 == 0).then_some("text"),
                    broken: row == 7,
                };
                assert_eq!(columns.push(&event).is_err(), row == 7);
            }
            assert_eq!(columns.len(), 19, "the broken event left no row");
            let (times, known) = columns.times();
            assert_eq!(times[..6], [-3, -2, -1, 0, 1, 0]);
            assert_eq!(known.count(), 18);
            assert!(known.get(4) && !known.get(5) && !known.get(19));
            let [text, number] = columns.columns() else {
                panic!("two columns")
            };
            let ColumnData::Text(texts) = &text.data else {
                panic!("a column of texts")
            };
            assert_eq!(texts.get(0), Some(&b"text"[..]));
            assert_eq!(texts.get(1), Some(&b""[..]));
            assert_eq!(texts.get(19), None);
            assert_eq!(texts.len(), 19);
            assert_eq!(text.validity.count(), 7);
            let ColumnData::Uint(numbers) = &number.data else {
                panic!("a column of numbers")
            };
            assert_eq!(numbers[18], 190 + batch);
            assert_eq!(number.validity.count(), 19);
            assert_eq!(number.validity.bits(), [0xff, 0xff, 0x07]);
            columns.clear();
            assert!(columns.is_empty());
        }
    }

    #[test]
    fn compounds_make_no_column() {
        let class = class();
        assert_eq!(
            Columns::new(&class.schema, [FieldId(2).into()]).err(),
            Some(NotColumnar(FieldId(2)))
        );
    }
}
