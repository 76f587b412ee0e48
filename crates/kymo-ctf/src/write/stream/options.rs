//! How streams are written, and what is specified of packets and events.

use kymo_machine::ByteOrder;

/// The default size of a packet, in bytes.
const PACKET_BYTES: u64 = 1 << 16;

/// How a stream is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Number of the stream, for packets that contain it.
    pub stream_id: Option<u64>,
    /// A packet ends before it would become larger than this, in bytes, 4096 at least; one event
    /// may be larger alone. `None` ends packets only where that is
    /// [requested](super::StreamWriter::end_packet), and where the time of an event needs another packet.
    pub packet_bytes: Option<u64>,
    /// Whether the time may go back, as far as the headers of events can express this.
    pub any_order: bool,
    /// Whether values are taken that have another kind in another dialect: truth values for
    /// integers, text for arrays of bytes, optionals for variants and the like.
    pub lenient: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            stream_id: None,
            packet_bytes: Some(PACKET_BYTES),
            any_order: false,
            lenient: false,
        }
    }
}

/// What is known of a packet when it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketStart {
    /// Ticks at its beginning; by default, those of its first event.
    pub begin: Option<u64>,
    /// Its number, if not the one after that of the packet before it.
    pub sequence: Option<u64>,
    /// The counter of discarded events, if it is not to be what was
    /// [reported](super::StreamWriter::discard): as of the packet's end, of RFC v1.1 as of its beginning.
    pub discarded: Option<u64>,
    /// The size that it has at the least, in bytes.
    pub least_bytes: u64,
}

/// An event as it lies in a packet of the same layout.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent<'a> {
    /// The packet.
    pub data: &'a [u8],
    /// Where its contexts and payload begin, in bits.
    pub fields: u64,
    /// Where it ends, in bits.
    pub end: u64,
    /// What the places of all fields are aligned to at most, in bits.
    pub align: u64,
    /// The byte order of its bits; `None` where they have both.
    pub order: Option<ByteOrder>,
}
