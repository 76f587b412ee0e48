//! Profiles: nested calls, the time in each and in those that it calls.

mod show;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::RandomState;

use super::breakdown::{Breakdown, GroupTable, Span};
use super::calls::{CallKeys, MOST_DEPTH, MOST_OPEN, call_roles, key_fields};
use super::events::{Error, EventPattern};
use super::feed::{Feed, Whole};
use super::histogram::Histogram;
use super::measured::{Measured, MeasuredQuestion, run_measured};
use super::moments::Moments;
use super::run::{Analysis, BEGINS, Coverage, ENDS, Occurrence, Options, PlainEvent, Role, SEEN};
use super::tracks::TrackBy;
use crate::AnyRecording;
use crate::filter::FieldNames;
use crate::pipeline::Select;
use crate::tracks::{OTHERS, OpenSlices, TrackTable};

/// Which events are calls.
#[derive(Clone, Debug)]
pub struct ProfileQuery {
    /// The events that enter something, and those that leave it; without them those that begin and end slices, as
    /// the recordings say.
    pub events: Option<(EventPattern, EventPattern)>,
    /// Fields by whose values time is grouped; without them, by the name of the event that enters.
    pub key: Option<FieldNames>,
    /// What a track is: each has calls of its own.
    pub tracks: TrackBy,
    /// Whether time passes for a track only while it runs: from an event of it until the next
    /// event of another track, as for threads that take turns on one processor. All events that
    /// are wanted are looked at then.
    pub running: bool,
    /// Whether it is counted what calls what.
    pub call_graph: bool,
}

/// A profile of recordings.
#[derive(Clone, Debug)]
pub struct Profile {
    /// By key, longest time in itself first.
    pub keys: Vec<ProfileKey>,
    /// What calls what, where that was asked for: most time first.
    pub edges: Vec<ProfileEdge>,
    /// Events that enter something and were not left.
    pub unmatched_enters: u64,
    /// Events that leave what was not entered.
    pub unmatched_exits: u64,
    /// Calls that are not counted, since too many were open at the same time.
    pub too_deep: u64,
    /// Calls that are not counted, since they end before they begin.
    pub backwards: u64,
    /// From the first event to the last one, in nanoseconds.
    pub span: u64,
    /// The times of calls, each without what it calls, by group, where that was asked for.
    pub groups: Option<GroupTable>,
    /// What was seen.
    pub coverage: Coverage,
    title: String,
    call_graph: bool,
    /// Maximum number of keys in reports.
    most: usize,
}

/// The calls of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileKey {
    /// The values of the fields, or the name of the event.
    pub key: String,
    /// The time of each call without what it calls.
    pub own: Moments,
    /// How many calls took how long, without what they call.
    pub histogram: Histogram,
    /// The time of all calls with what they call, in nanoseconds; a call within another one of the
    /// same key that ended, too, is not counted again.
    pub total: u64,
}

/// The calls of one key by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileEdge {
    /// The position of the caller among the keys; `None` of the outermost calls.
    pub caller: Option<usize>,
    /// The position of what is called.
    pub callee: usize,
    /// How many calls.
    pub calls: u64,
    /// The time of these calls without what they call, in nanoseconds.
    pub own: u64,
    /// The same with what they call. Of a call within another one of the same edge, the time counts twice.
    pub total: u64,
}

/// The numbers of an edge.
#[derive(Clone, Copy, Debug, Default)]
struct OfEdge {
    calls: u64,
    own: u64,
    total: u64,
}

/// Edges that are told apart.
const MOST_EDGES: usize = 1 << 20;

/// A call that is open.
#[derive(Clone, Copy, Debug)]
struct Frame {
    key: u32,
    group: u32,
    /// When it began, in the time of all tracks.
    since: i64,
    /// In the time of the track.
    begin: i64,
    /// Time in what it calls.
    inner: u64,
    /// Time of the outermost calls of its key within it. If it ends, that time is part of its
    /// own; if its exit was lost, those calls are charged instead.
    same_key: u128,
}

#[derive(Clone, Debug, Default)]
pub(super) struct OfKey {
    pub(super) own: Moments,
    histogram: Histogram,
    pub(super) total: u128,
}

