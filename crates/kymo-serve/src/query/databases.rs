//! Databases as a source of series for PromQL.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use kymo_io::reason;
use kymo_promql::{QueryError, Request, Sample, Series, SeriesSource};
use kymo_rrd::Source;

use super::archives::{self, WantedRows};
use super::catalog::{Catalog, SeriesEntry};
use super::deadline::Deadline;
use crate::store::Store;

/// Messages about files of one query.
const MOST_PROBLEMS: usize = 10;

/// The databases of a store, for one query.
pub(crate) struct Databases<'s> {
    pub(crate) store: &'s Store,
    pub(crate) catalog: &'s Catalog,
    /// Until when the query is computed.
    pub(crate) deadline: Deadline<'s>,
    /// What could not be read.
    problems: RefCell<Vec<String>>,
}

impl<'s> Databases<'s> {
    pub(crate) fn new(store: &'s Store, catalog: &'s Catalog, deadline: Deadline<'s>) -> Self {
        Self {
            store,
            catalog,
            deadline,
            problems: RefCell::default(),
        }
    }

    /// What could not be read, for people.
    pub(crate) fn problems(self) -> Vec<String> {
        self.problems.into_inner()
    }

    fn problem(&self, path: &[u8], reason: &str) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < MOST_PROBLEMS {
            problems.push(format!("{}: {reason}", String::from_utf8_lossy(path)));
        }
    }

    /// Reads the database of each of some series once, and gives it with the series in it and the places of their
    /// data sources. Files that are gone or damaged are noted and passed over.
    ///
    /// # Errors
    ///
    /// Those of `take`; that the time is over.
    pub(crate) fn read<'e>(
        &self,
        entries: impl Iterator<Item = &'e Arc<SeriesEntry>>,
        mut take: impl FnMut(&Source<'_>, &SeriesEntry, usize) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut files: BTreeMap<&[u8], Vec<&SeriesEntry>> = BTreeMap::new();
        for entry in entries {
            files.entry(&entry.path).or_default().push(entry);
        }
        for (path, entries) in files {
            if self.deadline.is_over() {
                return Err(QueryError::Timeout);
            }
            let bytes = match self.store.snapshot(path) {
                Ok(bytes) => bytes,
                // It was removed just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.problem(path, &reason(&error));
                    continue;
                }
            };
            let whole = match Source::complete(&bytes) {
                Ok(whole) => whole,
                Err(error) => {
                    self.problem(path, &error.to_string());
                    continue;
                }
            };
            let source = match Source::open(&whole, None) {
                Ok(source) => source,
                Err(error) => {
                    self.problem(path, &error.to_string());
                    continue;
                }
            };
            for entry in entries {
                let sources = &source.database.sources;
                let mut names = sources.iter().map(|source| source.name.as_bytes());
                // It may have been recreated with other data sources.
                if let Some(place) = names.position(|name| name == &*entry.source) {
                    take(&source, entry, place)?;
                }
            }
        }
        Ok(())
    }
}

/// The consolidation that suits a function of PromQL.
fn consolidation(function: Option<&str>) -> &'static str {
    match function {
        Some("max_over_time") => "MAX",
        Some("min_over_time") => "MIN",
        Some("last_over_time") => "LAST",
        _ => "AVERAGE",
    }
}

impl SeriesSource for Databases<'_> {
    fn select(
        &self,
        request: &Request<'_>,
        take: &mut dyn FnMut(Series) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let series = self.catalog.series();
        let seconds = |millis: i64| millis.div_euclid(1000);
        let window = request.range.unwrap_or(0);
        let wanted = WantedRows {
            function: consolidation(request.function),
            start: seconds(request.start.saturating_sub(window)),
            end: seconds(request.end),
            step: match request.range {
                // All that there is counts.
                Some(_) => 0,
                None => seconds(request.step),
            },
        };
        self.read(series.matching(request.matchers), |source, entry, place| {
            let Some(chosen) = archives::choose(&source.database, &wanted) else {
                return Ok(());
            };
            let step = chosen.step.saturating_mul(1000);
            let first = request.first(step).div_euclid(1000);
            let rows = archives::known_rows(source, chosen, place, first, wanted.end);
            let samples = rows.map(|(time, value)| Sample {
                time: time.saturating_mul(1000),
                value,
            });
            take(Series {
                labels: entry.labels.clone(),
                step,
                is_rate: entry.is_rate,
                samples: samples.collect(),
            })
        })
    }
}
