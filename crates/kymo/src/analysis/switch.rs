//! Which thread runs on which processor, as the scheduler's events say.

use std::fmt;

use kymo_model::Recording;

use super::events::{Error, EventPattern};
use crate::AnyRecording;
use crate::filter::{FieldNames, FilterError};
use crate::pipeline::Values;
use crate::tracks::{Interner, Key, OTHERS, RowKey, TrackPlan, TrackSource, TrackTable};

/// The events that switch a processor to another thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// The events.
    pub event: EventPattern,
    /// The fields of all events that contain the processor.
    pub processor: FieldNames,
    /// The fields of a switch that contain the thread that runs from then on.
    pub thread: FieldNames,
}

/// Why a text names no switch.
#[derive(Clone, Debug)]
pub enum SwitchError {
    /// A part is missing.
    Parts,
    /// A list of fields is wrong.
    Fields(Box<FilterError>),
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts => f.write_str("expected EVENT:PROCESSOR_FIELD:THREAD_FIELD[,FIELD]..."),
            Self::Fields(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SwitchError {}

impl Switch {
    /// Reads `EVENT:PROCESSOR_FIELD:THREAD_FIELD[,FIELD]...`, such as `sched_switch:cpu_id:next_tid`.
    ///
    /// # Errors
    ///
    /// Something else stands there.
    pub fn parse(text: &str) -> Result<Self, SwitchError> {
        // Names of events may have colons, those of fields have none.
        let mut parts = text.rsplitn(3, ':');
        let mut part = || {
            parts
                .next()
                .filter(|part| !part.is_empty())
                .ok_or(SwitchError::Parts)
        };
        let (thread, processor, event) = (part()?, part()?, part()?);
        let fields =
            |list| FieldNames::parse(list).map_err(|error| SwitchError::Fields(Box::new(error)));
        Ok(Self {
            event: EventPattern::new(event),
            processor: fields(processor)?,
            thread: fields(thread)?,
        })
    }
}

/// Where an event class contains the thread.
#[derive(Clone, Debug, Default)]
struct ClassSwitch {
    processor: TrackSource,
    thread: Option<TrackSource>,
}

/// The threads that run.
#[derive(Debug)]
pub(super) struct Running {
    switches: Vec<Vec<bool>>,
    classes: Vec<Vec<ClassSwitch>>,
    /// Processors, and by their numbers the track that runs there.
    processors: Interner<Key>,
    current: Vec<u32>,
}

impl Running {
    pub(super) fn new(switch: &Switch, recordings: &[AnyRecording]) -> Result<Self, Error> {
        Ok(Self {
            switches: switch.event.classes(recordings).map_err(Error::Event)?,
            classes: Vec::new(),
            processors: Interner::with_room(1 << 16, 1 << 22),
            current: Vec::new(),
        })
    }

    /// Recordings have changed: what runs where stays.
    pub(super) fn renew(
        &mut self,
        switch: &Switch,
        recordings: &[AnyRecording],
    ) -> Result<(), Error> {
        self.switches = switch.event.classes(recordings).map_err(Error::Event)?;
        Ok(())
    }

    pub(super) fn is_switch(&self, recording: usize, class: usize) -> bool {
        self.switches[recording][class]
    }

    /// Takes the columns of a plan, in which the processor is flow 1 and the thread flow 2.
    pub(super) fn bind(&mut self, plan: &TrackPlan, recordings: &[AnyRecording]) {
        let of_class = |recording: usize, class: usize| {
            let flows = plan.classes(recording)[class]
                .as_ref()
                .map_or(&[][..], |class| &class.flows);
            let columns = |flow: usize| {
                let found = flows.iter().find(|(position, _)| *position == flow);
                found.map(|(_, columns)| TrackSource::Fields(columns.clone()))
            };
            ClassSwitch {
                processor: columns(1)
                    .unwrap_or_else(|| TrackSource::Fields(std::iter::once(0..0).collect())),
                thread: columns(2),
            }
        };
        let all = recordings.iter().enumerate().map(|(number, recording)| {
            let classes = 0..recording.event_classes().len();
            classes.map(|class| of_class(number, class)).collect()
        });
        self.classes = all.collect();
    }

    /// The track of a row: the thread that runs when it comes. A switch is on the track of the thread that
    /// it ends.
    pub(super) fn track(
        &mut self,
        (recording, stream): (usize, usize),
        class: usize,
        values: Values<'_>,
        tracks: &mut TrackTable,
    ) -> u32 {
        let class = &self.classes[recording][class];
        let TrackSource::Fields(fields) = &class.processor else {
            return OTHERS;
        };
        let processor = RowKey { values, fields };
        let hash = processor.hash(0, self.processors.hasher());
        let is_it = |known: &Key| processor.is(known);
        let number = self.processors.number(hash, is_it, || {
            let key = processor.key();
            let bytes = key.byte_size();
            (key, bytes)
        });
        let place = number as usize;
        if number != OTHERS && self.current.len() <= place {
            self.current.resize(place + 1, OTHERS);
        }
        let track = match self.current.get(place) {
            Some(&track) if track != OTHERS => track,
            _ => tracks.unknown(processor),
        };
        if let (Some(thread), Some(current)) = (&class.thread, self.current.get_mut(place)) {
            *current = tracks.of_stream(recording, stream).number(thread, values);
        }
        track
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_has_three_parts() {
        let switch = Switch::parse("lttng:sched:switch:cpu_id:next_tid,next_comm").unwrap();
        assert_eq!(switch.event.as_str(), "lttng:sched:switch");
        assert_eq!(switch.processor.to_string(), "cpu_id");
        assert_eq!(switch.thread.to_string(), "next_tid, next_comm");
        for wrong in ["", "a", "a:b", "a::b", ":a:b", "a:b:c.3"] {
            assert!(Switch::parse(wrong).is_err(), "{wrong}");
        }
    }
}
