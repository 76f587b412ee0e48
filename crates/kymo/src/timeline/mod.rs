//! Recordings on one time line, asked for rows and summaries.
//!
//! A [`Timeline`] is recordings that are open. A [`Query`] says which of their events are wanted, and
//! which fields as columns; [`Timeline::rows`] answers with [batches](Batch), merged by time in
//! babeltrace2's order, whatever the number of threads. Memory is bounded by a few chunks of each stream.
//!
//! ```
//! use kymo::timeline::{Columns, Query, Timeline};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
//!
//! let opened = kymo::open::open(&[path.into()], &Default::default());
//! let timeline = Timeline::new(opened.recordings);
//! let mut query = Query::default();
//! query.columns = Columns::named("seq, next_comm")?;
//! let mut events = 0;
//! for batch in timeline.rows(&query)? {
//!     let seq = batch.column("seq").expect("it was asked for");
//!     events += batch.len();
//!     assert_eq!(seq.len(), batch.len());
//! }
//! assert!(events > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Backwards, the first rows are the last ones, or those before a time:
//!
//! ```
//! use kymo::timeline::{Direction, Query, Timeline};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
//! # let opened = kymo::open::open(&[path.into()], &Default::default());
//! # let timeline = Timeline::new(opened.recordings);
//! # let time = kymo_time::Timestamp::MAX;
//!
//! let mut query = Query::default();
//! query.direction = Direction::Backwards;
//! query.limit = Some(1);
//! query.range.end = time;
//! let last = timeline.rows(&query)?.next().expect("there is an event");
//! assert_eq!(last.len(), 1);
//! # Ok::<(), kymo::timeline::QueryError>(())
//! ```
//!
//! Recordings that grow are read on by [`refresh`](Timeline::refresh):
//!
//! ```
//! use kymo::timeline::{Query, Timeline};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
//! # let opened = kymo::open::open(&[path.into()], &Default::default());
//!
//! let mut timeline = Timeline::new(opened.recordings);
//! let changes = timeline.refresh()?;
//! let mut query = Query::default();
//! query.from = Some(changes.places());
//! for batch in timeline.rows(&query)? {
//!     unreachable!("nothing was added: {} rows", batch.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod backwards;
mod contributions;
mod fill;
mod gather;
mod index;
mod pass;
mod plan;
mod refresh;
mod rows;
mod slices;
mod summary;
mod text;
mod tracks;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use kymo_model::FaultReport;
use kymo_model::batch::ColumnType;
pub use kymo_model::batch::{Batch, Notice, NoticeKind, RowHead, RowId};

use kymo_time::Timestamp;

use crate::AnyRecording;
use crate::filter::{self, FieldNames, Filter, FilterError};
use crate::pipeline::{self, Window};
use crate::tracks::TrackPlan;

pub(crate) use self::fill::Filler;
pub use self::index::{IndexOptions, IndexState, KnownCounts, Overview, TimelineIndex};
pub(crate) use self::plan::{RowPlan, named_fields};
pub use self::refresh::{Changes, InUse, Watched};
pub use self::rows::Rows;
pub use self::slices::{MissingSlices, Slice};
pub use self::summary::{Summary, TrackSummary};
pub use self::text::{Text, TextRows};
pub use self::tracks::{RowTracks, TrackEntry};
pub use crate::pipeline::Places;
pub use kymo_index::{Bin, Cache, Grid, Slices, Values, default_directory};

/// Which fields become columns.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Columns {
    /// None: only what every row has.
    #[default]
    None,
    /// All fields of the payload and the contexts of the classes whose names are asked for.
    All,
    /// These, by name, as in [conditions](crate::filter); `event.name` and its like too.
    Named(FieldNames),
    /// Of the columns of [`All`](Self::All) those with these names, of the event classes that the query's patterns
    /// choose; other classes do not shape the schema. Behind them come fields of packets, if no column of the class has
    /// their name.
    Chosen {
        /// Names of columns.
        columns: Arc<HashSet<Arc<str>>>,
        /// Names of fields of packet contexts and headers.
        packet_fields: Arc<[Arc<str>]>,
    },
}

