//! rrdcached's protocol: a line asks, and lines answer.
//!
//! An answer begins with a number: that of lines which follow, or -1 where something is wrong.
//! Between `BATCH` and `.` only what is wrong is answered, at the end and with the numbers of lines. What
//! stands in the manual page of rrdcached under PROTOCOL is done as rrdcached 1.7.2 does it, and answered in
//! its words; docs/serve.md lists the differences.
//!
//! * `commands`: what there is, and what needs the store only;
//! * `databases`: those that a client has named;
//! * `files`: what looks into files;
//! * `help`: what `HELP` prints.

mod commands;
mod databases;
mod files;
mod help;
mod words;

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::daemon;
use crate::lines::{Lines, ReadLine};
use crate::listen::{Server, Socket, Stream};
use crate::metrics::Page;
use crate::per_listener::PerListener;
use crate::store::{Group, Store};
use crate::sync::lock;
use commands::Command;
pub use commands::CommandSet;
use databases::Databases;
use words::Words;

/// The default port.
pub use kymo_rrdtool::DAEMON_PORT as PORT;

/// A line is shorter than this.
const LONGEST_LINE: usize = 1 << 16;
/// Approximate size in bytes of the pieces in which answers are sent.
const PIECE: usize = 1 << 16;
/// At most this many bytes of the errors in a batch are reported.
const MOST_ERRORS: usize = 1 << 20;

/// Maximum bytes of all long answers that are not read yet, unless there is only one.
const MOST_ANSWERS: usize = 64 << 20;
/// A client has so long to read the next piece of an answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// What all connections share.
#[derive(Debug)]
pub struct Rrdcached {
    store: Arc<Store>,
    counters: PerListener<String, Counters>,
    /// Bytes of long answers that clients have not read yet.
    answers: AtomicUsize,
    limits: Mutex<ClientLimits>,
    /// How many limits there were before these.
    generation: AtomicU64,
    /// Held while a database is created: its definition may ask for much memory.
    creates: Mutex<()>,
}

/// What was asked at a listener.
#[derive(Debug, Default)]
struct Counters {
    /// All commands.
    commands: AtomicU64,
    /// Those that were refused.
    errors: AtomicU64,
    /// Commands to update a database.
    updates: AtomicU64,
    /// Commands to write a database.
    flushes: AtomicU64,
}

impl Rrdcached {
    /// Gives clients a store.
    pub fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            counters: PerListener::default(),
            answers: AtomicUsize::new(0),
            limits: Mutex::default(),
            generation: AtomicU64::new(0),
            creates: Mutex::default(),
        }
    }

    /// Holds clients to other limits from now on: commands that they send after this, and the idle time-out of
    /// connections that come after this.
    pub(crate) fn set_limits(&self, limits: ClientLimits) {
        let mut latest = lock(&self.limits);
        *latest = limits;
        self.generation.fetch_add(1, Relaxed);
    }

    /// Answers the lines of a connection until it ends.
    pub fn serve(&self, mut stream: Stream) {
        let idle_timeout = lock(&self.limits).idle_timeout;
        let listener = stream.listener().to_owned();
        let set = stream.set_write_patience(PATIENCE);
        if set
            .and_then(|()| stream.set_idle_timeout(idle_timeout))
            .is_err()
        {
            return;
        }
        let mut client = Client::new(self, stream, listener);
        client.learn_limits();
        // A client that has disconnected does not need an error.
        let _ = client.serve();
    }

    /// The same, of anything that lines come from and answers go to: it counts as a listener without a name.
    ///
    /// # Errors
    ///
    /// Those of reading and writing.
    pub fn answer(&self, stream: impl io::Read + Write) -> io::Result<()> {
        Client::new(self, stream, String::new()).serve()
    }
}

/// What clients are held to.
#[derive(Debug)]
pub(crate) struct ClientLimits {
    /// Connections on which nothing has come for so long are closed.
    pub(crate) idle_timeout: Duration,
    /// By the names of sockets, the commands that may be sent there; at others all may be.
    pub(crate) commands: HashMap<String, CommandSet>,
    /// Whether `CREATE` may replace databases.
    pub(crate) overwrite: bool,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(3600),
            commands: HashMap::new(),
            overwrite: true,
        }
    }
}

/// The sockets at which the protocol is spoken.
#[derive(Debug)]
pub struct Source {
    pub(crate) shared: Arc<Rrdcached>,
    /// Where its clients come.
    pub server: Server,
}

