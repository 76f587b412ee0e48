//! What rows add to the bins of tracks: the same for counting and for building an index.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use foldhash::fast::RandomState;
use kymo_index::{Row, Slices};
use kymo_model::batch::{Column, ColumnData, RowId};
use kymo_model::{
    Cursor, EntryKind, Event, FaultReport, FieldId, Recording, SliceRole, Track, TrackPart,
    TrackPath, TrackRule, Value, Walk,
};
use kymo_time::Timestamp;

use super::RowPlan;
use super::rows::RowRenderer;
use crate::AnyRecording;
use crate::pipeline::{self, NO_TIME, Output, RowRun, Select};
use crate::show::Sink;
use crate::tracks::{number_of, text_of};
use kymo_io::in_threads;
use kymo_text::Line;

type Map<K, V> = HashMap<K, V, RandomState>;

/// A recording has so many tracks at most; the rest share one called `other`.
const MOST_TRACKS: usize = 1 << 20;

/// So many slices and states of a recording are open at once at most; what ends others is counted as unpaired.
const MOST_OPEN: usize = 1 << 16;

/// The size of a chunk that is decoded as a whole.
const MOST_PLAIN: u64 = 4 << 20;

/// Gets what rows add.
pub(super) trait ContributionSink {
    /// A track is met for the first time; its number is one more than that of the one before.
    fn track(&mut self, track: &Track);

    /// A row of a track.
    fn row(&mut self, track: u32, row: Row);

    /// Some rows of a chunk come.
    fn run(&mut self, _stream: usize, _chunk: usize, _rows: usize) {}

    /// Whether to go on; asked from time to time.
    fn goes_on(&self) -> bool {
        true
    }
}

/// The fields that make the tracks, series and slices of a class.
pub(super) fn fields_of(of: &AnyRecording, class: usize) -> Vec<FieldId> {
    let mut fields = match of.track_rule(class) {
        TrackRule::Field { key, name } => [key].into_iter().chain(name).collect(),
        TrackRule::Position(field) => vec![field],
        TrackRule::Series { values, .. } => {
            // The optional, or the value itself.
            let schema = &of.event_classes()[class].schema;
            let outer = |&field: &FieldId| match schema.field(field).parent {
                Some(parent) if schema.field(parent).name.is_some() => parent,
                _ => field,
            };
            values.iter().map(outer).collect()
        }
        _ => Vec::new(),
    };
    let roles = of.roles(class);
    fields.extend(roles.counters);
    if let SliceRole::Whole(duration) = roles.slice {
        fields.push(duration);
    }
    fields
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
    /// The series beside the track, by the names of their fields.
    counters: Vec<String>,
    /// The column of the first one.
    first_counter: usize,
}

impl Meaning {
    fn new(of: &AnyRecording, class: usize) -> Self {
        let schema = &of.event_classes()[class].schema;
        let roles = of.roles(class);
        let rule = of.track_rule(class);
        let whole = usize::from(matches!(roles.slice, SliceRole::Whole(_)));
        let fields = fields_of(of, class).len();
        Self {
            rule,
            slice: roles.slice,
            first_counter: fields - whole - roles.counters.len(),
            counters: roles
                .counters
                .iter()
                .map(|&field| schema.path(field))
                .collect(),
        }
    }
}

/// What tells the track of a row, in a form that is quickly compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TrackKey {
    Stream(usize),
    Position(usize),
    Number(u64),
    Name(Arc<str>),
    Other,
    /// A series of a track: class, counter, element.
    Series(u32, u32, u32, Option<u32>),
}

