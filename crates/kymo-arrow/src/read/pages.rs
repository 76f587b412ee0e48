//! Pages of a column, read one after the other, and their levels and values as they are asked for.
//!
//! Pages are `PageHeader` of Parquet's parquet.thrift, and behind it levels and values as Parquet's README says ("Data
//! Pages"). Sizes and counts are checked against what there is before anything is decompressed or decoded.

use std::sync::Arc;

use bytes::Bytes;

use super::Problem;
use super::budget::Budget;
use super::codec::decompress;
use super::column::{Read, Values};
use super::decode::{self, PageValues};
use super::footer::{ColumnChunk, Physical};
use super::head::{DATA, DATA_V2, DICTIONARY, Head, INDEX};
use super::numbers::Runs;
use super::schema::Leaf;

/// Repetition levels that are decoded at a time.
const LEVELS: usize = 1 << 10;
/// What a value in lists takes at most beside its bytes: levels, place, value, offset.
const VALUE_BYTES: u64 = 32;

/// A page of values that is being read.
#[derive(Debug)]
struct Page {
    /// Values and nulls that are still to come.
    left: u64,
    /// None where all levels are 0.
    repetitions: Option<Runs>,
    definitions: Option<Runs>,
    values: PageValues,
    size: u64,
}

/// A column of a row group.
#[derive(Debug)]
pub(super) struct ColumnReader {
    leaf: Arc<Leaf>,
    codec: u64,
    /// Pages that are still to come, and where their first byte is in the file.
    pages: Bytes,
    at: u64,
    /// Values and nulls of these pages.
    left: u64,
    dictionary: Option<Values>,
    dictionary_size: u64,
    page: Option<Page>,
    /// Where the page is in the file.
    page_at: u64,
    /// Repetition levels that are decoded, and not yet used.
    ahead: Vec<u32>,
}

impl ColumnReader {
    /// A column in a file.
    pub(super) fn new(
        file: &Bytes,
        leaf: &Arc<Leaf>,
        chunk: &ColumnChunk,
    ) -> Result<Self, Problem> {
        let range = usize::try_from(chunk.begin).ok().and_then(|begin| {
            let size = usize::try_from(chunk.size).ok()?;
            Some(begin..begin.checked_add(size)?)
        });
        let path = &leaf.path;
        if chunk.is_encrypted {
            return Err(format!(
                "column `{path}` is encrypted, which kymo does not read"
            ));
        }
        let range = range
            .filter(|range| range.end <= file.len())
            .ok_or_else(|| {
                format!(
                    "column `{path}` has {} bytes from byte {} on, and the file {} in all",
                    chunk.size,
                    chunk.begin,
                    file.len()
                )
            })?;
        if chunk.physical != leaf.physical {
            return Err(format!(
                "column `{path}` is of type {:?} in the schema, and of {:?} in a row group",
                leaf.physical, chunk.physical
            ));
        }
        Ok(Self {
            leaf: Arc::clone(leaf),
            codec: chunk.codec,
            pages: file.slice(range),
            at: chunk.begin,
            left: chunk.values,
            dictionary: None,
            dictionary_size: 0,
            page: None,
            page_at: chunk.begin,
            ahead: Vec::new(),
        })
    }

    /// How many bytes it holds.
    pub(super) fn held(&self) -> u64 {
        self.dictionary_size + self.page.as_ref().map_or(0, |page| page.size)
    }

    /// Reads the next rows.
    pub(super) fn read(&mut self, rows: usize, budget: &mut Budget) -> Result<Read, Problem> {
        let read = self.rows(rows, budget);
        read.map_err(|problem| self.located(&problem))
    }

    /// Whether its last value was read.
    pub(super) fn end(&mut self, rows: u64) -> Result<(), Problem> {
        let is_over = match &self.page {
            Some(page) => page.left == 0 && self.ahead.is_empty() && self.left == 0,
            None => self.left == 0,
        };
        match is_over {
            true => Ok(()),
            false => Err(self.located(&format!("it has more rows than its group of {rows}"))),
        }
    }

    fn located(&self, problem: &str) -> Problem {
        format!(
            "column `{}`, page at byte {}: {problem}",
            self.leaf.path, self.page_at
        )
    }

