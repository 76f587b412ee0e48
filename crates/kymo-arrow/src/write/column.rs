//! Columns of a file: the pages of a column chunk, its dictionary, statistics and page index.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{Array, FixedSizeBinaryArray};
use arrow_schema::DataType;
use bytes::Bytes;
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::bounds::{Bounds, Order, statistics};
use super::hybrid::Levels;
use super::slots::Slots;
use super::texts::Texts;
use super::words::Words;
use super::{Kind, PAGE_BYTES};
use crate::Error;

/// Memory that pages of all columns use one after the other.
pub(crate) struct Scratch {
    /// Positions in a dictionary.
    pub(super) positions: Vec<u32>,
    /// Which texts of a dictionary a page has.
    pub(super) is_met: Vec<bool>,
    /// A page before it is compressed.
    page: Vec<u8>,
    table: CompressTable,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            positions: Vec::new(),
            is_met: Vec::new(),
            page: Vec::new(),
            table: CompressTable::large(),
        }
    }
}

/// The values of a page.
enum Values {
    Bits(Vec<u8>),
    Words32(Words<u32>),
    Words64(Words<u64>),
    Texts(Texts),
    Fixed { size: usize, bytes: Vec<u8> },
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Bits => Self::Bits(Vec::new()),
            Kind::Word32(order) => Self::Words32(Words::new(order, true)),
            Kind::Word64(order) => Self::Words64(Words::new(order, true)),
            // Differences of times are all that there is to gain.
            Kind::Ascending(order) => Self::Words64(Words::new(order, false)),
            Kind::Texts(order) => Self::Texts(Texts::new(order, false)),
            Kind::Dictionary => Self::Texts(Texts::new(Order::Text, true)),
            Kind::Fixed(size) => Self::Fixed {
                size,
                bytes: Vec::new(),
            },
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Bits(bytes) | Self::Fixed { bytes, .. } => bytes.capacity(),
            Self::Words32(words) => words.bytes(),
            Self::Words64(words) => words.bytes(),
            Self::Texts(texts) => texts.bytes(),
        }
    }

    /// The bytes of the page, about.
    fn page_bytes(&self) -> usize {
        match self {
            Self::Bits(bytes) | Self::Fixed { bytes, .. } => bytes.len(),
            Self::Words32(words) => words.values.len() * 4,
            Self::Words64(words) => words.values.len() * 8,
            Self::Texts(texts) => texts.page_bytes(),
        }
    }

    /// Appends elements of an array.
    fn extend(&mut self, array: &dyn Array, slots: &Slots) -> Result<(), Error> {
        let elements = slots.elements();
        macro_rules! words {
            ($words:ident, $type:ident, $word:expr) => {{
                let values = array.as_primitive::<$type>().values();
                for elements in elements {
                    $words
                        .values
                        .extend(values[elements.clone()].iter().map($word));
                }
            }};
        }
        match (self, array.data_type()) {
            (Self::Bits(bits), DataType::Boolean) => {
                let values = array.as_boolean().values();
                let elements = elements.iter().cloned().flatten();
                bits.extend(elements.map(|element| u8::from(values.value(element))));
            }
            (Self::Words32(words), DataType::UInt8) => {
                words!(words, UInt8Type, |&value| u32::from(value));
            }
            (Self::Words32(words), DataType::UInt16) => {
                words!(words, UInt16Type, |&value| u32::from(value));
            }
            (Self::Words32(words), DataType::UInt32) => words!(words, UInt32Type, |&value| value),
            (Self::Words32(words), DataType::Int8) => {
                words!(words, Int8Type, |&value| i32::from(value) as u32);
            }
            (Self::Words32(words), DataType::Int16) => {
                words!(words, Int16Type, |&value| i32::from(value) as u32);
            }
            (Self::Words32(words), DataType::Int32) => {
                words!(words, Int32Type, |&value| value as u32);
            }
            (Self::Words32(words), DataType::Float32) => {
                words!(words, Float32Type, |value| value.to_bits());
            }
            (Self::Words64(words), DataType::UInt64) => words!(words, UInt64Type, |&value| value),
            (Self::Words64(words), DataType::Int64) => {
                words!(words, Int64Type, |&value| value as u64);
            }
            (Self::Words64(words), DataType::Timestamp(..)) => {
                words!(words, TimestampNanosecondType, |&value| value as u64);
            }
            (Self::Words64(words), DataType::Float64) => {
                words!(words, Float64Type, |value| value.to_bits());
            }
            (Self::Texts(texts), DataType::Utf8) => {
                texts.extend(array.as_bytes::<Utf8Type>(), elements);
            }
            (Self::Texts(texts), DataType::Binary) => {
                texts.extend(array.as_bytes::<BinaryType>(), elements);
            }
            (Self::Texts(texts), DataType::Dictionary(..)) => {
                let array = array.as_dictionary::<UInt32Type>();
                let all = array.values().as_bytes::<Utf8Type>();
                texts.extend_from_dictionary(array, all, elements);
            }
            (Self::Fixed { size, bytes }, DataType::FixedSizeBinary(_)) => {
                let array: &FixedSizeBinaryArray = array.as_fixed_size_binary();
                let values = array.value_data();
                for elements in elements {
                    let (begin, end) = (elements.start * *size, elements.end * *size);
                    bytes.extend_from_slice(&values[begin..end]);
                }
            }
            (_, other) => {
                let text = format!("{other} is not the type of the column");
                return Err(ParquetError::General(text).into());
            }
        }
        Ok(())
    }

    fn end_page(&mut self, scratch: &mut Scratch, out: &mut Vec<u8>) -> (Encoding, Option<Bounds>) {
        match self {
            Self::Words32(words) => words.end_page(scratch, out),
            Self::Words64(words) => words.end_page(scratch, out),
            Self::Texts(texts) => texts.end_page(scratch, out),
            Self::Bits(bits) => {
                super::pack::pack(bits, 1, out);
                let (min, max) = (bits.iter().min(), bits.iter().max());
                let bounds = min.zip(max);
                let bounds = bounds.map(|(&min, &max)| Bounds::exact(vec![min], vec![max]));
                bits.clear();
                (Encoding::PLAIN, bounds)
            }
            Self::Fixed { size, bytes } => {
                out.extend_from_slice(bytes);
                let values = || bytes.chunks_exact((*size).max(1));
                let bounds = values().min().zip(values().max());
                let bounds = bounds.map(|(min, max)| Bounds::cut(min, max, Order::Bytes));
                bytes.clear();
                (Encoding::PLAIN, bounds)
            }
        }
    }

    /// Ends the chunk: appends its dictionary, if a page refers to it, and returns the number of values in it.
    fn end_chunk(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        match self {
            Self::Bits(bytes) | Self::Fixed { bytes, .. } => {
                *bytes = Vec::new();
                None
            }
            Self::Words32(words) => words.end_chunk(out),
            Self::Words64(words) => words.end_chunk(out),
            Self::Texts(texts) => texts.end_chunk(out),
        }
    }
}