/// Finds the tracks of a recording's rows, and what has begun on them.
pub(super) struct Contributions<'r> {
    of: &'r AnyRecording,
    meanings: Vec<Meaning>,
    by_key: Map<TrackKey, u32>,
    by_path: Map<TrackPath, u32>,
    /// The tracks of streams, which are asked for most.
    streams: Vec<Option<u32>>,
    tracks: Vec<Track>,
    /// What has begun on tracks and not ended: when, and by which row.
    open: Map<u32, Vec<(i64, RowId)>>,
    open_count: usize,
    most_tracks: usize,
    /// Whether rows are on the tracks of their streams, and no more than there.
    is_plain: bool,
    /// Rows so far, those without a time too.
    pub(super) rows: u64,
    pub(super) untimed: u64,
}

impl<'r> Contributions<'r> {
    pub(super) fn new(of: &'r AnyRecording) -> Self {
        let classes = 0..of.event_classes().len();
        let meanings: Vec<_> = classes.map(|class| Meaning::new(of, class)).collect();
        let is_plain = |of: &Meaning| {
            let is_instant = of.slice == SliceRole::Instant;
            of.rule == TrackRule::Stream && of.counters.is_empty() && is_instant
        };
        Self {
            of,
            is_plain: meanings.iter().all(is_plain),
            meanings,
            by_key: Map::default(),
            by_path: Map::default(),
            streams: vec![None; of.streams().len()],
            tracks: Vec::new(),
            open: Map::default(),
            open_count: 0,
            most_tracks: MOST_TRACKS,
            rows: 0,
            untimed: 0,
        }
    }

    /// Whether rows begin or end slices: then what they add depends on those before them.
    pub(super) fn has_slices(&self) -> bool {
        let is_whole = |role| matches!(role, SliceRole::Instant | SliceRole::Whole(_));
        self.meanings.iter().any(|meaning| !is_whole(meaning.slice))
    }

    /// Whether each track has rows of one stream only.
    pub(super) fn is_by_stream(&self) -> bool {
        let is_stream = |meaning: &Meaning| meaning.rule == TrackRule::Stream;
        self.of.streams().len() == 1 || self.meanings.iter().all(is_stream)
    }

    /// Whether rows are on the tracks of their streams, and no more than there.
    pub(super) fn is_plain(&self) -> bool {
        // A chunk is decoded as a whole then.
        let fits = |chunk: kymo_model::Chunk| chunk.bytes <= MOST_PLAIN;
        let of = self.of;
        self.is_plain && (0..of.streams().len()).all(|stream| of.chunks(stream).all(fits))
    }

