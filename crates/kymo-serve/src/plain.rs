//! collectd's text protocol on a socket, as its unixsock plugin serves it.
//!
//! Each line has one reply. What comes at once is taken together: its values are in the journal
//! before the first reply to them is sent.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use kymo_collectd::plain::{Command, Context, LineError, Lines, PutValues, Reply, parse};
use kymo_collectd::{Identifier, TypesDb};
use kymo_time::CdTime;

use crate::ingest::{Ingest, Session, now};
use crate::listen::{Server, Socket, Stream};

/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;
/// Replies of this size are sent before more lines are looked at.
const ENOUGH: usize = 1 << 16;
/// A client has so long to read replies.
const PATIENCE: Duration = Duration::from_secs(60);

/// What clients have asked.
#[derive(Debug, Default)]
pub struct Counters {
    /// Lines.
    pub commands: AtomicU64,
    /// Lines that were replied to with an error.
    pub errors: AtomicU64,
}

/// Begins to serve clients at some sockets, no more than so many at a time.
///
/// # Errors
///
/// Those of the system.
pub fn serve(
    sockets: Vec<Socket>,
    most: usize,
    ingest: &Arc<Ingest>,
    counters: &Arc<Counters>,
) -> io::Result<Server> {
    let (ingest, counters) = (Arc::clone(ingest), Arc::clone(counters));
    Server::start("unixsock", sockets, most, move |stream| {
        let client = Client {
            session: ingest.session(),
            ingest: Arc::clone(&ingest),
            counters: Arc::clone(&counters),
        };
        // Who is gone needs no reply.
        let _ = client.serve(stream);
    })
}

struct Client {
    session: Session,
    ingest: Arc<Ingest>,
    counters: Arc<Counters>,
}

impl Client {
    fn serve(mut self, mut stream: Stream) -> io::Result<()> {
        stream.set_patience(PATIENCE)?;
        let mut lines = Lines::new(LONGEST);
        let mut piece = vec![0; PIECE];
        let mut replies = String::new();
        loop {
            let count = match stream.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                // Who asks nothing may stay.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            lines.push(&piece[..count]);
            while let Some(line) = lines.next_line() {
                let reply = match line {
                    Ok(line) => self.reply(line),
                    Err(LineError::TooLong) => Reply::error("Line too long."),
                    Err(LineError::NotText) => Reply::error("Line is not text."),
                };
                self.counters.commands.fetch_add(1, Relaxed);
                if reply.status() < 0 {
                    self.counters.errors.fetch_add(1, Relaxed);
                }
                // Writing to a string does not fail.
                let _ = write!(replies, "{reply}");
                if replies.len() > ENOUGH {
                    self.send(&mut replies, &mut stream)?;
                }
            }
            self.send(&mut replies, &mut stream)?;
        }
    }

    /// Sends replies, when what they acknowledge is safe.
    fn send(&mut self, replies: &mut String, stream: &mut Stream) -> io::Result<()> {
        if let Err(problem) = self.session.commit() {
            // Nobody can tell which of the values would be lost: none is acknowledged.
            self.ingest.complain(format_args!("unixsock: {problem}"));
            stream.write_all(Reply::error(problem).to_string().as_bytes())?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        stream.write_all(replies.as_bytes())?;
        replies.clear();
        Ok(())
    }

    fn reply(&mut self, line: &str) -> Reply {
        let none = TypesDb::default();
        let types = self.ingest.options().types.as_ref().unwrap_or(&none);
        match parse(line, &Context { types }) {
            Err(reply) => reply,
            Ok(Command::PutValues(put)) => self.put(&put),
            Ok(Command::GetValue { id }) => self.get(&id),
            Ok(Command::GetThreshold { id }) => {
                Reply::error(format_args!("No threshold found for identifier {id}"))
            }
            Ok(Command::ListValues) => {
                let live = self.ingest.live();
                Reply::names(live.iter().map(|series| (series.time(), series.name())))
            }
            Ok(Command::PutNotification(put)) => {
                let (severity, id) = (put.severity, put.id().canonical());
                let message = kymo_text::visible(&put.message);
                self.ingest
                    .notify(format_args!("{severity}: {id}: {message}"));
                Reply::success("Success")
            }
            Ok(Command::Flush(flush)) => {
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
