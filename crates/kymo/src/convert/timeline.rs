//! Where events lie on a time line: their tracks, and the slices that are open there.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{Recording, Value};
use kymo_text::Line;

use super::losses::{Loss, Losses};
use super::marks::{Marks, TrackFrom};
use crate::AnyRecording;
use crate::carried::{self, Carried};
use crate::show::Message;
use crate::show::table::Table;

/// So many tracks are told apart by a field; a hostile one has a value for each event.
const MOST_TRACKS: usize = 100_000;
/// Bytes of the values and names of these tracks: a name may be long, and a little data tell many.
const MOST_TRACK_BYTES: usize = 64 << 20;
/// So many slices may be open on a track; viewers take about as many.
const MOST_OPEN: usize = 500;
/// So many kinds of slices that could not begin on a track are remembered, until they end.
const MOST_REFUSED: usize = 500;
/// So many slices may be open on all tracks together, and as many kinds be remembered.
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
    /// What is to be told of the track, before its first event.
    pub(super) is_new: bool,
    /// So many slices end before it.
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
    key: Box<[u8]>,
    /// Whether events that begin such a slice end one, too: the last one has no end.
    repeats: bool,
}

/// Slices that were not begun since too many were open, all within those that are.
#[derive(Debug)]
struct Refused {
    slice: usize,
    key: Box<[u8]>,
    count: u64,
    /// How many slices the first of them is within.
    depth: usize,
}

/// How many slices with a key may be kept beside those that are, of all tracks together.
#[derive(Debug)]
struct Room {
    slices: usize,
    key_bytes: usize,
}

impl Room {
    /// Takes the room of a slice, where there is some.
    fn take(&mut self, key: &[u8]) -> bool {
        let slices = self.slices.checked_sub(1);
        let key_bytes = self.key_bytes.checked_sub(key.len());
        let (Some(slices), Some(key_bytes)) = (slices, key_bytes) else {
            return false;
        };
        *self = Self { slices, key_bytes };
        true
    }

    /// Gives the room of a slice back.
    fn give(&mut self, key: &[u8]) {
        self.slices += 1;
        self.key_bytes += key.len();
    }
}

/// What may be kept of the slices of all tracks.
#[derive(Debug)]
struct Rooms {
    open: Room,
    refused: Room,
}

impl Rooms {
    const ALL: Self = Self {
        open: Room {
            slices: MOST_KEPT,
            key_bytes: MOST_KEY_BYTES,
        },
        refused: Room {
            slices: MOST_KEPT,
            key_bytes: MOST_KEY_BYTES,
        },
    };
}

