//! Which tracks rows are on: one definition for summaries, the index, slices, and whoever looks at rows.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kymo_model::batch::{Batch, Column, ColumnData, RowId};
use kymo_model::{EntryKind, Recording, Roles, Track, TrackPart, TrackPath, TrackRule, Value};

use super::{Query, QueryError, RowPlan, Shape, Timeline};
use crate::AnyRecording;
use crate::pipeline::Values;
use crate::tracks::{
    ClassTracks, Key, OTHERS, TrackKey, TrackPlan, TrackSource, TrackTable, text_of,
};

/// Maximum number of tracks of a recording; the rest share one called `other`.
const MOST_TRACKS: usize = 1 << 20;

/// What a row is on a track, with the number of the track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrackEntry {
    /// The row itself: an event, or what begins, ends or is a slice or state.
    Row(u32),
    /// A value of a series; `None` if it is unknown.
    Value(u32, Option<f64>),
}

impl TrackEntry {
    /// The number of the track.
    pub fn track(self) -> u32 {
        match self {
            Self::Row(track) | Self::Value(track, _) => track,
        }
    }

    /// The value of a series, if it is known.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Row(_) => None,
            Self::Value(_, value) => value,
        }
    }
}

/// Finds the tracks that the rows of batches are on, by the recordings' own rules.
///
/// ```
/// use kymo::timeline::{Query, RowTracks, Timeline};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");
///
/// let opened = kymo::open::open(&[path.into()], &Default::default());
/// let timeline = Timeline::new(opened.recordings);
/// let mut query = Query::default();
/// let mut tracks = RowTracks::new(&timeline, &mut query)?;
/// let mut counts = [0; 2];
/// for batch in timeline.rows(&query)? {
///     for row in 0..batch.len() {
///         for entry in tracks.of(&batch, row) {
///             counts[entry.track() as usize] += 1;
///         }
///     }
/// }
/// let track = tracks.tracks(0)[0].path.to_string();
/// assert_eq!(track, "stream 0.1");
/// assert!(counts[0] > 0 && counts[1] > 0);
/// # Ok::<(), kymo::timeline::QueryError>(())
/// ```
#[derive(Debug)]
pub struct RowTracks<'t> {
    plan: TrackPlan,
    finders: Vec<TrackFinder<'t>>,
    entries: Vec<TrackEntry>,
}

impl<'t> RowTracks<'t> {
    /// Finds the tracks of rows in the batches of a query. The query is changed: its batches are
    /// [by class](Shape::ByClass), and the columns that identify tracks come behind those that it asks for, if
    /// these lack them.
    ///
    /// # Errors
    ///
    /// A column that is asked for does not exist.
    pub fn new(timeline: &'t Timeline, query: &mut Query) -> Result<Self, QueryError> {
        query.shape = Shape::ByClass;
        query.with_tracks = true;
        let recordings = timeline.recordings();
        let rows = RowPlan::new(recordings, query)?;
        Ok(Self {
            plan: TrackPlan::of_rules(recordings, rows, false),
            finders: recordings.iter().map(TrackFinder::new).collect(),
            entries: Vec::new(),
        })
    }

    /// The tracks that a row of a batch is on.
    ///
    /// # Panics
    ///
    /// If the row does not exist, or the batch is not of this timeline.
    pub fn of(&mut self, batch: &Batch, row: usize) -> &[TrackEntry] {
        self.of_row(batch, row, batch.id(row))
    }

    /// The same for a row of the recording and stream of `id`, such as one of a [run](Batch::runs).
    ///
    /// # Panics
    ///
    /// As [`of`](Self::of) does.
    pub fn of_row(&mut self, batch: &Batch, row: usize, id: RowId) -> &[TrackEntry] {
        let class = batch.classes()[row] as usize;
        let (recording, stream) = (id.recording as usize, id.stream as usize);
        self.entries.clear();
        if let Some(class_tracks) = &self.plan.classes(recording)[class] {
            let values = Values::new(batch.columns(), row);
            self.finders[recording].find(stream, class, class_tracks, values, &mut self.entries);
        }
        &self.entries
    }

