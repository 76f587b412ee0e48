//! Everything that a trace holds, decoded through the library.

use std::path::Path;

use kymo::AnyRecording;
use kymo_model::{Cursor, Event, FaultReport, Recording, Scope};

use super::tree::{Grower, Value};
use crate::Outcome;

/// Opens the traces at a path.
pub(crate) fn open(path: &Path) -> Outcome<Vec<AnyRecording>> {
    let opened = kymo::open::open(&[path.to_path_buf()], &kymo::open::Options::default());
    match opened.errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(opened.recordings),
    }
}

/// The times of all events, in nanoseconds.
pub(crate) fn times(path: &Path) -> Outcome<Vec<i64>> {
    let mut times = Vec::new();
    for recording in open(path)? {
        for stream in 0..recording.streams().len() {
            for chunk in recording.chunks(stream) {
                let mut cursor = recording.cursor(&chunk);
                while let Ok(Some(event)) = cursor.next_event() {
                    times.extend(event.timestamp().map(|time| time.as_nanos()));
                }
            }
        }
    }
    Ok(times)
}

/// An event with all its values.
pub(crate) struct Decoded {
    /// Number of its class.
    pub(crate) class: u64,
    /// Its time in ticks.
    pub(crate) ticks: Option<u64>,
    /// Its scopes.
    pub(super) scopes: Vec<(Scope, Value)>,
}

impl Decoded {
    /// The structure of a scope.
    pub(super) fn scope(&self, scope: Scope) -> Option<&Value> {
        self.scopes
            .iter()
            .find(|(this, _)| *this == scope)
            .map(|(_, value)| value)
    }
}

/// All events of a trace, stream by stream, and all that is wrong with it.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) events: Vec<Decoded>,
    pub(crate) faults: Vec<FaultReport>,
}

/// Decodes a whole trace.
pub(crate) fn decode(trace: &Path) -> Result<Contents, String> {
    let mut contents = Contents::default();
    for recording in open(trace).map_err(|error| error.to_string())? {
        contents.faults.extend_from_slice(recording.faults());
        for stream in 0..recording.streams().len() {
            for chunk in recording.chunks(stream) {
                let mut cursor = recording.cursor(&chunk);
                loop {
                    let event = match cursor.next_event() {
                        Ok(Some(event)) => event,
                        Ok(None) => break,
                        Err(fault) => {
                            contents.faults.push(recording.report(&chunk, None, fault));
                            break;
                        }
                    };
                    let schema = &event.class().schema;
                    let mut grower = Grower::new(schema);
                    if let Err(fault) = event.visit(&mut grower) {
                        let place = (event.number(), event.class_index());
                        contents
                            .faults
                            .push(recording.report(&chunk, Some(place), fault));
                        break;
                    }
                    contents.events.push(Decoded {
                        class: event.class().id,
                        ticks: event.ticks(),
                        scopes: grower
                            .roots
                            .into_iter()
                            .map(|(root, value)| (schema.scope_of(root), value))
                            .collect(),
                    });
                }
            }
        }
    }
    Ok(contents)
}
