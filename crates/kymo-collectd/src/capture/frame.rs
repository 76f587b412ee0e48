//! Packets to datagrams.

use std::fmt;
use std::ops::Range;

use super::CaptureProblem;

/// Why the datagram in a packet cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The capture has not kept all of it.
    Cut,
    /// It was sent in pieces.
    Fragment,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cut => "the capture has not kept the whole datagram",
            Self::Fragment => "a datagram was sent in pieces, which are not put together",
        })
    }
}

/// Protocols, as Ethernet numbers them.
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Tags of virtual networks.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// The protocol number of UDP.
const UDP: u8 = 17;

/// The position of the payload of a datagram to a port in a packet; `None` if there is none.
pub(super) fn datagram(
    link: u16,
    packet: &[u8],
    port: u16,
) -> Result<Option<Range<usize>>, CaptureProblem> {
    let Some(begin) = network(link, packet)? else {
        return Ok(None);
    };
    let found = match packet.get(begin).map(|byte| byte >> 4) {
        Some(4) => ipv4(packet, begin, port),
        Some(6) => ipv6(packet, begin, port),
        _ => Ok(None),
    };
    found.map_err(CaptureProblem::Skipped)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Where IP begins.
fn network(link: u16, packet: &[u8]) -> Result<Option<usize>, CaptureProblem> {
    let after = |protocol_at: usize, begin: usize| {
        let is_ip = matches!(half(packet, protocol_at), Some(IPV4 | IPV6));
        is_ip.then_some(begin)
    };
    // The protocol that is given at a place, behind the tags of virtual networks.
    let tagged = |mut at: usize| {
        while half(packet, at).is_some_and(|protocol| VLAN.contains(&protocol)) {
            at += 4;
        }
        after(at, at + 2)
    };
    Ok(match link {
        // A family in four bytes, of the capturing machine's order or of that of networks: it is
        // looked at what follows.
        0 | 108 => Some(4),
        // Ethernet.
        1 => tagged(12),
        // Plain IP, of either version or of one.
        12 | 14 | 101 | 228 | 229 => Some(0),
        // Linux's cooked links, in two versions: in the second, a tag is behind the head of 20 bytes.
        113 => tagged(14),
        276 if half(packet, 0).is_some_and(|protocol| VLAN.contains(&protocol)) => tagged(22),
        276 => after(0, 20),
        _ => return Err(CaptureProblem::LinkType(link)),
    })
}

fn ipv4(packet: &[u8], begin: usize, port: u16) -> Result<Option<Range<usize>>, Skipped> {
    let Some(header) = packet[begin..].first_chunk::<20>() else {
        return Ok(None);
    };
    if header[9] != UDP {
        return Ok(None);
    }
    let pieces = u16::from_be_bytes([header[6], header[7]]);
    let udp = begin + usize::from(header[0] & 15) * 4;
    // Only the first piece contains the port.
    if pieces & 0x1fff != 0 {
        return Ok(None);
    }
    match payload(packet, udp, port) {
        // Its length is that of all pieces.
        Ok(Some(_)) | Err(_) if pieces & 0x2000 != 0 => Err(Skipped::Fragment),
        found => found,
    }
}

fn ipv6(packet: &[u8], begin: usize, port: u16) -> Result<Option<Range<usize>>, Skipped> {
    let Some(header) = packet[begin..].first_chunk::<40>() else {
        return Ok(None);
    };
    let (mut next, mut at) = (header[6], begin + 40);
    let mut is_fragment = false;
    loop {
        let Some(&[following, length, b2, b3]) =
            packet.get(at..at + 4).and_then(|bytes| bytes.first_chunk())
        else {
            return Ok(None);
        };
        match next {
            UDP => break,
            // Options of the way, of routing, of the destination.
            0 | 43 | 60 => at += (usize::from(length) + 1) * 8,
            44 => {
                let pieces = u16::from_be_bytes([b2, b3]);
                if pieces & 0xfff8 != 0 {
                    return Ok(None);
                }
                is_fragment |= pieces & 1 != 0;
                at += 8;
            }
            _ => return Ok(None),
        }
        next = following;
    }
    match payload(packet, at, port) {
        Ok(Some(_)) | Err(_) if is_fragment => Err(Skipped::Fragment),
        found => found,
    }
}

/// The payload of the datagram at `at`, if it is for the port.
fn payload(packet: &[u8], at: usize, port: u16) -> Result<Option<Range<usize>>, Skipped> {
    if half(packet, at + 2) != Some(port) {
        return Ok(None);
    }
    let length = half(packet, at + 4).map(usize::from).ok_or(Skipped::Cut)?;
    let range = at + 8..at + length.max(8);
    match range.end <= packet.len() {
        true => Ok(Some(range)),
        false => Err(Skipped::Cut),
    }
}
