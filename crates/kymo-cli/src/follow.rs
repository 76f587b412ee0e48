//! `kymo print --follow` and sessions of LTTng live: goes on as recordings grow.
//!
//! Whenever a file below the paths has changed, the recordings are refreshed, and what was added is shown. Sessions
//! report how far each of their streams is known: what comes before that is shown, in the order of time.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use kymo::AnyRecording;
use kymo::pipeline::{self, Output, Places, ReadPlaces, Span, Tail, Until, may_be_incomplete};
use kymo::show::Sink;
use kymo::timeline::Timeline;
use kymo_ctf::trace::Directory;
use kymo_io::Tree;
use kymo_model::{FaultReport, Recording};
use kymo_time::Timestamp;

use crate::args::Print;
use crate::live::{Growing, Resume, Shown};
use crate::open::{Inputs, Wanted};
use crate::print::{Console, options, refuse_others};
use crate::terminal::{Failure, Outcome, Terminal};

/// How often files are looked at.
const PERIOD: Duration = Duration::from_millis(200);
/// How many faults and warnings are remembered, so that each is reported once.
const MOST_REMEMBERED: usize = 100_000;

/// Refuses paths that do not grow.
pub(crate) fn refuse_wrapped(paths: &[PathBuf]) -> Result<(), Failure> {
    let is_wrapped = |path: &&PathBuf| Tree::is_wrapped(path).unwrap_or(false);
    match paths.iter().find(is_wrapped) {
        Some(path) => Err(Failure::Usage(format!(
            "error: cannot follow `{}`: standard input, archives and compressed files do not grow as \
             recordings do",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses recordings that are sorted when they are opened.
pub(crate) fn refuse_sorted(recordings: &[AnyRecording]) -> Result<(), Failure> {
    let grows = |of: &AnyRecording| !matches!(of, AnyRecording::Perfetto(_));
    refuse_others(
        recordings,
        "--follow",
        "recordings that are read as they grow",
        grows,
    )
}

/// Shows recordings as they grow. Ends only when the reader of the output is gone, when enough
/// events were shown, or at the first damage with `--strict`.
pub(crate) fn run<A: Sink>(
    args: &Print,
    wanted: &Wanted,
    inputs: Inputs,
    sink: &mut A,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut output = Follower {
        console: Console::new(args, terminal),
        reported: HashSet::new(),
        outcome: inputs.outcome,
    };
    let mut left = args.limit;
    let mut is_lost = false;
    let mut state = fingerprint(&args.input.paths);
    let mut timeline = Timeline::new(inputs.recordings).watching(inputs.watched);
    let mut from: Option<Places> = None;
    loop {
        let recordings = timeline.recordings();
        let filter = &wanted.filter(recordings, terminal)?;
        for fault in recordings.iter().flat_map(Recording::faults) {
            if output.fault(fault).is_break() {
                return Ok(output.outcome);
            }
        }
        if from.is_none()
            && let Some(last) = args.last
        {
            let mut tail = Tail::new(recordings, &filter, sink.is_by_stream());
            from = Some(tail.rewind(last).1);
        }
        let select = Span {
            select: &filter,
            from: from.as_ref(),
            to: None,
        };
        let options = options(args, left);
        let summary = pipeline::run(recordings, &select, &options, sink, &mut output)?;
        io::stdout().flush()?;
        left = left.map(|left| left.saturating_sub(summary.events));
        is_lost |= !summary.discarded.is_empty();
        let is_broken = args.work.strict && output.outcome != Outcome::Good;
        if left == Some(0) || is_broken {
            return Ok(match args.work.strict && is_lost {
                true => Outcome::Damage,
                false => output.outcome,
            });
        }
        from = Some(wait(&args.input.paths, &mut state, &mut timeline));
    }
}

/// A condition may be of fields that come with metadata later: so long that is waited for.
const FIELD_PATIENCE: Duration = Duration::from_secs(10);

/// Shows sessions as they grow, until they end or the reading is interrupted.
pub(crate) fn run_live<A: Sink>(
    args: &Print,
    wanted: &Wanted,
    mut growing: Growing,
    sink: &mut A,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let resume = match &args.live_resume {
        Some(path) => Resume::load(path)?,
        None => Resume::default(),
    };
    let mut shown = Shown::new(resume);
    let mut output = Follower {
        console: Console::new(args, terminal),
        reported: HashSet::new(),
        outcome: Outcome::Good,
    };
    let mut left = args.limit;
    let mut is_lost = false;
    let mut read = ReadPlaces::default();
    let mut begun: Vec<usize> = Vec::new();
    let mut before = Timestamp::MIN;
    let since = Instant::now();
    loop {
        let mut restarted = Vec::new();
        let arrived = growing.wait(terminal, |recording, stream| {
            restarted.push((recording, stream));
        });
        for (recording, stream) in restarted {
            read.restart(recording, stream, Some(before));
        }
        shown.begin(&growing, &mut read, &mut begun);
        for fault in growing.faults() {
            if output.fault(fault).is_break() {
                return Ok(output.outcome);
            }
        }
        let recordings = growing.timeline.recordings();
        let filter = match wanted.filter(recordings, terminal) {
            Err(_) if since.elapsed() < FIELD_PATIENCE && !arrived.is_over => continue,
            filter => filter?,
        };
        before = arrived.before;
        let select = &&filter;
        let until = Until::new(recordings, select, &read, before, |of| growing.is_live(of));
        if !until.is_empty() {
            let options = options(args, left);
            let summary = pipeline::run(recordings, &&until, &options, sink, &mut output)?;
            io::stdout().flush()?;
            left = left.map(|left| left.saturating_sub(summary.events));
            is_lost |= !summary.discarded.is_empty();
        }
        until.finish(&mut read);
        shown.update(&growing, &read, before, args.live_resume.as_deref())?;
        let outcome = match growing.outcome {
            Outcome::Good => output.outcome,
            outcome => outcome,
        };
        let is_broken = args.work.strict && outcome != Outcome::Good;
        if left == Some(0) || is_broken || arrived.is_over {
            return Ok(match args.work.strict && is_lost {
                true => Outcome::Damage,
                false => outcome,
            });
        }
    }
}

/// Waits until recordings have changed, and returns where what is new begins. A file that is just being
/// written may not make sense yet: then it is looked at again.
fn wait(paths: &[PathBuf], state: &mut u64, timeline: &mut Timeline) -> Places {
    let mut is_unsure = false;
    loop {
        std::thread::sleep(PERIOD);
        let now = fingerprint(paths);
        if now == *state && !is_unsure {
            continue;
        }
        *state = now;
        // The timeline has no other users.
        let Ok(changes) = timeline.refresh() else {
            continue;
        };
        is_unsure = !changes.errors.is_empty();
        if !changes.is_empty() {
            return changes.places();
        }
    }
}

/// A number that changes when a file below the paths does.
pub(crate) fn fingerprint(paths: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    each_file(paths, &mut |path, metadata| {
        path.hash(&mut hasher);
        metadata.len().hash(&mut hasher);
        metadata.modified().ok().hash(&mut hasher);
    });
    hasher.finish()
}

/// The files below some paths, each with what changes when it does: its size and when it was written.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FileStates(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl FileStates {
    /// As they are now.
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let mut files = BTreeMap::new();
        each_file(paths, &mut |path, metadata| {
            let state = (metadata.len(), metadata.modified().ok());
            files.insert(path.to_path_buf(), state);
        });
        Self(files)
    }

    /// Those that have changed since, if they are the same files.
    pub(crate) fn changed_since(&self, before: &Self) -> Option<Vec<&Path>> {
        let are_same = self.0.len() == before.0.len() && self.0.keys().eq(before.0.keys());
        let pairs = self.0.iter().zip(&before.0);
        let changed = pairs.filter(|(now, before)| now.1 != before.1);
        are_same.then(|| changed.map(|(now, _)| now.0.as_path()).collect())
    }
}

/// Calls for each file below some paths.
fn each_file(paths: &[PathBuf], take: &mut dyn FnMut(&Path, &Metadata)) {
    let mut looked_into = HashSet::new();
    let one = |path: &Path, take: &mut dyn FnMut(&Path, &Metadata)| {
        if let Ok(metadata) = std::fs::metadata(path) {
            take(path, &metadata);
        }
    };
    for path in paths {
        if !path.is_file() {
            files_in(path, &mut looked_into, take);
            continue;
        }
        one(path, take);
        // It may be a stream of the trace that it lies beside.
        let directory = path.parent();
        if let Some(metadata) = directory.and_then(Directory::metadata_path) {
            one(&metadata, take);
        }
    }
}

/// Each directory is looked into once, however many links lead to it.
fn files_in(
    directory: &Path,
    looked_into: &mut HashSet<PathBuf>,
    take: &mut dyn FnMut(&Path, &Metadata),
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
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => files_in(&path, looked_into, take),
            Ok(metadata) => take(&path, &metadata),
            Err(_) => {}
        }
    }
}

/// Text to standard output, the rest to standard error, each line once.
struct Follower<'t> {
    console: Console<'t>,
    reported: HashSet<u64>,
    outcome: Outcome,
}

