//! Recordings turned into traces in the Common Trace Format.
//!
//! Streams are written one by one, by several threads, and not through the merge: a trace has the
//! streams of its recordings. Where the bits of a packet or an event are the same in the target,
//! they are copied; else values are decoded and encoded again.
//!
//! Packets of RFC v1.1 are secured on their way to the file (`seal`).
//!
//! `plan` makes one class model of those of the recordings (`model` makes those of recordings
//! that have none, `layout` lays fields out otherwise), and `stream` writes a stream. `mend` finds
//! out what damaged packets should say, with `section` where streams count together. `order` returns
//! whether the events of a stream are in order of time, and `sift` which are not.

mod done;
mod model;
mod nested;
mod plan;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use kymo_ctf::class::{Dialect, TraceClass};
use kymo_ctf::metadata::fit::{FitError, fit};
use kymo_ctf::secure::{Key, Nonce, Protection};
use kymo_ctf::write::{
    EventId, Sealing, StreamWriter, Token, TraceOptions, TraceWriter, WriteError, layout,
};
use kymo_machine::ByteOrder;
use kymo_model::{EventClass, FaultReport};
use kymo_time::Clock;

use self::done::Done;
use self::plan::{Job, Plan};
use super::losses::{Loss, Losses};
use crate::filter::{Filter, Query, Worker};
use crate::report::MOST_FAULTS;
use crate::{AnyRecording, Discarded};
use kymo_io::in_threads;

/// How a trace is written.
#[derive(Clone, Debug)]
pub struct CtfOptions {
    /// The metadata language.
    pub dialect: Dialect,
    /// The byte order of fields that have the native one [default: the recording's own].
    pub order: Option<ByteOrder>,
    /// Whether fields lie one behind the other, without alignment.
    pub packed: bool,
    /// The size of packets in bytes [default: packets are kept as they are].
    pub packet_bytes: Option<u64>,
    /// How packets are secured, which only those of RFC v1.1 can be.
    pub protection: Option<(Protection, Nonce)>,
    /// The keys of a recording whose packets are to stay secured as they are, in place of that: those of which all
    /// stays are copied, others are secured again, each as it was.
    pub kept_protection: Option<(Vec<Key>, Nonce)>,
    /// How the metadata is secured, which only that of RFC v1.1 can be.
    pub metadata_protection: Option<(Protection, Nonce)>,
    /// Whether LTTng's index files are written; RFC v1.1 has none.
    pub index: bool,
    /// Whether packets whose times and counters contradict their events and neighbours get corrected ones,
    /// events out of their packet's time are left out, and what is known to be lost with damage is
    /// counted as discarded.
    pub repairs: bool,
    /// Threads to work with; at least 1.
    pub threads: usize,
    /// Whether to stop at the first damage.
    pub strict: bool,
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// Damage that was met, in the order of recordings and streams: at most [`MOST_FAULTS`], and
    /// where the first damage ends it all only that.
    pub faults: Vec<FaultReport>,
    /// How many faults there are beyond those listed.
    pub more_faults: u64,
    /// What is shown or encoded otherwise than before, a line each.
    pub changes: Vec<String>,
    /// What could not be written, with how often and why.
    pub refused: Vec<String>,
    /// What the recorders discarded, which the trace also records.
    pub discarded: Discarded,
    /// Packets that state other times or counts than those of the recording, which were damaged.
    pub mended: u64,
}

/// Why no trace is written.
#[derive(Debug)]
pub enum CtfError {
    /// The dialect has no equal for something.
    Fit(FitError),
    /// The trace cannot be written.
    Write(WriteError),
}

impl fmt::Display for CtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fit(error) => write!(f, "{error}"),
            Self::Write(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for CtfError {}

impl From<FitError> for CtfError {
    fn from(error: FitError) -> Self {
        Self::Fit(error)
    }
}

impl From<WriteError> for CtfError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// What a recording is as a trace in CTF 2: its classes, and where its streams and events go.
#[derive(Clone, Debug)]
pub struct TraceModel {
    /// The classes. Times take all bits that they may need.
    pub class: TraceClass,
    /// The streams of the recording, in its order.
    pub streams: Vec<StreamModel>,
    /// For each event class of the recording that of the trace.
    pub events: Vec<EventId>,
}

/// A stream of a [`TraceModel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamModel {
    /// Position of its class in the trace.
    pub stream_class: usize,
    /// Its number, if it has one.
    pub id: Option<u64>,
    /// The name of its file.
    pub name: String,
}

impl TraceModel {
    /// What the recording at a position would be.
    ///
    /// # Errors
    ///
    /// CTF 2 cannot hold it.
    pub fn new(recordings: &[AnyRecording], recording: usize) -> Result<Self, CtfError> {
        let options = CtfOptions {
            dialect: Dialect::Ctf2,
            order: None,
            packed: false,
            packet_bytes: None,
            protection: None,
            kept_protection: None,
            metadata_protection: None,
            index: false,
            repairs: false,
            threads: 1,
            strict: false,
        };
        let filter = Filter::new(&Query::default(), &[], recordings)
            .map_err(|error| WriteError::Misuse(error.to_string()))?;
        let plan = Plan::new(recordings, &[recording], &filter, &options)?;
        let mut class = plan.model;
        layout::widen_times(&mut class);
        let streams = plan.jobs.into_iter().map(|job| StreamModel {
            stream_class: job.stream_class,
            id: job.options.stream_id,
            name: job.name,
        });
        let events = plan.sources.into_iter().flat_map(|source| source.events);
        Ok(Self {
            class,
            streams: streams.collect(),
            events: events.collect(),
        })
    }

