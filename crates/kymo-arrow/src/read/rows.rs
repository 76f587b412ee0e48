//! Rows of files, one after the other.

use std::sync::Arc;

use arrow_schema::Schema;
use kymo::pipeline::Window;
use kymo_ctf::class::TraceClass;
use kymo_ctf::write::{Encode, EventId};
use kymo_model::{FieldId, Scope, Visitor};

use super::Problem;
use super::column::Column;
use super::footer::{Footer, Statistics};
use super::groups::{Batch, Batches};
use super::order::Position;
use super::schema::{Content, FileSchema};
use super::values::{NotGiven, give};
use crate::kinds::{Form, SCOPE};

/// The scopes of an event in the order in which they are recorded.
const SCOPES: [Scope; 3] = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];

/// Maximum number of rows of a file, and what each of its bytes adds to it: a run of a few bytes can claim any number of
/// rows.
const MOST_ROWS: (u64, u64) = (1 << 24, 1 << 6);
/// The same of values and nulls of all columns.
const MOST_VALUES: (u64, u64) = (1 << 28, 1 << 8);

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
    footer: Arc<Footer>,
    schema: Arc<FileSchema>,
}

impl TableFile {
    /// `plain` does without what Arrow has written of its types.
    pub(super) fn new(bytes: bytes::Bytes, plain: bool) -> Result<Self, Problem> {
        let footer = Footer::read(&bytes)?;
        let schema = FileSchema::new(&footer, plain)?;
        let file = Self {
            bytes,
            footer: Arc::new(footer),
            schema: Arc::new(schema),
        };
        let chunks = file.footer.groups.iter().flat_map(|group| &group.columns);
        let values = chunks.fold(0, |sum: u64, chunk| sum.saturating_add(chunk.values));
        for (count, what, (least, times)) in [
            (file.rows(), "rows", MOST_ROWS),
            (values, "values", MOST_VALUES),
        ] {
            let size = file.bytes.len() as u64;
            let most = size.saturating_mul(times).saturating_add(least);
            if count > most {
                return Err(format!(
                    "it has {count} {what} in {size} bytes; kymo reads up to {most} from a file of that size"
                ));
            }
        }
        Ok(file)
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema.arrow
    }

    #[cfg(test)]
    pub(super) fn leaves(&self) -> &[Arc<super::schema::Leaf>] {
        &self.schema.leaves
    }

    /// What the file says of a column in each row group.
    pub(super) fn statistics(&self, column: usize) -> impl Iterator<Item = Statistics> {
        let leaf = self.schema.columns.get(column).map(|node| node.leaf);
        let groups = self.footer.groups.iter();
        groups.map(move |group| {
            let chunk = leaf.and_then(|leaf| group.columns.get(leaf));
            chunk.map(|chunk| chunk.statistics).unwrap_or_default()
        })
    }

    /// How many values of a column are null; `None` if the file does not record it.
    pub(super) fn nulls(&self, column: usize) -> Option<u64> {
        let mut counts = self.statistics(column).map(|statistics| statistics.nulls);
        counts.try_fold(0_u64, |sum, count| sum.checked_add(count?))
    }

    /// How many rows the file says that it has.
    pub(super) fn rows(&self) -> u64 {
        let rows = self.footer.groups.iter().map(|group| group.rows);
        rows.fold(0, u64::saturating_add)
    }

    /// How many row groups the file has.
    pub(super) fn groups(&self) -> usize {
        self.footer.groups.len()
    }

    /// The row groups that may have rows with a time in a window, by what the file says of a column of times.
    pub(super) fn groups_within(&self, time: usize, window: Window) -> Vec<usize> {
        let leaf = &self.schema.leaves[self.schema.columns[time].leaf];
        let Content::Time(unit) = leaf.content else {
            return (0..self.groups()).collect();
        };
        let is_outside = |statistics: Statistics| {
            // Rows without a time are wanted where others are not.
            let (Some(least), Some(most), Some(0)) =
                (statistics.least, statistics.most, statistics.nulls)
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
    pub(super) fn read(&self) -> Batches {
        self.read_groups(0..self.groups())
    }

    /// The rows of some row groups.
    pub(super) fn read_groups(&self, groups: impl IntoIterator<Item = usize>) -> Batches {
        Batches::new(
            self.bytes.clone(),
            Arc::clone(&self.footer),
            Arc::clone(&self.schema),
            groups.into_iter(),
        )
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
    batch: Batch,
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
    pub(super) fn new(file: &TableFile, groups: Vec<usize>, columns: Columns, own: Own) -> Self {
        Self {
            columns,
            own,
            reader: file.read_groups(groups),
            batch: Batch::default(),
            row: 0,
            time: i64::MIN,
        }
    }

    /// Goes to the next row: its time, or the latest before it, and its position; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(i64, Position)>, Problem> {
        self.row += 1;
        while self.row >= self.batch.rows {
            match self.reader.next() {
                Some(batch) => self.batch = batch?,
                None => return Ok(None),
            }
            self.row = 0;
        }
        let time = self.own.timestamp.and_then(|column| self.nanos(column));
        self.time = self.time.max(time.unwrap_or(i64::MIN));
        let number = |column: usize| self.column(column).unsigned(self.row);
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
        self.column(column).nanos(self.row)
    }

    fn column(&self, column: usize) -> &Column {
        &self.batch.columns[column]
    }

    pub(super) fn event(&self) -> EventId {
        self.columns.event
    }

    /// The ticks of the row.
    pub(super) fn ticks(&self) -> Option<u64> {
        match self.own.ticks {
            Ticks::Column(column) => self.column(column).unsigned(self.row),
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
                give(form, self.column(*column), self.row, to)?;
            }
            to.end_struct(FieldId(0));
        }
        Ok(())
    }
}
