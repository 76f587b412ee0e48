//! Where events lie on a time line: their tracks, and the slices that are open there.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{Recording, Value};
use kymo_text::Line;

use super::carry::Carried;
use super::losses::{Loss, Losses};
use super::marks::{Marks, TrackFrom};
use crate::AnyRecording;
use crate::show::Message;
use crate::show::table::Table;

/// So many tracks are told apart by a field; a hostile one has a value for each event.
const MOST_TRACKS: usize = 100_000;
/// So many slices may be open on a track; viewers take about as many.
const MOST_OPEN: usize = 500;

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

/// The tracks of all recordings.
#[derive(Debug)]
pub(super) struct Timeline<'m> {
    marks: &'m Marks,
    losses: Arc<Losses>,
    tracks: Vec<Track>,
    open: Vec<Vec<Open>>,
    /// By recording and stream.
    of_stream: Table<Option<usize>>,
    /// By recording and value of the field.
    of_value: HashMap<(usize, Box<[u8]>), usize>,
}

impl<'m> Timeline<'m> {
    pub(super) fn new(marks: &'m Marks, losses: Arc<Losses>) -> Self {
        Self {
            marks,
            losses,
            tracks: Vec::new(),
            open: Vec::new(),
            of_stream: Table::default(),
            of_value: HashMap::new(),
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
                match value.0 {
                    Value::Missing => self.track_of_stream(message, of),
                    _ => self.track_of_value(message, of, value, name),
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
            if self.open[track].len() < MOST_OPEN {
                self.open[track].push(open);
                place.phase = Phase::Begin;
            } else {
                self.losses.add(Loss::TooDeep, 1);
            }
        }
        place
    }

    /// Ends a slice. `begins` tells whether the event begins another, so that it cannot be the end
    /// itself.
    fn end(&mut self, place: &mut Place, slice: usize, key: &[u8], begins: bool, repeats: bool) {
        let open = &mut self.open[place.track];
        let is_it = |open: &Open| open.slice == slice && *open.key == *key;
        let Some(depth) = open.iter().rposition(is_it) else {
            if !repeats {
                self.losses.add(Loss::UnmatchedEnd, 1);
            }
            return;
        };
        let within = open.len() - depth - 1;
        open.truncate(depth);
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
        if self.of_value.len() >= MOST_TRACKS {
            self.losses.add(Loss::MoreTracks, 1);
            return self.track_of_stream(message, of);
        }
        self.of_value.insert(key, self.tracks.len());
        let number = match value {
            Value::Uint(value) => i32::try_from(value).ok(),
            Value::Sint(value) => i32::try_from(value).ok(),
            _ => None,
        };
        let created = i32::try_from(self.tracks.len()).unwrap_or(i32::MAX);
        self.add(Track {
            name: match name {
                Some(name) => text_of(name),
                None => format!("{} {}", self.marks.track_name(), text_of(value)),
            },
            rank: number.unwrap_or(created),
        })
    }

    fn add(&mut self, track: Track) -> usize {
        self.tracks.push(track);
        self.open.push(Vec::new());
        self.tracks.len() - 1
    }

    /// Counts the slices that are still open.
    pub(super) fn finish(&self) {
        let open = self.open.iter().flatten().filter(|open| !open.repeats);
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
