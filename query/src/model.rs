//! Tracks, slices and counters of all recordings, found in one pass and kept.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::FutureExt;
use kymo::timeline::{Batch, Query, RowTracks, Timeline, TrackEntry};
use kymo_arrow::class_name;
use kymo_model::batch::RowId;
use kymo_model::{EntryKind, Recording, SliceRole, Track, TrackPart, TrackPath, TrackRule};

use crate::links::{SliceIndex, args, args_schema, flow_schema, flows};
use crate::source::{Source, external};
use crate::streamed::{Made, Maker};

/// What Perfetto's tables are made of.
#[derive(Debug)]
pub(crate) struct Model {
    tracks: RecordBatch,
    slices: RecordBatch,
    states: RecordBatch,
    counters: RecordBatch,
    index: SliceIndex,
    /// The number of each track of a recording.
    numbers: HashMap<(String, TrackPath), usize>,
    /// Keeps the memory counted.
    _memory: Mutex<MemoryReservation>,
}

/// Makes the model when it is asked for the first time.
#[derive(Debug)]
pub(crate) struct LazyModel {
    source: Arc<Source>,
    made: Mutex<Option<Arc<Model>>>,
}

impl LazyModel {
    fn get(&self, task: &TaskContext) -> Result<Arc<Model>> {
        let mut made = self
            .made
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(model) = &*made {
            return Ok(Arc::clone(model));
        }
        let memory = MemoryConsumer::new("slices").register(task.memory_pool());
        let model = Arc::new(Builder::new(&self.source, memory).build()?);
        *made = Some(Arc::clone(&model));
        Ok(model)
    }
}

pub(crate) fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields = columns
        .iter()
        .map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn track_schema() -> SchemaRef {
    schema(&[
        ("id", DataType::Int64),
        ("name", DataType::Utf8),
        ("type", DataType::Utf8),
        ("parent_id", DataType::Int64),
        ("unit", DataType::Utf8),
        ("path", DataType::Utf8),
        ("pid", DataType::Int64),
        ("tid", DataType::Int64),
        ("cpu", DataType::Int64),
        ("recording", DataType::Utf8),
    ])
}

fn slice_schema() -> SchemaRef {
    schema(&[
        ("id", DataType::Int64),
        ("ts", DataType::Int64),
        ("dur", DataType::Int64),
        ("track_id", DataType::Int64),
        ("category", DataType::Utf8),
        ("name", DataType::Utf8),
        ("depth", DataType::UInt32),
        ("parent_id", DataType::Int64),
        ("self_dur", DataType::Int64),
        ("arg_set_id", DataType::Int64),
    ])
}

fn state_schema() -> SchemaRef {
    schema(&[
        ("id", DataType::Int64),
        ("ts", DataType::Int64),
        ("dur", DataType::Int64),
        ("track_id", DataType::Int64),
        ("value", DataType::Utf8),
        ("arg_set_id", DataType::Int64),
    ])
}

/// The columns of slices that are those of states.
const OF_STATES: [&str; 6] = ["id", "ts", "dur", "track_id", "name", "arg_set_id"];

fn counter_schema() -> SchemaRef {
    schema(&[
        ("id", DataType::Int64),
        ("ts", DataType::Int64),
        ("track_id", DataType::Int64),
        ("value", DataType::Float64),
    ])
}

/// The tables `track`, `slice`, `state` and `counter`, and `args` and `flow`, which are made anew for each statement.
pub(crate) fn model_tables(source: &Arc<Source>) -> Vec<Made> {
    let lazy = Arc::new(LazyModel {
        source: Arc::clone(source),
        made: Mutex::default(),
    });
    let made = |name: &str, schema, pick: fn(&Model) -> &RecordBatch| {
        let lazy = Arc::clone(&lazy);
        let make = move |task: Arc<TaskContext>| {
            let lazy = Arc::clone(&lazy);
            let work = move || Ok(pick(&*lazy.get(&task)?).clone());
            async move {
                let joined = tokio::task::spawn_blocking(work).await;
                joined.map_err(external)?
            }
            .boxed()
        };
        Made {
            name: name.to_owned(),
            schema,
            time: None,
            maker: Maker::Whole(Arc::new(make)),
        }
    };
    type Link = fn(&Source, &Model, MemoryReservation) -> Result<RecordBatch>;
    let linked = |name: &'static str, schema, link: Link| {
        let lazy = Arc::clone(&lazy);
        let make = move |task: Arc<TaskContext>| {
            let lazy = Arc::clone(&lazy);
            let work = move || {
                let model = lazy.get(&task)?;
                let memory = MemoryConsumer::new(name).register(task.memory_pool());
                link(&lazy.source, &model, memory)
            };
            async move {
                let joined = tokio::task::spawn_blocking(work).await;
                joined.map_err(external)?
            }
            .boxed()
        };
        Made {
            name: name.to_owned(),
            schema,
            time: None,
            maker: Maker::Whole(Arc::new(make)),
        }
    };
    vec![
        made("track", track_schema(), |model| &model.tracks),
        made("slice", slice_schema(), |model| &model.slices),
        made("state", state_schema(), |model| &model.states),
        made("counter", counter_schema(), |model| &model.counters),
        linked("args", args_schema(), |source, model, memory| {
            args(source, &model.index, memory)
        }),
        linked("flow", flow_schema(), |source, model, memory| {
            let recordings = source.events.recordings();
            let track = |recording: u32, track: &Track| {
                let path = recordings[recording as usize].path().to_string_lossy();
                let key = (path.into_owned(), track.path.clone());
                model.numbers.get(&key).copied()
            };
            flows(source, &model.index, &track, memory)
        }),
    ]
}

