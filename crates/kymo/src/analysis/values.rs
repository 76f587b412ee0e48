//! Values of a field: numbers as distributions, texts by how often they come.

mod show;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

use foldhash::fast::RandomState;
use kymo_model::{Recording, Value};
use kymo_time::Timestamp;

use super::breakdown::Breakdown;
use super::events::Error;
use super::feed::Feed;
use super::group::{GroupBy, GroupValue, Groups};
use super::numbers::Numbers;
use super::run::{Analysis, Coverage, Extra, Occurrence, Options, Question, run_feed, run_with};
use super::series::{Kept, Series, SeriesOf, SeriesSink};
use super::tracks::{Track, TrackBy, track};
use crate::AnyRecording;
use crate::filter::{FieldNames, name_of};
use crate::pipeline::Select;
use crate::tracks::{Interner, Key, OTHERS, TrackTable};

/// At most this many groups are distinguished.
const MOST_GROUPS: usize = 1 << 16;
/// At most this many texts are distinguished, of all groups together, and their bytes.
const MOST_TEXTS: (usize, usize) = (1 << 20, 64 << 20);

/// Which values are looked at, and how.
#[derive(Clone, Debug)]
pub struct ValuesQuery {
    /// The field.
    pub field: FieldNames,
    /// What its values are grouped by.
    pub by: GroupBy,
    /// What a track is.
    pub tracks: TrackBy,
    /// Values more than this number of deviations above or below the mean of their group are outliers;
    /// without, none are looked for.
    pub outliers: Option<f64>,
    /// How many outliers are kept with their places: the farthest.
    pub worst: usize,
    /// How many texts of a group are shown: the most frequent.
    pub top: usize,
}

/// The values of a field.
#[derive(Clone, Debug)]
pub struct FieldValues {
    /// By group, most values first.
    pub groups: Vec<ValueGroup>,
    /// How many outliers there are.
    pub outlier_count: u64,
    /// The farthest of them first.
    pub outliers: Vec<Outlier>,
    /// What was seen.
    pub coverage: Coverage,
    /// Groups and values, those that are not shown included.
    group_count: u64,
    value_count: u64,
    by: GroupBy,
    field: String,
    limit: Option<f64>,
    several: bool,
    top: usize,
}

/// The values of a group.
#[derive(Clone, Debug)]
pub struct ValueGroup {
    /// What they have in common.
    pub values: Vec<GroupValue>,
    /// Those that are numbers.
    pub numbers: Numbers,
    /// Those that are texts, BLOBs or truth values: the most frequent first, and how often each comes.
    pub texts: Vec<(String, u64)>,
    /// How many of these there are.
    pub text_count: u64,
    /// The number of different ones; `None` if some were not distinguished.
    pub distinct: Option<u64>,
}

/// A value far from the others of its group.
#[derive(Clone, Debug)]
pub struct Outlier {
    /// The value.
    pub value: f64,
    /// How many deviations from the mean.
    pub deviations: f64,
    /// When.
    pub time: Timestamp,
    /// Where.
    pub track: Track,
    /// The name of its event.
    pub event: String,
    /// Its group.
    pub group: Vec<GroupValue>,
}

/// A value as a number.
fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Uint(value) | Value::Bits(value) => Some(value as f64),
        Value::Sint(value) => Some(value as f64),
        Value::Float(value) if value.is_finite() => Some(value),
        _ => None,
    }
}

/// The values of a field over time, by group.
pub struct ValueSeries<'w> {
    series: Series<'w, ValuesAt>,
    error: Option<io::Error>,
}

impl std::fmt::Debug for ValueSeries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValueSeries").finish_non_exhaustive()
    }
}

impl<'w> ValueSeries<'w> {
    /// The values of each group in each interval of `step` nanoseconds.
    pub fn new(step: u64, sink: Box<dyn SeriesSink + 'w>) -> Self {
        Self {
            series: Series::new(step, sink),
            error: None,
        }
    }

    /// What hindered writing.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

/// The values of an interval.
#[derive(Default)]
struct ValuesAt {
    numbers: Numbers,
    others: u64,
}

impl Kept for ValuesAt {
    fn shown(&self) -> SeriesOf<'_> {
        SeriesOf::Values {
            numbers: &self.numbers,
            others: self.others,
        }
    }
}

/// Writes the values of each interval.
struct SeriesWork<'s, 'w> {
    groups: Groups,
    to: &'s mut ValueSeries<'w>,
}