    /// The tracks of a recording that were met, by their numbers.
    pub fn tracks(&self, recording: usize) -> &[Track] {
        self.finders[recording].tracks()
    }
}

/// How the tracks of the rows of a class are found.
#[derive(Debug)]
struct ClassRule {
    rule: TrackRule,
    /// The names of the series beside the track.
    counters: Vec<String>,
}

/// Finds the tracks of a recording's rows, and numbers them as they are met.
#[derive(Debug)]
pub(super) struct TrackFinder<'r> {
    recording: &'r AnyRecording,
    rules: Vec<ClassRule>,
    table: TrackTable,
    /// By number in the table, and by position in the recording, the number of a track.
    numbers: Vec<Option<u32>>,
    positions: Vec<Option<u32>>,
    by_path: HashMap<TrackPath, u32, RandomState>,
    tracks: Vec<Track>,
    most_tracks: usize,
}

impl<'r> TrackFinder<'r> {
    pub(super) fn new(recording: &'r AnyRecording) -> Self {
        let classes = recording.event_classes().iter().enumerate();
        let rules = classes.map(|(class, info)| {
            let Roles { counters, .. } = recording.roles(class);
            let counters = counters.iter().map(|&field| info.schema.path(field));
            ClassRule {
                rule: recording.track_rule(class),
                counters: counters.collect(),
            }
        });
        Self {
            recording,
            rules: rules.collect(),
            table: TrackTable::new(std::slice::from_ref(recording)),
            numbers: Vec::new(),
            positions: vec![None; recording.tracks().len()],
            by_path: HashMap::default(),
            tracks: Vec::new(),
            most_tracks: MOST_TRACKS,
        }
    }

    /// The tracks that are known, by their numbers.
    pub(super) fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Whether each track has rows of one stream only.
    pub(super) fn is_by_stream(&self) -> bool {
        let is_stream = |class: &ClassRule| class.rule == TrackRule::Stream;
        self.recording.streams().len() == 1 || self.rules.iter().all(is_stream)
    }

    /// Whether rows are on the tracks of their streams, and no more than there.
    pub(super) fn is_plain(&self) -> bool {
        let is_plain =
            |class: &ClassRule| class.rule == TrackRule::Stream && class.counters.is_empty();
        self.rules.iter().all(is_plain)
    }

