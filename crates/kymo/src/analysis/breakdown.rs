//! Durations by group: a table, every single one, or series over time.

use std::cmp::Reverse;
use std::io;

use kymo_time::Timestamp;

use super::events::EventPattern;
use super::group::{GroupBy, GroupValue, Groups, by_json, joined};
use super::histogram::Histogram;
use super::moments::Moments;
use super::records::Records;
use super::run::{Extra, Occurrence, Role};
use super::series::{Series, SeriesSink};
use super::states::Sort;
use super::text::{duration, in_unit, percent, some_in_unit, unit_of};
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::report::{Json, Style, Table};
use crate::tracks::{OTHERS, TrackTable};

/// Groups that have a distribution of their own.
const MOST_GROUPS: usize = 1 << 16;
/// Maximum number of groups whose values are remembered if every duration is written.
const MOST_VALUES: usize = 1 << 20;

/// Percentiles of groups: their keys, and thousandths.
pub(super) const PERCENTILES: [(&str, u32); 3] = [("p50", 500), ("p95", 950), ("p99", 990)];

/// Takes text; an error ends the run.
pub type Write<'w> = Box<dyn FnMut(&[u8]) -> io::Result<()> + 'w>;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// Comma-separated values, the first line names the columns.
    Csv,
    /// A JSON object a line.
    Json,
}

/// Durations of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Number, sum, mean, deviation, extremes.
    pub times: Moments,
    /// How many of what length.
    pub histogram: Histogram,
    /// When the longest began.
    pub max_at: i64,
}

impl Distribution {
    /// Adds a duration that began at a time.
    #[inline]
    pub(super) fn add(&mut self, nanos: u64, begin: i64) {
        if nanos > self.times.max() || self.times.count() == 0 {
            self.max_at = begin;
        }
        self.times.add(nanos);
        self.histogram.add(nanos);
    }

    /// Adds those of another one.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.times.max() > self.times.max() || self.times.count() == 0 {
            self.max_at = other.max_at;
        }
        self.times.merge(&other.times);
        self.histogram.merge(&other.histogram);
    }
}

/// A duration that was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) group: u32,
    pub(super) nanos: u64,
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) track: u32,
}

/// What becomes of durations.
#[derive(Default)]
enum Mode<'w> {
    /// Nothing beside what the analysis does.
    #[default]
    Off,
    /// A distribution for each group.
    Table,
    /// Each is written.
    All(Box<Records<'w>>),
    /// A distribution for each group and interval.
    Series(Series<'w, Distribution>),
}

/// Durations of an analysis by group. Without more, they are not looked at.
#[derive(Default)]
pub struct Breakdown<'w> {
    by: GroupBy,
    mode: Mode<'w>,
    groups: Option<Groups>,
    distributions: Vec<Distribution>,
    others: Distribution,
    error: Option<io::Error>,
}

impl std::fmt::Debug for Breakdown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Breakdown")
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

impl<'w> Breakdown<'w> {
    /// A table with a row for each group.
    pub fn table(by: GroupBy) -> Self {
        Self {
            by,
            mode: Mode::Table,
            ..Self::default()
        }
    }

    /// Every duration as a line: when it began and ended, how long it is, its track, the values of its group, the fields
    /// of the events that began and ended it.
    pub fn all(by: GroupBy, format: LineFormat, write: Write<'w>) -> Self {
        Self {
            by,
            mode: Mode::All(Box::new(Records::new(format, write))),
            ..Self::default()
        }
    }

    /// The durations of each group in each interval of `step` nanoseconds.
    pub fn series(by: GroupBy, step: u64, sink: Box<dyn SeriesSink + 'w>) -> Self {
        Self {
            by,
            mode: Mode::Series(Series::new(step, sink)),
            ..Self::default()
        }
    }

    /// The fields of events that it wants beside those that groups are made by: all, where every duration is written.
    /// It is asked once, before [`bind`](Self::bind).
    pub(super) fn find_fields(
        &mut self,
        recordings: &[AnyRecording],
        roles: &[Vec<Option<Role>>],
    ) -> Vec<FieldNames> {
        match &mut self.mode {
            Mode::All(records) => records.find_fields(&self.by, recordings, roles),
            _ => Vec::new(),
        }
    }

