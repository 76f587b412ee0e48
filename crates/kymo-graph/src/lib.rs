//! Graphs of recordings: what to draw of them, chosen without a language, and the pictures.
//!
//! [`panels`] reads the recordings of a [`Timeline`] and makes [`Panel`]s: the series of databases from
//! the archive that fits the range, metrics as values or rates, counters, and events as rates over time.
//! [`page`] and [`panel_picture`] draw them as display lists of `kymo-draw`.
//!
//! ```
//! use kymo_graph::{Choice, Look, NoNotices, page, panels};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
//!
//! let opened = kymo::open::open(&[path.into()], &Default::default());
//! let timeline = kymo::Timeline::new(opened.recordings);
//! let panels = panels(&timeline, &Choice::default(), None, &mut NoNotices)?;
//! assert_eq!(panels[0].unit, "/s");
//! let picture = page(&panels, &Look::default(), &kymo_draw::Fonts::new())?;
//! assert_eq!(picture.width, 800);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bins;
mod chart;
mod database;
mod draw;
mod durations;
mod indexed;
mod lanes;
mod panel;
mod rows;
mod ticks;
mod units;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kymo::analysis::{self, Coverage, LatencyQuery, StatesQuery};
use kymo::filter::{FieldNames, Filter, Glob};
use kymo::pipeline::{Watched, Window};
use kymo::timeline::{Notice, QueryError, TimelineIndex};
use kymo::{AnyRecording, Timeline, filter};
use kymo_model::Recording as _;

use bins::Length;
use panel::MOST_SERIES;

pub use chart::chart;
pub use draw::{Look, MOST_PANELS, TooManyPanels, page, panel_picture};
pub use panel::{Content, Heat, HeatColumn, Lane, Lanes, Panel, Point, Run, Series, Stats};
pub use ticks::Zone;

/// Which events and values are drawn.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Which events, by name and condition. Databases have no events: their series are always drawn.
    pub filter: filter::Query,
    /// From when to when.
    pub range: Window,
    /// What is drawn of them, each for itself; if empty, values of metrics and counters, and rates of all events.
    pub subjects: Vec<Subject>,
    /// Fields whose values separate events and values of fields; if not set, events are counted by track.
    pub per: Option<FieldNames>,
    /// Number of points of a series, about one for each pixel; from 2 to 32,767.
    pub width: usize,
    /// Threads to work with; at least 1.
    pub threads: usize,
    /// Grows by the size in bytes of each chunk of events that is begun: once for each subject.
    pub read: Option<Arc<AtomicU64>>,
}

/// Something to draw of events.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Rates of the events of which the name matches one of these patterns.
    Counts(Vec<Glob>),
    /// Values of a field.
    Values(ValueOf),
    /// A heat map of latencies.
    Latency(LatencyQuery),
    /// A chart of states.
    States(StatesQuery),
}

/// A field of some events.
#[derive(Clone, Debug)]
pub struct ValueOf {
    /// The events that have it.
    pub event: Glob,
    /// The field.
    pub field: FieldNames,
}

impl FromStr for ValueOf {
    type Err = String;

    /// Reads `EVENT:FIELD`, where the name of the event may have colons.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((event, field)) = text.rsplit_once(':').filter(|(event, _)| !event.is_empty())
        else {
            return Err("expected EVENT:FIELD, such as `sched_switch:prev_prio`".into());
        };
        Ok(Self {
            event: Glob::new(event),
            field: FieldNames::parse_one(field).map_err(|error| error.to_string())?,
        })
    }
}

impl Default for Choice {
    /// Everything, 720 points, as many threads as there are processors.
    fn default() -> Self {
        Self {
            filter: filter::Query::default(),
            range: Window::ALL,
            subjects: Vec::new(),
            per: None,
            width: 720,
            threads: kymo::pipeline::Options::default().threads,
            read: None,
        }
    }
}

impl Choice {
    /// Intervals for about `width` points that cover a range that is set, even where nothing happens.
    fn length(&self) -> Length {
        let mut length = Length::new(self.width.clamp(2, 32_767));
        for time in [self.range.begin, self.range.end] {
            let nanos = time.as_nanos();
            if nanos != i64::MIN && nanos != i64::MAX {
                length.cover(nanos);
            }
        }
        length
    }

