//! Rows of files, one after the other.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};
use kymo::pipeline::Window;
use kymo_ctf::class::TraceClass;
use kymo_ctf::write::{Encode, EventId};
use kymo_model::{FieldId, Scope, Visitor};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::statistics::Statistics;

use super::footer;
use super::groups::Batches;
use super::order::Position;
use super::values::{self, NotGiven, give, unsigned};
use crate::Error;
use crate::kinds::{Form, SCOPE};

/// The scopes of an event in the order in which they are recorded.
const SCOPES: [Scope; 3] = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];

/// The bytes of a file, as Parquet's reader takes them: they are mapped, and not copied.
pub(super) fn bytes_of(file: kymo_io::Bytes) -> bytes::Bytes {
    struct Owner(kymo_io::Bytes);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    bytes::Bytes::from_owner(Owner(file))
}

/// A file, of which the footer is read.
#[derive(Clone)]
pub(super) struct TableFile {
    bytes: bytes::Bytes,
    metadata: ArrowReaderMetadata,
}

impl TableFile {
    /// `plain` does without what Arrow has written of its types.
    pub(super) fn new(bytes: bytes::Bytes, plain: bool) -> Result<Self, Error> {
        let wrong = |problem: String| Error::from(ParquetError::General(problem));
        let levels = footer::levels(&bytes);
        let levels = levels.ok_or_else(|| wrong("its end is not that of a Parquet file".into()))?;
        if levels > footer::MOST_LEVELS {
            let most = footer::MOST_LEVELS;
            return Err(wrong(format!(
                "its columns are nested in more than {most} others"
            )));
        }
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(plain);
        let metadata = ArrowReaderMetadata::load(&bytes, options)?;
        Ok(Self { bytes, metadata })
    }

    pub(super) fn schema(&self) -> &Arc<Schema> {
        self.metadata.schema()
    }

    /// What the file says of a column in each row group.
    pub(super) fn statistics(&self, column: usize) -> impl Iterator<Item = Option<&Statistics>> {
        let leaves = self.metadata.parquet_schema();
        let mut all = 0..leaves.num_columns();
        let leaf = all.find(|&leaf| leaves.get_column_root_idx(leaf) == column);
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(move |group| group.columns().get(leaf?)?.statistics())
    }

    /// How many values of a column are null; `None` if the file does not record it.
    pub(super) fn nulls(&self, column: usize) -> Option<u64> {
        let mut counts = self
            .statistics(column)
            .map(|statistics| statistics?.null_count_opt());
        counts.try_fold(0_u64, |sum, count| sum.checked_add(count?))
    }

    /// How many rows the file says that it has.
    pub(super) fn rows(&self) -> u64 {
        let groups = self.metadata.metadata().row_groups().iter();
        let rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        rows.fold(0, u64::saturating_add)
    }

    /// How many row groups the file has.
    pub(super) fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// The row groups that may have rows with a time in a window, by what the file says of a column of times.
    pub(super) fn groups_within(&self, time: usize, window: Window) -> Vec<usize> {
        let unit = match self.schema().field(time).data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
            DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
            DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
            DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
            _ => return (0..self.groups()).collect(),
        };
        let is_outside = |statistics: Option<&Statistics>| {
            let Some(Statistics::Int64(bounds)) = statistics else {
                return false;
            };
            // Rows without a time are wanted where others are not.
            let (Some(&least), Some(&most), Some(0)) =
                (bounds.min_opt(), bounds.max_opt(), bounds.null_count_opt())
            else {
                return false;
            };
            // Those that do not fit are not times that rows can have.
            least.saturating_mul(unit) > window.end.as_nanos()
                || most.saturating_mul(unit) < window.begin.as_nanos()
        };
        let statistics = self.statistics(time).enumerate();
        let inside = statistics.filter(|&(_, statistics)| !is_outside(statistics));
        inside.map(|(group, _)| group).collect()
    }

    /// The first and the last row group.
    pub(super) fn ends(&self) -> Vec<usize> {
        match self.groups() {
            0 => Vec::new(),
            1 => vec![0],
            groups => vec![0, groups - 1],
        }
    }

    /// All rows.
    pub(super) fn read(&self) -> Result<Batches, Error> {
        self.read_groups(0..self.groups())
    }

    /// The rows of some row groups.
    pub(super) fn read_groups(
        &self,
        groups: impl IntoIterator<Item = usize>,
    ) -> Result<Batches, Error> {
        let metadata = Arc::clone(self.metadata.metadata());
        let fields = Some(self.schema().fields());
        Ok(Batches::new(
            self.bytes.clone(),
            metadata,
            fields,
            groups.into_iter(),
        )?)
    }
}