/// The profile so far.
pub(super) struct Work<'w> {
    breakdown: Breakdown<'w>,
    running: bool,
    /// By the numbers of the caller and of what it calls.
    edges: Option<HashMap<(Option<u32>, u32), OfEdge, RandomState>>,
    /// Whether time is grouped by the names of classes.
    by_class: bool,
    pub(super) keys: CallKeys,
    pub(super) times: Vec<OfKey>,
    pub(super) other_times: OfKey,
    open: OpenSlices<Frame>,
    /// For how long each track ran.
    ran: Vec<i64>,
    other_ran: i64,
    /// The track that runs, and since when.
    current: Option<(u32, i64)>,
    /// When, and on which track, calls with a known duration end.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
    pub(super) unmatched_enters: u64,
    pub(super) unmatched_exits: u64,
    pub(super) too_deep: u64,
    pub(super) backwards: u64,
    first: Option<i64>,
    last: i64,
}

impl<'w> Work<'w> {
    pub(super) fn new(running: bool) -> Self {
        Self {
            breakdown: Breakdown::default(),
            running,
            edges: None,
            by_class: false,
            keys: CallKeys::default(),
            times: Vec::new(),
            other_times: OfKey::default(),
            open: OpenSlices::new(MOST_OPEN, MOST_DEPTH),
            ran: Vec::new(),
            other_ran: 0,
            current: None,
            ends: BinaryHeap::new(),
            unmatched_enters: 0,
            unmatched_exits: 0,
            too_deep: 0,
            backwards: 0,
            first: None,
            last: i64::MIN,
        }
    }

    /// Ends the calls that are known to end until a time.
    #[inline]
    pub(super) fn end_until(&mut self, time: i64) {
        while let Some(&Reverse((end, track))) = self.ends.peek()
            && end <= time
        {
            self.ends.pop();
            self.last = self.last.max(end);
            let now = self.time_of(track, end);
            self.exit(track, None, now, end);
        }
    }

    /// The time of a track.
    fn time_of(&mut self, track: u32, time: i64) -> i64 {
        if !self.running {
            return time;
        }
        let since = match self.current {
            Some((current, since)) if current == track => since,
            before => {
                if let Some((before, since)) = before {
                    let ran = super::slot(&mut self.ran, &mut self.other_ran, before);
                    // A clock that went back does not take away what a track has run.
                    *ran = ran.saturating_add(time.saturating_sub(since).max(0));
                }
                self.current = Some((track, time));
                time
            }
        };
        let ran = super::slot(&mut self.ran, &mut self.other_ran, track);
        ran.saturating_add(time.saturating_sub(since))
    }

    /// An event comes. Returns its time in that of its track.
    #[inline]
    fn meet(&mut self, track: u32, time: i64) -> i64 {
        // What ended before is of earlier intervals.
        self.end_until(time);
        self.breakdown.now(time);
        self.first.get_or_insert(time);
        self.last = self.last.max(time);
        self.time_of(track, time)
    }

    fn enter(&mut self, event: &Occurrence<'_>, now: i64) {
        let key = self.keys.entered(event);
        let group = self.breakdown.group(event);
        self.begin(event.track, key, group, event.time, now);
    }

    /// A call begins: at `since`, which is `now` in the time of its track.
    #[inline]
    fn begin(&mut self, track: u32, key: u32, group: u32, since: i64, now: i64) {
        let frame = Frame {
            key,
            group,
            since,
            begin: now,
            inner: 0,
            same_key: 0,
        };
        let is_kept = self.open.begin(track, frame);
        self.too_deep += u64::from(!is_kept);
    }

