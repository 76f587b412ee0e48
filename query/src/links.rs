//! What slices carry and what leads from one to another: Perfetto's tables `args` and `flow`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::builder::{Float64Builder, Int64Builder, StringBuilder};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use kymo::pipeline::Window;
use kymo::timeline::{Batch, Columns, Query, RowTracks};
use kymo_model::batch::{Column, ColumnData, ColumnType, RowId};
use kymo_model::{Recording, SliceRole, Value};
use kymo_time::Timestamp;

use crate::model::schema;
use crate::source::{Source, external};

/// Slices by the rows that begin them, and by their tracks.
#[derive(Debug, Default)]
pub(crate) struct SliceIndex {
    /// The slice that a row of the timeline of events begins.
    pub(crate) rows: HashMap<RowId, usize>,
    /// The state that a row begins.
    pub(crate) states: HashMap<RowId, usize>,
    /// Begin, end and parent of each slice.
    pub(crate) spans: Vec<(i64, i64, Option<usize>)>,
    /// The slices of each track, in order.
    pub(crate) of_track: Vec<Vec<usize>>,
}

impl SliceIndex {
    /// The innermost slice of a track that is open at a time, or just before it.
    fn innermost(&self, track: usize, time: i64, before: bool) -> Option<usize> {
        let slices = self.of_track.get(track)?;
        let next = slices.partition_point(|&other| match before {
            true => self.spans[other].0 < time,
            false => self.spans[other].0 <= time,
        });
        let mut found = slices[..next].last().copied();
        while let Some(slice) = found
            && self.spans[slice].1 < time
        {
            found = self.spans[slice].2;
        }
        found
    }
}

pub(crate) fn args_schema() -> SchemaRef {
    schema(&[
        ("id", DataType::Int64),
        ("arg_set_id", DataType::Int64),
        ("flat_key", DataType::Utf8),
        ("key", DataType::Utf8),
        ("int_value", DataType::Int64),
        ("string_value", DataType::Utf8),
        ("real_value", DataType::Float64),
    ])
}

pub(crate) fn flow_schema() -> SchemaRef {
    schema(&[
        ("id", DataType::Int64),
        ("slice_out", DataType::Int64),
        ("slice_in", DataType::Int64),
        ("trace_id", DataType::Int64),
        ("arg_set_id", DataType::Int64),
    ])
}

/// All rows with their fields: slices may have begun before the time that is wanted.
fn query(source: &Source) -> Query {
    let mut query = Query::default();
    query.range = Window {
        begin: Timestamp::MIN,
        end: source.range.end,
    };
    query.threads = source.threads;
    query.columns = Columns::All;
    query
}

