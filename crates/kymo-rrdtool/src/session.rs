//! What commands have in common: where they write, what time it is, what was said beforehand.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_draw::Fonts;
use kymo_io::{Locking, NewFile};
use kymo_machine::Machine;
use kymo_rrd::engine::Files;
use kymo_rrd::file::convert::Target;

use crate::answers::{Fetched, Wanted};
use crate::daemon::Client;
use crate::times::Clock;
use crate::{Failure, LocalZone};

/// What was said before the command line: by the environment, or by a file of configuration.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The form of new databases.
    pub format: Target,
    /// The address of a daemon, as in `RRDCACHED_ADDRESS`.
    pub daemon: Option<String>,
    /// What is cut off from the beginning of paths for a daemon of another machine, as in
    /// `RRDCACHED_STRIPPATH`.
    pub strip_path: Option<String>,
}

impl Default for Defaults {
    /// Databases that rrdtool on this machine reads, and no daemon.
    fn default() -> Self {
        Self {
            format: Target::Native(Machine::native()),
            daemon: None,
            strip_path: None,
        }
    }
}

/// [Gives](NewFile::put) a file its name, and does what belongs to it.
pub type Place<'a> = dyn Fn(NewFile) -> io::Result<()> + 'a;

/// Asks the program around for rows.
pub type Fetcher<'a> = dyn Fn(&Wanted<'_>) -> Result<Fetched, Failure> + 'a;

/// Whether a name is that of something that only the program around knows.
pub(crate) fn is_of_program(name: &[u8]) -> bool {
    name.starts_with(b"cb//")
}

/// What a session keeps for the next: a connection to a daemon, what files have in common that
/// were open, and fonts and glyphs of graphs. No file stays open.
#[derive(Debug)]
pub struct Kept {
    /// The connection.
    pub daemon: Option<Client>,
    files: Box<Files>,
    fonts: Arc<Fonts>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            daemon: None,
            files: Box::new(Files::closed()),
            fonts: Arc::default(),
        }
    }
}

/// Where commands work.
pub struct Session<'a> {
    /// Where data goes.
    out: &'a mut dyn Write,
    /// Where warnings go.
    warnings: &'a mut dyn Write,
    /// What was said beforehand.
    pub defaults: Defaults,
    /// Local time.
    pub zone: LocalZone,
    /// The time that it is, in seconds since 1970; that of the clock, if there is none.
    pub now: Option<i64>,
    /// A database of more values is not made; `None` for any number.
    pub most_values: Option<u64>,
    /// Whether a command that makes a database waits until it is on the disk. What replaces one that is
    /// there always waits.
    pub durable: bool,
    /// What gives new databases their names when they are written; `None` where nothing else is to be done
    /// then. Others may have them open.
    pub place: Option<&'a Place<'a>>,
    /// What commands do about programs that write the same file, unless `--locking` or `--wait` says it:
    /// fail, as rrdtool does.
    pub locking: Locking,
    /// Whether numbers in the JSON of `xport` have as many digits as distinguish them from their neighbours, where
    /// rrdtool writes 11.
    pub exact: bool,
    /// What the program around has values for, beside files.
    pub fetcher: Option<&'a Fetcher<'a>>,
    /// Whether messages show the place in the command line that is wrong, on more lines than rrdtool's.
    pub shows_places: bool,
    /// Whether command lines are read from standard input.
    pub(crate) reads_lines: bool,
    /// The daemon of the last command that named one.
    pub(crate) daemon: Option<Client>,
    /// Databases that are open for updates.
    pub(crate) files: Box<Files>,
    /// Fonts and glyphs, which graphs share.
    pub(crate) fonts: Arc<Fonts>,
    /// Memory for the operands of the next command.
    pub(crate) operands: Vec<&'static [u8]>,
}

impl<'a> Session<'a> {
    /// A session that writes data and warnings to these places.
    pub fn new(out: &'a mut dyn Write, warnings: &'a mut dyn Write, defaults: Defaults) -> Self {
        let kept = Kept {
            files: Box::new(Files::new(1)),
            ..Kept::default()
        };
        Self::resumed(out, warnings, defaults, kept)
    }

    /// A session that goes on with what another one has kept.
    pub fn resumed(
        out: &'a mut dyn Write,
        warnings: &'a mut dyn Write,
        defaults: Defaults,
        kept: Kept,
    ) -> Self {
        Self {
            out,
            warnings,
            defaults,
            zone: LocalZone::new(),
            now: None,
            most_values: None,
            durable: false,
            place: None,
            locking: Locking::Try,
            exact: false,
            fetcher: None,
            shows_places: false,
            reads_lines: false,
            daemon: kept.daemon,
            files: kept.files,
            fonts: kept.fonts,
            operands: Vec::new(),
        }
    }

    /// Ends it. Gives what the next session goes on with.
    pub fn keep(self) -> Kept {
        Kept {
            daemon: self.daemon,
            files: self.files,
            fonts: self.fonts,
        }
    }

    /// Whether the program around has the rows of a name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.fetcher.is_some() && is_of_program(name)
    }

    /// The rows of what is not a file, if the program around has them.
    pub(crate) fn fetched(&self, wanted: &Wanted<'_>) -> Option<Result<Fetched, Failure>> {
        let fetcher = self.fetcher.filter(|_| self.has(wanted.name))?;
        Some(fetcher(wanted))
    }

    /// Refuses a database of more values than are made here, from the rows of its archives.
    pub(crate) fn check_values(&self, rows: &[u64], sources: usize) -> Result<(), Failure> {
        let rows = rows
            .iter()
            .fold(0, |sum: u64, rows| sum.saturating_add(*rows));
        let values = rows.saturating_mul(sources as u64);
        match self.most_values.filter(|most| values > *most) {
            Some(most) => Err(Failure::new(format!(
                "{values} values are more than the {most} that are made here"
            ))),
            None => Ok(()),
        }
    }

    /// Seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.now.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |since| {
                i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
            })
        })
    }

    /// What times are relative to.
    pub(crate) fn clock(&self) -> Clock<'_> {
        Clock {
            now: self.now(),
            zone: &self.zone,
            is_first: false,
        }
    }

    /// Writes data.
    pub(crate) fn write(&mut self, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.out.write_all(text.as_ref()).map_err(Failure::Output)
    }

    /// Writes data piece by piece.
    pub(crate) fn write_with(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        write(self.out).map_err(Failure::Output)
    }

    /// Has what was written arrive.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::Output)
    }

    /// Prints a warning: something that is not a failure.
    pub(crate) fn warn(&mut self, text: impl std::fmt::Display) {
        // If a warning cannot be written, there is nowhere to report that.
        let _ = writeln!(self.warnings, "WARNING: {text}");
    }

    /// Writes a line where warnings go.
    pub(crate) fn warn_plain(&mut self, line: &str) {
        let _ = writeln!(self.warnings, "{line}");
    }
}