    /// What rows of tables are as a trace: event classes of one stream with a clock, if they have times.
    ///
    /// # Errors
    ///
    /// CTF 2 cannot hold them.
    pub fn of_tables(clock: Option<Arc<Clock>>, classes: &[EventClass]) -> Result<Self, CtfError> {
        let order = ByteOrder::Little;
        let class = model::of_classes(None, &[(0, clock)], classes, order, Dialect::Ctf2);
        let class = fit(&class, Dialect::Ctf2)?.model;
        let events = 0..classes.len();
        Ok(Self {
            class,
            streams: vec![StreamModel {
                stream_class: 0,
                id: Some(0),
                name: "stream_0".to_owned(),
            }],
            events: events
                .map(|event| EventId {
                    stream_class: 0,
                    event,
                })
                .collect(),
        })
    }
}

/// Writes the chosen events of some recordings (by their positions) as one trace to a directory,
/// which must not be there or be empty. `progress` receives the number of bytes that were processed.
///
/// # Errors
///
/// Where the dialect cannot hold what the recordings are, or the directory cannot be written. What
/// was written by then stays.
pub fn write(
    recordings: &[AnyRecording],
    which: &[usize],
    filter: &Filter,
    options: &CtfOptions,
    path: &Path,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Written, CtfError> {
    let plan = Plan::new(recordings, which, filter, options)?;
    let form = TraceOptions {
        index: options.index,
    };
    let trace = match &options.metadata_protection {
        Some(how) => TraceWriter::create_secured(path, &plan.model, form, how, plan.session_id)?,
        None => TraceWriter::create(path, &plan.model, form)?,
    };
    let trace = Mutex::new(trace);
    let jobs = &plan.jobs;
    // Where there are fewer streams than threads, the packets of one are sealed by several.
    let sealers = options.threads.div_ceil(jobs.len().max(1));
    let sealers = NonZero::new(sealers).unwrap_or(NonZero::<usize>::MIN);
    let new_part = || Part {
        worker: filter.worker(),
        done: Vec::new(),
        room: MOST_FAULTS,
    };
    let parts = in_threads(jobs.len(), options.threads, new_part, |part, number| {
        let (job, worker) = (&jobs[number], &mut part.worker);
        let done = open(&trace, job, options, sealers).and_then(|mut writer| {
            if plan.model.dialect == Dialect::Rfc11 {
                let session_id = Token::Uint(plan.session_id.into());
                writer.packet_members().set("session_id", session_id);
            }
            stream::write(&plan, job, writer, filter, worker, options, progress)
        });
        let is_end = match &done {
            Ok(done) => options.strict && !done.faults.is_empty(),
            Err(_) => true,
        };
        part.add(number, done);
        !is_end
    });
    let mut jobs_done: Vec<_> = parts.into_iter().flat_map(|part| part.done).collect();
    jobs_done.sort_by_key(|(number, _)| *number);
    let mut written = Written::default();
    let losses = Losses::default();
    for (_, done) in jobs_done {
        let done = done?;
        written.add(done, &losses);
        if options.strict && !written.faults.is_empty() {
            // Which of the others there are depends on the threads.
            written.faults.truncate(1);
            written.more_faults = 0;
            break;
        }
    }
    // First, since of many changes not all are shown.
    written.changes = losses.lines();
    written.changes.extend(plan.changes);
    Ok(written)
}

/// What a thread has done.
struct Part<'f> {
    worker: Worker<'f>,
    /// The streams, by their numbers among all, which are in order.
    done: Vec<(usize, Result<Done, WriteError>)>,
    /// How many faults are still kept.
    room: usize,
}

impl Part<'_> {
    fn add(&mut self, number: usize, mut done: Result<Done, WriteError>) {
        if let Ok(done) = &mut done {
            done.keep_faults(self.room);
            self.room -= done.faults.len();
        }
        self.done.push((number, done));
    }
}

impl Written {
    /// Adds what was done with the next stream.
    fn add(&mut self, mut done: Done, losses: &Losses) {
        self.events += done.events;
        done.keep_faults(MOST_FAULTS - self.faults.len());
        self.refused.extend(done.refused());
        self.faults.extend(done.faults);
        self.more_faults += done.more_faults;
        self.mended += done.mended;
        self.discarded.add(&done.discarded);
        losses.add(Loss::Early, done.early);
        losses.add(Loss::Untimed, done.untimed);
    }
}

fn open(
    trace: &Mutex<TraceWriter>,
    job: &Job<'_>,
    options: &CtfOptions,
    sealers: NonZero<usize>,
) -> Result<StreamWriter<Sealing>, WriteError> {
    let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
    let order = trace.encoder().class().native_order();
    let stream_options = job.options.clone();
    trace.stream_through(job.stream_class, &job.name, stream_options, |file| {
        Sealing::new(file, options.protection.clone(), order, sealers)
    })
}
