//! Which events are meant.

use std::sync::atomic::{AtomicBool, Ordering};

use kymo::AnyRecording;
use kymo::filter::{self, Filter, Glob, Moment, TimeQuery, Worker};
use kymo::pipeline::{Predicate, Select, Window};
use kymo_model::{Chunk, Event, Fault, FieldId, RowPlace};
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

/// Which events are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) names: Vec<String>,
    pub(crate) begin: Option<Time>,
    pub(crate) end: Option<Time>,
    pub(crate) condition: Option<String>,
    /// Whether only the time counts in which all streams of a recording are active.
    pub(crate) intersection: bool,
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
        let told = Window {
            begin: nanos(&self.begin, Timestamp::MIN),
            end: nanos(&self.end, Timestamp::MAX),
        };
        let windows = query.windows(recordings, gmt);
        let windows = windows.map_err(|error| wrong(&error))?;
        Ok(windows.into_iter().map(|of| of.and(told)).collect())
    }

    /// The range of all recordings together.
    pub(crate) fn range(&self, recordings: &[AnyRecording], gmt: bool) -> PyResult<Window> {
        let windows = self.windows(recordings, gmt)?;
        match windows.split_first() {
            Some((first, rest)) if rest.iter().any(|of| of != first) => Err(QueryError::new_err(
                "times without a date mean different days in these recordings: give the date too",
            )),
            Some((first, _)) => Ok(*first),
            None => Ok(Window::ALL),
        }
    }

    /// The filter for recordings, with a flag that ends the work.
    pub(crate) fn filter(&self, recordings: &[AnyRecording], gmt: bool) -> PyResult<Filter> {
        let windows = self.windows(recordings, gmt)?;
        Filter::new(&self.query(), &windows, recordings)
            .map_err(|error| errors::filter(&error, "where"))
    }
}

/// A filter that wants nothing more once it is stopped.
#[derive(Debug)]
pub(crate) struct Stoppable<'f> {
    filter: &'f Filter,
    stopped: &'f AtomicBool,
}

impl<'f> Stoppable<'f> {
    pub(crate) fn new(filter: &'f Filter, stopped: &'f AtomicBool) -> Self {
        Self { filter, stopped }
    }
}

/// Decides on events until it is stopped.
pub(crate) struct StoppablePredicate<'f> {
    worker: Worker<'f>,
    stopped: &'f AtomicBool,
    is_stopped: bool,
}

impl<'f> Select for Stoppable<'f> {
    type Predicate = StoppablePredicate<'f>;

    fn predicate(&self) -> Self::Predicate {
        StoppablePredicate {
            worker: (&self.filter).predicate(),
            stopped: self.stopped,
            is_stopped: false,
        }
    }

    fn window(&self, recording: usize) -> Window {
        (&self.filter).window(recording)
    }

    fn wants_class(&self, recording: usize, of: &AnyRecording, class: usize) -> bool {
        (&self.filter).wants_class(recording, of, class)
    }

    fn looks_at(&self, recording: usize, class: usize, field: FieldId) -> bool {
        (&self.filter).looks_at(recording, class, field)
    }

    fn first_chunk(&self, recording: usize, stream: usize) -> usize {
        (&self.filter).first_chunk(recording, stream)
    }

    fn end_chunk(&self, recording: usize, stream: usize) -> usize {
        match self.stopped.load(Ordering::Relaxed) {
            true => 0,
            false => (&self.filter).end_chunk(recording, stream),
        }
    }

    fn first_row(&self, recording: usize, stream: usize) -> RowPlace {
        (&self.filter).first_row(recording, stream)
    }
}

impl Predicate for StoppablePredicate<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        self.is_stopped = self.stopped.load(Ordering::Relaxed);
        self.worker.chunk(recording, of, chunk)
    }

    fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        match self.is_stopped {
            true => Ok(false),
            false => self.worker.wants(event),
        }
    }
}