impl Follower<'_> {
    fn is_new(&mut self, what: impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        self.reported.len() < MOST_REMEMBERED && self.reported.insert(hasher.finish())
    }
}

impl Output for Follower<'_> {
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
        if may_be_incomplete(fault.code)
            || !self.is_new((&fault.file, fault.offset, fault.code, &fault.message))
        {
            return ControlFlow::Continue(());
        }
        self.outcome = Outcome::Damage;
        self.console.fault(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_files_those_that_changed_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let paths = [directory.path().to_path_buf()];
        let file = |name: &str| directory.path().join(name);
        for name in ["a", "b", "c"] {
            std::fs::write(file(name), "x").unwrap();
        }
        let before = FileStates::of(&paths);
        assert_eq!(FileStates::of(&paths), before);
        assert_eq!(before.changed_since(&before), Some(Vec::new()));
        std::fs::write(file("b"), "xy").unwrap();
        let now = FileStates::of(&paths);
        assert_eq!(now.changed_since(&before), Some(vec![&*file("b")]));
        // Others are there: all are opened again.
        std::fs::write(file("d"), "x").unwrap();
        assert_eq!(FileStates::of(&paths).changed_since(&now), None);
        std::fs::remove_file(file("d")).unwrap();
        std::fs::rename(file("c"), file("e")).unwrap();
        assert_eq!(FileStates::of(&paths).changed_since(&now), None);
    }
}
