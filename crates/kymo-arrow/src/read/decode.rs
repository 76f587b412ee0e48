//! The values of a page, decoded as they are asked for.
//!
//! Encodings.md of Parquet describes how they are encoded: plain, by their places in a dictionary, as runs, as differences,
//! texts behind their lengths or with what they share with the one before, bytes of numbers apart from each other.

use std::borrow::Cow;

use bytes::Bytes;

use super::Problem;
use super::budget::Budget;
use super::column::{Texts, Values, View};
use super::footer::Physical;
use super::numbers::{Differences, Runs};
use super::schema::{Content, Leaf};

/// `Encoding` of parquet.thrift.
const NAMES: [&str; 10] = [
    "PLAIN",
    "1",
    "PLAIN_DICTIONARY",
    "RLE",
    "BIT_PACKED",
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY",
    "BYTE_STREAM_SPLIT",
];
pub(super) const PLAIN: u64 = 0;
pub(super) const PLAIN_DICTIONARY: u64 = 2;
pub(super) const RLE: u64 = 3;
pub(super) const BIT_PACKED: u64 = 4;
const DELTA_BINARY_PACKED: u64 = 5;
const DELTA_LENGTH_BYTE_ARRAY: u64 = 6;
const DELTA_BYTE_ARRAY: u64 = 7;
const RLE_DICTIONARY: u64 = 8;
const BYTE_STREAM_SPLIT: u64 = 9;

/// Decimals have no more bytes.
const MOST_DECIMAL_BYTES: usize = 32;
const NANOS_OF_DAY: i64 = 86_400_000_000_000;
/// 1970-01-01 as a Julian day.
const EPOCH_DAY: i64 = 2_440_588;

pub(super) fn name(encoding: u64) -> String {
    let name = usize::try_from(encoding).ok().and_then(|at| NAMES.get(at));
    name.map_or_else(|| encoding.to_string(), |&name| name.to_owned())
}

fn short() -> Problem {
    "its values end before the last one".to_owned()
}

/// The values of a page.
#[derive(Debug)]
pub(super) struct PageValues {
    bytes: Bytes,
    /// Where the next value is, or its text.
    at: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Plain,
    Dictionary(Runs),
    Runs(Runs),
    Numbers(Differences),
    Lengths(Differences),
    /// How much each text shares with the one before, and how long the rest is.
    Prefixes {
        shared: Differences,
        lengths: Differences,
        before: Vec<u8>,
    },
    /// The first bytes of this number of values, then the second ones.
    Split(usize),
}

impl Values {
    /// No values of a leaf.
    pub(super) fn none(leaf: &Leaf) -> Self {
        match leaf.physical {
            Physical::Bool => Self::Bits(Vec::new()),
            Physical::Int32 | Physical::Int64 | Physical::Int96 => Self::Numbers(Vec::new()),
            Physical::Float | Physical::Double => Self::Floats(Vec::new()),
            Physical::FixedBytes if leaf.content == Content::Float16 => Self::Floats(Vec::new()),
            Physical::Bytes | Physical::FixedBytes => Self::Texts(Texts::default()),
        }
    }
}

