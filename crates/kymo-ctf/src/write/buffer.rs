//! The bytes of a packet that is being written, bit by bit.

use kymo_machine::{ByteOrder, bits};

/// The bytes of a packet, and where the next bit goes. All bits from there on are zero.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Where the next bit goes.
    pub pos: u64,
    /// Byte order of the bit field before, if there is one: it counts while `pos` is within a
    /// byte.
    pub order: Option<ByteOrder>,
}

/// A place to come back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pos: u64,
    order: Option<ByteOrder>,
    /// The byte within which `pos` lies.
    byte: u8,
}

impl Mark {
    /// The position.
    pub(super) fn pos(&self) -> u64 {
        self.pos
    }
}

impl Buffer {
    /// The position after alignment to `1 << align` bits.
    #[inline]
    pub(super) fn aligned(&self, align: u8) -> u64 {
        let mask = (1u64 << align) - 1;
        (self.pos + mask) & !mask
    }

    /// Makes room up to a bit. What is new is zero.
    #[inline]
    pub(super) fn reserve(&mut self, end_bit: u64) {
        let bytes = end_bit.div_ceil(8) as usize;
        if bytes > self.bytes.len() {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.bytes
            .resize(bytes.next_multiple_of(4096).max(self.bytes.len() * 2), 0);
    }

    /// Puts the low bits of a value at a bit, for which there is room.
    #[inline]
    pub(super) fn put(&mut self, at: u64, size: u32, order: ByteOrder, value: u64) {
        let byte = (at / 8) as usize;
        if at.is_multiple_of(8) && size.is_multiple_of(8) {
            let count = (size / 8) as usize;
            let to = &mut self.bytes[byte..byte + count];
            match order {
                ByteOrder::Little => to.copy_from_slice(&value.to_le_bytes()[..count]),
                ByteOrder::Big => to.copy_from_slice(&value.to_be_bytes()[8 - count..]),
            }
        } else {
            let done = bits::write_uint(&mut self.bytes, at, size, order, value);
            debug_assert!(done.is_some(), "there is room");
        }
    }

    /// Puts bytes at a bit that begins a byte.
    #[inline]
    pub(super) fn put_bytes(&mut self, at: u64, bytes: &[u8]) {
        let begin = (at / 8) as usize;
        self.bytes[begin..begin + bytes.len()].copy_from_slice(bytes);
    }

    /// Where it is now.
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark {
            pos: self.pos,
            order: self.order,
            byte: self
                .bytes
                .get((self.pos / 8) as usize)
                .copied()
                .unwrap_or(0),
        }
    }

    /// Goes on at a place, after what lies before it was changed.
    pub(super) fn resume(&mut self, mark: Mark) {
        self.pos = mark.pos;
        self.order = mark.order;
    }

    /// Takes back what was put since the mark was made.
    pub(super) fn rewind(&mut self, mark: Mark) {
        let begin = (mark.pos / 8) as usize;
        let end = (self.pos.div_ceil(8) as usize).min(self.bytes.len());
        if let Some(bytes) = self.bytes.get_mut(begin..end) {
            bytes.fill(0);
        }
        if let Some(byte) = self.bytes.get_mut(begin) {
            *byte = mark.byte;
        }
        self.pos = mark.pos;
        self.order = mark.order;
    }

    /// Copies bits of other data, in which they lie one behind the other. Where source and
    /// target differ within a byte, all bits are of fields of one byte order. `None`, with
    /// nothing done, where the data do not have these bits.
    #[must_use]
    pub(super) fn copy(
        &mut self,
        data: &[u8],
        mut from: u64,
        end: u64,
        order: ByteOrder,
    ) -> Option<()> {
        if from > end || end.div_ceil(8) > data.len() as u64 {
            return None;
        }
        let mut to = self.pos;
        self.reserve(to + (end - from));
        if from % 8 == to % 8 {
            // The rest of a byte that has begun, whole bytes, the beginning of the last one.
            let head = (to.next_multiple_of(8) - to).min(end - from);
            self.copy_bits(data, from, to, head, order);
            (from, to) = (from + head, to + head);
            let bytes = ((end - from) / 8) as usize;
            let begin = (from / 8) as usize;
            self.put_bytes(to, data.get(begin..begin + bytes)?);
            (from, to) = (from + bytes as u64 * 8, to + bytes as u64 * 8);
        }
        while from < end {
            let count = (end - from).min(64);
            self.copy_bits(data, from, to, count, order);
            (from, to) = (from + count, to + count);
        }
        self.pos = to;
        Some(())
    }

    /// Copies up to 64 bits.
    fn copy_bits(&mut self, data: &[u8], from: u64, to: u64, count: u64, order: ByteOrder) {
        if count > 0
            && let Some(value) = bits::read_uint(data, from, count as u32, order)
        {
            self.put(to, count as u32, order, value);
        }
    }

    /// The bytes up to one.
    pub(super) fn bytes(&self, count: usize) -> &[u8] {
        &self.bytes[..count.min(self.bytes.len())]
    }

    /// Forgets everything, but not the room.
    pub(super) fn clear(&mut self) {
        let used = (self.pos.div_ceil(8) as usize).min(self.bytes.len());
        self.bytes[..used].fill(0);
        self.pos = 0;
        self.order = None;
    }
}
