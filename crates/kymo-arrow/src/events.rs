//! Rows of any classes as one table: its schema, and its batches one after the other.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use kymo::timeline::{Batch, Columns, Notice, Query, QueryError, Rows, Shape, Timeline};
use kymo_model::Recording;

use crate::array::{dictionary, field};
use crate::tables::{class_name, paths, schema, texts, time_type};
use crate::{Error, array};

/// A column of every row, whatever its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnColumn {
    /// When: `timestamp`.
    Timestamp,
    /// The count of the clock: `ticks`.
    Ticks,
    /// Position of the stream in its recording: `stream`.
    Stream,
    /// Path of the recording: `recording`.
    Recording,
    /// Name of the class: `event`.
    Event,
}

impl OwnColumn {
    /// All columns, in the order of a table.
    pub const ALL: [Self; 5] = [
        Self::Timestamp,
        Self::Ticks,
        Self::Stream,
        Self::Recording,
        Self::Event,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timestamp => "timestamp",
            Self::Ticks => "ticks",
            Self::Stream => "stream",
            Self::Recording => "recording",
            Self::Event => "event",
        }
    }

    /// The column with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    fn data_type(self, timeline: &Timeline) -> DataType {
        match self {
            Self::Timestamp => time_type(timeline.recordings()),
            Self::Ticks => DataType::UInt64,
            Self::Stream => DataType::UInt32,
            Self::Recording | Self::Event => dictionary(),
        }
    }
}

/// Where a column of the table comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Own(OwnColumn),
    /// Position among the columns of a batch.
    Field(usize),
}

/// The rows of a query as a table.
///
/// ```
/// use kymo::timeline::{Query, Timeline};
/// use kymo_arrow::EventTable;
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
///
/// let opened = kymo::open::open(&[path.into()], &Default::default());
/// let timeline = Timeline::new(opened.recordings);
/// let table = EventTable::with_columns(timeline, Query::default(), &["timestamp", "seq"])?;
/// let mut rows = 0;
/// for batch in table.read()? {
///     rows += batch?.num_rows();
/// }
/// assert!(rows > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventTable {
    timeline: Timeline,
    query: Query,
    schema: SchemaRef,
    sources: Vec<Source>,
    /// Paths of the recordings, and names of the classes: of each recording, the position of its first class.
    paths: Arc<[String]>,
    classes: Arc<[String]>,
    first_classes: Arc<[u32]>,
}

impl EventTable {
    /// A table with all columns: [those of every row](OwnColumn), and the fields of all classes that the query names.
    /// A field whose type differs between classes gets the wider type; rows of classes without it are null.
    ///
    /// # Errors
    ///
    /// The query is wrong.
    pub fn new(timeline: Timeline, mut query: Query) -> Result<Self, QueryError> {
        query.columns = Columns::All;
        query.shape = Shape::Mixed;
        let fields = timeline.schema(&query)?;
        let own = OwnColumn::ALL.map(|column| (column.name(), column.data_type(&timeline)));
        let schema = schema(&own, &fields);
        let own = OwnColumn::ALL.into_iter().map(Source::Own);
        let sources = own.chain((0..fields.len()).map(Source::Field)).collect();
        Ok(Self::with(timeline, query, schema, sources))
    }

    /// A table with some columns: names of [columns of every row](OwnColumn), and of fields as in
    /// [conditions](kymo::filter). A field with the name of the former has its scope before it: `payload.event`.
    ///
    /// # Errors
    ///
    /// The query or a name is wrong.
    pub fn with_columns(
        timeline: Timeline,
        mut query: Query,
        names: &[&str],
    ) -> Result<Self, QueryError> {
        let is_field = |name: &&&str| OwnColumn::named(name).is_none();
        let fields: Vec<&str> = names.iter().filter(is_field).copied().collect();
        query.columns = match fields.is_empty() {
            true => Columns::None,
            false => Columns::named(&fields.join(","))?,
        };
        query.shape = Shape::Mixed;
        let columns = timeline.schema(&query)?;
        let mut sources = Vec::with_capacity(names.len());
        let mut schema = Vec::with_capacity(names.len());
        for name in names {
            if let Some(own) = OwnColumn::named(name) {
                sources.push(Source::Own(own));
                schema.push(Field::new(own.name(), own.data_type(&timeline), true));
                continue;
            }
            // A name that is there twice is one column of the batch.
            let position = columns
                .iter()
                .position(|column| *column.name == *name.trim());
            let position = position.unwrap_or_default();
            sources.push(Source::Field(position));
            schema.push(field(&columns[position]));
        }
        let schema = Arc::new(Schema::new(schema));
        Ok(Self::with(timeline, query, schema, sources))
    }