    fn rows(&mut self, rows: usize, budget: &mut Budget) -> Result<Read, Problem> {
        let leaf = Arc::clone(&self.leaf);
        let mut read = Read {
            count: 0,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            values: Values::none(&leaf),
            content: leaf.content,
        };
        let mut begun = 0;
        loop {
            if leaf.repetitions == 0 && begun == rows {
                break;
            }
            if self.ahead.is_empty() && !self.open_page(budget)? {
                break;
            }
            let Some(page) = &mut self.page else {
                break;
            };
            let here = usize::try_from(page.left).unwrap_or(usize::MAX);
            let (taken, is_over) = match &mut page.repetitions {
                None => {
                    let taken = here.min(rows - begun);
                    begun += taken;
                    page.left -= taken as u64;
                    (taken, false)
                }
                Some(levels) => {
                    if self.ahead.is_empty() {
                        let here = here.min(LEVELS);
                        levels.read(here, &mut self.ahead)?;
                        page.left -= here as u64;
                    }
                    let mut taken = self.ahead.len();
                    for (at, &level) in self.ahead.iter().enumerate() {
                        if level == 0 && begun == rows {
                            taken = at;
                            break;
                        }
                        begun += usize::from(level == 0);
                        if begun == 0 {
                            return Err("its first level is not that of a row".to_owned());
                        }
                    }
                    budget.take(taken as u64 * VALUE_BYTES)?;
                    let is_over = taken < self.ahead.len();
                    read.repetitions.extend(self.ahead.drain(..taken));
                    (taken, is_over)
                }
            };
            read.count += taken;
            let present = match &mut page.definitions {
                None => taken,
                Some(levels) => {
                    let first = read.definitions.len();
                    levels.read(taken, &mut read.definitions)?;
                    let new = read.definitions[first..].iter();
                    new.filter(|&&level| level == leaf.definitions).count()
                }
            };
            page.values.read(
                &leaf,
                present,
                self.dictionary.as_ref(),
                &mut read.values,
                budget,
            )?;
            if is_over {
                break;
            }
        }
        match begun == rows {
            true => Ok(read),
            false => Err(format!("it ends after {begun} of {rows} rows")),
        }
    }

    /// Opens the next page, unless there is more of the one in hand; whether there is one.
    fn open_page(&mut self, budget: &mut Budget) -> Result<bool, Problem> {
        while self.page.as_ref().is_none_or(|page| page.left == 0) {
            if self.left == 0 {
                return Ok(false);
            }
            if self.pages.is_empty() {
                return Err(format!("{} values of the column are missing", self.left));
            }
            self.page_at = self.at;
            let (head, size) = Head::read(&self.pages).ok_or("its head is damaged")?;
            let end = size.checked_add(head.compressed);
            let end = end.filter(|&end| end <= self.pages.len()).ok_or_else(|| {
                format!(
                    "it has {} bytes, and its column {}",
                    head.compressed,
                    self.pages.len() - size
                )
            })?;
            let body = self.pages.split_to(end).slice(size..);
            self.at += end as u64;
            match head.kind {
                DICTIONARY => self.open_dictionary(&head, &body, budget)?,
                // It has nothing, whatever it would become.
                DATA | DATA_V2 if head.values == 0 => {}
                DATA | DATA_V2 => {
                    self.left = self.left.checked_sub(head.values).ok_or_else(|| {
                        format!(
                            "it has {} values where {} are expected",
                            head.values, self.left
                        )
                    })?;
                    // Texts stay where they are in pages, numbers do not.
                    let is_copied =
                        !matches!(self.leaf.physical, Physical::Bytes | Physical::FixedBytes);
                    if let Some(page) = self.page.take().filter(|_| is_copied) {
                        budget.give_back(page.size);
                    }
                    budget.unpack(head.size as u64)?;
                    self.page = Some(self.values(&head, &body)?);
                }
                // Nothing in these is for readers.
                INDEX => {}
                other => return Err(format!("it is of the unknown kind {other}")),
            }
        }
        Ok(true)
    }

    fn open_dictionary(
        &mut self,
        head: &Head,
        body: &Bytes,
        budget: &mut Budget,
    ) -> Result<(), Problem> {
        if !matches!(head.encoding, decode::PLAIN | decode::PLAIN_DICTIONARY) {
            let name = decode::name(head.encoding);
            return Err(format!("its dictionary has the encoding {name}"));
        }
        if self.leaf.physical == Physical::Bool {
            return Err("truth values have no dictionary".to_owned());
        }
        // Each value takes at least a byte, or the four of a length.
        let smallest = match self.leaf.physical {
            Physical::Bytes => 4,
            _ => self.leaf.width.max(1) as u64,
        };
        if head.values.saturating_mul(smallest) > head.size as u64 {
            return Err(format!(
                "its dictionary has {} values in {} bytes",
                head.values, head.size
            ));
        }
        // Values take more room than their bytes.
        self.dictionary_size = head.size as u64 + head.values * 16;
        budget.unpack(self.dictionary_size)?;
        let content = decompress(body, self.codec, head.size)?;
        let plain = PageValues::new(&self.leaf, content, decode::PLAIN, head.values, None);
        let mut values = Values::none(&self.leaf);
        let count = usize::try_from(head.values).map_err(|_| "it has too many values")?;
        plain?.read(&self.leaf, count, None, &mut values, budget)?;
        self.dictionary = Some(values);
        Ok(())
    }

