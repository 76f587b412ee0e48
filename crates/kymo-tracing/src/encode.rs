//! Values as bytes of an event, written while `tracing` reports them.
//!
//! A buffer is made of atomic words, so that others may read what is complete while its thread
//! goes on writing: that is how a snapshot or a crash finds whole events without a lock.

use std::fmt::{self, Write};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use tracing_core::field::{Field, Visit};

use crate::classes::{Kind, Signature};

/// Bytes of a word.
pub(crate) const WORD: usize = size_of::<u32>();

/// What stands for a zero in a text, which would end it.
const ZERO: &str = "\u{2400}";

/// What a text ends with of which the end is missing.
const CUT: &str = "\u{2026}";

/// The next place for a word.
#[inline]
pub(crate) fn aligned(at: usize) -> usize {
    at.next_multiple_of(WORD)
}

/// Stores a number of 64 bits in two words, the less significant one first.
#[inline]
pub(crate) fn store([low, high]: &[AtomicU32; 2], value: u64) {
    store_two(low, high, value);
}

/// The same, where the words are not together.
#[inline]
pub(crate) fn store_two(low: &AtomicU32, high: &AtomicU32, value: u64) {
    low.store((value as u32).to_le(), Relaxed);
    high.store(((value >> 32) as u32).to_le(), Relaxed);
}

/// Writes bytes from a byte that is a multiple of four on, with zeros up to the next one that is. The
/// caller has seen to it that there is room; what there is none for is left out.
pub(crate) fn store_bytes(words: &[AtomicU32], at: usize, bytes: &[u8]) {
    let words = words.get(at / WORD..).unwrap_or_default();
    for (word, bytes) in words.iter().zip(bytes.chunks(WORD)) {
        let mut whole = [0; WORD];
        whole[..bytes.len()].copy_from_slice(bytes);
        word.store(u32::from_le_bytes(whole).to_le(), Relaxed);
    }
}

/// Appends the bytes of some words.
pub(crate) fn append(bytes: &mut Vec<u8>, words: &[AtomicU32]) {
    for word in words {
        bytes.extend(u32::from_le(word.load(Relaxed)).to_le_bytes());
    }
}

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Only the first value of the field at this position.
    pub(crate) only: Option<usize>,
    /// Every value as text.
    pub(crate) as_text: bool,
    /// Maximum number of bytes of a text that are written.
    pub(crate) longest: Option<usize>,
}

/// Where values go, and what is found out of them meanwhile.
pub(crate) struct Encoder<'a> {
    /// The words that are not written yet.
    rest: &'a [AtomicU32],
    /// Bytes that go to the first of these, and how many they are.
    pending: u32,
    held: usize,
    /// Whether values are written as they are, one after the other.
    is_plain: bool,
    manner: Manner,
    /// How many bytes the text in hand may have.
    text_left: usize,
    /// Whether the end of the text in hand is missing.
    cut: bool,
    /// The fields from this one on have not been recorded yet.
    next: usize,
    /// What was written.
    pub(crate) signature: Signature,
    /// Whether there was no room for all.
    pub(crate) is_full: bool,
    /// Whether a field came after one that stands behind it, or twice.
    pub(crate) is_disordered: bool,
}

impl<'a> Encoder<'a> {
    /// Writes to words.
    #[inline]
    pub(crate) fn new(rest: &'a [AtomicU32]) -> Self {
        Self {
            rest,
            pending: 0,
            held: 0,
            is_plain: true,
            manner: Manner::default(),
            text_left: usize::MAX,
            cut: false,
            next: 0,
            signature: Signature::default(),
            is_full: false,
            is_disordered: false,
        }
    }

    /// Sets how the values that follow are written.
    pub(crate) fn set_manner(&mut self, manner: Manner) {
        self.is_plain = manner.only.is_none() && !manner.as_text;
        self.manner = manner;
        self.next = 0;
    }