/// What the rows of a file become.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) event: EventId,
    /// Of each scope that the class has the columns of its members, in order.
    scopes: Vec<Vec<(usize, Form)>>,
}

impl Columns {
    /// The columns of a class, which say of which scope they are.
    pub(super) fn new(schema: &Schema, class: &TraceClass, event: EventId) -> Result<Self, String> {
        let stream = class.streams.get(event.stream_class);
        let Some((stream, model)) =
            stream.and_then(|stream| Some((stream, stream.events.get(event.event)?)))
        else {
            return Err(format!(
                "event class {}/{} is not in the metadata",
                event.stream_class, event.event
            ));
        };
        let mut scopes = Vec::new();
        for scope in SCOPES {
            let is_there = match scope {
                Scope::CommonContext => stream.common_context.is_some(),
                Scope::SpecificContext => model.specific_context.is_some(),
                _ => model.payload.is_some(),
            };
            if !is_there {
                continue;
            }
            let mut columns = Vec::new();
            for (position, field) in schema.fields().iter().enumerate() {
                let name = field.metadata().get(SCOPE);
                if name.is_some_and(|name| name == scope.name()) {
                    columns.push((position, Form::of(field)?));
                }
            }
            scopes.push(columns);
        }
        Ok(Self { event, scopes })
    }

    /// Columns that are all the payload.
    pub(super) fn payload(columns: Vec<(usize, Form)>) -> Self {
        Self {
            event: EventId {
                stream_class: 0,
                event: 0,
            },
            scopes: vec![columns],
        }
    }
}

/// The rows of a file.
pub(super) struct Rows {
    columns: Columns,
    own: Own,
    reader: Batches,
    batch: RecordBatch,
    row: usize,
    /// The latest time so far.
    time: i64,
}

/// Where a file has what identifies a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub(super) timestamp: Option<usize>,
    /// Ticks of the stream's clock, or that the time is counted in nanoseconds since `0`.
    pub(super) ticks: Ticks,
    /// Columns of stream, packet and number in the packet; if there are none, rows are as they are in the file.
    pub(super) position: Option<[usize; 3]>,
}

/// Where the ticks of events are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ticks {
    Column(usize),
    /// Nanoseconds since the time.
    Since(i64),
}

impl Rows {
    /// Those of some row groups.
    pub(super) fn new(
        file: &TableFile,
        groups: Vec<usize>,
        columns: Columns,
        own: Own,
    ) -> Result<Self, Error> {
        Ok(Self {
            columns,
            own,
            reader: file.read_groups(groups)?,
            batch: RecordBatch::new_empty(Arc::clone(file.schema())),
            row: 0,
            time: i64::MIN,
        })
    }

    /// Goes to the next row: its time, or the latest before it, and its position; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(i64, Position)>, Error> {
        self.row += 1;
        while self.row >= self.batch.num_rows() {
            match self.reader.next() {
                Some(batch) => self.batch = batch?,
                None => return Ok(None),
            }
            self.row = 0;
        }
        let time = self.own.timestamp.and_then(|column| self.nanos(column));
        self.time = self.time.max(time.unwrap_or(i64::MIN));
        let number = |column: usize| unsigned(self.batch.column(column), self.row);
        let position = match self.own.position {
            None => Position {
                stream: 0,
                packet: 0,
                number: 0,
            },
            Some([stream, packet, of_packet]) => Position {
                stream: number(stream)
                    .and_then(|number| u32::try_from(number).ok())
                    .unwrap_or(u32::MAX),
                packet: number(packet).unwrap_or(0),
                number: number(of_packet).unwrap_or(0),
            },
        };
        Ok(Some((self.time, position)))
    }

    fn nanos(&self, column: usize) -> Option<i64> {
        values::nanos(self.batch.column(column), self.row)
    }

    pub(super) fn event(&self) -> EventId {
        self.columns.event
    }

    /// The ticks of the row.
    pub(super) fn ticks(&self) -> Option<u64> {
        match self.own.ticks {
            Ticks::Column(column) => {
                let array: &ArrayRef = self.batch.column(column);
                (!array.is_null(self.row)).then(|| unsigned(array, self.row))?
            }
            Ticks::Since(zero) => {
                let time = i128::from(self.nanos(self.own.timestamp?)?) - i128::from(zero);
                u64::try_from(time).ok()
            }
        }
    }

    /// Gives the values of the row.
    pub(super) fn give(&self, to: &mut Encode<'_>) -> Result<(), NotGiven> {
        for columns in &self.columns.scopes {
            to.begin_struct(FieldId(0));
            for (column, form) in columns {
                give(form, self.batch.column(*column), self.row, to)?;
            }
            to.end_struct(FieldId(0));
        }
        Ok(())
    }
}
