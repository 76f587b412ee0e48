//! Tables of samples, losses and packets.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::types::UInt32Type;
use datafusion::arrow::array::{
    Array, AsArray, BooleanArray, DictionaryArray, RecordBatch, StringArray,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::Result;
use datafusion::common::cast::as_timestamp_nanosecond_array;
use kymo::AnyRecording;
use kymo::pipeline::Window;
use kymo::timeline::{Query, Timeline};
use kymo_arrow::{
    Error, Table, losses, losses_schema, packets, packets_schema, samples_schema, tables,
};
use kymo_model::{FaultCode, FaultReport, Recording, TrackPart};

use crate::scan::StopOnDrop;
use crate::source::{Source, external};
use crate::streamed::{Made, Make, Maker};

/// A table that is not of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The finest archive of each time.
    Samples,
    AllSamples,
    Losses,
    Packets,
}

struct Other {
    source: Arc<Source>,
    kind: Kind,
}

/// The tables `samples`, `samples_all`, `losses` and `packets`.
pub(crate) fn other_tables(source: &Arc<Source>) -> Vec<Made> {
    let made = |name: &str, kind, time| Made {
        name: name.to_owned(),
        schema: match kind {
            Kind::Samples | Kind::AllSamples => samples_schema(&source.samples),
            Kind::Losses => losses_schema(&source.events),
            Kind::Packets => packets_schema(&source.events),
        },
        time,
        maker: Maker::Stream(Arc::new(Other {
            source: Arc::clone(source),
            kind,
        })),
    };
    vec![
        made("samples", Kind::Samples, Some("timestamp")),
        made("samples_all", Kind::AllSamples, Some("timestamp")),
        made("losses", Kind::Losses, None),
        made("packets", Kind::Packets, None),
    ]
}

impl Make for Other {
    fn make(
        &self,
        window: Window,
        stop: &StopOnDrop,
        take: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let window = window.and(self.source.range);
        let mut query = Query::default();
        query.range = window;
        query.threads = self.source.threads;
        query.stop = Some(Arc::clone(&stop.0));
        // An error ends it; nothing waits for one then.
        let ended = || Error::Output(std::io::ErrorKind::Interrupted.into());
        let mut hand_over = |batch: RecordBatch| match take(batch) {
            true => Ok(()),
            false => Err(ended()),
        };
        let events = &self.source.events;
        let source = &self.source;
        // Other damage is in the rows.
        let mut unreadable = |fault: &FaultReport| {
            if fault.code == FaultCode::Unreadable {
                source.damage.fault(fault);
            }
        };
        let result = match self.kind {
            Kind::Losses => losses(events, &query, &mut hand_over, &mut unreadable),
            Kind::Packets => packets(events, window, &mut hand_over, &mut unreadable),
            Kind::AllSamples | Kind::Samples => {
                let samples = &self.source.samples;
                let finest = (self.kind == Kind::Samples).then(|| Finest::new(samples));
                let mut of_samples = |table: &Table, batch: RecordBatch| match (table, &finest) {
                    (Table::Samples, None) => hand_over(batch),
                    (Table::Samples, Some(finest)) => hand_over(finest.of(&batch)?),
                    _ => Ok(()),
                };
                tables(samples, &query, &mut of_samples, &mut |batch| {
                    source.met(batch)
                })
            }
        };
        match result {
            Err(_) if stop.0.load(Ordering::Relaxed) => Ok(()),
            result => result.map_err(external),
        }
    }
}

/// What the finest archive of each time is.
struct Finest {
    /// By path and archive: its step, and from when on there is a finer one of the same function.
    archives: HashMap<(String, String), (i64, Option<i64>)>,
}

impl Finest {
    fn new(timeline: &Timeline) -> Self {
        let mut archives = HashMap::new();
        for recording in timeline.recordings() {
            let AnyRecording::Rrd(database) = recording else {
                continue;
            };
            let known = &database.database().archives;
            // In nanoseconds; a step is at least a second.
            let step = |at: usize| {
                let seconds = database
                    .database()
                    .step
                    .saturating_mul(known[at].points_per_row);
                i64::try_from(seconds)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(1_000_000_000)
            };
            let begin = |at: usize| {
                let first = recording.chunks(at).find_map(|chunk| chunk.begin_time)?;
                Some(first.as_nanos().saturating_sub(step(at)))
            };
            for at in 0..known.len().min(recording.streams().len()) {
                let is_finer = |other: &usize| {
                    let other = *other;
                    known[other].kind.name() == known[at].kind.name()
                        && (step(other), other) < (step(at), at)
                };
                let finer = (0..known.len()).filter(is_finer).filter_map(begin).min();
                let path = recording.path().to_string_lossy().into_owned();
                let archive = TrackPart::Archive(at as u32).to_string();
                archives.insert((path, archive), (step(at), finer));
            }
        }
        Self { archives }
    }

    /// The rows of the finest archives; their series are named without the archive.
    fn of(&self, batch: &RecordBatch) -> std::result::Result<RecordBatch, Error> {
        let dictionary = |at: usize| batch.column(at).as_dictionary::<UInt32Type>();
        let (recordings, series) = (dictionary(1), dictionary(2));
        let paths: &StringArray = recordings.values().as_string();
        let names: &StringArray = series.values().as_string();
        let parts: Vec<_> = names
            .iter()
            .map(|name| {
                name.and_then(|name| name.split_once(" / "))
                    .unwrap_or_default()
            })
            .collect();
        let mut known = HashMap::new();
        let times = as_timestamp_nanosecond_array(batch.column(0)).map_err(|_| wrong())?;
        let mut keep = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let key = (recordings.keys().value(row), series.keys().value(row));
            let archive = *known.entry(key).or_insert_with(|| {
                let path = paths.value(key.0 as usize).to_owned();
                let archive = parts[key.1 as usize].0.to_owned();
                self.archives.get(&(path, archive)).copied()
            });
            let begin = |step: i64| times.value(row).saturating_sub(step);
            keep.push(match archive {
                Some((step, Some(finer))) if times.is_valid(row) => begin(step) < finer,
                _ => true,
            });
        }
        let is_archive = |at: usize| parts[at].0.starts_with("archive ");
        let short: StringArray = names
            .iter()
            .enumerate()
            .map(|(at, name)| {
                if is_archive(at) {
                    Some(parts[at].1)
                } else {
                    name
                }
            })
            .collect();
        let short = DictionaryArray::<UInt32Type>::try_new(series.keys().clone(), Arc::new(short))?;
        let mut columns = batch.columns().to_vec();
        columns[2] = Arc::new(short);
        let batch = RecordBatch::try_new(batch.schema(), columns)?;
        Ok(filter_record_batch(&batch, &BooleanArray::from(keep))?)
    }
}

fn wrong() -> Error {
    datafusion::arrow::error::ArrowError::SchemaError("samples have no times".to_owned()).into()
}
