//! New round-robin databases: how many events there were in each step, or what became of the values
//! of a field.
//!
//! * A row of time T has the events from T - step on, and before T.
//! * There is a data source for each name of events that were met, or for each
//!   [track](super::MarkOptions::track). Its name has what is allowed in names of data sources;
//!   [`Made::sources`] tells what each stands for.
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

use kymo_model::{Chunk, Event, Fault, Recording, Value};
use kymo_rrd::convert::Target;
use kymo_text::Line;

use self::cells::Cells;
use super::losses::{Loss, Losses};
use super::marks::{Marks, Porter, UnknownField};
use super::timeline::Timeline;
use crate::AnyRecording;
use crate::carried::Carried;
use crate::filter::{FieldNames, name_of};
use crate::show::{Assembler, Message, Painter, Teller, WallOptions};

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
    /// The field whose values are kept, and how; without, events are counted.
    pub value: Option<(FieldNames, Function)>,
    /// The field whose values are data sources; without, names of events are.
    pub track: Option<FieldNames>,
    /// Seconds of a step; at least 1.
    pub step: u32,
    /// The number of rows, of which the last one has the last event; without, as many as there are
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
    pub fn marks(&self, of: &[AnyRecording]) -> Result<Marks, UnknownField> {
        let value = self.value.as_ref().map(|(field, _)| field);
        Marks::of_value("--value", self.track.as_ref(), value, of)
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

/// Counts events. What the recorders lost is told as warnings.
#[derive(Debug)]
pub struct Rrd<'m> {
    options: RrdOptions,
    marks: &'m Marks,
    losses: Arc<Losses>,
    teller: Teller,
    timeline: Timeline<'m>,
    /// What data sources stand for.
    names: Vec<String>,
    /// The data source of each name of an event.
    of_name: HashMap<Arc<str>, u32>,
    /// The data source of each track.
    of_track: HashMap<usize, u32>,
    cells: Cells,
}

impl<'m> Rrd<'m> {
    /// Counts events of some recordings, which the [marks](RrdOptions::marks) are bound to; `wall`
    /// is how times are shown in warnings.
    pub fn new(options: RrdOptions, marks: &'m Marks, wall: WallOptions) -> Self {
        let losses = Arc::new(Losses::default());
        Self {
            timeline: Timeline::new(marks, Arc::clone(&losses)),
            cells: Cells::new(
                options.value.as_ref().map(|(_, function)| *function),
                options.rows,
            ),
            options,
            marks,
            losses,
            teller: Teller::new(wall),
            names: Vec::new(),
            of_name: HashMap::new(),
            of_track: HashMap::new(),
        }
    }

    /// What the database cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
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
    fn count(&mut self, message: &Message, of: &[AnyRecording], text: &[u8]) {
        if self.names.len() > MOST_SOURCES {
            // No file is made.
            return;
        }
        let mut carried = Carried::new(text);
        let place = self.timeline.place(message, of, &mut carried);
        let class = self.marks.class(message.recording, message.class);
        let value = match &self.options.value {
            None => 0.0,
            Some(_) => {
                if class.counters.is_empty() {
                    return;
                }
                let Some(value) = number(carried.next()) else {
                    return self.losses.add(Loss::NoValue, 1);
                };
                value
            }
        };
        let Some(seconds) = message
            .time
            .and_then(|time| u64::try_from(time.split().0).ok())
        else {
            return self.losses.add(Loss::UntimedForRows, 1);
        };
        let source = match self.options.track {
            Some(_) => {
                let name = || self.timeline.track(place.track).name.clone();
                source(&mut self.of_track, place.track, &mut self.names, name)
            }
            None => {
                let class = &of[message.recording].event_classes()[message.class];
                let name = || name_of(class).to_string();
                match &class.name {
                    Some(known) if self.of_name.contains_key(known) => self.of_name[known],
                    _ => {
                        let key = name_of(class).into();
                        source(&mut self.of_name, key, &mut self.names, name)
                    }
                }
            }
        };
        self.cells
            .add(seconds / u64::from(self.options.step), source, value);
    }
}

/// The data source of a key, which is a new one where the key is.
fn source<K: std::hash::Hash + Eq>(
    of: &mut HashMap<K, u32>,
    key: K,
    names: &mut Vec<String>,
    name: impl FnOnce() -> String,
) -> u32 {
    *of.entry(key).or_insert_with(|| {
        names.push(name());
        names.len() as u32 - 1
    })
}

/// A value as a finite number.
fn number(value: Value<'_>) -> Option<f64> {
    let number = match value {
        Value::Uint(value) | Value::Bits(value) => value as f64,
        Value::Sint(value) => value as f64,
        Value::Bool(value) => f64::from(u8::from(value)),
        Value::Float(value) => value,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

impl<'m> Assembler for Rrd<'m> {
    type Painter = RrdPainter<'m>;

    fn painter(&self) -> RrdPainter<'m> {
        RrdPainter {
            porter: self.marks.porter(),
        }
    }

    #[inline]
    fn event(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        self.count(message, of, text);
    }

    fn teller(&mut self) -> Option<&mut Teller> {
        Some(&mut self.teller)
    }
}

/// Reads the values that are needed of events.
#[derive(Debug)]
pub struct RrdPainter<'m> {
    porter: Porter<'m>,
}

impl Painter for RrdPainter<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.porter.chunk(recording, of, chunk)
    }

    #[inline]
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault> {
        self.porter.carry(event, out)
    }
}
