//! Time in states: from one event to the next, charged to the track of the first.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::breakdown::{Breakdown, GroupTable, Span};
use super::events::{Error, EventPattern};
use super::feed::{Feed, Whole};
use super::measured::{Measured, MeasuredQuestion, run_measured};
use super::moments::Moments;
use super::pending::Pending;
use super::run::{Analysis, BEGINS, Coverage, Occurrence, Options, PlainEvent};
use super::text::{Summary, duration, in_unit, percent, some_in_unit, track_json, unit_of};
use super::tracks::{Track, TrackBy, track};
use crate::AnyRecording;
use crate::filter::{FieldNames, Glob};
use crate::pipeline::Select;
use crate::report::{Style, Table};
use crate::tracks::{Fields, Key, SliceKeys, TrackTable};

/// States that may last at the same time, with [`StatesQuery::per`].
const MOST_OPEN: usize = 1 << 20;

/// Which events begin a state.
#[derive(Clone, Debug)]
pub struct StatesQuery {
    /// The events that begin a state, and end the one before.
    pub state: EventPattern,
    /// Fields whose values distinguish states: an event ends the state of the last event that
    /// had the same ones. Without them there is one state at a time.
    pub per: Option<FieldNames>,
    /// What a track is.
    pub tracks: TrackBy,
    /// The names of the tracks that are reported; without it, all.
    pub filter: Option<Glob>,
    /// In which order.
    pub sort: Sort,
}

/// The order of tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The longest time in state first.
    #[default]
    Time,
    /// The most states first.
    Count,
    /// The longest mean time first.
    Mean,
    /// By name.
    Name,
}

/// Time in states, by track.
#[derive(Clone, Debug, PartialEq)]
pub struct States {
    /// The tracks that are reported, in the order that was asked for.
    pub tracks: Vec<StateTrack>,
    /// States that had not ended when the recordings did, of all tracks.
    pub open: u64,
    /// States that are not counted, since too many were open at the same time.
    pub dropped: u64,
    /// States that are not counted, since they end before they begin.
    pub backwards: u64,
    /// The states of all tracks by group, where that was asked for.
    pub groups: Option<GroupTable>,
    /// What was seen.
    pub coverage: Coverage,
    title: String,
    several: bool,
    /// Maximum number of tracks in reports.
    most: usize,
}

/// Time in states that are charged to one track.
#[derive(Clone, Debug, PartialEq)]
pub struct StateTrack {
    /// The track.
    pub track: Track,
    /// The times.
    pub times: Moments,
}

/// A state that ended, by the numbers of its parts in [`StateNames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSpan {
    /// When it began, in nanoseconds.
    pub begin: i64,
    /// When it ended.
    pub end: i64,
    /// The track it is charged to.
    pub track: u32,
    /// The values of the fields that keep states apart; 0 without [`StatesQuery::per`].
    pub lane: u32,
}

/// Names of what [`StateSpan`]s refer to, by number.
#[derive(Clone, Debug, Default)]
pub struct StateNames {
    /// Of tracks. States that the query does not want have none.
    pub tracks: HashMap<u32, String>,
    /// Of the values that keep states apart.
    pub lanes: Vec<String>,
}

/// Values that keep states apart which have a number; the rest share the last.
const MOST_LANES: usize = 1 << 12;

/// Takes states as they end.
pub(super) struct Spans<'f> {
    each: &'f mut dyn FnMut(StateSpan),
    lanes: HashMap<Key, u32>,
    names: Vec<String>,
}

impl Spans<'_> {
    fn take(&mut self, begin: i64, end: i64, track: u32, key: Key) {
        let lane = match self.lanes.get(&key) {
            Some(lane) => *lane,
            None if self.names.len() < MOST_LANES => {
                let lane = self.names.len() as u32;
                self.names.push(key.text());
                self.lanes.insert(key, lane);
                lane
            }
            None => MOST_LANES as u32 - 1,
        };
        (self.each)(StateSpan {
            begin,
            end,
            track,
            lane,
        });
    }
}

/// The states so far.
pub(super) struct Work<'w, 'f> {
    breakdown: Breakdown<'w>,
    spans: Option<Spans<'f>>,
    /// By track.
    pub(super) times: Vec<Moments>,
    /// When the last event was, on which track and in which group, by what states are apart.
    pub(super) open: Pending<Key, (i64, u32, u32)>,
    /// The same where they are not apart.
    pub(super) only: Option<(i64, u32, u32)>,
    /// The times of tracks beyond those that are distinguished.
    others: Moments,
    pub(super) backwards: u64,
}

impl<'w, 'f> Work<'w, 'f> {
    pub(super) fn new(most_open: usize) -> Self {
        Self {
            breakdown: Breakdown::default(),
            spans: None,
            times: Vec::new(),
            open: Pending::new(most_open),
            only: None,
            others: Moments::default(),
            backwards: 0,
        }
    }

