//! JSON that is being written.

use kymo_text::Line;

use super::super::json;
use crate::metadata::write::WriteError;

/// JSON text that is being written.
#[derive(Default)]
pub(in crate::metadata::ctf2) struct Json {
    pub(in crate::metadata::ctf2) text: String,
}

impl Json {
    /// A comma, where something comes before in the same array or object.
    pub(in crate::metadata::ctf2) fn next(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(['{', '[', ':', '\u{1e}']) {
            self.text.push(',');
        }
    }

    pub(in crate::metadata::ctf2) fn open(&mut self, bracket: char) {
        self.next();
        self.text.push(bracket);
    }

    pub(in crate::metadata::ctf2) fn close(&mut self, bracket: char) {
        self.text.push(bracket);
    }

    pub(in crate::metadata::ctf2) fn key(&mut self, name: &str) {
        self.string(name);
        self.text.push(':');
    }

    pub(in crate::metadata::ctf2) fn string(&mut self, text: &str) {
        self.next();
        let mut line = Line::new();
        line.json_string(text.as_bytes());
        self.text += &String::from_utf8_lossy(line.as_bytes());
    }

    pub(in crate::metadata::ctf2) fn number(&mut self, number: impl Into<i128>) {
        self.next();
        self.text += &number.into().to_string();
    }

    pub(in crate::metadata::ctf2) fn property(&mut self, name: &str, text: &str) {
        self.key(name);
        self.string(text);
    }

    pub(in crate::metadata::ctf2) fn number_property(
        &mut self,
        name: &str,
        number: impl Into<i128>,
    ) {
        self.key(name);
        self.number(number);
    }

    pub(in crate::metadata::ctf2) fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.property(name, text);
        }
    }

    pub(in crate::metadata::ctf2) fn numbers(
        &mut self,
        numbers: impl IntoIterator<Item = impl Into<i128>>,
    ) {
        self.open('[');
        for number in numbers {
            self.number(number);
        }
        self.close(']');
    }

    pub(in crate::metadata::ctf2) fn ranges(&mut self, ranges: impl Iterator<Item = (i128, i128)>) {
        self.open('[');
        for (low, high) in ranges {
            self.numbers([low, high]);
        }
        self.close(']');
    }

    pub(in crate::metadata::ctf2) fn attributes(
        &mut self,
        attributes: &[(String, String)],
    ) -> Result<(), WriteError> {
        if attributes.is_empty() {
            return Ok(());
        }
        self.key("attributes");
        self.open('{');
        for (space, text) in attributes {
            let value = json::parse(text, 0..text.len());
            if !value.is_ok_and(|(_, end)| end == text.len()) {
                return Err(WriteError(format!(
                    "the attributes of the namespace `{space}` are not JSON"
                )));
            }
            self.key(space);
            self.text += text;
        }
        self.close('}');
        Ok(())
    }
}