    /// Gets ready for recordings, which may be more than before.
    pub(super) fn bind(&mut self, recordings: &[AnyRecording], pattern: Option<&EventPattern>) {
        let most = match self.mode {
            Mode::Off => return,
            Mode::All(_) => MOST_VALUES,
            Mode::Table | Mode::Series(_) => MOST_GROUPS,
        };
        match &mut self.groups {
            Some(groups) => groups.bind(recordings, pattern),
            None => self.groups = Some(Groups::new(&self.by, most, recordings, pattern)),
        }
    }

    /// What groups need to know of events.
    pub(super) fn extra(by: &GroupBy) -> Extra<'_> {
        Extra {
            by: (!by.fields.is_empty()).then_some(&by.fields),
            ..Extra::default()
        }
    }

    /// What groups are made by.
    pub(super) fn by(&self) -> &GroupBy {
        &self.by
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.groups.is_some()
    }

    /// The number of the group of an event that begins something; where every duration is written, of the event.
    #[inline]
    pub(super) fn group(&mut self, event: &Occurrence<'_>) -> u32 {
        let Some(groups) = &mut self.groups else {
            return 0;
        };
        let group = groups.number(event);
        match &mut self.mode {
            Mode::All(records) => records.begin(group, event),
            _ => group,
        }
    }

    /// An event ends what is added next.
    #[inline]
    pub(super) fn ending(&mut self, event: &Occurrence<'_>) {
        if let Mode::All(records) = &mut self.mode {
            records.ending(event);
        }
    }

    /// It is so late now.
    #[inline]
    pub(super) fn now(&mut self, time: i64) {
        if let Mode::Series(series) = &mut self.mode {
            series.advance(time);
        }
    }

    /// Adds a duration.
    #[inline]
    pub(super) fn add(&mut self, span: Span) {
        match &mut self.mode {
            Mode::Off => {}
            Mode::Table => {
                super::slot(&mut self.distributions, &mut self.others, span.group)
                    .add(span.nanos, span.begin);
            }
            Mode::All(records) => records.add(span),
            Mode::Series(series) => {
                let add =
                    |distribution: &mut Distribution| distribution.add(span.nanos, span.begin);
                series.add(span.end, span.group, add);
            }
        }
    }

    /// Writes what is ready. `false` if that failed.
    pub(super) fn after(&mut self, tracks: &TrackTable, recordings: &[AnyRecording]) -> bool {
        let Some(groups) = &self.groups else {
            return true;
        };
        let written = match &mut self.mode {
            Mode::Off | Mode::Table => Ok(()),
            Mode::All(records) => records.write(&self.by, groups, tracks, recordings),
            Mode::Series(series) => series.write(groups, tracks, recordings),
        };
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
        self.error.is_none()
    }

    /// Writes the rest, at the end.
    pub(super) fn end(&mut self, tracks: &TrackTable, recordings: &[AnyRecording]) {
        if let Mode::Series(series) = &mut self.mode {
            series.finish();
        }
        if self.after(tracks, recordings)
            && let Mode::Series(series) = &mut self.mode
            && let Err(error) = series.end()
        {
            self.error = Some(error);
        }
    }

    /// What hindered writing.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// All durations, where they are kept by group.
    pub(super) fn sum(&self) -> Distribution {
        let mut sum = Distribution::default();
        self.distributions
            .iter()
            .chain([&self.others])
            .for_each(|distribution| sum.merge(distribution));
        sum
    }

    /// The table of all groups; `None` if there are none.
    pub(super) fn rows(
        &self,
        tracks: &TrackTable,
        recordings: &[AnyRecording],
    ) -> Option<GroupTable> {
        let groups = self
            .groups
            .as_ref()
            .filter(|_| matches!(self.mode, Mode::Table))?;
        let own = (0..)
            .zip(&self.distributions)
            .chain([(OTHERS, &self.others)]);
        let rows = own.filter(|(_, distribution)| distribution.times.count() > 0);
        let rows = rows.map(|(number, distribution)| {
            (
                groups.values(number, tracks, recordings),
                distribution.clone(),
            )
        });
        let titles = self.by.titles().map(str::to_string);
        Some(GroupTable::new(titles.collect(), rows.collect()))
    }
}

/// Durations by group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupTable {
    /// The name of each value of a group.
    pub titles: Vec<String>,
    title: String,
    /// Longest time first.
    pub rows: Vec<GroupRow>,
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRow {
    /// What its durations have in common.
    pub values: Vec<GroupValue>,
    /// The durations.
    pub distribution: Distribution,
}

