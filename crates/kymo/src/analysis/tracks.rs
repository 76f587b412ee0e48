//! Tracks: on what, or by whom, an event happened.

use std::path::Path;
use std::sync::Arc;

use kymo_model::{EventClass, Kind, Recording, Scope, Value};

use super::intern::Interner;
use super::key;
use crate::filter::FieldNames;

/// Where the fields of a recording's own tracks are.
const OWN: [&str; 2] = ["common_context.track", "common_context.track_name"];

/// What makes a track.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TrackBy {
    /// The tracks of a recording that has them (fields `track` and `track_name` in the common
    /// context of its events); otherwise its streams. Tracks of two recordings are never one.
    #[default]
    Recording,
    /// The values of fields: where they are the same, the track is, in whatever recording.
    Fields(FieldNames),
}

impl TrackBy {
    /// What a column of tracks is called.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Recording => "track".to_string(),
            Self::Fields(names) => names.to_string(),
        }
    }
}

/// The fields of a recording's own tracks.
pub(crate) fn own_fields() -> FieldNames {
    FieldNames::at(&OWN)
}

/// Whether the events of a class tell tracks of their own.
pub(crate) fn has_own(class: &EventClass) -> bool {
    let schema = &class.schema;
    let Some(context) = schema.root(Scope::CommonContext) else {
        return false;
    };
    let is = |name: &str, kind: fn(&Kind) -> bool| {
        let child = schema.child(context, name);
        child.is_some_and(|child| kind(&schema.field(child).kind))
    };
    is("track", |kind| matches!(kind, Kind::Uint { .. }))
        && is("track_name", |kind| matches!(kind, Kind::Text))
}

/// A track of an analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Path of the recording it is of; `None` where it is made of fields, which several
    /// recordings may have.
    pub recording: Option<Arc<Path>>,
    /// Its number, where the recording gives one.
    pub number: Option<u64>,
    /// Its name: that of the recording's track or stream, or the values of the fields.
    pub name: String,
}

impl Track {
    /// What people are told it is: its name and, where there are `several` recordings whose tracks
    /// may have the same one, the path of its own before it.
    pub fn title(&self, several: bool) -> String {
        match &self.recording {
            Some(path) if several => format!("{}: {}", path.display(), self.name),
            _ => self.name.clone(),
        }
    }
}

/// The tracks that were met, numbered as they came; of very many the later ones are one.
pub(super) struct Tracks {
    known: Interner,
    /// By recording and stream, the track of its last event: often it is that of the next.
    last: Vec<Vec<Option<u32>>>,
    /// What the next track is known by.
    name: Vec<u8>,
    /// Of the recordings.
    paths: Vec<Arc<Path>>,
}

// What a track is known by begins with what it is: a stream (its recording and itself), a
// recording's own track (its recording and values), or values alone.
const STREAM: u8 = 0;
const OWN_TRACK: u8 = 1;
const VALUES: u8 = 2;

impl Tracks {
    pub(super) fn new<R: Recording>(recordings: &[R]) -> Self {
        Self {
            known: Interner::default(),
            last: recordings
                .iter()
                .map(|of| vec![None; of.streams().len()])
                .collect(),
            name: Vec::new(),
            paths: recordings.iter().map(|of| of.path().into()).collect(),
        }
    }

    /// The track of a stream: its recording and itself.
    #[inline]
    pub(super) fn of_stream(&mut self, stream: (usize, usize)) -> u32 {
        if let Some(last) = self.last[stream.0][stream.1]
            && let Some((&[STREAM, ..], _)) = self.split(last)
        {
            return last;
        }
        let position = (stream.1 as u64).to_le_bytes();
        let number = self.find(STREAM, stream.0, &position);
        self.last[stream.0][stream.1] = Some(number);
        number
    }

    /// The track that these values make of an event of a stream; `own` is the recording of whose
    /// own tracks it is one.
    #[inline]
    pub(super) fn of_values(
        &mut self,
        own: Option<usize>,
        values: &[u8],
        stream: (usize, usize),
    ) -> u32 {
        if let Some(last) = self.last[stream.0][stream.1]
            && let Some((&[what, ..], known)) = self.split(last)
            && known == values
            && (what == OWN_TRACK) == own.is_some()
        {
            return last;
        }
        let number = match own {
            Some(recording) => self.find(OWN_TRACK, recording, values),
            None => self.find(VALUES, 0, values),
        };
        self.last[stream.0][stream.1] = Some(number);
        number
    }

