//! Columns of numbers: pages of positions in a dictionary, of differences, or of the numbers themselves.

use parquet::basic::Encoding;

use super::bounds::{Bounds, Order};
use super::column::Scratch;
use super::delta;
use super::hybrid;
use super::pack::width_of;
use super::table::{Found, SPREAD, Table};

/// The bits of a number, in one of two sizes.
pub(super) trait Word: Copy + Default + Eq + Send {
    const BYTES: usize;
    /// The bit of signs.
    const SIGN: Self;

    fn signed(self) -> i64;
    fn difference(self, before: Self) -> i64;
    fn hash(self) -> u32;
    fn float(self) -> f64;
    fn flip(self, mask: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn append(self, out: &mut Vec<u8>);
}

macro_rules! word {
    ($word:ident, $signed:ident, $float:ident) => {
        impl Word for $word {
            const BYTES: usize = size_of::<Self>();
            const SIGN: Self = 1 << ($word::BITS - 1);

            #[inline]
            fn signed(self) -> i64 {
                i64::from(self as $signed)
            }

            #[inline]
            fn difference(self, before: Self) -> i64 {
                i64::from(self.wrapping_sub(before) as $signed)
            }

            #[inline]
            fn hash(self) -> u32 {
                (u64::from(self).wrapping_mul(SPREAD) >> 32) as u32
            }

            #[inline]
            fn float(self) -> f64 {
                f64::from($float::from_bits(self))
            }

            #[inline]
            fn flip(self, mask: Self) -> Self {
                self ^ mask
            }

            #[inline]
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }

            fn append(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    };
}

word!(u32, i32, f32);
word!(u64, i64, f64);

/// A column with more bytes of different values than this is not written as positions in a dictionary.
pub(super) const DICTIONARY_BYTES: usize = 64 << 10;
/// Different numbers in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Dictionary<W> {
    numbers: Vec<W>,
    table: Table<W>,
}

impl<W: Word> Dictionary<W> {
    /// The position of a number, which is added if it is not there; none if there are too many.
    #[inline(always)]
    fn position(&mut self, number: W, most: usize) -> Option<u32> {
        match self.table.first(number.hash(), number) {
            Some(position) => Some(position),
            None => self.search(number, most),
        }
    }

    /// The same for one that is not at its own place.
    fn search(&mut self, number: W, most: usize) -> Option<u32> {
        match self.table.find(number.hash(), number, |_| true) {
            Found::At(position) => Some(position),
            Found::Nothing => self.add(number, most),
            Found::Others => None,
        }
    }

