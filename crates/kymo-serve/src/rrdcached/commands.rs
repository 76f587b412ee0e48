//! The commands, and those that need the store only.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use super::{Batch, Client, Goes, Words};
use crate::store::{Flushed, Refused, Update};

/// A command.
pub(super) struct Command {
    pub(super) name: &'static str,
    /// What stands behind the name.
    pub(super) operands: &'static str,
    /// Whether it may stand in a batch.
    batch: bool,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Update,
    Flush,
    FlushAll,
    Pending,
    Forget,
    Queue,
    Stats,
    Help,
    Ping,
    Batch,
    EndBatch,
    Fetch,
    FetchBinary,
    Info,
    First,
    Last,
    Create,
    Tune,
    Dump,
    List,
    Suspend,
    Resume,
    SuspendAll,
    ResumeAll,
    Quit,
    Wrote,
}

const FILE: &str = "<filename>";
const FETCH: &str = "<file> <CF> [<start> [<end>] [<column>...]]";

const fn command(name: &'static str, operands: &'static str, batch: bool, kind: Kind) -> Command {
    Command {
        name,
        operands,
        batch,
        kind,
    }
}

/// What a line of `QUEUE` has beside a path.
const LINE: usize = 40;

/// All commands, in the order in which `HELP` lists them.
pub(super) const COMMANDS: [Command; 24] = [
    command(
        "UPDATE",
        "<filename> <values> [<values> ...]",
        true,
        Kind::Update,
    ),
    command("FLUSH", FILE, true, Kind::Flush),
    command("FLUSHALL", "", false, Kind::FlushAll),
    command("PENDING", FILE, false, Kind::Pending),
    command("FORGET", FILE, true, Kind::Forget),
    command("QUEUE", "", false, Kind::Queue),
    command("STATS", "", false, Kind::Stats),
    command("HELP", "[<command>]", false, Kind::Help),
    command("PING", "", false, Kind::Ping),
    command("BATCH", "", false, Kind::Batch),
    command("FETCH", FETCH, false, Kind::Fetch),
    command("FETCHBIN", FETCH, false, Kind::FetchBinary),
    command("INFO", FILE, false, Kind::Info),
    command("FIRST", "<filename> <rra index>", false, Kind::First),
    command("LAST", FILE, false, Kind::Last),
    command(
        "CREATE",
        "<filename> [-b start] [-s step] [-O] <DS definitions> <RRA definitions>",
        true,
        Kind::Create,
    ),
    command(
        "TUNE",
        "<filename> <count> tune [<option> ...] <filename> [<operand> ...]",
        false,
        Kind::Tune,
    ),
    command("DUMP", FILE, false, Kind::Dump),
    command("LIST", "[RECURSIVE] /[<path>]", false, Kind::List),
    command("SUSPEND", FILE, true, Kind::Suspend),
    command("RESUME", FILE, true, Kind::Resume),
    command("SUSPENDALL", "", true, Kind::SuspendAll),
    command("RESUMEALL", "", true, Kind::ResumeAll),
    command("QUIT", "", true, Kind::Quit),
];

/// Commands that `HELP` does not list.
const OTHERS: [Command; 2] = [
    // It ends a batch, and stands nowhere else.
    command(".", "", true, Kind::EndBatch),
    // A line of rrdcached's journal.
    command("WROTE", FILE, false, Kind::Wrote),
];

/// Some of the commands. `HELP` and `QUIT` may always be sent, as in rrdcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandSet(u32);

/// What reads and changes nothing; `FLUSH` writes what was taken, so that it can be read in files.
const READING: [&str; 13] = [
    "FLUSH", "PENDING", "QUEUE", "STATS", "HELP", "PING", "FETCH", "FETCHBIN", "INFO", "FIRST",
    "LAST", "LIST", "DUMP",
];

impl CommandSet {
    /// All of them.
    pub const ALL: Self = Self(u32::MAX);

    /// The command of a name, in letters of any case; of `read`, those that change nothing.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "read" {
            return Some(READING.into_iter().filter_map(Self::from_name).collect());
        }
        let place = COMMANDS
            .iter()
            .position(|it| it.is_called(name.as_bytes()))?;
        Some(Self(1 << place))
    }

    /// The names of the commands.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = COMMANDS.iter().enumerate();
        all.filter_map(move |(place, it)| (self.0 >> place & 1 == 1).then_some(it.name))
    }

    fn allows(self, command: &Command) -> bool {
        match command.kind {
            Kind::Help | Kind::Quit => true,
            // It ends what was allowed to begin.
            Kind::EndBatch => true,
            _ => self == Self::ALL || self.names().any(|name| name == command.name),
        }
    }
}

impl FromIterator<Self> for CommandSet {
    fn from_iter<I: IntoIterator<Item = Self>>(sets: I) -> Self {
        Self(sets.into_iter().fold(0, |all, set| all | set.0))
    }
}

/// The command of a name, in letters of any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut commands = COMMANDS.iter().chain(&OTHERS);
    commands.find(|command| command.is_called(name))
}

