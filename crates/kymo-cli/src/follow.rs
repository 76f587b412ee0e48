//! `kymo print --follow`: goes on as recordings grow.
//!
//! Whenever a file below the paths has changed, the recordings are opened anew, and what
//! was not there before is shown: whole new packets, and of a stream's last packet the
//! events that were added to it.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kymo::AnyRecording;
use kymo::filter::{Filter, Worker};
use kymo::pipeline::{self, Judge, Output, Select, Window};
use kymo::show::Assembler;
use kymo_model::{Chunk, Event, Fault, FaultCode, FaultReport, Recording};

use crate::args::Print;
use crate::open::{Inputs, Wanted, opened};
use crate::print::{Console, options};
use crate::terminal::{Failure, Outcome, Terminal};

/// How often files are looked at.
const PERIOD: Duration = Duration::from_millis(200);
/// So many faults and warnings are remembered, so that each is told once.
const MOST_REMEMBERED: usize = 100_000;

/// Shows recordings as they grow. Ends only when there is no one to read, when enough
/// events were shown, or at the first damage with `--strict`.
pub(crate) fn run<A: Assembler>(
    args: &Print,
    wanted: &Wanted,
    inputs: Inputs,
    assembler: &mut A,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut seen = Seen::default();
    let mut output = Tail {
        console: Console::new(args, terminal),
        told: HashSet::new(),
        outcome: inputs.outcome,
    };
    let mut left = args.limit;
    let mut state = fingerprint(&args.input.paths);
    let mut recordings = inputs.recordings;
    loop {
        let filter = wanted.filter(&recordings, terminal)?;
        for fault in recordings.iter().flat_map(Recording::faults) {
            if output.fault(fault).is_break() {
                return Ok(output.outcome);
            }
        }
        let select = Fresh::new(&filter, &seen, &recordings);
        let summary = pipeline::run(
            &recordings,
            &&select,
            &options(args, left),
            assembler,
            &mut output,
        )?;
        io::stdout().flush()?;
        seen = select.seen(&recordings);
        left = left.map(|left| left.saturating_sub(summary.events));
        let is_broken = args.work.strict && output.outcome != Outcome::Good;
        if left == Some(0) || is_broken {
            return Ok(output.outcome);
        }
        (state, recordings) = wait(args, state);
    }
}

/// Waits until the files have changed and can be opened: a file that is just being
/// written may not make sense yet.
fn wait(args: &Print, mut state: u64) -> (u64, Vec<AnyRecording>) {
    loop {
        std::thread::sleep(PERIOD);
        let now = fingerprint(&args.input.paths);
        if now == state {
            continue;
        }
        state = now;
        let recordings =
            opened(&args.input).map_or_else(|_| Vec::new(), |opened| opened.recordings);
        if !recordings.is_empty() {
            return (state, recordings);
        }
    }
}

/// A number that changes when a file below the paths does.
fn fingerprint(paths: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut looked_into = HashSet::new();
    for path in paths {
        // A file stands for the trace that it is a part of.
        let directory = match path.is_file() {
            true => path.parent().unwrap_or(path),
            false => path,
        };
        hash_directory(directory, &mut looked_into, &mut hasher);
    }
    hasher.finish()
}

/// Each directory is looked into once, however many links lead to it.
fn hash_directory(
    directory: &Path,
    looked_into: &mut HashSet<PathBuf>,
    hasher: &mut DefaultHasher,
) {
    let real = std::fs::canonicalize(directory);
    if !real.is_ok_and(|real| looked_into.insert(real)) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    for path in paths {
        let Ok(metadata) = std::fs::metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            hash_directory(&path, looked_into, hasher);
        } else {
            path.hash(hasher);
            metadata.len().hash(hasher);
            metadata.modified().ok().hash(hasher);
        }
    }
}

/// What tells a stream from all others, however often it is opened.
#[derive(Debug, PartialEq, Eq, Hash)]
enum StreamKey {
    /// The numbers that the recording gives its streams. Its path says nothing: that of a session
    /// that is rotated changes.
    Numbers(String, u64, u64),
    Path(PathBuf, u64, Arc<str>),
}

fn key(of: &AnyRecording, stream: usize) -> StreamKey {
    let info = &of.streams()[stream];
    // Where packets do not tell when they begin, each file is a stream of the same number.
    let is_whole = || {
        of.chunk(stream, 0)
            .is_some_and(|first| first.begin.is_some())
    };
    match (of.uid(), info.id) {
        (Some(uid), Some(id)) if is_whole() => StreamKey::Numbers(uid.to_string(), info.class, id),
        _ => StreamKey::Path(of.path().to_path_buf(), info.class, Arc::clone(&info.name)),
    }
}

/// Up to where a stream was shown.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The chunk that may still grow.
    chunk: usize,
    /// The ticks at which that chunk begins.
    begin: Option<u64>,
    /// How many of its events were seen.
    events: u64,
}