    /// Takes tracks as known, in the order of their numbers.
    pub(super) fn know<'t>(&mut self, tracks: impl Iterator<Item = &'t Track>) {
        for track in tracks {
            self.by_path
                .insert(track.path.clone(), self.tracks.len() as u32);
            self.tracks.push(track.clone());
        }
    }

    /// The number of a track that is found by a key; it is made when it is met for the first time.
    fn find(
        &mut self,
        key: TrackKey,
        sink: &mut impl ContributionSink,
        make: impl FnOnce(&[Track]) -> Track,
    ) -> u32 {
        if let Some(&number) = self.by_key.get(&key) {
            return number;
        }
        let mut track = make(&self.tracks);
        let is_full = self.tracks.len() >= self.most_tracks;
        if is_full && !self.by_path.contains_key(&track.path) {
            track = other(track.kind);
        }
        let number = match self.by_path.get(&track.path) {
            Some(&number) => number,
            None => {
                let number = self.tracks.len() as u32;
                sink.track(&track);
                self.by_path.insert(track.path.clone(), number);
                self.tracks.push(track);
                number
            }
        };
        // The table of keys has the same bound.
        if self.by_key.len() < 2 * self.most_tracks {
            self.by_key.insert(key, number);
        }
        number
    }

    /// The track of a row that is no series.
    fn track(
        &mut self,
        class: usize,
        stream: usize,
        columns: &[Column],
        row: usize,
        sink: &mut impl ContributionSink,
    ) -> u32 {
        let of = self.of;
        let kind = of.entry_kind(stream);
        match &self.meanings[class].rule {
            TrackRule::Position(_) => {
                let position = match columns[0].value(row) {
                    Value::Uint(position) => usize::try_from(position).ok(),
                    _ => None,
                };
                let known = position.filter(|&position| position < of.tracks().len());
                match known {
                    Some(at) => {
                        self.find(TrackKey::Position(at), sink, |_| of.tracks()[at].clone())
                    }
                    None => self.find(TrackKey::Other, sink, |_| other(kind)),
                }
            }
            TrackRule::Field { name, .. } => {
                let value = columns[0].value(row);
                let (key, part) = match value {
                    Value::Uint(number) => (TrackKey::Number(number), TrackPart::Number(number)),
                    value => {
                        let text: Arc<str> = text_of(value).into();
                        (TrackKey::Name(Arc::clone(&text)), TrackPart::Name(text))
                    }
                };
                let has_name = name.is_some();
                self.find(key, sink, |_| {
                    let title = has_name.then(|| text_of(columns[1].value(row)).into());
                    let title = title.filter(|title: &Arc<str>| !title.is_empty());
                    let title = title.unwrap_or_else(|| part.to_string().into());
                    Track::new(TrackPath::new([part]), title, kind)
                })
            }
            _ => {
                if let Some(number) = self.streams[stream] {
                    return number;
                }
                let number = self.find(TrackKey::Stream(stream), sink, |_| {
                    let info = &of.streams()[stream];
                    let part = stream_part(of, stream);
                    Track::new(TrackPath::new([part]), Arc::clone(&info.name), kind)
                });
                self.streams[stream] = Some(number);
                number
            }
        }
    }

    /// What a row does to the slices of its track.
    fn slices(&mut self, role: SliceRole, track: u32, time: i64, id: RowId) -> Option<Slices> {
        let open = match role {
            SliceRole::Begin | SliceRole::State => self.open.entry(track).or_default(),
            SliceRole::End => match self.open.get_mut(&track) {
                Some(open) => open,
                None => return Some(Slices::unpaired()),
            },
            _ => return None,
        };
        let ended = match role {
            SliceRole::Begin => None,
            _ => open.pop(),
        };
        self.open_count -= usize::from(ended.is_some());
        if role != SliceRole::End && self.open_count < MOST_OPEN {
            open.push((time, id));
            self.open_count += 1;
        }
        match ended {
            Some((began, row)) => {
                let duration = if time > began {
                    time.abs_diff(began)
                } else {
                    0
                };
                Some(Slices::ended(duration, row))
            }
            None => (role == SliceRole::End).then(Slices::unpaired),
        }
    }

    /// Hands on what rows add of which only time and class count.
    fn plain_rows(
        &mut self,
        stream: usize,
        rows: impl ExactSizeIterator<Item = (i64, u32)>,
        sink: &mut impl ContributionSink,
    ) {
        if rows.len() == 0 {
            return;
        }
        self.rows += rows.len() as u64;
        let track = self.track(0, stream, &[], 0, sink);
        for (time, class) in rows {
            match time {
                NO_TIME => self.untimed += 1,
                time => sink.row(track, Row::new(time, class as usize)),
            }
        }
    }

    /// Hands on what rows add.
    pub(super) fn rows(&mut self, run: RowRun<'_>, sink: &mut impl ContributionSink) {
        if self.is_plain {
            let rows = run.entries.iter();
            let rows = rows.map(|entry| (entry.time, entry.class));
            return self.plain_rows(run.stream, rows, sink);
        }
        self.rows += run.entries.len() as u64;
        for (position, entry) in run.entries.iter().enumerate() {
            let class = entry.class as usize;
            if entry.time == NO_TIME {
                self.untimed += 1;
            } else {
                let columns = run.columns(class);
                let id = RowId {
                    recording: 0,
                    stream: run.stream as u32,
                    chunk: run.chunk as u64,
                    number: run.buffers.numbers[run.first + position],
                };
                self.row(
                    class,
                    entry.time,
                    id,
                    columns,
                    run.classes[class].taken,
                    sink,
                );
            }
            run.classes[class].taken += 1;
        }
    }

    fn row(
        &mut self,
        class: usize,
        time: i64,
        id: RowId,
        columns: &[Column],
        row: usize,
        sink: &mut impl ContributionSink,
    ) {
        let of = self.of;
        let plain = Row::new(time, class);
        let with = |value: Option<f64>| plain.clone().with_value(value);
        if let TrackRule::Series { first, values } = &self.meanings[class].rule {
            let (first, count) = (*first, values.len());
            for (series, column) in columns.iter().take(count).enumerate() {
                let at = first + series;
                if let Some(track) = of.tracks().get(at) {
                    let number = self.find(TrackKey::Position(at), sink, |_| track.clone());
                    sink.row(number, with(number_in(column, row)));
                }
            }
            return;
        }
        let track = self.track(class, id.stream as usize, columns, row, sink);
        let first = self.meanings[class].first_counter;
        let counters = self.meanings[class].counters.len();
        for counter in 0..counters {
            let column = &columns[first + counter];
            let (items, range) = match &column.data {
                ColumnData::List { offsets, items } => {
                    (&**items, offsets[row] as usize..offsets[row + 1] as usize)
                }
                _ => (column, row..row + 1),
            };
            let several = range.len() > 1;
            for (element, item) in range.enumerate() {
                let element = several.then_some(element as u32);
                let key = TrackKey::Series(track, class as u32, counter as u32, element);
                let name = &self.meanings[class].counters[counter];
                let name = match element {
                    Some(element) => format!("{name}[{element}]"),
                    None => name.clone(),
                };
                let series = self.find(key, sink, |tracks| {
                    let track = &tracks[track as usize];
                    let parts = track.path.parts().iter().cloned();
                    let source = TrackPart::Source(name.as_str().into());
                    let path = TrackPath::new(parts.chain([source]));
                    Track::new(path, format!("{} {name}", track.name), EntryKind::Sample)
                });
                sink.row(series, with(number_in(items, item)));
            }
        }
        if self.tracks[track as usize].kind == EntryKind::Event || counters == 0 {
            let slices = match self.meanings[class].slice {
                SliceRole::Whole(_) => {
                    let duration = match columns[first + counters].value(row) {
                        Value::Uint(duration) => duration,
                        Value::Sint(duration) => u64::try_from(duration).unwrap_or(0),
                        _ => 0,
                    };
                    Some(Slices::ended(duration, id))
                }
                role => self.slices(role, track, time, id),
            };
            sink.row(track, plain.with_slices(slices));
        }
    }
}

