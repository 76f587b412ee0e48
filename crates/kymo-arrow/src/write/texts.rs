//! Columns of texts and bytes: pages of positions in a dictionary, or of the texts behind their lengths.

use std::ops::Range;

use arrow_array::types::{ByteArrayType, UInt32Type};
use arrow_array::{Array, DictionaryArray, GenericByteArray};
use parquet::basic::Encoding;

use super::bounds::{Bounds, Order};
use super::column::Scratch;
use super::pack::width_of;
use super::table::{Found, SPREAD, Table};
use super::words::DICTIONARY_BYTES;
use super::{delta, hybrid};

/// Texts behind one another.
#[derive(Debug, Default)]
struct Strings {
    lengths: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    fn push(&mut self, text: &[u8]) {
        self.lengths.push(text.len() as u32);
        self.bytes.extend_from_slice(text);
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |&length| {
            let text;
            (text, rest) = rest.split_at(length as usize);
            text
        })
    }

    fn capacity(&self) -> usize {
        self.lengths.capacity() * 4 + self.bytes.capacity()
    }
}

/// Different texts in the order in which they came.
#[derive(Debug, Default)]
struct Dictionary {
    texts: Vec<u8>,
    /// Where each text ends.
    ends: Vec<u32>,
    /// Their positions by their hashes.
    table: Table<u32>,
}

impl Dictionary {
    fn text(&self, position: usize) -> &[u8] {
        let begin = position
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.texts[begin as usize..self.ends[position] as usize]
    }

    /// Its bytes, as a page has them.
    fn page_bytes(&self) -> usize {
        self.texts.len() + self.ends.len() * 4
    }

    /// The position of a text, which is added if it is not there; none if there are too many.
    #[inline]
    fn position(&mut self, text: &[u8]) -> Option<u32> {
        let hash = hash(text);
        let is_same = |position| self.text(position as usize) == text;
        match self.table.find(hash, hash, is_same) {
            Found::At(position) => Some(position),
            Found::Nothing => self.add(text),
            Found::Others => None,
        }
    }

    #[cold]
    fn add(&mut self, text: &[u8]) -> Option<u32> {
        if self.page_bytes() + text.len() + 4 > DICTIONARY_BYTES {
            return None;
        }
        self.texts.extend_from_slice(text);
        self.ends.push(self.texts.len() as u32);
        let mut table = std::mem::take(&mut self.table);
        let added = table.add_last(self.ends.len(), |position| {
            let hash = hash(self.text(position));
            (hash, hash)
        });
        self.table = table;
        added.map(|()| self.ends.len() as u32 - 1)
    }

    /// Forgets all but the first texts, and that more could be added.
    fn close(&mut self, kept: usize) {
        self.ends.truncate(kept);
        self.texts
            .truncate(self.ends.last().map_or(0, |&end| end as usize));
        self.table = Table::default();
    }
}

/// Appends a text behind its length.
fn plain(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

fn hash(text: &[u8]) -> u32 {
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(SPREAD);
        (product as u64) ^ (product >> 64) as u64
    };
    let mut state = text.len() as u64;
    let mut rest = text;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        state = mix(state, u64::from_le_bytes(*word));
        rest = behind;
    }
    let word = match (text.last_chunk::<8>(), rest) {
        (_, []) => 0,
        // Some bytes twice, instead of one after the other.
        (Some(last), _) => u64::from_le_bytes(*last),
        (None, rest) => match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => rest
                .iter()
                .fold(0, |word, &byte| word << 8 | u64::from(byte)),
        },
    };
    (mix(state, word).wrapping_mul(SPREAD) >> 32) as u32
}

/// The texts of a page, and the dictionary of the chunk.
#[derive(Debug)]
pub(super) struct Texts {
    order: Order,
    /// Whether Arrow has positions in a dictionary, too: pyarrow reads such texts from dictionaries and in plain, only.
    is_dictionary: bool,
    /// Whether the texts of this page are positions in the dictionary.
    is_numbered: bool,
    positions: Vec<u32>,
    /// Else the texts.
    plain: Strings,
    dictionary: Dictionary,
    /// How many texts of the dictionary pages refer to; none if no page does.
    used: Option<usize>,
}

