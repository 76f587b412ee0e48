//! Whether a database is what programs write: what is validated here needs no file, only a
//! [`Database`].

use std::collections::HashSet;

use crate::fault::{Error, Findings, Severity};
use crate::model::{Archive, ArchiveKind, ArchiveLink, Scratch, Slot, SourceKind};
use crate::rpn::{Node, Program};
use crate::{Database, Value};

/// A part of a database that has a place in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The time of the last update.
    LastUpdate,
    /// The definition of a data source.
    Source(usize),
    /// The definition of an archive.
    Archive(usize),
    /// The preparation of a data source.
    SourceState(usize),
    /// The preparation of an archive for a data source.
    ArchiveState(usize, usize),
    /// The row written last of an archive.
    Pointer(usize),
}

/// What a 32-bit `rrdtool` stores as microseconds where it cannot hold the time.
const SATURATED: i64 = i32::MAX as i64;
/// Seconds before the earliest last update: 32-bit times begin there.
const EARLIEST: i64 = i32::MIN as i64;
/// Seconds after the latest last update, in the year 2514, where collectd's times end.
pub(crate) const LATEST: i64 = 1 << 34;
/// Seconds after which a last update is not even milliseconds written for seconds, as rrdtool takes them:
/// the same year in milliseconds.
const LATEST_MILLISECONDS: i64 = LATEST * 1000;
/// The most values that are looked at to find failures.
const MAX_WINDOW: u64 = Scratch::HISTORY as u64;

/// Validates a database whose [shape](Database::check_shape) is right, except for the current rows.
/// `locate` returns where a part is, in bytes from the beginning of the file.
pub fn validate(
    database: &Database,
    locate: impl Fn(Place) -> Option<u64>,
    findings: &mut Findings,
) {
    let mut validator = Validator {
        database,
        locate,
        findings,
    };
    validator.time();
    validator.sources();
    for (index, archive) in database.archives.iter().enumerate() {
        validator.archive(index, archive);
    }
    validator.states();
}

struct Validator<'a, L> {
    database: &'a Database,
    locate: L,
    findings: &'a mut Findings,
}

