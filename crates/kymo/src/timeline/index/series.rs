//! Recordings of series that need no index: their rows are few, and their tracks known from metadata.

use kymo_index::Bin;
use kymo_model::{Recording, TrackRule};

use super::Overview;
use crate::AnyRecording;

/// Whether a recording has series alone, of at most this number of bytes.
pub(super) fn is_small(recording: &AnyRecording, most: u64) -> bool {
    let mut classes = 0..recording.event_classes().len();
    if most == 0
        || !classes.all(|class| matches!(recording.track_rule(class), TrackRule::Series { .. }))
    {
        return false;
    }
    let chunks = (0..recording.streams().len()).flat_map(|stream| recording.chunks(stream));
    let mut bytes = 0u64;
    for chunk in chunks {
        bytes = bytes.saturating_add(chunk.bytes);
        if bytes > most {
            return false;
        }
    }
    true
}

/// The tracks of such a recording, with the number of their rows and their times, without reading rows.
pub(super) fn overview(recording: &AnyRecording) -> Overview {
    /// Of a value.
    const BYTES: u64 = 8;
    let mut overview = Overview::default();
    for (class, info) in recording.event_classes().iter().enumerate() {
        let TrackRule::Series { first, values } = recording.track_rule(class) else {
            continue;
        };
        let own = |at: &usize| recording.streams()[*at].class == info.stream_class;
        let mut bin = Bin::default();
        for chunk in (0..recording.streams().len())
            .filter(own)
            .flat_map(|stream| recording.chunks(stream))
        {
            let (Some(begin), Some(end)) = (chunk.begin_time, chunk.end_time) else {
                continue;
            };
            let mut rows = Bin::default();
            rows.count = chunk.bytes / (BYTES * values.len().max(1) as u64);
            (rows.first, rows.last) = (begin.as_nanos(), end.as_nanos());
            rows.classes = 1 << class.min(63);
            bin.add(&rows);
        }
        if bin.count > 0 {
            let tracks = recording.tracks().iter().skip(first).take(values.len());
            overview
                .tracks
                .extend(tracks.map(|track| (track.clone(), bin.clone())));
        }
    }
    overview
}
