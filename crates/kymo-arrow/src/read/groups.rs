//! Row groups of a file, decoded some rows at a time.

use std::sync::Arc;

use bytes::Bytes;

use super::Problem;
use super::budget::Budget;
use super::column::Column;
use super::footer::{Footer, RowGroup};
use super::pages::ColumnReader;
use super::schema::FileSchema;

/// Rows of a file that are in memory at a time: there may be many files.
const BATCH_ROWS: u64 = 1 << 10;
/// Values of a batch that a column in lists has in the mean at most.
const BATCH_VALUES: u64 = 1 << 20;
/// Bytes of all columns of a batch, in the mean.
const BATCH_BYTES: u64 = 256 << 20;
/// Maximum number of bytes of pages and values of all columns that are in memory together.
const MOST_BYTES: u64 = 1 << 30;
/// Maximum number of bytes that the pages of a file become, and what each of its bytes adds to it. Nothing that has been
/// recorded comes near to it.
const MOST_UNPACKED: (u64, u64) = (1 << 30, 1 << 10);

/// Some rows: a column for each field of the schema.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) rows: usize,
    pub(super) columns: Vec<Column>,
}

/// A row group that is being read.
struct Group {
    columns: Vec<ColumnReader>,
    rows: u64,
    left: u64,
    batch: u64,
}

impl Group {
    fn new(file: &Bytes, schema: &FileSchema, group: &RowGroup) -> Result<Self, Problem> {
        if group.columns.len() != schema.leaves.len() {
            return Err(format!(
                "a row group has {} columns, and the schema {}",
                group.columns.len(),
                schema.leaves.len()
            ));
        }
        let rows = group.rows.max(1);
        let (mut batch, mut bytes) = (BATCH_ROWS, 0_u64);
        for column in &group.columns {
            batch = batch.min(BATCH_VALUES / (column.values / rows).max(1));
            bytes = bytes.saturating_add(column.full_size / rows);
        }
        let columns = schema.leaves.iter().zip(&group.columns);
        let columns = columns.map(|(leaf, chunk)| ColumnReader::new(file, leaf, chunk));
        Ok(Self {
            columns: columns.collect::<Result<_, _>>()?,
            rows: group.rows,
            left: group.rows,
            batch: batch.min(BATCH_BYTES / bytes.max(1)).max(1),
        })
    }

    fn next(&mut self, schema: &FileSchema, budget: &mut Budget) -> Result<Batch, Problem> {
        let rows = self.left.min(self.batch) as usize;
        self.left -= rows as u64;
        budget.begin();
        for column in &self.columns {
            budget.take(column.held())?;
        }
        let mut leaves = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            leaves.push(Some(column.read(rows, budget)?));
            if self.left == 0 {
                column.end(self.rows)?;
            }
        }
        let columns = schema.columns.iter().zip(schema.arrow.fields());
        let columns = columns.map(|(node, field)| {
            let column = Column::new(node, &mut leaves);
            column.map_err(|problem| format!("column `{}`: {problem}", field.name()))
        });
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Batch { rows, columns })
    }
}

/// The rows of some row groups of a file.
pub(super) struct Batches {
    file: Bytes,
    footer: Arc<Footer>,
    schema: Arc<FileSchema>,
    /// Groups that are still to come, the next one last.
    groups: Vec<usize>,
    group: Option<Group>,
    budget: Budget,
}

impl Batches {
    /// Those of some groups, with all columns.
    pub(super) fn new(
        file: Bytes,
        footer: Arc<Footer>,
        schema: Arc<FileSchema>,
        groups: impl Iterator<Item = usize>,
    ) -> Self {
        let mut groups: Vec<usize> = groups.collect();
        groups.reverse();
        let (least, times) = MOST_UNPACKED;
        let unpacked = (file.len() as u64)
            .saturating_mul(times)
            .saturating_add(least);
        Self {
            budget: Budget::new(MOST_BYTES, unpacked),
            file,
            footer,
            schema,
            groups,
            group: None,
        }
    }

    fn step(&mut self) -> Result<Option<Batch>, Problem> {
        loop {
            if let Some(group) = self.group.as_mut().filter(|group| group.left > 0) {
                return group.next(&self.schema, &mut self.budget).map(Some);
            }
            let Some(number) = self.groups.pop() else {
                return Ok(None);
            };
            let group = &self.footer.groups[number];
            self.group = Some(Group::new(&self.file, &self.schema, group)?);
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            // What comes behind damage is not what follows.
            self.groups.clear();
            self.group = None;
        }
        step.transpose()
    }
}
