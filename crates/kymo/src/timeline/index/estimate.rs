//! What may have happened, as long as only the headers of chunks are known.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use kymo_index::{Bin, Grid};
use kymo_model::{Chunk, Recording, TrackPath};
use kymo_time::Timestamp;

use super::Shared;
use crate::timeline::summary::{OwnGrid, Summary, is_wanted};
use crate::timeline::tracks::stream_track;

/// What a row takes, as long as nothing is known.
const USUAL_ROW: u64 = 32;

/// The rows of each chunk of a recording, as far as it has been read.
#[derive(Debug)]
pub(super) struct Seen {
    recording: usize,
    streams: Vec<SeenStream>,
}

#[derive(Debug, Default)]
struct SeenStream {
    /// By chunk.
    rows: Vec<AtomicU32>,
    /// The chunk that is being read: all before it are known.
    at: AtomicUsize,
    /// The sizes and rows of those that have begun.
    bytes: AtomicU64,
    all: AtomicU64,
}

impl Seen {
    pub(super) fn new(recording: usize, source: &impl Recording) -> Self {
        let stream = |stream: usize| SeenStream {
            rows: (0..source.chunk_count(stream))
                .map(|_| AtomicU32::new(0))
                .collect(),
            ..SeenStream::default()
        };
        Self {
            recording,
            streams: (0..source.streams().len()).map(stream).collect(),
        }
    }

    /// Takes the rows of a part of a chunk; `bytes` is the size of the chunk if it begins.
    pub(super) fn add(&self, stream: usize, chunk: usize, rows: usize, bytes: Option<u64>) {
        let Some(counts) = self.streams.get(stream) else {
            return;
        };
        if let Some(known) = counts.rows.get(chunk) {
            known.fetch_add(u32::try_from(rows).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
        counts.at.fetch_max(chunk, Ordering::Relaxed);
        counts.all.fetch_add(rows as u64, Ordering::Relaxed);
        counts
            .bytes
            .fetch_add(bytes.unwrap_or(0), Ordering::Relaxed);
    }
}

impl SeenStream {
    /// The rows of a chunk that was read.
    fn rows(&self, chunk: usize) -> Option<u64> {
        let is_read = chunk < self.at.load(Ordering::Relaxed);
        let rows = self.rows.get(chunk).filter(|_| is_read)?;
        Some(rows.load(Ordering::Relaxed).into())
    }

    /// What a row takes.
    fn row_size(&self) -> Option<u64> {
        row_size(&self.bytes, &self.all)
    }
}

fn row_size(bytes: &AtomicU64, rows: &AtomicU64) -> Option<u64> {
    let (bytes, rows) = (bytes.load(Ordering::Relaxed), rows.load(Ordering::Relaxed));
    bytes.checked_div(rows).filter(|&row| row > 0)
}

impl Shared {
    /// Guesses what happened from the times of chunks, and their rows: those of chunks that were read, and as many as
    /// their sizes allow of others.
    pub(super) fn estimate(
        &self,
        grid: &OwnGrid,
        tracks: Option<&[(usize, TrackPath)]>,
        summary: &mut Summary,
    ) {
        let recording = &self.timeline.recordings[grid.recording];
        let usual = row_size(&self.bytes, &self.rows).unwrap_or(USUAL_ROW);
        let seen = self.seen().clone();
        let seen = seen.filter(|seen| seen.recording == grid.recording);
        for stream in 0..recording.streams().len() {
            let track = stream_track(recording, stream);
            if is_wanted(tracks, grid.recording, &track.path) {
                let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
                let seen = seen.as_ref().and_then(|seen| seen.streams.get(stream));
                let row = seen.and_then(SeenStream::row_size).unwrap_or(usual);
                for chunk in recording.chunks(stream) {
                    let known = seen.and_then(|seen| seen.rows(chunk.number));
                    let rows = known.unwrap_or_else(|| (chunk.bytes / row).max(1));
                    if rows > 0 {
                        estimate_chunk(&chunk, grid.own_begin, rows, &grid.spans, &mut bins);
                    }
                }
                summary.add(grid, track, bins.into_iter().collect(), true);
            }
        }
    }
}

/// Spreads the rows that a chunk may have over its time.
fn estimate_chunk(
    chunk: &Chunk,
    own_begin: i64,
    rows: u64,
    grid: &Grid,
    bins: &mut BTreeMap<u64, Bin>,
) {
    let (Some(begin), Some(end)) = (chunk.begin_time, chunk.end_time) else {
        return;
    };
    let own = |time: Timestamp| time.as_nanos().saturating_sub(own_begin);
    let (begin, end) = (own(begin), own(end.max(begin)));
    let (from, to) = (begin.max(grid.begin()), end.min(grid.end()));
    let (Some(first), Some(last)) = (grid.position(from), grid.position(to)) else {
        return;
    };
    let rows = rows as f64;
    let length = end.abs_diff(begin).max(1) as f64;
    for position in first..=last {
        let span_begin = i128::from(grid.begin()) + position as i128 * i128::from(grid.span());
        let span_end = span_begin + i128::from(grid.span()) - 1;
        let mut bin = Bin::EMPTY;
        bin.first = span_begin.max(from.into()) as i64;
        bin.last = span_end.min(to.into()) as i64;
        let share = bin.last.abs_diff(bin.first).max(1) as f64 / length;
        bin.count = ((rows * share.min(1.0)).round() as u64).max(1);
        bins.entry(position as u64).or_default().add(&bin);
    }
}
