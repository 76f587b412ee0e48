//! The thread that stores what comes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::link::{Link, Step};
use super::status::StreamStatus;
use super::{
    DETACH_PATIENCE, Error, NAP, RECONNECT_PATIENCE, RECONNECT_PAUSE, ReaderOptions, Shared, nap,
};
use crate::spool::{Spool, StreamName};
use crate::url::Url;
use crate::viewer::{Position, Viewer, ViewerEvent, ViewerOptions};

/// What the thread works with.
pub(super) struct Work {
    pub(super) shared: Arc<Shared>,
    pub(super) spool: Spool,
    pub(super) options: ReaderOptions,
    /// The last packet of each stream that is stored.
    pub(super) known: BTreeMap<StreamName, Position>,
    /// Streams of this connection, by number: their place in the status.
    pub(super) streams: BTreeMap<u64, (usize, StreamName)>,
    /// Sessions that are attached.
    pub(super) sessions: BTreeSet<u64>,
    /// Bytes of metadata that have come over this connection, by file.
    pub(super) metadata_sent: BTreeMap<PathBuf, u64>,
}

impl Work {
    /// Reads until all sessions have ended.
    pub(super) fn run(&mut self, mut link: Link) -> Result<(), Error> {
        let stop = Arc::clone(&self.shared.stop);
        let mut detaching: Option<Instant> = None;
        loop {
            if stop.load(Ordering::Relaxed) && detaching.is_none() {
                detaching = Some(Instant::now());
                link.viewer.detach();
            }
            if let Some(begun) = detaching
                && (self.sessions.is_empty() || begun.elapsed() > DETACH_PATIENCE)
            {
                return Ok(());
            }
            if detaching.is_none() && !self.has_room()? {
                continue;
            }
            let step = match link.step() {
                Ok(step) => step,
                Err(Error::Lost { error, .. }) if detaching.is_none() => {
                    link = self.reconnect(&link.url, error)?;
                    continue;
                }
                Err(Error::Lost { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut ended = false;
            while let Some(event) = link.viewer.next_event() {
                ended |= matches!(
                    event,
                    ViewerEvent::SessionEnded { .. } | ViewerEvent::Detached { .. }
                );
                self.event(&link.url, event)?;
            }
            if ended && self.sessions.is_empty() {
                return Ok(());
            }
            if matches!(step, Step::Idle) {
                let due = link.viewer.deadline();
                let wait = due.map_or(NAP, |due| due.saturating_sub(link.begun.elapsed()));
                std::thread::sleep(wait.clamp(Duration::from_millis(1), NAP));
            }
        }
    }

    /// Whether more may come; waits a while if not.
    fn has_room(&self) -> Result<bool, Error> {
        let mut state = self.shared.lock();
        if state.status.bytes - state.freed.min(state.status.bytes) > self.options.limit {
            let url = state.status.url.clone();
            let limit = self.options.limit;
            return Err(url.map_or(Error::Interrupted, |url| Error::Full { url, limit }));
        }
        let waiting = state.status.bytes.saturating_sub(state.consumed);
        if waiting <= state.ahead {
            return Ok(true);
        }
        if !state.status.is_full {
            state.status.is_full = true;
            state.status.generation += 1;
        }
        drop(self.shared.changed.wait_timeout(state, NAP));
        Ok(false)
    }

    /// Connects again, and goes on behind what is known.
    fn reconnect(&mut self, url: &Url, why: io::Error) -> Result<Link, Error> {
        self.note(format!(
            "lost the connection to `{url}` ({why}); connecting again"
        ));
        let begun = Instant::now();
        let stop = Arc::clone(&self.shared.stop);
        self.streams.clear();
        self.sessions.clear();
        self.metadata_sent.clear();
        loop {
            let options = ViewerOptions {
                known: self.known.clone(),
                // What has come meanwhile is not to be missed.
                seek: crate::Seek::Beginning,
                ..self.options.viewer.clone()
            };
            let connected = Link::new(url, Viewer::new(options), &stop)
                .and_then(|mut link| link.attach(false, None, &stop).map(|()| link));
            match connected {
                Ok(link) => return Ok(link),
                Err(Error::Connect { .. } | Error::Lost { .. })
                    if begun.elapsed() < RECONNECT_PATIENCE && !stop.load(Ordering::Relaxed) => {}
                Err(Error::Connect { error, .. }) => {
                    let url = url.clone();
                    return Err(Error::Lost { url, error });
                }
                Err(error) => return Err(error),
            }
            nap(RECONNECT_PAUSE, &stop);
        }
    }

    fn note(&self, note: String) {
        self.shared.lock().status.note(note);
    }

    fn event(&mut self, url: &Url, event: ViewerEvent) -> Result<(), Error> {
        match event {
            ViewerEvent::Stream(info) => {
                let file = self
                    .spool
                    .file(&info.name, info.is_metadata)
                    .map_err(Error::Write)?;
                let place = self.shared.lock().status.stream(&info, file);
                self.streams.insert(info.id, (place, info.name));
            }
            ViewerEvent::Metadata { stream, bytes } => self.metadata(stream, &bytes)?,
            ViewerEvent::Packet {
                stream,
                index,
                bytes,
            } => {
                let Some((place, name)) = self.streams.get(&stream) else {
                    return Ok(());
                };
                let path = self.shared.lock().status.streams[*place].file.path.clone();
                self.spool.append(&path, &bytes).map_err(Error::Write)?;
                let (begin, end) = (index.begin, index.end);
                self.known.insert(name.clone(), Position { begin, end });
                self.shared
                    .lock()
                    .status
                    .packet(*place, &index, bytes.len() as u64);
                self.shared.changed.notify_all();
            }
            ViewerEvent::Known { stream, index } => {
                self.frontier(stream, |progress| progress.reached(index.end));
            }
            ViewerEvent::Lost {
                stream,
                index,
                reason,
            } => {
                self.frontier(stream, |progress| {
                    progress.reached(index.end);
                    progress.lost_packets += 1;
                });
                if let Some((_, name)) = self.streams.get(&stream) {
                    let mut state = self.shared.lock();
                    state.status.lost_packets += 1;
                    state.status.note(format!(
                        "a packet of `{}/{}` is lost: {reason}",
                        name.path, name.channel
                    ));
                }
            }
            ViewerEvent::Inactive { stream, until } => {
                self.frontier(stream, |progress| {
                    progress.reached(until);
                    progress.is_idle = true;
                });
            }
            ViewerEvent::Waiting { stream } => {
                self.frontier(stream, |progress| {
                    progress.waiting_since.get_or_insert_with(Instant::now);
                    progress.is_idle = true;
                });
            }
            ViewerEvent::Ended { stream, is_error } => {
                self.frontier(stream, |progress| progress.is_ended = true);
                if is_error && let Some((_, name)) = self.streams.get(&stream) {
                    self.note(format!(
                        "the relay daemon ends the stream `{}/{}` with an error",
                        name.path, name.channel
                    ));
                }
                self.shared.changed.notify_all();
            }
            ViewerEvent::Attached { session } => {
                self.sessions.insert(session);
                self.shared.lock().status.url = Some(url.clone());
            }
            ViewerEvent::Refused { reason, .. } => {
                return Err(Error::Refused {
                    url: url.clone(),
                    reason,
                });
            }
            ViewerEvent::SessionEnded { session } | ViewerEvent::Detached { session } => {
                self.sessions.remove(&session);
            }
            ViewerEvent::Connected { .. } | ViewerEvent::Sessions(_) => {}
        }
        Ok(())
    }

    /// Changes what is known of a stream.
    fn frontier(&self, stream: u64, change: impl FnOnce(&mut StreamStatus)) {
        if let Some((place, _)) = self.streams.get(&stream) {
            let mut state = self.shared.lock();
            state.status.generation += 1;
            change(&mut state.status.streams[*place]);
        }
    }

    /// Stores metadata. After a new connection all of it comes again, and so it does when the tracer has made it
    /// again.
    fn metadata(&mut self, stream: u64, bytes: &[u8]) -> Result<(), Error> {
        let Some((place, _)) = self.streams.get(&stream) else {
            return Ok(());
        };
        let path = self.shared.lock().status.streams[*place].file.path.clone();
        let sent = self.metadata_sent.entry(path.clone()).or_default();
        if begins_metadata(bytes) {
            *sent = 0;
        }
        let old = match std::fs::read(&path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::Write(error)),
        };
        let begin = usize::try_from(*sent).unwrap_or(usize::MAX).min(old.len());
        *sent += bytes.len() as u64;
        let rest = &old[begin..];
        let written = match bytes.strip_prefix(rest) {
            Some(new) => self.spool.append(&path, new),
            // It is there already.
            None if rest.starts_with(bytes) => Ok(()),
            None => {
                let whole = [&old[..begin], bytes].concat();
                self.spool.replace(&path, &whole)
            }
        };
        written.map_err(Error::Write)?;
        let mut state = self.shared.lock();
        state.status.generation += 1;
        state.status.metadata += 1;
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }
}

/// The size of the head of a metadata packet.
const METADATA_HEAD: usize = 37;

/// Whether metadata begins here: of TSDL, in packets or as text, or of CTF 2.
fn begins_metadata(bytes: &[u8]) -> bool {
    let is_tsdl = |text: &[u8]| text.starts_with(b"/* CTF ");
    let behind_head = bytes.get(METADATA_HEAD..).unwrap_or_default();
    let begin = &bytes[..bytes.len().min(256)];
    let is_ctf2 =
        begin.first() == Some(&0x1e) && begin.windows(10).any(|part| part == b"\"preamble\"");
    is_tsdl(bytes) || is_tsdl(behind_head) || is_ctf2
}
