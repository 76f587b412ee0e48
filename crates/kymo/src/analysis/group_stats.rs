//! How many events there are of which group.

use std::cmp::Reverse;

use kymo_time::Timestamp;

use super::breakdown::{Breakdown, Span};
use super::events::Error;
use super::feed::{Feed, Whole};
use super::group::{GroupBy, GroupValue, Groups, by_json, joined};
use super::run::{Analysis, Coverage, Occurrence, Options, Question, run_feed};
use super::text::{Summary, percent, times_json};
use super::tracks::TrackBy;
use crate::AnyRecording;
use crate::pipeline::Select;
use crate::report::{Count, Style, Table};
use crate::tracks::{OTHERS, TrackTable};

/// At most this many groups are distinguished.
const MOST_GROUPS: usize = 1 << 20;

/// Counts of events by group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupStats {
    /// All events that have a time.
    pub total: Count,
    /// By group, most events first.
    pub groups: Vec<(Vec<GroupValue>, Count)>,
    /// What was seen.
    pub coverage: Coverage,
    /// Groups, those that are not shown included.
    group_count: u64,
    by: GroupBy,
}

struct Work<'w> {
    groups: Groups,
    counts: Vec<Count>,
    others: Count,
    /// Where there are series.
    breakdown: Breakdown<'w>,
}

impl Analysis for Work<'_> {
    #[inline]
    fn event(&mut self, event: &Occurrence<'_>) {
        let group = self.groups.number(event);
        let time = Some(Timestamp::from_nanos(event.time));
        super::slot(&mut self.counts, &mut self.others, group).add_event(time, 0);
        if self.breakdown.is_on() {
            self.breakdown.now(event.time);
            let group = self.breakdown.group(event);
            self.breakdown.add(Span {
                group,
                nanos: 0,
                begin: event.time,
                end: event.time,
                track: event.track,
            });
        }
    }

    fn reached(&mut self, time: i64) {
        self.breakdown.now(time);
    }

    fn after(&mut self, tracks: &TrackTable, recordings: &[AnyRecording]) -> bool {
        self.breakdown.after(tracks, recordings)
    }
}

impl GroupStats {
    /// Counts all events that `select` wants; `series` gets each of them, without a duration.
    ///
    /// # Errors
    ///
    /// No event has the fields that make a track or a group.
    pub fn new<'w>(
        recordings: &[AnyRecording],
        select: &dyn Select,
        tracks: &TrackBy,
        by: &GroupBy,
        options: &Options,
        series: &mut Breakdown<'w>,
    ) -> Result<Self, Error> {
        let feed = &mut Whole { recordings, select };
        Self::of_feed(feed, tracks, by, options, series)
    }

    /// The same of what a feed has.
    ///
    /// # Errors
    ///
    /// No event has the fields that make a track or a group.
    pub fn of_feed<'w>(
        feed: &mut dyn Feed,
        tracks: &TrackBy,
        by: &GroupBy,
        options: &Options,
        series: &mut Breakdown<'w>,
    ) -> Result<Self, Error> {
        let ask = |recordings: &[AnyRecording], work: &mut Work<'_>| {
            work.groups.bind(recordings, None);
            work.breakdown.bind(recordings, None);
            Ok(Question::of_all(recordings, tracks))
        };
        let mut work = Work {
            groups: Groups::new(by, MOST_GROUPS, feed.recordings(), None),
            counts: Vec::new(),
            others: Count::default(),
            breakdown: std::mem::take(series),
        };
        let extra = Breakdown::extra(by);
        let (coverage, known) = run_feed(feed, ask, &extra, options, &mut work)?;
        let recordings = feed.recordings();
        work.breakdown.end(&known, recordings);
        *series = work.breakdown;
        let counts = (0..).zip(work.counts).chain([(OTHERS, work.others)]);
        let counts = counts.filter(|(_, count)| count.events > 0);
        let groups = &work.groups;
        let mut groups: Vec<_> = counts
            .map(|(number, count)| (groups.values(number, &known, recordings), count))
            .collect();
        groups.sort_by(|a, b| {
            let most = Reverse(a.1.events).cmp(&Reverse(b.1.events));
            most.then_with(|| a.0.cmp(&b.0))
        });
        let mut total = Count::default();
        groups.iter().for_each(|(_, count)| total.add(count));
        Ok(Self {
            group_count: groups.len() as u64,
            total,
            groups,
            coverage,
            by: by.clone(),
        })
    }

    /// Leaves only the groups with the most events.
    pub fn keep_top(&mut self, groups: usize) {
        self.groups.truncate(groups);
    }

    /// One object: `events` (with `untimed`, those without a time, which are not counted below),
    /// `discarded_events`, `discarded_packets`, `first`, `last` (nanoseconds), `rate` (events per second), `groups`
    /// (each with `by` and the same counts), `faults`.
    pub fn to_json(&self) -> Vec<u8> {
        let duration = self.total.duration();
        let mut json = self.coverage.begin_json();
        times_json(&self.total, duration, &mut json);
        json.begin_list("groups");
        for (values, count) in &self.groups {
            json.begin_object();
            by_json(self.by.titles(), values, &mut json);
            json.entry("events", count.events);
            times_json(count, duration, &mut json);
            json.end_object();
        }
        json.end_list();
        self.coverage.finish_json(json)
    }

    /// A summary, and a table with a line for each group.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let total = &self.total;
        let duration = total.duration();
        let mut summary = Summary::new(style);
        summary.count("events", self.coverage.events);
        summary.times(total);
        summary.count("groups", self.group_count);
        let mut text = summary.finish(&self.coverage, false);
        if !self.groups.is_empty() {
            let mut table = Table::default();
            let title = self.by.title();
            table.header(&["events", "%", "events/s", "begins", "ends", &*title]);
            for (values, count) in &self.groups {
                table.row([
                    style.count(count.events),
                    percent(count.events as f64, total.events as f64),
                    style.rate(count.rate(duration)),
                    style.optional_time(count.first),
                    style.optional_time(count.last),
                    joined(values),
                ]);
            }
            text.push('\n');
            text += &table.fit_without(&[4, 3], &[true, true, true, false, false, false], style);
        }
        text += &self.coverage.faults_text(style);
        text.into_bytes()
    }
}
