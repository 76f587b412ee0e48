//! JSON, written piece by piece.

use kymo_text::Line;

/// A JSON text in the making: commas come by themselves.
#[derive(Debug, Default)]
pub(crate) struct Json(Line);

impl Json {
    /// A comma, unless this is the first of a list or the value of a key.
    fn separate(&mut self) {
        if !matches!(self.0.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push_byte(b',');
        }
    }

    pub(crate) fn begin_object(&mut self) {
        self.separate();
        self.0.push_byte(b'{');
    }

    /// Begins a report: its first key is the version of its schema, which changes when a key is removed or changes its
    /// meaning.
    pub(crate) fn begin_report(&mut self) {
        self.begin_object();
        self.key("schema");
        self.number(1);
    }

    pub(crate) fn end_object(&mut self) {
        self.0.push_byte(b'}');
    }

    pub(crate) fn begin_array(&mut self) {
        self.separate();
        self.0.push_byte(b'[');
    }

    pub(crate) fn end_array(&mut self) {
        self.0.push_byte(b']');
    }

    pub(crate) fn key(&mut self, key: &str) {
        self.separate();
        self.0.json_string(key.as_bytes());
        self.0.push_byte(b':');
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.separate();
        self.0.json_string(text);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.separate();
        self.0.decimal(number);
    }

    pub(crate) fn signed(&mut self, number: i64) {
        self.separate();
        self.0.signed(number);
    }

    /// A number that may not be one, which is then null.
    pub(crate) fn float(&mut self, number: f64) {
        if number.is_finite() {
            self.separate();
            self.0.shortest(number, 64);
        } else {
            self.null();
        }
    }

    /// A value that is JSON already.
    pub(crate) fn value(&mut self, json: &str) {
        self.separate();
        self.0.push(json.as_bytes());
    }

    pub(crate) fn null(&mut self) {
        self.separate();
        self.0.push(b"null");
    }

    pub(crate) fn optional_number(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.number(number),
            None => self.null(),
        }
    }

    pub(crate) fn optional_signed(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.signed(number),
            None => self.null(),
        }
    }

    pub(crate) fn optional_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text.as_bytes()),
            None => self.null(),
        }
    }

    /// The text, with a newline.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.push_byte(b'\n');
        self.0.as_bytes().to_vec()
    }
}
