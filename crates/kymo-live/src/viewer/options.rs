//! How a viewer asks, and what it takes at most.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::message::Seek;
use crate::spool::StreamName;

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
