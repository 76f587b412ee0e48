//! The viewer's side of the protocol, without sockets.
//!
//! A viewer asks and a relay daemon answers, one request at a time. What is asked next follows from what is due:
//! streams and metadata that were announced, then the packet in hand, then the next index of the stream that is
//! behind the others of its trace. Traces take turns.

mod event;
mod options;
mod replies;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use crate::message::{
    CONNECT_BYTES, COUNT_BYTES, INDEX_BYTES, Index, METADATA_BYTES, PACKET_BYTES, ProtocolError,
    Request, STATUS_BYTES, STREAMS_BYTES, Session,
};

pub use event::{StreamInfo, ViewerEvent};
pub use options::{Limits, Position, ViewerOptions};

/// Bytes of a packet that are asked for at once.
const PIECE: u32 = 1 << 20;
/// How often the same piece of a packet is asked for, before it is given up.
const MOST_RETRIES: u32 = 100;

/// What of a reply is read next.
#[derive(Debug)]
enum Part {
    /// Its head, of this many bytes.
    Head(usize),
    /// `left` entries of `size` bytes each.
    Entries { left: u32, size: usize },
    /// `left` bytes of a packet or of metadata.
    Body { left: u64 },
}

/// An attached session.
#[derive(Debug, Default)]
struct AttachedSession {
    /// Whether streams were announced that are not known yet.
    has_new_streams: bool,
    /// When its streams are asked for, whether any was announced or not.
    ask_at: Duration,
    host: String,
    name: String,
}

/// The metadata of a trace.
#[derive(Debug, Default)]
struct TraceMetadata {
    /// The stream that holds it, until that has ended.
    stream: Option<u64>,
    is_due: bool,
    bytes: u64,
}

/// A stream that holds packets.
#[derive(Debug)]
struct DataStream {
    session: u64,
    trace: (u64, u64),
    /// Up to where everything is known.
    frontier: u64,
    ask_at: Duration,
    /// The packet that is being asked for.
    packet: Option<Fetch>,
    known: Option<Position>,
}

#[derive(Debug)]
struct Fetch {
    index: Index,
    length: u64,
    bytes: Vec<u8>,
    retries: u32,
    /// Not before this.
    ask_at: Duration,
}

/// The viewer's side of a connection to a relay daemon.
///
/// [`next_request`](Self::next_request) says what to send; what comes goes to [`receive`](Self::receive), and
/// comes out as [events](Self::next_event). After an error, or when the connection is lost, nothing more comes of it.
#[derive(Debug)]
pub struct Viewer {
    options: ViewerOptions,
    now: Duration,
    is_connected: bool,
    is_listed: bool,
    has_viewer_session: bool,
    to_attach: VecDeque<u64>,
    to_detach: VecDeque<u64>,
    /// The request that was not answered yet.
    asked: Option<Request>,
    part: Part,
    incoming: Vec<u8>,
    body: Vec<u8>,
    listed: Vec<Session>,
    sessions: BTreeMap<u64, AttachedSession>,
    traces: BTreeMap<(u64, u64), TraceMetadata>,
    streams: BTreeMap<u64, DataStream>,
    /// All streams that were announced, those of metadata too.
    announced: HashMap<u64, (u64, u64)>,
    /// Streams that have ended, so that they are not counted in again.
    ended: BTreeSet<u64>,
    /// The last trace that had its turn.
    turn: (u64, u64),
    events: VecDeque<ViewerEvent>,
}

impl Viewer {
    /// A viewer that is connected to nothing yet.
    pub fn new(options: ViewerOptions) -> Self {
        Self {
            options,
            now: Duration::ZERO,
            is_connected: false,
            is_listed: false,
            has_viewer_session: false,
            to_attach: VecDeque::new(),
            to_detach: VecDeque::new(),
            asked: None,
            part: Part::Head(0),
            incoming: Vec::new(),
            body: Vec::new(),
            listed: Vec::new(),
            sessions: BTreeMap::new(),
            traces: BTreeMap::new(),
            streams: BTreeMap::new(),
            announced: HashMap::new(),
            ended: BTreeSet::new(),
            turn: (0, 0),
            events: VecDeque::new(),
        }
    }

    /// Attaches a session that was listed.
    pub fn attach(&mut self, session: u64) {
        if let Some(listed) = self.listed.iter().find(|listed| listed.id == session) {
            let attached = AttachedSession {
                host: listed.host.clone(),
                name: listed.name.clone(),
                ..AttachedSession::default()
            };
            if self.sessions.insert(session, attached).is_none() {
                self.to_attach.push_back(session);
            }
        }
    }

    /// Lists the sessions again.
    pub fn list(&mut self) {
        self.is_listed = false;
    }

    /// Detaches all sessions: nothing else is asked then.
    pub fn detach(&mut self) {
        self.to_detach = self.sessions.keys().copied().collect();
        for session in &self.to_attach {
            self.to_detach.retain(|other| other != session);
        }
        self.to_attach.clear();
        self.sessions.clear();
        self.streams.clear();
        self.traces.clear();
    }

