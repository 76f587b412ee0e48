//! Durations over time: what each group has in each interval.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kymo_perfetto::{CounterValue, Names, NewTrack, PerfettoWriter, TrackContent};
use kymo_text::Line;

use super::breakdown::{
    Distribution, LineFormat, PERCENTILES, Span, Write, csv_line, distribution_json,
};
use super::group::{GroupBy, GroupValue, Groups, by_json, joined};
use super::text::number_json;
use crate::AnyRecording;
use crate::convert::rrd::{Made, MakeError, SeriesDatabase};
use crate::report::Json;
use crate::tracks::TrackTable;

/// Distributions that are open at the same time: those of intervals to come are kept until then.
const MOST_OPEN: usize = 1 << 18;

/// What a group had in an interval.
#[derive(Debug)]
pub struct SeriesRow<'r> {
    /// When the interval begins, in nanoseconds.
    pub begin: i64,
    /// The names of the values.
    pub by: &'r GroupBy,
    /// What the durations of the group have in common.
    pub values: &'r [GroupValue],
    /// The durations that ended in it.
    pub of: &'r Distribution,
}

/// Gets the rows of series in order of time.
pub trait SeriesSink {
    /// Takes the rows of an interval.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    fn interval(&mut self, rows: &[SeriesRow<'_>]) -> io::Result<()>;

    /// All rows were taken.
    ///
    /// # Errors
    ///
    /// What is left cannot be written.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Interval = HashMap<u32, Distribution, RandomState>;

/// Series in the making.
pub(super) struct Series<'w> {
    step: i64,
    /// The interval at hand; those before it are complete.
    current: i64,
    /// When the next one begins.
    next: i64,
    open: BTreeMap<i64, Interval>,
    count: usize,
    ready: Vec<(i64, Interval)>,
    sink: Box<dyn SeriesSink + 'w>,
}

impl<'w> Series<'w> {
    pub(super) fn new(step: u64, sink: Box<dyn SeriesSink + 'w>) -> Self {
        Self {
            step: i64::try_from(step).unwrap_or(i64::MAX).max(1),
            current: i64::MIN,
            next: i64::MIN,
            open: BTreeMap::new(),
            count: 0,
            ready: Vec::new(),
            sink,
        }
    }

    /// It is so late now: earlier intervals are complete.
    #[inline]
    pub(super) fn advance(&mut self, time: i64) {
        if time >= self.next {
            self.complete(time.div_euclid(self.step));
        }
    }

    #[cold]
    fn complete(&mut self, current: i64) {
        self.current = current;
        self.next = (current + 1).saturating_mul(self.step);
        let later = self.open.split_off(&current);
        let complete = std::mem::replace(&mut self.open, later);
        for (number, interval) in complete {
            self.count -= interval.len();
            self.ready.push((number, interval));
        }
    }

    /// Adds a duration to the interval in which it ends; where a clock went back, to that at hand.
    pub(super) fn add(&mut self, span: &Span) {
        let mut number = span.end.div_euclid(self.step).max(self.current);
        if self.count >= MOST_OPEN {
            number = self.current;
        }
        let interval = self.open.entry(number).or_default();
        let before = interval.len();
        interval
            .entry(span.group)
            .or_default()
            .add(span.nanos, span.begin);
        self.count += interval.len() - before;
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) {
        for (number, interval) in std::mem::take(&mut self.open) {
            self.ready.push((number, interval));
        }
        self.count = 0;
    }

    /// Writes the intervals that are complete.
    pub(super) fn write(
        &mut self,
        by: &GroupBy,
        groups: &Groups,
        tracks: &TrackTable,
        recordings: &[AnyRecording],
    ) -> io::Result<()> {
        for (number, interval) in self.ready.drain(..) {
            let of_group = |(group, of): (&u32, _)| (groups.values(*group, tracks, recordings), of);
            let mut rows: Vec<_> = interval.iter().map(of_group).collect();
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            let begin = number.saturating_mul(self.step);
            let rows = rows.iter().map(|(values, of)| SeriesRow {
                begin,
                by,
                values,
                of,
            });
            self.sink.interval(&rows.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        self.sink.end()
    }
}

/// Series as lines.
pub struct LineSeries<'w> {
    format: LineFormat,
    /// Whether there are only counts.
    counts: bool,
    write: Write<'w>,
    line: Line,
    has_header: bool,
}

impl std::fmt::Debug for LineSeries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineSeries")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl<'w> LineSeries<'w> {
    /// Lines of a format; with `counts`, of numbers of events alone.
    pub fn new(format: LineFormat, counts: bool, write: Write<'w>) -> Self {
        Self {
            format,
            counts,
            write,
            line: Line::new(),
            has_header: false,
        }
    }

    fn header(&mut self, by: &GroupBy) {
        let durations = [
            "total",
            "mean",
            "deviation",
            "min",
            "p50",
            "p95",
            "p99",
            "max",
        ];
        let durations = durations.into_iter().filter(|_| !self.counts);
        let columns = ["begin"].into_iter().chain(by.titles()).chain(["count"]);
        let columns: Vec<&str> = columns.chain(durations).collect();
        csv_line(columns.into_iter(), &mut self.line);
    }

