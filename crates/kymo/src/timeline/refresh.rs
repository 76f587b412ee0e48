//! Recordings that change while they are open.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use kymo_model::{Change, Drift, Recording, RefreshError, Refreshed, RowPlace, Shift};

use super::{Places, Timeline};
use crate::AnyRecording;
use crate::open::{self, Opened, Options};

/// The paths that a timeline was opened from, where recordings may appear.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    paths: Vec<PathBuf>,
    options: Options,
    shifts: Vec<Shift>,
    drifts: Vec<Option<Drift>>,
}

impl Watched {
    /// The paths of what was opened with some options.
    pub fn new(paths: &[PathBuf], options: &Options, opened: &Opened) -> Self {
        Self {
            paths: paths.to_vec(),
            options: options.clone(),
            shifts: opened.shifts.clone(),
            drifts: opened.drifts.clone(),
        }
    }
}

/// What a refresh has found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Changes {
    /// Of each recording, by its position. Those that are new come behind the others.
    pub recordings: Vec<Refreshed>,
    /// Recordings that have changed and cannot be read now. They are as they were; ask again.
    pub errors: Vec<RefreshError>,
}

impl Changes {
    /// Whether no recording has changed.
    pub fn is_empty(&self) -> bool {
        self.recordings.iter().all(Refreshed::is_empty)
    }

    /// Where the rows begin that were added or replaced, for a [query](super::Query::from).
    pub fn places(&self) -> Places {
        let mut places = Places::at_end();
        for (recording, refreshed) in self.recordings.iter().enumerate() {
            for changed in &refreshed.changes {
                if let Change::Appended { from } | Change::Replaced { from } = changed.change {
                    let place = places.get(recording, changed.stream).min(from);
                    places.set(recording, changed.stream, place);
                }
            }
        }
        places
    }
}

/// Rows of an earlier query are still being read, or the timeline was cloned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse;

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot refresh a timeline while its rows are being read")
    }
}

impl std::error::Error for InUse {}

impl Timeline {
    /// The same timeline, which looks for new recordings at a [refresh](Self::refresh), too.
    #[must_use]
    pub fn watching(self, watched: Watched) -> Self {
        Self {
            watched: Some(watched),
            ..self
        }
    }

    /// The recordings, to change how they are shown; `None` while rows of a query are being read.
    pub fn recordings_mut(&mut self) -> Option<&mut [AnyRecording]> {
        self.index = Arc::default();
        Arc::get_mut(&mut self.recordings).map(Vec::as_mut_slice)
    }

    /// Reads what was added to its recordings since they were opened or refreshed, and nothing else. A row keeps
    /// its [identity](super::RowId), a recording, a stream and an event class its position, unless a change
    /// says otherwise.
    ///
    /// # Errors
    ///
    /// The recordings are in use. What is wrong with one of them is among the [changes](Changes::errors).
    pub fn refresh(&mut self) -> Result<Changes, InUse> {
        // It is of what there was.
        self.index = Arc::default();
        let recordings = Arc::get_mut(&mut self.recordings).ok_or(InUse)?;
        let mut appeared = open::Appeared::default();
        if let Some(Watched { paths, options, .. }) = &self.watched {
            appeared = open::appeared(paths, options, recordings);
        }
        let mut changes = Changes::default();
        for (position, recording) in recordings.iter_mut().enumerate() {
            let parts = appeared
                .directories
                .iter()
                .any(|(parent, _)| *parent == position);
            let refreshed = match recording {
                AnyRecording::Ctf(_) | AnyRecording::Symbolized(_) if parts => {
                    let (own, others) = std::mem::take(&mut appeared.directories)
                        .into_iter()
                        .partition(|(parent, _)| *parent == position);
                    appeared.directories = others;
                    let own: Vec<(usize, _)> = own;
                    let own = own.into_iter().map(|(_, part)| part).collect();
                    match recording {
                        AnyRecording::Symbolized(trace) => trace.refresh_with(own),
                        AnyRecording::Ctf(trace) => trace.refresh_with(own),
                        other => other.refresh(),
                    }
                }
                other => other.refresh(),
            };
            changes.recordings.push(refreshed.unwrap_or_else(|error| {
                changes.errors.push(error);
                Refreshed::default()
            }));
        }
        for (mut recording, input) in appeared.recordings {
            let drifts = self.watched.as_ref().map(|watched| &watched.drifts);
            if let Some(Some(drift)) = drifts.and_then(|drifts| drifts.get(input)).copied()
                && let Err(error) = recording.correct_drift(drift)
            {
                changes
                    .errors
                    .push(RefreshError::new(recording.path(), &error));
                continue;
            }
            let shifts = self.watched.as_ref().map(|watched| &watched.shifts);
            let shift = shifts.and_then(|shifts| shifts.get(input)).copied();
            if let Err(error) = recording.shift(shift.unwrap_or_default()) {
                changes
                    .errors
                    .push(RefreshError::new(recording.path(), &error));
                continue;
            }
            let mut refreshed = Refreshed {
                has_other_classes: true,
                ..Refreshed::default()
            };
            for stream in 0..recording.streams().len() {
                let from = RowPlace::default();
                refreshed.push(stream, Change::Appended { from });
            }
            changes.recordings.push(refreshed);
            recordings.push(recording);
        }
        Ok(changes)
    }
}
