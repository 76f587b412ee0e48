//! What rows add to the bins of tracks: the same for counting and for building an index.

use kymo_index::{OpenAt, OpenSlice, Row, Slices};
use kymo_model::batch::RowId;
use kymo_model::{Recording, SliceRole, Track, Value};
use kymo_time::Timestamp;

use super::pass::TakeRows;
use super::tracks::{TrackEntry, TrackFinder};
use crate::AnyRecording;
use crate::pipeline::{NO_TIME, RowRun, Values};
use crate::tracks::{ClassTracks, Ended, OpenSlices, TrackPlan};

/// Maximum number of open slices and states of a recording; ends of others are counted as unpaired.
/// Tests meet the limit with fewer.
pub(super) const MOST_OPEN: usize = if cfg!(test) { 12 } else { 1 << 16 };

/// Minimum number of rows between two times for which open slices are kept.
const ROWS_BETWEEN: usize = if cfg!(test) { 16 } else { 1 << 16 };

/// Minimum number of rows for each open slice that is kept.
const ROWS_A_SLICE: usize = if cfg!(test) { 1 } else { 16 };

/// Gets what rows add.
pub(super) trait ContributionSink {
    /// A track is met for the first time; its number is one more than that of the one before.
    fn track(&mut self, track: &Track);

    /// A row of a track, at the recording's own time.
    fn row(&mut self, track: u32, row: Row);

    /// Takes rows of a track, at the recording's own times, of which only times and classes count. If it does not, it
    /// gets them one by one.
    fn rows(&mut self, _track: u32, _times: &[i64], _classes: &[u32]) -> bool {
        false
    }

    /// Some rows of a chunk come.
    fn run(&mut self, _stream: usize, _chunk: usize, _rows: usize) {}

    /// Whether to go on; asked from time to time.
    fn goes_on(&self) -> bool {
        true
    }
}

/// When the own time of a recording begins, on the time line: when the clock of its first stream shows zero.
/// Whatever the recording is shifted by, times from there on are the same.
pub(super) fn own_begin(recording: &AnyRecording) -> i64 {
    let mut begins = recording.streams().iter().filter_map(|stream| {
        let clock = stream.clock.as_ref()?;
        clock.timestamp(0).map(Timestamp::as_nanos)
    });
    begins.next().unwrap_or(0)
}

/// The own time of a row of a recording whose own time [begins](own_begin) at `own_begin`. It is never `NO_TIME`.
#[inline]
pub(super) fn own_time(time: i64, own_begin: i64) -> i64 {
    time.saturating_sub(own_begin).max(NO_TIME + 1)
}

/// Finds what a recording's rows add to which tracks, and what has begun on these.
pub(super) struct Contributions<'r> {
    recording: &'r AnyRecording,
    own_begin: i64,
    /// By class.
    roles: Vec<SliceRole>,
    finder: TrackFinder<'r>,
    /// How many of its tracks the sink knows.
    announced: usize,
    has_slices: bool,
    /// What has begun on tracks and not ended: when, and by which row.
    open: OpenSlices<(i64, RowId)>,
    /// What was open at some times; `None` where rows are not in order of time.
    pub(super) open_at: Option<Vec<OpenAt>>,
    /// The latest row so far, and the rows since the last of these times.
    latest: i64,
    rows_since: usize,
    /// Rows so far, those without a time too.
    pub(super) rows: u64,
    pub(super) untimed: u64,
    /// Whether a row has no time though its stream has a clock: shifted otherwise, it may have one.
    pub(super) may_be_timed: bool,
    /// What the row in hand is on its tracks.
    entries: Vec<TrackEntry>,
}

impl<'r> Contributions<'r> {
    pub(super) fn new(recording: &'r AnyRecording) -> Self {
        let classes = 0..recording.event_classes().len();
        let roles: Vec<_> = classes.map(|class| recording.roles(class).slice).collect();
        let is_alone = |role: &SliceRole| matches!(role, SliceRole::Instant | SliceRole::Whole(_));
        Self {
            recording,
            own_begin: own_begin(recording),
            has_slices: !roles.iter().all(is_alone),
            roles,
            finder: TrackFinder::new(recording),
            announced: 0,
            open: OpenSlices::new(MOST_OPEN, MOST_OPEN),
            open_at: Some(Vec::new()),
            latest: i64::MIN,
            rows_since: 0,
            rows: 0,
            untimed: 0,
            may_be_timed: false,
            entries: Vec::new(),
        }
    }

    fn untimed(&mut self, stream: usize) {
        self.untimed += 1;
        self.may_be_timed |= self.recording.streams()[stream].clock.is_some();
    }

    /// Whether rows begin or end slices: then what they add depends on those before them.
    pub(super) fn has_slices(&self) -> bool {
        self.has_slices
    }

    /// Whether each track has rows of one stream only.
    pub(super) fn is_by_stream(&self) -> bool {
        self.finder.is_by_stream()
    }

    /// Whether rows are instants on the tracks of their streams, and no more than there.
    pub(super) fn is_plain(&self) -> bool {
        self.finder.is_plain() && self.roles.iter().all(|role| *role == SliceRole::Instant)
    }

