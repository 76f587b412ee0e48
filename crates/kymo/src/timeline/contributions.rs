//! What rows add to the bins of tracks: the same for counting and for building an index.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kymo_index::{OpenAt, OpenSlice, Row, Slices};
use kymo_model::batch::{Column, ColumnData, RowId};
use kymo_model::{
    EntryKind, Recording, Roles, SliceRole, Track, TrackPart, TrackPath, TrackRule, Value,
};
use kymo_time::Timestamp;

use crate::AnyRecording;
use crate::pipeline::{NO_TIME, RowRun, Values};
use crate::tracks::{
    ClassTracks, Ended, Key, OTHERS, OpenSlices, TrackKey, TrackPlan, TrackSource, TrackTable,
    number_of, text_of,
};

/// A recording has so many tracks at most; the rest share one called `other`.
const MOST_TRACKS: usize = 1 << 20;

/// So many slices and states of a recording are open at once at most; what ends others is counted as unpaired.
/// Tests meet the limit with fewer.
const MOST_OPEN: usize = if cfg!(test) { 12 } else { 1 << 16 };

/// So many rows at least are between two times for which open slices are kept.
const ROWS_BETWEEN: usize = if cfg!(test) { 16 } else { 1 << 16 };

/// A slice that is open is kept no more often than once in so many rows.
const ROWS_A_SLICE: usize = if cfg!(test) { 1 } else { 16 };

/// Gets what rows add.
pub(super) trait ContributionSink {
    /// A track is met for the first time; its number is one more than that of the one before.
    fn track(&mut self, track: &Track);

    /// A row of a track, at the recording's own time.
    fn row(&mut self, track: u32, row: Row);

    /// Some rows of a chunk come.
    fn run(&mut self, _stream: usize, _chunk: usize, _rows: usize) {}

    /// Whether to go on; asked from time to time.
    fn goes_on(&self) -> bool {
        true
    }
}

/// When the own time of a recording begins, on the time line: when the clock of its first stream shows zero.
/// Whatever the recording is shifted by, times from there on are the same.
pub(super) fn own_begin(of: &AnyRecording) -> i64 {
    let mut begins = of.streams().iter().filter_map(|stream| {
        let clock = stream.clock.as_ref()?;
        clock.timestamp(0).map(Timestamp::as_nanos)
    });
    begins.next().unwrap_or(0)
}

/// A row's value of a series: of a structure, as variants are, the member that is there.
fn number_in(column: &Column, row: usize) -> Option<f64> {
    match &column.data {
        ColumnData::Struct { members, .. } => {
            members.iter().find_map(|member| number_in(member, row))
        }
        _ => number_of(column.value(row)),
    }
}

/// What the rows of a class are.
struct Meaning {
    rule: TrackRule,
    slice: SliceRole,
    /// The names of the series beside the track.
    counters: Vec<String>,
}

impl Meaning {
    fn new(of: &AnyRecording, class: usize) -> Self {
        let schema = &of.event_classes()[class].schema;
        let Roles {
            slice, counters, ..
        } = of.roles(class);
        Self {
            rule: of.track_rule(class),
            slice,
            counters: counters.iter().map(|&field| schema.path(field)).collect(),
        }
    }
}

/// Finds the tracks of a recording's rows, and what has begun on them.
pub(super) struct Contributions<'r> {
    of: &'r AnyRecording,
    own_begin: i64,
    meanings: Vec<Meaning>,
    table: TrackTable,
    /// By number in the table, and by position in the recording, the number of a track.
    numbers: Vec<Option<u32>>,
    positions: Vec<Option<u32>>,
    by_path: HashMap<TrackPath, u32, RandomState>,
    tracks: Vec<Track>,
    most_tracks: usize,
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
}

impl<'r> Contributions<'r> {
    pub(super) fn new(of: &'r AnyRecording) -> Self {
        let classes = 0..of.event_classes().len();
        let meanings: Vec<_> = classes.map(|class| Meaning::new(of, class)).collect();
        let is_alone = |role| matches!(role, SliceRole::Instant | SliceRole::Whole(_));
        Self {
            of,
            own_begin: own_begin(of),
            has_slices: meanings.iter().any(|meaning| !is_alone(meaning.slice)),
            meanings,
            table: TrackTable::new(std::slice::from_ref(of)),
            numbers: Vec::new(),
            positions: vec![None; of.tracks().len()],
            by_path: HashMap::default(),
            tracks: Vec::new(),
            most_tracks: MOST_TRACKS,
            open: OpenSlices::new(MOST_OPEN, MOST_OPEN),
            open_at: Some(Vec::new()),
            latest: i64::MIN,
            rows_since: 0,
            rows: 0,
            untimed: 0,
            may_be_timed: false,
        }
    }

    fn untimed(&mut self, stream: usize) {
        self.untimed += 1;
        self.may_be_timed |= self.of.streams()[stream].clock.is_some();
    }

    /// Whether rows begin or end slices: then what they add depends on those before them.
    pub(super) fn has_slices(&self) -> bool {
        self.has_slices
    }