    /// Takes tracks as known, in the order of their numbers.
    pub(super) fn know<'t>(&mut self, tracks: impl Iterator<Item = &'t Track>) {
        for track in tracks {
            self.by_path
                .insert(track.path.clone(), self.tracks.len() as u32);
            self.tracks.push(track.clone());
        }
    }

    /// Marks the known tracks as complete: there are no others.
    pub(super) fn knows_all(&mut self) {
        self.most_tracks = self.tracks.len();
    }

    /// The number of a track; it gets one if it is met for the first time.
    fn add(&mut self, mut track: Track) -> u32 {
        let is_full = self.tracks.len() >= self.most_tracks;
        if is_full && !self.by_path.contains_key(&track.path) {
            track = other(track.kind);
        }
        if let Some(&number) = self.by_path.get(&track.path) {
            return number;
        }
        let number = self.tracks.len() as u32;
        self.by_path.insert(track.path.clone(), number);
        self.tracks.push(track);
        number
    }

    /// The number of the track with a number in the table.
    fn numbered(&mut self, key: u32, kind: EntryKind, make: impl FnOnce(&Self) -> Track) -> u32 {
        if let Some(&Some(number)) = self.numbers.get(key as usize) {
            return number;
        }
        if key == OTHERS {
            return self.add(other(kind));
        }
        let track = make(self);
        let number = self.add(track);
        let least = self.numbers.len().max(key as usize + 1);
        self.numbers.resize(least, None);
        self.numbers[key as usize] = Some(number);
        number
    }

    /// The number of a track that the recording knows from its metadata.
    fn at(&mut self, position: usize) -> Option<u32> {
        let known = *self.positions.get(position)?;
        let number = known.unwrap_or_else(|| self.add(self.recording.tracks()[position].clone()));
        self.positions[position] = Some(number);
        Some(number)
    }

    /// The number of a stream's track.
    pub(super) fn stream(&mut self, stream: usize) -> u32 {
        self.of_fields(stream, &TrackSource::Stream, Values::default())
    }

    /// The track of a row that is not one of those from the metadata.
    fn of_fields(&mut self, stream: usize, source: &TrackSource, values: Values<'_>) -> u32 {
        let recording = self.recording;
        let kind = recording.entry_kind(stream);
        let mut table = self.table.of_stream(0, stream);
        let (TrackSource::Own(fields) | TrackSource::Fields(fields)) = source else {
            let key = table.number(source, values);
            return self.numbered(key, kind, |_| stream_track(recording, stream));
        };
        let key = table.within(&fields[..1], values);
        self.numbered(key, kind, |this| {
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

    /// The track of a row that is not a series.
    fn own(
        &mut self,
        stream: usize,
        class: usize,
        source: &TrackSource,
        values: Values<'_>,
    ) -> u32 {
        let (TrackRule::Position(_), TrackSource::Own(fields)) = (&self.rules[class].rule, source)
        else {
            return self.of_fields(stream, source, values);
        };
        let known = match values.first(&fields[0]) {
            Value::Uint(position) => usize::try_from(position).ok(),
            _ => None,
        };
        let known = known.and_then(|position| self.at(position));
        known.unwrap_or_else(|| self.add(other(self.recording.entry_kind(stream))))
    }

    /// Appends what a row is on which tracks: first the values of its series.
    pub(super) fn find(
        &mut self,
        stream: usize,
        class: usize,
        class_tracks: &ClassTracks,
        values: Values<'_>,
        entries: &mut Vec<TrackEntry>,
    ) {
        let (columns, row) = values.columns();
        let series = class_tracks.series.iter().filter_map(|&at| columns.get(at));
        if let TrackRule::Series { first, .. } = self.rules[class].rule {
            for (position, column) in (first..).zip(series) {
                if let Some(track) = self.at(position) {
                    entries.push(TrackEntry::Value(track, number_in(column, row)));
                }
            }
            return;
        }
        let track = self.own(stream, class, &class_tracks.track, values);
        let has_counters = !class_tracks.series.is_empty();
        for (counter, column) in series.enumerate() {
            let (items, range) = match &column.data {
                ColumnData::List { offsets, items } => {
                    (&**items, offsets[row] as usize..offsets[row + 1] as usize)
                }
                _ => (column, row..row + 1),
            };
            let several = range.len() > 1;
            for (element, item) in range.enumerate() {
                let element = several.then_some(element as u32);
                let series = self.series(track, class, counter, element);
                entries.push(TrackEntry::Value(series, number_in(items, item)));
            }
        }
        if !has_counters || self.tracks[track as usize].kind == EntryKind::Event {
            entries.push(TrackEntry::Row(track));
        }
    }

    /// The track of a series beside another track.
    fn series(&mut self, track: u32, class: usize, counter: usize, element: Option<u32>) -> u32 {
        let key = (self.table).series(track, class as u32, counter as u32, element);
        self.numbered(key, EntryKind::Sample, |this| {
            let name = &this.rules[class].counters[counter];
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

/// A row's value of a series: of a structure, as variants are, the member that is there.
fn number_in(column: &Column, row: usize) -> Option<f64> {
    match &column.data {
        ColumnData::Struct { members, .. } => {
            members.iter().find_map(|member| number_in(member, row))
        }
        _ => column.value(row).to_f64().filter(|value| !value.is_nan()),
    }
}

/// The track of rows whose own track is unknown or beyond the limit.
fn other(kind: EntryKind) -> Track {
    let path = TrackPath::new([TrackPart::Name("other".into())]);
    Track::new(path, "other", kind)
}

/// The track of a stream.
pub(super) fn stream_track(recording: &AnyRecording, stream: usize) -> Track {
    let info = &recording.streams()[stream];
    let part = TrackPart::Stream {
        class: info.class,
        id: info.id.unwrap_or(stream as u64),
    };
    let path = TrackPath::new([part]);
    Track::new(path, Arc::clone(&info.name), recording.entry_kind(stream))
}