    fn with(timeline: Timeline, query: Query, schema: SchemaRef, sources: Vec<Source>) -> Self {
        let mut classes = Vec::new();
        let mut first_classes = Vec::new();
        for recording in timeline.recordings() {
            first_classes.push(classes.len() as u32);
            let names = recording.event_classes().iter().map(class_name);
            classes.extend(names.map(|name| name.to_string()));
        }
        Self {
            paths: paths(&timeline).into(),
            classes: classes.into(),
            first_classes: first_classes.into(),
            timeline,
            query,
            schema,
            sources,
        }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What is asked of the timeline: its batches are those that [`record_batch`](Self::record_batch) takes.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// The recordings.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The rows, batch by batch: as often as it is called.
    ///
    /// # Errors
    ///
    /// The condition is wrong, or the system has no thread for it.
    pub fn read(&self) -> Result<EventReader, QueryError> {
        Ok(EventReader {
            rows: self.timeline.rows(&self.query)?,
            table: self.clone(),
            notices: Vec::new(),
        })
    }

    /// A batch of the query's rows as a batch of the table.
    ///
    /// # Errors
    ///
    /// The batch is not of this query.
    pub fn record_batch(&self, batch: Batch) -> Result<RecordBatch, Error> {
        let rows = batch.len();
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; self.sources.len()];
        for (source, array) in self.sources.iter().zip(&mut arrays) {
            if let Source::Own(own) = source {
                *array = self.of_ids(*own, &batch)?;
            }
        }
        let (times, ticks, columns) = batch.into_columns();
        let mut times = Some(times);
        let mut ticks = Some(ticks);
        let mut columns: Vec<_> = columns.into_iter().map(Some).collect();
        for position in 0..self.sources.len() {
            if arrays[position].is_some() {
                continue;
            }
            let column = match self.sources[position] {
                Source::Own(OwnColumn::Timestamp) => times.take(),
                Source::Own(_) => ticks.take(),
                Source::Field(field) => columns.get_mut(field).and_then(Option::take),
            };
            let data_type = self.schema.field(position).data_type();
            arrays[position] = Some(match column {
                Some(column) => array(column, data_type)?,
                None => self.same(position, &arrays)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let arrays = arrays.into_iter().flatten().collect();
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }

    /// A column that is in the table twice.
    fn same(&self, position: usize, arrays: &[Option<ArrayRef>]) -> Result<ArrayRef, ArrowError> {
        let is_same = |source: &Source| match (source, self.sources[position]) {
            (Source::Own(a), Source::Own(b)) => *a == b,
            (Source::Field(a), Source::Field(b)) => *a == b,
            _ => false,
        };
        let first = self.sources[..position].iter().position(is_same);
        let array = first.and_then(|first| arrays[first].clone());
        array.ok_or_else(|| ArrowError::InvalidArgumentError("a column is missing".to_owned()))
    }

    /// A column that follows from what identifies rows; none for others.
    fn of_ids(&self, column: OwnColumn, batch: &Batch) -> Result<Option<ArrayRef>, Error> {
        let mut values = Vec::with_capacity(batch.len());
        let (keys, names) = match column {
            OwnColumn::Stream => {
                for (rows, id) in batch.runs() {
                    values.resize(rows.end, id.stream);
                }
                return Ok(Some(Arc::new(UInt32Array::from(values))));
            }
            OwnColumn::Recording => {
                for (rows, id) in batch.runs() {
                    values.resize(rows.end, id.recording);
                }
                (values, &self.paths)
            }
            OwnColumn::Event => {
                for (rows, id) in batch.runs() {
                    let first = self.first_classes[id.recording as usize];
                    let classes = &batch.classes()[rows];
                    values.extend(classes.iter().map(|class| first + class));
                }
                (values, &self.classes)
            }
            _ => return Ok(None),
        };
        texts(keys.into_iter().map(Some).collect(), names).map(Some)
    }
}

/// The batches of a table; a thread works ahead, and ends when this is dropped.
#[derive(Debug)]
pub struct EventReader {
    table: EventTable,
    rows: Rows,
    notices: Vec<Notice>,
}

impl EventReader {
    /// Returns the losses and damage found since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

impl Iterator for EventReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = self.rows.next()?;
            self.notices.extend(batch.notices().iter().cloned());
            if batch.is_empty() {
                continue;
            }
            let made = self.table.record_batch(batch);
            return Some(made.map_err(|error| match error {
                Error::Arrow(error) => error,
                error => ArrowError::ExternalError(Box::new(error)),
            }));
        }
    }
}

impl RecordBatchReader for EventReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.table.schema)
    }
}