    #[inline]
    fn find(&mut self, what: u8, recording: usize, values: &[u8]) -> u32 {
        self.name.clear();
        self.name.push(what);
        self.name
            .extend_from_slice(&(recording as u64).to_le_bytes());
        self.name.extend_from_slice(values);
        self.known.number(&self.name)
    }

    /// What a track is and its recording, and its values.
    #[inline]
    fn split(&self, number: u32) -> Option<(&[u8; 9], &[u8])> {
        self.known.string(number)?.split_first_chunk()
    }

    /// What a number stands for.
    pub(super) fn track<R: Recording>(&self, recordings: &[R], number: u32) -> Track {
        let Some((&[what, recording @ ..], values)) = self.split(number) else {
            return Track {
                recording: None,
                number: None,
                name: "(other tracks)".to_string(),
            };
        };
        let recording = u64::from_le_bytes(recording) as usize;
        let of = recordings.get(recording).filter(|_| what != VALUES);
        let (number, name) = match what {
            STREAM => (None, stream_name(of, values)),
            OWN_TRACK => own_name(values),
            _ => (None, key::text(values)),
        };
        Track {
            recording: of.and_then(|_| self.paths.get(recording).map(Arc::clone)),
            number,
            name,
        }
    }
}

/// The name of a stream, told by its position.
fn stream_name<R: Recording>(of: Option<&R>, position: &[u8]) -> String {
    let position = position
        .first_chunk()
        .map(|&bytes| u64::from_le_bytes(bytes));
    let name = of.zip(position).and_then(|(of, position)| {
        let stream = of.streams().get(position as usize)?;
        Some(crate::report::within(of.path(), &stream.name))
    });
    name.unwrap_or_default()
}

/// Number and name of a recording's own track.
fn own_name(values: &[u8]) -> (Option<u64>, String) {
    let mut values = key::values(values);
    let number = match values.next() {
        Some(Value::Uint(number)) => Some(number),
        _ => None,
    };
    let name = match values.next() {
        Some(Value::Text(name)) if !name.is_empty() => String::from_utf8_lossy(name).into_owned(),
        _ => number.map_or_else(|| "-".to_string(), |number| number.to_string()),
    };
    (number, name)
}

#[cfg(test)]
mod tests {
    use kymo_text::Line;

    use super::*;
    use crate::testing::Fake;

    #[test]
    fn tracks_are_streams_own_tracks_or_values() {
        let mut of = Fake::default();
        of.stream("cpu0", Vec::new());
        of.stream("cpu1", Vec::new());
        let mut other = Fake::default();
        other.stream("cpu0", Vec::new());
        let recordings = [of, other];
        let mut tracks = Tracks::new(&recordings);
        let values = |values: &[Value<'_>]| {
            let mut line = Line::new();
            values
                .iter()
                .for_each(|&value| key::write(value, &mut line));
            line
        };
        let worker = values(&[Value::Uint(7), Value::Text(b"worker 7")]);
        let nameless = values(&[Value::Uint(7), Value::Text(b"")]);
        let worker = worker.as_bytes();
        assert_eq!(tracks.of_stream((0, 1)), 0);
        assert_eq!(tracks.of_values(Some(0), worker, (0, 0)), 1);
        assert_eq!(
            tracks.of_values(Some(1), worker, (1, 0)),
            2,
            "of another recording"
        );
        assert_eq!(tracks.of_values(None, worker, (0, 0)), 3);
        assert_eq!(tracks.of_values(Some(1), nameless.as_bytes(), (1, 0)), 4);
        assert_eq!(tracks.of_stream((0, 1)), 0);
        assert_eq!(tracks.of_values(Some(1), worker, (1, 0)), 2);
        assert_eq!(tracks.of_values(Some(1), worker, (1, 0)), 2, "once more");
        assert_eq!(tracks.of_values(None, worker, (1, 0)), 3);
        assert_eq!(
            tracks.of_stream((1, 0)),
            5,
            "a stream with tracks of its own, too"
        );
        let told: Vec<_> = (0..7)
            .map(|number| tracks.track(&recordings, number))
            .map(|track| (track.recording.is_some(), track.number, track.name))
            .collect();
        let told: Vec<_> = told
            .iter()
            .map(|(of, n, name)| (*of, *n, &**name))
            .collect();
        assert_eq!(
            told,
            [
                (true, None, "cpu1"),
                (true, Some(7), "worker 7"),
                (true, Some(7), "worker 7"),
                (false, None, "7, worker 7"),
                (true, Some(7), "7"),
                (true, None, "cpu0"),
                (false, None, "(other tracks)"),
            ]
        );
    }
}
