//! Walks the events of a packet that may not be there to be read.

use kymo_model::{BlockQuery, Cursor, EventBlock, EventCounts, EventHeaders, EventVisitor, Fault};

use crate::decode::PacketCursor;

/// Walks the events of a packet of a [`Trace`](super::Trace).
#[derive(Debug)]
pub struct ChunkCursor<'a> {
    pub(super) packet: Option<PacketCursor<'a>>,
    /// Why there is no packet, until that was reported.
    pub(super) fault: Option<Fault>,
}

impl ChunkCursor<'_> {
    /// Why the packet cannot be opened, so that it has no event to be read; `None` where it can,
    /// or where that was already reported.
    pub fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Lets the clock of the next event go on from other ticks than those at which the packet says
    /// that it begins, which may be damaged.
    pub fn set_clock(&mut self, ticks: u64) {
        if let Some(packet) = &mut self.packet {
            packet.set_clock(ticks);
        }
    }
}

impl<'a> Cursor for ChunkCursor<'a> {
    type Event<'e>
        = <PacketCursor<'a> as Cursor>::Event<'e>
    where
        Self: 'e;

    #[inline]
    fn next_event(&mut self) -> Result<Option<Self::Event<'_>>, Fault> {
        match &mut self.packet {
            Some(packet) => packet.next_event(),
            None => self.fault.take().map_or(Ok(None), Err),
        }
    }

    fn walk_block<V: EventVisitor>(
        &mut self,
        query: &BlockQuery<'_>,
        most: usize,
        block: &mut EventBlock,
        visitor: &mut V,
    ) -> Result<bool, Fault> {
        match &mut self.packet {
            Some(packet) => packet.walk_block(query, most, block, visitor),
            None => {
                block.begin_walk();
                self.fault.take().map_or(Ok(false), Err)
            }
        }
    }

    fn walk_headers(&mut self, headers: &mut EventHeaders) -> Result<(), Fault> {
        match &mut self.packet {
            Some(packet) => packet.walk_headers(headers),
            None => self.fault.take().map_or(Ok(()), Err),
        }
    }

    fn count_events(&mut self, counts: &mut EventCounts) -> Result<(), Fault> {
        match &mut self.packet {
            Some(packet) => packet.count_events(counts),
            None => self.fault.take().map_or(Ok(()), Err),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.packet.as_ref().map_or(&[], PacketCursor::bytes)
    }
}
