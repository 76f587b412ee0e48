//! Durations and values over time: what each group has in each interval.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kymo_perfetto::{CounterValue, Names, NewTrack, PerfettoWriter, TrackContent};
use kymo_text::Line;

use super::breakdown::{Distribution, LineFormat, PERCENTILES, Write};
use super::group::{GroupBy, GroupValue, Groups, by_json, joined};
use super::numbers::Numbers;
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
    /// What it had.
    pub measured: SeriesOf<'r>,
}

/// What is shown of an interval.
#[derive(Clone, Copy, Debug)]
pub enum SeriesOf<'r> {
    /// The durations that ended in it.
    Durations(&'r Distribution),
    /// Values of a field.
    Values {
        /// Those that are numbers.
        numbers: &'r Numbers,
        /// How many are texts, BLOBs or truth values.
        others: u64,
    },
}

/// A number of an interval.
#[derive(Clone, Copy, Debug)]
enum Figure {
    Whole(u64),
    Float(f64),
}

impl SeriesOf<'_> {
    /// All numbers with their names; with `counts`, only how many there were.
    fn figures(&self, counts: bool) -> Vec<(&'static str, Option<Figure>)> {
        let whole = |value| Some(Figure::Whole(value));
        let float = |value: Option<f64>| value.map(Figure::Float);
        match self {
            Self::Durations(distribution) => {
                let times = &distribution.times;
                let mut all = vec![("count", whole(times.count()))];
                if !counts {
                    all.push(("total", whole(times.total())));
                    all.push(("mean", float(times.mean())));
                    all.push(("deviation", float(times.deviation())));
                    all.push(("min", whole(times.min())));
                    for (name, thousandths) in PERCENTILES {
                        let nanos = distribution.histogram.percentile(thousandths);
                        all.push((name, nanos.map(Figure::Whole)));
                    }
                    all.push(("max", whole(times.max())));
                }
                all
            }
            Self::Values { numbers, others } => {
                let mut all = vec![
                    ("count", whole(numbers.count() + others)),
                    ("mean", float(numbers.mean())),
                    ("deviation", float(numbers.deviation())),
                    ("min", float(numbers.min())),
                ];
                for (name, thousandths) in PERCENTILES {
                    all.push((name, float(numbers.percentile(thousandths))));
                }
                all.push(("max", float(numbers.max())));
                all
            }
        }
    }

    /// Those that are drawn over time.
    fn drawn(&self, counts: bool) -> impl Iterator<Item = (&'static str, Figure)> + use<> {
        let all = self.figures(counts).into_iter();
        let is_drawn = |name: &str| !matches!(name, "total" | "deviation" | "min");
        all.filter_map(move |(name, figure)| Some((name, figure.filter(|_| is_drawn(name))?)))
    }
}

/// What is kept of an interval.
pub(super) trait Kept: Default {
    fn shown(&self) -> SeriesOf<'_>;
}

impl Kept for Distribution {
    fn shown(&self) -> SeriesOf<'_> {
        SeriesOf::Durations(self)
    }
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

type Interval<D> = HashMap<u32, D, RandomState>;

/// Series in the making.
pub(super) struct Series<'w, D> {
    step: i64,
    /// The interval at hand; those before it are complete.
    current: i64,
    /// When the next one begins.
    next: i64,
    open: BTreeMap<i64, Interval<D>>,
    count: usize,
    ready: Vec<(i64, Interval<D>)>,
    sink: Box<dyn SeriesSink + 'w>,
}

impl<'w, D: Kept> Series<'w, D> {
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

