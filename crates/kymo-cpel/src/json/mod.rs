//! CPEL files as JSON lines, from which the same file can be made again.
//!
//! One line describes the file, one each section, and one each event:
//!
//! ```json
//! {"timestamp":null,"recording":"PATH","kind":"notification","cpel":"file","byte_order":"big","unused":0,"date":0}
//! {"timestamp":null,"recording":"PATH","kind":"notification","cpel":"section","section":0,"type":1,"text":"FileStrtab\u0000..."}
//! {"timestamp":null,"recording":"PATH","kind":"notification","cpel":"section","section":1,"type":3,"strings":"FileStrtab","entries":[[5,11,19]]}
//! {"timestamp":null,"recording":"PATH","kind":"notification","cpel":"section","section":2,"type":5,"strings":"FileStrtab","clock":1000000000}
//! {"timestamp":10,"recording":"PATH","kind":"event","schema":1,"track":0,...,"event_class":5,"datum":7,...,"section":2,"ticks":10}
//! ```
//!
//! A string table has its `text`, definitions have `entries`: the numbers of each. What is in a
//! section of another type, or lies otherwise than it should, is there as hexadecimal `bytes`.
//! [`describe`] writes the first lines; those of events are written where events are shown, with
//! [`event_end`] at their ends. [`read`] makes the file of the lines.

mod parse;
mod read;

use std::io;

use kymo_machine::ByteOrder;
use kymo_text::Line;

pub use self::read::{Error, begins, is_log, read};
use crate::file::{File, TABLE_NAME_SIZE, kind};
use crate::u32_at;

/// The byte order as it is called.
const fn order_name(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Big => "big",
        ByteOrder::Little => "little",
    }
}

/// Numbers of each definition of a type of sections.
const fn numbers_of(kind: u32) -> Option<usize> {
    match kind {
        kind::SYMBOLS | kind::TRACK_DEFINITIONS => Some(2),
        kind::EVENT_DEFINITIONS => Some(3),
        _ => None,
    }
}

/// Writes the lines that contain everything of a file but its events, in parts, since they may be
/// larger than the file. `recording` is what the recording is called in all lines.
///
/// # Errors
///
/// That of `write`, which gets the parts in order.
pub fn describe(file: &File<'_>, recording: &[u8], write: Write<'_>) -> io::Result<()> {
    let begin = |what: &str, out: &mut Line| {
        out.push(b"{\"timestamp\":null,\"recording\":");
        out.json_string(recording);
        out.push(b",\"kind\":\"notification\",\"cpel\":");
        out.json_string(what.as_bytes());
    };
    let order = file.header.order;
    let mut parts = Parts {
        line: Line::new(),
        write,
    };
    let out = &mut parts.line;
    begin("file", out);
    member("byte_order", out);
    out.json_string(order_name(order).as_bytes());
    number("unused", file.header.unused.into(), out);
    number("date", file.header.date.into(), out);
    out.push(b"}\n");
    for (position, section) in file.sections.iter().enumerate() {
        let out = &mut parts.line;
        begin("section", out);
        number("section", position as u64, out);
        number("type", section.kind.into(), out);
        let data = file.data(section);
        let clock = u32_at(data, TABLE_NAME_SIZE + 4, order);
        match (section.kind, data.split_first_chunk(), clock) {
            (kind::STRINGS, ..) => {
                member("text", out);
                parts.text(data)?;
            }
            // Their events have lines of their own.
            (kind::EVENTS, Some((field, _)), Some(clock)) => {
                member("strings", out);
                out.json_string(name(field));
                number("clock", clock.into(), out);
            }
            (kind, Some((field, _)), _) if is_filled_up(field) => {
                match definitions(kind, data, order) {
                    Some((size, words)) => {
                        member("strings", out);
                        out.json_string(name(field));
                        member("entries", out);
                        parts.entries(words, size, order)?;
                    }
                    None => parts.hexadecimal(data)?,
                }
            }
            _ => parts.hexadecimal(data)?,
        }
        parts.line.push(b"}\n");
        parts.pass_on(PART)?;
    }
    parts.pass_on(1)
}

/// Appends what the line of an event ends with: its section, its ticks, and its position in the
/// section, which matters where that is not in the order of time.
pub fn event_end(section: usize, ticks: u64, position: Option<u32>, out: &mut Line) {
    number("section", section as u64, out);
    number("ticks", ticks, out);
    if let Some(position) = position {
        number("position", position.into(), out);
    }
    out.push(b"}\n");
}

