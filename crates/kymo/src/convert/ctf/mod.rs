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
//! out what damaged packets should say, with `section` where streams count together.

mod index;
mod layout;
mod mend;
mod model;
mod nested;
mod plan;
mod seal;
mod section;
mod stream;

use std::fmt;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use kymo_ctf::class::Dialect;
use kymo_ctf::metadata::fit::FitError;
use kymo_ctf::secure::{NONCE_BYTES, Protection};
use kymo_ctf::write::{StreamWriter, TraceOptions, TraceWriter, WriteError};
use kymo_machine::ByteOrder;
use kymo_model::FaultReport;

pub use self::index::{Indexes, indexes};
use self::plan::{Job, Plan};
use self::seal::Sealing;
use super::losses::{Loss, Losses};
use crate::AnyRecording;
use crate::filter::Filter;

/// Makes the random bytes of an encrypted packet, which must not come twice with a key.
pub type Nonce = fn() -> io::Result<[u8; NONCE_BYTES]>;

/// How a trace is written.
#[derive(Clone, Debug)]
pub struct CtfOptions {
    /// The metadata language.
    pub dialect: Dialect,
    /// The byte order of fields that have the native one; the recording's own unless told.
    pub order: Option<ByteOrder>,
    /// Whether fields lie one behind the other, without alignment.
    pub packed: bool,
    /// The size of packets in bytes; they are kept as they are unless told.
    pub packet_bytes: Option<u64>,
    /// How packets are secured, which only those of RFC v1.1 can be.
    pub protection: Option<(Protection, Nonce)>,
    /// Whether to write index files.
    pub index: bool,
    /// Whether packets whose times and counters contradict their events and neighbours tell others,
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
    /// Damage that was met, in the order of recordings and streams.
    pub faults: Vec<FaultReport>,
    /// What is shown or encoded otherwise than before, a line each.
    pub changes: Vec<String>,
    /// What could not be written, with how often and why.
    pub refused: Vec<String>,
    /// Packets that tell other times or counts than those of the recording, which were damaged.
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

/// Writes the chosen events of some recordings (by their positions) as one trace to a directory,
/// which must not be there or be empty. `progress` is told the bytes that have been gone through.
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
    let trace = TraceWriter::create(
        path,
        &plan.model,
        TraceOptions {
            index: options.index,
        },
    )?;
    let trace = Mutex::new(trace);
    let jobs = &plan.jobs;
    let results: Vec<Mutex<Option<Result<stream::Done, WriteError>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    // Where there are fewer streams than threads, the packets of one are sealed by several.
    let sealers = options.threads.div_ceil(jobs.len().max(1));
    let sealers = NonZero::new(sealers).unwrap_or(NonZero::<usize>::MIN);
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let work = || {
        let mut worker = filter.worker();
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { return };
            let done = open(&trace, job, options, sealers).and_then(|writer| {
                stream::write(&plan, job, writer, filter, &mut worker, options, progress)
            });
            let is_end = match &done {
                Ok(done) => options.strict && !done.faults.is_empty(),
                Err(_) => true,
            };
            if is_end {
                stop.store(true, Ordering::Relaxed);
            }
            *results[number]
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(done);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.threads.min(jobs.len()).max(1) {
            scope.spawn(work);
        }
        work();
    });
    let mut written = Written::default();
    let losses = Losses::default();
    for result in results {
        let done = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(done) = done {
            let done = done?;
            written.events += done.events;
            written.faults.extend(done.faults);
            written.refused.extend(done.refused);
            written.mended += done.mended;
            losses.add(Loss::Early, done.early);
            losses.add(Loss::Untimed, done.untimed);
        }
    }
    // First, since of many changes not all are shown.
    written.changes = losses.lines();
    written.changes.extend(plan.changes);
    Ok(written)
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