    #[cold]
    fn add(&mut self, number: W, most: usize) -> Option<u32> {
        if self.numbers.len() >= most {
            return None;
        }
        self.numbers.push(number);
        let numbers = &self.numbers;
        self.table
            .add_last(numbers.len(), |at| (numbers[at].hash(), numbers[at]))?;
        Some(self.numbers.len() as u32 - 1)
    }
}

/// Where the values of a page are in a dictionary.
enum Numbered<'p> {
    /// All at one position.
    Same(u32),
    Each(&'p [u32]),
}

/// The numbers of a page, and the dictionary of the chunk.
#[derive(Debug)]
pub(super) struct Words<W> {
    pub(super) values: Vec<W>,
    order: Order,
    /// Whether a chunk begins with pages that refer to a dictionary.
    begins_numbered: bool,
    /// Whether further pages of this chunk may refer to it.
    is_numbered: bool,
    /// Whether a page does.
    has_pages: bool,
    dictionary: Dictionary<W>,
}

impl<W: Word> Words<W> {
    pub(super) fn new(order: Order, is_numbered: bool) -> Self {
        Self {
            values: Vec::new(),
            order,
            begins_numbered: is_numbered,
            is_numbered,
            has_pages: false,
            dictionary: Dictionary::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.capacity() * W::BYTES
            + self.dictionary.numbers.capacity() * W::BYTES
            + self.dictionary.table.bytes()
    }

    /// Appends the page and forgets its values.
    pub(super) fn end_page(
        &mut self,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> (Encoding, Option<Bounds>) {
        let range = self.range();
        let encoding = if let Some(numbered) = self.number(range, &mut scratch.positions) {
            self.has_pages = true;
            let width = width_of(self.dictionary.numbers.len().saturating_sub(1) as u64);
            out.push(width as u8);
            match numbered {
                Numbered::Same(position) => {
                    hybrid::run(position, self.values.len(), width, out);
                }
                Numbered::Each(positions) => hybrid::encode(positions, width, out),
            }
            Encoding::RLE_DICTIONARY
        } else if self.order == Order::Float {
            out.reserve(self.values.len() * W::BYTES);
            self.values.iter().for_each(|value| value.append(out));
            Encoding::PLAIN
        } else {
            delta::encode(&self.values, out);
            Encoding::DELTA_BINARY_PACKED
        };
        self.values.clear();
        let bounds = range.map(|(min, max)| {
            let [mut low, mut high] = [Vec::new(), Vec::new()];
            min.append(&mut low);
            max.append(&mut high);
            if self.order == Order::Float && min.float() == 0.0 {
                low[W::BYTES - 1] = 0x80;
            }
            if self.order == Order::Float && max.float() == 0.0 {
                high[W::BYTES - 1] = 0;
            }
            Bounds::exact(low, high)
        });
        (encoding, bounds)
    }

    /// The smallest and the largest value. NaN is neither.
    fn range(&self) -> Option<(W, W)> {
        let (&first, values) = self.values.split_first()?;
        if self.order == Order::Float {
            let mut numbers = self.values.iter().filter(|value| !value.float().is_nan());
            let &first = numbers.next()?;
            let (mut min, mut max) = (first, first);
            for &value in numbers {
                if value.float() < min.float() {
                    min = value;
                }
                if value.float() > max.float() {
                    max = value;
                }
            }
            return Some((min, max));
        }
        let mask = match self.order {
            Order::Signed => W::SIGN,
            _ => W::default(),
        };
        let (mut min, mut max) = (first.flip(mask), first.flip(mask));
        for &value in values {
            min = min.smaller(value.flip(mask));
            max = max.larger(value.flip(mask));
        }
        Some((min.flip(mask), max.flip(mask)))
    }

    /// Finds the position of each value. If there are too many values, no later page has positions, and the dictionary
    /// is what pages before this one need.
    fn number<'p>(
        &mut self,
        range: Option<(W, W)>,
        positions: &'p mut Vec<u32>,
    ) -> Option<Numbered<'p>> {
        if !self.is_numbered {
            return None;
        }
        let before = self.dictionary.numbers.len();
        let mut most = DICTIONARY_BYTES / W::BYTES;
        if !self.has_pages {
            // Where more than half of the values differ, a dictionary makes a page larger.
            most = most.min(self.values.len().div_ceil(2));
        }
        let numbered = match range {
            // Zeros of either sign are equal.
            Some((min, max)) if min == max && self.order != Order::Float => {
                let position = self.dictionary.position(min, most);
                position.map(Numbered::Same)
            }
            _ => self.number_each(most, positions).map(Numbered::Each),
        };
        if numbered.is_none() {
            self.is_numbered = false;
            self.dictionary.numbers.truncate(before);
            self.dictionary.table = Table::default();
        }
        numbered
    }

    fn number_each<'p>(&mut self, most: usize, positions: &'p mut Vec<u32>) -> Option<&'p [u32]> {
        let count = self.values.len();
        if positions.len() < count {
            positions.resize(count, 0);
        }
        let positions = &mut positions[..count];
        for (place, &value) in positions.iter_mut().zip(&self.values) {
            *place = self.dictionary.position(value, most)?;
        }
        Some(positions)
    }

    /// Ends the chunk: appends the values of its dictionary, if a page refers to it, and returns their number.
    pub(super) fn end_chunk(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let numbers = std::mem::take(&mut self.dictionary).numbers;
        let has_pages = std::mem::take(&mut self.has_pages);
        self.is_numbered = self.begins_numbered;
        self.values = Vec::new();
        numbers.iter().for_each(|number| number.append(out));
        has_pages.then_some(numbers.len())
    }
}