impl Source {
    /// Serves the clients of sockets, at most `most` at a time.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn start(
        shared: &Arc<Rrdcached>,
        sockets: &[Arc<Socket>],
        most: usize,
    ) -> io::Result<Self> {
        let serving = Arc::clone(shared);
        let serve = move |stream| serving.serve(stream);
        Ok(Self {
            shared: Arc::clone(shared),
            server: Server::start(
                "rrdcached",
                sockets,
                most,
                &shared.store.options().log,
                serve,
            )?,
        })
    }
}

impl daemon::Source for Source {
    fn metrics(&self, page: &mut Page) {
        type Field = fn(&Counters) -> &AtomicU64;
        let counters = &self.shared.counters;
        self.server.each_listener(|listener| {
            counters.of(listener);
        });
        let fields: [(&str, &str, Field); 4] = [
            ("commands", "Commands of rrdcached's protocol.", |it| {
                &it.commands
            }),
            ("errors", "Commands answered with an error.", |it| {
                &it.errors
            }),
            ("updates", "Commands UPDATE.", |it| &it.updates),
            ("flushes", "Commands FLUSH.", |it| &it.flushes),
        ];
        for (name, help, value) in fields {
            counters.counter(page, &format!("rrdcached_{name}_total"), help, value);
        }
        page.connections("rrdcached", self.server.connections());
    }

    fn stop(&self) {
        self.server.stop();
    }
}

/// A client.
struct Client<'a, S> {
    shared: &'a Rrdcached,
    stream: S,
    /// Answers that are not yet sent.
    out: Vec<u8>,
    /// What the journal must have before they are.
    group: Group,
    /// Those of the answers that say so.
    acknowledged: Vec<Acknowledged>,
    batch: Option<Batch>,
    asked: Asked,
    databases: Databases,
    /// Bytes of [`Rrdcached::answers`] that are its.
    reserved: usize,
    /// What was asked last: mostly it is asked again.
    latest: Option<&'static Command>,
    /// What it may ask.
    allowed: CommandSet,
    /// The limits by which it is so.
    generation: u64,
    /// Where it came; empty if that was not a socket.
    listener: String,
    counters: Arc<Counters>,
}

/// What was asked and is not yet counted among what all clients ask.
#[derive(Default)]
struct Asked {
    commands: u64,
    updates: u64,
    errors: u64,
}

/// What says that the journal has something.
enum Acknowledged {
    /// An answer, by its place.
    Answer(Range<usize>),
    /// That nothing will be said of a line of a batch.
    Line(u64),
}

/// What was sent since `BATCH`.
#[derive(Default)]
struct Batch {
    lines: u64,
    errors: Vec<u8>,
    count: u64,
}

/// What is said where the journal does not take something.
fn not_in_journal(error: &io::Error) -> String {
    let reason = kymo_io::reason(error);
    format!("the journal cannot be written: {reason}")
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    On,
    Away,
}

impl<'a, S: io::Read + Write> Client<'a, S> {
    fn new(shared: &'a Rrdcached, stream: S, listener: String) -> Self {
        Self {
            counters: shared.counters.of(listener.clone()),
            listener,
            shared,
            stream,
            out: Vec::new(),
            group: Group::new(),
            acknowledged: Vec::new(),
            batch: None,
            asked: Asked::default(),
            databases: Databases::new(),
            reserved: 0,
            latest: None,
            allowed: CommandSet::ALL,
            generation: 0,
        }
    }

    /// Learns what it may ask, by the latest limits.
    fn learn_limits(&mut self) {
        let shared = self.shared;
        let limits = lock(&shared.limits);
        self.generation = shared.generation.load(Relaxed);
        let allowed = limits.commands.get(&self.listener);
        self.allowed = allowed.copied().unwrap_or(CommandSet::ALL);
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut lines = Lines::new(LONGEST_LINE);
        loop {
            while let Some(reported) = lines.next_line() {
                let goes = match reported {
                    ReadLine::Line(line) => self.line(line)?,
                    ReadLine::TooLong => {
                        self.count_line();
                        self.refuse(format_args!("the line has {LONGEST_LINE} bytes or more"));
                        Goes::On
                    }
                };
                if goes == Goes::Away {
                    return self.settle();
                }
                if self.out.len() >= PIECE || self.group.len() >= PIECE {
                    self.settle()?;
                }
            }
            self.settle()?;
            if !lines.read(&mut self.stream)? {
                return Ok(());
            }
            if self.generation != self.shared.generation.load(Relaxed) {
                self.learn_limits();
            }
        }
    }