impl Columns {
    /// The fields with these names, with commas between them.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn named(names: &str) -> Result<Self, FilterError> {
        FieldNames::parse(names).map(Self::Named)
    }
}

/// How rows become batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// One schema for all: a field whose type differs between classes becomes the wider integer, else a
    /// 64-bit floating point number, else text; where a class does not have it, rows are null.
    #[default]
    Mixed,
    /// Each batch has rows of one event class of one recording, with the class's own types.
    ByClass,
}

/// In which order rows come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// From the first to the last.
    #[default]
    Forwards,
    /// From the last to the first: exactly the other way round.
    Backwards,
}

/// What is asked of a timeline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Query {
    /// Which events, by name and condition.
    pub filter: filter::Query,
    /// From when to when. Rows without a time are always in it, and come first.
    pub range: Window,
    /// Which fields.
    pub columns: Columns,
    /// Whether texts are columns of bytes, in which nothing that is not UTF-8 is replaced.
    pub binary_texts: bool,
    /// How rows become batches.
    pub shape: Shape,
    /// From which row of each stream on; `None` for all. [`Changes::places`] are those of what is new.
    pub from: Option<Places>,
    /// Before which row of each stream to end; `None` for the last. Streams that have no place are read to their end.
    pub to: Option<Places>,
    /// In which order.
    pub direction: Direction,
    /// How many rows at most; backwards the last ones.
    pub limit: Option<u64>,
    /// Threads to work with; at least 1.
    pub threads: usize,
    /// Maximum number of rows of a batch; at least 1.
    pub batch_rows: usize,
    /// Ends the run soon after it is set, though no batch may be ready to be handed over.
    pub stop: Option<Arc<AtomicBool>>,
    /// Grows by the size in bytes of each chunk that is begun, in any thread; only forwards, without `from` and `to`.
    pub read: Option<Arc<AtomicU64>>,
    /// How many events of which classes there are in chunks of these recordings, in their order: a chunk without an event
    /// of a wanted class is not read.
    pub known: Option<Arc<KnownCounts>>,
    /// Whether batches have the columns that [`RowTracks`] needs.
    with_tracks: bool,
}

impl Default for Query {
    /// All rows without columns, as many threads as there are processors, batches of 16,384 rows.
    fn default() -> Self {
        Self {
            filter: filter::Query::default(),
            range: Window::ALL,
            columns: Columns::None,
            binary_texts: false,
            shape: Shape::Mixed,
            from: None,
            to: None,
            direction: Direction::Forwards,
            limit: None,
            threads: pipeline::Options::default().threads,
            batch_rows: 1 << 14,
            stop: None,
            read: None,
            known: None,
            with_tracks: false,
        }
    }
}

/// Why a query cannot be answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueryError {
    /// The condition or a name of a column is wrong.
    Filter(FilterError),
    /// The system has no thread for it.
    Thread(io::Error),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(error) => write!(f, "{error}"),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for QueryError {}

impl From<FilterError> for QueryError {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

/// Recordings on one time line.
#[derive(Clone, Debug)]
pub struct Timeline {
    recordings: Arc<Vec<AnyRecording>>,
    watched: Option<Watched>,
    /// What summaries are made from, as soon as the first one is asked for.
    index: Arc<OnceLock<TimelineIndex>>,
}

/// A query that is bound to recordings.
struct Bound {
    filter: Filter,
    from: Option<Places>,
    to: Option<Places>,
    direction: Direction,
    plan: RowPlan,
    options: pipeline::Options,
    batch_rows: usize,
    read: Option<Arc<AtomicU64>>,
}

impl Timeline {
    /// A timeline of these recordings.
    pub fn new(recordings: Vec<AnyRecording>) -> Self {
        Self {
            recordings: Arc::new(recordings),
            watched: None,
            index: Arc::default(),
        }
    }