    /// Whether each track has rows of one stream only.
    pub(super) fn is_by_stream(&self) -> bool {
        let is_stream = |meaning: &Meaning| meaning.rule == TrackRule::Stream;
        self.of.streams().len() == 1 || self.meanings.iter().all(is_stream)
    }

    /// Whether rows are on the tracks of their streams, and no more than there.
    pub(super) fn is_plain(&self) -> bool {
        self.meanings.iter().all(|of| {
            let is_instant = of.slice == SliceRole::Instant;
            of.rule == TrackRule::Stream && of.counters.is_empty() && is_instant
        })
    }

    /// Takes tracks as known, in the order of their numbers.
    pub(super) fn know<'t>(&mut self, tracks: impl Iterator<Item = &'t Track>) {
        for track in tracks {
            self.by_path
                .insert(track.path.clone(), self.tracks.len() as u32);
            self.tracks.push(track.clone());
        }
    }

    /// Goes on where these slices of the tracks that are known are open; there are no other tracks.
    pub(super) fn go_on(&mut self, at: Option<&OpenAt>) {
        self.most_tracks = self.tracks.len();
        self.open_at = None;
        let Some(at) = at else {
            return;
        };
        let is_known = |track: u32| (track as usize) < self.most_tracks;
        for slice in at.slices.iter().filter(|slice| is_known(slice.track)) {
            self.open.begin(slice.track, (slice.began, slice.row));
        }
        for &(track, count) in at.dropped.iter().filter(|(track, _)| is_known(*track)) {
            self.open.add_dropped(track, count);
        }
    }

    /// The own time of a row.
    fn own(&self, time: i64) -> i64 {
        time.saturating_sub(self.own_begin)
    }

    /// The number of a track; it gets one if it is met for the first time.
    fn add(&mut self, mut track: Track, sink: &mut impl ContributionSink) -> u32 {
        let is_full = self.tracks.len() >= self.most_tracks;
        if is_full && !self.by_path.contains_key(&track.path) {
            track = other(track.kind);
        }
        if let Some(&number) = self.by_path.get(&track.path) {
            return number;
        }
        let number = self.tracks.len() as u32;
        sink.track(&track);
        self.by_path.insert(track.path.clone(), number);
        self.tracks.push(track);
        number
    }

    /// The number of the track with a number in the table.
    fn find(
        &mut self,
        key: u32,
        kind: EntryKind,
        sink: &mut impl ContributionSink,
        make: impl FnOnce(&Self) -> Track,
    ) -> u32 {
        if let Some(&Some(number)) = self.numbers.get(key as usize) {
            return number;
        }
        if key == OTHERS {
            return self.add(other(kind), sink);
        }
        let track = make(self);
        let number = self.add(track, sink);
        let least = self.numbers.len().max(key as usize + 1);
        self.numbers.resize(least, None);
        self.numbers[key as usize] = Some(number);
        number
    }

    /// The number of a track that the recording knows from its metadata.
    fn at(&mut self, position: usize, sink: &mut impl ContributionSink) -> Option<u32> {
        let known = *self.positions.get(position)?;
        let number = known.unwrap_or_else(|| self.add(self.of.tracks()[position].clone(), sink));
        self.positions[position] = Some(number);
        Some(number)
    }

    /// The track of a row that is not a series.
    fn track(
        &mut self,
        stream: usize,
        source: &TrackSource,
        values: Values<'_>,
        sink: &mut impl ContributionSink,
    ) -> u32 {
        let of = self.of;
        let kind = of.entry_kind(stream);
        let mut table = self.table.of_stream(0, stream);
        let (TrackSource::Own(fields) | TrackSource::Fields(fields)) = source else {
            let key = table.number(source, values);
            return self.find(key, kind, sink, |_| stream_track(of, stream));
        };
        let key = table.within(&fields[..1], values);
        self.find(key, kind, sink, |this| {
            let part = match this.table.key(key) {
                Some(TrackKey::Own(_, Key::Uint(number))) => TrackPart::Number(*number),
                Some(TrackKey::Own(_, Key::Missing)) | None => TrackPart::Name("".into()),
                Some(TrackKey::Own(_, key)) => TrackPart::Name(key.text().into()),
                Some(_) => return other(kind),
            };
            let title = fields.get(1).map(|name| text_of(values.first(name)));
            let title = title.filter(|title| !title.is_empty());
            let title = title.unwrap_or_else(|| part.to_string());
            Track::new(TrackPath::new([part]), title, kind)
        })
    }

    /// What a row does to the slices of its track.
    fn slices(&mut self, role: SliceRole, track: u32, time: i64, id: RowId) -> Option<Slices> {
        let ended = match role {
            SliceRole::Begin => None,
            SliceRole::State | SliceRole::End => Some(self.open.end(track)),
            _ => return None,
        };
        if role != SliceRole::End {
            self.open.begin(track, (time, id));
        }
        match ended? {
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

    /// Hands on what rows of a stream add of which only time and class count.
    pub(super) fn plain_rows(
        &mut self,
        stream: usize,
        rows: impl ExactSizeIterator<Item = (i64, u32)>,
        sink: &mut impl ContributionSink,
    ) {
        if rows.len() == 0 {
            return;
        }
        self.rows += rows.len() as u64;
        let track = self.track(stream, &TrackSource::Stream, Values::default(), sink);
        for (time, class) in rows {
            match time {
                NO_TIME => self.untimed(stream),
                time => sink.row(track, Row::new(self.own(time), class as usize)),
            }
        }
    }

    /// Hands on what rows add.
    pub(super) fn rows(
        &mut self,
        run: RowRun<'_>,
        plan: &TrackPlan,
        sink: &mut impl ContributionSink,
    ) {
        self.rows += run.entries.len() as u64;
        let (stream, chunk) = (run.stream as u32, run.chunk as u64);
        let numbers = run.buffers.numbers[run.first..].iter();
        for (row, &number) in run.zip(numbers) {
            let class = row.message.class;
            let (Some(time), Some(meaning)) = (row.message.time, &plan.classes(0)[class]) else {
                self.untimed(stream as usize);
                continue;
            };
            let id = RowId {
                recording: 0,
                stream,
                chunk,
                number,
            };
            let time = self.own(time.as_nanos());
            self.row(class, meaning, time, id, row.values, sink);
        }
    }

    fn row(
        &mut self,
        class: usize,
        of: &ClassTracks,
        time: i64,
        id: RowId,
        values: Values<'_>,
        sink: &mut impl ContributionSink,
    ) {
        if self.has_slices {
            self.note_open(time);
        }
        let plain = Row::new(time, class);
        let with = |value: Option<f64>| plain.clone().with_value(value);
        let (columns, row) = values.columns();
        let series = of.series.clone();
        if let TrackRule::Series { first, .. } = self.meanings[class].rule {
            for (position, column) in (first..).zip(&columns[series]) {
                if let Some(track) = self.at(position, sink) {
                    sink.row(track, with(number_in(column, row)));
                }
            }
            return;
        }
        let position = match (&self.meanings[class].rule, &of.track) {
            (TrackRule::Position(_), TrackSource::Own(fields)) => Some(values.first(&fields[0])),
            _ => None,
        };
        let kind = self.of.entry_kind(id.stream as usize);
        let track = match position {
            Some(Value::Uint(position)) => {
                let known = usize::try_from(position).ok();
                let known = known.and_then(|position| self.at(position, sink));
                known.unwrap_or_else(|| self.add(other(kind), sink))
            }
            Some(_) => self.add(other(kind), sink),
            None => self.track(id.stream as usize, &of.track, values, sink),
        };
        let has_counters = !series.is_empty();
        for (counter, column) in columns[series].iter().enumerate() {
            let (items, range) = match &column.data {
                ColumnData::List { offsets, items } => {
                    (&**items, offsets[row] as usize..offsets[row + 1] as usize)
                }
                _ => (column, row..row + 1),
            };
            let several = range.len() > 1;
            for (element, item) in range.enumerate() {
                let element = several.then_some(element as u32);
                let series = self.series(track, class, counter, element, sink);
                sink.row(series, with(number_in(items, item)));
            }
        }
        if self.tracks[track as usize].kind == EntryKind::Event || !has_counters {
            let slices = match (self.meanings[class].slice, of.duration) {
                (SliceRole::Whole(_), Some(duration)) => {
                    let duration = match values.get(duration) {
                        Value::Uint(duration) => duration,
                        Value::Sint(duration) => u64::try_from(duration).unwrap_or(0),
                        _ => 0,
                    };
                    Some(Slices::ended(duration, id))
                }
                (role, _) => self.slices(role, track, time, id),
            };
            sink.row(track, plain.with_slices(slices));
        }
    }

    /// The track of a series beside another track.
    fn series(
        &mut self,
        track: u32,
        class: usize,
        counter: usize,
        element: Option<u32>,
        sink: &mut impl ContributionSink,
    ) -> u32 {
        let key = (self.table).series(track, class as u32, counter as u32, element);
        self.find(key, EntryKind::Sample, sink, |this| {
            let name = &this.meanings[class].counters[counter];
            let name = match element {
                Some(element) => format!("{name}[{element}]"),
                None => name.clone(),
            };
            let track = &this.tracks[track as usize];
            let parts = track.path.parts().iter().cloned();
            let source = TrackPart::Source(name.as_str().into());
            let path = TrackPath::new(parts.chain([source]));
            Track::new(path, format!("{} {name}", track.name), EntryKind::Sample)
        })
    }
}

/// The track of rows whose own is not known, or one too many.
fn other(kind: EntryKind) -> Track {
    let path = TrackPath::new([TrackPart::Name("other".into())]);
    Track::new(path, "other", kind)
}

/// The track of a stream.
pub(super) fn stream_track(of: &AnyRecording, stream: usize) -> Track {
    let info = &of.streams()[stream];
    let part = TrackPart::Stream {
        class: info.class,
        id: info.id.unwrap_or(stream as u64),
    };
    let path = TrackPath::new([part]);
    Track::new(path, Arc::clone(&info.name), of.entry_kind(stream))
}
