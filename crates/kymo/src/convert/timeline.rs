//! Where events lie on a time line: their tracks, and the slices that are open there.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{Recording, Value};
use kymo_text::Line;

use super::carry::{self, Carried};
use super::losses::{Loss, Losses};
use super::marks::{Marks, TrackFrom};
use crate::AnyRecording;
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
}

/// The slices of a track.
#[derive(Debug, Default)]
struct Stack {
    open: Vec<Open>,
    refused: Vec<Refused>,
}

impl Stack {
    /// Begins a slice, unless too many are open.
    fn begin(&mut self, slice: Open) -> bool {
        if self.open.len() < MOST_OPEN {
            self.open.push(slice);
            return true;
        }
        let Open { slice, key, .. } = slice;
        let is_it = |other: &Refused| other.slice == slice && other.key == key;
        match self.refused.iter().position(is_it) {
            Some(place) => self.refused[place].count += 1,
            None if self.refused.len() < MOST_REFUSED => self.refused.push(Refused {
                slice,
                key,
                count: 1,
            }),
            None => {}
        }
        false
    }

    /// Ends a slice that was not begun; tells whether there is one.
    fn end_refused(&mut self, slice: usize, key: &[u8]) -> bool {
        let is_it = |other: &Refused| other.slice == slice && *other.key == *key;
        let Some(place) = self.refused.iter().position(is_it) else {
            return false;
        };
        self.refused[place].count -= 1;
        if self.refused[place].count == 0 {
            self.refused.swap_remove(place);
        }
        true
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
                match carry::is_plain(value.0) {
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
            match self.stacks[track].begin(open) {
                true => place.phase = Phase::Begin,
                false => self.losses.add(Loss::TooDeep, 1),
            }
        }
        place
    }

    /// Ends a slice. `begins` tells whether the event begins another, so that it cannot be the end
    /// itself.
    fn end(&mut self, place: &mut Place, slice: usize, key: &[u8], begins: bool, repeats: bool) {
        let stack = &mut self.stacks[place.track];
        if stack.end_refused(slice, key) {
            return;
        }
        let open = &mut stack.open;
        let is_it = |open: &Open| open.slice == slice && *open.key == *key;
        let Some(depth) = open.iter().rposition(is_it) else {
            if !repeats {
                self.losses.add(Loss::UnmatchedEnd, 1);
            }
            return;
        };
        let within = open.len() - depth - 1;
        open.truncate(depth);
        // They began within it.
        stack.refused.clear();
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
