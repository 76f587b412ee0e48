//! The values of databases and metrics as a table.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use kymo::AnyRecording;
use kymo::timeline::{Columns, Query, RowTracks, Timeline, TrackEntry};
use kymo_model::{EntryKind, Recording, Track, TrackPart};
use kymo_rrd::model::SourceKind;
use kymo_time::Timestamp;

use crate::Error;
use crate::array::dictionary;
use crate::tables::{ROWS, paths, schema, texts, time_type, times};

/// The schema of `samples`.
pub fn samples_schema(timeline: &Timeline) -> SchemaRef {
    let own = [
        ("timestamp", time_type(timeline.recordings())),
        ("recording", dictionary()),
        ("series", dictionary()),
        ("unit", dictionary()),
        ("function", dictionary()),
        ("step", DataType::UInt64),
        ("heartbeat", DataType::UInt64),
        ("value", DataType::Float64),
    ];
    schema(&own, &[])
}

/// Hands the samples in a range of time to `take`, which may end it. Events are not decoded.
fn samples(
    timeline: &Timeline,
    query: &Query,
    take: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut query = query.clone();
    query.columns = Columns::None;
    query.filter.condition = Some(match query.filter.condition.take() {
        Some(condition) => format!("kind == \"sample\" && ({condition})"),
        None => "kind == \"sample\"".to_owned(),
    });
    let paths = paths(timeline);
    let mut tracks = RowTracks::new(timeline, &mut query)?;
    let mut samples = Samples::default();
    let mut failed = None;
    let mut is_ended = false;
    timeline.for_each_batch(&query, |batch| {
        if batch.is_empty() {
            return ControlFlow::Continue(());
        }
        let recording = batch.id(0).recording as usize;
        let source = &timeline.recordings()[recording];
        for row in 0..batch.len() {
            let head = batch.head(row);
            if source.entry_kind(head.id.stream as usize) != EntryKind::Sample {
                continue;
            }
            let time = head.time.map(Timestamp::as_nanos);
            for entry in tracks.of(&batch, row) {
                if let &TrackEntry::Value(track, value) = entry {
                    samples.push(time, (recording, track), value);
                }
            }
        }
        samples.name(source, tracks.tracks(recording));
        if samples.len() < ROWS {
            return ControlFlow::Continue(());
        }
        match samples.batch(timeline, &paths) {
            Ok(Some(batch)) => {
                is_ended = take(batch).is_break();
                match is_ended {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if !is_ended && let Some(batch) = samples.batch(timeline, &paths)? {
        let _ = take(batch);
    }
    Ok(())
}

/// The batches of `samples`; a thread works ahead, and ends when this is dropped.
#[derive(Debug)]
pub struct SampleReader {
    schema: SchemaRef,
    made: Option<Receiver<Result<RecordBatch, ArrowError>>>,
    thread: Option<JoinHandle<()>>,
}

impl SampleReader {
    /// Reads the samples in the range of a query.
    ///
    /// # Errors
    ///
    /// The system has no thread for it.
    pub fn new(timeline: Timeline, query: Query) -> std::io::Result<Self> {
        let (sender, made) = sync_channel(2);
        let schema = samples_schema(&timeline);
        let thread = std::thread::Builder::new().spawn(move || {
            let mut take = |batch| match sender.send(Ok(batch)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            if let Err(error) = samples(&timeline, &query, &mut take) {
                // The receiver may be gone.
                let _ = sender.send(Err(ArrowError::ExternalError(Box::new(error))));
            }
        })?;
        Ok(Self {
            schema,
            made: Some(made),
            thread: Some(thread),
        })
    }
}

impl Iterator for SampleReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(made) = self.made.as_ref()?.recv() {
            return Some(made);
        }
        self.made = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        None
    }
}

impl RecordBatchReader for SampleReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for SampleReader {
    fn drop(&mut self) {
        // Whoever sends meets an error, and ends.
        self.made = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Values of series.
#[derive(Default)]
pub(crate) struct Samples {
    times: Vec<Option<Timestamp>>,
    recordings: Vec<u32>,
    /// Positions in `series`.
    keys: Vec<u32>,
    values: Vec<Option<f64>>,
    /// The number of the series of each track of each recording.
    by_track: HashMap<(usize, u32), u32>,
    series: Vec<Series>,
    /// Tracks of the series that have no name yet, which are the last ones.
    unnamed: Vec<u32>,
}

/// What is known of a series.
#[derive(Clone, Default)]
struct Series {
    name: String,
    unit: Option<String>,
    /// Of archives: how they consolidate, the seconds between rows, and after how many a value is unknown.
    function: Option<&'static str>,
    step: Option<u64>,
    heartbeat: Option<u64>,
}

impl Samples {
    pub(crate) fn push(
        &mut self,
        time: Option<i64>,
        (recording, track): (usize, u32),
        value: Option<f64>,
    ) {
        let next = self.series.len() as u32;
        let key = *self.by_track.entry((recording, track)).or_insert(next);
        if key == next {
            self.series.push(Series::default());
            self.unnamed.push(track);
        }
        self.times.push(time.map(Timestamp::from_nanos));
        self.recordings.push(recording as u32);
        self.keys.push(key);
        self.values.push(value.filter(|value| !value.is_nan()));
    }

    /// Names the series that are new, all of one recording.
    pub(crate) fn name(&mut self, recording: &AnyRecording, tracks: &[Track]) {
        let first = self.series.len() - self.unnamed.len();
        for (series, track) in self.series[first..].iter_mut().zip(self.unnamed.drain(..)) {
            *series = Series::new(recording, &tracks[track as usize]);
        }
    }

    /// Number of values that are gathered.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn batch(
        &mut self,
        timeline: &Timeline,
        paths: &[String],
    ) -> Result<Option<RecordBatch>, Error> {
        if self.times.is_empty() {
            return Ok(None);
        }
        let schema = samples_schema(timeline);
        let time = schema.field(0).data_type().clone();
        let keys = std::mem::take(&mut self.keys);
        let recordings = std::mem::take(&mut self.recordings);
        let of_series = |value: &dyn Fn(&Series) -> Option<String>| -> Result<ArrayRef, Error> {
            let all: Vec<_> = self.series.iter().map(value).collect();
            let names: Vec<String> = all
                .iter()
                .map(|text| text.clone().unwrap_or_default())
                .collect();
            let keys = keys
                .iter()
                .map(|&key| all[key as usize].as_ref().map(|_| key));
            texts(keys.collect(), &names)
        };
        let numbers = |value: &dyn Fn(&Series) -> Option<u64>| -> ArrayRef {
            let values = keys.iter().map(|&key| value(&self.series[key as usize]));
            Arc::new(values.collect::<UInt64Array>())
        };
        let columns: Vec<ArrayRef> = vec![
            times(std::mem::take(&mut self.times).into_iter(), &time),
            texts(recordings.into_iter().map(Some).collect(), paths)?,
            of_series(&|series| Some(series.name.clone()))?,
            of_series(&|series| series.unit.clone())?,
            of_series(&|series| series.function.map(str::to_owned))?,
            numbers(&|series| series.step),
            numbers(&|series| series.heartbeat),
            Arc::new(Float64Array::from(std::mem::take(&mut self.values))),
        ];
        Ok(Some(RecordBatch::try_new(schema, columns)?))
    }
}

impl Series {
    fn new(recording: &AnyRecording, track: &Track) -> Self {
        let mut series = Self {
            name: track.path.to_string(),
            unit: track.unit.as_deref().map(str::to_owned),
            ..Self::default()
        };
        let AnyRecording::Rrd(rrd) = recording else {
            return series;
        };
        let database = rrd.database();
        for part in track.path.parts() {
            match part {
                TrackPart::Archive(archive) => {
                    if let Some(archive) = database.archives.get(*archive as usize) {
                        series.function = Some(archive.kind.name());
                        series.step = database.step.checked_mul(archive.points_per_row);
                    }
                }
                TrackPart::Source(name) => {
                    let mut sources = database.sources.iter();
                    let source = sources.find(|source| source.name.to_string() == **name);
                    if let Some(SourceKind::Measured { heartbeat, .. }) =
                        source.map(|source| &source.kind)
                    {
                        series.heartbeat = Some(*heartbeat);
                    }
                }
                _ => {}
            }
        }
        series
    }
}
