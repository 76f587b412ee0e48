//! Sessions of LTTng live: read into files of temporary storage, which are opened as any traces are.

mod directory;
mod progress;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymo::AnyRecording;
use kymo::open::{Hint, Known};
use kymo::timeline::Timeline;
use kymo_ctf::trace::Trace;
use kymo_io::spool_limit;
use kymo_live::{Error, Reader, ReaderOptions, Seek, Status, Url, ViewerOptions};
use kymo_model::{FaultReport, Recording};
use kymo_time::Timestamp;

use crate::args::{Input, LiveFrom};
use crate::open::{Asked, Inputs, opened_inputs, opened_with};
use crate::terminal::{Failure, Outcome, Terminal};
use directory::SpoolDirectory;

pub use kymo_live::{Session, Url as SessionUrl};
pub use progress::{Resume, Shown};

/// How often is looked what has come.
const PERIOD: Duration = Duration::from_millis(100);
/// Bytes of packets that may have come and not be shown; the relay daemon keeps the rest.
const AHEAD: u64 = 256 << 20;
/// A stream of which the relay daemon has had nothing to say for so long does not hold up the others.
const SILENCE: Duration = Duration::from_secs(5);
/// So long the streams of a session are waited for, where only what there is so far is wanted.
const SO_FAR_PATIENCE: Duration = Duration::from_secs(3);

/// A session.
#[derive(Debug)]
struct Source {
    url: Url,
    reader: Reader,
    directory: PathBuf,
}

/// Sessions that are being read. Dropping them detaches them and removes the files.
#[derive(Debug)]
pub struct Live {
    sources: Vec<Source>,
    input: Input,
    interrupted: Arc<AtomicBool>,
    end: Option<Instant>,
    /// After the sources: their threads write into it.
    directory: SpoolDirectory,
}

/// Whether a path is a session, or a relay daemon.
fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| Url::is_one(text))
}

impl Live {
    /// Whether sessions are among the inputs.
    pub fn is_in(input: &Input) -> bool {
        input.paths.iter().any(|path| url(path).is_some())
    }

