//! Metadata that is being written: the text of both languages with braces.

use std::fmt::Write;

use kymo_machine::ByteOrder;

/// Text in lines, each as far from the margin as it lies within braces.
#[derive(Default)]
pub(super) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    pub(super) fn line(&mut self, line: &str) {
        self.start();
        self.end(line);
    }

    /// A line that ends in an opening brace.
    pub(super) fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    /// A line that begins with a closing brace.
    pub(super) fn close(&mut self, line: &str) {
        self.leave();
        self.end(line);
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }

    /// The margin of a line of which more follows.
    pub(super) fn start(&mut self) {
        // Of classes that lie deep, margins would be most of the text.
        let margin = self.depth.min(32);
        self.text.extend(std::iter::repeat_n('\t', margin));
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text += text;
    }

    pub(super) fn end(&mut self, rest: &str) {
        if rest.is_empty() {
            // No margin alone in a line.
            self.text.truncate(self.text.trim_end_matches('\t').len());
        }
        self.text += rest;
        self.text.push('\n');
    }

    pub(super) fn enter(&mut self) {
        self.text += " {\n";
        self.depth += 1;
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.start();
    }
}

/// The word for a byte order.
pub(super) fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

/// Quoted text that the reader takes for `text`.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted += "\\n",
            // Octal escapes have an end, whatever follows; those of C's \x do not.
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(quoted, "\\{:03o}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