    /// Charges the time of a state that ends. Returns it with its length; `None` if it ends before it begins.
    #[inline]
    fn end(&mut self, before: (i64, u32, u32), time: i64) -> Option<Span> {
        let (begin, track, group) = before;
        if time < begin {
            self.backwards += 1;
            return None;
        }
        let nanos = time.abs_diff(begin);
        super::slot(&mut self.times, &mut self.others, track).add(nanos);
        Some(Span {
            group,
            nanos,
            begin,
            end: time,
            track,
        })
    }
}

impl<'w> Measured<'w> for Work<'w, '_> {
    fn breakdown(&mut self) -> &mut Breakdown<'w> {
        &mut self.breakdown
    }
}

impl Analysis for Work<'_, '_> {
    #[inline]
    fn event(&mut self, event: &Occurrence<'_>) {
        self.breakdown.now(event.time);
        let now = (event.time, event.track, self.breakdown.group(event));
        let before = match event.begin_key.is_empty() {
            true => self.only.replace(now),
            false => self.open.insert(event.begin_key.key(), now),
        };
        let Some(span) = before.and_then(|before| self.end(before, event.time)) else {
            return;
        };
        self.breakdown.add(span);
        if let Some(spans) = &mut self.spans {
            spans.take(span.begin, span.end, span.track, event.begin_key.key());
        }
    }

    fn takes_plain(&self) -> bool {
        self.spans.is_none() && !self.breakdown.is_on()
    }

    #[inline]
    fn plain(&mut self, event: &PlainEvent<'_>) {
        let now = (event.time, event.track, 0);
        let before = match event.number {
            None => self.only.replace(now),
            Some(number) => self.open.insert(Key::Uint(number), now),
        };
        if let Some(before) = before {
            self.end(before, event.time);
        }
    }

    fn reached(&mut self, time: i64) {
        self.breakdown.now(time);
    }

    fn after(&mut self, tracks: &TrackTable, recordings: &[AnyRecording]) -> bool {
        self.breakdown.after(tracks, recordings)
    }
}

