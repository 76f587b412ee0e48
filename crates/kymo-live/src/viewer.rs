//! The viewer's side of the protocol, without sockets.
//!
//! A viewer asks and a relay daemon answers, one request at a time. What is asked next follows from what is due:
//! streams and metadata that were announced, then the packet in hand, then the next index of the stream that is
//! behind the others of its trace. Traces take turns.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use crate::message::{
    CONNECT_BYTES, COUNT_BYTES, Fields, INDEX_BYTES, Index, IndexReply, MAJOR, METADATA_BYTES,
    NEW_METADATA, NEW_STREAM, PACKET_BYTES, ProtocolError, Request, SESSION_BYTES, STATUS_BYTES,
    STREAM_BYTES, STREAMS_BYTES, Seek, Session, StreamEntry,
};
use crate::spool::StreamName;

/// Bytes of a packet that are asked for at once.
const PIECE: u32 = 1 << 20;
/// How often the same piece of a packet is asked for, before it is given up.
const MOST_RETRIES: u32 = 100;

/// What is taken from a relay daemon at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions.
    pub sessions: u32,
    /// Streams of all sessions together.
    pub streams: u32,
    /// Bytes of one packet. Packets are kept in memory until they are whole.
    pub packet: u64,
    /// Bytes of the metadata of one trace, as it is sent, all parts together.
    pub metadata: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 4096,
            streams: 16_384,
            packet: 64 << 20,
            metadata: 64 << 20,
        }
    }
}

/// A packet of a stream, by its times. Those of a stream come in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Ticks at its beginning.
    pub begin: u64,
    /// Ticks at its end.
    pub end: u64,
}

/// How a viewer asks.
#[derive(Clone, Debug)]
pub struct ViewerOptions {
    /// From where on sessions are read.
    pub seek: Seek,
    /// What is taken at most.
    pub limits: Limits,
    /// How long a stream without a new packet is left alone.
    pub period: Duration,
    /// The last packet of streams that is known already: it and those before it are not asked for.
    pub known: BTreeMap<StreamName, Position>,
}

impl Default for ViewerOptions {
    fn default() -> Self {
        Self {
            seek: Seek::Beginning,
            limits: Limits::default(),
            period: Duration::from_millis(100),
            known: BTreeMap::new(),
        }
    }
}

/// A stream that a relay daemon has announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// Its number at this relay daemon.
    pub id: u64,
    /// The session that it belongs to.
    pub session: u64,
    /// The trace that it belongs to.
    pub trace: u64,
    /// Whether it holds the metadata of its trace.
    pub is_metadata: bool,
    /// What it is called.
    pub name: StreamName,
}

