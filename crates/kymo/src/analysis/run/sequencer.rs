//! Hands the rows of a run to an analysis.

use std::ops::ControlFlow;

use kymo_model::{FaultReport, Value};
use kymo_text::Line;

use super::{Analysis, BEGINS, ClassExtra, Coverage, ENDS, Occurrence, Role, SEEN, cut};
use crate::analysis::switch::Running;
use crate::pipeline::{Forced, Layer, Output, Predicate, RowRun, Select, may_be_incomplete};
use crate::report::MOST_FAULTS;
use crate::show::{Message, MessageKind, Sink};
use crate::timeline::Filler;
use crate::tracks::{Edge, RowKey, TrackPlan, TrackTable};
use crate::{AnyRecording, Discarded};

/// Wants what another one wants, of the classes that are looked at.
pub(super) struct Narrowed<'a> {
    pub(super) select: &'a dyn Select,
    pub(super) plan: &'a TrackPlan,
    /// By recording and class, whether it is wanted all the same.
    pub(super) forced: &'a [Vec<bool>],
}

impl Select for Narrowed<'_> {
    fn inner(&self) -> &dyn Select {
        self.select
    }

    fn predicate(&self) -> Predicate<'_> {
        let forced = Forced::new(self.forced);
        self.select.predicate().within(Layer::Forced(forced))
    }

    fn wants_class(&self, recording: usize, source: &AnyRecording, class: usize) -> bool {
        self.plan.classes(recording)[class].is_some()
            && (self.forced[recording][class] || self.select.wants_class(recording, source, class))
    }
}

/// Hands the events to the analysis.
pub(super) struct Sequencer<'a, A> {
    pub(super) plan: &'a TrackPlan,
    /// By recording and class; `None` of classes that only show which thread runs.
    pub(super) extras: &'a [Vec<Option<ClassExtra>>],
    pub(super) running: Option<&'a mut Running>,
    pub(super) tracks: &'a mut TrackTable,
    pub(super) analysis: &'a mut A,
    pub(super) resolution: i64,
    pub(super) events: u64,
    pub(super) untimed: u64,
    pub(super) discarded: Discarded,
}

impl<'a, A: Analysis> Sink for Sequencer<'a, A> {
    type Renderer = Filler<'a>;

    fn renderer(&self) -> Filler<'a> {
        Filler::with_raw_texts(&self.plan.rows)
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn message(
        &mut self,
        message: &Message,
        _of: &[AnyRecording],
        _text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
        match message.kind {
            MessageKind::LostEvents(lost) => self.discarded.add_events(&lost),
            MessageKind::LostChunks(lost) => self.discarded.add_packets(&lost),
            _ => {}
        }
    }

    fn mixed_rows(
        &mut self,
        runs: &mut [RowRun<'_>],
        order: &[u16],
        recordings: &[AnyRecording],
    ) -> Option<bool> {
        let is_done = self.plain_mixed_rows(runs, order);
        is_done.then(|| self.analysis.after(self.tracks, recordings))
    }

    fn rows(
        &mut self,
        mut run: RowRun<'_>,
        recordings: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        if self.plain_rows(&mut run) {
            return self.analysis.after(self.tracks, recordings);
        }
        let (recording, stream) = (run.recording, run.stream);
        let classes = self.plan.classes(recording);
        let extras = &self.extras[recording];
        self.events += run.entries.len() as u64;
        for row in run {
            let class = row.message.class;
            // Events of other classes were not wanted.
            let Some(meaning) = &classes[class] else {
                continue;
            };
            let Some(time) = row.message.time else {
                self.untimed += 1;
                continue;
            };
            let cut = |time: i64| cut(time, self.resolution);
            let nanos = time.as_nanos();
            let time = cut(nanos);
            let values = row.values;
            let track = match &mut self.running {
                None => {
                    let mut tracks = self.tracks.of_stream(recording, stream);
                    tracks.number(&meaning.track, values)
                }
                Some(running) => running.track((recording, stream), class, values, self.tracks),
            };
            let Some(extra) = &extras[class] else {
                continue;
            };
            let duration = meaning
                .duration
                .and_then(|column| match values.get(column) {
                    Value::Uint(duration) => {
                        let end = i64::try_from(duration)
                            .ok()
                            .and_then(|it| nanos.checked_add(it));
                        Some(cut(end.unwrap_or(i64::MAX)).abs_diff(time))
                    }
                    _ => None,
                });
            let edge = |edge: &'a Option<Edge>, role: Role| {
                let fields = edge.as_ref().map_or(&[][..], |edge| &edge.key);
                let role = if edge.is_some() { role } else { SEEN };
                (role, RowKey { values, fields })
            };
            // A whole slice has a key as what begins one, and an end of its own.
            let begins = if meaning.duration.is_some() {
                SEEN
            } else {
                BEGINS
            };
            let (begins, begin_key) = edge(&meaning.begins, begins);
            let (ends, end_key) = edge(&meaning.ends, ENDS);
            self.analysis.event(&Occurrence {
                recording,
                class,
                role: begins | ends,
                time,
                track,
                begin_key,
                end_key,
                duration,
                by: RowKey {
                    values,
                    fields: &extra.by,
                },
                value: values.first(&extra.value),
                flows: &meaning.flows,
            });
        }
        self.analysis.after(self.tracks, recordings)
    }
}

/// Keeps the faults.
pub(super) struct Faults<'c> {
    pub(super) strict: bool,
    pub(super) grows: bool,
    pub(super) coverage: &'c mut Coverage,
}

impl Output for Faults<'_> {
    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        if self.grows && may_be_incomplete(fault.code) {
            return ControlFlow::Continue(());
        }
        if self.coverage.faults.len() < MOST_FAULTS {
            self.coverage.faults.push(fault.clone());
        } else {
            self.coverage.more_faults += 1;
        }
        match self.strict {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