    /// The recordings.
    pub fn recordings(&self) -> &[AnyRecording] {
        &self.recordings
    }

    fn bind(&self, query: &Query) -> Result<Bound, FilterError> {
        let windows = vec![query.range; self.recordings.len()];
        let mut plan = RowPlan::new(&self.recordings, query)?;
        if query.with_tracks {
            plan = TrackPlan::of_rules(&self.recordings, plan, false).rows;
        }
        let filter = Filter::new(&query.filter, &windows, &self.recordings)?;
        let filter = match &query.known {
            Some(known) => filter.with_counts(&self.recordings, known),
            None => filter,
        };
        Ok(Bound {
            filter: filter.with_stop(query.stop.clone()),
            from: query.from.clone(),
            to: query.to.clone(),
            direction: query.direction,
            plan,
            options: pipeline::Options {
                threads: query.threads.max(1),
                limit: query.limit,
                ..pipeline::Options::default()
            },
            batch_rows: query.batch_rows.max(1),
            read: query.read.clone(),
        })
    }

    /// The columns of all batches that answer a query of [mixed](Shape::Mixed) shape, whether there are any rows or
    /// not; none for one by class.
    ///
    /// # Errors
    ///
    /// A name of a column is wrong.
    pub fn schema(&self, query: &Query) -> Result<Arc<[ColumnType]>, QueryError> {
        let plan = RowPlan::new(&self.recordings, query)?;
        Ok(plan.schema)
    }

    /// The rows that a query wants, in batches.
    ///
    /// # Errors
    ///
    /// The condition or a column is invalid, or no thread could be started for it.
    pub fn rows(&self, query: &Query) -> Result<Rows, QueryError> {
        let bound = self.bind(query)?;
        Rows::spawn(Arc::clone(&self.recordings), bound).map_err(QueryError::Thread)
    }

    /// Hands each batch to `take`, which may end it; without a thread of its own. The last batch may
    /// have notices only.
    ///
    /// # Errors
    ///
    /// The condition or a column is wrong.
    pub fn for_each_batch(
        &self,
        query: &Query,
        mut take: impl FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let bound = self.bind(query)?;
        rows::run(&self.recordings, &bound, &mut take);
        Ok(())
    }

    /// The first row at a time or later. If there is an index since a [summary](Self::summary) was asked for, chunks
    /// before that row are not decoded.
    ///
    /// ```
    /// use kymo::timeline::Timeline;
    /// use kymo_time::Timestamp;
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
    ///
    /// let opened = kymo::open::open(&[path.into()], &Default::default());
    /// let timeline = Timeline::new(opened.recordings);
    /// let first = timeline.seek(Timestamp::MIN).expect("there is an event");
    /// let time = first.time.expect("it has a time");
    /// assert_eq!(timeline.seek(time), Some(first));
    /// assert_eq!(timeline.seek(Timestamp::MAX), None);
    /// ```
    pub fn seek(&self, time: Timestamp) -> Option<RowHead> {
        let time = match self.index.get().filter(|index| index.is_whole()) {
            Some(index) => index.nearest(time, Direction::Forwards, None)?,
            None => time,
        };
        let query = Query {
            range: Window {
                begin: time,
                end: Timestamp::MAX,
            },
            threads: 1,
            batch_rows: 1,
            ..Query::default()
        };
        let mut found = None;
        let take = |batch: Batch| {
            // Rows without a time come first.
            let mut heads = (0..batch.len()).map(|row| batch.head(row));
            found = heads.find(|head| head.time.is_some());
            match found {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        };
        // Without names there is nothing that could be wrong.
        let _ = self.for_each_batch(&query, take);
        found
    }

    /// Damage found when the recordings were opened.
    pub fn faults(&self) -> impl Iterator<Item = &FaultReport> {
        self.recordings
            .iter()
            .flat_map(kymo_model::Recording::faults)
    }
}
