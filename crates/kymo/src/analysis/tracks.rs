//! Tracks: the thing on which, or by which, an event happened.

use std::path::Path;
use std::sync::Arc;

use kymo_model::Recording;

use super::switch::Switch;
use crate::filter::FieldNames;
use crate::tracks::{Key, TrackKey, TrackTable, known_track_name};

/// What makes a track.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TrackBy {
    /// The tracks of a recording that has them (fields `track` and `track_name` in the common
    /// context of its events); otherwise its streams. Tracks of two recordings are never one.
    #[default]
    Recording,
    /// The values of fields: where they are the same, the track is, in whatever recording.
    Fields(FieldNames),
    /// The threads that run: the one that an event switched the processor to.
    Running(Switch),
}

impl TrackBy {
    /// What a column of tracks is called.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Recording => "track".to_string(),
            Self::Fields(names) => names.to_string(),
            Self::Running(switch) => switch.thread.to_string(),
        }
    }
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
    /// The title shown to people: its name and, where there are `several` recordings whose tracks
    /// may have the same one, the path of its own before it.
    pub fn title(&self, several: bool) -> String {
        match &self.recording {
            Some(path) if several => format!("{}: {}", path.display(), self.name),
            _ => self.name.clone(),
        }
    }
}

/// What the number of a track stands for.
pub(super) fn track<R: Recording>(recordings: &[R], table: &TrackTable, number: u32) -> Track {
    let path = |recording: usize| Some(recordings.get(recording)?.path().into());
    match table.key(number) {
        // An analysis has no tracks of series.
        None | Some(TrackKey::Series(..)) => Track {
            recording: None,
            number: None,
            name: "(other tracks)".to_string(),
        },
        Some(&TrackKey::Stream(recording, stream)) => Track {
            recording: path(recording),
            number: None,
            name: stream_name(&recordings[recording], stream),
        },
        Some(TrackKey::Own(recording, key)) => {
            let (number, name) = own_name(&recordings[*recording], key);
            Track {
                recording: path(*recording),
                number,
                name,
            }
        }
        Some(TrackKey::Unknown(processor)) => Track {
            recording: None,
            number: None,
            name: format!("(unknown, on {})", processor.text()),
        },
        Some(TrackKey::Fields(key)) => Track {
            recording: None,
            number: None,
            name: key.text(),
        },
    }
}

fn stream_name<R: Recording>(recording: &R, stream: usize) -> String {
    let stream = recording.streams().get(stream);
    stream.map_or_else(String::new, |stream| {
        crate::report::within(recording.path(), &stream.name)
    })
}

/// Number and name of a recording's own track.
fn own_name<R: Recording>(recording: &R, key: &Key) -> (Option<u64>, String) {
    let number = match key.parts().first() {
        Some(&Key::Uint(number)) => Some(number),
        _ => None,
    };
    let name = match key.parts() {
        [_, Key::Text(name)] => String::from_utf8_lossy(name).into_owned(),
        _ => number.map_or_else(String::new, |number| known_track_name(recording, number)),
    };
    let name = match name.is_empty() {
        true => number.map_or_else(|| "-".to_string(), |number| number.to_string()),
        false => name,
    };
    (number, name)
}