impl Analysis for SeriesWork<'_, '_> {
    fn event(&mut self, event: &Occurrence<'_>) {
        self.to.series.advance(event.time);
        if matches!(event.value, Value::Missing | Value::Compound) {
            return;
        }
        let group = self.groups.number(event);
        self.to
            .series
            .add(event.time, group, |values| match number(event.value) {
                Some(number) => values.numbers.add(number),
                None => values.others += 1,
            });
    }

    fn reached(&mut self, time: i64) {
        self.to.series.advance(time);
    }

    fn after(&mut self, tracks: &TrackTable, recordings: &[AnyRecording]) -> bool {
        let ValueSeries { series, error } = &mut *self.to;
        if let Err(failed) = series.write(&self.groups, tracks, recordings) {
            error.get_or_insert(failed);
        }
        error.is_none()
    }
}

/// The first pass.
struct Work {
    groups: Groups,
    numbers: Vec<Numbers>,
    other_numbers: Numbers,
    /// Texts by group, each with a number.
    texts: Interner<(u32, Key)>,
    counts: Vec<u64>,
    /// By group, the number of texts that are not distinguished.
    rest: HashMap<u32, u64, RandomState>,
}

impl Analysis for Work {
    fn event(&mut self, event: &Occurrence<'_>) {
        use std::hash::BuildHasher;
        if matches!(event.value, Value::Missing | Value::Compound) {
            return;
        }
        let group = self.groups.number(event);
        if let Some(number) = number(event.value) {
            super::slot(&mut self.numbers, &mut self.other_numbers, group).add(number);
            return;
        }
        let key = Key::of(event.value);
        let hash = self.texts.hasher().hash_one((group, &key));
        let is_it = |known: &(u32, Key)| known.0 == group && known.1 == key;
        let text = self.texts.number(hash, is_it, || {
            let bytes = 4 + key.byte_size();
            ((group, key.clone()), bytes)
        });
        if text == OTHERS {
            *self.rest.entry(group).or_default() += 1;
            return;
        }
        if self.counts.len() <= text as usize {
            self.counts.resize(text as usize + 1, 0);
        }
        self.counts[text as usize] += 1;
    }
}

/// An outlier in the order in which they are given up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    deviations: f64,
    time: Reverse<i64>,
    value: f64,
    track: u32,
    class: (usize, usize),
    group: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let far = |outlier: &Self| outlier.deviations.abs();
        far(self)
            .total_cmp(&far(other))
            .then_with(|| self.time.cmp(&other.time))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The second pass: the mean and the deviation of each group are known.
struct Search {
    groups: Groups,
    limits: Vec<Option<(f64, f64)>>,
    limit: f64,
    most: usize,
    count: u64,
    found: BinaryHeap<Reverse<Candidate>>,
}

impl Analysis for Search {
    fn event(&mut self, event: &Occurrence<'_>) {
        let Some(value) = number(event.value) else {
            return;
        };
        let group = self.groups.number(event);
        let Some(Some((mean, deviation))) = self.limits.get(group as usize) else {
            return;
        };
        let deviations = (value - mean) / deviation;
        if deviations.abs() <= self.limit {
            return;
        }
        self.count += 1;
        self.found.push(Reverse(Candidate {
            deviations,
            time: Reverse(event.time),
            value,
            track: event.track,
            class: (event.recording, event.class),
            group,
        }));
        if self.found.len() > self.most {
            self.found.pop();
        }
    }
}