impl<L: Fn(Place) -> Option<u64>> Validator<'_, L> {
    fn add(
        &mut self,
        severity: Severity,
        place: Place,
        field: impl FnOnce() -> String,
        found: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) {
        let offset = (self.locate)(place);
        self.findings
            .add(severity, || Error::new(field(), offset, found, expected));
    }

    fn time(&mut self) {
        let state = &self.database.state;
        let seconds = state.last_update.seconds();
        if !(EARLIEST..LATEST).contains(&seconds) {
            let field = || "last update".to_owned();
            let (severity, expected) = match seconds {
                // rrdtool makes such files, and reads them.
                LATEST..LATEST_MILLISECONDS => (
                    Severity::Warning,
                    "seconds since 1970, before the year 2514 (these may be milliseconds)",
                ),
                _ => (Severity::Damage, "a time between 1901 and 2514"),
            };
            self.add(severity, Place::LastUpdate, field, seconds, expected);
        }
        if let Some(micros) = state.stray_micros {
            let severity = match micros {
                SATURATED => Severity::Warning,
                _ => Severity::Damage,
            };
            let field = || "microseconds of the last update".to_owned();
            self.add(severity, Place::LastUpdate, field, micros, "0 to 999999");
        }
    }

    fn sources(&mut self) {
        let mut names = HashSet::new();
        for (index, source) in self.database.sources.iter().enumerate() {
            let place = Place::Source(index);
            let name = source.name.as_bytes();
            let usual = |&byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            let field = || format!("name of data source {index}");
            let found = format_args!("\"{}\"", source.name);
            if name.is_empty() || !name.iter().all(usual) {
                let expected = "letters, digits, `_` and `-`";
                self.add(Severity::Warning, place, field, found, expected);
            }
            if !names.insert(name) {
                let expected = "a name that no data source before it has";
                self.add(Severity::Warning, place, field, found, expected);
            }
            match &source.kind {
                SourceKind::Measured {
                    heartbeat,
                    min,
                    max,
                    ..
                } => {
                    if *heartbeat == 0 {
                        let field = || format!("heartbeat of data source {index}");
                        self.add(Severity::Warning, place, field, 0, "at least 1 s");
                    }
                    if let (Some(low), Some(high)) = (min.get(), max.get())
                        && low >= high
                    {
                        let field = || format!("minimum of data source {index}");
                        let expected = format_args!("less than the maximum, {max}");
                        self.add(Severity::Warning, place, field, min, expected);
                    }
                }
                SourceKind::Compute(program) => self.program(index, program),
            }
        }
    }

    fn program(&mut self, index: usize, program: &Program) {
        let place = Place::Source(index);
        let field = || format!("expression of data source {index}");
        if program.nodes.is_empty() {
            self.add(Severity::Damage, place, field, "no node", "an expression");
        }
        for node in &program.nodes {
            match node {
                Node::Variable(source) | Node::PreviousOf(source) => {
                    if *source as usize >= index {
                        let found = format_args!("data source {source}");
                        let expected = "one before its own";
                        self.add(Severity::Damage, place, field, found, expected);
                    }
                }
                Node::Number(_) => {}
                Node::Operator(operator) => {
                    if operator.needs_series() {
                        let expected = "an operator that does not look at time or other rows";
                        self.add(Severity::Warning, place, field, operator.text(), expected);
                    }
                }
            }
        }
    }

    fn archive(&mut self, index: usize, archive: &Archive) {
        let place = Place::Archive(index);
        if self.database.row_seconds(index).is_none() {
            let field = || format!("points per row of archive {index}");
            let found = archive.points_per_row;
            self.add(
                Severity::Damage,
                place,
                field,
                found,
                "a row of less than 2^64 s",
            );
        }
        match &archive.kind {
            ArchiveKind::Consolidated { xff, .. } => self.part(index, "xff", *xff),
            ArchiveKind::HwPredict {
                alpha,
                beta,
                period,
                seasonal,
                ..
            } => {
                self.part(index, "alpha", *alpha);
                self.part(index, "beta", *beta);
                if !period
                    .get()
                    .is_some_and(|rows| rows >= 1.0 && rows % 1.0 == 0.0)
                {
                    let field = || format!("period of archive {index}");
                    let expected = "a whole number of at least 1";
                    self.add(Severity::Warning, place, field, period, expected);
                }
                self.link(index, *seasonal, "SEASONAL");
            }
            ArchiveKind::Seasonal {
                gamma,
                smoothing_window,
                smooth_row,
                predictions,
                ..
            } => {
                self.part(index, "gamma", *gamma);
                if self.database.version >= 4 {
                    self.part(index, "smoothing window", *smoothing_window);
                }
                if *smooth_row >= archive.rows {
                    let field = || format!("row of smoothing of archive {index}");
                    let expected = format_args!("less than its {} rows", archive.rows);
                    self.add(Severity::Warning, place, field, smooth_row, expected);
                }
                self.link(index, *predictions, "HWPREDICT");
            }
            ArchiveKind::DevPredict { deviations } => self.link(index, *deviations, "DEVSEASONAL"),
            ArchiveKind::Failures {
                window,
                threshold,
                deviations,
                ..
            } => {
                if !(1..=MAX_WINDOW).contains(window) {
                    let field = || format!("window of archive {index}");
                    self.add(Severity::Damage, place, field, window, "1 to 28");
                }
                if !(1..=*window).contains(threshold) {
                    let field = || format!("threshold of archive {index}");
                    let expected = format_args!("1 to the window, {window}");
                    self.add(Severity::Warning, place, field, threshold, expected);
                }
                self.link(index, *deviations, "DEVSEASONAL");
            }
        }
    }

    /// A parameter between 0 and 1.
    fn part(&mut self, index: usize, name: &str, value: Value) {
        if !value.get().is_some_and(|part| (0.0..=1.0).contains(&part)) {
            let field = || format!("{name} of archive {index}");
            self.add(
                Severity::Warning,
                Place::Archive(index),
                field,
                value,
                "0 to 1",
            );
        }
    }

    /// Checks a link to an archive whose kind ends with `expected`: additive and multiplicative
    /// predictions do alike.
    fn link(&mut self, index: usize, link: ArchiveLink, expected: &str) {
        let field = || format!("archive that archive {index} depends on");
        let place = Place::Archive(index);
        let Some(other) = link.index() else {
            self.add(
                Severity::Warning,
                place,
                field,
                link.0,
                "the number of an archive",
            );
            return;
        };
        match self.database.archives.get(other) {
            Some(archive) if archive.kind.name().trim_start_matches('M') == expected => {}
            Some(archive) => {
                let found = format_args!("{other}, which is {}", archive.kind.name());
                self.add(Severity::Warning, place, field, found, expected);
            }
            None => {
                let count = self.database.archives.len();
                let expected = format_args!("less than {count}, the number of archives");
                self.add(Severity::Damage, place, field, other, expected);
            }
        }
    }

    fn states(&mut self) {
        let database = self.database;
        for (index, state) in database.state.sources.iter().enumerate() {
            let place = Place::SourceState(index);
            let reading = &state.last_reading;
            if reading.as_bytes().is_empty() || !reading.is_printable() {
                let field = || format!("last reading of data source {index}");
                let found = format_args!("\"{reading}\"");
                let expected = "a reading, or `U` where it is unknown";
                self.add(Severity::Warning, place, field, found, expected);
            }
            if state.unknown_seconds > database.step {
                let field = || format!("unknown seconds of data source {index}");
                let expected = format_args!("at most the step, {}", database.step);
                self.add(
                    Severity::Warning,
                    place,
                    field,
                    state.unknown_seconds,
                    expected,
                );
            }
        }
        let archives = database.archives.iter().zip(&database.state.archives);
        for (index, (archive, state)) in archives.enumerate() {
            if state.current_row >= archive.rows {
                let field = || format!("current row of archive {index}");
                let expected = format_args!("less than its {} rows", archive.rows);
                let found = state.current_row;
                self.add(
                    Severity::Damage,
                    Place::Pointer(index),
                    field,
                    found,
                    expected,
                );
            }
            if archive.kind.slot(Scratch::UNKNOWN_POINTS) != Slot::Counter {
                continue;
            }
            for (source, scratch) in state.scratch.iter().enumerate() {
                let unknown = scratch.counter(Scratch::UNKNOWN_POINTS);
                if unknown > archive.points_per_row {
                    let place = Place::ArchiveState(index, source);
                    let field =
                        || format!("unknown points of archive {index} for data source {source}");
                    let expected = format_args!("at most {}", archive.points_per_row);
                    self.add(Severity::Warning, place, field, unknown, expected);
                }
            }
        }
    }
}
