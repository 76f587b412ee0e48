//! The messages of the protocol, as bytes. All numbers are big-endian, and structures have no padding.

use std::fmt;

/// The major version of the protocol.
pub(crate) const MAJOR: u32 = 2;
/// The newest minor version whose layouts are known here, which is sent to a relay daemon. It answers in the layouts
/// of the lower of both versions, so newer ones are understood.
pub(crate) const MINOR: u32 = 14;

/// Bytes of texts in messages, with the NUL at their end.
const HOST_BYTES: usize = 64;
const NAME_BYTES: usize = 255;
const PATH_BYTES: usize = 4096;

/// Bytes of the heads of replies, and of the entries that follow them.
pub(crate) const CONNECT_BYTES: usize = 20;
pub(crate) const COUNT_BYTES: usize = 4;
pub(crate) const SESSION_BYTES: usize = 20 + HOST_BYTES + NAME_BYTES;
pub(crate) const STATUS_BYTES: usize = 4;
pub(crate) const STREAMS_BYTES: usize = 8;
pub(crate) const STREAM_BYTES: usize = 20 + PATH_BYTES + NAME_BYTES;
pub(crate) const INDEX_BYTES: usize = 64;
pub(crate) const PACKET_BYTES: usize = 12;
pub(crate) const METADATA_BYTES: usize = 12;

/// The metadata of the trace is to be asked for.
pub(crate) const NEW_METADATA: u32 = 1;
/// The streams of the session are to be asked for.
pub(crate) const NEW_STREAM: u32 = 2;

/// From where on a session is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seek {
    /// The oldest packets that the relay daemon still has.
    #[default]
    Beginning,
    /// The next packets.
    Now,
}

/// What a viewer asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Agrees on a version.
    Connect,
    /// Asks for the sessions.
    ListSessions,
    /// Begins a viewer session, to which sessions are attached.
    CreateSession,
    /// Attaches a session, and asks for its streams.
    Attach {
        /// The session.
        session: u64,
        /// From where on.
        seek: Seek,
    },
    /// Asks for the index of the next packet of a stream.
    NextIndex {
        /// The stream.
        stream: u64,
    },
    /// Asks for bytes of the file in which a packet is.
    Packet {
        /// The stream.
        stream: u64,
        /// Where they begin in the file.
        offset: u64,
        /// How many.
        length: u32,
    },
    /// Asks for metadata that was not sent yet.
    Metadata {
        /// The metadata stream.
        stream: u64,
    },
    /// Asks for streams that were not sent yet.
    NewStreams {
        /// The session.
        session: u64,
    },
    /// Detaches a session.
    Detach {
        /// The session.
        session: u64,
    },
}

impl Request {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        let command: u32 = match *self {
            Self::Connect => {
                payload.extend(u64::MAX.to_be_bytes());
                payload.extend(MAJOR.to_be_bytes());
                payload.extend(MINOR.to_be_bytes());
                // A connection for commands.
                payload.extend(1_u32.to_be_bytes());
                1
            }
            Self::ListSessions => 2,
            Self::Attach { session, seek } => {
                payload.extend(session.to_be_bytes());
                payload.extend(0_u64.to_be_bytes());
                let seek: u32 = match seek {
                    Seek::Beginning => 1,
                    Seek::Now => 2,
                };
                payload.extend(seek.to_be_bytes());
                3
            }
            Self::NextIndex { stream } => {
                payload.extend(stream.to_be_bytes());
                4
            }
            Self::Packet {
                stream,
                offset,
                length,
            } => {
                payload.extend(stream.to_be_bytes());
                payload.extend(offset.to_be_bytes());
                payload.extend(length.to_be_bytes());
                5
            }
            Self::Metadata { stream } => {
                payload.extend(stream.to_be_bytes());
                6
            }
            Self::NewStreams { session } => {
                payload.extend(session.to_be_bytes());
                7
            }
            Self::CreateSession => 8,
            Self::Detach { session } => {
                payload.extend(session.to_be_bytes());
                9
            }
        };
        let mut bytes = Vec::with_capacity(16 + payload.len());
        bytes.extend((payload.len() as u64).to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(0_u32.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Connect => "CONNECT",
            Self::ListSessions => "LIST_SESSIONS",
            Self::CreateSession => "CREATE_SESSION",
            Self::Attach { .. } => "ATTACH_SESSION",
            Self::NextIndex { .. } => "GET_NEXT_INDEX",
            Self::Packet { .. } => "GET_PACKET",
            Self::Metadata { .. } => "GET_METADATA",
            Self::NewStreams { .. } => "GET_NEW_STREAMS",
            Self::Detach { .. } => "DETACH_SESSION",
        }
    }
}

