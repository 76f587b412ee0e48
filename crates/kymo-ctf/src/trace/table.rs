//! The packets of a stream, packed.
//!
//! A trace may have millions of packets, and what is known of one takes 150 bytes as numbers
//! of their full size. But a packet is mostly what the one before it leads to expect: it begins
//! where that one ended, has its size, counts one further. Only how far each number is
//! from the expected one is kept, if it is at all:
//!
//! | bytes | row |
//! |---|---|
//! | 1 or 2 | a bit for each number that is not the expected one (LEB128) |
//! | 1 to 10 each | the difference of each of those, its sign in the lowest bit (LEB128) |
//!
//! Rows come in blocks: the first of a block expects zeros before it, so that a row is found by
//! reading no more than its block.

use super::Packet;

/// Rows of a block.
const BLOCK: usize = 8;

/// What is known of a packet: where it is, and the full numbers of its clock. Counters are as they
/// are in its context, with the bits that they have there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) packet: Packet,
    pub(super) begin: Option<u64>,
    pub(super) end: Option<u64>,
    pub(super) discarded: Option<(u64, u32)>,
    pub(super) sequence: Option<(u64, u32)>,
}

/// The numbers of a row. Those come first that are seldom as expected: then their bits fill
/// one byte.
type Words = [u64; 11];
const BEGIN: usize = 0;
const END: usize = 1;
const CONTENT: usize = 2;
const DISCARDED: usize = 3;
const TOTAL: usize = 4;
const SEQUENCE: usize = 5;
const OFFSET: usize = 6;
const NUMBER: usize = 7;
const FILE: usize = 8;
const CLOCK: usize = 9;
/// Which of the others there are, and the bits of the counters.
const FORM: usize = 10;

/// What the number at `word` is expected to be, after the row `before` and the numbers of `now`
/// before it.
#[inline]
fn expected(word: usize, before: &Words, now: &Words) -> u64 {
    match word {
        BEGIN => before[BEGIN].max(before[END]),
        END => now[BEGIN].wrapping_add(before[END].wrapping_sub(before[BEGIN])),
        OFFSET => before[OFFSET].wrapping_add(before[TOTAL] / 8),
        SEQUENCE | NUMBER => before[word].wrapping_add(1),
        CLOCK => now[BEGIN],
        _ => before[word],
    }
}

impl Row {
    fn words(&self) -> Words {
        let counter = |counter: Option<(u64, u32)>| counter.unwrap_or_default();
        let (discarded, discarded_bits) = counter(self.discarded);
        let (sequence, sequence_bits) = counter(self.sequence);
        let form = u64::from(self.begin.is_some())
            | u64::from(self.end.is_some()) << 1
            | u64::from(self.discarded.is_some()) << 2
            | u64::from(self.sequence.is_some()) << 3
            | u64::from(discarded_bits.min(64)) << 8
            | u64::from(sequence_bits.min(64)) << 16;
        let mut words = Words::default();
        words[BEGIN] = self.begin.unwrap_or_default();
        words[END] = self.end.unwrap_or_default();
        words[CONTENT] = self.packet.content_bits;
        words[DISCARDED] = discarded;
        words[TOTAL] = self.packet.total_bits;
        words[SEQUENCE] = sequence;
        words[OFFSET] = self.packet.offset;
        words[NUMBER] = self.packet.number.into();
        words[FILE] = self.packet.file.into();
        words[CLOCK] = self.packet.clock;
        words[FORM] = form;
        words
    }

    fn of_words(words: &Words) -> Self {
        let form = words[FORM];
        let has = |bit: u32| form >> bit & 1 != 0;
        let bits = |shift: u32| (form >> shift & 0xff) as u32;
        Self {
            packet: Packet {
                file: words[FILE] as u32,
                number: words[NUMBER] as u32,
                offset: words[OFFSET],
                total_bits: words[TOTAL],
                content_bits: words[CONTENT],
                clock: words[CLOCK],
            },
            begin: has(0).then_some(words[BEGIN]),
            end: has(1).then_some(words[END]),
            discarded: has(2).then(|| (words[DISCARDED], bits(8))),
            sequence: has(3).then(|| (words[SEQUENCE], bits(16))),
        }
    }
}

/// Rows, packed.
#[derive(Debug, Default)]
pub(super) struct Table {
    bytes: Vec<u8>,
    /// Where each block begins.
    blocks: Vec<usize>,
    len: usize,
    /// The last row.
    last: Words,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &Row) {
        if self.len.is_multiple_of(BLOCK) {
            self.blocks.push(self.bytes.len());
            self.last = Words::default();
        }
        let words = row.words();
        let mut differences = Words::default();
        let mut odd = 0;
        for (word, &is) in words.iter().enumerate() {
            differences[word] = is.wrapping_sub(expected(word, &self.last, &words));
            odd |= u64::from(differences[word] != 0) << word;
        }
        write(&mut self.bytes, odd);
        for difference in differences {
            if difference != 0 {
                let sign = (difference as i64 >> 63) as u64;
                write(&mut self.bytes, difference << 1 ^ sign);
            }
        }
        self.last = words;
        self.len += 1;
    }

    /// Takes away the rows from a position on.
    pub(super) fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        let block = len / BLOCK;
        let kept: Vec<Row> = self.rows(block * BLOCK).take(len % BLOCK).collect();
        self.bytes.truncate(self.blocks[block]);
        self.blocks.truncate(block);
        self.len = block * BLOCK;
        kept.iter().for_each(|row| self.push(row));
    }

    /// The row at a position.
    pub(super) fn get(&self, position: usize) -> Option<Row> {
        self.rows(position).next()
    }

    /// The rows from a position on.
    pub(super) fn rows(&self, position: usize) -> Rows<'_> {
        let block = position / BLOCK;
        let mut rows = match self.blocks.get(block).filter(|_| position < self.len) {
            Some(&begin) => Rows {
                rest: &self.bytes[begin..],
                position: block * BLOCK,
                words: Words::default(),
            },
            None => Rows::default(),
        };
        while rows.position < position && rows.advance() {}
        rows
    }

    /// Its rows as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The table of `len` rows that lie in bytes; `None` unless these hold as many and no more, and all of them pass.
    pub(super) fn of_bytes(
        bytes: &[u8],
        len: usize,
        mut passes: impl FnMut(&Row) -> bool,
    ) -> Option<Self> {
        let mut blocks = Vec::new();
        let mut rows = Rows {
            rest: bytes,
            ..Rows::default()
        };
        while rows.position < len {
            if rows.position.is_multiple_of(BLOCK) {
                blocks.push(bytes.len() - rows.rest.len());
            }
            rows.next().filter(&mut passes)?;
        }
        rows.rest.is_empty().then(|| Self {
            bytes: bytes.to_vec(),
            blocks,
            len,
            last: rows.words,
        })
    }

    /// The bytes that its rows take.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + self.blocks.len() * size_of::<usize>()
    }

    /// Gives back the memory that further rows would have filled.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.blocks.shrink_to_fit();
    }
}

