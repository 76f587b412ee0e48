//! Rows of which an analysis needs no more than times, tracks and keys that are one number: they are handed over without
//! asking for anything else, in a loop over their columns.

use kymo_model::Column;
use kymo_model::batch::ColumnData;

use super::sequencer::Sequencer;
use super::{Analysis, BEGINS, ClassExtra, ENDS, Role, SEEN, cut};
use crate::pipeline::{ClassRows, NO_TIME, RowRun, Values};
use crate::tracks::{ClassTracks, Edge, FieldColumns, RowKey, TrackSource};

/// Shorter runs are not worth a look at their columns.
const LEAST_ROWS: usize = 32;

/// An event, as an analysis sees it that needs nothing else.
#[derive(Clone, Copy)]
pub(in crate::analysis) struct PlainEvent<'k> {
    pub(in crate::analysis) recording: usize,
    pub(in crate::analysis) class: usize,
    pub(in crate::analysis) role: Role,
    /// Nanoseconds on the common line.
    pub(in crate::analysis) time: i64,
    /// Number of its track.
    pub(in crate::analysis) track: u32,
    /// Its key, if it is one number; `None` if there is no key.
    pub(in crate::analysis) number: Option<u64>,
    /// The key where it lies.
    pub(in crate::analysis) key: RowKey<'k>,
}