struct TrackRow {
    recording: String,
    track: Track,
}

struct SliceRow {
    track: usize,
    /// Whether it is a state of the track, in which nothing nests.
    is_state: bool,
    name: u32,
    category: u32,
    begin: i64,
    end: Option<i64>,
    /// The row that begins it, if that is an event.
    row: Option<RowId>,
}

struct Builder<'s> {
    source: &'s Source,
    memory: MemoryReservation,
    tracks: Vec<TrackRow>,
    numbers: HashMap<(String, TrackPath), usize>,
    names: Vec<String>,
    name_numbers: HashMap<String, u32>,
    slices: Vec<SliceRow>,
    counters: Vec<(i64, usize, Option<f64>)>,
}

impl<'s> Builder<'s> {
    fn new(source: &'s Source, memory: MemoryReservation) -> Self {
        Self {
            source,
            memory,
            tracks: Vec::new(),
            numbers: HashMap::new(),
            names: Vec::new(),
            name_numbers: HashMap::new(),
            slices: Vec::new(),
            counters: Vec::new(),
        }
    }

    fn build(mut self) -> Result<Model> {
        for (timeline, has_events) in [(&self.source.events, true), (&self.source.samples, false)] {
            self.rows(timeline)?;
            self.slices(timeline, has_events)?;
        }
        let parents: Vec<Option<i64>> = (0..self.tracks.len()).map(|at| self.parent(at)).collect();
        let tracks = self.track_batch(&parents)?;
        let (slices, states, index) = self.slice_batches()?;
        self.counters.sort_by_key(|counter| (counter.0, counter.1));
        let counters = RecordBatch::try_new(
            counter_schema(),
            vec![
                Arc::new((0..self.counters.len() as i64).collect::<Int64Array>()),
                Arc::new(
                    self.counters
                        .iter()
                        .map(|counter| counter.0)
                        .collect::<Int64Array>(),
                ),
                Arc::new(
                    self.counters
                        .iter()
                        .map(|counter| counter.1 as i64)
                        .collect::<Int64Array>(),
                ),
                Arc::new(
                    self.counters
                        .iter()
                        .map(|counter| counter.2)
                        .collect::<Float64Array>(),
                ),
            ],
        )?;
        Ok(Model {
            tracks,
            slices,
            states,
            counters,
            index,
            numbers: self.numbers,
            _memory: Mutex::new(self.memory),
        })
    }

