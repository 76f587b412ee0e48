//! What may have happened, as long as only the headers of chunks are known.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use kymo_index::{Bin, Grid};
use kymo_model::{Chunk, Recording, TrackPath};
use kymo_time::Timestamp;

use super::Shared;
use crate::timeline::summary::{OwnGrid, Summary, is_wanted};
use crate::timeline::tracks::stream_track;

/// What a row takes, as long as nothing is known.
const USUAL_ROW: u64 = 32;

impl Shared {
    /// Guesses what happened from the sizes of chunks and their times.
    pub(super) fn estimate(
        &self,
        grid: &OwnGrid,
        tracks: Option<&[(usize, TrackPath)]>,
        summary: &mut Summary,
    ) {
        let of = &self.timeline.recordings[grid.recording];
        let (rows, bytes) = (
            self.rows.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        );
        let row = (bytes.checked_div(rows))
            .filter(|&row| row > 0)
            .unwrap_or(USUAL_ROW);
        for stream in 0..of.streams().len() {
            let track = stream_track(of, stream);
            if is_wanted(tracks, grid.recording, &track.path) {
                let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
                for chunk in of.chunks(stream) {
                    estimate_chunk(&chunk, grid.own_begin, row, &grid.spans, &mut bins);
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
    row: u64,
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
    let rows = (chunk.bytes / row).max(1) as f64;
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
