//! Standard output and error, colours, progress, and how the program ends.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use kymo::explain::{Explained, writing_hint};
use kymo_model::FaultReport;
use kymo_text::visible;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is good.
    Good = 0,
    /// Damage was found and the rest was read; or not all could be opened or written.
    Damage = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Nothing could be read.
    Unreadable = 3,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong: the complete message.
    Usage(String),
    /// Nothing could be read, which was already reported.
    Unreadable,
    /// What was read has errors, which were already reported, and the command is strict.
    Refused,
    /// Something could not be written.
    Output(io::Error),
}

impl Failure {
    /// That something could not be written, sent or received: a path or an address, and why.
    pub fn at(place: impl fmt::Display, error: &io::Error) -> Self {
        Self::Output(error_at(place, error))
    }
}

/// An error with the path or the address that it is about.
pub fn error_at(place: impl fmt::Display, error: &io::Error) -> io::Error {
    let (kind, reason) = match error.kind() {
        io::ErrorKind::ConnectionRefused => (error.kind(), "nobody listens there".to_owned()),
        // It is not standard output that has no reader any longer, which would not be a failure.
        io::ErrorKind::BrokenPipe => (io::ErrorKind::Other, kymo_io::reason(error)),
        kind => (kind, kymo_io::reason(error)),
    };
    io::Error::new(kind, format!("{place}: {reason}"))
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The terminal, or whatever stands in its place.
#[derive(Debug)]
pub struct Terminal {
    /// Whether standard error shows colours.
    color: bool,
    /// Whether only errors are shown.
    is_quiet: bool,
    progress: OnceLock<Progress>,
    /// Output for standard error, if the caller shows it.
    collected: Option<Mutex<Vec<u8>>>,
}

/// A progress bar that appears when work is long.
#[derive(Debug)]
struct Progress {
    bar: ProgressBar,
    begun: Instant,
    done: AtomicU64,
}

/// Work that is done sooner shows no progress.
const PATIENCE: Duration = Duration::from_millis(700);

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    /// The terminal of this program. Colours are shown on a terminal, unless `NO_COLOR` is set.
    pub fn new() -> Self {
        Self {
            color: io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            is_quiet: false,
            progress: OnceLock::new(),
            collected: None,
        }
    }

    /// One that keeps what would go to standard error, and shows no progress.
    pub fn collected(color: bool) -> Self {
        Self {
            color,
            is_quiet: false,
            progress: OnceLock::new(),
            collected: Some(Mutex::default()),
        }
    }

    /// What was kept since it was taken the last time; nothing if this is a real terminal.
    pub fn take_collected(&self) -> String {
        let kept = self.collected.as_ref().map(|kept| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *kept)
        });
        String::from_utf8_lossy(&kept.unwrap_or_default()).into_owned()
    }

    /// The same; with `quiet` it shows errors only: no warnings, hints, progress and messages of success.
    #[must_use]
    pub fn with_quiet(mut self, quiet: bool) -> Self {
        self.is_quiet = quiet;
        self
    }

    /// Reports what was written and what to do with it, if standard error is a terminal.
    pub fn wrote(&self, output: &Path, what_to_do: &str) {
        if self.is_quiet || !io::stderr().is_terminal() {
            return;
        }
        let bytes = size(output).map_or(String::new(), |bytes| format!(" ({})", HumanBytes(bytes)));
        self.end_progress();
        self.labelled("wrote", "32", format_args!("`{}`{bytes}", output.display()));
        if !what_to_do.is_empty() {
            self.hint(what_to_do);
        }
    }

    /// Whether standard error shows colours.
    pub fn color(&self) -> bool {
        self.color
    }

    /// Prepares the progress display for a number of bytes, if standard error is a terminal and
    /// nothing else is shown.
    pub fn begin_progress(&self, bytes: u64) {
        if !io::stdout().is_terminal() {
            self.show_progress(bytes);
        }
    }

    /// The same for work that shows nothing else.
    pub fn show_progress(&self, bytes: u64) {
        if self.is_quiet || self.collected.is_some() || !io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let template =
            "{bar:40} {percent:>3} %  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        // A second bar is never begun.
        let _ = self.progress.set(Progress {
            bar,
            begun: Instant::now(),
            done: AtomicU64::new(0),
        });
    }

    /// Does work that counts the bytes it has done, in any thread, and shows the progress meanwhile.
    pub fn watch<T>(&self, bytes: u64, done: &AtomicU64, work: impl FnOnce() -> T) -> T {
        /// How often the number is looked at.
        const PAUSE: Duration = Duration::from_millis(100);
        self.show_progress(bytes);
        if self.progress.get().is_none() {
            return work();
        }
        let is_done = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut seen = 0;
                while !is_done.load(Ordering::Relaxed) {
                    std::thread::park_timeout(PAUSE);
                    let now = done.load(Ordering::Relaxed);
                    self.advance(now.saturating_sub(seen));
                    seen = now;
                }
            });
            let result = work();
            is_done.store(true, Ordering::Relaxed);
            watch.thread().unpark();
            result
        });
        self.end_progress();
        result
    }

    /// That many bytes more are done.
    pub fn advance(&self, bytes: u64) {
        let Some(progress) = self.progress.get() else {
            return;
        };
        let done = progress.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if progress.bar.is_hidden() && progress.begun.elapsed() > PATIENCE {
            progress.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        progress.bar.set_position(done);
    }

    /// The work is done: no more progress is shown.
    pub fn end_progress(&self) {
        if let Some(progress) = self.progress.get() {
            progress.bar.finish_and_clear();
        }
    }

    /// Writes lines to standard error, above the progress. If writing fails, there is
    /// nobody to notify.
    pub fn report(&self, lines: &[u8]) {
        if let Some(kept) = &self.collected {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            return kept.extend_from_slice(lines);
        }
        let write = || {
            let mut stderr = io::stderr().lock();
            let _ = stderr.write_all(lines).and_then(|()| stderr.flush());
        };
        match self.progress.get() {
            Some(progress) => progress.bar.suspend(write),
            None => write(),
        }
    }

    /// Writes lines about losses to standard error, above the progress.
    pub fn losses(&self, lines: &[u8]) {
        if !self.is_quiet {
            self.report(lines);
        }
    }

    /// Whether it shows errors only.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Reports an error in a line.
    pub fn error(&self, error: impl fmt::Display) {
        self.labelled("error", "31", error);
    }

    /// Reports a warning in a line.
    pub fn warning(&self, warning: impl fmt::Display) {
        if self.is_quiet {
            return;
        }
        self.labelled("warning", "33", warning);
    }

    /// Shows a warning as a compiler does: with the text that is odd.
    pub fn warning_picture(&self, picture: &str) {
        if !self.is_quiet {
            self.report(format!("{picture}\n").as_bytes());
        }
    }

    /// Says what to do about the warning or error before it.
    pub fn hint(&self, hint: impl fmt::Display) {
        if self.is_quiet {
            return;
        }
        self.labelled("hint", "36", hint);
    }

    /// Reports what failed, and what to do about it.
    pub fn explained(&self, explained: &Explained) {
        self.error(&explained.problem);
        if let Some(hint) = &explained.hint {
            self.hint(hint);
        }
    }

    /// Reports damage in a line.
    pub fn fault(&self, fault: &FaultReport) {
        if fault.code.is_warning() {
            self.warning(fault);
        } else {
            self.error(fault);
        }
    }

    /// Reports files that were truncated while they were read; returns whether there are some.
    pub fn report_truncated(&self) -> bool {
        #[cfg(target_os = "linux")]
        let found = kymo_io::take_truncated();
        #[cfg(not(target_os = "linux"))]
        let found: Vec<std::path::PathBuf> = Vec::new();
        for path in &found {
            self.error(format_args!(
                "`{}` was truncated while it was read: what was cut off is missing, or was read as zeros",
                path.display()
            ));
        }
        !found.is_empty()
    }

    /// Reports what is wrong with the command line, which begins with its label; so may further lines.
    fn usage(&self, message: &str) {
        for line in message.lines() {
            match line.split_once(": ") {
                Some(("error", rest)) => self.error(rest),
                Some(("hint", rest)) => self.hint(rest),
                _ => self.report(format!("{line}\n").as_bytes()),
            }
        }
    }

    fn labelled(&self, label: &str, color: &str, what: impl fmt::Display) {
        let what = what.to_string();
        let what = visible(&what);
        let line = if self.color {
            format!("\x1b[1;{color}m{label}:\x1b[0m {what}\n")
        } else {
            format!("{label}: {what}\n")
        };
        self.report(line.as_bytes());
    }

    /// Writes data to standard output.
    pub fn write(&self, data: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(data)?;
        stdout.flush()
    }

    /// Reports why a command failed. It is not a failure if the reader of the output has left.
    pub fn report_failure(&self, failure: &Failure) -> Outcome {
        self.end_progress();
        match failure {
            Failure::Usage(message) => {
                self.usage(message);
                Outcome::Usage
            }
            Failure::Unreadable => Outcome::Unreadable,
            Failure::Refused => Outcome::Damage,
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Outcome::Good,
            Failure::Output(error) => {
                self.error(format_args!("cannot write: {}", kymo_io::reason(error)));
                if let Some(hint) = writing_hint(error.kind()) {
                    self.hint(hint);
                }
                Outcome::Damage
            }
        }
    }
}

/// The size of a file, or of all files in a directory.
fn size(path: &Path) -> Option<u64> {
    let there = std::fs::metadata(path).ok()?;
    if !there.is_dir() {
        return Some(there.len());
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    Some(entries.filter_map(|entry| size(&entry.path())).sum())
}
