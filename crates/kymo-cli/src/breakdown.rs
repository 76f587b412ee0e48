//! Where durations go that are written by group, one by one or as series.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use kymo::analysis::{
    Breakdown, GroupBy, LineFormat, LineSeries, PerfettoSeries, RrdSeries, SeriesSink, ValueSeries,
    Write,
};
use kymo::convert::rrd::SeriesDatabase;
use kymo_io::{Replace, STANDARD_INPUT, replace};

use crate::args::group::{Grouping, SeriesArgs};
use crate::outputs::refuse_file;
use crate::rrd;
use crate::terminal::Failure;

/// What is asked for.
pub(crate) struct BreakdownArgs<'a> {
    pub(crate) series: &'a SeriesArgs,
    pub(crate) all: bool,
    /// Whether JSON was asked for.
    pub(crate) json: bool,
    /// Whether events have no durations.
    pub(crate) counts: bool,
}

impl<'a> BreakdownArgs<'a> {
    pub(crate) fn new(grouping: &'a Grouping, json: bool) -> Self {
        Self {
            series: &grouping.series,
            all: grouping.all,
            json,
            counts: false,
        }
    }

    /// Whether lines take the place of the report.
    pub(crate) fn writes(&self) -> bool {
        self.all || self.series.every.is_some()
    }