    /// The relay daemon whose sessions are to be listed: the only path, without a session.
    ///
    /// # Errors
    ///
    /// The path is not a URL of one.
    pub fn daemon(input: &Input) -> Result<Option<Url>, Failure> {
        match &input.paths[..] {
            [path] => match url(path) {
                Some(text) => Ok(Some(parse(text)?).filter(|url| url.target.is_none())),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The sessions that a relay daemon has.
    ///
    /// # Errors
    ///
    /// It cannot be reached, or is not one; that was reported.
    pub fn sessions(daemon: &Url, terminal: &Terminal) -> Result<Vec<Session>, Failure> {
        kymo_live::list_sessions(daemon, &AtomicBool::new(false)).map_err(|error| {
            terminal.error(error);
            Failure::Unreadable
        })
    }

    /// Attaches the sessions among the inputs. With `resume`, what was shown before is not asked for again.
    ///
    /// # Errors
    ///
    /// A session is not there, or cannot be attached.
    pub fn open(
        input: &Input,
        resume: Option<&Resume>,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let interrupted = Arc::new(AtomicBool::new(false));
        // Waiting for a daemon that says nothing counts, too.
        let end = input.live.live_for.map(|most| Instant::now() + most);
        let directory = SpoolDirectory::new(Arc::clone(&interrupted))?;
        let limit = spool_limit()?;
        let mut replaced = input.clone();
        let mut sources: Vec<Source> = Vec::new();
        for (place, path) in input.paths.iter().enumerate() {
            let Some(text) = url(path) else {
                continue;
            };
            let url = parse(text)?;
            if url.target.is_none() {
                let problem = format!(
                    "error: `{url}` has no session\nhint: `kymo info {url}` lists those that there are"
                );
                return Err(Failure::Usage(problem));
            }
            let below = directory.path().join(place.to_string());
            std::fs::create_dir(&below)?;
            let options = ReaderOptions {
                viewer: ViewerOptions {
                    seek: match input.live.live_from {
                        LiveFrom::Now if resume.is_none_or(Resume::is_empty) => Seek::Now,
                        _ => Seek::Beginning,
                    },
                    known: resume.map(Resume::positions).unwrap_or_default(),
                    ..ViewerOptions::default()
                },
                waits: input.live.live_wait,
                opens_until: end,
                ahead: u64::MAX,
                limit,
            };
            let reader = Reader::open(&url, &below, options, Arc::clone(&interrupted))
                .map_err(|error| failed(&error, &url, terminal))?;
            let rename = |named: &mut PathBuf| {
                if named == path {
                    named.clone_from(&below);
                }
            };
            replaced.align.iter_mut().for_each(|(path, _)| rename(path));
            replaced
                .offset
                .iter_mut()
                .for_each(|(path, _)| rename(path));
            replaced.paths[place].clone_from(&below);
            sources.push(Source {
                url,
                reader,
                directory: below,
            });
        }
        Ok(Self {
            sources,
            input: replaced,
            interrupted,
            end,
            directory,
        })
    }

    /// The inputs, with directories in place of sessions.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Bounds what has come and was not shown: whoever asks for it says what was shown.
    pub fn bound(&self) {
        self.sources
            .iter()
            .for_each(|source| source.reader.set_ahead(AHEAD));
    }

    /// Whether the reading is to end before the sessions do.
    fn is_stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
            || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Reads until the sessions end or the reading is to end, or, with `so_far`, until there is nothing new. Returns
    /// whether it has gone well.
    pub(crate) fn collect(&mut self, so_far: bool, terminal: &Terminal) -> Outcome {
        let begun = Instant::now();
        let mut outcome = Outcome::Good;
        loop {
            let statuses = self.wait(terminal, &mut outcome);
            let is_ended = statuses.iter().all(|status| status.is_ended);
            let is_enough = so_far
                && (statuses.iter().all(Status::is_idle) || begun.elapsed() > SO_FAR_PATIENCE);
            if is_ended || is_enough || self.is_stopped() {
                break;
            }
        }
        self.detach(terminal, &mut outcome);
        outcome
    }

    /// How far the sessions are after a while, or when they have ended. What is to be reported is reported.
    fn wait(&self, terminal: &Terminal, outcome: &mut Outcome) -> Vec<Status> {
        // What comes meanwhile is handled at once.
        let readers = self.sources.iter().map(|source| &source.reader);
        let begun = Instant::now();
        for reader in readers {
            reader.wait_for_end(PERIOD.saturating_sub(begun.elapsed()));
        }
        for source in &self.sources {
            self.report(source, terminal, outcome);
        }
        self.statuses()
    }

    /// How far the sessions are.
    fn statuses(&self) -> Vec<Status> {
        let sources = self.sources.iter();
        sources.map(|source| source.reader.status()).collect()
    }

    /// Records the number of bytes of a file that were shown, and that were returned to the file system.
    fn shown(&self, path: &Path, bytes: u64, freed: u64) {
        if let Some(source) = self
            .sources
            .iter()
            .find(|source| path.starts_with(&source.directory))
        {
            source.reader.consumed(bytes, freed);
        }
    }

    fn report(&self, source: &Source, terminal: &Terminal, outcome: &mut Outcome) {
        for note in source.reader.take_notes() {
            terminal.warning(note);
        }
        if let Some(error) = source.reader.take_error() {
            // What has come is there all the same.
            failed(&error, &source.url, terminal);
            *outcome = Outcome::Damage;
        }
    }

    fn detach(&mut self, terminal: &Terminal, outcome: &mut Outcome) {
        for source in &mut self.sources {
            source.reader.detach();
        }
        self.directory.end_at_signal();
        for source in &self.sources {
            self.report(source, terminal, outcome);
        }
    }

    /// Calls recordings what they were asked for by, and not by where they are stored.
    pub fn rename(&self, recordings: &mut [AnyRecording]) {
        for recording in recordings {
            let AnyRecording::Ctf(trace) = recording else {
                continue;
            };
            let place = |stored: &Path| {
                self.sources.iter().find_map(|source| {
                    let below = stored.strip_prefix(&source.directory).ok()?;
                    // The first directory is that of the session.
                    let below: PathBuf = below.iter().skip(1).collect();
                    Some(Path::new(&source.url.to_string()).join(below))
                })
            };
            trace.rename_streams(place);
            let place = place(trace.path());
            if let Some(place) = place {
                trace.set_path(place);
            }
        }
    }
}

fn parse(text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|error| Failure::Usage(format!("error: `{text}`: {error}")))
}

/// Reports why a session cannot be read.
fn failed(error: &Error, url: &Url, terminal: &Terminal) -> Failure {
    terminal.error(error);
    match error {
        Error::NoSession { sessions, .. } => {
            let daemon = Url {
                target: None,
                ..url.clone()
            };
            match &sessions[..] {
                [] => terminal.hint("it has none; `--live-wait` waits for the session"),
                [only] => terminal.hint(format_args!(
                    "there is `{}`; `--live-wait` waits for the session",
                    daemon.with_target(&only.host, &only.name)
                )),
                _ => terminal.hint(format_args!(
                    "`kymo info {daemon}` lists the sessions; `--live-wait` waits for this one"
                )),
            }
        }
        Error::Full { .. } => terminal.hint(format_args!(
            "`{}` sets the size of temporary files, `TMPDIR` their directory",
            kymo_io::SPOOL_LIMIT
        )),
        Error::Connect { .. } => {
            terminal.hint("check that lttng-relayd runs there: it listens at port 5344, or at that of its option `--live-port`");
        }
        _ => {}
    }
    Failure::Unreadable
}

/// What has come of sessions, and up to when it is whole.
#[derive(Debug)]
pub struct Arrived {
    /// Before this, all events of all sessions are there.
    pub before: Timestamp,
    /// Whether nothing more comes.
    pub is_over: bool,
    /// Whether recordings have changed.
    pub has_changed: bool,
}

/// Sessions that are shown as they grow.
#[derive(Debug)]
pub struct Growing {
    live: Live,
    /// The recordings, those of other inputs too.
    pub timeline: Timeline,
    packets: u64,
    metadata: u64,
    is_unsure: bool,
    /// How well it goes.
    pub outcome: Outcome,
    before: Timestamp,
    was_full: bool,
}

impl Live {
    /// Waits until a trace can be opened.
    fn wait_for_trace(&self, asked: Asked, terminal: &Terminal) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Good;
        loop {
            let statuses = self.wait(terminal, &mut outcome);
            let is_over = self.is_stopped() || statuses.iter().all(|status| status.is_ended);
            if opened_with(
                &self.input,
                asked.clone(),
                Known::default(),
                Hint::default(),
            )
            .is_ok_and(|opened| !opened.recordings.is_empty())
            {
                return Ok(outcome);
            }
            if is_over {
                terminal.error("no trace has come from the relay daemon");
                return Err(Failure::Unreadable);
            }
        }
    }

    /// Attaches the sessions among the inputs, and stores what comes for as long as the result lives. The
    /// [inputs](Self::input) then are directories that grow.
    ///
    /// # Errors
    ///
    /// A session cannot be attached, or ends without any trace.
    pub fn in_background(input: &Input, terminal: &Terminal) -> Result<Self, Failure> {
        let live = Self::open(input, None, terminal)?;
        live.wait_for_trace(Asked::default(), terminal)?;
        live.directory.end_at_signal();
        Ok(live)
    }

    /// Waits for the first recording, and goes on from there. The inputs are without recordings then.
    ///
    /// # Errors
    ///
    /// The sessions end without any.
    pub fn grow(self, strict: bool, terminal: &Terminal) -> Result<(Growing, Inputs), Failure> {
        let asked = Asked {
            strict,
            ..Asked::default()
        };
        let outcome = self.wait_for_trace(asked.clone(), terminal)?;
        let mut inputs = opened_inputs(&self.input, asked, Hint::default(), outcome, terminal)?;
        let mut recordings = std::mem::take(&mut inputs.recordings);
        self.rename(&mut recordings);
        let watched = std::mem::take(&mut inputs.watched);
        self.bound();
        let growing = Growing {
            live: self,
            timeline: Timeline::new(recordings).watching(watched),
            packets: 0,
            metadata: 0,
            is_unsure: true,
            outcome: inputs.outcome,
            before: Timestamp::MIN,
            was_full: false,
        };
        Ok((growing, inputs))
    }
}

impl Growing {
    /// Waits for more, and reads it. What has changed in a way that moves events is given to `restart`: a recording
    /// and a stream of it.
    pub fn wait(&mut self, terminal: &Terminal, mut restart: impl FnMut(usize, usize)) -> Arrived {
        let statuses = self.live.wait(terminal, &mut self.outcome);
        let is_ended = statuses.iter().all(|status| status.is_ended);
        let is_over = is_ended || self.live.is_stopped();
        if is_over {
            self.live.detach(terminal, &mut self.outcome);
        }
        let count = |figure: fn(&Status) -> u64| statuses.iter().map(figure).sum::<u64>();
        let (packets, metadata) = (
            count(|status| status.packets),
            count(|status| status.metadata),
        );
        let is_new = packets != self.packets || metadata != self.metadata;
        let mut has_changed = false;
        if is_new || self.is_unsure || is_over {
            (self.packets, self.metadata) = (packets, metadata);
            // The timeline has no other users.
            if let Ok(changes) = self.timeline.refresh() {
                self.is_unsure = !changes.errors.is_empty();
                has_changed = !changes.is_empty();
                for (recording, refreshed) in changes.recordings.iter().enumerate() {
                    for changed in &refreshed.changes {
                        if matches!(changed.change, kymo_model::Change::Replaced { .. }) {
                            restart(recording, changed.stream);
                        }
                    }
                }
                if let Some(recordings) = self.timeline.recordings_mut() {
                    self.live.rename(recordings);
                }
            }
        }
        let mut before = match is_ended {
            true => Timestamp::MAX,
            false => self.whole_before(&statuses),
        };
        let is_full = statuses.iter().any(|status| status.is_full);
        if is_full && before <= self.before && !is_ended {
            if !self.was_full {
                terminal.warning(
                    "some streams have come so much farther than others that their events are not \
                     in the order of time",
                );
                self.was_full = true;
            }
            before = Timestamp::MAX;
        }
        if before != Timestamp::MAX {
            before = before.max(self.before);
            self.before = before;
        }
        Arrived {
            before,
            is_over,
            has_changed,
        }
    }