    /// The innermost call of a key ends, or the innermost one.
    fn exit(&mut self, track: u32, wanted: Option<u32>, now: i64, end: i64) {
        if self.open.end_dropped(track) {
            return;
        }
        // Calls above the one that is left were not left in their turn.
        let frames = self.open.on(track);
        let place = match wanted {
            Some(wanted) => frames.iter().rposition(|frame| frame.key == wanted),
            None => frames.len().checked_sub(1),
        };
        let Some(place) = place else {
            self.unmatched_exits += 1;
            return;
        };
        let above = frames.len() - place - 1;
        self.unmatched_enters += above as u64;
        // What the lost ones called is not the caller's own time.
        let lost = frames[place + 1..].iter().map(|frame| frame.inner);
        let lost = lost.fold(0, u64::saturating_add);
        let frame = frames[place];
        let inner = frame.inner.saturating_add(lost);
        let whole = u64::try_from(i128::from(now) - i128::from(frame.begin));
        for _ in 0..above {
            self.drop_innermost(track);
        }
        let frames = self.open.on(track);
        if let Some(caller) = place.checked_sub(1) {
            let caller = &mut frames[caller];
            caller.inner = caller
                .inner
                .saturating_add(*whole.as_ref().unwrap_or(&inner));
        }
        let Ok(whole) = whole else {
            self.backwards += 1;
            return self.drop_innermost(track);
        };
        // The call counts as a whole, so what it holds of its key does not count again.
        frames[place].same_key = whole.into();
        self.drop_innermost(track);
        let times = super::slot(&mut self.times, &mut self.other_times, frame.key);
        let nanos = whole.saturating_sub(inner);
        times.own.add(nanos);
        times.histogram.add(nanos);
        if let Some(edges) = &mut self.edges {
            let caller = place
                .checked_sub(1)
                .map(|caller| self.open.on(track)[caller].key);
            let mut edge = (caller, frame.key);
            if edges.len() >= MOST_EDGES && !edges.contains_key(&edge) {
                edge = (Some(OTHERS), frame.key);
            }
            let sums = edges.entry(edge).or_default();
            sums.calls += 1;
            sums.own = sums.own.saturating_add(nanos);
            sums.total = sums.total.saturating_add(whole);
        }
        self.breakdown.add(Span {
            group: frame.group,
            nanos,
            begin: frame.since,
            end,
            track,
        });
    }

    /// Takes the innermost call from a stack, and charges the time of its key to the next call of
    /// the same key around it, or, if there is none, to the total of the key.
    fn drop_innermost(&mut self, track: u32) {
        let Some(frame) = self.open.pop(track) else {
            return;
        };
        let mut around = self.open.on(track).iter_mut();
        let around = around.rfind(|outer| outer.key == frame.key);
        let charged = match around {
            Some(outer) => &mut outer.same_key,
            None => &mut super::slot(&mut self.times, &mut self.other_times, frame.key).total,
        };
        *charged += frame.same_key;
    }

    /// Drops what has been entered and not left, at the end. Returns the number of such calls.
    pub(super) fn drop_open(&mut self) -> u64 {
        let open = self.open.len() as u64;
        let tracks: Vec<u32> = self.open.iter().map(|(track, ..)| track).collect();
        for track in tracks {
            while !self.open.on(track).is_empty() {
                self.drop_innermost(track);
            }
        }
        open
    }
}

impl<'w> Measured<'w> for Work<'w> {
    fn breakdown(&mut self) -> &mut Breakdown<'w> {
        &mut self.breakdown
    }

    fn bind(&mut self, recordings: &[AnyRecording]) {
        if self.by_class {
            self.keys.by_class(recordings);
        }
    }

    fn end(&mut self) {
        self.end_until(i64::MAX);
    }
}

impl Analysis for Work<'_> {
    #[inline]
    fn event(&mut self, event: &Occurrence<'_>) {
        let now = self.meet(event.track, event.time);
        match event.role {
            BEGINS => self.enter(event, now),
            ENDS => {
                self.breakdown.ending(event);
                let wanted = self.keys.left(event.end_key);
                self.exit(event.track, wanted, now, event.time);
            }
            _ => {}
        }
        if let Some(nanos) = event.duration {
            if self.ends.len() >= MOST_OPEN {
                self.too_deep += 1;
                return;
            }
            self.enter(event, now);
            let end = event.time.saturating_add_unsigned(nanos);
            self.ends.push(Reverse((end, event.track)));
        }
    }

    fn takes_plain(&self) -> bool {
        !self.breakdown.is_on()
    }

    #[inline]
    fn plain(&mut self, event: &PlainEvent<'_>) {
        let (track, time) = (event.track, event.time);
        let now = self.meet(track, time);
        match event.role {
            BEGINS => {
                let key = self.keys.plain_entered(event);
                self.begin(track, key, 0, time, now);
            }
            ENDS => {
                let wanted = self.keys.plain_left(event);
                self.exit(track, wanted, now, time);
            }
            _ => {}
        }
    }

    fn reached(&mut self, time: i64) {
        // Calls that end at this time come with the events of it.
        self.end_until(time.saturating_sub(1));
        self.breakdown.now(time);
    }

    fn after(&mut self, tracks: &TrackTable, recordings: &[AnyRecording]) -> bool {
        self.breakdown.after(tracks, recordings)
    }
}

