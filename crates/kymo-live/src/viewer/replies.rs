//! What replies of a relay daemon change.

use std::time::Duration;

use super::event::{StreamInfo, ViewerEvent};
use super::options::Position;
use super::{DataStream, Fetch, MOST_RETRIES, Part, Viewer};
use crate::message::{
    Fields, IndexReply, MAJOR, NEW_METADATA, NEW_STREAM, ProtocolError, Request, SESSION_BYTES,
    STREAM_BYTES, Session, StreamEntry,
};
use crate::spool::StreamName;

impl Viewer {
    pub(super) fn head(&mut self, request: Request, head: &[u8]) -> Result<(), ProtocolError> {
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
                let period = match self
                    .streams
                    .values()
                    .any(|stream| stream.session == session)
                {
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

    pub(super) fn entry(
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
        let Some(known) = self.streams.get(&stream) else {
            return;
        };
        if flags & NEW_METADATA != 0
            && let Some(metadata) = self.traces.get_mut(&known.trace)
        {
            metadata.is_due = true;
        }
        if flags & NEW_STREAM != 0
            && let Some(session) = self.sessions.get_mut(&known.session)
        {
            session.has_new_streams = true;
        }
    }

    /// What is next of a stream. A status that there is not is the error.
    fn index(&mut self, stream: u64, reply: &IndexReply) -> Result<(), u32> {
        self.flags(stream, reply.flags);
        let again = self.now + self.options.period;
        let limit = self.options.limits.packet;
        let Some(state) = self.streams.get_mut(&stream) else {
            return Ok(());
        };
        let index = reply.index;
        match reply.status {
            1 => {
                state.frontier = state.frontier.max(index.end);
                let length = index.packet_bits.div_ceil(8);
                let is_known =
                    |known: Position| index.begin <= known.begin && index.end <= known.end;
                if state.known.is_some_and(is_known) {
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
                    state.packet = Some(Fetch {
                        index,
                        length,
                        bytes: Vec::new(),
                        retries: 0,
                        ask_at: Duration::ZERO,
                    });
                }
            }
            2 => {
                state.ask_at = again;
                self.events.push_back(ViewerEvent::Waiting { stream });
            }
            status @ (3 | 4 | 6) => {
                self.streams.remove(&stream);
                self.end(stream, status == 4);
            }
            5 => {
                state.ask_at = again;
                state.frontier = state.frontier.max(index.end);
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
            .and_then(|stream| stream.packet.as_mut());
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
            .and_then(|stream| stream.packet.take());
        if let Some(Fetch { index, .. }) = packet {
            self.events.push_back(ViewerEvent::Lost {
                stream,
                index,
                reason,
            });
        }
    }

    /// The bytes of a packet or of metadata have come.
    pub(super) fn body(&mut self, request: Request) {
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
                if let Some(known) = self.streams.get_mut(&stream)
                    && let Some(mut packet) = known.packet.take()
                {
                    if packet.bytes.is_empty() {
                        packet.bytes = bytes;
                    } else {
                        packet.bytes.append(&mut bytes);
                    }
                    if (packet.bytes.len() as u64) < packet.length {
                        known.packet = Some(packet);
                    } else {
                        let Fetch { index, bytes, .. } = packet;
                        let (begin, end) = (index.begin, index.end);
                        known.known = Some(Position { begin, end });
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