impl PageValues {
    /// Those of a page with this number of values and nulls.
    pub(super) fn new(
        leaf: &Leaf,
        bytes: Bytes,
        encoding: u64,
        count: u64,
        dictionary: Option<&Values>,
    ) -> Result<Self, Problem> {
        use Physical::{Bool, Bytes, Double, FixedBytes, Float, Int32, Int64};
        let mut at = 0;
        let state = match (encoding, leaf.physical) {
            // A page of nulls has nothing at all.
            (PLAIN, _) => State::Plain,
            _ if bytes.is_empty() => State::Plain,
            (PLAIN_DICTIONARY | RLE_DICTIONARY, _) => {
                let dictionary = dictionary.ok_or("it has no dictionary before it")?;
                State::Dictionary(Runs::places(&bytes, dictionary.len())?)
            }
            (RLE, Bool) => State::Runs(Runs::levels(bytes.slice(bytes.len().min(4)..), 1)?),
            (DELTA_BINARY_PACKED, Int32 | Int64) => {
                State::Numbers(Differences::new(bytes.clone(), 0, count)?)
            }
            (DELTA_LENGTH_BYTE_ARRAY, Bytes) => {
                let lengths = Differences::new(bytes.clone(), 0, count)?;
                at = lengths.end()?;
                State::Lengths(lengths)
            }
            (DELTA_BYTE_ARRAY, Bytes | FixedBytes) => {
                let shared = Differences::new(bytes.clone(), 0, count)?;
                let lengths = Differences::new(bytes.clone(), shared.end()?, count)?;
                at = lengths.end()?;
                State::Prefixes {
                    shared,
                    lengths,
                    before: Vec::new(),
                }
            }
            (BYTE_STREAM_SPLIT, Int32 | Int64 | Float | Double | FixedBytes) => {
                State::Split(bytes.len() / leaf.width.max(1))
            }
            (other, physical) => {
                return Err(format!(
                    "its encoding is {}, which kymo does not read for values of type {physical:?}",
                    name(other)
                ));
            }
        };
        Ok(Self { bytes, at, state })
    }