impl Texts {
    pub(super) fn new(order: Order, is_dictionary: bool) -> Self {
        Self {
            order,
            is_dictionary,
            is_numbered: true,
            positions: Vec::new(),
            plain: Strings::default(),
            dictionary: Dictionary::default(),
            used: None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.positions.capacity() * 4
            + self.plain.capacity()
            + self.dictionary.texts.capacity()
            + self.dictionary.ends.capacity() * 4
            + self.dictionary.table.bytes()
    }

    /// The bytes of the page as far as it is known.
    pub(super) fn page_bytes(&self) -> usize {
        self.plain.bytes.len()
    }

    pub(super) fn extend<T: ByteArrayType<Offset = i32>>(
        &mut self,
        array: &GenericByteArray<T>,
        elements: &[Range<usize>],
    ) {
        let (offsets, bytes) = (array.value_offsets(), array.value_data());
        for elements in elements {
            let mut begin = offsets[elements.start] as usize;
            for &end in &offsets[elements.start + 1..=elements.end] {
                self.push(&bytes[begin..end as usize]);
                begin = end as usize;
            }
        }
    }

    pub(super) fn extend_from_dictionary<T: ByteArrayType<Offset = i32>>(
        &mut self,
        array: &DictionaryArray<UInt32Type>,
        texts: &GenericByteArray<T>,
        elements: &[Range<usize>],
    ) {
        const UNKNOWN: u32 = u32::MAX;
        let keys = array.keys().values();
        let mut known = vec![UNKNOWN; texts.len()];
        let text = |key: u32| {
            let text: &T::Native = texts.value(key as usize);
            let text: &[u8] = text.as_ref();
            text
        };
        for elements in elements {
            for &key in &keys[elements.clone()] {
                match known[key as usize] {
                    position if position != UNKNOWN && self.is_numbered => {
                        self.positions.push(position);
                    }
                    _ => {
                        self.push(text(key));
                        if let (true, Some(&position)) = (self.is_numbered, self.positions.last()) {
                            known[key as usize] = position;
                        }
                    }
                }
            }
        }
    }

    #[inline]
    fn push(&mut self, text: &[u8]) {
        if self.is_numbered {
            match self.dictionary.position(text) {
                Some(position) => return self.positions.push(position),
                None => self.leave_dictionary(),
            }
        }
        self.plain.push(text);
    }

    /// Puts texts in place of the positions of the page.
    #[cold]
    fn leave_dictionary(&mut self) {
        self.is_numbered = false;
        for position in std::mem::take(&mut self.positions) {
            self.plain.push(self.dictionary.text(position as usize));
        }
        self.dictionary.close(self.used.unwrap_or(0));
    }

    /// Appends the page and forgets its texts.
    pub(super) fn end_page(
        &mut self,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> (Encoding, Option<Bounds>) {
        let texts = self.dictionary.ends.len();
        // Where more than half of the texts differ, a dictionary makes a page larger.
        let is_first = self.used.is_none() && !self.is_dictionary;
        if self.is_numbered && is_first && texts > self.positions.len().div_ceil(2) {
            self.leave_dictionary();
        }
        if !self.is_numbered {
            let encoding = match self.is_dictionary {
                true => {
                    self.plain.iter().for_each(|text| plain(text, out));
                    Encoding::PLAIN
                }
                false => {
                    delta::encode(&self.plain.lengths, out);
                    out.extend_from_slice(&self.plain.bytes);
                    Encoding::DELTA_LENGTH_BYTE_ARRAY
                }
            };
            let bounds = self.bounds(self.plain.iter());
            self.plain.lengths.clear();
            self.plain.bytes.clear();
            return (encoding, bounds);
        }
        self.used = Some(texts);
        let is_met = &mut scratch.is_met;
        is_met.clear();
        is_met.resize(texts, false);
        for &position in &self.positions {
            is_met[position as usize] = true;
        }
        let met = (0..texts).filter(|&text| is_met[text]);
        let bounds = self.bounds(met.clone().map(|text| self.dictionary.text(text)));
        let width = width_of(texts.saturating_sub(1) as u64);
        out.push(width as u8);
        match (met.clone().next(), met.clone().nth(1)) {
            (Some(text), None) => hybrid::run(text as u64, self.positions.len(), width, out),
            _ => hybrid::encode(&self.positions, width, out),
        }
        self.positions.clear();
        (Encoding::RLE_DICTIONARY, bounds)
    }

    fn bounds<'t>(&self, mut texts: impl Iterator<Item = &'t [u8]>) -> Option<Bounds> {
        let first = texts.next()?;
        let (mut min, mut max) = (first, first);
        for text in texts {
            if text < min {
                min = text;
            } else if text > max {
                max = text;
            }
        }
        Some(Bounds::cut(min, max, self.order))
    }

    /// Ends the chunk: appends the texts of its dictionary, if a page refers to it, and returns their number.
    pub(super) fn end_chunk(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let new = Self::new(self.order, self.is_dictionary);
        let before = std::mem::replace(self, new);
        let used = before.used?;
        for position in 0..used {
            plain(before.dictionary.text(position), out);
        }
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths_have_hashes_of_their_own() {
        let all: Vec<u8> = (0..40).collect();
        let mut hashes: Vec<u32> = (0..40).map(|length| hash(&all[..length])).collect();
        hashes.extend((0..40).map(|at| {
            let mut text = all.clone();
            text[at] ^= 0x80;
            hash(&text)
        }));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 80);
    }
}