/// What has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewerEvent {
    /// Both sides agree on a version.
    Connected {
        /// The minor version of the relay daemon.
        minor: u32,
    },
    /// The sessions that there are.
    Sessions(Vec<Session>),
    /// A session was attached.
    Attached {
        /// The session.
        session: u64,
    },
    /// A session cannot be attached.
    Refused {
        /// The session.
        session: u64,
        /// Why.
        reason: &'static str,
    },
    /// A stream was announced.
    Stream(StreamInfo),
    /// Metadata of a trace, which continues what has come before.
    Metadata {
        /// The metadata stream.
        stream: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A packet.
    Packet {
        /// The stream.
        stream: u64,
        /// What the relay daemon says of it.
        index: Index,
        /// The whole packet.
        bytes: Vec<u8>,
    },
    /// A packet that was known already.
    Known {
        /// The stream.
        stream: u64,
        /// What the relay daemon says of it.
        index: Index,
    },
    /// A packet that cannot be had.
    Lost {
        /// The stream.
        stream: u64,
        /// What the relay daemon says of it.
        index: Index,
        /// Why.
        reason: &'static str,
    },
    /// No event of a stream is earlier than this, and none has come since its last packet.
    Inactive {
        /// The stream.
        stream: u64,
        /// Ticks of its clock.
        until: u64,
    },
    /// There is nothing new of a stream.
    Waiting {
        /// The stream.
        stream: u64,
    },
    /// A stream has ended.
    Ended {
        /// The stream.
        stream: u64,
        /// Whether the relay daemon says that something went wrong with it.
        is_error: bool,
    },
    /// A session has ended: its streams have, and there will be no others.
    SessionEnded {
        /// The session.
        session: u64,
    },
    /// A session was detached.
    Detached {
        /// The session.
        session: u64,
    },
}

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

    /// Detaches all sessions: nothing else is asked any more.
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
                let of = (stream.frontier, id);
                behind
                    .entry(stream.trace)
                    .and_modify(|known| *known = (*known).min(of))
                    .or_insert(of);
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

    fn head(&mut self, request: Request, head: &[u8]) -> Result<(), ProtocolError> {
        let mut fields = Fields(head);
        let wrong = |status| ProtocolError::Status {
            request: request.name(),
            status,
        };
        match request {
            Request::Connect => {
                let _session = fields.u64();
                let (major, minor) = (fields.u32(), fields.u32());
                if major != MAJOR || minor < 4 {
                    return Err(ProtocolError::Version { major, minor });
                }
                self.is_connected = true;
                self.events.push_back(ViewerEvent::Connected { minor });
            }
            Request::ListSessions => {
                self.listed.clear();
                let count = fields.u32();
                if count > 0 {
                    return self.entries(
                        "sessions",
                        count,
                        self.options.limits.sessions,
                        SESSION_BYTES,
                    );
                }
                self.is_listed = true;
                self.events.push_back(ViewerEvent::Sessions(Vec::new()));
            }
            Request::CreateSession => match fields.u32() {
                1 => self.has_viewer_session = true,
                status => return Err(wrong(status)),
            },
            Request::Attach { session, .. } => {
                let reason = match (fields.u32(), fields.u32()) {
                    (1, count) => {
                        self.events.push_back(ViewerEvent::Attached { session });
                        if let Some(attached) = self.sessions.get_mut(&session) {
                            attached.ask_at = self.now + self.options.period;
                        }
                        return self.streams_follow(count);
                    }
                    (2, _) => "another viewer is attached to it",
                    (3, _) => "it has ended",
                    (4, _) => "it is not a live session",
                    (5, _) => "the relay daemon cannot go to the place to begin at",
                    (6, _) => "the relay daemon has lost the viewer session",
                    (status, _) => return Err(wrong(status)),
                };
                self.sessions.remove(&session);
                self.events
                    .push_back(ViewerEvent::Refused { session, reason });
            }
            Request::NewStreams { session } => {
                let (status, count) = (fields.u32(), fields.u32());
                // If packets come, they announce new streams. Without packets, nothing else does.
                let period = match self.streams.values().any(|of| of.session == session) {
                    true => self.options.period * 10,
                    false => self.options.period,
                };
                if let Some(attached) = self.sessions.get_mut(&session) {
                    attached.has_new_streams = false;
                    attached.ask_at = self.now + period;
                }
                match status {
                    1 => return self.streams_follow(count),
                    2 => {}
                    // It is gone, or the relay daemon knows it no longer.
                    3 | 4 => self.close(session),
                    status => return Err(wrong(status)),
                }
            }
            Request::NextIndex { stream } => self
                .index(stream, &IndexReply::decode(head))
                .map_err(wrong)?,
            Request::Packet { stream, length, .. } => {
                let (status, sent, flags) = (fields.u32(), fields.u32(), fields.u32());
                match status {
                    1 if sent == length => {
                        self.part = Part::Body { left: sent.into() };
                        return Ok(());
                    }
                    1 => {
                        return Err(ProtocolError::Length {
                            request: request.name(),
                            length: sent.into(),
                            expected: length.into(),
                        });
                    }
                    2 => self.retry(stream, "the relay daemon does not send it"),
                    3 if flags & (NEW_METADATA | NEW_STREAM) != 0 => {
                        self.flags(stream, flags);
                        self.retry(stream, "the relay daemon always has something else first");
                    }
                    3 => self.lose(stream, "the relay daemon cannot read it"),
                    4 => self.lose(stream, "its file ends before it"),
                    status => return Err(wrong(status)),
                }
            }
            Request::Metadata { stream } => {
                let (length, status) = (fields.u64(), fields.u32());
                let trace = self.announced.get(&stream).copied();
                let metadata = trace.and_then(|trace| self.traces.get_mut(&trace));
                match status {
                    1 if length > 0 => {
                        let known = metadata.map_or(0, |metadata| metadata.bytes);
                        let limit = self.options.limits.metadata;
                        if length > limit.saturating_sub(known) {
                            return Err(ProtocolError::TooMany {
                                what: "bytes of metadata",
                                count: known.saturating_add(length),
                                limit,
                            });
                        }
                        self.part = Part::Body { left: length };
                        return Ok(());
                    }
                    1 | 2 => {
                        if let Some(metadata) = metadata {
                            metadata.is_due = false;
                        }
                    }
                    // The trace is gone: what of it was sent stays.
                    3 => {
                        if let Some(metadata) = metadata {
                            metadata.is_due = false;
                            metadata.stream = None;
                        }
                    }
                    status => return Err(wrong(status)),
                }
            }
            Request::Detach { session } => {
                let _status = fields.u32();
                self.events.push_back(ViewerEvent::Detached { session });
            }
        }
        self.done();
        Ok(())
    }

    fn entries(
        &mut self,
        what: &'static str,
        count: u32,
        limit: u32,
        size: usize,
    ) -> Result<(), ProtocolError> {
        if count > limit {
            return Err(ProtocolError::TooMany {
                what,
                count: count.into(),
                limit: limit.into(),
            });
        }
        self.part = Part::Entries { left: count, size };
        Ok(())
    }

    fn streams_follow(&mut self, count: u32) -> Result<(), ProtocolError> {
        if count == 0 {
            self.done();
            return Ok(());
        }
        let known = u32::try_from(self.announced.len()).unwrap_or(u32::MAX);
        let left = self.options.limits.streams.saturating_sub(known);
        self.entries("new streams", count, left, STREAM_BYTES)
    }

    fn entry(
        &mut self,
        request: Request,
        entry: &[u8],
        is_last: bool,
    ) -> Result<(), ProtocolError> {
        match request {
            Request::Attach { session, .. } | Request::NewStreams { session } => {
                self.stream(session, StreamEntry::decode(entry));
            }
            _ => self.listed.push(Session::decode(entry)),
        }
        if is_last {
            if request == Request::ListSessions {
                self.is_listed = true;
                self.events
                    .push_back(ViewerEvent::Sessions(self.listed.clone()));
            }
            self.done();
        }
        Ok(())
    }

    /// A stream was announced.
    fn stream(&mut self, session: u64, entry: StreamEntry) {
        let Some(attached) = self.sessions.get(&session) else {
            return;
        };
        let trace = (session, entry.trace);
        if self.announced.insert(entry.id, trace).is_some() {
            return;
        }
        let name = StreamName {
            host: attached.host.clone(),
            session: attached.name.clone(),
            path: entry.path,
            channel: entry.channel,
        };
        let known = self.options.known.get(&name).copied();
        self.events.push_back(ViewerEvent::Stream(StreamInfo {
            id: entry.id,
            session,
            trace: entry.trace,
            is_metadata: entry.is_metadata,
            name,
        }));
        let metadata = self.traces.entry(trace).or_default();
        match entry.is_metadata {
            true => {
                metadata.stream = Some(entry.id);
                metadata.is_due = true;
            }
            false => {
                let stream = DataStream {
                    session,
                    trace,
                    frontier: known.map_or(0, |known| known.end),
                    ask_at: self.now,
                    packet: None,
                    known,
                };
                self.streams.insert(entry.id, stream);
            }
        }
    }

    fn flags(&mut self, stream: u64, flags: u32) {
        let Some(of) = self.streams.get(&stream) else {
            return;
        };
        if flags & NEW_METADATA != 0
            && let Some(metadata) = self.traces.get_mut(&of.trace)
        {
            metadata.is_due = true;
        }
        if flags & NEW_STREAM != 0
            && let Some(session) = self.sessions.get_mut(&of.session)
        {
            session.has_new_streams = true;
        }
    }

    /// What is next of a stream. A status that there is not is the error.
    fn index(&mut self, stream: u64, reply: &IndexReply) -> Result<(), u32> {
        self.flags(stream, reply.flags);
        let again = self.now + self.options.period;
        let limit = self.options.limits.packet;
        let Some(of) = self.streams.get_mut(&stream) else {
            return Ok(());
        };
        let index = reply.index;
        match reply.status {
            1 => {
                of.frontier = of.frontier.max(index.end);
                let length = index.packet_bits.div_ceil(8);
                let is_known =
                    |known: Position| index.begin <= known.begin && index.end <= known.end;
                if of.known.is_some_and(is_known) {
                    self.events.push_back(ViewerEvent::Known { stream, index });
                } else if length == 0 || length > limit {
                    let reason = match length {
                        0 => "it is empty",
                        _ => "it is larger than packets may be",
                    };
                    self.events.push_back(ViewerEvent::Lost {
                        stream,
                        index,
                        reason,
                    });
                } else {
                    of.packet = Some(Fetch {
                        index,
                        length,
                        bytes: Vec::new(),
                        retries: 0,
                        ask_at: Duration::ZERO,
                    });
                }
            }
            2 => {
                of.ask_at = again;
                self.events.push_back(ViewerEvent::Waiting { stream });
            }
            status @ (3 | 4 | 6) => {
                self.streams.remove(&stream);
                self.end(stream, status == 4);
            }
            5 => {
                of.ask_at = again;
                of.frontier = of.frontier.max(index.end);
                let until = index.end;
                self.events
                    .push_back(ViewerEvent::Inactive { stream, until });
            }
            status => return Err(status),
        }
        Ok(())
    }

    fn end(&mut self, stream: u64, is_error: bool) {
        if self.ended.insert(stream) {
            self.events
                .push_back(ViewerEvent::Ended { stream, is_error });
        }
        // Whether there will be others, only the session knows.
        if let Some((session, _)) = self.announced.get(&stream)
            && let Some(session) = self.sessions.get_mut(session)
        {
            session.ask_at = self.now;
        }
    }

    /// A session has ended.
    fn close(&mut self, session: u64) {
        if self
            .streams
            .values()
            .any(|stream| stream.session == session)
        {
            // What is left of them comes first.
            return;
        }
        if self.traces.iter().any(|(trace, metadata)| {
            trace.0 == session && metadata.is_due && metadata.stream.is_some()
        }) {
            return;
        }
        self.sessions.remove(&session);
        self.traces.retain(|trace, _| trace.0 != session);
        self.events.push_back(ViewerEvent::SessionEnded { session });
    }

    fn retry(&mut self, stream: u64, reason: &'static str) {
        let again = self.now + self.options.period;
        let packet = self
            .streams
            .get_mut(&stream)
            .and_then(|of| of.packet.as_mut());
        let Some(packet) = packet else {
            return;
        };
        packet.retries += 1;
        packet.ask_at = again;
        if packet.retries > MOST_RETRIES {
            self.lose(stream, reason);
        }
    }

    fn lose(&mut self, stream: u64, reason: &'static str) {
        let packet = self
            .streams
            .get_mut(&stream)
            .and_then(|of| of.packet.take());
        if let Some(Fetch { index, .. }) = packet {
            self.events.push_back(ViewerEvent::Lost {
                stream,
                index,
                reason,
            });
        }
    }

    /// The bytes of a packet or of metadata have come.
    fn body(&mut self, request: Request) {
        let mut bytes = std::mem::take(&mut self.body);
        match request {
            Request::Metadata { stream } => {
                let trace = self.announced.get(&stream);
                if let Some(metadata) = trace.and_then(|trace| self.traces.get_mut(trace)) {
                    metadata.bytes += bytes.len() as u64;
                }
                self.events
                    .push_back(ViewerEvent::Metadata { stream, bytes });
            }
            Request::Packet { stream, .. } => {
                if let Some(of) = self.streams.get_mut(&stream)
                    && let Some(mut packet) = of.packet.take()
                {
                    if packet.bytes.is_empty() {
                        packet.bytes = bytes;
                    } else {
                        packet.bytes.append(&mut bytes);
                    }
                    if (packet.bytes.len() as u64) < packet.length {
                        of.packet = Some(packet);
                    } else {
                        let Fetch { index, bytes, .. } = packet;
                        let (begin, end) = (index.begin, index.end);
                        of.known = Some(Position { begin, end });
                        self.events.push_back(ViewerEvent::Packet {
                            stream,
                            index,
                            bytes,
                        });
                    }
                }
            }
            _ => {}
        }
        self.done();
    }
}
