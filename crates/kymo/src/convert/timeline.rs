//! Where events lie on a time line: their tracks, and the slices that are open there.

use std::sync::Arc;

use kymo_model::{Recording, Value};

use super::binding::TrackBinding;
use super::is_plain;
use super::losses::{Loss, Losses};
use crate::AnyRecording;
use crate::pipeline::{Row, Values};
use crate::tracks::{
    Edge, Key, OTHERS, RowKey, TrackSource, TrackTable, known_track_name, text_of,
};

/// At most this many tracks are distinguished by a field; a hostile one has a value for each event.
const MOST_TRACKS: usize = 100_000;
/// Bytes of the values and names of these tracks: a name may be long, and a little data define many.
const MOST_TRACK_BYTES: usize = 64 << 20;
/// Maximum number of open slices on a track; viewers have about the same limit.
const MOST_OPEN: usize = 500;
/// Maximum number of kinds of slices per track that could not begin and are remembered until they end.
const MOST_REFUSED: usize = 500;
/// Maximum number of open slices on all tracks together, and of remembered kinds.
const MOST_KEPT: usize = 1 << 19;
/// Bytes of the keys of these, and of those.
const MOST_KEY_BYTES: usize = 32 << 20;

/// What an event is on its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Instant,
    Begin,
    End,
}

/// Where an event lies.
#[derive(Debug)]
pub(super) struct Place {
    /// Position of its track among all, in the order of their first events.
    pub(super) track: usize,
    /// Whether the track must be announced before its first event.
    pub(super) is_new: bool,
    /// Number of slices that end before it.
    pub(super) closes: usize,
    pub(super) phase: Phase,
}

/// A track, when it is new.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub(super) name: String,
    /// The number that it has in its recording, where it has one.
    pub(super) number: Option<u32>,
    /// Its place among the tracks of its recording.
    pub(super) rank: i32,
}

/// A slice that is open.
#[derive(Debug)]
struct Open {
    slice: usize,
    key: Key,
    /// Whether events that begin such a slice end one, too: the last one has no end.
    repeats: bool,
}

/// Slices that were not begun since too many were open, all within those that are.
#[derive(Debug)]
struct Refused {
    slice: usize,
    key: Key,
    count: u64,
    /// How many slices the first of them is within.
    depth: usize,
}

/// How many slices with a key may be kept beside those that are, of all tracks together.
#[derive(Debug)]
struct Limit {
    slices: usize,
    key_bytes: usize,
}

impl Limit {
    /// Takes the room of a slice, where there is some.
    fn take(&mut self, key: &Key) -> bool {
        let slices = self.slices.checked_sub(1);
        let key_bytes = self.key_bytes.checked_sub(key.byte_size());
        let (Some(slices), Some(key_bytes)) = (slices, key_bytes) else {
            return false;
        };
        *self = Self { slices, key_bytes };
        true
    }

    /// Gives the room of a slice back.
    fn give(&mut self, key: &Key) {
        self.slices += 1;
        self.key_bytes += key.byte_size();
    }
}

/// What may be kept of the slices of all tracks.
#[derive(Debug)]
struct SliceLimits {
    open: Limit,
    refused: Limit,
}

impl SliceLimits {
    const ALL: Self = Self {
        open: Limit {
            slices: MOST_KEPT,
            key_bytes: MOST_KEY_BYTES,
        },
        refused: Limit {
            slices: MOST_KEPT,
            key_bytes: MOST_KEY_BYTES,
        },
    };
}

/// What the end of a slice finds.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It is open. `within` is the number of slices that are open within it and end with it.
    Open { within: usize },
    /// It was not begun, since too many were open.
    Refused,
    /// There is none.
    Nothing,
}

/// The slices of a track.
#[derive(Debug, Default)]
struct Stack {
    open: Vec<Open>,
    refused: Vec<Refused>,
}

impl Stack {
    /// Begins a slice, unless too many are open.
    fn begin(&mut self, slice: Open, limits: &mut SliceLimits) -> bool {
        let depth = self.open.len();
        if depth < MOST_OPEN && limits.open.take(&slice.key) {
            self.open.push(slice);
            return true;
        }
        let Open { slice, key, .. } = slice;
        let is_it = |other: &Refused| other.slice == slice && other.key == key;
        match self.refused.iter().position(is_it) {
            Some(place) => self.refused[place].count += 1,
            None if self.refused.len() < MOST_REFUSED && limits.refused.take(&key) => {
                self.refused.push(Refused {
                    slice,
                    key,
                    count: 1,
                    depth,
                });
            }
            None => {}
        }
        false
    }

