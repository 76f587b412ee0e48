//! Slices and states, each as a whole.

use std::borrow::Cow;
use std::ops::ControlFlow;

use kymo_model::batch::RowId;
use kymo_model::{EventClass, FaultReport, Recording, SliceRole, Track};
use kymo_time::Timestamp;

use super::contributions::{MOST_OPEN, duration_of};
use super::pass::{TakeRows, run_plan};
use super::summary::Within;
use super::tracks::{TrackEntry, TrackFinder};
use super::{RowPlan, Timeline};
use crate::pipeline::{self, RowRun, Window};
use crate::tracks::{Ended, OpenSlices, TrackPlan, text_of};

/// What [`Timeline::for_each_slice`] did not hand over.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MissingSlices {
    /// Slices that were left out since more than 65,536 were open at once.
    pub dropped: u64,
    /// Damage that was met; at most [`MOST_FAULTS`](crate::report::MOST_FAULTS).
    pub faults: Vec<FaultReport>,
    /// How many faults there are beyond those.
    pub more_faults: u64,
}

/// A slice or state of a track.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Slice<'a> {
    /// What identifies it: its first row.
    pub id: RowId,
    /// The track, and its number among those with rows that begin or end slices.
    pub track: (u32, &'a Track),
    /// The value of the field that names it, else the name of its first row's event class.
    pub name: Cow<'a, str>,
    /// Position of the event class of its first row.
    pub class: usize,
    /// When it begins.
    pub begin: Timestamp,
    /// When it ends; `None` if the recording ends before.
    pub end: Option<Timestamp>,
}