/// A page that is written.
struct PageEntry {
    bytes: usize,
    rows: u64,
    nulls: u64,
    bounds: Option<Bounds>,
    encoding: Encoding,
    /// Whether it has nothing but nulls.
    is_null: bool,
}

/// A column: the page that is being filled, and the pages of the chunk.
pub(super) struct Column {
    descriptor: ColumnDescPtr,
    kind: Kind,
    definitions: Levels,
    repetitions: Levels,
    values: Values,
    /// Of the page.
    rows: u64,
    nulls: u64,
    /// The pages of the chunk, with their headers.
    pages: Vec<u8>,
    entries: Vec<PageEntry>,
    uncompressed: usize,
    slots: u64,
}

impl Column {
    pub(super) fn new(descriptor: ColumnDescPtr, kind: Kind) -> Self {
        Self {
            definitions: Levels::new(descriptor.max_def_level() as u8),
            repetitions: Levels::new(descriptor.max_rep_level() as u8),
            values: Values::new(kind),
            descriptor,
            kind,
            rows: 0,
            nulls: 0,
            pages: Vec::new(),
            entries: Vec::new(),
            uncompressed: 0,
            slots: 0,
        }
    }

    /// The bytes of memory that the page and the chunk take.
    pub(super) fn bytes(&self) -> usize {
        let levels = self.definitions.bytes() + self.repetitions.bytes();
        self.values.bytes() + levels + self.pages.capacity()
    }