/// The fields of the rows that begin slices and states.
pub(crate) fn args(
    source: &Source,
    slices: &SliceIndex,
    memory: MemoryReservation,
) -> Result<RecordBatch> {
    let mut args = Args::default();
    let mut result = Ok(());
    if !(slices.rows.is_empty() && slices.states.is_empty()) {
        let each = |batch: Batch| {
            let before = args.bytes;
            source.met(&batch);
            for row in 0..batch.len() {
                let id = batch.id(row);
                let found = slices.rows.get(&id).or_else(|| slices.states.get(&id));
                let Some(&slice) = found else {
                    continue;
                };
                args.set = slice as i64;
                for (column, info) in batch.columns().iter().zip(batch.schema().iter()) {
                    args.column(&info.name, &info.name, column, info, row);
                }
            }
            result = memory.try_grow(args.bytes - before);
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        source
            .events
            .for_each_batch(&query(source), each)
            .map_err(external)?;
    }
    result?;
    args.finish()
}

/// Rows of `args` that are being made.
#[derive(Default)]
struct Args {
    set: i64,
    bytes: usize,
    sets: Vec<i64>,
    flat_keys: StringBuilder,
    keys: StringBuilder,
    ints: Int64Builder,
    texts: StringBuilder,
    reals: Float64Builder,
}

impl Args {
    fn column(&mut self, flat: &str, key: &str, column: &Column, info: &ColumnType, row: usize) {
        use kymo_model::batch::DataType as Kind;

        let is_there = column.validity.as_ref().is_none_or(|bits| bits.get(row));
        match (&column.data, &info.data_type) {
            _ if !is_there => {}
            (ColumnData::List { offsets, items }, Kind::List(item)) => {
                let all = offsets[row] as usize..offsets[row + 1] as usize;
                for (place, row) in all.enumerate() {
                    self.column(flat, &format!("{key}[{place}]"), items, item, row);
                }
            }
            (ColumnData::Struct { members, .. }, Kind::Struct(types)) => {
                for (member, info) in members.iter().zip(types.iter()) {
                    let (flat, key) = (
                        format!("{flat}.{}", info.name),
                        format!("{key}.{}", info.name),
                    );
                    self.column(&flat, &key, member, info, row);
                }
            }
            _ => self.value(flat, key, column.value(row)),
        }
    }

    fn value(&mut self, flat: &str, key: &str, value: Value<'_>) {
        let (mut int, mut text, mut real) = (None, None, None);
        match value {
            Value::Uint(value) | Value::Bits(value) => match i64::try_from(value) {
                Ok(value) => int = Some(value),
                Err(_) => text = Some(value.to_string()),
            },
            Value::Sint(value) => int = Some(value),
            Value::Bool(value) => int = Some(value.into()),
            Value::Float(value) => real = Some(value),
            Value::Text(value) => text = Some(String::from_utf8_lossy(value).into_owned()),
            Value::Blob(value) => {
                text = Some(value.iter().map(|byte| format!("{byte:02x}")).collect());
            }
            _ => return,
        }
        // What the columns take, with their growth.
        self.bytes += 2 * (48 + flat.len() + key.len() + text.as_ref().map_or(0, String::len));
        self.sets.push(self.set);
        self.flat_keys.append_value(flat);
        self.keys.append_value(key);
        self.ints.append_option(int);
        self.texts.append_option(text);
        self.reals.append_option(real);
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new((0..self.sets.len() as i64).collect::<Int64Array>()),
            Arc::new(Int64Array::from(self.sets)),
            Arc::new(self.flat_keys.finish()),
            Arc::new(self.keys.finish()),
            Arc::new(self.ints.finish()),
            Arc::new(self.texts.finish()),
            Arc::new(self.reals.finish()),
        ];
        Ok(RecordBatch::try_new(args_schema(), columns)?)
    }
}

/// A row that a flow leads through: recording, number of the flow, time, slice; and whether the flow ends there.
type Stop = (u32, u64, i64, usize, bool);

