//! Datagrams in files of network captures: pcap and pcapng, on Ethernet, Linux's cooked links, loop
//! back or plain IP, with IPv4 or IPv6.

mod blocks;
mod frame;

use std::fmt;
use std::io::{self, Write};

use kymo_machine::ByteOrder;

pub use blocks::Position;
pub use frame::Skipped;

/// A datagram of UDP in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'c> {
    /// Where it begins in the file.
    pub offset: usize,
    /// What it carries.
    pub payload: &'c [u8],
}

/// What is wrong with a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureFault {
    /// Where, in bytes from the beginning of the file.
    pub offset: usize,
    /// What.
    pub problem: CaptureProblem,
}

/// What can be wrong with a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureProblem {
    /// The file ends within a packet or a block; nothing comes after it.
    Truncated,
    /// A block says that it is shorter than can be; nothing comes after it.
    BlockLength(u32),
    /// A packet of an interface that was not described.
    Interface(u32),
    /// A packet that holds a datagram for the port, which cannot be read.
    Skipped(Skipped),
    /// Links of this type are not read.
    LinkType(u16),
}

impl fmt::Display for CaptureProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the file ends within a packet"),
            Self::BlockLength(length) => write!(f, "a block of {length} bytes cannot be"),
            Self::Interface(number) => write!(f, "interface {number} is not described"),
            Self::Skipped(skipped) => skipped.fmt(f),
            Self::LinkType(number) => write!(f, "links of type {number} are not read"),
        }
    }
}

/// The forms of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The classic form, of which all numbers have this order.
    Pcap(ByteOrder),
    /// The form with blocks.
    PcapNg,
}

impl Form {
    /// The form of the capture that begins so; `None` where it is none.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        match *bytes.first_chunk::<4>()? {
            // With times in microseconds, or in nanoseconds.
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(Self::Pcap(ByteOrder::Big)),
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => {
                Some(Self::Pcap(ByteOrder::Little))
            }
            [0x0a, 0x0d, 0x0d, 0x0a] => Some(Self::PcapNg),
            _ => None,
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pcap(_) => "pcap",
            Self::PcapNg => "pcapng",
        }
    }
}

/// Hands all datagrams for a port to `sink`, and what is wrong between them.
pub fn datagrams<'c>(
    bytes: &'c [u8],
    form: Form,
    port: u16,
    sink: &mut impl FnMut(Result<Datagram<'c>, CaptureFault>),
) {
    datagrams_from(bytes, form, port, &mut Position::default(), sink);
}

/// The same from a position on, which is moved behind the last packet that is there as a whole.
pub fn datagrams_from<'c>(
    bytes: &'c [u8],
    form: Form,
    port: u16,
    position: &mut Position,
    sink: &mut impl FnMut(Result<Datagram<'c>, CaptureFault>),
) {
    blocks::packets(bytes, form, position, &mut |packet| {
        let result = packet.and_then(|packet| {
            let fault = |problem| CaptureFault {
                offset: packet.offset,
                problem,
            };
            let found = frame::datagram(packet.link, packet.bytes, port).map_err(fault)?;
            Ok(found.map(|payload| Datagram {
                offset: packet.offset + payload.start,
                payload: &packet.bytes[payload],
            }))
        });
        match result {
            Ok(None) => {}
            Ok(Some(datagram)) => sink(Ok(datagram)),
            Err(fault) => sink(Err(fault)),
        }
    });
}

/// Writes a capture again without the packets that are not to stay: those of datagrams for a port of which `stays`
/// says so by their numbers, and all others. What is not a packet stays as it is.
///
/// # Errors
///
/// Those of the output.
pub fn cut(
    bytes: &[u8],
    form: Form,
    port: u16,
    stays: impl Fn(u64) -> bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut number = 0;
    let mut written = 0;
    let mut result = Ok(());
    blocks::packets(bytes, form, &mut Position::default(), &mut |packet| {
        let Ok(packet) = packet else {
            return;
        };
        let found = frame::datagram(packet.link, packet.bytes, port);
        let is_datagram = matches!(found, Ok(Some(_)));
        let is_kept = is_datagram && stays(number);
        number += u64::from(is_datagram);
        if !is_kept && result.is_ok() {
            result = out.write_all(&bytes[written..packet.begin]);
            written = packet.end;
        }
    });
    result?;
    out.write_all(&bytes[written..])
}

#[cfg(test)]
mod tests;