    /// Ends the event, and returns the number of bytes that follow it.
    #[inline]
    pub(crate) fn finish(&mut self) -> usize {
        let left = self.left();
        if self.held > 0 {
            self.store_pending();
        }
        left
    }

    /// Bytes for which there is room.
    #[inline]
    fn left(&self) -> usize {
        (self.rest.len() * WORD).saturating_sub(self.held)
    }

    /// Writes the word that has begun, with zeros at its end.
    fn store_pending(&mut self) {
        match self.rest.split_first() {
            Some((word, rest)) => {
                word.store(self.pending.to_le(), Relaxed);
                self.rest = rest;
            }
            None => self.fill(),
        }
        self.pending = 0;
        self.held = 0;
    }

    /// Marks the encoder as full: nothing more is written.
    #[cold]
    fn fill(&mut self) {
        self.is_full = true;
        self.rest = &[];
    }

    /// Begins a field, if it is to be written.
    #[inline]
    fn begin(&mut self, field: &Field, kind: Kind) -> bool {
        let index = field.index();
        if self.is_plain && index >= self.next {
            self.next = index + 1;
            self.signature.add(index, kind);
            return true;
        }
        self.begin_otherwise(index, kind)
    }

    #[cold]
    fn begin_otherwise(&mut self, index: usize, kind: Kind) -> bool {
        if index < self.next {
            self.is_disordered |= self.manner.only.is_none();
            return false;
        }
        if self.manner.only.is_some_and(|only| only != index) {
            return false;
        }
        self.next = index + 1;
        self.signature.add(index, kind);
        true
    }

    /// A number of 64 bits.
    #[inline]
    fn number(&mut self, bits: u64) {
        if self.held > 0 {
            self.store_pending();
        }
        match self.rest.split_first_chunk() {
            Some((words, rest)) => {
                store(words, bits);
                self.rest = rest;
            }
            None => self.fill(),
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.pending |= u32::from(byte) << (8 * self.held);
        self.held += 1;
        if self.held == WORD {
            self.store_pending();
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() > self.left() {
            return self.fill();
        }
        let before = ((WORD - self.held) % WORD).min(bytes.len());
        let (before, rest) = bytes.split_at(before);
        for &byte in before {
            self.byte(byte);
        }
        let (whole, end) = rest.as_chunks();
        if let Some((words, rest)) = self.rest.split_at_checked(whole.len()) {
            for (word, &chunk) in words.iter().zip(whole) {
                word.store(u32::from_le_bytes(chunk).to_le(), Relaxed);
            }
            self.rest = rest;
        }
        for &byte in end {
            self.byte(byte);
        }
    }

    /// A part of a text: as far as it may be written, with no zero in it.
    fn part(&mut self, text: &str) {
        if self.is_full || self.cut {
            return;
        }
        let mut text = text;
        while let Some(zero) = memchr::memchr(0, text.as_bytes()) {
            self.part_without_zero(&text[..zero]);
            self.part_without_zero(ZERO);
            text = &text[zero + 1..];
        }
        self.part_without_zero(text);
    }

    fn part_without_zero(&mut self, text: &str) {
        if self.cut {
            return;
        }
        let some = match text.len() <= self.text_left {
            true => text,
            false => {
                self.cut = true;
                &text[..text.floor_char_boundary(self.text_left)]
            }
        };
        self.text_left -= some.len();
        self.bytes(some.as_bytes());
    }

    fn begin_text(&mut self) {
        self.text_left = self.manner.longest.unwrap_or(usize::MAX);
        self.cut = false;
    }

    fn end_text(&mut self) {
        if self.cut {
            self.bytes(CUT.as_bytes());
        }
        self.bytes(&[0]);
    }

    fn text(&mut self, text: &str) {
        self.begin_text();
        self.part(text);
        self.end_text();
    }

    fn formatted(&mut self, value: fmt::Arguments<'_>) {
        self.begin_text();
        // What cannot be formatted is as long as it was.
        let _ = self.write_fmt(value);
        self.end_text();
    }

    /// An empty text, for a field without a value.
    pub(crate) fn nothing(&mut self) {
        self.text("");
    }

    /// Whether the field at a position has been recorded.
    pub(crate) fn has_reported(&self, index: usize) -> bool {
        self.next > index
    }
}

/// Does never fail, whatever there is room for: how an event is formatted must not depend on that.
impl Write for Encoder<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.part(text);
        Ok(())
    }
}

