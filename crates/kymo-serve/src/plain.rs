//! collectd's text protocol on a socket, as its unixsock plugin serves it.
//!
//! Each line has one reply. What comes at once is taken together: its values are in the journal
//! before the first reply to them is sent.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use kymo_collectd::plain::{Command, Context, LineError, Lines, PutValues, Reply, parse};
use kymo_collectd::{Identifier, Notification, TypesDb};
use kymo_time::CdTime;

use crate::ingest::{Ingest, Origin, Session, now};
use crate::listen::{Server, Socket, Stream};
use crate::per_listener::PerListener;

/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;
/// Replies of this size are sent before more lines are looked at.
const ENOUGH: usize = 1 << 16;
/// A client has so long to read replies.
const PATIENCE: Duration = Duration::from_secs(60);

/// What clients have asked at a listener.
#[derive(Debug, Default)]
pub struct Counters {
    /// Lines.
    pub commands: AtomicU64,
    /// Lines that were replied to with an error.
    pub errors: AtomicU64,
}

/// What clients have asked, by the listener where they came.
#[derive(Debug, Default)]
pub struct AllCounters(pub(crate) PerListener<String, Counters>);

impl AllCounters {
    /// The sum of what `value` reads of each listener's.
    pub fn sum(&self, value: impl Fn(&Counters) -> u64) -> u64 {
        self.0.sum(value)
    }
}

/// Begins to serve clients at some sockets, at most `most` at a time.
///
/// # Errors
///
/// Those of the system.
pub fn serve(
    sockets: &[Arc<Socket>],
    most: usize,
    ingest: &Arc<Ingest>,
    counters: &Arc<AllCounters>,
) -> io::Result<Server> {
    let log = Arc::clone(&ingest.store().options().log);
    let (ingest, counters) = (Arc::clone(ingest), Arc::clone(counters));
    Server::start("unixsock", sockets, most, &log, move |stream| {
        let client = Client {
            session: ingest.session(Origin::Here),
            ingest: Arc::clone(&ingest),
            counters: counters.0.of(stream.listener().to_owned()),
            replies: String::new(),
            acknowledged: Vec::new(),
        };
        // Who is gone needs no reply.
        let _ = client.serve(stream);
    })
}

struct Client {
    session: Session,
    ingest: Arc<Ingest>,
    counters: Arc<Counters>,
    /// What is not yet sent.
    replies: String,
    /// Where in it values are said to be taken, which the journal must have first.
    acknowledged: Vec<Range<usize>>,
}

impl Client {
    fn serve(mut self, mut stream: Stream) -> io::Result<()> {
        stream.set_write_patience(PATIENCE)?;
        stream.set_idle_timeout(self.ingest.idle_timeout())?;
        let mut lines = Lines::new(LONGEST);
        let mut piece = vec![0; PIECE];
        let mut is_open = true;
        while is_open {
            match stream.read(&mut piece) {
                Ok(0) => {
                    is_open = false;
                    // It is unknown how a line that the daemon cut off would have ended.
                    if !stream.is_cut() {
                        lines.end();
                    }
                }
                Ok(count) => lines.push(&piece[..count]),
                // Nothing has come for long.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            self.session.begin();
            while let Some(line) = lines.next_line() {
                let command = match line {
                    Ok(line) => self.parse(line),
                    Err(LineError::TooLong) => Err(Reply::error("Line too long.")),
                    Err(LineError::NotText) => Err(Reply::error("Line is not text.")),
                };
                let is_put = matches!(command, Ok(Command::PutValues(_)));
                let reply = command.map_or_else(|reply| reply, |command| self.reply(command));
                self.counters.commands.fetch_add(1, Relaxed);
                if reply.status() < 0 {
                    self.counters.errors.fetch_add(1, Relaxed);
                }
                let begin = self.replies.len();
                // Writing to a string does not fail.
                let _ = write!(self.replies, "{reply}");
                if reply.status() >= 0 && is_put {
                    self.acknowledged.push(begin..self.replies.len());
                }
                if self.replies.len() > ENOUGH {
                    self.send(&mut stream)?;
                }
            }
            self.send(&mut stream)?;
        }
        Ok(())
    }

    /// Sends replies, when what they acknowledge is safe.
    fn send(&mut self, stream: &mut Stream) -> io::Result<()> {
        let acknowledged = std::mem::take(&mut self.acknowledged);
        if let Err(problem) = self.session.commit() {
            // It is unknown which of the values would be lost: none is acknowledged.
            self.ingest.complain(format_args!("unixsock: {problem}"));
            let error = Reply::error(problem).to_string();
            self.counters
                .errors
                .fetch_add(acknowledged.len() as u64, Relaxed);
            for range in acknowledged.into_iter().rev() {
                self.replies.replace_range(range, &error);
            }
        }
        stream.write_all(self.replies.as_bytes())?;
        self.replies.clear();
        Ok(())
    }

    fn parse(&self, line: &str) -> Result<Command, Reply> {
        let none = TypesDb::default();
        let options = self.ingest.options();
        let types = options.types.as_ref().unwrap_or(&none);
        parse(line, &Context { types })
    }

    fn reply(&mut self, command: Command) -> Reply {
        match command {
            Command::PutValues(put) => self.put(&put),
            Command::GetValue { id } => self.get(&id),
            Command::GetThreshold { id } => {
                Reply::error(format_args!("No threshold found for identifier {id}"))
            }
            Command::ListValues => {
                let live = self.ingest.live();
                Reply::names(live.iter().map(|series| (series.time(), series.name())))
            }
            Command::PutNotification(put) => {
                self.session.notify(&Notification {
                    severity: put.severity,
                    time: put.time,
                    id: put.id(),
                    message: &put.message,
                });
                Reply::success("Success")
            }
            Command::Flush(flush) => {
                // Whatever plugin is named, there is one thing to write to.
                let plugins = flush.plugins.len().max(1);
                if flush.ids.is_empty() {
                    return match self.ingest.flush(None) {
                        Ok(()) => Reply::flushed(plugins, 0),
                        Err(_) => Reply::flushed(0, plugins),
                    };
                }
                let (mut successful, mut errors) = (0, 0);
                for id in &flush.ids {
                    let id = Identifier::parse(id).unwrap_or_default();
                    match self.ingest.flush(Some(&id)) {
                        Ok(()) => successful += plugins,
                        Err(_) => errors += plugins,
                    }
                }
                Reply::flushed(successful, errors)
            }
        }
    }

    fn put(&mut self, put: &PutValues) -> Reply {
        let id = Identifier::parse(&put.id).unwrap_or_default();
        let own = self.ingest.options().host.clone();
        let host = if id.host.is_empty() { &own } else { id.host };
        let id = Identifier { host, ..id };
        for list in &put.lists {
            let time = list.time.unwrap_or_else(now);
            let interval = list.interval.unwrap_or(CdTime::ZERO);
            let taken = self.session.take(&id, time, interval, &list.values, true);
            if let Err(problem) = taken {
                return Reply::error(problem);
            }
        }
        Reply::dispatched(put.lists.len())
    }

    fn get(&self, id: &str) -> Reply {
        let id = Identifier::parse(id).unwrap_or_default();
        match self.ingest.find(&id) {
            Some(series) => {
                let names = series.sources().iter().map(|source| source.name.as_str());
                Reply::values(names.zip(series.rates()))
            }
            None => Reply::error("No such value."),
        }
    }
}