/// The track of rows whose own is not known, or one too many.
fn other(kind: EntryKind) -> Track {
    let path = TrackPath::new([TrackPart::Name("other".into())]);
    Track::new(path, "other", kind)
}

/// What identifies the track of a stream.
pub(super) fn stream_part(of: &AnyRecording, stream: usize) -> TrackPart {
    let info = &of.streams()[stream];
    TrackPart::Stream {
        class: info.class,
        id: info.id.unwrap_or(stream as u64),
    }
}

/// Goes through rows of a recording in the order of the merge, and hands on what they add.
pub(super) fn run<S: Select>(
    of: &AnyRecording,
    contributions: &mut Contributions<'_>,
    select: &S,
    sink: &mut impl ContributionSink,
) {
    let of = std::slice::from_ref(of);
    let plan = RowPlan::of_fields(of, fields_of);
    let mut gather = Gather {
        plan: &plan,
        contributions,
        sink,
    };
    // Its output takes everything.
    let _ = pipeline::run(
        of,
        select,
        &pipeline::Options::default(),
        &mut gather,
        &mut Nothing,
    );
}

/// The same for all rows from some chunk of each stream on, one stream after the other, of a recording whose
/// rows are [plain](Contributions::is_plain): so little is asked of each that the pipeline would take most of the time.
pub(super) fn run_plain(
    of: &AnyRecording,
    contributions: &mut Contributions<'_>,
    first_chunks: &[usize],
    sink: &mut (impl ContributionSink + Send),
) {
    let threads = pipeline::Options::default().threads;
    // Of each stream, the number of chunks before it, and its first chunk.
    let mut streams = Vec::new();
    let mut count = 0;
    for stream in 0..of.streams().len() {
        let all = of.chunk_count(stream);
        let first = first_chunks.get(stream).map_or(0, |&first| first.min(all));
        streams.push((count, first));
        count += all - first;
    }
    let state = Mutex::new(InOrder {
        contributions,
        sink,
        next: 0,
        waiting: BTreeMap::new(),
        spare: Vec::new(),
    });
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    in_threads(
        count,
        threads,
        || (),
        |(), number| {
            let stream = streams.partition_point(|&(before, _)| before <= number) - 1;
            let (before, first) = streams[stream];
            let place = (stream, first + number - before);
            let mut rows = lock().spare.pop().unwrap_or_default();
            if let Some(chunk) = of.chunk(place.0, place.1) {
                rows = of.walk(&chunk, PlainChunk(rows));
            }
            let mut state = lock();
            // Who works on the next one never waits.
            while number > state.next + 4 * threads {
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.add(number, place, rows);
            changed.notify_all();
            state.sink.goes_on()
        },
    );
}

/// When rows were, and their classes.
type PlainRows = Vec<(i64, u32)>;

struct PlainChunk(PlainRows);

impl Walk for PlainChunk {
    type Output = PlainRows;

    fn walk<C: Cursor>(self, mut cursor: C) -> PlainRows {
        let Self(mut rows) = self;
        while let Ok(Some(event)) = cursor.next_event() {
            let time = event.timestamp().map_or(NO_TIME, Timestamp::as_nanos);
            rows.push((time, event.class_index() as u32));
        }
        rows
    }
}

/// Takes the rows of chunks in the order of the chunks.
struct InOrder<'a, 'r, S> {
    contributions: &'a mut Contributions<'r>,
    sink: &'a mut S,
    next: usize,
    waiting: BTreeMap<usize, ((usize, usize), PlainRows)>,
    /// Memory of rows that were taken.
    spare: Vec<PlainRows>,
}

impl<S: ContributionSink> InOrder<'_, '_, S> {
    fn add(&mut self, number: usize, place: (usize, usize), rows: PlainRows) {
        self.waiting.insert(number, (place, rows));
        while let Some(((stream, chunk), mut rows)) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.sink.run(stream, chunk, rows.len());
            self.contributions
                .plain_rows(stream, rows.iter().copied(), self.sink);
            rows.clear();
            self.spare.push(rows);
        }
    }
}

struct Nothing;

impl Output for Nothing {
    fn text(&mut self, _text: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn warning(&mut self, _lines: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn fault(&mut self, _fault: &FaultReport) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

struct Gather<'a, 'r, S> {
    plan: &'a RowPlan,
    contributions: &'a mut Contributions<'r>,
    sink: &'a mut S,
}

impl<'a, S: ContributionSink> Sink for Gather<'a, '_, S> {
    type Renderer = RowRenderer<'a>;

    const ROWS: bool = true;

    fn renderer(&self) -> RowRenderer<'a> {
        RowRenderer::new(self.plan)
    }

    fn is_by_stream(&self) -> bool {
        // Nothing depends on the order of rows of several streams.
        self.contributions.is_by_stream()
    }

    fn looks_at(&self, recording: usize, of: &AnyRecording, class: usize, field: FieldId) -> bool {
        self.plan.looks_at(recording, of, class, field)
    }

    fn rows(
        &mut self,
        run: RowRun<'_>,
        _of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        self.sink.run(run.stream, run.chunk, run.entries.len());
        self.contributions.rows(run, self.sink);
        self.sink.goes_on()
    }
}