impl States {
    /// Measures the states of all events that `select` wants.
    ///
    /// # Errors
    ///
    /// No recording has such an event or such fields.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &StatesQuery,
        options: &Options,
    ) -> Result<Self, Error> {
        let feed = &mut Whole { recordings, select };
        Self::of_feed(feed, query, options, &mut Breakdown::default())
    }

    /// The same, and hands over each state as it ends. Tracks that [`StatesQuery::filter`] leaves out have no name.
    ///
    /// # Errors
    ///
    /// No recording has such an event or such fields.
    pub fn with_spans(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &StatesQuery,
        options: &Options,
        each: &mut dyn FnMut(StateSpan),
    ) -> Result<(Self, StateNames), Error> {
        let spans = Spans {
            each,
            lanes: HashMap::new(),
            names: Vec::new(),
        };
        let breakdown = &mut Breakdown::default();
        let feed = &mut Whole { recordings, select };
        Self::measure(feed, query, options, breakdown, Some(spans))
    }

    /// The same of all that a feed has; `breakdown` gets each state, for example to group them: the group of a state is
    /// that of the event that begins it.
    ///
    /// # Errors
    ///
    /// No recording has such an event or such fields.
    pub fn of_feed<'w>(
        feed: &mut dyn Feed,
        query: &StatesQuery,
        options: &Options,
        breakdown: &mut Breakdown<'w>,
    ) -> Result<Self, Error> {
        let (states, _) = Self::measure(feed, query, options, breakdown, None)?;
        Ok(states)
    }

    fn measure<'w>(
        feed: &mut dyn Feed,
        query: &StatesQuery,
        options: &Options,
        breakdown: &mut Breakdown<'w>,
        spans: Option<Spans<'_>>,
    ) -> Result<(Self, StateNames), Error> {
        let roles = |recordings: &[AnyRecording]| -> Result<Vec<Vec<_>>, Error> {
            let classes = query.state.classes(recordings).map_err(Error::Event)?;
            let role = |meant: bool| meant.then_some(BEGINS);
            let of_recording = |meant: Vec<bool>| meant.into_iter().map(role).collect();
            Ok(classes.into_iter().map(of_recording).collect())
        };
        let keys = SliceKeys {
            begin: query.per.as_ref().map(|names| Fields {
                option: "per",
                names,
                required: true,
            }),
            end: None,
        };
        let mut work = Work::new(MOST_OPEN);
        work.spans = spans;
        let question = MeasuredQuestion {
            roles,
            pattern: Some(&query.state),
            tracks: &query.tracks,
            keys,
        };
        let (coverage, known, groups) =
            run_measured(feed, &question, options, breakdown, &mut work)?;
        let recordings = feed.recordings();
        let several = recordings.len() > 1;
        let mut names = StateNames {
            tracks: HashMap::new(),
            lanes: work.spans.map_or_else(Vec::new, |spans| spans.names),
        };
        let mut tracks: Vec<StateTrack> = super::slots(work.times, work.others)
            .filter(|(_, times)| times.count() > 0)
            .filter_map(|(number, times)| {
                let track = track(recordings, &known, number);
                let name = track.name.as_bytes();
                let is_wanted = query.filter.as_ref().is_none_or(|glob| glob.matches(name));
                if is_wanted {
                    names.tracks.insert(number, track.title(several));
                }
                is_wanted.then_some(StateTrack { track, times })
            })
            .collect();
        query.sort.sort(&mut tracks);
        let states = Self {
            tracks,
            open: work.open.len() + u64::from(work.only.is_some()),
            dropped: work.open.dropped(),
            backwards: work.backwards,
            groups,
            coverage,
            title: query.tracks.title(),
            several,
            most: usize::MAX,
        };
        Ok((states, names))
    }

    /// Leaves only the first tracks in reports, or the groups with the longest time; the summary is of all.
    pub fn keep_top(&mut self, most: usize) {
        self.most = most;
        if let Some(groups) = &mut self.groups {
            groups.keep_top(most);
        }
    }

    /// How many states of the tracks ended.
    pub fn count(&self) -> u64 {
        self.tracks.iter().map(|track| track.times.count()).sum()
    }

    /// How long they lasted together, in nanoseconds.
    pub fn total(&self) -> u64 {
        let totals = self.tracks.iter().map(|track| track.times.total());
        totals.fold(0, u64::saturating_add)
    }

    /// How long one lasted, in nanoseconds.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.total() as f64 / count as f64)
    }

    /// One object, its durations in nanoseconds: `events`, `untimed`, `discarded_events`, `discarded_packets`,
    /// `count`, `total`, `mean`, `open`, `dropped`, `backwards`, `tracks` (each with
    /// `recording`, `track`, `track_name`, `count`, `total`, `mean`, `deviation`, `min`, `max`)
    /// and `faults`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = self.coverage.begin_json();
        json.entry("count", self.count());
        json.entry("total", self.total());
        json.entry("mean", self.mean());
        json.entry("open", self.open);
        json.entry("dropped", self.dropped);
        json.entry("backwards", self.backwards);
        json.begin_list("tracks");
        for track in self.tracks.iter().take(self.most) {
            json.begin_object();
            track_json(&track.track, &mut json);
            json.entry("count", track.times.count());
            json.entry("total", track.times.total());
            json.entry("mean", track.times.mean());
            json.entry("deviation", track.times.deviation());
            json.entry("min", track.times.min());
            json.entry("max", track.times.max());
            json.end_object();
        }
        json.end_list();
        if let Some(groups) = &self.groups {
            groups.to_json(&mut json);
        }
        self.coverage.finish_json(json)
    }

    /// A summary and a table of all tracks.
    pub fn to_text(&self, style: &Style) -> Vec<u8> {
        let mut summary = Summary::new(style);
        summary.count("states", self.count());
        summary.row("time in states", duration(self.total()));
        let mean = self.mean().map(|mean| duration(mean.round() as u64));
        summary.row("mean time in a state", mean.unwrap_or("-".to_string()));
        summary.count("open at the end", self.open);
        summary.some("left out, too many at a time", self.dropped);
        summary.some("left out, time went back", self.backwards);
        let mut text = summary.finish(&self.coverage, true);
        if let Some(groups) = &self.groups {
            let total = groups.rows.iter().map(|row| row.distribution.times.total());
            text.push('\n');
            text += &groups.to_text(total.fold(0, u64::saturating_add), style);
        } else if !self.tracks.is_empty() {
            let means = self.tracks.iter().filter_map(|track| track.times.mean());
            let unit = unit_of(means.fold(0.0, f64::max));
            let total = self.total() as f64;
            let mut table = Table::default();
            let columns = ["count", "%", "mean", "deviation", "max", "total"];
            table.header(&super::with_unit(&columns, 2, unit, &self.title));
            for track in self.tracks.iter().take(self.most) {
                let times = &track.times;
                table.row([
                    style.count(times.count()),
                    percent(times.total() as f64, total),
                    some_in_unit(times.mean(), unit),
                    some_in_unit(times.deviation(), unit),
                    in_unit(times.max() as f64, unit),
                    in_unit(times.total() as f64, unit),
                    track.track.title(self.several),
                ]);
            }
            text.push('\n');
            // Where lines are short: how much the times differ, then the longest.
            let right = [true, true, true, true, true, true, false];
            text += &table.fit_without(&[3, 4, 1], &right, style);
        }
        text += &self.coverage.faults_text(style);
        text.into_bytes()
    }
}

impl Sort {
    /// Sorts tracks; those that are alike come by name.
    fn sort(self, tracks: &mut [StateTrack]) {
        tracks.sort_by(|a, b| {
            let order = match self {
                Self::Time => Reverse(a.times.total()).cmp(&Reverse(b.times.total())),
                Self::Count => Reverse(a.times.count()).cmp(&Reverse(b.times.count())),
                Self::Mean => {
                    let mean = |track: &StateTrack| track.times.mean().unwrap_or(0.0);
                    mean(b).total_cmp(&mean(a))
                }
                Self::Name => std::cmp::Ordering::Equal,
            };
            let (a, b) = (&a.track, &b.track);
            let by_name = || (&a.name, &a.recording).cmp(&(&b.name, &b.recording));
            order.then_with(by_name)
        });
    }
}
