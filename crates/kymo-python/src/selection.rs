//! Which events are meant.

use kymo::AnyRecording;
use kymo::filter::{self, Filter, Glob, Moment, TimeQuery};
use kymo::pipeline::Window;
use kymo_time::Timestamp;
use pyo3::prelude::*;

use crate::errors::{self, QueryError};

/// A time: nanoseconds, or a text as on the command line.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) enum Time {
    /// Nanoseconds on the time line.
    Nanos(i64),
    /// Such as `2026-11-25 10:00:00.5`, `10:00`, or seconds.
    Text(String),
}

/// Which events are meant: a dictionary, of which all but the names may be missing.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Selection {
    names: Vec<String>,
    #[pyo3(default)]
    begin: Option<Time>,
    #[pyo3(default)]
    end: Option<Time>,
    #[pyo3(default)]
    condition: Option<String>,
    /// Whether only the time counts in which all streams of a recording are active.
    #[pyo3(default)]
    intersection: bool,
}

impl Selection {
    /// The names and the condition.
    pub(crate) fn query(&self) -> filter::Query {
        filter::Query {
            events: self.names.iter().map(|name| Glob::new(name)).collect(),
            condition: self.condition.clone(),
        }
    }

    /// From when to when events of each recording are meant.
    pub(crate) fn windows(&self, recordings: &[AnyRecording], gmt: bool) -> PyResult<Vec<Window>> {
        let moment = |time: &Option<Time>| match time {
            Some(Time::Text(text)) => text.parse::<Moment>().map(Some),
            _ => Ok(None),
        };
        let wrong = |error: &dyn std::fmt::Display| QueryError::new_err(error.to_string());
        let query = TimeQuery {
            begin: moment(&self.begin).map_err(|error| wrong(&error))?,
            end: moment(&self.end).map_err(|error| wrong(&error))?,
            intersection: self.intersection,
        };
        let nanos = |time: &Option<Time>, other: Timestamp| match time {
            Some(Time::Nanos(nanos)) => Timestamp::from_nanos(*nanos),
            _ => other,
        };
        let reported = Window {
            begin: nanos(&self.begin, Timestamp::MIN),
            end: nanos(&self.end, Timestamp::MAX),
        };
        let windows = query.windows(recordings, gmt);
        let windows = windows.map_err(|error| wrong(&error))?;
        Ok(windows
            .into_iter()
            .map(|window| window.and(reported))
            .collect())
    }

    /// The range of all recordings together.
    pub(crate) fn range(&self, recordings: &[AnyRecording], gmt: bool) -> PyResult<Window> {
        let windows = self.windows(recordings, gmt)?;
        match windows.split_first() {
            Some((first, rest)) if rest.iter().any(|other| other != first) => {
                Err(QueryError::new_err(
                    "times without a date mean different days in these recordings: give the date too",
                ))
            }
            Some((first, _)) => Ok(*first),
            None => Ok(Window::ALL),
        }
    }

    /// The filter for recordings, with a flag that ends the work.
    pub(crate) fn filter(&self, recordings: &[AnyRecording], gmt: bool) -> PyResult<Filter> {
        let windows = self.windows(recordings, gmt)?;
        let query = self.query();
        // A name that nothing has is a mistake; a pattern may be meant for other recordings.
        let is_name = |glob: &Glob| !glob.pattern().contains(['*', '?', '[', '\\']);
        let idle = query.idle_patterns(recordings);
        if let Some((glob, meant)) = idle.iter().find(|(glob, _)| is_name(glob)) {
            let hint = match meant {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`Recordings.classes` lists the events".to_owned(),
            };
            return Err(QueryError::new_err(format!(
                "no event is called `{}`\nhint: {hint}",
                glob.pattern()
            )));
        }
        Filter::new(&query, &windows, recordings).map_err(|error| errors::filter(&error, "where"))
    }
}