    /// Takes tracks as known, in the order of their numbers.
    pub(super) fn know<'t>(&mut self, tracks: impl Iterator<Item = &'t Track>) {
        self.finder.know(tracks);
        self.announced = self.finder.tracks().len();
    }

    /// Continues with these open slices of the known tracks; there are no other tracks.
    pub(super) fn go_on(&mut self, at: Option<&OpenAt>) {
        self.finder.knows_all();
        self.open_at = None;
        let Some(at) = at else {
            return;
        };
        let most = self.announced;
        let is_known = |track: u32| (track as usize) < most;
        for slice in at.slices.iter().filter(|slice| is_known(slice.track)) {
            self.open.begin(slice.track, (slice.began, slice.row));
        }
        for &(track, count) in at.dropped.iter().filter(|(track, _)| is_known(*track)) {
            self.open.add_dropped(track, count);
        }
    }

    /// The own time of a row.
    fn own(&self, time: i64) -> i64 {
        own_time(time, self.own_begin)
    }

    /// Announces tracks that were met to the sink.
    #[inline]
    fn announce(&mut self, sink: &mut impl ContributionSink) {
        let tracks = self.finder.tracks();
        if self.announced < tracks.len() {
            tracks[self.announced..]
                .iter()
                .for_each(|track| sink.track(track));
            self.announced = tracks.len();
        }
    }

    /// What a row does to the slices of its track.
    fn slices(&mut self, role: SliceRole, track: u32, time: i64, id: RowId) -> Option<Slices> {
        match self.open.step(role, track, || (time, id))? {
            Ended::Slice((began, row)) => {
                let duration = u64::try_from(i128::from(time) - i128::from(began));
                Some(Slices::ended(duration.unwrap_or(0), row))
            }
            Ended::Dropped => Some(Slices::unpaired()),
            Ended::Nothing => (role == SliceRole::End).then(Slices::unpaired),
        }
    }

    /// Keeps what is open before a row, if that is due.
    fn note_open(&mut self, time: i64) {
        let Some(open_at) = &mut self.open_at else {
            return;
        };
        if time < self.latest {
            self.open_at = None;
            return;
        }
        let least = (ROWS_A_SLICE * self.open.len()).max(ROWS_BETWEEN);
        if time > self.latest && self.rows_since >= least.max(self.open.iter().len()) {
            self.rows_since = 0;
            let mut at = OpenAt {
                time,
                slices: Vec::new(),
                dropped: Vec::new(),
            };
            for (track, open, dropped) in self.open.iter() {
                let slices = open.iter();
                at.slices
                    .extend(slices.map(|&(began, row)| OpenSlice { track, began, row }));
                if dropped > 0 {
                    at.dropped.push((track, dropped));
                }
            }
            open_at.push(at);
        }
        self.rows_since += 1;
        self.latest = time;
    }

    /// Hands on what rows of a stream add of which only time, which is the recording's own, and class count.
    pub(super) fn plain_rows(
        &mut self,
        stream: usize,
        (times, classes): (&[i64], &[u32]),
        sink: &mut impl ContributionSink,
    ) {
        let Some(&first) = times.first() else {
            return;
        };
        self.rows += times.len() as u64;
        let track = self.finder.stream(stream);
        self.announce(sink);
        // If they are in order, those without a time come first.
        if first != NO_TIME && sink.rows(track, times, classes) {
            return;
        }
        for (&time, &class) in times.iter().zip(classes) {
            match time {
                NO_TIME => self.untimed(stream),
                time => sink.row(track, Row::new(time, class as usize)),
            }
        }
    }

    fn row(
        &mut self,
        class: usize,
        class_tracks: &ClassTracks,
        time: i64,
        id: RowId,
        values: Values<'_>,
        sink: &mut impl ContributionSink,
    ) {
        if self.has_slices {
            self.note_open(time);
        }
        let mut entries = std::mem::take(&mut self.entries);
        self.finder.find(
            id.stream as usize,
            class,
            class_tracks,
            values,
            &mut entries,
        );
        self.announce(sink);
        for entry in entries.drain(..) {
            let row = Row::new(time, class);
            match entry {
                TrackEntry::Value(track, value) => sink.row(track, row.with_value(value)),
                TrackEntry::Row(track) => {
                    let slices = match class_tracks.duration {
                        Some(duration) => {
                            Some(Slices::ended(duration_of(values.get(duration)), id))
                        }
                        None => self.slices(self.roles[class], track, time, id),
                    };
                    sink.row(track, row.with_slices(slices));
                }
            }
        }
        self.entries = entries;
    }
}

/// The duration of a slice, in nanoseconds.
pub(super) fn duration_of(value: Value<'_>) -> u64 {
    match value {
        Value::Uint(duration) => duration,
        Value::Sint(duration) => u64::try_from(duration).unwrap_or(0),
        _ => 0,
    }
}

/// Hands on what rows add.
impl<S: ContributionSink> TakeRows for (&mut Contributions<'_>, &mut S) {
    fn is_by_stream(&self) -> bool {
        // Nothing depends on the order of rows of several streams.
        self.0.is_by_stream()
    }

    fn rows(&mut self, run: RowRun<'_>, plan: &TrackPlan) -> bool {
        let (contributions, sink) = self;
        sink.run(run.stream, run.chunk, run.entries.len());
        contributions.rows += run.entries.len() as u64;
        for (row, id) in run.with_ids() {
            let class = row.message.class;
            let (Some(time), Some(class_tracks)) = (row.message.time, &plan.classes(0)[class])
            else {
                contributions.untimed(row.message.stream);
                continue;
            };
            let time = contributions.own(time.as_nanos());
            contributions.row(class, class_tracks, time, id, row.values, *sink);
        }
        sink.goes_on()
    }
}
