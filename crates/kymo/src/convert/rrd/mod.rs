//! New round-robin databases: how many events there were in each step, or what became of the values
//! of a field.
//!
//! * A row of time T has the events from T - step on, and before T.
//! * There is a data source for each name of events that were met, or for each
//!   [track](super::TrackOptions::track). Its name has what is allowed in names of data sources;
//!   [`Made::sources`] lists what each stands for.
//! * Counts are the number of events, 0 where there was none. Values are the average, minimum,
//!   maximum or last one of a step, unknown where there was none; infinite ones and NaNs count as
//!   none.
//!
//! The counts of all steps are in memory before the file is made, since only then it is known what
//! it holds: some 70 bytes for each value that is of events. The file is made in memory, too, with
//! all its values. There is a [most](MOST_VALUES) of these, beyond which nothing is kept.

mod build;
mod cells;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kymo_model::Recording;
use kymo_rrd::file::convert::Target;
use kymo_text::Line;

use self::cells::Cells;
use super::binding::{TrackBinding, UnknownField};
use super::losses::{Loss, Losses};
use super::timeline::Timeline;
use crate::AnyRecording;
use crate::filter::{FieldNames, name_of};
use crate::pipeline::Row;
use crate::show::table::Table;
use crate::show::{LossReporter, Sink, WallOptions};
use crate::timeline::Filler;

/// No database is made with more values.
pub const MOST_VALUES: u64 = 1 << 27;
/// No database is made with more data sources.
pub const MOST_SOURCES: usize = 1000;

/// How the values of a step become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Their mean.
    Average,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The last.
    Last,
}

impl Function {
    /// Its name in databases.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Average => "AVERAGE",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::Last => "LAST",
        }
    }
}

/// What a database is made of.
#[derive(Clone, Debug)]
pub struct RrdOptions {
    /// The field whose values are kept, and how; by default, events are counted.
    pub value: Option<(FieldNames, Function)>,
    /// The field whose values are data sources; by default, names of events are.
    pub track: Option<FieldNames>,
    /// Seconds of a step; at least 1.
    pub step: u32,
    /// The number of rows, the last of which has the last event; by default, the number of
    /// steps from the first event to the last.
    pub rows: Option<u64>,
    /// The form of the file.
    pub target: Target,
}

impl RrdOptions {
    /// What is read of the events of some recordings.
    ///
    /// # Errors
    ///
    /// A field that no event has.
    pub fn binding(&self, recordings: &[AnyRecording]) -> Result<TrackBinding, UnknownField> {
        let value = self.value.as_ref().map(|(field, _)| field);
        TrackBinding::of_value("--value", self.track.as_ref(), true, value, recordings)
    }
}

/// A file that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The name of each data source, and what it stands for.
    pub sources: Vec<(String, String)>,
}

/// Why no file can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MakeError {
    /// There is nothing to count.
    Nothing,
    /// There are too many data sources.
    Sources,
    /// There are too many values: rows, times data sources.
    Values {
        /// Rows.
        rows: u64,
        /// Data sources.
        sources: u64,
    },
    /// The form of file cannot hold it.
    File(String),
}

impl fmt::Display for MakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is no event to make a database of"),
            Self::Sources => write!(
                f,
                "there are more than {MOST_SOURCES} data sources; --event chooses events, and \
                 --track another field"
            ),
            Self::Values { rows, sources } => write!(
                f,
                "found {rows} rows of {sources} data sources, expected at most {MOST_VALUES} \
                 values; --rows bounds the rows, and a longer --step makes fewer"
            ),
            Self::File(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for MakeError {}

/// A database of which hardly any values are of events is reported from this size on.
const LARGE: u64 = 16 << 20;
/// Hardly any means one in this number.
const SPARSE: u64 = 100;

/// How large a database will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its rows.
    pub rows: u64,
    /// Its data sources.
    pub sources: u64,
    /// Values that are of events; all others are 0 or unknown.
    pub filled: u64,
}

impl Extent {
    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.sources).saturating_mul(8)
    }

    /// Whether it is large, and nearly empty: a step that does not suit the recording, or a stray
    /// time in it, make such a database.
    pub fn is_mostly_empty(&self) -> bool {
        self.bytes() >= LARGE && self.filled < self.bytes() / 8 / SPARSE
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rows,
            sources,
            filled,
        } = self;
        let megabytes = self.bytes() / 1_000_000;
        let plural = if *sources == 1 { "" } else { "s" };
        write!(
            f,
            "the database takes {megabytes} MB: {rows} rows of {sources} data source{plural}, in which \
             {filled} values are of events"
        )
    }
}

/// A database of values that are known by second and name.
#[derive(Debug)]
pub struct SeriesDatabase {
    options: RrdOptions,
    names: Vec<String>,
    known: HashMap<String, u32>,
    cells: Cells,
}

impl SeriesDatabase {
    /// Creates one with steps of `step` seconds.
    pub fn new(step: u32, rows: Option<u64>, target: Target) -> Self {
        Self {
            options: RrdOptions {
                value: Some((FieldNames::default(), Function::Last)),
                track: None,
                step: step.max(1),
                rows,
                target,
            },
            names: Vec::new(),
            known: HashMap::new(),
            cells: Cells::new(Some(Function::Last), rows),
        }
    }

