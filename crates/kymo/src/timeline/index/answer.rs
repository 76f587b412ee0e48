//! Answers from an index, and from the rows that it does not distinguish.

use std::collections::BTreeSet;

use kymo_index::{Answer, Grid, Index, Missing, Row};
use kymo_model::{Cursor, Event, Recording, Track, TrackPath, Walk};
use kymo_time::Timestamp;

use super::Done;
use crate::AnyRecording;
use crate::timeline::contributions::{ContributionSink, Contributions};
use crate::timeline::pass::run;
use crate::timeline::summary::{Bins, OwnGrid, Within};
use crate::timeline::tracks::stream_track;

/// Where rows are missing in more ranges, near ones are read together.
const MOST_RANGES: i128 = 64;

/// A track of which rows are missing.
struct Partial {
    number: u32,
    known: Bins,
    missing: Missing,
}

/// The bins of tracks from the index of their recording; rows that it does not distinguish are read again. `None` if
/// there is no index, or it is damaged.
pub(super) fn answer(
    done: &Done,
    recording: &AnyRecording,
    tracks: Option<&[(usize, TrackPath)]>,
    grid: &OwnGrid,
) -> Option<Vec<(Track, Bins)>> {
    let index = done.index.as_ref()?;
    let all: Vec<&Track> = index.tracks().collect();
    let wanted: BTreeSet<u32> = match tracks {
        None => (0..all.len() as u32).collect(),
        Some(tracks) => {
            let of_recording = tracks
                .iter()
                .filter(|(recording, _)| *recording == grid.recording);
            of_recording
                .filter_map(|(_, path)| done.numbers.get(path).copied())
                .collect()
        }
    };
    let mut found = Vec::new();
    let mut partial = Vec::new();
    let mut answer = Answer::new(&grid.spans);
    for number in wanted {
        index.fill(number, &grid.spans, &mut answer).ok()?;
        let (known, missing) = answer.take();
        match missing {
            None => found.push((all[number as usize].clone(), known)),
            Some(missing) => partial.push(Partial {
                number,
                known,
                missing,
            }),
        }
    }
    read_missing(recording, (index, &all), grid, &mut partial);
    for part in partial {
        let track = all[part.number as usize].clone();
        found.push((track, part.missing.complete(part.known)));
    }
    Some(found)
}

/// A part of a recording that is read again: rows from `begin` to `end` are looked at, both included.
struct Part {
    /// Where slices are known: before all rows from here on, those of [`Meta::open`](kymo_index::Meta) are open.
    open: Option<usize>,
    from: i64,
    begin: i64,
    end: i64,
}

/// What has to be read for some ranges.
fn parts(ranges: Vec<(i64, i64)>, spans: &Grid, index: &Index, has_slices: bool) -> Vec<Part> {
    let near = (i128::from(spans.end()) - i128::from(spans.begin())) / MOST_RANGES;
    let mut parts: Vec<Part> = Vec::new();
    for (begin, end) in ranges {
        // What ends may have begun long before.
        let open_at = &index.meta().open;
        let after = open_at.partition_point(|at| at.time <= begin);
        let open = after.checked_sub(1).filter(|_| has_slices);
        let from = match (has_slices, open) {
            (false, _) => begin,
            (true, None) => i64::MIN,
            (true, Some(open)) => open_at[open].time,
        };
        match parts.last_mut() {
            Some(before) if i128::from(from) - i128::from(before.end) <= near => {
                before.end = before.end.max(end);
            }
            _ => parts.push(Part {
                open,
                from,
                begin,
                end,
            }),
        }
    }
    parts
}

/// Reads the rows that are missing.
fn read_missing(
    recording: &AnyRecording,
    (index, all): (&Index, &[&Track]),
    grid: &OwnGrid,
    partial: &mut [Partial],
) {
    let spans = &grid.spans;
    let contributions = Contributions::new(recording);
    if contributions.is_plain() {
        return read_streams(recording, all, grid, partial);
    }
    let has_slices = contributions.has_slices();
    let ranges = partial.iter().flat_map(|part| part.missing.ranges());
    let mut ranges: Vec<(i64, i64)> = ranges
        .map(|&(begin, end)| (begin.max(spans.begin()), end.min(spans.end())))
        .collect();
    ranges.sort_unstable();
    let mut places = vec![None; all.len()];
    for (place, part) in partial.iter().enumerate() {
        places[part.number as usize] = Some(place);
    }
    for part in parts(ranges, spans, index, has_slices) {
        let within = Within {
            window: grid.window(part.from, part.end),
            first_chunks: Vec::new(),
        };
        let mut contributions = Contributions::new(recording);
        contributions.know(all.iter().copied());
        contributions.go_on(part.open.map(|open| &index.meta().open[open]));
        let mut reread = Reread {
            places: &places,
            partial,
            begin: part.begin,
        };
        run(recording, &mut contributions, &within, &mut reread);
    }
}

/// The same where each row is on the track of its stream, and no more than there: of a stream only those chunks are
/// read in which rows are missing.
fn read_streams(recording: &AnyRecording, all: &[&Track], grid: &OwnGrid, partial: &mut [Partial]) {
    let (own_begin, spans) = (grid.own_begin, &grid.spans);
    for stream in 0..recording.streams().len() {
        let track = stream_track(recording, stream);
        let is_it = |part: &&mut Partial| all[part.number as usize].path == track.path;
        let Some(part) = partial.iter_mut().find(is_it) else {
            continue;
        };
        for chunk in recording.chunks(stream) {
            let own = |time: Timestamp| time.as_nanos().saturating_sub(own_begin);
            let begin = chunk.begin_time.map_or(i64::MIN, own).max(spans.begin());
            let end = chunk.end_time.map_or(i64::MAX, own).min(spans.end());
            let ranges = part.missing.ranges();
            let after = ranges.partition_point(|range| range.1 < begin);
            if ranges.get(after).is_some_and(|range| range.0 <= end) {
                let missing = &mut part.missing;
                recording.walk(&chunk, ReadChunk { missing, own_begin });
            }
        }
    }
}

/// Adds the rows of a chunk where they are missing.
struct ReadChunk<'a> {
    missing: &'a mut Missing,
    own_begin: i64,
}

impl Walk for ReadChunk<'_> {
    type Output = ();

    fn walk<C: Cursor>(self, mut cursor: C) {
        // What is behind a fault is not in the index either.
        while let Ok(Some(event)) = cursor.next_event() {
            if let Some(time) = event.timestamp() {
                let own = time.as_nanos().saturating_sub(self.own_begin);
                self.missing.push(&Row::new(own, event.class_index()));
            }
        }
    }
}

/// Adds rows where they are missing.
struct Reread<'a> {
    /// By number of the track.
    places: &'a [Option<usize>],
    partial: &'a mut [Partial],
    /// Those before were added already.
    begin: i64,
}

impl ContributionSink for Reread<'_> {
    fn track(&mut self, _track: &Track) {}

    fn row(&mut self, track: u32, row: Row) {
        let place = self.places.get(track as usize).copied().flatten();
        if let Some(place) = place.filter(|_| row.time >= self.begin) {
            self.partial[place].missing.push(&row);
        }
    }
}
