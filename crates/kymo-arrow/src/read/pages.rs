//! Pages of a column, read so that nothing in them makes a decoder take memory without bound: sizes and counts are
//! checked against what there is before anything is decompressed or decoded.

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescPtr;

use super::codec::{MOST_PAGE_BYTES, decompress};
use super::levels::{RowCounter, check_differences, longest};
use super::thrift::{Reader, kind};

fn wrong(problem: impl Into<String>) -> ParquetError {
    ParquetError::General(problem.into())
}

/// What the head of a page says.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    kind: i64,
    size: usize,
    compressed: usize,
    values: u32,
    encoding: i64,
    definition_encoding: i64,
    repetition_encoding: i64,
    nulls: u32,
    rows: u32,
    definition_bytes: u32,
    repetition_bytes: u32,
    is_plain: bool,
}

const DATA: i64 = 0;
const INDEX: i64 = 1;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

impl Head {
    /// Reads the head at the beginning of bytes, and its size.
    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut reader = Reader(bytes);
        let mut head = Self::default();
        let mut field = 0;
        loop {
            let kind = reader.field(&mut field)?;
            match (field, kind) {
                (_, kind::STOP) => break,
                (1, 4..=6) => head.kind = reader.signed()?,
                (2, 4..=6) => head.size = usize::try_from(reader.signed()?).ok()?,
                (3, 4..=6) => head.compressed = usize::try_from(reader.signed()?).ok()?,
                (5, kind::STRUCT) => head.members(&mut reader, DATA)?,
                (7, kind::STRUCT) => head.members(&mut reader, DICTIONARY)?,
                (8, kind::STRUCT) => head.members(&mut reader, DATA_V2)?,
                (_, kind) => reader.skip(kind, 0)?,
            }
        }
        Some((head, bytes.len() - reader.0.len()))
    }

    fn members(&mut self, reader: &mut Reader<'_>, page: i64) -> Option<()> {
        let mut field = 0;
        loop {
            let kind = reader.field(&mut field)?;
            match (page, field, kind) {
                (_, _, kind::STOP) => return Some(()),
                (_, 1, 4..=6) => self.values = u32::try_from(reader.signed()?).ok()?,
                (DATA | DICTIONARY, 2, 4..=6) => self.encoding = reader.signed()?,
                (DATA, 3, 4..=6) => self.definition_encoding = reader.signed()?,
                (DATA, 4, 4..=6) => self.repetition_encoding = reader.signed()?,
                (DATA_V2, 2, 4..=6) => self.nulls = u32::try_from(reader.signed()?).ok()?,
                (DATA_V2, 3, 4..=6) => self.rows = u32::try_from(reader.signed()?).ok()?,
                (DATA_V2, 4, 4..=6) => self.encoding = reader.signed()?,
                (DATA_V2, 5, 4..=6) => {
                    self.definition_bytes = u32::try_from(reader.signed()?).ok()?;
                }
                (DATA_V2, 6, 4..=6) => {
                    self.repetition_bytes = u32::try_from(reader.signed()?).ok()?;
                }
                (DATA_V2, 7, kind::FALSE) => self.is_plain = true,
                (_, _, kind) => reader.skip(kind, 0)?,
            }
        }
    }
}

fn encoding(number: i64) -> Result<Encoding> {
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => {
            return Err(wrong(format!(
                "pages have encoding {number}, which is not read"
            )));
        }
    })
}

/// A column of a row group.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Its pages.
    bytes: Bytes,
    metadata: ColumnChunkMetaData,
    /// Rows of the group.
    rows: u64,
}

/// What the pages of a column take at most, by their heads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// Its largest page, with the largest dictionary.
    pub(super) pages: u64,
    /// The longest text that a page may repeat.
    pub(super) text: u64,
}

impl Chunk {
    /// A column of a group of so many rows in a file.
    pub(super) fn new(file: &Bytes, metadata: &ColumnChunkMetaData, rows: u64) -> Result<Self> {
        let begin = match metadata.dictionary_page_offset() {
            Some(begin) if begin > 0 => begin.min(metadata.data_page_offset()),
            _ => metadata.data_page_offset(),
        };
        let range = usize::try_from(begin).ok().and_then(|begin| {
            let size = usize::try_from(metadata.compressed_size()).ok()?;
            Some(begin..begin.checked_add(size)?)
        });
        let range = range.filter(|range| range.end <= file.len());
        let range = range.ok_or_else(|| {
            wrong(format!(
                "column `{}` is not within the file",
                metadata.column_path().string()
            ))
        })?;
        Ok(Self {
            bytes: file.slice(range),
            metadata: metadata.clone(),
            rows,
        })
    }

    fn descriptor(&self) -> ColumnDescPtr {
        self.metadata.column_descr_ptr()
    }

