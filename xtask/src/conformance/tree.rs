//! Values of an event as trees, made by a visitor: slow and plain, to compare with.

use kymo_model::{Base, FieldId, Kind, Schema, Visitor};

/// A value with everything below it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Uint(u64, Base),
    Sint(i64, Base, u32),
    Float(f64),
    Bool(bool),
    Bits(u64, u32),
    Text(Vec<u8>),
    Blob(Vec<u8>),
    Struct(Vec<(String, Value)>),
    Array(Vec<Value>),
    Nothing,
}

impl Value {
    /// The member of a structure.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Struct(members) => members
                .iter()
                .find(|(member, _)| member == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }
}

/// Builds the values of what it visits.
pub(super) struct Grower<'a> {
    schema: &'a Schema,
    /// Compound values that are not yet complete, the outermost first.
    open: Vec<(FieldId, Vec<(String, Value)>)>,
    /// The roots of the scopes, in the order they were visited.
    pub(super) roots: Vec<(FieldId, Value)>,
}

impl<'a> Grower<'a> {
    pub(super) fn new(schema: &'a Schema) -> Self {
        Self {
            schema,
            open: Vec::new(),
            roots: Vec::new(),
        }
    }

    fn put(&mut self, field: FieldId, value: Value) {
        match self.open.last_mut() {
            Some((_, parts)) => {
                let name = self.schema.field(field).name.as_deref().unwrap_or_default();
                parts.push((name.to_string(), value));
            }
            None => self.roots.push((field, value)),
        }
    }

    fn begin(&mut self, field: FieldId) {
        self.open.push((field, Vec::new()));
    }

    fn end(&mut self, field: FieldId, make: impl FnOnce(Vec<(String, Value)>) -> Value) {
        let (opened, parts) = self.open.pop().expect("what ends has begun");
        assert_eq!(opened, field, "what began last ends first");
        self.put(field, make(parts));
    }

    fn base(&self, field: FieldId) -> (Base, u32) {
        match self.schema.field(field).kind {
            Kind::Uint { base, bits, .. } | Kind::Sint { base, bits, .. } => (base, bits),
            _ => (Base::Decimal, 64),
        }
    }
}

fn only(parts: Vec<(String, Value)>) -> Value {
    parts
        .into_iter()
        .next()
        .map_or(Value::Nothing, |(_, value)| value)
}

impl Visitor for Grower<'_> {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.put(field, Value::Uint(value, self.base(field).0));
    }

    fn sint(&mut self, field: FieldId, value: i64) {
        let (base, bits) = self.base(field);
        self.put(field, Value::Sint(value, base, bits));
    }

    fn float(&mut self, field: FieldId, value: f64) {
        self.put(field, Value::Float(value));
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        self.put(field, Value::Bool(value));
    }

    fn bits(&mut self, field: FieldId, value: u64) {
        let bits = match self.schema.field(field).kind {
            Kind::BitArray { bits } | Kind::BitMap { bits, .. } => bits,
            _ => 64,
        };
        self.put(field, Value::Bits(value, bits));
    }

    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.put(field, Value::Text(text.to_vec()));
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.put(field, Value::Blob(bytes.to_vec()));
    }

    fn begin_struct(&mut self, field: FieldId) {
        self.begin(field);
    }

    fn end_struct(&mut self, field: FieldId) {
        self.end(field, Value::Struct);
    }

    fn begin_array(&mut self, field: FieldId, _length: u64) {
        self.begin(field);
    }

    fn end_array(&mut self, field: FieldId) {
        self.end(field, |parts| {
            Value::Array(parts.into_iter().map(|(_, value)| value).collect())
        });
    }

    fn begin_optional(&mut self, field: FieldId, _present: bool, _selector: u64) {
        self.begin(field);
    }

    fn end_optional(&mut self, field: FieldId) {
        self.end(field, only);
    }

    fn begin_variant(&mut self, field: FieldId, _selected: u32, _selector: u64) {
        self.begin(field);
    }

    fn end_variant(&mut self, field: FieldId) {
        self.end(field, only);
    }
}
