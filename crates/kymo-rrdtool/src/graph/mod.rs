//! rrdtool's language of graphs.
//!
//! [`words`] takes words such as `DEF:a=load.rrd:load:AVERAGE` apart, [`Script`] is what they say
//! together, and [`Script::compute`] makes series of it. [`Graph`](picture::Graph) has these and the
//! texts of a graph; it becomes a [`table`], or a [`layout`] and the lines of the axes, which `draw` makes a
//! picture of `kymo-draw`.

mod colour;
mod compute;
mod dates;
mod draw;
pub(crate) mod elements;
mod format;
mod interactive;
mod layout;
mod legend;
mod metrics;
pub(crate) mod options;
pub(crate) mod picture;
mod print;
mod scale;
mod script;
pub(crate) mod table;
mod tooltips;
mod words;
mod x_axis;
mod y_axis;

pub(crate) use dates::date;
pub(crate) use script::Script;

use kymo_machine::Machine;

use crate::Failure;
use crate::times::EARLIEST;

/// That an end comes before its start.
pub(crate) fn backwards(start: i64, end: i64) -> Failure {
    Failure::new(format!("start ({start}) should be less than end ({end})"))
}

/// How files are read.
pub(crate) struct Request<'a> {
    /// The machine that wrote the files, if it is specified.
    pub(crate) machine: Option<&'static Machine>,
    /// The daemon that writes what it holds before, unless a definition names another.
    pub(crate) daemon: Option<&'a str>,
    /// Files and data sources that are missing are unknown.
    pub(crate) missing_is_unknown: bool,
}

/// The texts of a graph, as its table has them: the names of their kinds, and the texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) prints: Vec<(&'static str, String)>,
    pub(crate) gprints: Vec<(&'static str, String)>,
    pub(crate) rules: Vec<(&'static str, String)>,
}

impl Notes {
    /// The lists that are not empty.
    fn lists(&self) -> impl Iterator<Item = (&'static str, &[(&'static str, String)])> {
        let lists = [
            ("prints", &*self.prints),
            ("gprints", &*self.gprints),
            ("rules", &*self.rules),
        ];
        lists.into_iter().filter(|(_, list)| !list.is_empty())
    }
}

/// From when to when, and how finely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The least number of seconds between two rows.
    pub(crate) step: i64,
}

impl Bounds {
    /// Checks the times, and makes the step long enough for at most `rows` rows.
    ///
    /// # Errors
    ///
    /// Times that rrdtool does not take.
    pub(crate) fn new(start: i64, end: i64, step: i64, rows: i64) -> Result<Self, Failure> {
        check(start, end)?;
        let step = step.max((end - start) / rows.max(1));
        Ok(Self { start, end, step })
    }
}

/// Checks times.
fn check(start: i64, end: i64) -> Result<(), Failure> {
    if start < EARLIEST {
        let message = format!("the first entry to fetch should be after 1980 ({start})");
        return Err(Failure::new(message));
    }
    match end < start {
        true => Err(backwards(start, end)),
        false => Ok(()),
    }
}