    /// Sets the value of a name in the step that a second is in.
    pub fn add(&mut self, second: u64, name: &str, value: f64) {
        let source = match self.known.get(name) {
            Some(&source) => source,
            // More make no database, which is reported when it is made.
            None if self.names.len() > MOST_SOURCES => return,
            None => {
                let next = self.names.len() as u32;
                self.names.push(name.to_string());
                self.known.insert(name.to_string(), next);
                next
            }
        };
        self.cells
            .add(second / u64::from(self.options.step), source, value);
    }

    /// Makes the file.
    ///
    /// # Errors
    ///
    /// Why it cannot be made.
    pub fn make(&mut self) -> Result<Made, MakeError> {
        if self.names.len() > MOST_SOURCES {
            return Err(MakeError::Sources);
        }
        build::build(&self.options, &self.names, &mut self.cells)
    }
}

/// Counts events. Losses of the recorders are reported as warnings.
#[derive(Debug)]
pub struct Rrd<'m> {
    options: RrdOptions,
    binding: &'m TrackBinding,
    losses: Arc<Losses>,
    loss_reporter: LossReporter,
    timeline: Timeline<'m>,
    /// What data sources stand for.
    names: Vec<String>,
    /// The data source of each name of an event.
    of_name: HashMap<Arc<str>, u32>,
    /// The same by recording and class.
    of_class: Table<Option<u32>>,
    /// The data source of each track.
    of_track: Vec<Option<u32>>,
    cells: Cells,
}

impl<'m> Rrd<'m> {
    /// Counts events of some recordings, which the [binding](RrdOptions::binding) was made for; `wall`
    /// is how times are shown in warnings.
    pub fn new(
        recordings: &[AnyRecording],
        options: RrdOptions,
        binding: &'m TrackBinding,
        wall: WallOptions,
    ) -> Self {
        let losses = Arc::new(Losses::default());
        Self {
            timeline: Timeline::new(recordings, binding, Arc::clone(&losses)),
            cells: Cells::new(
                options.value.as_ref().map(|(_, function)| *function),
                options.rows,
            ),
            options,
            binding,
            losses,
            loss_reporter: LossReporter::new(wall),
            names: Vec::new(),
            of_name: HashMap::new(),
            of_class: Table::default(),
            of_track: Vec::new(),
        }
    }

    /// What the database cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// How large the file will be; `None` if it cannot be made.
    pub fn extent(&mut self) -> Option<Extent> {
        self.cells.span()?;
        if self.cells.too_large().is_some() {
            return None;
        }
        let (rows, sources) = self.cells.size();
        Some(Extent {
            rows,
            sources,
            filled: self.cells.filled(),
        })
    }

    /// Makes the file.
    ///
    /// # Errors
    ///
    /// Why it cannot be made.
    pub fn make(&mut self) -> Result<Made, MakeError> {
        if self.names.len() > MOST_SOURCES {
            return Err(MakeError::Sources);
        }
        self.losses.add(Loss::BeforeRows, self.cells.dropped());
        build::build(&self.options, &self.names, &mut self.cells)
    }

    /// Counts an event, or takes its value.
    #[inline]
    fn count(&mut self, row: &Row<'_>, recordings: &[AnyRecording]) {
        let message = &row.message;
        let track = self.options.track.is_some();
        let track = track.then(|| self.timeline.place(row, recordings).track);
        let value = match &self.options.value {
            None => 0.0,
            Some(_) => {
                let Some(value) = self.binding.value(row) else {
                    return;
                };
                let Some(value) = value.to_f64().filter(|value| value.is_finite()) else {
                    return self.losses.add(Loss::NoValue, 1);
                };
                value
            }
        };
        let seconds = message.time.map(|time| time.split().0);
        let Some(seconds) = seconds.and_then(|seconds| u64::try_from(seconds).ok()) else {
            return self.losses.add(Loss::UntimedForRows, 1);
        };
        let source = match track {
            Some(track) => self.of_track.get(track).copied().flatten(),
            None => *self.of_class.get(message.recording, message.class, || None),
        };
        let source = source.unwrap_or_else(|| self.source(row, recordings, track));
        self.cells
            .add(seconds / u64::from(self.options.step), source, value);
    }

    /// The data source of an event whose track or class is new.
    #[cold]
    fn source(&mut self, row: &Row<'_>, recordings: &[AnyRecording], track: Option<usize>) -> u32 {
        let next = self.names.len() as u32;
        if let Some(track) = track {
            self.names.push(self.timeline.track(track).name.clone());
            self.of_track
                .resize(self.of_track.len().max(track + 1), None);
            self.of_track[track] = Some(next);
            return next;
        }
        let (recording, class) = (row.message.recording, row.message.class);
        let name: Arc<str> = name_of(&recordings[recording].event_classes()[class]).into();
        let source = *self.of_name.entry(Arc::clone(&name)).or_insert(next);
        if source == next {
            self.names.push(name.to_string());
        }
        *self.of_class.get(recording, class, || None) = Some(source);
        source
    }
}

impl<'m> Sink for Rrd<'m> {
    type Renderer = Filler<'m>;

    fn renderer(&self) -> Filler<'m> {
        Filler::with_raw_texts(self.binding.plan())
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row(
        &mut self,
        row: &Row<'_>,
        recordings: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        // Of more data sources no file is made.
        if self.names.len() <= MOST_SOURCES {
            self.count(row, recordings);
        }
        true
    }

    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        Some(&mut self.loss_reporter)
    }
}