impl Visit for Encoder<'_> {
    #[inline]
    fn record_i64(&mut self, field: &Field, value: i64) {
        if self.manner.as_text {
            self.record_debug(field, &value);
        } else if self.begin(field, Kind::Signed) {
            self.number(value.cast_unsigned());
        }
    }

    #[inline]
    fn record_u64(&mut self, field: &Field, value: u64) {
        if self.manner.as_text {
            self.record_debug(field, &value);
        } else if self.begin(field, Kind::Unsigned) {
            self.number(value);
        }
    }

    #[inline]
    fn record_f64(&mut self, field: &Field, value: f64) {
        if self.manner.as_text {
            self.record_debug(field, &value);
        } else if self.begin(field, Kind::Float) {
            self.number(value.to_bits());
        }
    }

    #[inline]
    fn record_bool(&mut self, field: &Field, value: bool) {
        if self.manner.as_text {
            self.record_debug(field, &value);
        } else if self.begin(field, Kind::Bool) {
            self.bytes(&[value.into()]);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.begin(field, Kind::Text) {
            self.text(value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.begin(field, Kind::Text) {
            self.formatted(format_args!("{value:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Value {
        Number(u64),
        Bool(bool),
        Text(String),
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<u64>().prop_map(Value::Number),
            any::<bool>().prop_map(Value::Bool),
            "[a-zß\0€]{0,20}".prop_map(Value::Text),
        ]
    }

    /// The bytes of values, written one by one.
    fn plainly(values: &[Value], longest: Option<usize>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in values {
            match value {
                Value::Number(number) => {
                    bytes.resize(aligned(bytes.len()), 0);
                    bytes.extend(number.to_le_bytes());
                }
                Value::Bool(value) => bytes.push((*value).into()),
                Value::Text(text) => {
                    let text = text.replace('\0', ZERO);
                    let cut = longest.filter(|&longest| longest < text.len());
                    let end = cut.map_or(text.len(), |cut| text.floor_char_boundary(cut));
                    bytes.extend(&text.as_bytes()[..end]);
                    if cut.is_some() {
                        bytes.extend(CUT.as_bytes());
                    }
                    bytes.push(0);
                }
            }
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whole or not at all, and nothing behind the end.
        #[test]
        fn values_become_bytes(
            values in proptest::collection::vec(value(), 0..12),
            words in 0usize..60,
            longest in proptest::option::of(0usize..10),
        ) {
            let all: Vec<AtomicU32> = (0..words).map(|_| AtomicU32::new(u32::MAX)).collect();
            let mut encoder = Encoder::new(&all);
            encoder.set_manner(Manner { longest, ..Manner::default() });
            for value in &values {
                match value {
                    Value::Number(number) => encoder.number(*number),
                    Value::Bool(value) => encoder.bytes(&[(*value).into()]),
                    Value::Text(text) => encoder.text(text),
                }
            }
            let end = words * WORD - encoder.finish();
            let expected = plainly(&values, longest);
            prop_assert_eq!(encoder.is_full, expected.len() > words * WORD);
            let mut bytes = Vec::new();
            append(&mut bytes, &all);
            if !encoder.is_full {
                prop_assert_eq!(end, expected.len());
                prop_assert_eq!(&bytes[..end], &expected[..]);
                prop_assert!(bytes[end..aligned(end)].iter().all(|&byte| byte == 0));
                prop_assert!(bytes[aligned(end)..].iter().all(|&byte| byte == u8::MAX));
            }
        }
    }
}