impl GroupTable {
    /// Groups by their values, which have these names.
    pub(super) fn new(titles: Vec<String>, rows: Vec<(Vec<GroupValue>, Distribution)>) -> Self {
        let rows = rows.into_iter().map(|(values, distribution)| GroupRow {
            values,
            distribution,
        });
        let mut rows: Vec<GroupRow> = rows.collect();
        rows.sort_by(|a, b| {
            let longest = |row: &GroupRow| Reverse(row.distribution.times.total());
            longest(a)
                .cmp(&longest(b))
                .then_with(|| a.values.cmp(&b.values))
        });
        let title = match titles.is_empty() {
            true => "all".to_string(),
            false => titles.join(", "),
        };
        Self {
            titles,
            title,
            rows,
        }
    }

    /// Puts groups in another order than that of their time; those that are alike come by their values.
    pub fn sort(&mut self, by: Sort) {
        self.rows.sort_by(|a, b| {
            let (of_a, of_b) = (&a.distribution.times, &b.distribution.times);
            let order = match by {
                Sort::Time => of_b.total().cmp(&of_a.total()),
                Sort::Count => of_b.count().cmp(&of_a.count()),
                Sort::Mean => {
                    let mean = |moments: &Moments| moments.mean().unwrap_or(0.0);
                    mean(of_b).total_cmp(&mean(of_a))
                }
                Sort::Name => std::cmp::Ordering::Equal,
            };
            order.then_with(|| a.values.cmp(&b.values))
        });
    }

    /// Leaves only the groups with the longest time.
    pub fn keep_top(&mut self, groups: usize) {
        self.rows.truncate(groups);
    }

    /// The key `groups`: each with `by` (its values), `count`, `total`, `mean`, `deviation`, `min`, `p50`,
    /// `p95`, `p99`, `max`, `max_at`.
    pub(super) fn to_json(&self, json: &mut Json) {
        json.begin_list("groups");
        for row in &self.rows {
            json.begin_object();
            by_json(self.titles.iter().map(String::as_str), &row.values, json);
            distribution_json(&row.distribution, json);
            json.entry("max_at", row.distribution.max_at);
            json.end_object();
        }
        json.end_list();
    }

    /// A table; `total` is all the time there is.
    pub(super) fn to_text(&self, total: u64, style: &Style) -> String {
        let means = self
            .rows
            .iter()
            .filter_map(|row| row.distribution.times.mean());
        let unit = unit_of(means.fold(0.0, f64::max));
        let mut table = Table::default();
        let columns = ["count", "%", "mean", "p50", "p95", "p99", "max"];
        let mut header = super::with_unit(&columns, 2, unit, &self.title);
        header.insert(2, "total".to_string());
        header.insert(header.len() - 1, "max at".to_string());
        table.header(&header);
        for row in &self.rows {
            let times = &row.distribution.times;
            let [p50, p95, p99] = PERCENTILES.map(|(_, thousandths)| {
                let nanos = row.distribution.histogram.percentile(thousandths);
                some_in_unit(nanos.map(|nanos| nanos as f64), unit)
            });
            table.row([
                style.count(times.count()),
                percent(times.total() as f64, total as f64),
                duration(times.total()),
                some_in_unit(times.mean(), unit),
                p50,
                p95,
                p99,
                in_unit(times.max() as f64, unit),
                style.time(Timestamp::from_nanos(row.distribution.max_at)),
                joined(&row.values),
            ]);
        }
        let mut right = [true; 10];
        (right[8], right[9]) = (false, false);
        // Where lines are short: when the longest one was, then percentiles.
        table.fit_without(&[8, 6, 5, 4, 3], &right, style)
    }
}

/// The keys of durations: `count`, `total`, `mean`, `deviation`, `min`, `p50`, `p95`, `p99`, `max`.
pub(super) fn distribution_json(distribution: &Distribution, json: &mut Json) {
    let times = &distribution.times;
    json.entry("count", times.count());
    json.entry("total", times.total());
    json.entry("mean", times.mean());
    json.entry("deviation", times.deviation());
    json.entry("min", times.min());
    for (key, thousandths) in PERCENTILES {
        json.entry(key, distribution.histogram.percentile(thousandths));
    }
    json.entry("max", times.max());
}