    /// Refuses options that ask for nothing.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let is_file = |path: &&PathBuf| path.as_os_str() != STANDARD_INPUT;
        let file = self.series.output.as_ref().filter(is_file);
        let ending = ending(file.map(PathBuf::as_path));
        if self.series.format.is_some() && (ending != "rrd" || self.series.every.is_none()) {
            let problem =
                "error: `--format` is for round-robin databases: `--every DURATION -o FILE.rrd`";
            return Err(Failure::Usage(problem.to_owned()));
        }
        if self.series.force && file.is_none() {
            let problem = "error: `--force` is for `--output`: no file is written";
            return Err(Failure::Usage(problem.to_owned()));
        }
        if let Some(file) = file
            && self.json
            && !matches!(ending, "" | "json" | "jsonl")
        {
            return Err(Failure::Usage(format!(
                "error: `--json` writes JSON lines, and `{}` ends in .{ending}\n\
                 hint: leave out `--json`, or write a file that ends in .jsonl",
                file.display()
            )));
        }
        if self.writes() {
            return Ok(());
        }
        if self.series.follow {
            let problem = "error: `--follow` needs `--every` (or `--all` of latency, states and profile): other results are of all events";
            return Err(Failure::Usage(problem.to_owned()));
        }
        match &self.series.output {
            Some(output) => Err(Failure::Usage(format!(
                "error: nothing to write to `{}`: --output is for --all and --every",
                output.display()
            ))),
            None => Ok(()),
        }
    }

    /// Runs an analysis and passes its durations to the outputs that were requested.
    pub(crate) fn run<T>(
        &self,
        run: impl FnOnce(&mut Breakdown<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let by = self.series.by.clone();
        self.check()?;
        if !self.writes() {
            return match by {
                Some(by) if !self.counts => run(&mut Breakdown::table(by)),
                _ => run(&mut Breakdown::default()),
            };
        }
        let by = by.unwrap_or_default();
        self.write_to(|path, write| finished(self.breakdown(by, path, write)?, run))
    }

    /// Measures the values of a field in intervals, which go where they are wanted.
    pub(crate) fn run_values<T>(
        &self,
        run: impl FnOnce(&mut ValueSeries<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.write_to(|path, write| {
            let step = self.series.every.unwrap_or(1);
            let mut series = ValueSeries::new(step, self.sink(step, path, write)?);
            let result = run(&mut series);
            match series.take_error() {
                Some(error) => Err(error.into()),
                None => result,
            }
        })
    }

    /// Does something that writes to the output.
    fn write_to<T>(
        &self,
        run: impl FnOnce(Option<&Path>, Write<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let is_file = |path: &&PathBuf| path.as_os_str() != STANDARD_INPUT;
        let Some(path) = self.series.output.as_ref().filter(is_file) else {
            let write = Box::new(|text: &[u8]| io::stdout().lock().write_all(text));
            let result = run(None, write)?;
            io::stdout().flush()?;
            return Ok(result);
        };
        refuse_file(path, self.series.force)?;
        let known = [
            "",
            "csv",
            "json",
            "jsonl",
            "rrd",
            "pftrace",
            "perfetto-trace",
        ];
        if !known.contains(&ending(Some(path))) {
            let known = match self.all {
                true => "`--all` writes .csv and .jsonl",
                false => "`--every` writes .csv, .jsonl, .rrd and .pftrace",
            };
            return Err(Failure::Usage(format!(
                "error: unknown ending of `{}`\nhint: {known}",
                path.display()
            )));
        }
        let how = Replace {
            mode: true,
            follow: true,
            ..Replace::NEW
        };
        replace(path, how, |file: &mut File| {
            let mut out = BufWriter::new(file);
            let write = Box::new(|text: &[u8]| out.write_all(text));
            let result = run(Some(path), write)?;
            out.flush()?;
            Ok(result)
        })
    }

    fn breakdown<'w>(
        &self,
        by: GroupBy,
        path: Option<&Path>,
        write: Write<'w>,
    ) -> Result<Breakdown<'w>, Failure> {
        if let Some(step) = self.series.every {
            return Ok(Breakdown::series(by, step, self.sink(step, path, write)?));
        }
        let ending = ending(path);
        if matches!(ending, "rrd" | "pftrace" | "perfetto-trace") {
            let problem = format!(
                "error: --all writes CSV or JSON lines, not .{ending}\nhint: `--every DURATION` writes series"
            );
            return Err(Failure::Usage(problem));
        }
        Ok(Breakdown::all(by, self.lines(path), write))
    }

    /// The format of lines.
    fn lines(&self, path: Option<&Path>) -> LineFormat {
        match (ending(path), self.json) {
            ("json" | "jsonl", _) | (_, true) => LineFormat::Json,
            _ => LineFormat::Csv,
        }
    }

    /// What takes series.
    fn sink<'w>(
        &self,
        step: u64,
        path: Option<&Path>,
        mut write: Write<'w>,
    ) -> Result<Box<dyn SeriesSink + 'w>, Failure> {
        Ok(match ending(path) {
            "pftrace" | "perfetto-trace" => Box::new(PerfettoSeries::new(self.counts, write)),
            "rrd" => {
                const SECOND: u64 = 1_000_000_000;
                let seconds = u32::try_from(step / SECOND)
                    .ok()
                    .filter(|_| step.is_multiple_of(SECOND));
                let Some(seconds) = seconds else {
                    let problem = "error: a round-robin database has steps of whole seconds: \
                                   --every is not a multiple of 1s";
                    return Err(Failure::Usage(problem.to_string()));
                };
                let target = match self.series.format {
                    Some(target) => target,
                    None => rrd::default_format()
                        .map_err(|error| Failure::Usage(format!("error: {error}")))?,
                };
                let database = SeriesDatabase::new(seconds, None, target);
                Box::new(RrdSeries::new(
                    self.counts,
                    database,
                    move |made| match made {
                        Ok(made) => write(&made.bytes),
                        Err(error) => Err(io::Error::other(error.to_string())),
                    },
                ))
            }
            _ => Box::new(LineSeries::new(self.lines(path), self.counts, write)),
        })
    }
}

/// The ending of a file's name.
fn ending(path: Option<&Path>) -> &str {
    path.and_then(|path| path.extension()?.to_str())
        .unwrap_or_default()
}

/// Runs an analysis, and says what hindered its output.
fn finished<T>(
    mut breakdown: Breakdown<'_>,
    run: impl FnOnce(&mut Breakdown<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let result = run(&mut breakdown);
    match breakdown.take_error() {
        Some(error) => Err(error.into()),
        None => result,
    }
}