impl<'t> FromIterator<&'t Row> for Table {
    fn from_iter<I: IntoIterator<Item = &'t Row>>(rows: I) -> Self {
        let mut table = Self::default();
        rows.into_iter().for_each(|row| table.push(row));
        table
    }
}

/// Walks the rows of a table.
#[derive(Debug, Default)]
pub(super) struct Rows<'t> {
    rest: &'t [u8],
    position: usize,
    /// The row before.
    words: Words,
}

impl Rows<'_> {
    /// Reads the next row; `false` if there is none.
    #[inline]
    fn advance(&mut self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        if self.position.is_multiple_of(BLOCK) {
            self.words = Words::default();
        }
        let odd = read(&mut self.rest);
        let mut words = Words::default();
        for word in 0..words.len() {
            words[word] = expected(word, &self.words, &words);
            if odd >> word & 1 != 0 {
                let difference = read(&mut self.rest);
                let difference = difference >> 1 ^ (difference & 1).wrapping_neg();
                words[word] = words[word].wrapping_add(difference);
            }
        }
        self.words = words;
        self.position += 1;
        true
    }
}

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.advance().then(|| Row::of_words(&self.words))
    }
}

/// Writes a number as LEB128.
pub(super) fn write(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads a number as [`write()`] writes it.
#[inline]
pub(super) fn read(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    while let Some((&byte, after)) = rest.split_first() {
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 || shift > 63 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers() -> impl Strategy<Value = u64> {
        prop_oneof![0..4u64, Just(u64::MAX), Just(1 << 63), any::<u64>()]
    }

    prop_compose! {
        fn rows()(
            file in any::<u32>(),
            number in any::<u32>(),
            (offset, total_bits, content_bits, clock) in (numbers(), numbers(), numbers(), numbers()),
            begin in proptest::option::of(numbers()),
            end in proptest::option::of(numbers()),
            discarded in proptest::option::of((numbers(), 0..=64u32)),
            sequence in proptest::option::of((numbers(), 0..=64u32)),
        ) -> Row {
            let packet = Packet { file, number, offset, total_bits, content_bits, clock };
            Row { packet, begin, end, discarded, sequence }
        }
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(rows in proptest::collection::vec(rows(), 0..70)) {
            let table: Table = rows.iter().collect();
            prop_assert_eq!(table.len(), rows.len());
            prop_assert_eq!(&table.rows(0).collect::<Vec<_>>(), &rows);
            for (position, &row) in rows.iter().enumerate() {
                prop_assert_eq!(table.get(position), Some(row));
            }
            prop_assert_eq!(table.get(rows.len()), None);
            prop_assert_eq!(table.get(usize::MAX), None);
            let read = |bytes: &[u8], len: usize| Table::of_bytes(bytes, len, |_| true);
            let mut again = read(table.bytes(), rows.len()).unwrap();
            again.push(&Row::default());
            prop_assert!(again.rows(0).eq(rows.iter().copied().chain([Row::default()])));
            prop_assert!(read(table.bytes(), rows.len() + 1).is_none());
            prop_assert!(rows.is_empty() || read(table.bytes(), rows.len() - 1).is_none());
        }

        #[test]
        fn rows_are_taken_away_and_added(rows in proptest::collection::vec(rows(), 0..40), len in 0..40usize) {
            let mut table: Table = rows.iter().collect();
            table.truncate(len);
            prop_assert_eq!(table.len(), len.min(rows.len()));
            rows.iter().skip(len).for_each(|row| table.push(row));
            prop_assert_eq!(&table.rows(0).collect::<Vec<_>>(), &rows);
        }
    }

    #[test]
    fn an_ordinary_packet_takes_few_bytes() {
        let rows: Vec<Row> = (0..1600)
            .map(|number: u64| {
                let begin = 1_795_251_142_794_665_340 + number * 1_000_000;
                Row {
                    packet: Packet {
                        file: 1,
                        number: number as u32,
                        offset: number * 4096,
                        total_bits: 32768,
                        content_bits: 32768 - number % 300,
                        clock: begin,
                    },
                    begin: Some(begin),
                    end: Some(begin + 900_000 + number % 7 * 1000),
                    discarded: Some((0, 64)),
                    sequence: Some((number, 64)),
                }
            })
            .collect();
        let table: Table = rows.iter().collect();
        assert!(table.memory() < rows.len() * 14, "{}", table.memory());
    }
}