    fn csv(&mut self, row: &SeriesRow<'_>) {
        let times = &row.of.times;
        let mut cells = vec![row.begin.to_string()];
        cells.extend(row.values.iter().map(GroupValue::text));
        cells.push(times.count().to_string());
        if !self.counts {
            let float =
                |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            cells.extend([
                times.total().to_string(),
                float(times.mean()),
                float(times.deviation()),
            ]);
            cells.push(times.min().to_string());
            for (_, thousandths) in PERCENTILES {
                let nanos = row.of.histogram.percentile(thousandths);
                cells.push(nanos.map_or_else(String::new, |nanos| nanos.to_string()));
            }
            cells.push(times.max().to_string());
        }
        csv_line(cells.iter().map(String::as_str), &mut self.line);
    }

    fn json(&mut self, row: &SeriesRow<'_>) {
        let mut json = Json::default();
        json.begin_object();
        json.key("begin");
        json.signed(row.begin);
        by_json(row.by.titles(), row.values, &mut json);
        match self.counts {
            true => number_json("count", row.of.times.count(), &mut json),
            false => distribution_json(row.of, &mut json),
        }
        json.end_object();
        self.line.push(&json.finish());
    }
}

impl SeriesSink for LineSeries<'_> {
    fn interval(&mut self, rows: &[SeriesRow<'_>]) -> io::Result<()> {
        for row in rows {
            match self.format {
                LineFormat::Csv => {
                    if !std::mem::replace(&mut self.has_header, true) {
                        self.header(row.by);
                    }
                    self.csv(row);
                }
                LineFormat::Json => self.json(row),
            }
        }
        let written = (self.write)(self.line.as_bytes());
        self.line.clear();
        written
    }
}

/// What is shown of a group as numbers over time: names, and the values of an interval.
fn statistics(of: &Distribution, counts: bool) -> Vec<(&'static str, u64)> {
    let mut all = vec![("count", of.times.count())];
    if !counts {
        all.push(("mean", of.times.mean().unwrap_or_default().round() as u64));
        for (name, thousandths) in PERCENTILES {
            all.push((
                name,
                of.histogram.percentile(thousandths).unwrap_or_default(),
            ));
        }
        all.push(("max", of.times.max()));
    }
    all
}

/// Series as counters of a trace of Perfetto: on a track for each group, durations in nanoseconds.
pub struct PerfettoSeries<'w> {
    counts: bool,
    write: Write<'w>,
    writer: PerfettoWriter,
    line: Line,
    /// Of each group its track, and its counters by name.
    tracks: HashMap<String, (u64, HashMap<&'static str, u64>), RandomState>,
}

impl std::fmt::Debug for PerfettoSeries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerfettoSeries").finish_non_exhaustive()
    }
}

impl<'w> PerfettoSeries<'w> {
    /// A trace; with `counts`, of numbers of events alone.
    pub fn new(counts: bool, write: Write<'w>) -> Self {
        Self {
            counts,
            write,
            writer: PerfettoWriter::new(Arc::new(Names::default())),
            line: Line::new(),
            tracks: HashMap::default(),
        }
    }
}

impl SeriesSink for PerfettoSeries<'_> {
    fn interval(&mut self, rows: &[SeriesRow<'_>]) -> io::Result<()> {
        let (writer, line) = (&mut self.writer, &mut self.line);
        for row in rows {
            let name = joined(row.values);
            let time = u64::try_from(row.begin).unwrap_or(0);
            let (track, counters) = self.tracks.entry(name).or_insert_with_key(|name| {
                let new = NewTrack {
                    name,
                    parent: None,
                    rank: None,
                    content: TrackContent::Tracks,
                };
                (writer.track(&new, line), HashMap::new())
            });
            for (name, value) in statistics(row.of, self.counts) {
                let counter = *counters.entry(name).or_insert_with(|| {
                    let new = NewTrack {
                        name,
                        parent: Some(*track),
                        rank: None,
                        content: TrackContent::Counter,
                    };
                    writer.track(&new, line)
                });
                let value = CounterValue::Integer(i64::try_from(value).unwrap_or(i64::MAX));
                writer.count(time, counter, value, line);
            }
        }
        let written = (self.write)(line.as_bytes());
        line.clear();
        written
    }
}

/// Series as a round-robin database: a data source for each number of each group, durations in seconds.
#[derive(Debug)]
pub struct RrdSeries<F> {
    counts: bool,
    database: SeriesDatabase,
    made: F,
}

impl<F: FnMut(Result<Made, MakeError>) -> io::Result<()>> RrdSeries<F> {
    /// A database of this form; `made` gets it at the end.
    pub fn new(counts: bool, database: SeriesDatabase, made: F) -> Self {
        Self {
            counts,
            database,
            made,
        }
    }
}

impl<F: FnMut(Result<Made, MakeError>) -> io::Result<()>> SeriesSink for RrdSeries<F> {
    fn interval(&mut self, rows: &[SeriesRow<'_>]) -> io::Result<()> {
        for row in rows {
            let name = joined(row.values);
            let Ok(second) = u64::try_from(row.begin.div_euclid(1_000_000_000)) else {
                continue;
            };
            for (statistic, value) in statistics(row.of, self.counts) {
                let value = match statistic {
                    "count" => value as f64,
                    _ => value as f64 / 1e9,
                };
                let source = format!("{name}.{statistic}");
                self.database.add(second, &source, value);
            }
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        (self.made)(self.database.make())
    }
}