impl ProfileQuery {
    /// What the events of each class are.
    fn roles(&self, recordings: &[AnyRecording]) -> Result<Vec<Vec<Option<Role>>>, Error> {
        let mut roles = call_roles(self.events.as_ref(), recordings)?;
        if self.running {
            for role in roles.iter_mut().flatten() {
                role.get_or_insert(SEEN);
            }
        }
        Ok(roles)
    }
}

impl Profile {
    /// Measures the calls of all events that `select` wants.
    ///
    /// An event that leaves something and has the fields of the key leaves the innermost call
    /// with the same values; without them it leaves the innermost call.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields; an event enters and leaves.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &ProfileQuery,
        options: &Options,
    ) -> Result<Self, Error> {
        let feed = &mut Whole { recordings, select };
        Self::of_feed(feed, query, options, &mut Breakdown::default())
    }

    /// The same of all that a feed has; `breakdown` gets each call without its callees, for example to group them: the
    /// group of a call is that of the event that enters it.
    ///
    /// # Errors
    ///
    /// No recording has such events or such fields; an event enters and leaves.
    pub fn of_feed<'w>(
        feed: &mut dyn Feed,
        query: &ProfileQuery,
        options: &Options,
        breakdown: &mut Breakdown<'w>,
    ) -> Result<Self, Error> {
        let key = query.key.as_ref();
        let mut work = Work::new(query.running);
        work.by_class = key.is_none();
        work.edges = query.call_graph.then(HashMap::default);
        let question = MeasuredQuestion {
            roles: |recordings: &[AnyRecording]| query.roles(recordings),
            pattern: query.events.as_ref().map(|(enter, _)| enter),
            tracks: &query.tracks,
            keys: key_fields(key),
        };
        let (coverage, _, groups) = run_measured(feed, &question, options, breakdown, &mut work)?;
        let unmatched_enters = work.unmatched_enters + work.drop_open();
        let mut keys: Vec<(u32, ProfileKey)> = super::slots(work.times, work.other_times)
            .filter(|(_, times)| times.own.count() > 0)
            .map(|(number, times)| {
                let key = ProfileKey {
                    key: work.keys.text(number),
                    own: times.own,
                    histogram: times.histogram,
                    total: u64::try_from(times.total).unwrap_or(u64::MAX),
                };
                (number, key)
            })
            .collect();
        keys.sort_by(|(_, a), (_, b)| {
            let longest = |key: &ProfileKey| Reverse(key.own.total());
            longest(a).cmp(&longest(b)).then_with(|| a.key.cmp(&b.key))
        });
        let places: HashMap<u32, usize, RandomState> =
            keys.iter().map(|(number, _)| *number).zip(0..).collect();
        // A caller whose exit was lost has no key here.
        let edges = work.edges.unwrap_or_default().into_iter();
        let edges = edges.filter_map(|((caller, callee), sums)| {
            Some(ProfileEdge {
                caller: caller.and_then(|caller| places.get(&caller).copied()),
                callee: *places.get(&callee)?,
                calls: sums.calls,
                own: sums.own,
                total: sums.total,
            })
        });
        let mut edges: Vec<ProfileEdge> = edges.collect();
        edges.sort_by_key(|edge| (Reverse(edge.total), edge.caller, edge.callee));
        let keys = keys.into_iter().map(|(_, key)| key).collect();
        Ok(Self {
            keys,
            edges,
            call_graph: query.call_graph,
            unmatched_enters,
            unmatched_exits: work.unmatched_exits,
            too_deep: work.too_deep,
            backwards: work.backwards,
            span: work.first.map_or(0, |first| work.last.abs_diff(first)),
            groups,
            coverage,
            title: key.map_or("event".to_string(), ToString::to_string),
            most: usize::MAX,
        })
    }

    /// Leaves only the keys, or the groups, with the longest time in reports, and of each key as many callers and
    /// callees; the summary is of all.
    pub fn keep_top(&mut self, most: usize) {
        self.most = most;
        if let Some(groups) = &mut self.groups {
            groups.keep_top(most);
        }
    }

    /// How many calls of all keys ended.
    pub fn count(&self) -> u64 {
        self.keys.iter().map(|key| key.own.count()).sum()
    }

    /// The time in all calls, each without its callees, in nanoseconds.
    pub fn own(&self) -> u64 {
        let totals = self.keys.iter().map(|key| key.own.total());
        totals.fold(0, u64::saturating_add)
    }

    fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.own() as f64 / count as f64)
    }
}
