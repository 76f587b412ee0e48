//! What a relay daemon has announced and sent.

use crate::message::{Index, Session};
use crate::spool::StreamName;

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