    /// Whether an index knows all that is drawn.
    pub fn is_in_index(&self) -> bool {
        self.subjects.is_empty()
            && self.per.is_none()
            && self.filter.events.is_empty()
            && self.filter.condition.is_none()
    }
}

/// Why something cannot be drawn.
#[derive(Debug)]
pub enum ChoiceError {
    /// A condition or field is wrong, or the system has no thread.
    Query(QueryError),
    /// What begins and ends something is wrong.
    Analysis(analysis::Error),
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(error) => error.fmt(f),
            Self::Analysis(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChoiceError {}

impl From<QueryError> for ChoiceError {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl From<analysis::Error> for ChoiceError {
    fn from(error: analysis::Error) -> Self {
        Self::Analysis(error)
    }
}

/// What is met beside the events that are drawn.
pub trait Notices {
    /// A loss or damage.
    fn notice(&mut self, notice: &Notice);
    /// What an analysis saw.
    fn coverage(&mut self, coverage: &Coverage);
}

/// Ignores what is met beside events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNotices;

impl Notices for NoNotices {
    fn notice(&mut self, _: &Notice) {}
    fn coverage(&mut self, _: &Coverage) {}
}

/// What to draw of all recordings of a timeline, in their order: databases first by themselves, then the others,
/// which share one range of time. If `index` is set, it is whole, and has all that is drawn, events are not read.
///
/// # Errors
///
/// A condition, event or field of the choice is wrong, or the system has no thread for it.
pub fn panels(
    timeline: &Timeline,
    choice: &Choice,
    index: Option<&TimelineIndex>,
    notices: &mut dyn Notices,
) -> Result<Vec<Panel>, ChoiceError> {
    let mut rows = match are_databases(timeline) {
        true => Vec::new(),
        false => of_events(timeline, choice, index, notices)?,
    };
    // All share one range.
    let begin = rows.iter().map(|panel| panel.range.0).min();
    let end = rows.iter().map(|panel| panel.range.1).max();
    let mut choice = choice.clone();
    if let (Some(begin), Some(end)) = (begin, end) {
        for panel in &mut rows {
            panel.range = (begin, end);
        }
        // Beside recordings with events, databases are drawn on their range.
        choice.range = Window {
            begin: kymo_time::Timestamp::from_nanos(begin),
            end: kymo_time::Timestamp::from_nanos(end),
        };
    }
    let databases = Databases::new(timeline, &choice);
    let all = 0..timeline.recordings().len();
    let mut panels: Vec<Panel> = databases.panels(all).collect();
    panels.extend(rows);
    Ok(panels)
}

fn of_events(
    timeline: &Timeline,
    choice: &Choice,
    index: Option<&TimelineIndex>,
    notices: &mut dyn Notices,
) -> Result<Vec<Panel>, ChoiceError> {
    if choice.subjects.is_empty() {
        let index = index.filter(|_| choice.is_in_index());
        let known =
            index.and_then(|index| indexed::panels(timeline, index, choice.range, choice.width));
        return Ok(match known {
            Some(panels) => panels,
            None => rows::panels(timeline, choice, None, &mut |notice| notices.notice(notice))?,
        });
    }
    let options = analysis::Options {
        threads: choice.threads.max(1),
        ..analysis::Options::default()
    };
    let windows = vec![choice.range; timeline.recordings().len()];
    let filter = Filter::new(&choice.filter, &windows, timeline.recordings());
    let filter = filter.map_err(QueryError::Filter)?;
    let read = choice.read.clone().unwrap_or_default();
    let progress = |bytes| {
        read.fetch_add(bytes, Ordering::Relaxed);
    };
    let watched = || Watched::new(timeline.recordings(), &filter, &progress, None);
    let mut panels = Vec::new();
    for subject in &choice.subjects {
        let length = choice.length();
        match subject {
            Subject::Counts(patterns) => panels.extend(rows::panels(
                timeline,
                choice,
                Some(patterns),
                &mut |notice| notices.notice(notice),
            )?),
            Subject::Values(values) => {
                panels.push(rows::values(timeline, choice, values, &mut |notice| {
                    notices.notice(notice);
                })?);
            }
            Subject::Latency(query) => {
                // A cell of a heat map is some pixels wide.
                let cells = Choice {
                    width: choice.width / 3,
                    ..choice.clone()
                };
                let (panel, coverage) =
                    durations::panel(timeline, &watched(), query, &options, cells.length())?;
                notices.coverage(&coverage);
                panels.push(panel);
            }
            Subject::States(query) => {
                let (panel, coverage) =
                    lanes::panel(timeline, &watched(), query, &options, length)?;
                notices.coverage(&coverage);
                panels.push(panel);
            }
        }
    }
    Ok(panels)
}

/// The name of a recording.
fn title_of(recording: &AnyRecording) -> String {
    recording
        .name()
        .map_or_else(|| recording.path().display().to_string(), String::from)
}

/// The name of a stream as a series of a panel. Streams of a trace are called by their files, and the title of the panel
/// says already in which trace they are.
fn stream_of<'n>(recording: &AnyRecording, name: &'n str) -> &'n str {
    let below = Path::new(name).strip_prefix(recording.path()).ok();
    let below = below.and_then(Path::to_str);
    below.filter(|below| !below.is_empty()).unwrap_or(name)
}

/// What to draw of the databases of a timeline, one after the other, so that no more than one has to be kept.
#[derive(Debug)]
pub struct Databases<'t> {
    recordings: &'t [AnyRecording],
    choice: &'t Choice,
    newest: Option<i64>,
    /// The directory that contains all databases, if there are several.
    directory: Option<PathBuf>,
}

