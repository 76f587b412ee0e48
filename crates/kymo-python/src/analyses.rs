//! Analyses, as JSON.

use std::sync::atomic::AtomicBool;

use kymo::AnyRecording;
use kymo::analysis::{
    Error as AnalysisError, EventPattern, Latency, LatencyQuery, Options, PairBy, Profile,
    ProfileQuery, Sort, States, StatesQuery, TrackBy,
};
use kymo::filter::{FieldNames, Filter, FilterError, Glob};
use kymo::pipeline::Watched;
use kymo::report::{self, Check, Stats};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{self, QueryError};

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

/// An analysis, and what it looks at.
pub(crate) enum Analysis {
    Latency(LatencyQuery),
    States(StatesQuery),
    Profile(ProfileQuery),
    Check,
    Stats,
}

impl Analysis {
    pub(crate) fn new(kind: &str, given: AnalysisOptions) -> PyResult<Self> {
        let tracks = names(given.track.as_ref(), "track")?;
        let tracks = tracks.map_or(TrackBy::Recording, TrackBy::Fields);
        let events = match (&given.start, &given.end) {
            (Some(start), Some(end)) => Some((EventPattern::new(start), EventPattern::new(end))),
            (None, None) => None,
            _ => {
                let message = "the beginning and the end of slices are specified together";
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(match kind {
            "latency" => {
                let pair_by = given.pair_by.as_deref().map(PairBy::parse).transpose();
                Self::Latency(LatencyQuery {
                    events,
                    pair_by: pair_by
                        .map_err(|error| errors::filter(&error, "pair_by"))?
                        .unwrap_or_default(),
                    tracks,
                    worst: given.worst.unwrap_or(10),
                })
            }
            "states" => {
                let Some(state) = &given.state else {
                    return Err(PyValueError::new_err(
                        "states need the event that begins them",
                    ));
                };
                Self::States(StatesQuery {
                    state: EventPattern::new(state),
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
                })
            }
            "profile" => Self::Profile(ProfileQuery {
                events,
                key: names(given.key.as_ref(), "key")?,
                tracks,
                running: given.running,
                call_graph: false,
            }),
            "check" => Self::Check,
            _ => Self::Stats,
        })
    }

    /// Goes through the events that are wanted, until it is stopped.
    pub(crate) fn run(
        &self,
        recordings: &[AnyRecording],
        filter: &Filter,
        threads: usize,
        stopped: &AtomicBool,
    ) -> Result<Vec<u8>, AnalysisError> {
        let select = &Watched::new(recordings, &filter, &|_| {}, Some(stopped));
        let options = Options {
            threads,
            ..Options::default()
        };
        let scan = report::Options {
            threads,
            ..report::Options::default()
        };
        Ok(match self {
            Self::Latency(query) => Latency::new(recordings, &select, query, &options)?.to_json(),
            Self::States(query) => States::new(recordings, &select, query, &options)?.to_json(),
            Self::Profile(query) => Profile::new(recordings, &select, query, &options)?.to_json(),
            Self::Check => Check::new(recordings, &scan).to_json(),
            Self::Stats => Stats::new(recordings, filter, &scan).to_json(),
        })
    }
}

/// Why an analysis has no answer.
pub(crate) fn failed(error: &AnalysisError) -> PyErr {
    match error {
        AnalysisError::Field { purpose, error } => errors::filter(error, purpose),
        error => QueryError::new_err(error.to_string()),
    }
}