impl Command {
    /// Whether a name is its, in letters of any case.
    fn is_called(&self, name: &[u8]) -> bool {
        // Nearly all clients write it as it is.
        self.name.as_bytes() == name || self.name.as_bytes().eq_ignore_ascii_case(name)
    }

    /// How it is written.
    pub(super) fn usage(&self) -> String {
        match self.operands {
            "" => self.name.to_owned(),
            operands => format!("{} {operands}", self.name),
        }
    }
}

impl<S: io::Read + io::Write> Client<'_, S> {
    /// Does what a line asks.
    pub(super) fn line(&mut self, line: &[u8]) -> io::Result<Goes> {
        self.asked.commands += 1;
        let mut words = Words::of(line);
        let name = words.next().unwrap_or_default();
        let found = match self.latest {
            Some(latest) if latest.is_called(&name) => Some(latest),
            _ => find(&name),
        };
        self.latest = found;
        let in_batch = self.batch.is_some();
        if !matches!(found.map(|found| found.kind), Some(Kind::EndBatch) if in_batch) {
            self.count_line();
        }
        let Some(command) = found else {
            let name = String::from_utf8_lossy(&name);
            self.refuse(format_args!("Unknown command: {name}"));
            return Ok(Goes::On);
        };
        if !self.allowed.allows(command) {
            self.refuse("Permission denied.");
            return Ok(Goes::On);
        }
        let fits = match command.kind {
            Kind::EndBatch => in_batch,
            Kind::Wrote => false,
            _ => command.batch || !in_batch,
        };
        if !fits {
            self.refuse(format_args!("Can't use '{}' here.", command.name));
            return Ok(Goes::On);
        }
        match command.kind {
            Kind::Update => self.update(words),
            Kind::Quit => return Ok(Goes::Away),
            Kind::Ping => self.done("PONG"),
            Kind::Batch => {
                self.done("Go ahead.  End with dot '.' on its own line.");
                self.batch = Some(Batch::default());
            }
            Kind::EndBatch => self.end_batch(),
            Kind::FlushAll => {
                self.shared.store.flush_all();
                self.done("Started flush.");
            }
            Kind::Queue => {
                let databases = self.shared.store.queue();
                let bytes = databases.iter().map(|it| it.path().len() + LINE).sum();
                if self.reserve(bytes) {
                    let lines = databases.iter().map(|database| {
                        let count = database.pending_count();
                        [format!("{count} ").as_bytes(), database.path()].concat()
                    });
                    let lines: Vec<_> = lines.collect();
                    self.report("in queue.", &lines);
                }
            }
            Kind::Stats => self.stats(),
            Kind::Help => self.help(words.next().as_deref()),
            Kind::SuspendAll => {
                let count = self.shared.store.suspend_all();
                self.done(format_args!("{count} rrds suspend"));
            }
            Kind::ResumeAll => {
                let count = self.shared.store.resume_all();
                self.done(format_args!("{count} rrds resumed"));
            }
            Kind::Wrote => {}
            _ => return self.of_file(command, words),
        }
        Ok(Goes::On)
    }

    /// Does what is asked of a file.
    fn of_file(&mut self, command: &Command, mut words: Words<'_>) -> io::Result<Goes> {
        let word = match command.kind {
            Kind::List => {
                self.list(command, words);
                return Ok(Goes::On);
            }
            _ => words.next(),
        };
        let Some(word) = word else {
            self.refuse_usage(command);
            return Ok(Goes::On);
        };
        let store = &self.shared.store;
        let path = store.path(&word);
        let shown = String::from_utf8_lossy(&path);
        match command.kind {
            Kind::Pending => {
                let database = store.known(&path);
                // As lines of text, and again as the answer.
                let bytes = database.as_ref().map_or(0, |it| 4 * it.pending_bytes());
                if self.reserve(bytes) {
                    let lines = database.map(|database| database.pending());
                    self.report("updates pending", &lines.unwrap_or_default());
                }
            }
            Kind::Suspend => match store.known(&path) {
                None => self.refuse(format_args!("{shown} - No such file or directory")),
                Some(database) => match store.suspend(&database) {
                    true => self.done(format_args!("{shown} suspended")),
                    false => self.done(format_args!("{shown} already suspended")),
                },
            },
            Kind::Resume => match store.known(&path) {
                None => self.refuse(format_args!("{shown} - No such file or directory")),
                Some(database) => match store.resume(&database) {
                    true => self.done(format_args!("{shown} resumed")),
                    false => self.done(format_args!("{shown} not suspended")),
                },
            },
            _ if !store.allows(&path) => self.refuse(format_args!("{shown}: Permission denied")),
            Kind::Flush => self.flush(&path)?,
            Kind::Forget if !store.has(&path) => {
                self.refuse("No such file or directory");
            }
            Kind::Forget => {
                // What was asked before is in the journal before this.
                self.commit();
                match self.shared.store.forget(&path) {
                    Ok(_) => self.done("Gone!"),
                    Err(error) => self.refuse(kymo_io::reason(&error)),
                }
            }
            Kind::Info => self.info(&path),
            Kind::Last => self.last(&path),
            Kind::First => match words.next() {
                Some(index) => self.first(&path, &index),
                None => self.refuse_usage(command),
            },
            Kind::Create => self.create(command, &path, words),
            Kind::Tune => self.tune(command, &path, words)?,
            Kind::Dump => return self.dump(&path),
            Kind::Fetch => self.fetch(command, &path, words, false)?,
            Kind::FetchBinary => self.fetch(command, &path, words, true)?,
            _ => {}
        }
        Ok(Goes::On)
    }

    pub(super) fn refuse_usage(&mut self, command: &Command) {
        self.refuse(format_args!("Usage: {}", command.usage()));
    }

    fn update(&mut self, mut words: Words<'_>) {
        let Some(word) = words.next() else {
            if let Some(command) = find(b"UPDATE") {
                self.refuse_usage(command);
            }
            return;
        };
        self.asked.updates += 1;
        match self.take(&word, words) {
            Err(problem) => self.refuse(problem),
            Ok(0) => self.refuse("No values updated."),
            Ok(count) => self.acknowledge(format_args!("errors, enqueued {count} value(s).")),
        }
    }

    /// Gives updates to the database that a word names, and returns their number.
    fn take(&mut self, word: &[u8], updates: Words<'_>) -> Result<usize, String> {
        let store = &self.shared.store;
        let mut database = self.databases.get(word, store)?;
        let mut count = 0;
        for text in updates {
            let Some((update, seconds)) = Update::from_text(&text) else {
                let text = String::from_utf8_lossy(&text);
                return Err(format!("Cannot find timestamp in '{text}'!"));
            };
            let mut taken = store.accept(database, &update, Some(&mut self.group));
            if taken == Err(Refused::Forgotten) {
                database = self.databases.find(word, store)?;
                taken = store.accept(database, &update, Some(&mut self.group));
            }
            match taken {
                Ok(()) => count += 1,
                Err(Refused::Past(last)) => {
                    let (last, micros) = last.to_micros();
                    return Err(format!(
                        "illegal attempt to update using time {seconds:.6} when last update time \
                         is {last}.{micros:06} (minimum one second step)"
                    ));
                }
                Err(refused) => return Err(refused.to_string()),
            }
        }
        Ok(count)
    }

    fn flush(&mut self, path: &[u8]) -> io::Result<()> {
        self.counters.flushes.fetch_add(1, Relaxed);
        let store = &self.shared.store;
        let shown = String::from_utf8_lossy(path);
        let Some(database) = store.known(path) else {
            let is_file = crate::store::path_of(path).metadata();
            match is_file.is_ok_and(|file| file.is_file()) {
                true => self.done(format_args!("Nothing to flush: {shown}.")),
                false => self.refuse(format_args!("No such file: {shown}.")),
            }
            return Ok(());
        };
        if self.batch.is_none() {
            // What was asked before is not held up.
            self.settle()?;
        }
        match self.shared.store.flush(&database) {
            Flushed::Failed(reason) => self.refuse(format_args!("{shown}: {reason}")),
            Flushed::Written | Flushed::Nothing => {
                self.done(format_args!("Successfully flushed {shown}."));
            }
        }
        Ok(())
    }

    fn stats(&mut self) {
        self.count_asked();
        let store = &self.shared.store;
        let counters = &store.counters;
        let (bytes, rotations) = store.journal().map_or((0, 0), |journal| {
            (journal.bytes.load(Relaxed), journal.rotations.load(Relaxed))
        });
        let count = store.count() as u64;
        let asked = &self.shared.counters;
        let facts = [
            ("QueueLength", store.queue().len() as u64),
            ("UpdatesReceived", asked.sum(|it| it.updates.load(Relaxed))),
            ("FlushesReceived", asked.sum(|it| it.flushes.load(Relaxed))),
            ("UpdatesWritten", counters.successful_writes()),
            ("DataSetsWritten", counters.written.load(Relaxed)),
            ("TreeNodesNumber", count),
            // A table, not a tree.
            ("TreeDepth", count.min(1)),
            ("JournalBytes", bytes),
            ("JournalRotate", rotations),
        ];
        let lines = facts.map(|(name, number)| format!("{name}: {number}").into_bytes());
        self.report("Statistics follow", &lines);
    }

    fn help(&mut self, name: Option<&[u8]>) {
        let command = name.and_then(find).filter(|command| command.is_reported());
        match command {
            Some(command) => {
                let mut lines = vec![format!("Usage: {}", command.usage()).into_bytes()];
                lines.push(Vec::new());
                if let Some(text) = super::help::of(command.name) {
                    lines.extend(text.lines().map(|line| line.as_bytes().to_vec()));
                    lines.push(Vec::new());
                }
                self.report(format_args!("Help for {}", command.name), &lines);
            }
            None => {
                let lines = COMMANDS.iter().map(|command| command.usage().into_bytes());
                let lines: Vec<_> = lines.collect();
                self.report("Command overview", &lines);
            }
        }
    }
}

impl Command {
    fn is_reported(&self) -> bool {
        COMMANDS.iter().any(|command| command.name == self.name)
    }
}