    /// The levels and values of a page.
    fn values(&self, head: &Head, body: &Bytes) -> Result<Page, Problem> {
        let leaf = &self.leaf;
        let most = [leaf.repetitions, leaf.definitions];
        let cut = "its levels are cut";
        let (levels, values) = match head.kind {
            DATA => {
                let mut rest = decompress(body, self.codec, head.size)?;
                let mut levels = [None, None];
                let encodings = [head.repetition_encoding, head.definition_encoding];
                for ((most, encoding), runs) in most.into_iter().zip(encodings).zip(&mut levels) {
                    if most == 0 {
                        continue;
                    }
                    if encoding == decode::BIT_PACKED {
                        *runs = Some(Runs::packed_levels(&mut rest, most, head.values)?);
                        continue;
                    }
                    if encoding != decode::RLE {
                        return Err(format!(
                            "its levels have the encoding {}",
                            decode::name(encoding)
                        ));
                    }
                    let size = rest.first_chunk().ok_or(cut)?;
                    let size = u32::from_le_bytes(*size) as usize;
                    let end = size.checked_add(4).filter(|&end| end <= rest.len());
                    let bytes = rest.split_to(end.ok_or(cut)?).slice(4..);
                    *runs = Some(Runs::levels(bytes, most)?);
                }
                (levels, rest)
            }
            _ => {
                // Levels are not compressed.
                let (repetitions, definitions) = (head.repetition_bytes, head.definition_bytes);
                let both = repetitions.checked_add(definitions);
                let both = both.filter(|&both| both <= body.len() && both <= head.size);
                let both = both.ok_or(cut)?;
                let ranges = [0..repetitions, repetitions..both];
                let mut levels = [None, None];
                for ((most, range), runs) in most.into_iter().zip(ranges).zip(&mut levels) {
                    if most > 0 {
                        *runs = Some(Runs::levels(body.slice(range), most)?);
                    }
                }
                let rest = body.slice(both..);
                let values = match head.is_plain {
                    true => rest,
                    false => decompress(&rest, self.codec, head.size - both)?,
                };
                (levels, values)
            }
        };
        let dictionary = self.dictionary.as_ref();
        let [repetitions, definitions] = levels;
        Ok(Page {
            left: head.values,
            repetitions,
            definitions,
            values: PageValues::new(leaf, values, head.encoding, head.values, dictionary)?,
            size: head.size as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::schema::Content;

    fn leaf(definitions: u32, repetitions: u32) -> Arc<Leaf> {
        Arc::new(Leaf {
            path: "a.b".to_owned(),
            physical: Physical::Bytes,
            width: 0,
            content: Content::Text,
            definitions,
            repetitions,
        })
    }

    fn field(kind: u8, number: u64, to: &mut Vec<u8>) {
        to.push(kind);
        // Positive numbers are even ones.
        let mut rest = number << 1;
        while rest > 0x7f {
            to.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        to.push(rest as u8);
    }

    /// A page of version 1 (or a dictionary) without compression.
    fn page(kind: u64, values: u64, encoding: u64, body: &[u8]) -> Vec<u8> {
        let mut page = Vec::new();
        field(0x15, kind, &mut page);
        field(0x15, body.len() as u64, &mut page);
        field(0x15, body.len() as u64, &mut page);
        page.push(if kind == DATA { 0x2c } else { 0x4c });
        for number in [values, encoding, decode::RLE, decode::RLE] {
            field(0x15, number, &mut page);
        }
        page.extend([0, 0]);
        page.extend(body);
        page
    }

    fn chunk(leaf: &Leaf, values: u64, pages: &[u8]) -> ColumnChunk {
        ColumnChunk {
            physical: leaf.physical,
            codec: 0,
            values,
            size: pages.len() as u64,
            full_size: pages.len() as u64,
            begin: 0,
            statistics: Default::default(),
            is_encrypted: false,
        }
    }

    fn read(
        leaf: &Arc<Leaf>,
        pages: &[Vec<u8>],
        values: u64,
        rows: usize,
    ) -> Result<Read, Problem> {
        let pages = Bytes::from(pages.concat());
        let chunk = chunk(leaf, values, &pages);
        let mut column = ColumnReader::new(&pages, leaf, &chunk)?;
        let read = column.read(rows, &mut Budget::new(1 << 30, u64::MAX))?;
        column.end(rows as u64)?;
        Ok(read)
    }

    fn problem(leaf: &Arc<Leaf>, pages: &[Vec<u8>], values: u64, rows: usize) -> String {
        read(leaf, pages, values, rows).unwrap_err()
    }

    #[test]
    fn what_does_not_agree_is_an_error_that_says_where() {
        let flat = leaf(0, 0);
        let texts = page(DATA, 2, 0, b"\x01\0\0\0a\x02\0\0\0bc");
        assert_eq!(
            read(&flat, std::slice::from_ref(&texts), 2, 2)
                .unwrap()
                .count,
            2
        );
        let at =
            |byte: usize, problem: &str| format!("column `a.b`, page at byte {byte}: {problem}");
        for (pages, values, rows, expected) in [
            (
                vec![texts.clone()],
                2,
                3,
                at(0, "it ends after 2 of 3 rows"),
            ),
            (
                vec![texts.clone()],
                2,
                1,
                at(0, "it has more rows than its group of 1"),
            ),
            (
                vec![texts.clone()],
                3,
                3,
                at(0, "1 values of the column are missing"),
            ),
            (
                vec![texts.clone()],
                1,
                1,
                at(0, "it has 2 values where 1 are expected"),
            ),
            (
                vec![texts.clone(), page(DATA, 1, 0, b"\x01\0\0\0\xff")],
                3,
                3,
                at(texts.len(), "the text `\u{fffd}` is not UTF-8"),
            ),
            (
                vec![page(DATA, 1, 0, b"\x02\0\0\0a")],
                1,
                1,
                at(0, "its values end before the last one"),
            ),
            (
                vec![page(DATA, 1, 8, b"\x01\x02\0")],
                1,
                1,
                at(0, "it has no dictionary before it"),
            ),
            (
                vec![
                    page(DICTIONARY, 2, 0, b"\x01\0\0\0a\x01\0\0\0b"),
                    page(DATA, 1, 8, b"\x02\x02\x02"),
                ],
                1,
                1,
                at(
                    27,
                    "place in the dictionary 2 is out of range: expected less than 2",
                ),
            ),
            (
                vec![page(DATA, 1, 9, b"abcd")],
                1,
                1,
                at(
                    0,
                    "its encoding is BYTE_STREAM_SPLIT, which kymo does not read for values of type Bytes",
                ),
            ),
        ] {
            assert_eq!(problem(&flat, &pages, values, rows), expected);
        }
    }

    #[test]
    fn pages_take_of_what_a_file_may_become() {
        let text = page(DATA, 1, 0, &[&[26, 0, 0, 0][..], &[b'a'; 26]].concat());
        // One without values is passed over.
        let none = page(DATA, 0, 0, &[0; 30]);
        let pages = [text.clone(), none, text].concat();
        let leaf = leaf(0, 0);
        let mut chunk = chunk(&leaf, 2, &pages);
        let pages = Bytes::from(pages);
        let [enough, few] = [60, 59].map(|unpacked| {
            let mut column = ColumnReader::new(&pages, &leaf, &chunk).unwrap();
            column.read(2, &mut Budget::new(1 << 30, unpacked))
        });
        assert_eq!(enough.map(|read| read.count), Ok(2));
        let problem = few.unwrap_err();
        assert!(problem.contains("too many times"), "{problem}");
        chunk.is_encrypted = true;
        let found = ColumnReader::new(&pages, &leaf, &chunk).unwrap_err();
        assert_eq!(found, "column `a.b` is encrypted, which kymo does not read");
    }

    #[test]
    fn rows_that_become_too_much_are_refused() {
        // A list of a null, and 2^31 more of them, in 30 bytes.
        let mut body = vec![8, 0, 0, 0, 2, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 1];
        body.extend([6, 0, 0, 0, 0x82, 0x80, 0x80, 0x80, 0x10, 1]);
        let many = (1 << 31) + 1;
        let found = problem(&leaf(2, 1), &[page(DATA, many, 0, &body)], many, 1);
        assert!(found.contains("take more than 1073741824 bytes"), "{found}");
        // A level that cannot be.
        let body = [2, 0, 0, 0, 2, 0, 2, 0, 0, 0, 2, 3];
        let found = problem(&leaf(2, 1), &[page(DATA, 1, 0, &body)], 1, 1);
        assert!(found.contains("level 3 is out of range"), "{found}");
        // A row that begins within a list.
        let body = [2, 0, 0, 0, 2, 1, 2, 0, 0, 0, 2, 1];
        let found = problem(&leaf(2, 1), &[page(DATA, 1, 0, &body)], 1, 1);
        assert!(found.contains("not that of a row"), "{found}");
    }
}