/// The name of a string table, with which sections begin that refer to one.
fn name(field: &[u8; TABLE_NAME_SIZE]) -> &[u8] {
    let len = memchr::memchr(0, field).unwrap_or(TABLE_NAME_SIZE);
    &field[..len]
}

/// Whether nothing is behind the end of a name.
fn is_filled_up(field: &[u8; TABLE_NAME_SIZE]) -> bool {
    field[name(field).len()..].iter().all(|&byte| byte == 0)
}

/// The number of numbers in each definition, and all these numbers; `None` if the section has a different count.
fn definitions(kind: u32, data: &[u8], order: ByteOrder) -> Option<(usize, &[[u8; 4]])> {
    let size = numbers_of(kind)?;
    let count = usize::try_from(u32_at(data, TABLE_NAME_SIZE, order)?).ok()?;
    let (words, rest) = data.get(TABLE_NAME_SIZE + 4..)?.as_chunks::<4>();
    let is_whole = rest.is_empty() && count.checked_mul(size) == Some(words.len());
    is_whole.then_some((size, words))
}

/// Takes parts of a text.
pub type Write<'w> = &'w mut dyn FnMut(&[u8]) -> io::Result<()>;

/// Text is passed on in parts of about this size.
const PART: usize = 64 << 10;

/// A text of which little is kept.
struct Parts<'w> {
    line: Line,
    write: Write<'w>,
}

impl Parts<'_> {
    /// Passes on what there is, if it is as much as this.
    fn pass_on(&mut self, least: usize) -> io::Result<()> {
        if self.line.len() >= least {
            (self.write)(self.line.as_bytes())?;
            self.line.clear();
        }
        Ok(())
    }

    fn text(&mut self, mut rest: &[u8]) -> io::Result<()> {
        self.line.push_byte(b'"');
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(part_of_text(rest));
            self.line.json_text(part);
            self.pass_on(PART)?;
            rest = behind;
        }
        self.line.push_byte(b'"');
        Ok(())
    }

    fn entries(&mut self, words: &[[u8; 4]], size: usize, order: ByteOrder) -> io::Result<()> {
        self.line.push_byte(b'[');
        for (position, entry) in words.chunks(size).enumerate() {
            let out = &mut self.line;
            out.push(if position == 0 { b"[" } else { b",[" });
            for (position, word) in entry.iter().enumerate() {
                if position > 0 {
                    out.push_byte(b',');
                }
                out.decimal(u32_at(word, 0, order).unwrap_or(0).into());
            }
            out.push_byte(b']');
            self.pass_on(PART)?;
        }
        self.line.push_byte(b']');
        Ok(())
    }

    fn hexadecimal(&mut self, data: &[u8]) -> io::Result<()> {
        member("bytes", &mut self.line);
        self.line.push_byte(b'"');
        for part in data.chunks(PART) {
            for &byte in part {
                self.line.hex_byte(byte);
            }
            self.pass_on(PART)?;
        }
        self.line.push_byte(b'"');
        Ok(())
    }
}

/// How long the next part of a text is, so that what follows does not begin within a character.
fn part_of_text(text: &[u8]) -> usize {
    if text.len() <= PART {
        return text.len();
    }
    // A character begins three bytes before its last one at the most.
    let begins = |&at: &usize| text[at] & 0xc0 != 0x80;
    (PART - 3..=PART).rev().find(begins).unwrap_or(PART)
}

fn number(name: &str, value: u64, out: &mut Line) {
    member(name, out);
    out.decimal(value);
}

fn member(name: &str, out: &mut Line) {
    out.push_byte(b',');
    out.json_string(name.as_bytes());
    out.push_byte(b':');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_parts_are_whole_ones() {
        // Characters of one to four bytes at each place of a boundary, and bytes that are none.
        for text in ["é", "€", "𝄞", "a\n", "\u{1}"].map(str::as_bytes) {
            for shift in 0..4 {
                let mut long = vec![b'x'; shift];
                long.extend(text.iter().cycle().take(3 * PART));
                are_parts_of(&long);
            }
        }
        are_parts_of(&vec![0x80; 2 * PART]);
        are_parts_of(&vec![0xe2; 2 * PART]);
    }

    fn are_parts_of(text: &[u8]) {
        let mut whole = Line::new();
        whole.json_string(text);
        let mut found = Vec::new();
        let mut write = |part: &[u8]| {
            assert!(part.len() <= 7 * PART);
            found.extend_from_slice(part);
            Ok(())
        };
        let mut parts = Parts {
            line: Line::new(),
            write: &mut write,
        };
        parts.text(text).unwrap();
        parts.pass_on(1).unwrap();
        assert!(found == whole.as_bytes());
    }
}