    /// Whether a request waits for its reply.
    pub fn is_waiting(&self) -> bool {
        self.asked.is_some()
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<ViewerEvent> {
        self.events.pop_front()
    }

    /// The request to send now; `None` while another one waits for its reply, and where nothing is due before
    /// the [deadline](Self::deadline).
    pub fn next_request(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.now = self.now.max(now);
        if self.asked.is_some() {
            return None;
        }
        let request = self.due()?;
        self.part = Part::Head(match request {
            Request::Connect => CONNECT_BYTES,
            Request::ListSessions => COUNT_BYTES,
            Request::CreateSession | Request::Detach { .. } => STATUS_BYTES,
            Request::Attach { .. } | Request::NewStreams { .. } => STREAMS_BYTES,
            Request::NextIndex { .. } => INDEX_BYTES,
            Request::Packet { .. } => PACKET_BYTES,
            Request::Metadata { .. } => METADATA_BYTES,
        });
        self.asked = Some(request);
        Some(request.encode())
    }

    /// When something is due again, if nothing comes meanwhile.
    pub fn deadline(&self) -> Option<Duration> {
        let streams = self.streams.values().map(|stream| {
            let packet = stream.packet.as_ref().map(|packet| packet.ask_at);
            packet.unwrap_or(stream.ask_at)
        });
        let sessions = self.sessions.values().map(|session| session.ask_at);
        streams.chain(sessions).min()
    }

    fn due(&mut self) -> Option<Request> {
        if !self.is_connected {
            return Some(Request::Connect);
        }
        if let Some(session) = self.to_detach.pop_front() {
            return Some(Request::Detach { session });
        }
        if !self.is_listed {
            return Some(Request::ListSessions);
        }
        if let Some(&session) = self.to_attach.front() {
            if !self.has_viewer_session {
                return Some(Request::CreateSession);
            }
            self.to_attach.pop_front();
            let seek = self.options.seek;
            return Some(Request::Attach { session, seek });
        }
        let now = self.now;
        let is_due = |session: &AttachedSession| session.has_new_streams || session.ask_at <= now;
        if let Some((&session, _)) = self.sessions.iter().find(|(_, session)| is_due(session)) {
            return Some(Request::NewStreams { session });
        }
        let is_due = |trace: &&TraceMetadata| trace.is_due;
        if let Some(stream) = self
            .traces
            .values()
            .filter(is_due)
            .find_map(|trace| trace.stream)
        {
            return Some(Request::Metadata { stream });
        }
        // A packet in hand goes before others: only one is in memory.
        if let Some((&stream, packet)) = self
            .streams
            .iter()
            .find_map(|(id, stream)| Some((id, stream.packet.as_ref()?)))
        {
            if packet.ask_at > now {
                return None;
            }
            let got = packet.bytes.len() as u64;
            return Some(Request::Packet {
                stream,
                offset: packet.index.offset.saturating_add(got),
                length: u32::try_from(packet.length - got).map_or(PIECE, |left| left.min(PIECE)),
            });
        }
        // For each trace, the stream that is furthest behind; then the trace whose turn it is.
        let mut behind: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
        for (&id, stream) in &self.streams {
            if stream.ask_at <= now {
                let key = (stream.frontier, id);
                behind
                    .entry(stream.trace)
                    .and_modify(|known| *known = (*known).min(key))
                    .or_insert(key);
            }
        }
        let mut turns = behind.range((
            std::ops::Bound::Excluded(self.turn),
            std::ops::Bound::Unbounded,
        ));
        let (&trace, &(_, stream)) = turns.next().or_else(|| behind.iter().next())?;
        self.turn = trace;
        Some(Request::NextIndex { stream })
    }

    /// Takes what has come.
    ///
    /// # Errors
    ///
    /// Something that a relay daemon must not send, or more than the limits allow. The connection is of no use then.
    pub fn receive(&mut self, now: Duration, mut bytes: &[u8]) -> Result<(), ProtocolError> {
        self.now = self.now.max(now);
        while !bytes.is_empty() {
            let Some(request) = self.asked else {
                return Err(ProtocolError::Unasked);
            };
            if let Part::Body { left } = &mut self.part {
                let count = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                self.body.extend_from_slice(&bytes[..count]);
                *left -= count as u64;
                let is_whole = *left == 0;
                bytes = &bytes[count..];
                if is_whole {
                    self.body(request);
                }
                continue;
            }
            let size = match self.part {
                Part::Head(size) | Part::Entries { size, .. } => size,
                Part::Body { .. } => 0,
            };
            let count = (size - self.incoming.len()).min(bytes.len());
            self.incoming.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            if self.incoming.len() < size {
                continue;
            }
            let incoming = std::mem::take(&mut self.incoming);
            match &mut self.part {
                Part::Entries { left, .. } => {
                    *left -= 1;
                    let is_last = *left == 0;
                    self.entry(request, &incoming, is_last)?;
                }
                _ => self.head(request, &incoming)?,
            }
        }
        Ok(())
    }

    /// The reply is whole.
    fn done(&mut self) {
        self.asked = None;
    }
}
