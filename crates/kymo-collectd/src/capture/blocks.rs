//! Files to packets.

use kymo_machine::ByteOrder;

use super::{CaptureFault, CaptureProblem, Form};

/// A packet as the capture has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'c> {
    pub(super) offset: usize,
    /// The type of its link.
    pub(super) link: u16,
    /// What was kept of it.
    pub(super) bytes: &'c [u8],
    /// Where it is in the file, with what the capture says of it.
    pub(super) begin: usize,
    pub(super) end: usize,
}

type Found<'c> = Result<Packet<'c>, CaptureFault>;

/// Up to where a capture was read, and what its next packets need to be read.
#[derive(Clone, Debug)]
pub struct Position {
    /// Where the next packet begins.
    pub(crate) at: usize,
    order: ByteOrder,
    links: Vec<u16>,
}

impl Default for Position {
    /// The beginning.
    fn default() -> Self {
        Self {
            at: 0,
            order: ByteOrder::Little,
            links: Vec::new(),
        }
    }
}

/// Hands all packets from a position on to `sink`, and moves the position behind them.
pub(super) fn packets<'c>(
    bytes: &'c [u8],
    form: Form,
    position: &mut Position,
    sink: &mut impl FnMut(Found<'c>),
) {
    let result = match form {
        Form::Pcap(order) => pcap(bytes, order, position, sink),
        Form::PcapNg => pcapng(bytes, position, sink),
    };
    if let Err(fault) = result {
        sink(Err(fault));
    }
}

fn truncated(offset: usize) -> CaptureFault {
    CaptureFault {
        offset,
        problem: CaptureProblem::Truncated,
    }
}

fn u32_at(bytes: &[u8], at: usize, order: ByteOrder) -> Option<u32> {
    let bytes = *bytes.get(at..)?.first_chunk()?;
    Some(match order {
        ByteOrder::Little => u32::from_le_bytes(bytes),
        ByteOrder::Big => u32::from_be_bytes(bytes),
    })
}

/// A header of 24 bytes, then packets with headers of 16 bytes.
fn pcap<'c>(
    bytes: &'c [u8],
    order: ByteOrder,
    position: &mut Position,
    sink: &mut impl FnMut(Found<'c>),
) -> Result<(), CaptureFault> {
    // The upper bits describe checksums behind packets.
    let link = u32_at(bytes, 20, order).ok_or(truncated(0))? as u16;
    position.at = position.at.max(24);
    while position.at < bytes.len() {
        let at = position.at;
        let length = u32_at(bytes, at + 8, order).ok_or(truncated(at))?;
        let begin = at + 16;
        let length = usize::try_from(length).map_err(|_| truncated(at))?;
        let end = begin.checked_add(length).ok_or(truncated(at))?;
        let packet = bytes.get(begin..end).ok_or(truncated(at))?;
        sink(Ok(Packet {
            offset: begin,
            link,
            bytes: packet,
            begin: at,
            end,
        }));
        position.at = end;
    }
    Ok(())
}

/// Types of blocks.
mod block {
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const OLD_PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const PACKET: u32 = 6;
}

/// Blocks with their type and length; a section begins with the order of its numbers, and has
/// interfaces, which packets name by their positions.
fn pcapng<'c>(
    bytes: &'c [u8],
    position: &mut Position,
    sink: &mut impl FnMut(Found<'c>),
) -> Result<(), CaptureFault> {
    let Position {
        at: next,
        order,
        links,
    } = position;
    while *next < bytes.len() {
        let (at, mut of_block) = (*next, *order);
        let kind = u32_at(bytes, at, of_block).ok_or(truncated(at))?;
        if kind == block::SECTION {
            of_block = match u32_at(bytes, at + 8, ByteOrder::Little).ok_or(truncated(at))? {
                0x1a2b_3c4d => ByteOrder::Little,
                _ => ByteOrder::Big,
            };
        }
        let length = u32_at(bytes, at + 4, of_block).ok_or(truncated(at))?;
        if length < 12 || length % 4 != 0 {
            let problem = CaptureProblem::BlockLength(length);
            return Err(CaptureFault {
                offset: at,
                problem,
            });
        }
        let whole = usize::try_from(length).map_err(|_| truncated(at))?;
        let end = at.checked_add(whole).ok_or(truncated(at))?;
        // Type and length come before what a block holds, and the length again behind it.
        let body = bytes.get(at + 8..end - 4).ok_or(truncated(at))?;
        *order = of_block;
        if kind == block::SECTION {
            links.clear();
        }
        match packet(kind, body, of_block, links) {
            None => {}
            Some(Ok((link, range))) => sink(match body.get(range.clone()) {
                Some(bytes) => Ok(Packet {
                    offset: at + 8 + range.start,
                    link,
                    bytes,
                    begin: at,
                    end,
                }),
                None => Err(truncated(at)),
            }),
            Some(Err(problem)) => sink(Err(CaptureFault {
                offset: at,
                problem,
            })),
        }
        *next = end;
    }
    Ok(())
}

/// The link and place of the packet in a block that has one. An interface is added to the links.
fn packet(
    kind: u32,
    body: &[u8],
    order: ByteOrder,
    links: &mut Vec<u16>,
) -> Option<Result<(u16, std::ops::Range<usize>), CaptureProblem>> {
    let number = |at| u32_at(body, at, order);
    let half = |at: usize| {
        let bytes = *body.get(at..)?.first_chunk()?;
        Some(match order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    };
    let short = Some(Err(CaptureProblem::Truncated));
    let (interface, length, begin) = match kind {
        block::INTERFACE => {
            let Some(link) = half(0) else {
                return short;
            };
            links.push(link);
            return None;
        }
        block::PACKET => (number(0), number(12), 20),
        block::OLD_PACKET => (half(0).map(u32::from), number(12), 20),
        // Cut at the most that is kept of a packet, and filled up to a multiple of 4.
        block::SIMPLE_PACKET => {
            let kept = body.len().saturating_sub(4) as u32;
            (Some(0), number(0).map(|length| length.min(kept)), 4)
        }
        _ => return None,
    };
    let (Some(interface), Some(length)) = (interface, length) else {
        return short;
    };
    let link = usize::try_from(interface).ok();
    Some(match link.and_then(|position| links.get(position)) {
        Some(link) => Ok((*link, begin..begin.saturating_add(length as usize))),
        None => Err(CaptureProblem::Interface(interface)),
    })
}