    /// Sees that the journal has what is acknowledged, and sends the answers.
    fn settle(&mut self) -> io::Result<()> {
        self.commit();
        self.count_asked();
        self.stream.write_all(&self.out)?;
        self.out.clear();
        // Long answers are rare, and connections many.
        self.out.shrink_to(2 * PIECE);
        self.release();
        Ok(())
    }

    /// Reserves room for an answer of `bytes` bytes, or refuses it. Otherwise, clients that read nothing could fill
    /// the memory with a few words.
    fn reserve(&mut self, bytes: usize) -> bool {
        if bytes <= PIECE {
            return true;
        }
        let before = self.shared.answers.fetch_add(bytes, Relaxed);
        if before > 0 && before.saturating_add(bytes) > MOST_ANSWERS {
            self.shared.answers.fetch_sub(bytes, Relaxed);
            self.refuse("too many long answers wait to be read by clients; try again later");
            return false;
        }
        self.reserved += bytes;
        true
    }

    /// Gives back what was reserved.
    fn release(&mut self) {
        let reserved = std::mem::take(&mut self.reserved);
        self.shared.answers.fetch_sub(reserved, Relaxed);
    }

    /// Sees that the journal has what is acknowledged. Where it cannot be written, errors take the place of
    /// the answers.
    fn commit(&mut self) {
        let done = self.shared.store.commit(&mut self.group);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        let Err(error) = done else {
            return;
        };
        let reason = not_in_journal(&error);
        self.asked.errors += acknowledged.len() as u64;
        let mut out = Vec::new();
        let mut end = 0;
        for acknowledged in acknowledged {
            match acknowledged {
                Acknowledged::Answer(range) => {
                    out.extend_from_slice(&self.out[end..range.start]);
                    out.extend_from_slice(format!("-1 {reason}\n").as_bytes());
                    end = range.end;
                }
                Acknowledged::Line(line) => {
                    if let Some(batch) = &mut self.batch {
                        batch.add(line, &reason);
                    }
                }
            }
        }
        out.extend_from_slice(&self.out[end..]);
        self.out = out;
    }

    /// Counts what was asked.
    fn count_asked(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        self.counters.commands.fetch_add(asked.commands, Relaxed);
        self.counters.updates.fetch_add(asked.updates, Relaxed);
        self.counters.errors.fetch_add(asked.errors, Relaxed);
    }

    /// Counts a line of a batch.
    fn count_line(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.lines += 1;
        }
    }

    /// Answers that something is done. In a batch, nothing is said.
    fn done(&mut self, text: impl Display) {
        if self.batch.is_none() {
            // Writing to memory cannot fail.
            let _ = writeln!(self.out, "0 {text}");
        }
    }

    /// The same, of what the journal must have.
    fn acknowledge(&mut self, text: impl Display) {
        let begin = self.out.len();
        self.done(text);
        if self.group.is_empty() {
            return;
        }
        self.acknowledged.push(match &self.batch {
            Some(batch) => Acknowledged::Line(batch.lines),
            None => Acknowledged::Answer(begin..self.out.len()),
        });
    }

    /// Answers what is wrong.
    fn refuse(&mut self, text: impl Display) {
        self.asked.errors += 1;
        match &mut self.batch {
            Some(batch) => batch.add(batch.lines, text),
            None => {
                let _ = writeln!(self.out, "-1 {text}");
            }
        }
    }

    /// Answers with lines.
    fn report(&mut self, text: impl Display, lines: &[Vec<u8>]) {
        let _ = writeln!(self.out, "{} {text}", lines.len());
        for line in lines {
            self.out.extend_from_slice(line);
            self.out.push(b'\n');
        }
    }

    /// Ends a batch.
    fn end_batch(&mut self) {
        self.commit();
        if let Some(batch) = self.batch.take() {
            let _ = writeln!(self.out, "{} errors", batch.count);
            self.out.extend_from_slice(&batch.errors);
        }
    }
}

impl<S> Drop for Client<'_, S> {
    fn drop(&mut self) {
        self.shared.answers.fetch_sub(self.reserved, Relaxed);
    }
}

impl Batch {
    /// Notes what is wrong with a line.
    fn add(&mut self, line: u64, text: impl Display) {
        if self.errors.len() > MOST_ERRORS {
            return;
        }
        // Writing to memory cannot fail.
        let _ = writeln!(self.errors, "{line} {text}");
        self.count += 1;
        if self.errors.len() > MOST_ERRORS {
            let _ = writeln!(self.errors, "{line} more errors are not listed");
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests;