    /// Ends the innermost slice of a kind and a key.
    fn end(
        &mut self,
        slice: usize,
        is_key: impl Fn(&Key) -> bool,
        limits: &mut SliceLimits,
    ) -> Ended {
        let is_open = |open: &Open| open.slice == slice && is_key(&open.key);
        let is_refused = |other: &Refused| other.slice == slice && is_key(&other.key);
        let depth = self.open.iter().rposition(is_open);
        let refused = self.refused.iter().position(is_refused);
        if let Some(place) = refused
            && depth.is_none_or(|depth| self.refused[place].depth > depth)
        {
            self.refused[place].count -= 1;
            if self.refused[place].count == 0 {
                limits.refused.give(&self.refused.swap_remove(place).key);
            }
            return Ended::Refused;
        }
        let Some(depth) = depth else {
            return Ended::Nothing;
        };
        let within = self.open.len() - depth - 1;
        for open in self.open.drain(depth..) {
            limits.open.give(&open.key);
        }
        // Others began within it.
        self.refused.retain(|refused| {
            let stays = refused.depth <= depth;
            if !stays {
                limits.refused.give(&refused.key);
            }
            stays
        });
        Ended::Open { within }
    }
}

/// What became of a track that has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It has no event yet.
    Unused,
    /// Its position.
    At(usize),
    /// It is one too many.
    Refused,
}

/// The tracks of all recordings.
#[derive(Debug)]
pub(super) struct Timeline<'m> {
    binding: &'m TrackBinding,
    losses: Arc<Losses>,
    tracks: Vec<Track>,
    /// Of each track.
    stacks: Vec<Stack>,
    limits: SliceLimits,
    numbers: TrackTable,
    /// By recording and stream, the number of the track of the stream.
    streams: Vec<Vec<u32>>,
    /// By the numbers of tracks. Those of all streams come first.
    known: Vec<Known>,
    /// How many more tracks of values there may be, and bytes of them and their names.
    room: (usize, usize),
}

impl<'m> Timeline<'m> {
    pub(super) fn new(
        recordings: &[AnyRecording],
        binding: &'m TrackBinding,
        losses: Arc<Losses>,
    ) -> Self {
        let mut numbers = TrackTable::new(recordings);
        let of_recording = |(recording, source): (usize, &AnyRecording)| {
            let of_stream = |stream| {
                let mut numbers = numbers.of_stream(recording, stream);
                numbers.number(&TrackSource::Stream, Values::default())
            };
            (0..source.streams().len()).map(of_stream).collect()
        };
        let streams = recordings.iter().enumerate().map(of_recording).collect();
        Self {
            binding,
            losses,
            tracks: Vec::new(),
            stacks: Vec::new(),
            limits: SliceLimits::ALL,
            numbers,
            streams,
            known: Vec::new(),
            room: (MOST_TRACKS, MOST_TRACK_BYTES),
        }
    }

    /// A track that there is.
    pub(super) fn track(&self, track: usize) -> &Track {
        &self.tracks[track]
    }

    /// Places an event.
    #[inline]
    pub(super) fn place(&mut self, row: &Row<'_>, recordings: &[AnyRecording]) -> Place {
        let message = &row.message;
        let binding = self.binding;
        let known = self.tracks.len();
        let class = binding.class(message.recording, message.class);
        let track = self.track_of(
            class.map_or(&TrackSource::Stream, |class| &class.track),
            row,
            recordings,
        );
        let mut place = Place {
            track,
            is_new: self.tracks.len() > known,
            closes: 0,
            phase: Phase::Instant,
        };
        let (ends, begins) = class.map_or((None, None), |class| {
            (class.ends.as_ref(), class.begins.as_ref())
        });
        if ends.is_some() || begins.is_some() {
            self.slices(&mut place, row, ends, begins);
        }
        place
    }