    fn track(&mut self, recording: &str, track: &Track) -> usize {
        let key = (recording.to_owned(), track.path.clone());
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let number = self.tracks.len();
        self.numbers.insert(key, number);
        self.tracks.push(TrackRow {
            recording: recording.to_owned(),
            track: track.clone(),
        });
        number
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.name_numbers.get(name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.name_numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        number
    }

    /// Finds tracks and counters. Recordings whose tracks are their streams need not be read.
    fn rows(&mut self, timeline: &Timeline) -> Result<()> {
        let mut from = kymo::timeline::Places::at_end();
        let mut is_read = false;
        for (number, recording) in timeline.recordings().iter().enumerate() {
            let path = recording.path().to_string_lossy().into_owned();
            let mut classes = 0..recording.event_classes().len();
            let is_plain = classes.all(|class| {
                recording.track_rule(class) == TrackRule::Stream
                    && recording.roles(class).counters.is_empty()
            });
            for stream in 0..recording.streams().len() {
                if is_plain {
                    let info = &recording.streams()[stream];
                    let part = TrackPart::Stream {
                        class: info.class,
                        id: info.id.unwrap_or(stream as u64),
                    };
                    let track = Track::new(
                        TrackPath::new([part]),
                        Arc::clone(&info.name),
                        recording.entry_kind(stream),
                    );
                    self.track(&path, &track);
                } else {
                    is_read = true;
                    from.set(number, stream, kymo_model::RowPlace::default());
                }
            }
        }
        if !is_read {
            return Ok(());
        }
        let mut query = Query::default();
        query.range = self.source.range;
        query.threads = self.source.threads;
        query.from = Some(from);
        let mut tracks = RowTracks::new(timeline, &mut query).map_err(external)?;
        let mut result = Ok(());
        let mut numbers: Vec<Vec<usize>> = vec![Vec::new(); timeline.recordings().len()];
        let each = |batch: Batch| {
            let before = self.counters.len();
            self.source.met(&batch);
            for row in 0..batch.len() {
                let head = batch.head(row);
                let recording = head.id.recording as usize;
                for entry in tracks.of(&batch, row).to_vec() {
                    let known = tracks.tracks(recording);
                    let numbers = &mut numbers[recording];
                    for track in &known[numbers.len().min(known.len())..] {
                        let path = timeline.recordings()[recording].path().to_string_lossy();
                        numbers.push(self.track(&path, track));
                    }
                    if let (TrackEntry::Value(track, value), Some(time)) = (entry, head.time) {
                        let track = numbers[track as usize];
                        self.counters.push((time.as_nanos(), track, value));
                    }
                }
            }
            // They are sorted, and become columns.
            result = self.memory.try_grow((self.counters.len() - before) * 64);
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        timeline.for_each_batch(&query, each).map_err(external)?;
        result
    }

    fn slices(&mut self, timeline: &Timeline, has_events: bool) -> Result<()> {
        for (number, recording) in timeline.recordings().iter().enumerate() {
            let mut classes = 0..recording.event_classes().len();
            if classes.all(|class| recording.roles(class).slice == SliceRole::Instant) {
                continue;
            }
            let path = recording.path().to_string_lossy().into_owned();
            let mut result = Ok(());
            let range = self.source.range;
            let missing = timeline.for_each_slice(number, self.source.threads, |slice| {
                if slice.begin > range.end || slice.end.is_some_and(|end| end < range.begin) {
                    return ControlFlow::Continue(());
                }
                let row = SliceRow {
                    track: self.track(&path, slice.track.1),
                    is_state: recording.roles(slice.class).slice == SliceRole::State,
                    name: self.name(&slice.name),
                    category: self.name(&class_name(&recording.event_classes()[slice.class])),
                    begin: slice.begin.as_nanos(),
                    end: slice.end.map(kymo_time::Timestamp::as_nanos),
                    row: has_events.then_some(slice.id),
                };
                self.slices.push(row);
                result = self.memory.try_grow(320);
                match result {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
            result?;
            let damage = &self.source.damage;
            missing.faults.iter().for_each(|fault| damage.fault(fault));
            if missing.dropped > 0 {
                damage.met(format!(
                    "{path}: too many slices are open at once, {} of them are left out",
                    missing.dropped
                ));
            }
            if missing.more_faults > 0 {
                damage.met(format!("{path}: {} faults more", missing.more_faults));
            }
        }
        Ok(())
    }

    /// The track that a track is in, if it has rows itself.
    fn parent(&self, track: usize) -> Option<i64> {
        let track = &self.tracks[track];
        let path = track.track.path.parent()?;
        let number = self.numbers.get(&(track.recording.clone(), path))?;
        Some(*number as i64)
    }

    fn track_batch(&self, parents: &[Option<i64>]) -> Result<RecordBatch> {
        let texts = |text: &dyn Fn(&TrackRow) -> Option<String>| -> ArrayRef {
            Arc::new(self.tracks.iter().map(text).collect::<StringArray>())
        };
        let part = |number: &dyn Fn(&TrackPart) -> Option<i64>| -> ArrayRef {
            let find = |row: &TrackRow| row.track.path.parts().iter().rev().find_map(number);
            Arc::new(self.tracks.iter().map(find).collect::<Int64Array>())
        };
        let columns = vec![
            Arc::new((0..self.tracks.len() as i64).collect::<Int64Array>()) as ArrayRef,
            texts(&|row| Some(row.track.name.to_string())),
            texts(&|row| Some(kind(&row.track).to_owned())),
            Arc::new(parents.iter().copied().collect::<Int64Array>()),
            texts(&|row| row.track.unit.as_deref().map(str::to_owned)),
            texts(&|row| Some(row.track.path.to_string())),
            part(&|part| match part {
                TrackPart::Process(number) => Some(*number),
                _ => None,
            }),
            part(&|part| match part {
                TrackPart::Thread(number) => Some(*number),
                _ => None,
            }),
            part(&|part| match part {
                TrackPart::Cpu(number) => i64::try_from(*number).ok(),
                _ => None,
            }),
            texts(&|row| Some(row.recording.clone())),
        ];
        Ok(RecordBatch::try_new(track_schema(), columns)?)
    }

    /// Slices and states. Their numbers go on from one table to the other, so that arguments have one number, too.
    fn slice_batches(&mut self) -> Result<(RecordBatch, RecordBatch, SliceIndex)> {
        let slices = &mut self.slices;
        // What contains others comes before them.
        let end = |slice: &SliceRow| slice.end.unwrap_or(i64::MAX);
        slices.sort_by_key(|slice| {
            (
                slice.is_state,
                slice.begin,
                slice.track,
                std::cmp::Reverse(end(slice)),
            )
        });
        let mut open: Vec<Vec<usize>> = vec![Vec::new(); self.tracks.len()];
        let mut index = SliceIndex {
            of_track: vec![Vec::new(); self.tracks.len()],
            ..SliceIndex::default()
        };
        let (mut depths, mut parents) = (Vec::new(), Vec::new());
        let mut own: Vec<Option<i64>> = Vec::new();
        for (number, slice) in slices.iter().enumerate() {
            if slice.is_state {
                index.states.extend(slice.row.map(|row| (row, number)));
                depths.push(0);
                parents.push(None);
                own.push(None);
                continue;
            }
            let open = &mut open[slice.track];
            while open
                .last()
                .is_some_and(|&last| end(&slices[last]) <= slice.begin)
            {
                open.pop();
            }
            index.rows.extend(slice.row.map(|row| (row, number)));
            index.of_track[slice.track].push(number);
            let parent = open.last().copied();
            index.spans.push((slice.begin, end(slice), parent));
            depths.push(open.len() as u32);
            parents.push(open.last().map(|&parent| parent as i64));
            own.push(slice.end.map(|end| end.saturating_sub(slice.begin)));
            if let Some(&parent) = open.last() {
                let within = end(slice)
                    .min(end(&slices[parent]))
                    .saturating_sub(slice.begin);
                own[parent] = own[parent].map(|nanos| nanos.saturating_sub(within));
            }
            open.push(number);
        }
        let name = |number: u32| Some(self.names[number as usize].as_str());
        let slices = &self.slices;
        let duration =
            |slice: &SliceRow| slice.end.map_or(-1, |end| end.saturating_sub(slice.begin));
        let columns: Vec<ArrayRef> = vec![
            Arc::new((0..slices.len() as i64).collect::<Int64Array>()),
            Arc::new(
                slices
                    .iter()
                    .map(|slice| slice.begin)
                    .collect::<Int64Array>(),
            ),
            Arc::new(slices.iter().map(duration).collect::<Int64Array>()),
            Arc::new(
                slices
                    .iter()
                    .map(|slice| slice.track as i64)
                    .collect::<Int64Array>(),
            ),
            Arc::new(
                slices
                    .iter()
                    .map(|slice| name(slice.category))
                    .collect::<StringArray>(),
            ),
            Arc::new(
                slices
                    .iter()
                    .map(|slice| name(slice.name))
                    .collect::<StringArray>(),
            ),
            Arc::new(UInt32Array::from(depths)),
            Arc::new(parents.into_iter().collect::<Int64Array>()),
            Arc::new(own.into_iter().collect::<Int64Array>()),
            // Each slice has its own arguments.
            Arc::new(
                (0..)
                    .zip(slices)
                    .map(|(number, slice)| slice.row.map(|_| number))
                    .collect::<Int64Array>(),
            ),
        ];
        let all = RecordBatch::try_new(slice_schema(), columns)?;
        let count = slices.partition_point(|slice| !slice.is_state);
        let states = all.slice(count, slices.len() - count);
        let states = OF_STATES.map(|name| states.column_by_name(name).cloned());
        let states = states.into_iter().flatten().collect();
        let states = RecordBatch::try_new(state_schema(), states)?;
        Ok((all.slice(0, count), states, index))
    }
}

/// What Perfetto calls a track.
fn kind(track: &Track) -> &'static str {
    let has = |is: fn(&TrackPart) -> bool| track.path.parts().iter().any(is);
    match track.kind {
        EntryKind::Sample => "counter",
        EntryKind::Event if has(|part| matches!(part, TrackPart::Thread(_))) => "thread",
        EntryKind::Event if has(|part| matches!(part, TrackPart::Process(_))) => "process",
        EntryKind::Event if has(|part| matches!(part, TrackPart::Cpu(_))) => "cpu",
        EntryKind::Event => "global",
    }
}