    /// Appends rows: elements of an array, and what there is instead of them.
    pub(super) fn extend(
        &mut self,
        array: &dyn Array,
        mut slots: Slots,
        rows: usize,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        self.values.extend(array, &slots)?;
        let values: usize = slots.elements().iter().map(ExactSizeIterator::len).sum();
        self.nulls += (slots.len() - values) as u64;
        self.rows += rows as u64;
        match slots.repetitions() {
            [] => self.repetitions.extend_same(0, slots.len()),
            levels => self.repetitions.extend(levels),
        }
        let (level, count) = (slots.level(), slots.len());
        match slots.definitions() {
            None => self.definitions.extend_same(level, count),
            Some(levels) => self.definitions.extend(levels),
        }
        match self.values.page_bytes() >= PAGE_BYTES {
            true => self.end_page(scratch),
            false => Ok(()),
        }
    }

    /// Ends the page, if it has rows.
    pub(super) fn end_page(&mut self, scratch: &mut Scratch) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        let slots = self.definitions.len();
        let mut page = std::mem::take(&mut scratch.page);
        page.clear();
        self.repetitions.end_page(&mut page);
        self.definitions.end_page(&mut page);
        let (encoding, bounds) = self.values.end_page(scratch, &mut page);
        let length = page.len();
        let buf = self.compressed(&page, scratch)?;
        scratch.page = page;
        let page = Page::DataPage {
            buf,
            num_values: slots as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let begin = self.pages.len();
        self.uncompressed += write_page(page, length, &mut self.pages)?;
        self.entries.push(PageEntry {
            bytes: self.pages.len() - begin,
            rows: self.rows,
            nulls: self.nulls,
            bounds,
            encoding,
            is_null: self.nulls == slots as u64,
        });
        self.slots += slots as u64;
        (self.rows, self.nulls) = (0, 0);
        Ok(())
    }

    /// The bytes of a page as they are written.
    fn compressed(&self, page: &[u8], scratch: &mut Scratch) -> Result<Bytes, Error> {
        if self.kind.compression() == Compression::UNCOMPRESSED {
            return Ok(Bytes::copy_from_slice(page));
        }
        let mut compressed = vec![0; get_maximum_output_size(page.len())];
        let length = compress_into_with_table(page, &mut compressed, &mut scratch.table)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        compressed.truncate(length);
        Ok(compressed.into())
    }