    /// Appends the next values.
    pub(super) fn read(
        &mut self,
        leaf: &Leaf,
        count: usize,
        dictionary: Option<&Values>,
        to: &mut Values,
        budget: &mut Budget,
    ) -> Result<(), Problem> {
        match (&mut self.state, to) {
            (State::Dictionary(runs), to) => {
                let mut places = Vec::with_capacity(count);
                runs.read(count, &mut places)?;
                let dictionary = dictionary.ok_or("it has no dictionary before it")?;
                copy(dictionary, &places, to);
            }
            (State::Plain, Values::Bits(bits)) => {
                let end = self.at + count;
                if end > self.bytes.len().saturating_mul(8) {
                    return Err(short());
                }
                bits.extend((self.at..end).map(|at| self.bytes[at / 8] >> (at % 8) & 1 == 1));
                self.at = end;
            }
            (State::Runs(runs), Values::Bits(bits)) => {
                let mut numbers = Vec::with_capacity(count);
                runs.read(count, &mut numbers)?;
                bits.extend(numbers.into_iter().map(|number| number == 1));
            }
            (State::Numbers(differences), Values::Numbers(numbers)) => {
                let first = numbers.len();
                numbers.reserve(count);
                match leaf.physical {
                    Physical::Int32 => {
                        differences.read(count, |value| numbers.push((value as i32).into()))?;
                    }
                    _ => differences.read(count, |value| numbers.push(value))?,
                }
                narrow(leaf, &mut numbers[first..]);
            }
            (State::Plain, Values::Texts(texts)) if leaf.physical == Physical::Bytes => {
                let buffer = texts.add(self.bytes.clone());
                let first = texts.views.len();
                texts.views.reserve(count);
                for _ in 0..count {
                    let rest = self.bytes.get(self.at..).unwrap_or_default();
                    let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
                    let length = u32::from_le_bytes(*length);
                    if length as usize > rest.len() {
                        return Err(short());
                    }
                    texts.views.push(View {
                        buffer,
                        begin: self.at as u32 + 4,
                        length,
                    });
                    self.at += 4 + length as usize;
                }
                check(leaf, texts, first)?;
            }
            (State::Lengths(lengths), Values::Texts(texts)) => {
                let buffer = texts.add(self.bytes.clone());
                let first = texts.views.len();
                let (mut at, mut is_wrong) = (self.at, false);
                texts.views.reserve(count);
                lengths.read(count, |length| {
                    let length = u32::try_from(length).unwrap_or(u32::MAX);
                    is_wrong |= length as usize > self.bytes.len() - at;
                    if !is_wrong {
                        texts.views.push(View {
                            buffer,
                            begin: at as u32,
                            length,
                        });
                        at += length as usize;
                    }
                })?;
                self.at = at;
                if is_wrong {
                    return Err(short());
                }
                check(leaf, texts, first)?;
            }
            (
                State::Prefixes {
                    shared,
                    lengths,
                    before,
                },
                to,
            ) => {
                let mut content = Vec::new();
                let mut views = Vec::with_capacity(count);
                for _ in 0..count {
                    let (mut prefix, mut length) = (0, 0);
                    shared.read(1, |value| prefix = value)?;
                    lengths.read(1, |value| length = value)?;
                    let prefix = usize::try_from(prefix).ok();
                    let prefix = prefix.filter(|&prefix| prefix <= before.len());
                    let rest = usize::try_from(length)
                        .ok()
                        .and_then(|length| self.bytes.get(self.at..self.at.checked_add(length)?));
                    let (Some(prefix), Some(rest)) = (prefix, rest) else {
                        return Err(short());
                    };
                    self.at += rest.len();
                    before.truncate(prefix);
                    before.extend_from_slice(rest);
                    budget.unpack(before.len() as u64)?;
                    views.push(View {
                        buffer: 0,
                        begin: content.len() as u32,
                        length: before.len() as u32,
                    });
                    content.extend_from_slice(before);
                }
                match to {
                    Values::Texts(texts) => {
                        let buffer = texts.add(content.into());
                        let first = texts.views.len();
                        texts
                            .views
                            .extend(views.iter().map(|&view| View { buffer, ..view }));
                        if leaf.physical == Physical::FixedBytes
                            && views.iter().any(|view| view.length as usize != leaf.width)
                        {
                            return Err(format!("a value has not {} bytes", leaf.width));
                        }
                        check(leaf, texts, first)?;
                    }
                    to => fixed(leaf, &content.into(), count, to)?,
                }
            }
            (State::Plain, to) => {
                let size = count.checked_mul(leaf.width);
                let end = size.and_then(|size| self.at.checked_add(size));
                let end = end.filter(|&end| end <= self.bytes.len());
                let range = self.at..end.ok_or_else(short)?;
                self.at = range.end;
                fixed(leaf, &self.bytes.slice(range), count, to)?;
            }
            (State::Split(values), to) => {
                let range = self.at..self.at + count;
                if range.end > *values {
                    return Err(short());
                }
                self.at = range.end;
                let mut content = vec![0; count * leaf.width];
                budget.take(content.len() as u64)?;
                for byte in 0..leaf.width {
                    let stream = &self.bytes[byte * *values..][range.clone()];
                    let to = content.iter_mut().skip(byte).step_by(leaf.width);
                    to.zip(stream).for_each(|(to, &from)| *to = from);
                }
                fixed(leaf, &content.into(), count, to)?;
            }
            _ => return Err(short()),
        }
        Ok(())
    }
}

/// Appends values that have a fixed number of bytes.
fn fixed(leaf: &Leaf, bytes: &Bytes, count: usize, to: &mut Values) -> Result<(), Problem> {
    if bytes.len() != count.saturating_mul(leaf.width) {
        return Err(short());
    }
    match to {
        Values::Numbers(numbers) => {
            let first = numbers.len();
            match leaf.physical {
                Physical::Int32 => {
                    let all = bytes.as_chunks().0.iter();
                    numbers.extend(all.map(|&bytes| i64::from(i32::from_le_bytes(bytes))));
                }
                Physical::Int64 => {
                    let all = bytes.as_chunks().0.iter();
                    numbers.extend(all.map(|&bytes| i64::from_le_bytes(bytes)));
                }
                _ => numbers.extend(bytes.as_chunks().0.iter().map(nanos)),
            }
            narrow(leaf, &mut numbers[first..]);
        }
        Values::Floats(floats) => match leaf.physical {
            Physical::Float => {
                let all = bytes.as_chunks().0.iter();
                floats.extend(all.map(|&bytes| f64::from(f32::from_le_bytes(bytes))));
            }
            Physical::Double => {
                let all = bytes.as_chunks().0.iter();
                floats.extend(all.map(|&bytes| f64::from_le_bytes(bytes)));
            }
            _ => {
                let all = bytes.as_chunks().0.iter();
                floats.extend(all.map(|&bytes| half(u16::from_le_bytes(bytes))));
            }
        },
        Values::Texts(texts) => {
            let buffer = texts.add(bytes.clone());
            let first = texts.views.len();
            texts.views.extend((0..count).map(|number| View {
                buffer,
                begin: (number * leaf.width) as u32,
                length: leaf.width as u32,
            }));
            check(leaf, texts, first)?;
        }
        Values::Bits(_) => return Err(short()),
    }
    Ok(())
}

