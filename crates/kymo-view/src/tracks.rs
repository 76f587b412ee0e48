//! The tracks of rows: numbers for tracks, and what a row adds to which of them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kymo::timeline::{Batch, Query, QueryError, RowTracks};
use kymo_model::{Track, TrackPath};

use crate::Scene;

/// Tracks that have numbers at most; rows of others are not shown one by one.
const MOST_TRACKS: usize = 1 << 20;

/// The numbers of tracks, which are the same as long as the program runs.
#[derive(Debug, Default)]
pub(crate) struct Tracks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<(usize, TrackPath), u32>,
    tracks: Vec<(usize, Track)>,
}

impl Tracks {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a track, which it gets if it has none.
    pub(crate) fn number(&self, recording: usize, track: &Track) -> Option<u32> {
        let mut known = self.lock();
        let key = (recording, track.path.clone());
        if let Some(&number) = known.numbers.get(&key) {
            return Some(number);
        }
        let number = known.tracks.len();
        if number >= MOST_TRACKS {
            return None;
        }
        known.numbers.insert(key, number as u32);
        known.tracks.push((recording, track.clone()));
        Some(number as u32)
    }

    /// A track and the position of its recording.
    pub(crate) fn get(&self, number: u32) -> Option<(usize, Track)> {
        self.lock().tracks.get(number as usize).cloned()
    }
}

impl Tracks {
    /// Calls for each run of tracks from a number on that are of the same recording: with the first number and the
    /// recording.
    pub(crate) fn for_each_run(
        &self,
        first: u32,
        mut take: impl FnMut(u32, usize, &[(usize, Track)]),
    ) {
        let known = self.lock();
        let mut number = first;
        let rest = known.tracks.get(first as usize..).unwrap_or_default();
        for run in rest.chunk_by(|a, b| a.0 == b.0) {
            take(number, run[0].0, run);
            number += run.len() as u32;
        }
    }
}

/// Finds the tracks of rows in the batches of a query.
#[derive(Debug)]
pub(crate) struct Classifier<'s> {
    rows: RowTracks<'s>,
    tracks: &'s Tracks,
    /// By recording, and the number there: that of the program.
    numbers: Vec<Vec<Option<u32>>>,
}

/// What a row adds to a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    /// The track.
    pub(crate) track: u32,
    /// The value of a series; `None` of an event and of what is not known.
    pub(crate) value: Option<f64>,
}

impl<'s> Classifier<'s> {
    /// Asks a query for what it needs, too.
    ///
    /// # Errors
    ///
    /// The query has a column that does not exist.
    pub(crate) fn new(scene: &'s Scene, query: &mut Query) -> Result<Self, QueryError> {
        Ok(Self {
            rows: RowTracks::new(&scene.timeline, query)?,
            tracks: &scene.tracks,
            numbers: vec![Vec::new(); scene.recordings().len()],
        })
    }

    /// The parts of a row.
    pub(crate) fn parts(&mut self, batch: &Batch, row: usize) -> Vec<Part> {
        let recording = batch.id(row).recording as usize;
        let entries = self.rows.of(batch, row).to_vec();
        let numbers = &mut self.numbers[recording];
        let new = self.rows.tracks(recording).iter().skip(numbers.len());
        numbers.extend(new.map(|track| self.tracks.number(recording, track)));
        let parts = entries.iter().filter_map(|entry| {
            let track = numbers[entry.track() as usize]?;
            let value = entry.value();
            Some(Part { track, value })
        });
        parts.collect()
    }
}