    /// Goes over the heads of all pages.
    pub(super) fn sizes(&self) -> Result<Sizes> {
        let mut rest = self.bytes.clone();
        let (mut largest, mut dictionary, mut text) = (0, 0, 0);
        let mut left = u64::try_from(self.metadata.num_values()).unwrap_or(0);
        while left > 0 && !rest.is_empty() {
            let (head, body) = next(&mut rest)?;
            if head.size > MOST_PAGE_BYTES {
                return Err(wrong(format!(
                    "a page has {} bytes; kymo reads pages of up to {MOST_PAGE_BYTES}",
                    head.size
                )));
            }
            match head.kind {
                DICTIONARY => {
                    dictionary = dictionary.max(head.size as u64);
                    if self.metadata.column_type() == Type::BYTE_ARRAY {
                        let content = self.content(&head, body)?;
                        let longest = longest(&content, head.values.into());
                        text = text.max(longest.unwrap_or(head.size as u64));
                    }
                }
                DATA | DATA_V2 => {
                    left = left.saturating_sub(head.values.into());
                    largest = largest.max(head.size as u64);
                    if encoding(head.encoding)? == Encoding::DELTA_BYTE_ARRAY {
                        text = text.max(head.size as u64);
                    }
                }
                _ => {}
            }
        }
        if self.metadata.column_type() == Type::FIXED_LEN_BYTE_ARRAY {
            text = u64::try_from(self.descriptor().type_length()).unwrap_or(0);
        }
        Ok(Sizes {
            pages: largest + dictionary,
            text,
        })
    }

    fn content(&self, head: &Head, body: Bytes) -> Result<Bytes> {
        decompress(&body, self.metadata.compression(), head.size).map_err(wrong)
    }

    /// How many values a row has in the mean.
    pub(super) fn values_of_row(&self) -> u64 {
        let values = u64::try_from(self.metadata.num_values()).unwrap_or(0);
        values / self.rows.max(1)
    }

    /// Whether rows have lists.
    pub(super) fn is_repeated(&self) -> bool {
        self.descriptor().max_rep_level() > 0
    }
}

/// Takes the next page.
fn next(rest: &mut Bytes) -> Result<(Head, Bytes)> {
    let Some((head, size)) = Head::read(rest) else {
        return Err(wrong("the head of a page is damaged"));
    };
    let _ = rest.split_to(size);
    if head.compressed > rest.len() {
        return Err(wrong("a page is cut"));
    }
    Ok((head, rest.split_to(head.compressed)))
}

/// The pages of a column, one after the other.
pub(super) struct Pages {
    chunk: Chunk,
    rest: Bytes,
    /// Values that are still to come.
    left: u64,
    counter: RowCounter,
    /// The longest text of the dictionary.
    text: u64,
}

impl Pages {
    /// Those of a column that is decoded so many rows at a time.
    pub(super) fn new(chunk: Chunk, batch: usize) -> Self {
        Self {
            rest: chunk.bytes.clone(),
            left: u64::try_from(chunk.metadata.num_values()).unwrap_or(0),
            counter: RowCounter::new(batch),
            text: 0,
            chunk,
        }
    }

    fn dictionary(&mut self, head: &Head, body: Bytes) -> Result<Page> {
        let content = self.chunk.content(head, body)?;
        let values = u64::from(head.values);
        let wide = match self.chunk.metadata.column_type() {
            Type::INT32 | Type::FLOAT => Some(4),
            Type::INT64 | Type::DOUBLE => Some(8),
            Type::INT96 => Some(12),
            Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(self.chunk.descriptor().type_length()).ok(),
            Type::BYTE_ARRAY => None,
            Type::BOOLEAN => return Err(wrong("truth values have no dictionary")),
        };
        let fits = match wide {
            Some(wide) => values.saturating_mul(wide.max(1)) <= content.len() as u64,
            None => {
                let longest = longest(&content, values);
                self.text = longest.unwrap_or(0);
                longest.is_some()
            }
        };
        match (fits, encoding(head.encoding)?) {
            (true, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) => Ok(Page::DictionaryPage {
                buf: content,
                num_values: head.values,
                // As both are called in dictionaries.
                encoding: Encoding::PLAIN,
                is_sorted: false,
            }),
            (true, other) => Err(wrong(format!("a dictionary has encoding {other:?}"))),
            (false, _) => Err(wrong("a dictionary has more values than bytes for them")),
        }
    }

