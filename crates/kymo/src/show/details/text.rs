//! Indented text.

use kymo_text::Line;

use super::DetailsOptions;
use crate::show::color::Palette;

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

    /// The colours of the text.
    pub(super) fn palette(&self) -> Palette {
        self.options.colors.unwrap_or(Palette::NONE)
    }

    /// Runs something in a colour of the palette.
    pub(super) fn colored(&mut self, color: &str, write: impl FnOnce(&mut Self)) {
        self.push(color);
        write(self);
        self.push(self.palette().reset);
    }

    /// Appends a value.
    pub(super) fn value(&mut self, value: &str) {
        self.colored(self.palette().value, |text| text.push(value));
    }

    /// Appends what an object is.
    pub(super) fn object(&mut self, what: &str) {
        self.colored(self.palette().time, |text| text.push(what));
    }

    /// Appends what is said of an object, or a label.
    pub(super) fn said(&mut self, what: &str) {
        self.colored(self.palette().details.property, |text| text.push(what));
    }

    /// Appends the name of a field, or what stands for one.
    pub(super) fn field(&mut self, name: &str) {
        self.colored(self.palette().field, |text| text.push(name));
    }

    /// Appends the index of an element.
    pub(super) fn index(&mut self, index: u64) {
        self.colored(self.palette().field, |text| {
            text.push("[");
            text.line.grouped(index);
            text.push("]");
        });
    }

    /// Appends the type of a field.
    pub(super) fn kind(&mut self, kind: &str) {
        self.colored(self.palette().details.kind, |text| text.push(kind));
    }

    /// Appends the name of an event class.
    pub(super) fn class(&mut self, name: &str) {
        self.colored(self.palette().details.class, |text| text.push(name));
    }

    /// Appends what stands for nothing.
    pub(super) fn nothing(&mut self, word: &str) {
        self.colored(self.palette().event, |text| text.push(word));
    }

    /// Appends `Yes` or `No`.
    pub(super) fn truth(&mut self, value: bool) {
        let palette = self.palette();
        match value {
            true => self.colored(palette.details.yes, |text| text.push("Yes")),
            false => self.colored(palette.unknown, |text| text.push("No")),
        }
    }

    /// Appends a time of a message.
    pub(super) fn stamp(&mut self, write: impl FnOnce(&mut Self)) {
        self.colored(self.palette().details.stamp, write);
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
        self.colored(self.palette().value, |text| text.line.grouped(value));
    }

    /// Appends a signed number with separators.
    pub(super) fn signed(&mut self, value: i64) {
        self.colored(self.palette().value, |text| text.plain_signed(value));
    }

    /// The same without a colour.
    pub(super) fn plain_signed(&mut self, value: i64) {
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
        self.said(name);
        self.push(": ");
        value(self);
        self.newline();
    }

    pub(super) fn text_property(&mut self, name: &str, value: &str) {
        self.property(name, |text| text.value(value));
    }

    pub(super) fn yes_or_no(&mut self, name: &str, value: bool) {
        self.property(name, |text| text.truth(value));
    }
}