/// Reads numbers and texts one after another. What is behind the end reads as 0: who makes one has made sure that
/// there are enough bytes.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(crate) fn u32(&mut self) -> u32 {
        let taken = self.take(4);
        taken
            .iter()
            .fold(0, |number, &byte| number << 8 | u32::from(byte))
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    /// A text that ends with NUL, or fills its place.
    fn text(&mut self, count: usize) -> String {
        let taken = self.take(count);
        let end = taken.iter().position(|&byte| byte == 0);
        String::from_utf8_lossy(&taken[..end.unwrap_or(taken.len())]).into_owned()
    }
}

/// A session, as a relay daemon lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its number at this relay daemon.
    pub id: u64,
    /// The period of its live timer, in microseconds; 0 of a session that is not live.
    pub live_timer: u32,
    /// How many viewers are attached.
    pub clients: u32,
    /// How many streams it has, those of metadata included.
    pub streams: u32,
    /// The host that is traced.
    pub host: String,
    /// Its name.
    pub name: String,
}

impl Session {
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        Self {
            id: fields.u64(),
            live_timer: fields.u32(),
            clients: fields.u32(),
            streams: fields.u32(),
            host: fields.text(HOST_BYTES),
            name: fields.text(NAME_BYTES),
        }
    }
}

/// A stream, as a relay daemon announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamEntry {
    pub(crate) id: u64,
    pub(crate) trace: u64,
    pub(crate) is_metadata: bool,
    pub(crate) path: String,
    pub(crate) channel: String,
}

impl StreamEntry {
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        Self {
            id: fields.u64(),
            trace: fields.u64(),
            is_metadata: fields.u32() != 0,
            path: fields.text(PATH_BYTES),
            channel: fields.text(NAME_BYTES),
        }
    }
}

/// What is known of a packet before it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Where it begins in the file of the relay daemon.
    pub offset: u64,
    /// Its size in bits.
    pub packet_bits: u64,
    /// Its content in bits.
    pub content_bits: u64,
    /// Ticks of the clock at its beginning.
    pub begin: u64,
    /// Ticks at its end.
    pub end: u64,
    /// How many events were discarded in its stream so far.
    pub discarded: u64,
}

/// The reply to a question for an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexReply {
    pub(crate) index: Index,
    pub(crate) status: u32,
    pub(crate) flags: u32,
}

impl IndexReply {
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        let index = Index {
            offset: fields.u64(),
            packet_bits: fields.u64(),
            content_bits: fields.u64(),
            begin: fields.u64(),
            end: fields.u64(),
            discarded: fields.u64(),
        };
        let _stream_class = fields.u64();
        Self {
            index,
            status: fields.u32(),
            flags: fields.u32(),
        }
    }
}

/// What a relay daemon must not send.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// Another major version.
    Version {
        /// The version that it has.
        major: u32,
        /// Its minor part.
        minor: u32,
    },
    /// A status that the reply to a request cannot have.
    Status {
        /// The request.
        request: &'static str,
        /// The status.
        status: u32,
    },
    /// More of something than there may be.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Another length than was asked for.
    Length {
        /// The request.
        request: &'static str,
        /// The length.
        length: u64,
        /// What was asked for.
        expected: u64,
    },
    /// Bytes that were not requested.
    Unasked,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { major, minor } => write!(
                f,
                "the relay daemon has version {major}.{minor} of the protocol; expected 2.4 or a newer 2"
            ),
            Self::Status { request, status } => write!(
                f,
                "the reply to {request} has the status {status}, which it cannot have"
            ),
            Self::TooMany { what, count, limit } => {
                write!(
                    f,
                    "the relay daemon has {count} {what}; the limit is {limit}"
                )
            }
            Self::Length {
                request,
                length,
                expected,
            } => write!(
                f,
                "the reply to {request} has {length} bytes; expected {expected}"
            ),
            Self::Unasked => f.write_str("the relay daemon sends bytes that nobody asked for"),
        }
    }
}

impl std::error::Error for ProtocolError {}
