//! Row groups of a file, decoded some rows at a time.

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use super::pages::{Chunk, Pages};

/// Rows of a file that are in memory at a time: there may be many files.
const BATCH_ROWS: usize = 1 << 10;
/// Values of a batch that a column in lists has in the mean at most.
const BATCH_VALUES: u64 = 1 << 20;
/// Bytes that texts of all columns of a batch may become if it has the longest ones only.
const BATCH_BYTES: u64 = 256 << 20;
/// Pages of all columns that are in memory together take so many bytes at most.
const MOST_PAGES_BYTES: u64 = 1 << 30;

/// A row group whose pages are read by kymo.
struct Group<'m> {
    metadata: &'m ParquetMetaData,
    group: &'m RowGroupMetaData,
    chunks: Vec<Chunk>,
    batch: usize,
}

impl<'m> Group<'m> {
    fn new(file: &Bytes, metadata: &'m ParquetMetaData, number: usize) -> Result<Self> {
        let group = metadata.row_group(number);
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let chunks = group.columns().iter();
        let chunks = chunks.map(|column| Chunk::new(file, column, rows));
        let chunks = chunks.collect::<Result<Vec<_>>>()?;
        let (mut pages, mut texts, mut batch) = (0_u64, 0_u64, BATCH_ROWS as u64);
        for chunk in &chunks {
            let sizes = chunk.sizes()?;
            pages = pages.saturating_add(sizes.pages);
            let in_row = match chunk.is_repeated() {
                true => chunk.values_of_row().max(1),
                false => 1,
            };
            texts = texts.saturating_add(sizes.text.saturating_mul(in_row));
            batch = batch.min(BATCH_VALUES / in_row);
        }
        if pages > MOST_PAGES_BYTES {
            return Err(ParquetError::General(format!(
                "a page of each column together have {pages} bytes; kymo reads up to {MOST_PAGES_BYTES}"
            )));
        }
        batch = batch.min(BATCH_BYTES / texts.max(1)).max(1);
        Ok(Self {
            metadata,
            group,
            chunks,
            batch: usize::try_from(batch).unwrap_or(BATCH_ROWS),
        })
    }
}

impl RowGroups for Group<'_> {
    fn num_rows(&self) -> usize {
        usize::try_from(self.group.num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let chunk = self.chunks.get(column).cloned();
        let pages = chunk.map(|chunk| Pages::new(chunk, self.batch));
        Ok(Box::new(Once(pages)))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.group))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

/// The pages of the only group.
struct Once(Option<Pages>);

impl Iterator for Once {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|pages| Ok(Box::new(pages) as _))
    }
}

impl PageIterator for Once {}

/// The rows of some row groups of a file.
pub(super) struct Batches {
    file: Bytes,
    metadata: Arc<ParquetMetaData>,
    levels: FieldLevels,
    /// Groups that are still to come, the next one last.
    groups: Vec<usize>,
    reader: Option<ParquetRecordBatchReader>,
}

impl Batches {
    /// Those of some groups, with all columns; `fields` are their types.
    pub(super) fn new(
        file: Bytes,
        metadata: Arc<ParquetMetaData>,
        fields: Option<&arrow_schema::Fields>,
        groups: impl Iterator<Item = usize>,
    ) -> Result<Self> {
        let schema = metadata.file_metadata().schema_descr();
        if schema.num_columns() == 0 {
            return Err(ParquetError::General("it has no columns".to_owned()));
        }
        let levels = parquet_to_arrow_field_levels(schema, ProjectionMask::all(), fields)?;
        let mut groups: Vec<usize> = groups.collect();
        groups.reverse();
        Ok(Self {
            file,
            metadata,
            levels,
            groups,
            reader: None,
        })
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(reader) = &mut self.reader
                && let Some(batch) = reader.next()
            {
                return Ok(Some(batch?));
            }
            self.reader = None;
            let Some(number) = self.groups.pop() else {
                return Ok(None);
            };
            let group = Group::new(&self.file, &self.metadata, number)?;
            let reader = ParquetRecordBatchReader::try_new_with_row_groups(
                &self.levels,
                &group,
                group.batch,
                None,
            )?;
            self.reader = Some(reader);
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            // What comes behind damage is not what follows.
            self.groups.clear();
            self.reader = None;
        }
        step.transpose()
    }
}
