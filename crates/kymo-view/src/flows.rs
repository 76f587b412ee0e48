//! Flows: rows of any tracks that the recordings say belong together, in the order of their times.

use std::collections::HashMap;
use std::ops::ControlFlow;

use kymo::timeline::Columns;
use kymo_model::{FieldId, Recording, Schema};
use kymo_time::Timestamp;

use crate::scene::Scene;
use crate::tracks::Classifier;

/// Stops that are kept at most.
const MOST_STOPS: usize = 2 << 20;

/// A row that a flow leads through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Stop {
    pub(crate) time: i64,
    pub(crate) track: u32,
}

/// All flows of the recordings.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    /// The stops of each flow, in order of time.
    flows: Vec<Vec<Stop>>,
    /// The flows through each stop.
    at: HashMap<Stop, Vec<u32>>,
    /// Whether some are missing, since there are too many.
    pub(crate) is_cut: bool,
}

impl Flows {
    /// Finds the flows of a scene. Reads the recordings that have some.
    pub(crate) fn new(scene: &Scene) -> Self {
        let mut flows = Self::default();
        let recordings = scene.recordings();
        let has_flows = |recording: &kymo::AnyRecording| {
            (0..recording.event_classes().len()).any(|class| {
                let roles = recording.roles(class);
                !roles.flows.is_empty() || !roles.ended_flows.is_empty()
            })
        };
        if !recordings.iter().any(has_flows) {
            return flows;
        }
        let mut rows: Vec<(usize, u64, Stop, bool)> = Vec::new();
        let mut query = scene.query(None);
        query.columns = Columns::All;
        query.batch_rows = 1 << 12;
        // The condition was checked before.
        let Ok(mut classifier) = Classifier::new(scene, &mut query) else {
            return flows;
        };
        let _ = scene.timeline.for_each_batch(&query, |batch| {
            for row in 0..batch.len() {
                let head = batch.head(row);
                let recording = head.id.recording as usize;
                let roles = recordings[recording].roles(head.class as usize);
                if roles.flows.is_empty() && roles.ended_flows.is_empty() {
                    continue;
                }
                let Some(time) = head.time.map(Timestamp::as_nanos) else {
                    continue;
                };
                if !scene.is_wanted(recording, time) {
                    continue;
                }
                let Some(part) = classifier.parts(&batch, row).first().copied() else {
                    continue;
                };
                let stop = Stop {
                    time,
                    track: part.track,
                };
                let schema = &recordings[recording].event_classes()[head.class as usize].schema;
                for (fields, is_end) in [(&roles.flows, false), (&roles.ended_flows, true)] {
                    for &field in fields {
                        let name = name_of(schema, field);
                        let mut columns = batch.columns().iter().zip(batch.schema().iter());
                        let column = columns.find(|(_, column)| Some(&*column.name) == name);
                        let Some((column, _)) = column else { continue };
                        column.each_number(row, &mut |id| rows.push((recording, id, stop, is_end)));
                    }
                }
            }
            match rows.len() >= MOST_STOPS {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        flows.is_cut = rows.len() >= MOST_STOPS;
        // Stable: stops of the same time stay in their order.
        rows.sort_by_key(|&(recording, id, stop, _)| (recording, id, stop.time));
        flows.take(rows.into_iter());
        flows
    }

    /// Takes stops that are sorted by flow and time. An end ends the flow: its number may be used again.
    fn take(&mut self, rows: impl Iterator<Item = (usize, u64, Stop, bool)>) {
        let mut before = None;
        for (recording, id, stop, is_end) in rows {
            if before != Some((recording, id)) || self.flows.is_empty() {
                self.flows.push(Vec::new());
            }
            before = (!is_end).then_some((recording, id));
            let number = self.flows.len() as u32 - 1;
            if let Some(flow) = self.flows.last_mut()
                && flow.last() != Some(&stop)
            {
                flow.push(stop);
                self.at.entry(stop).or_default().push(number);
            }
        }
    }

    /// The flows through a row of a track: at most `most` stops of each before it, and as many after it.
    pub(crate) fn through(&self, stop: Stop, most: usize) -> Vec<&[Stop]> {
        let flows = self.at.get(&stop).map_or(&[][..], Vec::as_slice);
        let flows = flows.iter().filter_map(|&number| {
            let flow = self.flows.get(number as usize)?;
            let at = flow.iter().position(|other| *other == stop)?;
            let to = flow.len().min(at + most + 1);
            flow.get(at.saturating_sub(most)..to)
        });
        flows.filter(|flow| flow.len() > 1).collect()
    }

    /// The stops of each flow.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[Stop]> {
        self.flows.iter().map(Vec::as_slice)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }
}

fn name_of(schema: &Schema, field: FieldId) -> Option<&str> {
    schema.field(field).name.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_makes_room_for_another_flow_of_the_same_number() {
        let stop = |time, track| Stop { time, track };
        let mut flows = Flows::default();
        let rows = [
            (0, 7, stop(1, 0), false),
            (0, 7, stop(2, 1), false),
            (0, 7, stop(3, 0), true),
            (0, 7, stop(4, 2), false),
            (0, 7, stop(5, 0), false),
            (1, 7, stop(6, 3), false),
        ];
        flows.take(rows.into_iter());
        assert_eq!(flows.len(), 3);
        assert_eq!(
            flows.through(stop(2, 1), 10),
            [&[stop(1, 0), stop(2, 1), stop(3, 0)][..]]
        );
        assert_eq!(
            flows.through(stop(4, 2), 10),
            [&[stop(4, 2), stop(5, 0)][..]]
        );
        assert_eq!(
            flows.through(stop(3, 0), 1),
            [&[stop(2, 1), stop(3, 0)][..]]
        );
        assert!(flows.through(stop(6, 3), 10).is_empty(), "a stop alone");
        assert!(flows.through(stop(1, 1), 10).is_empty());
    }
}
