//! `kymo print --follow` and sessions of LTTng live: goes on as recordings grow.
//!
//! Whenever a file below the paths has changed, the recordings are refreshed, and what was added is shown. Sessions
//! report how far each of their streams is known: what comes before that is shown, in the order of time.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kymo::AnyRecording;
use kymo::pipeline::{self, Output, Places, ReadPlaces, Span, Tail, Until, may_be_incomplete};
use kymo::show::Sink;
use kymo::timeline::Timeline;
use kymo_io::Tree;
use kymo_model::{FaultReport, Recording};
use kymo_time::Timestamp;

use crate::args::Input;
use crate::args::print::Print;
use crate::grow::{PERIOD, Watcher};
use crate::live::{Growing, Resume, Shown};
use crate::open::{Asked, Inputs, Wanted, are_empty, reopened};
use crate::print::{Console, options, refuse_others};
use crate::terminal::{Failure, Outcome, Terminal};

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
    let grows = |recording: &AnyRecording| !matches!(recording, AnyRecording::Perfetto(_));
    refuse_others(
        recordings,
        "--follow",
        "recordings that are read as they grow",
        grows,
    )
}

/// Waits until directories without recordings have one.
pub(crate) fn await_recordings(input: &Input, terminal: &Terminal) {
    if !are_empty(input) {
        return;
    }
    let paths: Vec<_> = input.paths.iter().map(|path| path.display()).collect();
    let paths: Vec<_> = paths.iter().map(|path| format!("`{path}`")).collect();
    terminal.warning(format_args!(
        "no recording is in {} so far; waiting for one",
        paths.join(", ")
    ));
    while reopened(input, Asked::default(), &[]).is_none() {
        std::thread::sleep(PERIOD);
    }
}

/// Warns of patterns of `--event` that match no event yet: they may be misspelt.
pub(crate) fn warn_of_unknown_events(
    wanted: &Wanted,
    recordings: &[AnyRecording],
    terminal: &Terminal,
) {
    for (glob, meant) in wanted.query.idle_patterns(recordings) {
        warn_of_unknown(glob.pattern(), meant, terminal);
    }
}

/// Warns that no event has a name so far.
pub(crate) fn warn_of_unknown(pattern: &str, meant: Option<&str>, terminal: &Terminal) {
    terminal.warning(format_args!(
        "no event is called `{pattern}` so far; waiting for one"
    ));
    if let Some(meant) = meant {
        terminal.hint(format_args!("did you mean `{meant}`?"));
    }
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
    let mut watcher = Watcher::new(&args.input.paths, terminal);
    let mut timeline = Timeline::new(inputs.recordings).watching(inputs.watched);
    let mut from: Option<Places> = None;
    let mut is_first = true;
    loop {
        let recordings = timeline.recordings();
        let filter = &wanted.filter(recordings, terminal)?;
        for fault in recordings.iter().flat_map(Recording::faults) {
            if output.fault(fault).is_break() {
                return Ok(output.outcome);
            }
        }
        if is_first && let Some(last) = args.last {
            let mut tail = Tail::new(recordings, &filter, sink.is_by_stream());
            from = Some(tail.rewind(last).1);
        }
        if std::mem::replace(&mut is_first, false) {
            warn_of_unknown_events(wanted, recordings, terminal);
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
        from = wait(&mut watcher, &mut timeline).or_else(|| Some(Places::at_end()));
        if watcher.outcome != Outcome::Good {
            output.outcome = watcher.outcome;
        }
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
        let until = Until::new(recordings, &filter, &read, before, |recording| {
            growing.is_live(recording)
        });
        if !until.is_empty() {
            let options = options(args, left);
            let summary = pipeline::run(recordings, &until, &options, sink, &mut output)?;
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
fn wait(watcher: &mut Watcher<'_>, timeline: &mut Timeline) -> Option<Places> {
    loop {
        std::thread::sleep(PERIOD);
        match watcher.refresh(timeline) {
            Some(changes) if !changes.is_empty() => return Some(changes.places()),
            // What is lost was reported, and may end the run.
            _ if watcher.has_news() => return None,
            _ => {}
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
