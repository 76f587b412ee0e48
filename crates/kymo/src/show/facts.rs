//! What showing needs to know of recordings and streams beside their events.

use kymo_ctf::class::EnvironmentValue;
use kymo_model::{Recording, StreamInfo};

use crate::AnyRecording;

/// Facts of a recording, of its trace environment above all.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) path: String,
    pub(super) name: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) hostname: Option<String>,
    pub(super) domain: Option<String>,
    pub(super) procname: Option<String>,
    pub(super) vpid: Option<String>,
}

impl Facts {
    pub(super) fn of(recording: &AnyRecording) -> Self {
        let environment = |name| match recording.as_ctf()?.class().environment(name)? {
            EnvironmentValue::Integer(value) => Some(value.to_string()),
            EnvironmentValue::Text(text) => Some(text.clone()),
        };
        Self {
            path: recording.path().display().to_string(),
            name: recording.name().map(str::to_owned),
            uid: recording.uid().map(str::to_owned),
            hostname: environment("hostname"),
            domain: environment("domain"),
            procname: environment("procname"),
            vpid: environment("vpid"),
        }
    }
}

/// The number of a stream: its own, or its position where it has none.
pub(super) fn stream_id(streams: &[StreamInfo], stream: usize) -> u64 {
    streams[stream].id.unwrap_or(stream as u64)
}
