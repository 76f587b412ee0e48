//! Datagrams that are packets of a trace and nothing else.

use kymo_machine::ByteOrder;

use crate::metadata::rfc::PacketHeader;

/// The number that packets of metadata begin with (CTF 1.8.3 §7.1).
const METADATA_MAGIC: u32 = 0x75D1_1D57;

/// What is known of a packet without the metadata of its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// A packet of metadata (CTF 1.8).
    Metadata,
    /// A packet of a stream.
    Packet {
        /// Its number in its section, and how many bits of it count, where it has the header of RFC v1.1.
        count: Option<(u32, u32)>,
    },
}

/// What a datagram is that holds a packet as it is; `None` if it does not begin with a magic number.
pub fn recognize(datagram: &[u8]) -> Option<Raw> {
    let magic = datagram.first_chunk()?;
    if [u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)].contains(&METADATA_MAGIC) {
        return Some(Raw::Metadata);
    }
    let order = crate::metadata::rfc::byte_order(datagram)?;
    Some(Raw::Packet {
        count: count(datagram, order),
    })
}

/// The number of a packet of RFC v1.1, which says in bytes how long it is.
fn count(datagram: &[u8], order: ByteOrder) -> Option<(u32, u32)> {
    let header = PacketHeader::read(datagram, order)?;
    let is_rfc = header.packet_size as usize == datagram.len()
        && header.content_size <= header.packet_size
        && header.content_size >= 48
        && header.unknown_scheme().is_none()
        && (1..=32).contains(&header.count_bits);
    let bytes = datagram.get(20..)?.first_chunk()?;
    let number = match order {
        ByteOrder::Little => u32::from_le_bytes(*bytes),
        ByteOrder::Big => u32::from_be_bytes(*bytes),
    };
    is_rfc.then_some((number, header.count_bits.into()))
}