    /// Damage is reported that was met at opening.
    pub fn faults(&self) -> impl Iterator<Item = &FaultReport> {
        self.timeline
            .recordings()
            .iter()
            .flat_map(Recording::faults)
    }

    /// Whether a recording is one that grows.
    pub fn is_live(&self, recording: usize) -> bool {
        self.trace(recording).is_some()
    }

    fn trace(&self, recording: usize) -> Option<&Trace> {
        let trace = self.timeline.recordings().get(recording)?.as_ctf()?;
        let is_below = |directory: &Path| directory.starts_with(self.live.directory.path());
        trace.directories().any(is_below).then_some(trace)
    }

    /// The time before which all streams are known.
    fn whole_before(&self, statuses: &[Status]) -> Timestamp {
        let mut before = Timestamp::MAX;
        let recordings = self.timeline.recordings();
        let traces: Vec<&Trace> = recordings.iter().filter_map(AnyRecording::as_ctf).collect();
        for stream in statuses.iter().flat_map(|status| &status.streams) {
            if stream.is_ended || stream.silence() > SILENCE {
                continue;
            }
            // Without metadata, nothing of it can be shown.
            let is_of = |trace: &&&Trace| trace.directories().any(|at| at == stream.file.trace);
            let Some(trace) = traces.iter().find(is_of) else {
                continue;
            };
            let clocks = trace.streams().iter().map(|stream| stream.clock.as_ref());
            let of_streams = clocks.flatten().next();
            let clock = of_streams.or_else(|| trace.class().clocks.first());
            let time = stream.frontier.map(|ticks| clock?.timestamp(ticks));
            match time {
                Some(Some(time)) => before = before.min(time),
                // It has no clock.
                Some(None) => {}
                None => return Timestamp::MIN,
            }
        }
        // Where all have ended, there may be others.
        if before == Timestamp::MAX {
            self.before
        } else {
            before
        }
    }
}