impl Timeline {
    /// Hands over the slices and states of a recording: each at the row that ends it, and after all rows those that do
    /// not end. `take` may end it. Returns what was left out.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use kymo::timeline::Timeline;
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/chrome/all-phases");
    ///
    /// let opened = kymo::open::open(&[path.into()], &Default::default());
    /// let timeline = Timeline::new(opened.recordings);
    /// let mut names = Vec::new();
    /// timeline.for_each_slice(0, 1, |slice| {
    ///     names.push(slice.name.into_owned());
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(names[..2], ["outer", "inner"]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the recording does not exist.
    pub fn for_each_slice(
        &self,
        recording: usize,
        threads: usize,
        take: impl FnMut(Slice<'_>) -> ControlFlow<()>,
    ) -> MissingSlices {
        let source = &self.recordings[recording];
        let classes = 0..source.event_classes().len();
        let roles: Vec<_> = classes.map(|class| source.roles(class).slice).collect();
        if roles.iter().all(|role| *role == SliceRole::Instant) {
            return MissingSlices::default();
        }
        let mut pairing = Pairing {
            recording: recording as u32,
            classes: source.event_classes(),
            roles,
            finder: TrackFinder::new(source),
            entries: Vec::new(),
            open: OpenSlices::new(MOST_OPEN, MOST_OPEN),
            dropped: 0,
            take,
            is_done: false,
        };
        let one = std::slice::from_ref(source);
        let plan = TrackPlan::of_rules(one, RowPlan::without_columns(one), true);
        let within = Within {
            window: Window::ALL,
            first_chunks: Vec::new(),
        };
        let options = pipeline::Options {
            threads: threads.max(1),
            ..pipeline::Options::default()
        };
        let met = run_plan(one, &plan, &within, &options, &mut pairing);
        pairing.finish();
        let dropped = pairing.open.iter().map(|(.., dropped)| dropped);
        MissingSlices {
            dropped: dropped.fold(pairing.dropped, u64::saturating_add),
            faults: met.faults,
            more_faults: met.more_faults,
        }
    }
}

/// What has begun.
struct Begun {
    id: RowId,
    class: usize,
    begin: Timestamp,
    /// `None` for that of the class.
    name: Option<String>,
}

/// Finds the ends of slices.
struct Pairing<'r, F> {
    recording: u32,
    classes: &'r [EventClass],
    /// By class.
    roles: Vec<SliceRole>,
    finder: TrackFinder<'r>,
    /// What the row in hand is on its tracks.
    entries: Vec<TrackEntry>,
    open: OpenSlices<Begun>,
    dropped: u64,
    take: F,
    is_done: bool,
}

impl<F: FnMut(Slice<'_>) -> ControlFlow<()>> Pairing<'_, F> {
    fn hand_over(&mut self, track: u32, begun: Begun, end: Option<Timestamp>) {
        let name = match begun.name {
            Some(name) => Cow::Owned(name),
            None => Cow::Borrowed(self.classes[begun.class].name.as_deref().unwrap_or("")),
        };
        let slice = Slice {
            id: RowId {
                recording: self.recording,
                ..begun.id
            },
            track: (track, &self.finder.tracks()[track as usize]),
            name,
            class: begun.class,
            begin: begun.begin,
            end,
        };
        self.is_done = self.is_done || (self.take)(slice).is_break();
    }

    /// Hands over what does not end.
    fn finish(&mut self) {
        for track in 0..self.finder.tracks().len() as u32 {
            while let Some(begun) = self.open.pop(track) {
                self.hand_over(track, begun, None);
            }
        }
    }
}

impl<F: FnMut(Slice<'_>) -> ControlFlow<()>> TakeRows for Pairing<'_, F> {
    fn rows(&mut self, run: RowRun<'_>, plan: &TrackPlan) -> bool {
        let stream = run.stream;
        for (row, id) in run.with_ids() {
            let class = row.message.class;
            let role = self.roles[class];
            let (Some(time), Some(class_tracks)) = (row.message.time, &plan.classes(0)[class])
            else {
                continue;
            };
            if role == SliceRole::Instant {
                continue;
            }
            self.entries.clear();
            self.finder
                .find(stream, class, class_tracks, row.values, &mut self.entries);
            let Some(&TrackEntry::Row(track)) = self.entries.last() else {
                continue;
            };
            let begun = || Begun {
                id,
                class,
                begin: time,
                name: class_tracks.name.map(|name| text_of(row.values.get(name))),
            };
            if let Some(duration) = class_tracks.duration {
                let duration = duration_of(row.values.get(duration));
                let end = time.as_nanos().saturating_add_unsigned(duration);
                self.hand_over(track, begun(), Some(Timestamp::from_nanos(end)));
                continue;
            }
            match self.open.step(role, track, begun) {
                Some(Ended::Slice(begun)) => self.hand_over(track, begun, Some(time)),
                Some(Ended::Dropped) => self.dropped += 1,
                Some(Ended::Nothing) | None => {}
            }
        }
        !self.is_done
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::AnyRecording;

    #[test]
    fn slices_have_names_and_ends() {
        let text = r#"[
            {"ph":"B","name":"outer","pid":1,"tid":2,"ts":1},
            {"ph":"B","name":"inner","pid":1,"tid":2,"ts":2},
            {"ph":"X","name":"whole","pid":1,"tid":3,"ts":2.5,"dur":7},
            {"ph":"E","pid":1,"tid":2,"ts":3},
            {"ph":"i","name":"instant","pid":1,"tid":2,"ts":3.5},
            {"ph":"E","pid":1,"tid":2,"ts":4},
            {"ph":"E","pid":1,"tid":2,"ts":5},
            {"ph":"B","name":"open","pid":1,"tid":2,"ts":6}
        ]"#;
        let path = Path::new("x.json");
        let recording = kymo_perfetto::Recording::from_bytes(path, text.as_bytes()).unwrap();
        let timeline = Timeline::new(vec![AnyRecording::Perfetto(recording)]);
        let mut slices = Vec::new();
        let missing = timeline.for_each_slice(0, 2, |slice| {
            let end = slice.end.map(Timestamp::as_nanos);
            let name = slice.name.into_owned();
            slices.push((name, slice.track.0, slice.begin.as_nanos(), end));
            ControlFlow::Continue(())
        });
        let slices: Vec<_> = slices
            .iter()
            .map(|(name, track, begin, end)| (&name[..], *track, *begin, *end))
            .collect();
        assert_eq!(
            (missing, &slices[..]),
            (
                MissingSlices::default(),
                &[
                    ("whole", 1, 2_500, Some(9_500)),
                    ("inner", 0, 2_000, Some(3_000)),
                    ("outer", 0, 1_000, Some(4_000)),
                    ("open", 0, 6_000, None),
                ][..]
            )
        );
        let mut first = 0;
        timeline.for_each_slice(0, 1, |_| {
            first += 1;
            ControlFlow::Break(())
        });
        assert_eq!(first, 1);
    }
}
