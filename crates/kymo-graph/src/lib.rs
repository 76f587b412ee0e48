//! Graphs of recordings: what to draw of them, chosen without a language, and the pictures.
//!
//! [`panels`] reads the recordings of a [`Timeline`] and makes [`Panel`]s: the series of databases from
//! the archive that fits the range, metrics as values or rates, counters, and events as rates over time.
//! [`page`] and [`panel_picture`] draw them as display lists of `kymo-draw`.
//!
//! ```
//! use kymo_graph::{Choice, Look, page, panels};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
//!
//! let opened = kymo::open::open(&[path.into()], &Default::default());
//! let timeline = kymo::Timeline::new(opened.recordings);
//! let panels = panels(&timeline, &Choice::default(), &mut |_| ())?;
//! assert_eq!(panels[0].unit, "/s");
//! let picture = page(&panels, &Look::default(), &kymo_draw::Fonts::new())?;
//! assert_eq!(picture.width, 800);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bins;
mod database;
mod draw;
mod panel;
mod rows;
mod ticks;
mod units;

use kymo::pipeline::Window;
use kymo::timeline::{Notice, QueryError};
use kymo::{AnyRecording, Timeline, filter};

pub use draw::{Look, MOST_PANELS, TooManyPanels, page, panel_picture};
pub use panel::{Panel, Point, Series, Stats};
pub use ticks::Zone;

/// Which events and values are drawn.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Which events, by name and condition. Databases have no events: their series are always drawn.
    pub filter: filter::Query,
    /// From when to when.
    pub range: Window,
    /// Name of the field by whose values events are counted apart; if not set, events are counted by track.
    pub per: Option<String>,
    /// Number of points of a series, about one for each pixel; from 2 to 32,767.
    pub width: usize,
    /// Threads to work with; at least 1.
    pub threads: usize,
}

impl Default for Choice {
    /// Everything, 720 points, as many threads as there are processors.
    fn default() -> Self {
        Self {
            filter: filter::Query::default(),
            range: Window::ALL,
            per: None,
            width: 720,
            threads: kymo::pipeline::Options::default().threads,
        }
    }
}

/// What to draw of all recordings of a timeline, in their order: databases first by themselves, then the others,
/// which share one range of time. What is not an event is handed to `notice`.
///
/// # Errors
///
/// A condition or field of the choice is wrong, or the system has no thread for it.
pub fn panels(
    timeline: &Timeline,
    choice: &Choice,
    notice: &mut dyn FnMut(&Notice),
) -> Result<Vec<Panel>, QueryError> {
    let mut panels = Vec::new();
    let rows = rows::panels(timeline, choice, notice)?;
    // Beside recordings with events, databases are drawn on their range.
    let range = rows.iter().map(|panel| panel.range).next();
    let mut choice = choice.clone();
    if let Some((begin, end)) = range {
        choice.range = Window {
            begin: kymo_time::Timestamp::from_nanos(begin),
            end: kymo_time::Timestamp::from_nanos(end),
        };
    }
    let databases = databases(timeline, &choice);
    panels.extend(databases);
    panels.extend(rows);
    Ok(panels)
}

/// What to draw of the databases of a timeline, one after the other, so that no more than one has to be kept.
pub fn databases<'t>(
    timeline: &'t Timeline,
    choice: &'t Choice,
) -> impl Iterator<Item = Panel> + use<'t> {
    let of = || timeline.recordings().iter().filter_map(as_database);
    let newest = of().map(database::last_update).max();
    let (range, width) = (choice.range, choice.width);
    of().flat_map(move |rrd| database::panels(rrd, range, newest, width))
}

/// Whether all recordings of a timeline are databases.
pub fn are_databases(timeline: &Timeline) -> bool {
    let recordings = timeline.recordings();
    recordings.iter().all(|of| as_database(of).is_some())
}

fn as_database(of: &AnyRecording) -> Option<&kymo_rrd::recording::Recording> {
    match of {
        AnyRecording::Rrd(rrd) => Some(rrd),
        _ => None,
    }
}