    /// Checks the values of a page, and counts its rows by the levels.
    fn check(&mut self, head: &Head, repetitions: &[u8], values: &[u8]) -> Result<Encoding> {
        let descriptor = self.chunk.descriptor();
        let count = u64::from(head.values);
        let encoding = encoding(head.encoding)?;
        let widest = match (encoding, self.chunk.metadata.column_type()) {
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, Type::BYTE_ARRAY) => self.text,
            (Encoding::DELTA_BYTE_ARRAY, _) => values.len() as u64,
            (_, Type::FIXED_LEN_BYTE_ARRAY) => u64::try_from(descriptor.type_length()).unwrap_or(0),
            _ => 0,
        };
        let lists = match (encoding, self.chunk.metadata.column_type()) {
            (Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY, _) => 1,
            (Encoding::DELTA_BYTE_ARRAY, _) => 2,
            _ => 0,
        };
        // A page of nulls has no values at all.
        if !values.is_empty() {
            check_differences(values, count, lists).map_err(wrong)?;
        }
        match descriptor.max_rep_level() {
            0 => self.counter.flat(count),
            most => {
                let bits = u16::BITS - (most as u16).leading_zeros();
                self.counter
                    .repetitions(repetitions, bits, count, widest)
                    .map_err(wrong)?;
            }
        }
        self.counter.check(widest).map_err(wrong)?;
        if self.counter.rows() > self.chunk.rows {
            return Err(wrong("a column has more rows than its group"));
        }
        Ok(encoding)
    }

    fn data(&mut self, head: &Head, body: Bytes) -> Result<Page> {
        let content = self.chunk.content(head, body)?;
        let descriptor = self.chunk.descriptor();
        let mut rest = &content[..];
        let mut repetitions: &[u8] = &[];
        let cut = || wrong("the levels of a page are cut");
        for (most, level_encoding) in [
            (descriptor.max_rep_level(), head.repetition_encoding),
            (descriptor.max_def_level(), head.definition_encoding),
        ] {
            if most == 0 {
                continue;
            }
            if encoding(level_encoding)? != Encoding::RLE {
                return Err(wrong("levels of a page are not encoded as runs"));
            }
            let (size, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            let size = usize::try_from(u32::from_le_bytes(*size)).map_err(|_| cut())?;
            let (levels, after) = after.split_at_checked(size).ok_or_else(cut)?;
            if repetitions.is_empty() {
                repetitions = levels;
            }
            rest = after;
        }
        let encoding = self.check(head, repetitions, rest)?;
        Ok(Page::DataPage {
            num_values: head.values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
            buf: content,
        })
    }

    fn data_v2(&mut self, head: &Head, body: &Bytes) -> Result<Page> {
        let repetitions = head.repetition_bytes as usize;
        let levels = repetitions.checked_add(head.definition_bytes as usize);
        let levels = levels.filter(|&levels| levels <= body.len() && levels <= head.size);
        let levels = levels.ok_or_else(|| wrong("the levels of a page are cut"))?;
        let content = match head.is_plain {
            true => body.clone(),
            false => {
                // Levels are not compressed.
                let rest = Head {
                    size: head.size - levels,
                    ..*head
                };
                let values = self.chunk.content(&rest, body.slice(levels..))?;
                [&body[..levels], &values].concat().into()
            }
        };
        let encoding = self.check(head, &content[..repetitions], &content[levels..])?;
        Ok(Page::DataPageV2 {
            num_values: head.values,
            encoding,
            num_nulls: head.nulls,
            num_rows: head.rows,
            def_levels_byte_len: head.definition_bytes,
            rep_levels_byte_len: head.repetition_bytes,
            is_compressed: false,
            statistics: None,
            buf: content,
        })
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        while self.left > 0 && !self.rest.is_empty() {
            let (head, body) = next(&mut self.rest)?;
            let page = match head.kind {
                DICTIONARY => self.dictionary(&head, body)?,
                DATA => self.data(&head, body)?,
                DATA_V2 => self.data_v2(&head, &body)?,
                // Nothing in these is for readers.
                INDEX => continue,
                other => return Err(wrong(format!("a page is of the unknown kind {other}"))),
            };
            if head.kind != DICTIONARY {
                let left = self.left.checked_sub(head.values.into());
                self.left = left.ok_or_else(|| wrong("a column has more values than it says"))?;
            }
            return Ok(Some(page));
        }
        match self.left {
            0 => Ok(None),
            _ => Err(wrong("a column has fewer values than it says")),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let mut rest = self.rest.clone();
        while self.left > 0 && !rest.is_empty() {
            let (head, _) = next(&mut rest)?;
            if head.kind == INDEX {
                continue;
            }
            return Ok(Some(PageMetadata {
                num_rows: (head.kind == DATA_V2).then_some(head.rows as usize),
                num_levels: Some(head.values as usize),
                is_dict: head.kind == DICTIONARY,
            }));
        }
        Ok(None)
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.get_next_page().map(drop)
    }
}