/// Integers of fewer bits than they are stored in, or without a sign.
fn narrow(leaf: &Leaf, numbers: &mut [i64]) {
    if let Content::Integer { bits, signed } = leaf.content {
        let unused = u32::from(64 - bits.min(64));
        for number in numbers {
            *number = match signed {
                true => *number << unused >> unused,
                false => ((*number as u64) << unused >> unused) as i64,
            };
        }
    }
}

/// Appends values of a dictionary.
fn copy(dictionary: &Values, places: &[u32], to: &mut Values) {
    let places = places.iter().map(|&place| place as usize);
    match (dictionary, to) {
        (Values::Numbers(from), Values::Numbers(to)) => to.extend(places.map(|at| from[at])),
        (Values::Floats(from), Values::Floats(to)) => to.extend(places.map(|at| from[at])),
        (Values::Bits(from), Values::Bits(to)) => to.extend(places.map(|at| from[at])),
        (Values::Texts(from), Values::Texts(to)) => {
            // A dictionary is one page.
            let buffer = to.add(from.buffers.first().cloned().unwrap_or_default());
            to.views.extend(places.map(|at| View {
                buffer,
                ..from.views[at]
            }));
        }
        _ => {}
    }
}

/// Whether the texts from a number on are what they are said to be.
fn check(leaf: &Leaf, texts: &Texts, first: usize) -> Result<(), Problem> {
    for number in first..texts.views.len() {
        match leaf.content {
            Content::Text => {
                let bytes = texts.get(number);
                if std::str::from_utf8(bytes).is_err() {
                    let shown: Cow<'_, str> =
                        String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
                    return Err(format!("the text `{}` is not UTF-8", shown.escape_debug()));
                }
            }
            Content::Decimal { .. } if texts.get(number).len() > MOST_DECIMAL_BYTES => {
                return Err(format!(
                    "a decimal has {} bytes; kymo reads up to {MOST_DECIMAL_BYTES}",
                    texts.get(number).len()
                ));
            }
            Content::Decimal { .. } => {}
            _ => break,
        }
    }
    Ok(())
}

/// A time as Impala and Spark have written it (INT96): nanoseconds of a day, and its Julian day.
fn nanos(bytes: &[u8; 12]) -> i64 {
    let [a, b, c, d, e, f, g, h, day @ ..] = *bytes;
    let day = i64::from(i32::from_le_bytes(day)) - EPOCH_DAY;
    day.wrapping_mul(NANOS_OF_DAY)
        .wrapping_add(i64::from_le_bytes([a, b, c, d, e, f, g, h]))
}

/// A floating-point number in 16 bits (binary16 of IEEE 754).
fn half(bits: u16) -> f64 {
    let mantissa = f64::from(bits & 0x3ff);
    let value = match bits >> 10 & 0x1f {
        0 => mantissa * 2_f64.powi(-24),
        0x1f if bits & 0x3ff == 0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + mantissa) * 2_f64.powi(i32::from(exponent) - 25),
    };
    match bits >> 15 {
        0 => value,
        _ => -value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_16_bits_are_what_ieee_754_says() {
        for (bits, value) in [
            (0, 0.0),
            (0x0001, 2_f64.powi(-24)),
            (0x0400, 2_f64.powi(-14)),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_953_125),
            (0x7bff, 65_504.0),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
