//! Texts and BLOBs.

use kymo_model::{FieldId, Visitor};

use super::super::text;
use super::Encode;
use crate::class::Encoding;
use crate::decode::op::{BitsOp, BytesOp, Count, Op, Shown};

impl Encode<'_> {
    /// Puts text or bytes of which only the number is known.
    fn sized(&mut self, at: BytesOp, bytes: &[u8], size: u64) {
        let begin = self.buffer.aligned(at.align());
        let end = size.checked_mul(8).and_then(|bits| begin.checked_add(bits));
        if self.room(end.unwrap_or(u64::MAX)) {
            self.buffer.put_bytes(begin, bytes);
            self.buffer.pos = begin + size * 8;
            self.step();
        }
    }

    pub(super) fn write_text(&mut self, text: &[u8]) {
        if self.stop.is_some() {
            return;
        }
        let mut at = self.next;
        if at >= self.end {
            return self.unexpected("text");
        }
        let is_inline = matches!(
            self.program.ops[at],
            Op::Bits(BitsOp {
                shown: Shown::Count,
                ..
            })
        );
        if is_inline {
            at += 1;
        }
        let (field, encoding, length) = match self.program.ops.get(at) {
            Some(Op::Text(op)) => (op.field, Encoding::Utf8, None),
            Some(&Op::WideText { at, encoding }) => (at.field, encoding, None),
            Some(&Op::SizedText {
                at,
                encoding,
                length,
            }) => (at.field, encoding, Some(length)),
            Some(&Op::Array {
                field, count, body, ..
            }) if self.lenient && body == 1 => {
                return self.text_elements(field, count, text);
            }
            _ => return self.unexpected("text"),
        };
        if memchr::memchr(0, text).is_some() {
            return self.fail(
                field,
                "the text holds a zero, at which readers take it to end",
            );
        }
        let mut converted = std::mem::take(&mut self.scratch.text);
        let is_text = text::encode(text, encoding, &mut converted);
        if is_text {
            let text = match encoding {
                Encoding::Utf8 => text,
                _ => &converted,
            };
            self.put_text(at, text, encoding, length);
        } else {
            self.fail(field, "the text is not UTF-8, so it has no other encoding");
        }
        self.scratch.text = converted;
    }

    /// Writes text that is encoded already; `op` is its instruction, before which its length may lie.
    fn put_text(&mut self, op: usize, text: &[u8], encoding: Encoding, length: Option<Count>) {
        let there = text.len() as u64;
        self.inline_length(there);
        if self.stop.is_some() {
            return;
        }
        match (self.program.ops[op], length) {
            (Op::SizedText { at, .. }, Some(length)) => {
                let size = match length {
                    Count::Static(size) => Some(size),
                    Count::Last => Some(there),
                    Count::Slot(slot) => self.slot(slot, there, at.field),
                };
                match size {
                    Some(size) if size >= there => self.sized(at, text, size),
                    Some(size) => self.fail(
                        at.field,
                        format!(
                            "the text has {there} bytes, more than the {size} that it has room for"
                        ),
                    ),
                    None => {}
                }
            }
            (Op::Text(at) | Op::WideText { at, .. }, _) => {
                let end = crate::decode::text::unit(encoding) as u64;
                self.sized(at, text, there + end);
            }
            _ => {}
        }
    }

    /// Text where there is an array of bytes: what is left of it is zero.
    fn text_elements(&mut self, field: FieldId, count: Count, text: &[u8]) {
        let there = text.len() as u64;
        let size = match count {
            Count::Static(size) => size,
            Count::Last => there,
            Count::Slot(slot) => match self.slot(slot, there, field) {
                Some(size) => size,
                None => return,
            },
        };
        if size < there {
            return self.fail(
                field,
                format!("the text has {there} bytes, more than the {size} that it has room for"),
            );
        }
        self.begin_elements(size);
        for byte in text
            .iter()
            .copied()
            .chain(std::iter::repeat(0))
            .take(size as usize)
        {
            if self.stop.is_some() {
                return;
            }
            match self.is_signed() {
                true => self.number(byte as i8 as u64, (byte as i8) < 0),
                false => self.number(byte.into(), false),
            }
        }
        self.end_elements();
    }

    pub(super) fn write_blob(&mut self, bytes: &[u8]) {
        if self.stop.is_some() {
            return;
        }
        let there = bytes.len() as u64;
        let in_made_struct = self.made_struct();
        self.made_number(there);
        let at = match self.upcoming() {
            Some(Op::Bits(op)) if op.shown == Shown::Count => self.next + 1,
            Some(_) => self.next,
            None => return self.unexpected("bytes"),
        };
        match self.program.ops.get(at) {
            Some(&Op::Blob { at, length }) => {
                self.inline_length(there);
                if self.stop.is_none() && self.check_count(at.field, length, there, "bytes") {
                    self.sized(at, bytes, there);
                }
            }
            Some(Op::Array { body: 1, .. }) if self.lenient => {
                self.begin_elements(there);
                for &byte in bytes {
                    self.number(byte.into(), false);
                }
                self.end_elements();
            }
            _ => self.unexpected("bytes"),
        }
        if in_made_struct {
            self.end_struct(FieldId(0));
        }
    }
}
