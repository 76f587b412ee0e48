//! JSON, written piece by piece.

use crate::Line;

/// A JSON text in the making: commas come by themselves.
///
/// ```
/// use kymo_text::json::Writer;
///
/// let mut json = Writer::default();
/// json.begin_object();
/// json.entry("name", "x");
/// json.begin_list("sizes");
/// json.value(1_u64);
/// json.value(None::<u64>);
/// json.end_list();
/// json.end_object();
/// assert_eq!(json.finish(), b"{\"name\":\"x\",\"sizes\":[1,null]}\n");
/// ```
#[derive(Debug, Default)]
pub struct Writer(Line);

/// What JSON has one value for.
pub trait Value {
    /// Appends it.
    fn write(self, line: &mut Line);
}

impl Value for u64 {
    fn write(self, line: &mut Line) {
        line.decimal(self);
    }
}

impl Value for i64 {
    fn write(self, line: &mut Line) {
        line.signed(self);
    }
}

impl Value for bool {
    fn write(self, line: &mut Line) {
        line.push(if self { b"true" } else { b"false" });
    }
}

/// Infinities and NaNs are null.
impl Value for f64 {
    fn write(self, line: &mut Line) {
        match self.is_finite() {
            true => line.shortest(self, 64),
            false => line.push(b"null"),
        }
    }
}

/// Bytes that are not UTF-8 are written as [`Line::json_string`] does.
impl Value for &[u8] {
    fn write(self, line: &mut Line) {
        line.json_string(self);
    }
}

impl Value for &str {
    fn write(self, line: &mut Line) {
        line.json_string(self.as_bytes());
    }
}

/// What is missing is null.
impl<V: Value> Value for Option<V> {
    fn write(self, line: &mut Line) {
        match self {
            Some(value) => value.write(line),
            None => line.push(b"null"),
        }
    }
}

impl Writer {
    /// A comma, unless this is the first of a list or the value of a key.
    fn separate(&mut self) {
        if !matches!(self.0.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push_byte(b',');
        }
    }

    /// Begins an object.
    pub fn begin_object(&mut self) {
        self.separate();
        self.0.push_byte(b'{');
    }

    /// Ends an object.
    pub fn end_object(&mut self) {
        self.0.push_byte(b'}');
    }

    /// Begins a list.
    pub fn begin_array(&mut self) {
        self.separate();
        self.0.push_byte(b'[');
    }

    /// Begins the list of a key.
    pub fn begin_list(&mut self, key: &str) {
        self.key(key);
        self.begin_array();
    }

    /// Ends a list.
    pub fn end_list(&mut self) {
        self.0.push_byte(b']');
    }

    /// A key, whose value comes next.
    pub fn key(&mut self, key: &str) {
        self.separate();
        self.0.json_string(key.as_bytes());
        self.0.push_byte(b':');
    }

    /// A value in a list, or behind a key.
    pub fn value(&mut self, value: impl Value) {
        self.separate();
        value.write(&mut self.0);
    }

    /// A key and its value.
    pub fn entry(&mut self, key: &str, value: impl Value) {
        self.key(key);
        value.write(&mut self.0);
    }

    /// A value that is missing.
    pub fn null(&mut self) {
        self.value(None::<u64>);
    }

    /// A list of texts.
    pub fn texts<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        self.begin_array();
        texts.into_iter().for_each(|text| self.value(text));
        self.end_list();
    }

    /// A value that is JSON already.
    pub fn raw(&mut self, json: impl AsRef<[u8]>) {
        self.separate();
        self.0.push(json.as_ref());
    }

    /// The text so far.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The text, with a newline.
    pub fn finish(mut self) -> Vec<u8> {
        self.0.push_byte(b'\n');
        self.0.as_bytes().to_vec()
    }
}