impl Place {
    /// The same place in a stream that was opened anew. Of a recorder that writes over its oldest
    /// files, chunks are gone, and maybe this one too: then it is where the next one begins.
    fn again(self, of: &AnyRecording, stream: usize) -> Self {
        let begin_of = |chunk: usize| of.chunk(stream, chunk).and_then(|chunk| chunk.begin);
        if self.begin.is_none() || begin_of(self.chunk) == self.begin {
            return self;
        }
        let later = |chunk: &Chunk| chunk.begin >= self.begin;
        let chunk = of
            .chunks(stream)
            .position(|chunk| later(&chunk))
            .unwrap_or_else(|| of.chunk_count(stream));
        let begin = begin_of(chunk);
        let events = if begin == self.begin { self.events } else { 0 };
        Self {
            chunk,
            begin,
            events,
        }
    }
}

/// Up to where each stream was shown.
type Seen = HashMap<StreamKey, Place>;

/// A filter that wants only what was not seen before.
struct Fresh<'f> {
    filter: &'f Filter,
    /// By recording and stream, where to begin, and how many events were seen of the last
    /// chunk.
    streams: Vec<Vec<(Place, AtomicU64)>>,
}

impl<'f> Fresh<'f> {
    fn new(filter: &'f Filter, seen: &Seen, recordings: &[AnyRecording]) -> Self {
        let stream = |of: &AnyRecording, stream: usize| {
            let place = seen.get(&key(of, stream)).copied().unwrap_or_default();
            let place = place.again(of, stream);
            let last = of.chunk_count(stream).saturating_sub(1);
            let events = if place.chunk == last { place.events } else { 0 };
            (place, AtomicU64::new(events))
        };
        let streams = |of: &AnyRecording| {
            (0..of.streams().len())
                .map(|position| stream(of, position))
                .collect()
        };
        Self {
            filter,
            streams: recordings.iter().map(streams).collect(),
        }
    }

    /// Up to where everything is seen now.
    fn seen(&self, recordings: &[AnyRecording]) -> Seen {
        let mut seen = Seen::new();
        for (of, streams) in recordings.iter().zip(&self.streams) {
            for (stream, (_, events)) in streams.iter().enumerate() {
                let chunk = of.chunk_count(stream).saturating_sub(1);
                let place = Place {
                    chunk,
                    begin: of.chunk(stream, chunk).and_then(|chunk| chunk.begin),
                    events: events.load(Ordering::Relaxed),
                };
                seen.insert(key(of, stream), place);
            }
        }
        seen
    }
}

impl<'f> Select for &'f Fresh<'_> {
    type Judge = FreshJudge<'f>;

    fn judge(&self) -> FreshJudge<'f> {
        FreshJudge {
            of: self,
            worker: self.filter.judge(),
            skip: 0,
            events: None,
        }
    }

    fn window(&self, recording: usize) -> Window {
        self.filter.window(recording)
    }

    fn wants_class(&self, recording: usize, of: &AnyRecording, class: usize) -> bool {
        self.filter.wants_class(recording, of, class)
    }

    fn first_chunk(&self, recording: usize, stream: usize) -> usize {
        self.streams[recording][stream].0.chunk
    }
}

/// Decides in one thread.
struct FreshJudge<'f> {
    of: &'f Fresh<'f>,
    worker: Worker<'f>,
    /// Events of the chunk that were seen before.
    skip: u64,
    /// Where to count events, in a stream's last chunk.
    events: Option<&'f AtomicU64>,
}

impl Judge for FreshJudge<'_> {
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault> {
        let (place, events) = &self.of.streams[recording][chunk.stream];
        self.skip = if chunk.number == place.chunk {
            place.events
        } else {
            0
        };
        let is_last = chunk.number + 1 == of.chunk_count(chunk.stream);
        self.events = is_last.then_some(events);
        self.worker.chunk(recording, of, chunk)
    }

    fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        if event.number() < self.skip {
            return Ok(false);
        }
        let wanted = self.worker.wants(event)?;
        if let Some(events) = self.events {
            events.fetch_max(event.number() + 1, Ordering::Relaxed);
        }
        Ok(wanted)
    }
}

/// Text to standard output, the rest to standard error, each line once.
struct Tail<'t> {
    console: Console<'t>,
    told: HashSet<u64>,
    outcome: Outcome,
}

impl Tail<'_> {
    fn is_new(&mut self, what: impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        self.told.len() < MOST_REMEMBERED && self.told.insert(hasher.finish())
    }
}

impl Output for Tail<'_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.console.text(text)
    }

    fn warning(&mut self, lines: &[u8]) -> io::Result<()> {
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            if self.is_new(line) {
                self.console.warning(line)?;
            }
        }
        Ok(())
    }

    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()> {
        // What is only half written looks damaged.
        let is_growth = matches!(
            fault.code,
            FaultCode::Truncated | FaultCode::TrailingData | FaultCode::Index
        );
        if is_growth || !self.is_new((&fault.file, fault.offset, fault.code, &fault.message)) {
            return ControlFlow::Continue(());
        }
        self.outcome = Outcome::Damage;
        self.console.fault(fault)
    }
}
