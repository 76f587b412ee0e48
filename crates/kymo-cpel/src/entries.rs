//! Events as they lie in a file: 20 bytes each, in CPEL and in Gist.

use kymo_machine::ByteOrder;

/// Bytes of an event.
pub const ENTRY_SIZE: usize = 20;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in ticks of the section's clock.
    pub time: u64,
    /// On which track.
    pub track: u32,
    /// What: the code of a definition.
    pub code: u32,
    /// A number, or the offset of a string in the section's string table.
    pub datum: u32,
}

impl Entry {
    /// Reads an event. The high half of the time comes first in both byte orders.
    #[inline(always)]
    pub fn read(bytes: &[u8; ENTRY_SIZE], order: ByteOrder) -> Self {
        // The order is asked for once, not for each number.
        let [t0, t1, t2, t3, t4, t5, t6, t7, ..] = *bytes;
        let time = [t0, t1, t2, t3, t4, t5, t6, t7];
        match order {
            ByteOrder::Big => Self::from_words(u64::from_be_bytes(time), bytes, u32::from_be_bytes),
            ByteOrder::Little => {
                let time = u64::from_le_bytes(time).rotate_left(32);
                Self::from_words(time, bytes, u32::from_le_bytes)
            }
        }
    }

    #[inline(always)]
    fn from_words(time: u64, bytes: &[u8; ENTRY_SIZE], number: impl Fn([u8; 4]) -> u32) -> Self {
        let word = |at: usize| number([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            time,
            track: word(8),
            code: word(12),
            datum: word(16),
        }
    }

    /// The event as bytes.
    pub fn to_bytes(self, order: ByteOrder) -> [u8; ENTRY_SIZE] {
        let words = [
            (self.time >> 32) as u32,
            self.time as u32,
            self.track,
            self.code,
            self.datum,
        ];
        let mut bytes = [0; ENTRY_SIZE];
        for (word, to) in words.into_iter().zip(bytes.chunks_exact_mut(4)) {
            to.copy_from_slice(&crate::u32_bytes(word, order));
        }
        bytes
    }
}

/// The events of a section.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Entries<'a> {
    /// The events in some bytes; what is left of an event at the end is none.
    pub fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// Their bytes, and what is left of an event at the end.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / ENTRY_SIZE
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// At most `count` of them from a position on.
    pub fn slice(&self, first: usize, count: usize) -> Self {
        let end = self.len().min(first.saturating_add(count));
        let bytes = self
            .bytes
            .get(first.saturating_mul(ENTRY_SIZE)..end * ENTRY_SIZE);
        Self::new(bytes.unwrap_or_default(), self.order)
    }

    /// An event by its position.
    #[inline(always)]
    pub fn get(&self, position: usize) -> Option<Entry> {
        let begin = position.checked_mul(ENTRY_SIZE)?;
        let bytes = self.bytes.get(begin..)?.first_chunk()?;
        Some(Entry::read(bytes, self.order))
    }

    /// The codes of all entries.
    #[inline]
    pub fn codes(&self) -> impl Iterator<Item = u32> + use<'a> {
        let order = self.order;
        let (entries, _) = self.bytes.as_chunks::<ENTRY_SIZE>();
        entries.iter().map(move |bytes| {
            let code = [bytes[12], bytes[13], bytes[14], bytes[15]];
            match order {
                ByteOrder::Big => u32::from_be_bytes(code),
                ByteOrder::Little => u32::from_le_bytes(code),
            }
        })
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + use<'a> {
        let order = self.order;
        let (entries, _) = self.bytes.as_chunks();
        entries.iter().map(move |bytes| Entry::read(bytes, order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_half_of_the_time_comes_first_in_both_orders() {
        let entry = Entry {
            time: 0x0102_0304_0506_0708,
            track: 9,
            code: 10,
            datum: 11,
        };
        let big = entry.to_bytes(ByteOrder::Big);
        assert_eq!(big[..12], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9]);
        let little = entry.to_bytes(ByteOrder::Little);
        assert_eq!(little[..12], [4, 3, 2, 1, 8, 7, 6, 5, 9, 0, 0, 0]);
        for (bytes, order) in [(big, ByteOrder::Big), (little, ByteOrder::Little)] {
            let bytes = [&bytes[..], &bytes[..19]].concat();
            let entries = Entries::new(&bytes, order);
            assert_eq!(entries.len(), 1);
            assert_eq!(entries.get(0), Some(entry));
            assert_eq!(entries.get(1), None);
            assert_eq!(entries.iter().collect::<Vec<_>>(), [entry]);
            assert_eq!(entries.codes().collect::<Vec<_>>(), [10]);
            assert_eq!(entries.slice(0, 9).get(0), Some(entry));
            assert!(entries.slice(1, 1).is_empty() && entries.slice(9, 1).is_empty());
        }
    }
}