/// What the end of a slice finds.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// So many slices that are open within it, which end with it.
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
    fn begin(&mut self, slice: Open, rooms: &mut Rooms) -> bool {
        let depth = self.open.len();
        if depth < MOST_OPEN && rooms.open.take(&slice.key) {
            self.open.push(slice);
            return true;
        }
        let Open { slice, key, .. } = slice;
        let is_it = |other: &Refused| other.slice == slice && other.key == key;
        match self.refused.iter().position(is_it) {
            Some(place) => self.refused[place].count += 1,
            None if self.refused.len() < MOST_REFUSED && rooms.refused.take(&key) => {
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
    fn end(&mut self, slice: usize, key: &[u8], rooms: &mut Rooms) -> Ended {
        let is_open = |open: &Open| open.slice == slice && *open.key == *key;
        let is_refused = |other: &Refused| other.slice == slice && *other.key == *key;
        let depth = self.open.iter().rposition(is_open);
        let refused = self.refused.iter().position(is_refused);
        if let Some(place) = refused
            && depth.is_none_or(|depth| self.refused[place].depth > depth)
        {
            self.refused[place].count -= 1;
            if self.refused[place].count == 0 {
                rooms.refused.give(&self.refused.swap_remove(place).key);
            }
            return Ended::Refused;
        }
        let Some(depth) = depth else {
            return Ended::Nothing;
        };
        let within = self.open.len() - depth - 1;
        for open in self.open.drain(depth..) {
            rooms.open.give(&open.key);
        }
        // Others began within it.
        self.refused.retain(|refused| {
            let stays = refused.depth <= depth;
            if !stays {
                rooms.refused.give(&refused.key);
            }
            stays
        });
        Ended::Open { within }
    }
}

/// The tracks of all recordings.
#[derive(Debug)]
pub(super) struct Timeline<'m> {
    marks: &'m Marks,
    losses: Arc<Losses>,
    tracks: Vec<Track>,
    /// Of each track.
    stacks: Vec<Stack>,
    rooms: Rooms,
    /// By recording and stream.
    of_stream: Table<Option<usize>>,
    /// By recording and value of the field.
    of_value: HashMap<(usize, Box<[u8]>), usize>,
    /// Bytes that more values and names of tracks may have.
    room: usize,
}

impl<'m> Timeline<'m> {
    pub(super) fn new(marks: &'m Marks, losses: Arc<Losses>) -> Self {
        Self {
            marks,
            losses,
            tracks: Vec::new(),
            stacks: Vec::new(),
            rooms: Rooms::ALL,
            of_stream: Table::default(),
            of_value: HashMap::new(),
            room: MOST_TRACK_BYTES,
        }
    }

    /// A track that there is.
    pub(super) fn track(&self, track: usize) -> &Track {
        &self.tracks[track]
    }

    /// Places an event, and takes the values that are needed for it.
    pub(super) fn place(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        carried: &mut Carried<'_>,
    ) -> Place {
        let class = self.marks.class(message.recording, message.class);
        let known = self.tracks.len();
        let track = match class.track {
            TrackFrom::Stream => self.track_of_stream(message, of),
            TrackFrom::Field | TrackFrom::Own => {
                let value = carried.next_with_bytes();
                let name = match class.track {
                    TrackFrom::Own => Some(carried.next()),
                    _ => None,
                };
                match carried::is_plain(value.0) {
                    true => self.track_of_value(message, of, value, name),
                    false => self.track_of_stream(message, of),
                }
            }
        };
        let mut key = |has_key: bool| match has_key {
            true => carried.next_with_bytes().1,
            false => &[],
        };
        let mut place = Place {
            track,
            is_new: self.tracks.len() > known,
            closes: 0,
            phase: Phase::Instant,
        };
        if let Some((slice, has_key)) = class.ends {
            let repeats = class.begins.is_some_and(|(begun, _)| begun == slice);
            self.end(
                &mut place,
                slice,
                key(has_key),
                class.begins.is_some(),
                repeats,
            );
        }
        if let Some((slice, has_key)) = class.begins {
            let open = Open {
                slice,
                key: key(has_key).into(),
                repeats: class.ends.is_some_and(|(ended, _)| ended == slice),
            };
            match self.stacks[track].begin(open, &mut self.rooms) {
                true => place.phase = Phase::Begin,
                false => self.losses.add(Loss::TooDeep, 1),
            }
        }
        place
    }

    /// Ends a slice. `begins` tells whether the event begins another, so that it cannot be the end
    /// itself.
    fn end(&mut self, place: &mut Place, slice: usize, key: &[u8], begins: bool, repeats: bool) {
        let within = match self.stacks[place.track].end(slice, key, &mut self.rooms) {
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

    fn track_of_stream(&mut self, message: &Message, of: &[AnyRecording]) -> usize {
        let (recording, stream) = (message.recording, message.stream);
        let slot = self.of_stream.get(recording, stream, || None);
        if let Some(track) = *slot {
            return track;
        }
        *slot = Some(self.tracks.len());
        self.add(Track {
            name: stream_name(&of[recording], stream),
            number: u32::try_from(stream).ok(),
            rank: i32::try_from(stream).unwrap_or(i32::MAX),
        })
    }

    fn track_of_value(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        (value, bytes): (Value<'_>, &[u8]),
        name: Option<Value<'_>>,
    ) -> usize {
        let recording = message.recording;
        let key = (recording, bytes.into());
        if let Some(&track) = self.of_value.get(&key) {
            return track;
        }
        let name = match name {
            Some(name) => text_of(name),
            None => format!("{} {}", self.marks.track_name(), text_of(value)),
        };
        let room = self.room.checked_sub(bytes.len() + name.len());
        let Some(room) = room.filter(|_| self.of_value.len() < MOST_TRACKS) else {
            self.losses.add(Loss::MoreTracks, 1);
            return self.track_of_stream(message, of);
        };
        self.room = room;
        self.of_value.insert(key, self.tracks.len());
        let (number, rank) = match value {
            Value::Uint(value) => (u32::try_from(value).ok(), i32::try_from(value).ok()),
            Value::Sint(value) => (u32::try_from(value).ok(), i32::try_from(value).ok()),
            _ => (None, None),
        };
        let created = i32::try_from(self.tracks.len()).unwrap_or(i32::MAX);
        self.add(Track {
            name,
            number,
            rank: rank.unwrap_or(created),
        })
    }

    fn add(&mut self, track: Track) -> usize {
        self.tracks.push(track);
        self.stacks.push(Stack::default());
        self.tracks.len() - 1
    }

    /// Counts the slices that are still open.
    pub(super) fn finish(&self) {
        let open = self.stacks.iter().flat_map(|stack| &stack.open);
        let open = open.filter(|open| !open.repeats);
        self.losses.add(Loss::OpenSlice, open.count() as u64);
    }
}

/// What a stream is called: below the path of its recording, where it has one there.
pub(super) fn stream_name(of: &AnyRecording, stream: usize) -> String {
    let name = &*of.streams()[stream].name;
    let below = std::path::Path::new(name).strip_prefix(of.path()).ok();
    match below.and_then(std::path::Path::to_str) {
        Some(below) if !below.is_empty() => below.to_string(),
        _ => name.to_string(),
    }
}

/// A value as text, for names.
pub(super) fn text_of(value: Value<'_>) -> String {
    match value {
        Value::Uint(value) | Value::Bits(value) => value.to_string(),
        Value::Sint(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Float(value) => {
            let mut line = Line::new();
            crate::show::json::float(value, 64, false, &mut line);
            String::from_utf8_lossy(line.as_bytes()).into_owned()
        }
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Missing | Value::Array(_) | Value::Compound => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(slice: usize, key: &[u8]) -> Open {
        Open {
            slice,
            key: key.into(),
            repeats: false,
        }
    }

    fn rooms(open: (usize, usize), refused: (usize, usize)) -> Rooms {
        let room = |(slices, key_bytes)| Room { slices, key_bytes };
        Rooms {
            open: room(open),
            refused: room(refused),
        }
    }

    #[test]
    fn all_tracks_together_have_a_bound() {
        let mut rooms = rooms((3, 10), (2, 10));
        let (mut one, mut other) = (Stack::default(), Stack::default());
        assert!(one.begin(slice(0, b"12345678"), &mut rooms));
        assert!(!other.begin(slice(0, b"123"), &mut rooms), "too many bytes");
        assert!(other.begin(slice(0, b"12"), &mut rooms));
        assert!(one.begin(slice(1, b""), &mut rooms));
        assert!(!one.begin(slice(2, b""), &mut rooms), "too many slices");
        assert!(!other.begin(slice(3, b""), &mut rooms), "is forgotten");
        assert_eq!(rooms.refused.slices, 0);
        assert_eq!(other.end(0, b"123", &mut rooms), Ended::Refused);
        assert_eq!(other.end(3, b"", &mut rooms), Ended::Nothing);
        assert_eq!(
            one.end(0, b"12345678", &mut rooms),
            Ended::Open { within: 1 }
        );
        assert_eq!(other.end(0, b"12", &mut rooms), Ended::Open { within: 0 });
        assert_eq!((rooms.open.slices, rooms.open.key_bytes), (3, 10));
        assert_eq!((rooms.refused.slices, rooms.refused.key_bytes), (2, 10));
    }

    #[test]
    fn what_was_not_begun_ends_in_its_turn() {
        let mut rooms = rooms((2, 0), (2, 0));
        let (mut one, mut other) = (Stack::default(), Stack::default());
        assert!(one.begin(slice(0, b""), &mut rooms));
        assert!(other.begin(slice(0, b""), &mut rooms));
        // Another track makes room within it.
        assert!(!one.begin(slice(1, b""), &mut rooms));
        assert_eq!(other.end(0, b"", &mut rooms), Ended::Open { within: 0 });
        assert!(one.begin(slice(1, b""), &mut rooms));
        assert_eq!(one.end(1, b"", &mut rooms), Ended::Open { within: 0 });
        assert_eq!(one.end(1, b"", &mut rooms), Ended::Refused);
        assert_eq!(one.end(0, b"", &mut rooms), Ended::Open { within: 0 });
        assert_eq!(one.end(1, b"", &mut rooms), Ended::Nothing);
    }
}
