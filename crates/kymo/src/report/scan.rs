//! Hands the chunks of recordings to threads.

use kymo_model::{Chunk, Recording};

use kymo_io::in_threads;

/// How recordings are gone through.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Threads to work with, the caller's included; at least 1.
    pub threads: usize,
    /// Whether the first fault ends the work.
    pub strict: bool,
    /// Called by any thread with the size in bytes of each chunk that is done.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("threads", &self.threads)
            .field("strict", &self.strict)
            .finish_non_exhaustive()
    }
}

impl Default for Options<'_> {
    /// As many threads as there are processors; faults are skipped.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            strict: false,
            progress: None,
        }
    }
}

/// A chunk among all chunks of all recordings.
pub(super) struct Unit<'r, R> {
    /// Position of the recording.
    pub(super) recording: usize,
    /// The recording.
    pub(super) source: &'r R,
    /// The chunk.
    pub(super) chunk: Chunk,
}

/// All chunks of some recordings, in order: by recording, stream, number.
pub(super) struct Units<'r, R> {
    recordings: &'r [R],
    /// `(first ordinal, recording, stream)`
    streams: Vec<(usize, usize, usize)>,
    len: usize,
}

impl<'r, R: Recording> Units<'r, R> {
    pub(super) fn new(recordings: &'r [R]) -> Self {
        let mut streams = Vec::new();
        let mut len = 0;
        for (number, recording) in recordings.iter().enumerate() {
            for stream in 0..recording.streams().len() {
                streams.push((len, number, stream));
                len += recording.chunk_count(stream);
            }
        }
        Self {
            recordings,
            streams,
            len,
        }
    }

    /// Leaves only the first chunks.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The chunk with this ordinal.
    pub(super) fn get(&self, ordinal: usize) -> Option<Unit<'r, R>> {
        let after = self
            .streams
            .partition_point(|&(first, _, _)| first <= ordinal);
        let &(first, recording, stream) = self.streams.get(after.checked_sub(1)?)?;
        let source = &self.recordings[recording];
        Some(Unit {
            recording,
            source,
            chunk: source.chunk(stream, ordinal - first)?,
        })
    }
}

/// Works on all chunks in all threads: each thread makes a part and does `work` on it for
/// every chunk it takes, by ordinal. `work` returns whether later chunks still matter.
/// The parts come in no particular order.
pub(super) fn scan<R: Recording, P: Send>(
    units: &Units<'_, R>,
    options: &Options<'_>,
    new_part: impl Fn() -> P + Sync,
    work: impl Fn(&mut P, usize, &Unit<'_, R>) -> bool + Sync,
) -> Vec<P> {
    in_threads(units.len, options.threads, new_part, |part, ordinal| {
        let Some(unit) = units.get(ordinal) else {
            return true;
        };
        let goes_on = work(part, ordinal, &unit);
        if let Some(progress) = options.progress {
            progress(unit.chunk.bytes);
        }
        goes_on
    })
}
