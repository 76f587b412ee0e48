//! Analyses, as JSON.

use std::sync::atomic::{AtomicBool, Ordering};

use kymo::AnyRecording;
use kymo::analysis::{
    Error as AnalysisError, EventPattern, Latency, LatencyQuery, Options, PairBy, Profile,
    ProfileQuery, Sort, States, StatesQuery, TrackBy, TrackStats,
};
use kymo::filter::{FieldNames, Filter, FilterError, Glob};
use kymo::pipeline::Watched;
use kymo::report::{self, Check, Stats};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{self, QueryError};
use crate::forks::interruptible;

/// What is asked of an analysis.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AnalysisOptions {
    #[pyo3(default)]
    start: Option<String>,
    #[pyo3(default)]
    end: Option<String>,
    #[pyo3(default)]
    pair_by: Option<String>,
    #[pyo3(default)]
    track: Option<String>,
    #[pyo3(default)]
    state: Option<String>,
    #[pyo3(default)]
    per: Option<String>,
    #[pyo3(default)]
    sort: Option<String>,
    #[pyo3(default)]
    key: Option<String>,
    running: bool,
    #[pyo3(default)]
    worst: Option<usize>,
    #[pyo3(default)]
    where_state: Option<String>,
}

/// The fields that an option names.
pub(crate) fn names(text: Option<&String>, option: &str) -> PyResult<Option<FieldNames>> {
    let parsed = text.map(|text| FieldNames::parse(text)).transpose();
    parsed.map_err(|error: FilterError| errors::filter(&error, option))
}

/// Goes through the events that are wanted.
pub(crate) fn run(
    py: Python<'_>,
    recordings: &[AnyRecording],
    filter: &Filter,
    kind: &str,
    given: &AnalysisOptions,
    threads: usize,
) -> PyResult<Vec<u8>> {
    let stopped = AtomicBool::new(false);
    let select = &Watched::new(recordings, &filter, &|_| {}, Some(&stopped));
    let stop = || stopped.store(true, Ordering::Relaxed);
    let options = Options {
        threads,
        ..Options::default()
    };
    let tracks = names(given.track.as_ref(), "track")?;
    let tracks = tracks.map_or(TrackBy::Recording, TrackBy::Fields);
    let pattern = |text: &String| EventPattern::new(text);
    let events = match (&given.start, &given.end) {
        (Some(start), Some(end)) => Some((pattern(start), pattern(end))),
        (None, None) => None,
        _ => {
            let message = "the beginning and the end of slices are specified together";
            return Err(PyValueError::new_err(message));
        }
    };
    let failed = |error: AnalysisError| match error {
        AnalysisError::Field { purpose, error } => errors::filter(&error, purpose),
        error => QueryError::new_err(error.to_string()),
    };
    match kind {
        "latency" => {
            let pair_by = given.pair_by.as_deref().map(PairBy::parse).transpose();
            let query = LatencyQuery {
                events,
                pair_by: pair_by
                    .map_err(|error| errors::filter(&error, "pair_by"))?
                    .unwrap_or_default(),
                tracks,
                worst: given.worst.unwrap_or(10),
            };
            let made = interruptible(py, stop, || {
                Latency::new(recordings, &select, &query, &options)
                    .map(|analysis| analysis.to_json())
            })?;
            made.map_err(failed)
        }
        "states" => {
            let Some(state) = &given.state else {
                return Err(PyValueError::new_err(
                    "states need the event that begins them",
                ));
            };
            let query = StatesQuery {
                state: pattern(state),
                per: names(given.per.as_ref(), "per")?,
                tracks,
                filter: given.where_state.as_deref().map(Glob::new),
                sort: match given.sort.as_deref() {
                    None | Some("time") => Sort::Time,
                    Some("count") => Sort::Count,
                    Some("mean") => Sort::Mean,
                    Some(_) => {
                        return Err(PyValueError::new_err("sort is `time`, `count` or `mean`"));
                    }
                },
            };
            let made = interruptible(py, stop, || {
                States::new(recordings, &select, &query, &options)
                    .map(|analysis| analysis.to_json())
            })?;
            made.map_err(failed)
        }
        "profile" => {
            let query = ProfileQuery {
                events,
                key: names(given.key.as_ref(), "key")?,
                tracks,
                running: given.running,
                call_graph: false,
            };
            let made = interruptible(py, stop, || {
                Profile::new(recordings, &select, &query, &options)
                    .map(|analysis| analysis.to_json())
            })?;
            made.map_err(failed)
        }
        "by_track" => {
            let made = interruptible(py, stop, || {
                TrackStats::new(recordings, &select, &tracks, &options)
                    .map(|analysis| analysis.to_json())
            })?;
            made.map_err(failed)
        }
        "check" => interruptible(
            py,
            || (),
            || {
                let options = report::Options {
                    threads,
                    strict: false,
                    progress: None,
                };
                Check::new(recordings, &options).to_json()
            },
        ),
        _ => interruptible(
            py,
            || (),
            || {
                let options = report::Options {
                    threads,
                    strict: false,
                    progress: None,
                };
                Stats::new(recordings, filter, &options).to_json()
            },
        ),
    }
}