    /// Ends and begins slices.
    fn slices(
        &mut self,
        place: &mut Place,
        row: &Row<'_>,
        ends: Option<&Edge>,
        begins: Option<&Edge>,
    ) {
        let repeats = ends.map(|edge| edge.slice) == begins.map(|edge| edge.slice);
        if let Some(edge) = ends {
            let row = RowKey {
                values: row.values,
                fields: &edge.key,
            };
            self.end(place, edge.slice, row, begins.is_some(), repeats);
        }
        if let Some(edge) = begins {
            let row = RowKey {
                values: row.values,
                fields: &edge.key,
            };
            let open = Open {
                slice: edge.slice,
                key: row.key(),
                repeats,
            };
            match self.stacks[place.track].begin(open, &mut self.limits) {
                true => place.phase = Phase::Begin,
                false => self.losses.add(Loss::TooDeep, 1),
            }
        }
    }

    /// Ends the slice with a key. `begins` says whether the event begins another, so that it cannot be the
    /// end itself.
    fn end(
        &mut self,
        place: &mut Place,
        slice: usize,
        row: RowKey<'_>,
        begins: bool,
        repeats: bool,
    ) {
        let is_key = |key: &Key| row.is(key);
        let within = match self.stacks[place.track].end(slice, is_key, &mut self.limits) {
            Ended::Open { within } => within,
            Ended::Refused => return,
            Ended::Nothing => {
                if !repeats {
                    self.losses.add(Loss::UnmatchedEnd, 1);
                }
                return;
            }
        };
        self.losses.add(Loss::NotNested, within as u64);
        place.closes = within + usize::from(begins);
        if !begins {
            place.phase = Phase::End;
        }
    }

    /// The track of an event.
    #[inline]
    fn track_of(
        &mut self,
        source: &TrackSource,
        row: &Row<'_>,
        recordings: &[AnyRecording],
    ) -> usize {
        let source = match source {
            TrackSource::Fields(fields) | TrackSource::Own(fields)
                if !is_plain(row.values.first(&fields[0])) =>
            {
                &TrackSource::Stream
            }
            source => source,
        };
        let (recording, stream) = (row.message.recording, row.message.stream);
        let number = match source {
            TrackSource::Stream => self.streams[recording][stream],
            // Each recording has tracks of its own; the name, if there is one, does not distinguish them.
            TrackSource::Fields(fields) | TrackSource::Own(fields) => {
                let mut numbers = self.numbers.of_stream(recording, stream);
                numbers.within(&fields[..1], row.values)
            }
        };
        match self.known.get(number as usize) {
            Some(&Known::At(track)) => track,
            _ => self.new_track(number, source, row, recordings),
        }
    }

    #[cold]
    fn new_track(
        &mut self,
        number: u32,
        source: &TrackSource,
        row: &Row<'_>,
        recordings: &[AnyRecording],
    ) -> usize {
        let number = number as usize;
        let known = self.known.get(number).copied().unwrap_or(Known::Unused);
        let (recording, stream) = (row.message.recording, row.message.stream);
        let recording_of = &recordings[recording];
        let track = match source {
            TrackSource::Stream => Some(Track {
                name: stream_name(recording_of, stream),
                number: u32::try_from(stream).ok(),
                rank: i32::try_from(stream).unwrap_or(i32::MAX),
            }),
            _ if known == Known::Refused || number == OTHERS as usize => None,
            TrackSource::Fields(fields) => {
                let value = row.values.first(&fields[0]);
                let name = format!("{} {}", self.binding.track_name(), text_of(value));
                self.track_of_value(value, name)
            }
            TrackSource::Own(fields) => {
                let value = row.values.first(&fields[0]);
                let name = match (fields.get(1), value) {
                    (Some(name), _) => text_of(row.values.first(name)),
                    (None, Value::Uint(number)) => known_track_name(recording_of, number),
                    (None, _) => String::new(),
                };
                self.track_of_value(value, name)
            }
        };
        let is_refused = track.is_none();
        if number != OTHERS as usize {
            self.known
                .resize(self.known.len().max(number + 1), Known::Unused);
            self.known[number] = match is_refused {
                true => Known::Refused,
                false => Known::At(self.tracks.len()),
            };
        }
        match track {
            Some(track) => {
                self.tracks.push(track);
                self.stacks.push(Stack::default());
                self.tracks.len() - 1
            }
            None => {
                self.losses.add(Loss::MoreTracks, 1);
                self.track_of(&TrackSource::Stream, row, recordings)
            }
        }
    }

