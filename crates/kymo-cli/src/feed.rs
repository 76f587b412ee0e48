//! Where analyses get their events: recordings that are whole, sessions of LTTng live and files as they grow.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymo::AnyRecording;
use kymo::analysis::{Error, Feed, Taker, Whole};
use kymo::pipeline::{ReadPlaces, Until};
use kymo::timeline::Timeline;
use kymo_model::{Change, Recording};
use kymo_time::Timestamp;

use crate::follow::{warn_of_unknown, warn_of_unknown_events};
use crate::grow::{PERIOD, Watcher};
use crate::live::{Growing, Resume, Shown};
use crate::open::{Inputs, Wanted};
use crate::terminal::{Failure, Outcome, Terminal};

/// A stream to which nothing was added for so long does not hold up the others.
const SILENCE: Duration = Duration::from_secs(5);
/// So long events and fields are waited for before a warning says that they are missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Recordings for an analysis.
pub(crate) enum AnalysisFeed<'a> {
    /// They are whole.
    Whole(Whole<'a>),
    /// They grow.
    Growing(Box<GrowingFeed<'a>>),
}

impl Feed for AnalysisFeed<'_> {
    fn each(&mut self, taker: &mut dyn Taker) -> Result<(), Error> {
        match self {
            Self::Whole(whole) => whole.each(taker),
            Self::Growing(growing) => growing.each(taker),
        }
    }

    fn recordings(&self) -> &[AnyRecording] {
        match self {
            Self::Whole(whole) => whole.recordings(),
            Self::Growing(growing) => growing.recordings(),
        }
    }
}

/// What has come.
struct Arrived {
    /// All events before this are there.
    before: Timestamp,
    /// Nothing more comes.
    is_over: bool,
}

/// Recordings that grow.
pub(crate) struct GrowingFeed<'a> {
    source: Source<'a>,
    wanted: &'a Wanted,
    terminal: &'a Terminal,
    failure: Option<Failure>,
}

enum Source<'t> {
    Session(Box<(Growing, Shown)>),
    Files(Box<Files<'t>>),
}

impl<'a> GrowingFeed<'a> {
    /// Sessions of LTTng live, until they end or the reading is interrupted.
    pub(crate) fn session(growing: Growing, wanted: &'a Wanted, terminal: &'a Terminal) -> Self {
        Self {
            source: Source::Session(Box::new((growing, Shown::new(Resume::default())))),
            wanted,
            terminal,
            failure: None,
        }
    }

    /// Files and directories, until the reading is interrupted. The recordings are taken out of the inputs.
    pub(crate) fn files(
        paths: &[PathBuf],
        inputs: &mut Inputs,
        wanted: &'a Wanted,
        terminal: &'a Terminal,
    ) -> Self {
        Self {
            source: Source::Files(Box::new(Files::new(paths, inputs, terminal))),
            wanted,
            terminal,
            failure: None,
        }
    }

    /// Why the reading has ended, if it failed.
    pub(crate) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// How well it has gone.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.source {
            Source::Session(session) => session.0.outcome,
            Source::Files(files) => files.watcher.outcome,
        }
    }
}