impl FieldValues {
    /// Looks at the field in all events that `select` wants; where outliers are looked for, twice.
    ///
    /// # Errors
    ///
    /// No event has such fields.
    pub fn new(
        recordings: &[AnyRecording],
        select: &dyn Select,
        query: &ValuesQuery,
        options: &Options,
    ) -> Result<Self, Error> {
        let question = Question::of_all(recordings, &query.tracks);
        let by = &query.by;
        let extra = Extra {
            by: (!by.fields.is_empty()).then_some(&by.fields),
            value: Some(&query.field),
            ..Extra::default()
        };
        let groups = || Groups::new(by, MOST_GROUPS, recordings, None);
        let mut work = Work {
            groups: groups(),
            numbers: Vec::new(),
            other_numbers: Numbers::default(),
            texts: Interner::with_room(MOST_TEXTS.0, MOST_TEXTS.1),
            counts: Vec::new(),
            rest: HashMap::default(),
        };
        let run = run_with(recordings, select, &question, &extra, options, &mut work);
        let (coverage, known) = run?;

        let mut texts: HashMap<u32, Vec<(String, u64)>, RandomState> = HashMap::default();
        for (text, &count) in (0..).zip(&work.counts) {
            if let Some((group, key)) = work.texts.key(text) {
                texts.entry(*group).or_default().push((key.text(), count));
            }
        }
        let mut numbers: HashMap<u32, Numbers, RandomState> = HashMap::default();
        let all = std::mem::take(&mut work.numbers);
        let others = std::mem::take(&mut work.other_numbers);
        let limits = all.iter().map(|numbers| {
            let deviation = numbers.deviation().filter(|deviation| *deviation > 0.0)?;
            Some((numbers.mean()?, deviation))
        });
        let limits = limits.collect();
        let counted = (0..).zip(all).chain([(OTHERS, others)]);
        numbers.extend(counted.filter(|(_, numbers)| numbers.count() > 0));
        let mut all: Vec<u32> = numbers
            .keys()
            .chain(texts.keys())
            .chain(work.rest.keys())
            .copied()
            .collect();
        all.sort_unstable();
        all.dedup();
        let of_group = |group: u32| {
            let mut texts = texts.remove(&group).unwrap_or_default();
            texts.sort_by(|a, b| Reverse(a.1).cmp(&Reverse(b.1)).then_with(|| a.0.cmp(&b.0)));
            let rest = work.rest.get(&group).copied().unwrap_or_default();
            ValueGroup {
                values: work.groups.values(group, &known, recordings),
                numbers: numbers.remove(&group).unwrap_or_default(),
                text_count: texts.iter().map(|(_, count)| count).sum::<u64>() + rest,
                distinct: (rest == 0).then_some(texts.len() as u64),
                texts,
            }
        };
        let mut groups: Vec<ValueGroup> = all.into_iter().map(of_group).collect();
        groups.sort_by(|a, b| {
            let most = Reverse(a.count()).cmp(&Reverse(b.count()));
            most.then_with(|| a.values.cmp(&b.values))
        });
        let mut values = Self {
            group_count: groups.len() as u64,
            value_count: groups.iter().map(ValueGroup::count).sum(),
            groups,
            outlier_count: 0,
            outliers: Vec::new(),
            coverage,
            by: by.clone(),
            field: query.field.to_string(),
            limit: query.outliers,
            several: recordings.len() > 1,
            top: query.top,
        };
        if let Some(limit) = query.outliers {
            let search = Search {
                groups: self::Groups::new(by, MOST_GROUPS, recordings, None),
                limits,
                limit,
                most: query.worst,
                count: 0,
                found: BinaryHeap::new(),
            };
            values.search(recordings, (select, &question, &extra, options), search)?;
        }
        Ok(values)
    }

    /// Looks at the field in all events of a feed, interval by interval; outliers are not looked for. Returns what was
    /// seen.
    ///
    /// # Errors
    ///
    /// No event has such fields.
    pub fn series(
        feed: &mut dyn Feed,
        query: &ValuesQuery,
        options: &Options,
        to: &mut ValueSeries<'_>,
    ) -> Result<Coverage, Error> {
        let by = &query.by;
        let extra = Extra {
            value: Some(&query.field),
            ..Breakdown::extra(by)
        };
        let mut work = SeriesWork {
            groups: Groups::new(by, MOST_GROUPS, feed.recordings(), None),
            to,
        };
        let ask = |recordings: &[AnyRecording], work: &mut SeriesWork<'_, '_>| {
            work.groups.bind(recordings, None);
            Ok(Question::of_all(recordings, &query.tracks))
        };
        let (coverage, known) = run_feed(feed, ask, &extra, options, &mut work)?;
        work.to.series.finish();
        if work.after(&known, feed.recordings())
            && let Err(error) = work.to.series.end()
        {
            work.to.error = Some(error);
        }
        Ok(coverage)
    }

    fn search(
        &mut self,
        recordings: &[AnyRecording],
        (select, question, extra, options): (&dyn Select, &Question<'_>, &Extra<'_>, &Options),
        mut search: Search,
    ) -> Result<(), Error> {
        let (_, known) = run_with(recordings, select, question, extra, options, &mut search)?;
        self.outlier_count = search.count;
        let found = search.found.into_sorted_vec().into_iter();
        let found = found.map(|Reverse(found)| Outlier {
            value: found.value,
            deviations: found.deviations,
            time: Timestamp::from_nanos(found.time.0),
            track: track(recordings, &known, found.track),
            event: name_of(&recordings[found.class.0].event_classes()[found.class.1]).to_string(),
            group: search.groups.values(found.group, &known, recordings),
        });
        self.outliers = found.collect();
        Ok(())
    }

    /// Leaves only the groups with the most values.
    pub fn keep_top(&mut self, groups: usize) {
        self.groups.truncate(groups);
    }
}

impl ValueGroup {
    /// All values.
    pub fn count(&self) -> u64 {
        self.numbers.count() + self.text_count
    }
}