impl<'t> Databases<'t> {
    /// The databases of a timeline.
    pub fn new(timeline: &'t Timeline, choice: &'t Choice) -> Self {
        let recordings = timeline.recordings();
        let all = || recordings.iter().filter_map(as_database);
        let directory = match all().count() {
            0 | 1 => None,
            _ => all()
                .filter_map(|recording| recording.path().parent().map(Path::to_path_buf))
                .reduce(|mut common, other| {
                    while !other.starts_with(&common) && common.pop() {}
                    common
                }),
        };
        Self {
            recordings,
            choice,
            newest: all().map(database::last_update).max(),
            directory,
        }
    }

    /// The panels of the databases among some recordings. Where there are several databases, their titles are their
    /// paths below the directory that contains all databases.
    ///
    /// # Panics
    ///
    /// If the range is out of bounds.
    pub fn panels(&self, among: Range<usize>) -> impl Iterator<Item = Panel> + use<'_, 't> {
        let (range, width) = (self.choice.range, self.choice.width);
        let databases = self.recordings[among].iter().filter_map(as_database);
        databases.flat_map(move |rrd| {
            let path = self.directory.as_ref().and_then(|directory| {
                let path = rrd.path().strip_prefix(directory).ok()?;
                Some(path.with_extension("").display().to_string())
            });
            let panels = database::panels(rrd, range, self.newest, width).into_iter();
            panels.map(move |panel| Panel {
                title: path.clone().unwrap_or(panel.title),
                ..panel
            })
        })
    }
}

/// The same panels, with all series of one unit together. Names of series begin with those of their panels.
pub fn overlaid(panels: Vec<Panel>) -> Vec<Panel> {
    let mut all: Vec<Panel> = Vec::new();
    for panel in panels {
        let Content::Series(series) = panel.content else {
            all.push(panel);
            continue;
        };
        for mut one in series {
            one.name = format!("{}: {}", panel.title, one.name);
            let same = all.iter_mut().find(|other| {
                other.unit == panel.unit
                    && other.is_relative == panel.is_relative
                    && (1..MOST_SERIES).contains(&other.series().len())
            });
            let place = match same {
                Some(place) => place,
                None => {
                    all.push(Panel {
                        title: "all recordings".into(),
                        unit: panel.unit.clone(),
                        content: Content::Series(Vec::new()),
                        losses: Vec::new(),
                        ..panel
                    });
                    all.last_mut().expect("one was added")
                }
            };
            place.range = (
                place.range.0.min(panel.range.0),
                place.range.1.max(panel.range.1),
            );
            place.losses.extend(&panel.losses);
            place.losses.sort_unstable();
            place.losses.dedup();
            if let Content::Series(series) = &mut place.content {
                series.push(one);
            }
        }
    }
    all
}

/// Whether all recordings of a timeline are databases.
pub fn are_databases(timeline: &Timeline) -> bool {
    let recordings = timeline.recordings();
    recordings
        .iter()
        .all(|recording| as_database(recording).is_some())
}

fn as_database(recording: &AnyRecording) -> Option<&kymo_rrd::recording::Recording> {
    match recording {
        AnyRecording::Rrd(rrd) => Some(rrd),
        _ => None,
    }
}
