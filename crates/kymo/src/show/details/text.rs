//! Indented text.

use kymo_text::Line;

use super::DetailsOptions;

/// Text in the making, and how far what comes next is indented.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) line: Line,
    pub(super) indent: usize,
    pub(super) options: DetailsOptions,
}

impl Text {
    pub(super) fn push(&mut self, text: &str) {
        self.line.push(text.as_bytes());
    }

    pub(super) fn newline(&mut self) {
        self.line.push_byte(b'\n');
    }

    pub(super) fn margin(&mut self) {
        for _ in 0..self.indent {
            self.line.push_byte(b' ');
        }
    }

    /// Runs something further to the right.
    pub(super) fn indented(&mut self, write: impl FnOnce(&mut Self)) {
        self.indent += 2;
        write(self);
        self.indent -= 2;
    }

    /// Appends a number with separators.
    pub(super) fn number(&mut self, value: u64) {
        self.line.grouped(value);
    }

    /// Appends a signed number with separators.
    pub(super) fn signed(&mut self, value: i64) {
        if value < 0 {
            self.line.push_byte(b'-');
        }
        self.line.grouped(value.unsigned_abs());
    }

    /// Appends a number and a noun, with an `s` unless it is one.
    pub(super) fn count(&mut self, count: usize, noun: &str) {
        self.number(count as u64);
        self.push(" ");
        self.push(noun);
        if count != 1 {
            self.push("s");
        }
    }

    /// A line `NAME: ` and what `value` writes.
    pub(super) fn property(&mut self, name: &str, value: impl FnOnce(&mut Self)) {
        self.margin();
        self.push(name);
        self.push(": ");
        value(self);
        self.newline();
    }

    pub(super) fn text_property(&mut self, name: &str, value: &str) {
        self.property(name, |text| text.push(value));
    }

    pub(super) fn yes_or_no(&mut self, name: &str, value: bool) {
        self.text_property(name, if value { "Yes" } else { "No" });
    }
}