    /// Ends the chunk: its bytes, and what a footer says of them.
    pub(super) fn end_chunk(
        &mut self,
        scratch: &mut Scratch,
    ) -> Result<(Bytes, ColumnCloseResult), Error> {
        self.end_page(scratch)?;
        let mut dictionary = Vec::new();
        let mut chunk = Vec::new();
        let mut encodings = vec![Encoding::RLE];
        let mut pages = Vec::new();
        if let Some(values) = self.values.end_chunk(&mut dictionary) {
            let page = Page::DictionaryPage {
                buf: self.compressed(&dictionary, scratch)?,
                num_values: values as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            self.uncompressed += write_page(page, dictionary.len(), &mut chunk)?;
            encodings.push(Encoding::PLAIN);
            pages.push(PageEncodingStats {
                page_type: PageType::DICTIONARY_PAGE,
                encoding: Encoding::PLAIN,
                count: 1,
            });
        }
        let entries = std::mem::take(&mut self.entries);
        for entry in &entries {
            let is_data = |page: &&mut PageEncodingStats| {
                page.page_type == PageType::DATA_PAGE && page.encoding == entry.encoding
            };
            match pages.iter_mut().find(is_data) {
                Some(page) => page.count += 1,
                None => pages.push(PageEncodingStats {
                    page_type: PageType::DATA_PAGE,
                    encoding: entry.encoding,
                    count: 1,
                }),
            }
            if !encodings.contains(&entry.encoding) {
                encodings.push(entry.encoding);
            }
        }
        let begin = chunk.len();
        chunk.append(&mut self.pages);
        self.pages = Vec::new();
        let mut bounds: Option<Bounds> = None;
        for new in entries.iter().filter_map(|entry| entry.bounds.as_ref()) {
            match &mut bounds {
                Some(bounds) => bounds.add(new, self.kind.order()),
                None => bounds = Some(new.clone()),
            }
        }
        let (rows, nulls) = entries.iter().fold((0, 0), |(rows, nulls), entry| {
            (rows + entry.rows, nulls + entry.nulls)
        });
        let mut offsets = OffsetIndexBuilder::new();
        let mut at = begin;
        for entry in &entries {
            offsets.append_row_count(entry.rows as i64);
            offsets.append_offset_and_size(at as i64, entry.bytes as i32);
            at += entry.bytes;
        }
        let metadata = ColumnChunkMetaData::builder(Arc::clone(&self.descriptor))
            .set_encodings(encodings)
            .set_page_encoding_stats(pages)
            .set_compression(self.kind.compression())
            .set_num_values(std::mem::take(&mut self.slots) as i64)
            .set_total_compressed_size(chunk.len() as i64)
            .set_total_uncompressed_size(std::mem::take(&mut self.uncompressed) as i64)
            .set_data_page_offset(begin as i64)
            .set_dictionary_page_offset((begin > 0).then_some(0))
            .set_statistics(statistics(
                bounds,
                nulls,
                (self.descriptor.physical_type(), self.kind.order()),
            )?)
            .build()?;
        let result = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: rows,
            metadata,
            bloom_filter: None,
            column_index: self.index(&entries)?,
            offset_index: Some(offsets.build()),
        };
        Ok((chunk.into(), result))
    }

    /// The bounds of each page. There are none if a page has values that have none: NaN alone.
    fn index(&self, entries: &[PageEntry]) -> Result<Option<ColumnIndexMetaData>, ParquetError> {
        let mut index = ColumnIndexBuilder::new(self.descriptor.physical_type());
        let order = self.kind.order();
        let mut before: Option<&Bounds> = None;
        let (mut ascends, mut descends) = (true, true);
        for entry in entries {
            let (min, max) = match &entry.bounds {
                Some(bounds) => {
                    if let Some(before) = before.replace(bounds) {
                        let min = order.compare(&before.min, &bounds.min);
                        let max = order.compare(&before.max, &bounds.max);
                        ascends &= min.is_le() && max.is_le();
                        descends &= min.is_ge() && max.is_ge();
                    }
                    (bounds.min.clone(), bounds.max.clone())
                }
                None if entry.is_null => (Vec::new(), Vec::new()),
                None => return Ok(None),
            };
            index.append(entry.is_null, min, max, entry.nulls as i64);
        }
        index.set_boundary_order(match (ascends, descends) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        });
        index.build().map(Some)
    }
}

/// Appends a page behind its header, and returns its bytes and those of the header before it was compressed.
fn write_page(page: Page, length: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
    let mut out = TrackedWrite::new(out);
    let mut writer = SerializedPageWriter::new(&mut out);
    let written = writer.write_page(CompressedPage::new(page, length))?;
    writer.close()?;
    Ok(written.uncompressed_size)
}