/// Flows from slice to slice. `track` gives the number of a recording's track.
pub(crate) fn flows(
    source: &Source,
    slices: &SliceIndex,
    track: &dyn Fn(u32, &kymo_model::Track) -> Option<usize>,
    memory: MemoryReservation,
) -> Result<RecordBatch> {
    let recordings = source.events.recordings();
    let has_flows = |recording: &kymo::AnyRecording| {
        (0..recording.event_classes().len()).any(|class| {
            let roles = recording.roles(class);
            !roles.flows.is_empty() || !roles.ended_flows.is_empty()
        })
    };
    let mut stops: Vec<Stop> = Vec::new();
    let mut result = Ok(());
    if recordings.iter().any(has_flows) {
        let mut query = query(source);
        let mut tracks = RowTracks::new(&source.events, &mut query).map_err(external)?;
        let each = |batch: Batch| {
            let before = stops.len();
            source.met(&batch);
            for row in 0..batch.len() {
                let head = batch.head(row);
                let recording = &recordings[head.id.recording as usize];
                let roles = recording.roles(head.class as usize);
                let Some(time) = head.time.map(Timestamp::as_nanos) else {
                    continue;
                };
                if roles.flows.is_empty() && roles.ended_flows.is_empty() {
                    continue;
                }
                // A row that is not a slice itself counts for the one that it is in.
                let slice = slices.rows.get(&head.id).copied().or_else(|| {
                    let entry = tracks.of(&batch, row).first()?.track();
                    let known = tracks.tracks(head.id.recording as usize);
                    let track = track(head.id.recording, known.get(entry as usize)?)?;
                    slices.innermost(track, time, roles.slice == SliceRole::End)
                });
                let Some(slice) = slice else { continue };
                let fields = &recording.event_classes()[head.class as usize].schema;
                for (flows, ends) in [(&roles.flows, false), (&roles.ended_flows, true)] {
                    for &field in flows {
                        let name = fields.field(field).name.as_deref();
                        let mut columns = batch.columns().iter().zip(batch.schema().iter());
                        let column = columns.find(|(_, column)| Some(&*column.name) == name);
                        let Some((column, _)) = column else { continue };
                        column.each_number(row, &mut |number| {
                            stops.push((head.id.recording, number, time, slice, ends));
                        });
                    }
                }
            }
            result = memory.try_grow((stops.len() - before) * 128);
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        source
            .events
            .for_each_batch(&query, each)
            .map_err(external)?;
    }
    result?;
    // Stable: stops of the same time stay in their order.
    stops.sort_by_key(|&(recording, number, time, ..)| (recording, number, time));
    let steps = steps(&stops);
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..steps.len() as i64).collect::<Int64Array>()),
        Arc::new(
            steps
                .iter()
                .map(|step| step.0 as i64)
                .collect::<Int64Array>(),
        ),
        Arc::new(
            steps
                .iter()
                .map(|step| step.1 as i64)
                .collect::<Int64Array>(),
        ),
        Arc::new(
            steps
                .iter()
                .map(|step| step.2 as i64)
                .collect::<Int64Array>(),
        ),
        Arc::new(Int64Array::new_null(steps.len())),
    ];
    Ok(RecordBatch::try_new(flow_schema(), columns)?)
}

/// From which slice to which flows lead, and their numbers. An end makes room for another flow of the same number.
fn steps(stops: &[Stop]) -> Vec<(usize, usize, u64)> {
    let pairs = stops.windows(2).filter_map(|pair| {
        let [(recording, number, _, from, ends), (other, next, _, to, _)] = *pair else {
            return None;
        };
        let is_one = recording == other && number == next && !ends && from != to;
        is_one.then_some((from, to, number))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_lead_from_stop_to_stop_until_they_end() {
        let stops = [
            (0, 7, 1, 10, false),
            (0, 7, 2, 11, false),
            (0, 7, 2, 11, false),
            (0, 7, 3, 12, true),
            (0, 7, 4, 13, false),
            (0, 8, 4, 14, false),
            (1, 8, 5, 15, false),
        ];
        assert_eq!(steps(&stops), [(10, 11, 7), (11, 12, 7)]);
    }

    #[test]
    fn the_innermost_slice_is_the_one_that_is_open() {
        let slices = SliceIndex {
            spans: vec![
                (0, 100, None),
                (10, 20, Some(0)),
                (20, 30, Some(0)),
                (200, i64::MAX, None),
            ],
            of_track: vec![vec![0, 1, 2, 3]],
            ..SliceIndex::default()
        };
        for (time, before, expected) in [
            (-1, false, None),
            (0, false, Some(0)),
            (15, false, Some(1)),
            // Where one ends and another one begins.
            (20, false, Some(2)),
            (20, true, Some(1)),
            (50, false, Some(0)),
            (150, false, None),
            (300, false, Some(3)),
        ] {
            assert_eq!(slices.innermost(0, time, before), expected, "{time}");
        }
        assert_eq!(slices.innermost(1, 5, false), None);
    }
}
