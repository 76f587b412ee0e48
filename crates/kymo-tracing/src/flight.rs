//! The flight recorder: the newest packets, in memory of a fixed size.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::recorder::{Recorder, Store, of_parent};
use crate::sink::{self, Packer};

/// Keeps the newest events in memory, and writes them when it is asked to.
///
/// The recording goes on as long as there is a layer.
pub struct FlightRecorder {
    recorder: Arc<Recorder>,
    events_bytes: usize,
}

/// What a snapshot has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Packets that were written.
    pub packets: usize,
    /// Packets that were overwritten with newer events while the snapshot was taken.
    pub overwritten: usize,
}

impl std::fmt::Debug for FlightRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlightRecorder").finish_non_exhaustive()
    }
}

impl FlightRecorder {
    pub(crate) fn new(recorder: Arc<Recorder>, events_bytes: usize) -> Self {
        Self {
            recorder,
            events_bytes,
        }
    }

    /// Writes a trace of every event that is in memory, also those of packets that are not full. No thread is held up,
    /// and everything stays in memory.
    ///
    /// The directory is created, or must be empty. Its metadata is written last: before that, it is not a trace.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` where there is something in the directory; those of the system. `Unsupported` in a child that came of
    /// a fork: the recording stays with its parent.
    pub fn snapshot(&self, directory: impl AsRef<Path>) -> io::Result<Snapshot> {
        if self.recorder.is_of_parent() {
            return Err(of_parent());
        }
        let directory = directory.as_ref();
        sink::create_directory(directory)?;
        let mut snapshot = Snapshot::default();
        let Store::Pool(pool) = &self.recorder.store else {
            return Ok(snapshot);
        };
        let mut packer = Packer::new(self.recorder.uuid, self.events_bytes);
        let all = pool.all(&self.recorder.clock, self.recorder.take_lost());
        for piece in all
            .iter()
            .flat_map(|piece| [piece.lead(false), Some(piece.clone())])
            .flatten()
        {
            let Some(packet) = packer.packet(&piece) else {
                snapshot.overwritten += 1;
                continue;
            };
            let path = directory.join(format!("stream-{}", piece.stream));
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            file.write_all(packet)?;
            snapshot.packets += 1;
        }
        let text = self.recorder.classes.text();
        sink::write_metadata(directory, &text)?;
        Ok(snapshot)
    }
}