impl Feed for GrowingFeed<'_> {
    fn each(&mut self, taker: &mut dyn Taker) -> Result<(), Error> {
        let mut read = ReadPlaces::default();
        let mut before = Timestamp::MIN;
        let mut known = Timestamp::MIN;
        let begun = Instant::now();
        let (mut has_warned, mut has_looked) = (false, false);
        loop {
            let arrived = self.source.wait(self.terminal, &mut read, before);
            before = match arrived.is_over {
                true => Timestamp::MAX,
                false => arrived.before,
            };
            let recordings = self.source.recordings();
            let is_late = begun.elapsed() > PATIENCE;
            let filter = match self.wanted.filter(recordings, self.terminal) {
                // Its fields may come with metadata later.
                Err(_) if !arrived.is_over && !is_late => continue,
                Err(failure) => {
                    self.failure = Some(failure);
                    return Ok(());
                }
                Ok(filter) => filter,
            };
            // The metadata of files that are there is known.
            if (is_late || self.source.is_files()) && !std::mem::replace(&mut has_looked, true) {
                warn_of_unknown_events(self.wanted, recordings, self.terminal);
            }
            let source = &self.source;
            let until = Until::new(recordings, &filter, &read, before, |recording| {
                source.is_bound(recording)
            });
            let reached = match before {
                Timestamp::MAX => known,
                before => before.max(known),
            };
            if until.is_empty() && reached == known && !arrived.is_over {
                continue;
            }
            let part = (!arrived.is_over).then_some(reached);
            match taker.take(recordings, &until, part) {
                Ok(goes_on) => {
                    until.finish(&mut read);
                    known = reached;
                    if let Err(failure) = self.source.give_back(&read, before) {
                        self.failure = Some(failure);
                        return Ok(());
                    }
                    if !goes_on || arrived.is_over {
                        return Ok(());
                    }
                }
                Err(error) if arrived.is_over => return Err(error),
                // They may come later.
                Err(Error::Event(event)) => {
                    let is_due = is_late || self.source.is_files();
                    if is_due && !std::mem::replace(&mut has_warned, true) {
                        warn_of_unknown(&event.pattern, event.meant.as_deref(), self.terminal);
                    }
                }
                Err(Error::Field { .. } | Error::NoSlices { .. }) if !is_late => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn recordings(&self) -> &[AnyRecording] {
        self.source.recordings()
    }
}

impl Source<'_> {
    fn recordings(&self) -> &[AnyRecording] {
        match self {
            Self::Session(session) => session.0.timeline.recordings(),
            Self::Files(files) => files.timeline.recordings(),
        }
    }

    fn is_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// Whether only what is before the time that is reached is read of a recording.
    fn is_bound(&self, recording: usize) -> bool {
        match self {
            Self::Session(session) => session.0.is_live(recording),
            Self::Files(_) => true,
        }
    }

    /// Waits for more, with the time up to which events were read.
    fn wait(&mut self, terminal: &Terminal, read: &mut ReadPlaces, before: Timestamp) -> Arrived {
        match self {
            Self::Session(session) => {
                let arrived = session.0.wait(terminal, |recording, stream| {
                    read.restart(recording, stream, Some(before));
                });
                Arrived {
                    before: arrived.before,
                    is_over: arrived.is_over,
                }
            }
            Self::Files(files) => files.wait(read, before),
        }
    }

    /// Storage of what was read is no longer needed.
    fn give_back(&mut self, read: &ReadPlaces, before: Timestamp) -> Result<(), Failure> {
        match self {
            Self::Session(session) => {
                let (growing, shown) = &mut **session;
                shown.update(growing, read, before, None)
            }
            Self::Files(_) => Ok(()),
        }
    }
}

/// How far a stream goes, and since when.
struct Reach {
    end: Timestamp,
    since: Instant,
}

/// Files that grow.
struct Files<'t> {
    watcher: Watcher<'t>,
    timeline: Timeline,
    is_first: bool,
    /// By recording and stream.
    reach: HashMap<(usize, usize), Reach>,
    interrupted: Arc<AtomicBool>,
}

impl<'t> Files<'t> {
    fn new(paths: &[PathBuf], inputs: &mut Inputs, terminal: &'t Terminal) -> Self {
        let interrupted: Arc<AtomicBool> = Arc::default();
        #[cfg(unix)]
        crate::signals::interrupt(Arc::clone(&interrupted), Arc::default(), None);
        let watched = std::mem::take(&mut inputs.watched);
        let recordings = std::mem::take(&mut inputs.recordings);
        Self {
            watcher: Watcher::new(paths, terminal),
            timeline: Timeline::new(recordings).watching(watched),
            is_first: true,
            reach: HashMap::new(),
            interrupted,
        }
    }

    fn wait(&mut self, read: &mut ReadPlaces, before: Timestamp) -> Arrived {
        if !std::mem::replace(&mut self.is_first, false) {
            std::thread::sleep(PERIOD);
        }
        let changes = self.watcher.refresh(&mut self.timeline);
        let recordings = changes.iter().flat_map(|changes| &changes.recordings);
        for (recording, refreshed) in recordings.enumerate() {
            for changed in &refreshed.changes {
                match changed.change {
                    Change::Appended { from } => read.append(recording, changed.stream, from),
                    Change::Replaced { .. } => {
                        read.restart(recording, changed.stream, Some(before))
                    }
                    _ => {}
                }
            }
        }
        Arrived {
            before: self.whole_before(),
            is_over: self.interrupted.load(Ordering::Relaxed),
        }
    }

    /// The time before which all streams are known: those that still grow.
    fn whole_before(&mut self) -> Timestamp {
        let now = Instant::now();
        let (mut before, mut last) = (Timestamp::MAX, Timestamp::MIN);
        for (number, recording) in self.timeline.recordings().iter().enumerate() {
            for stream in 0..recording.streams().len() {
                let chunk = recording.chunk_count(stream).checked_sub(1);
                let chunk = chunk.and_then(|chunk| recording.chunk(stream, chunk));
                // What has no time holds up nothing.
                let Some(end) = chunk.and_then(|chunk| chunk.end_time) else {
                    continue;
                };
                let new = Reach { end, since: now };
                let reach = self.reach.entry((number, stream)).or_insert(new);
                if reach.end != end {
                    *reach = Reach { end, since: now };
                }
                last = last.max(end);
                if now.duration_since(reach.since) < SILENCE {
                    before = before.min(end);
                }
            }
        }
        match before {
            // All of them are silent: what there is, is read.
            Timestamp::MAX => Timestamp::from_nanos(last.as_nanos().saturating_add(1)),
            before => before,
        }
    }
}