    /// The track of a value, if there is room for it.
    fn track_of_value(&mut self, value: Value<'_>, name: String) -> Option<Track> {
        let bytes = name.len() + Key::of(value).byte_size();
        let (tracks, room) = self.room;
        self.room = (tracks.checked_sub(1)?, room.checked_sub(bytes)?);
        let number = match value {
            Value::Uint(value) => i64::try_from(value).ok(),
            Value::Sint(value) => Some(value),
            _ => None,
        };
        let created = i32::try_from(self.tracks.len()).unwrap_or(i32::MAX);
        let rank = number.and_then(|number| i32::try_from(number).ok());
        Some(Track {
            name,
            number: number.and_then(|number| u32::try_from(number).ok()),
            rank: rank.unwrap_or(created),
        })
    }

    /// Counts the slices that are still open.
    pub(super) fn finish(&self) {
        let open = self.stacks.iter().flat_map(|stack| &stack.open);
        let open = open.filter(|open| !open.repeats);
        self.losses.add(Loss::OpenSlice, open.count() as u64);
    }
}

/// What a stream is called: below the path of its recording, where it has one there.
pub(super) fn stream_name(recording: &AnyRecording, stream: usize) -> String {
    let name = &*recording.streams()[stream].name;
    let below = std::path::Path::new(name)
        .strip_prefix(recording.path())
        .ok();
    match below.and_then(std::path::Path::to_str) {
        Some(below) if !below.is_empty() => below.to_string(),
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(slice: usize, key: &[u8]) -> Open {
        Open {
            slice,
            key: text(key),
            repeats: false,
        }
    }

    fn text(key: &[u8]) -> Key {
        match key {
            [] => Key::None,
            text => Key::Text(text.into()),
        }
    }

    fn is(key: &[u8]) -> impl Fn(&Key) -> bool {
        move |other| *other == text(key)
    }

    fn limits(open: (usize, usize), refused: (usize, usize)) -> SliceLimits {
        let room = |(slices, key_bytes)| Limit { slices, key_bytes };
        SliceLimits {
            open: room(open),
            refused: room(refused),
        }
    }

    #[test]
    fn all_tracks_together_have_a_bound() {
        let mut limits = limits((3, 28), (2, 12));
        let (mut one, mut other) = (Stack::default(), Stack::default());
        assert!(one.begin(slice(0, b"12345678"), &mut limits));
        assert!(
            !other.begin(slice(0, b"123"), &mut limits),
            "too many bytes"
        );
        assert!(other.begin(slice(0, b"12"), &mut limits));
        assert!(one.begin(slice(1, b""), &mut limits));
        assert!(!one.begin(slice(2, b""), &mut limits), "too many slices");
        assert!(!other.begin(slice(3, b""), &mut limits), "is forgotten");
        assert_eq!(limits.refused.slices, 0);
        assert_eq!(other.end(0, is(b"123"), &mut limits), Ended::Refused);
        assert_eq!(other.end(3, is(b""), &mut limits), Ended::Nothing);
        assert_eq!(
            one.end(0, is(b"12345678"), &mut limits),
            Ended::Open { within: 1 }
        );
        assert_eq!(
            other.end(0, is(b"12"), &mut limits),
            Ended::Open { within: 0 }
        );
        assert_eq!((limits.open.slices, limits.open.key_bytes), (3, 28));
        assert_eq!((limits.refused.slices, limits.refused.key_bytes), (2, 12));
    }

    #[test]
    fn what_was_not_begun_ends_in_its_turn() {
        let mut limits = limits((2, 0), (2, 0));
        let (mut one, mut other) = (Stack::default(), Stack::default());
        assert!(one.begin(slice(0, b""), &mut limits));
        assert!(other.begin(slice(0, b""), &mut limits));
        // Another track makes room within it.
        assert!(!one.begin(slice(1, b""), &mut limits));
        assert_eq!(
            other.end(0, is(b""), &mut limits),
            Ended::Open { within: 0 }
        );
        assert!(one.begin(slice(1, b""), &mut limits));
        assert_eq!(one.end(1, is(b""), &mut limits), Ended::Open { within: 0 });
        assert_eq!(one.end(1, is(b""), &mut limits), Ended::Refused);
        assert_eq!(one.end(0, is(b""), &mut limits), Ended::Open { within: 0 });
        assert_eq!(one.end(1, is(b""), &mut limits), Ended::Nothing);
    }
}