    /// Adds something to what a group has in the interval of a time; where a clock went back, in that at hand.
    pub(super) fn add(&mut self, time: i64, group: u32, add: impl FnOnce(&mut D)) {
        let mut number = time.div_euclid(self.step).max(self.current);
        if self.count >= MOST_OPEN {
            number = self.current;
        }
        let interval = self.open.entry(number).or_default();
        let before = interval.len();
        add(interval.entry(group).or_default());
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
        groups: &Groups,
        tracks: &TrackTable,
        recordings: &[AnyRecording],
    ) -> io::Result<()> {
        for (number, interval) in self.ready.drain(..) {
            let of_group = |(group, measured): (&u32, _)| {
                (groups.values(*group, tracks, recordings), measured)
            };
            let mut rows: Vec<_> = interval.iter().map(of_group).collect();
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            let begin = number.saturating_mul(self.step);
            let rows = rows.iter().map(|(values, measured)| SeriesRow {
                begin,
                by: groups.by(),
                values,
                measured: measured.shown(),
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

    fn header(&mut self, row: &SeriesRow<'_>) {
        let figures = row.measured.figures(self.counts);
        let figures = figures.iter().map(|(name, _)| *name);
        let columns = ["begin"].into_iter().chain(row.by.titles()).chain(figures);
        csv_line(columns, &mut self.line);
    }

    fn csv(&mut self, row: &SeriesRow<'_>) {
        let mut cells = vec![row.begin.to_string()];
        cells.extend(row.values.iter().map(GroupValue::text));
        let figures = row.measured.figures(self.counts).into_iter();
        cells.extend(figures.map(|(_, figure)| match figure {
            Some(Figure::Whole(value)) => value.to_string(),
            Some(Figure::Float(value)) => value.to_string(),
            None => String::new(),
        }));
        csv_line(cells.iter().map(String::as_str), &mut self.line);
    }

    fn json(&mut self, row: &SeriesRow<'_>) {
        let mut json = Json::default();
        json.begin_object();
        json.entry("begin", row.begin);
        by_json(row.by.titles(), row.values, &mut json);
        for (name, figure) in row.measured.figures(self.counts) {
            match figure {
                Some(Figure::Whole(value)) => json.entry(name, value),
                Some(Figure::Float(value)) => json.entry(name, value),
                None => json.entry(name, None::<u64>),
            }
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
                        self.header(row);
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

/// A line of comma-separated values.
pub(super) fn csv_line<'c>(cells: impl Iterator<Item = &'c str>, out: &mut Line) {
    for (position, cell) in cells.enumerate() {
        if position > 0 {
            out.push_byte(b',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.push_byte(b'"');
            out.push(cell.replace('"', "\"\"").as_bytes());
            out.push_byte(b'"');
        } else {
            out.push(cell.as_bytes());
        }
    }
    out.push_byte(b'\n');
}

/// Series as counters of a trace of Perfetto, on a track for each group; durations are in nanoseconds.
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
            for (name, figure) in row.measured.drawn(self.counts) {
                let counter = *counters.entry(name).or_insert_with(|| {
                    let new = NewTrack {
                        name,
                        parent: Some(*track),
                        rank: None,
                        content: TrackContent::Counter,
                    };
                    writer.track(&new, line)
                });
                let value = match (figure, &row.measured) {
                    (Figure::Whole(value), _) => {
                        CounterValue::Integer(i64::try_from(value).unwrap_or(i64::MAX))
                    }
                    // Nanoseconds.
                    (Figure::Float(value), SeriesOf::Durations(_)) => {
                        CounterValue::Integer(value.round() as i64)
                    }
                    (Figure::Float(value), SeriesOf::Values { .. }) => CounterValue::Float(value),
                };
                writer.count(time, counter, value, line);
            }
        }
        let written = (self.write)(line.as_bytes());
        line.clear();
        written
    }
}

/// Series as a round-robin database: a data source for each number of each group; durations are in seconds.
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
            for (statistic, figure) in row.measured.drawn(self.counts) {
                let value = match figure {
                    Figure::Whole(value) => value as f64,
                    Figure::Float(value) => value,
                };
                let value = match (statistic, &row.measured) {
                    ("count", _) | (_, SeriesOf::Values { .. }) => value,
                    (_, SeriesOf::Durations(_)) => value / 1e9,
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