/// A column of unsigned numbers, all of which are there.
#[derive(Clone, Copy)]
enum NumberColumn<'c> {
    Bits8(&'c [u8]),
    Bits16(&'c [u16]),
    Bits32(&'c [u32]),
    Bits64(&'c [u64]),
}

impl<'c> NumberColumn<'c> {
    fn new(column: &'c Column) -> Option<Self> {
        match (&column.data, &column.validity) {
            (ColumnData::Uint8(values), None) => Some(Self::Bits8(values)),
            (ColumnData::Uint16(values), None) => Some(Self::Bits16(values)),
            (ColumnData::Uint32(values), None) => Some(Self::Bits32(values)),
            (ColumnData::Uint64(values), None) => Some(Self::Bits64(values)),
            _ => None,
        }
    }

    #[inline]
    fn get(self, row: usize) -> u64 {
        match self {
            Self::Bits8(values) => values[row].into(),
            Self::Bits16(values) => values[row].into(),
            Self::Bits32(values) => values[row].into(),
            Self::Bits64(values) => values[row],
        }
    }
}

/// The rows of a class.
struct PlainClass<'c> {
    role: Role,
    source: &'c TrackSource,
    /// The numbers of their tracks; `None` if they are on that of the stream.
    tracks: Option<NumberColumn<'c>>,
    key: &'c [std::ops::Range<usize>],
    numbers: Option<NumberColumn<'c>>,
    columns: &'c [Column],
    /// Rows that were handed over.
    taken: usize,
}

impl<'c> PlainClass<'c> {
    /// `None` if more has to be known of its rows.
    fn new(
        class: &'c ClassTracks,
        extra: &ClassExtra,
        columns: &'c [Column],
        taken: usize,
    ) -> Option<Self> {
        if class.duration.is_some() || !class.flows.is_empty() || !class.counters.is_empty() {
            return None;
        }
        if !extra.by.is_empty() {
            return None;
        }
        let number = |fields: &FieldColumns| match &**fields {
            [column] if column.len() == 1 => NumberColumn::new(columns.get(column.start)?),
            _ => None,
        };
        let tracks = match &class.track {
            TrackSource::Stream => None,
            TrackSource::Own(fields) => Some(number(fields)?),
            TrackSource::Fields(_) => return None,
        };
        let (role, edge): (Role, Option<&'c Edge>) = match (&class.begins, &class.ends) {
            (Some(edge), None) => (BEGINS, Some(edge)),
            (None, Some(edge)) => (ENDS, Some(edge)),
            (None, None) => (SEEN, None),
            (Some(_), Some(_)) => return None,
        };
        let key = edge.map_or(&[][..], |edge| &edge.key);
        let numbers = match edge {
            Some(edge) if !edge.key.is_empty() => Some(number(&edge.key)?),
            _ => None,
        };
        Some(Self {
            role,
            source: &class.track,
            tracks,
            key,
            numbers,
            columns,
            taken,
        })
    }
}

/// Rows of a stream of which nothing else has to be known.
struct PlainRun<'c> {
    recording: usize,
    stream: usize,
    times: &'c [i64],
    classes_of: &'c [u32],
    /// The rows of each event class that has any.
    classes: Vec<Option<PlainClass<'c>>>,
    /// Their roles, if none of them has a column: then all rows are on the track of the stream, and none has to be
    /// found among those of its class.
    roles: Option<Vec<Role>>,
    /// The track of the stream, once it has a number.
    track: Option<u32>,
    /// The position of the next row, where rows of several runs take turns.
    next: usize,
}

impl<'c> PlainRun<'c> {
    /// `None` if more has to be known of its rows.
    fn new(
        classes: &'c [Option<ClassTracks>],
        extras: &[Option<ClassExtra>],
        run: &RowRun<'c>,
    ) -> Option<Self> {
        let mut plain: Vec<Option<PlainClass<'_>>> = Vec::with_capacity(extras.len());
        for (class, known) in classes.iter().zip(extras).enumerate() {
            plain.push(match known {
                (Some(meaning), Some(extra)) => {
                    let columns = run.columns(class);
                    // A class without rows in the batch may be without columns.
                    let known = PlainClass::new(meaning, extra, columns, run.classes[class].taken);
                    if known.is_none() && !columns.is_empty() {
                        return None;
                    }
                    known
                }
                _ => None,
            });
        }
        let entries = run.entries;
        // A class that is looked at and has rows, but no columns, is none of the simple ones.
        let mut all = classes.iter().zip(&plain);
        let is_known = |class: &u32| plain[*class as usize].is_some();
        let are_known = all.all(|(meaning, plain)| meaning.is_none() || plain.is_some());
        let is_bare = are_known && plain.iter().flatten().all(|plain| plain.columns.is_empty());
        let role = |plain: &Option<PlainClass<'_>>| plain.as_ref().map_or(SEEN, |plain| plain.role);
        (are_known || entries.classes.iter().all(is_known)).then_some(Self {
            recording: run.recording,
            stream: run.stream,
            times: entries.times,
            classes_of: entries.classes,
            roles: is_bare.then(|| plain.iter().map(role).collect()),
            classes: plain,
            track: None,
            next: 0,
        })
    }

    /// How many rows of each class were handed over.
    fn taken(self) -> impl Iterator<Item = Option<usize>> {
        let classes = self.classes.into_iter();
        classes.map(|plain| plain.map(|plain| plain.taken))
    }
}

/// Notes which rows of a run were handed over.
fn note_taken(classes: &mut [ClassRows], taken: impl Iterator<Item = Option<usize>>) {
    for (rows, taken) in classes.iter_mut().zip(taken) {
        rows.taken = taken.unwrap_or(rows.taken);
    }
}

impl<A: Analysis> Sequencer<'_, A> {
    /// Hands over the rows of a run. `false`, with nothing done, if more has to be known of them.
    pub(super) fn plain_rows(&mut self, run: &mut RowRun<'_>) -> bool {
        if run.entries.len() < LEAST_ROWS {
            return false;
        }
        let Some(mut plain) = self.plain_run(run) else {
            return false;
        };
        let entries = run.entries;
        self.events += entries.len() as u64;
        for (&time, &class) in entries.times.iter().zip(entries.classes) {
            self.plain_row(&mut plain, time, class);
        }
        note_taken(run.classes, plain.taken());
        true
    }

    /// Hands over the rows of several runs, in an order of positions among all of them. `false`, with nothing done, if more
    /// has to be known of them.
    pub(super) fn plain_mixed_rows(&mut self, runs: &mut [RowRun<'_>], order: &[u16]) -> bool {
        if order.len() < LEAST_ROWS * runs.len() {
            return false;
        }
        let plain: Option<Vec<_>> = runs.iter().map(|run| self.plain_run(run)).collect();
        let Some(mut plain) = plain else {
            return false;
        };
        let mut end = 0;
        let ends = runs.iter().map(|run| {
            end += run.entries.len();
            end
        });
        let ends: Vec<usize> = ends.collect();
        for &position in order {
            let position = usize::from(position);
            // There are few of them.
            let run = ends.iter().position(|&end| position < end);
            if let Some(run) = run {
                let plain = &mut plain[run];
                let (time, class) = (plain.times[plain.next], plain.classes_of[plain.next]);
                plain.next += 1;
                self.plain_row(plain, time, class);
            }
        }
        self.events += order.len() as u64;
        for (run, plain) in runs.iter_mut().zip(plain) {
            note_taken(run.classes, plain.taken());
        }
        true
    }

    /// The rows of a run, if nothing else has to be known of them.
    fn plain_run<'c>(&self, run: &RowRun<'c>) -> Option<PlainRun<'c>>
    where
        Self: 'c,
    {
        if self.running.is_some() || !self.analysis.takes_plain() {
            return None;
        }
        let classes = self.plan.classes(run.recording);
        PlainRun::new(classes, &self.extras[run.recording], run)
    }

    /// Hands over the next row, which is of this time and class.
    #[inline(always)]
    fn plain_row(&mut self, run: &mut PlainRun<'_>, time: i64, class: u32) {
        let class = class as usize;
        let (Some(roles), Some(track)) = (&run.roles, run.track) else {
            return self.row_of_columns(run, time, class);
        };
        if time == NO_TIME {
            self.untimed += 1;
            return;
        }
        self.analysis.plain(&PlainEvent {
            recording: run.recording,
            class,
            role: roles[class],
            time: cut(time, self.resolution),
            track,
            number: None,
            key: RowKey {
                values: Values::default(),
                fields: &[],
            },
        });
    }

    /// The same if the row has values, or the track of the stream has no number yet.
    #[inline(never)]
    fn row_of_columns(&mut self, run: &mut PlainRun<'_>, time: i64, class: usize) {
        let Some(plain) = &mut run.classes[class] else {
            return;
        };
        let row = plain.taken;
        plain.taken += 1;
        if time == NO_TIME {
            self.untimed += 1;
            return;
        }
        let values = Values::new(plain.columns, row);
        let (recording, stream) = (run.recording, run.stream);
        let known = match plain.tracks {
            Some(numbers) => self.tracks.small(recording, numbers.get(row)),
            None => run.track,
        };
        let track = known.unwrap_or_else(|| {
            let mut tracks = self.tracks.of_stream(recording, stream);
            tracks.number(plain.source, values)
        });
        if plain.tracks.is_none() {
            run.track = Some(track);
        }
        let fields = plain.key;
        self.analysis.plain(&PlainEvent {
            recording,
            class,
            role: plain.role,
            time: cut(time, self.resolution),
            track,
            number: plain.numbers.map(|numbers| numbers.get(row)),
            key: RowKey { values, fields },
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kymo_cpel::entries::Entry;
    use kymo_cpel::recording::Recording;
    use kymo_cpel::write::Builder;
    use proptest::prelude::*;

    use crate::AnyRecording;
    use crate::analysis::{
        Breakdown, EventPattern, GroupBy, Options, Profile, ProfileQuery, Sort, States,
        StatesQuery, TrackBy, Whole,
    };
    use crate::filter::FieldNames;
    use crate::pipeline::Everything;

    proptest! {
        #[test]
        fn plain_rows_count_as_all_others_do(
            steps in prop::collection::vec((0u64..50, 0u32..4, 0u32..4, 0u32..3), 40..300),
            far: bool,
            per: bool,
            running: bool,
            key: bool,
        ) {
            let mut log = Builder::new(Default::default());
            let mut time = 0;
            for (gap, track, code, datum) in steps {
                time += gap;
                // Tracks beyond those that are found in an array.
                let track = if far && track == 3 { 1 << 20 } else { track };
                log.push(Entry { time, track, code, datum }).unwrap();
            }
            let mut bytes = Vec::new();
            log.write(&mut bytes).unwrap();
            let log = Recording::new(Path::new("x"), bytes.into(), &Default::default()).unwrap();
            let recordings = [AnyRecording::Cpel(log)];
            let options = Options::default();
            let datum = || Some(FieldNames::parse("datum").unwrap());

            let query = StatesQuery {
                state: EventPattern::new("E1"),
                per: datum().filter(|_| per),
                tracks: TrackBy::Recording,
                filter: None,
                sort: Sort::Name,
            };
            // Without events of this name there is nothing to measure.
            let Ok(plain) = States::new(&recordings, &Everything, &query, &options) else {
                return Ok(());
            };
            let mut spans = 0;
            let (all, _) =
                States::with_spans(&recordings, &Everything, &query, &options, &mut |_| spans += 1)
                    .unwrap();
            prop_assert_eq!(spans, all.count());
            prop_assert_eq!(plain, all);

            let query = ProfileQuery {
                events: Some((EventPattern::new("E1"), EventPattern::new("E2"))),
                key: datum().filter(|_| key),
                tracks: TrackBy::Recording,
                running,
                call_graph: false,
            };
            let Ok(plain) = Profile::new(&recordings, &Everything, &query, &options) else {
                return Ok(());
            };
            let feed = &mut Whole { recordings: &recordings, select: &Everything };
            let by = &mut Breakdown::table(GroupBy::parse("name").unwrap());
            let all = Profile::of_feed(feed, &query, &options, by).unwrap();
            prop_assert_eq!(plain.keys, all.keys);
            prop_assert_eq!(plain.unmatched_enters, all.unmatched_enters);
            prop_assert_eq!(plain.unmatched_exits, all.unmatched_exits);
            prop_assert_eq!((plain.span, plain.coverage), (all.span, all.coverage));
        }
    }
}
