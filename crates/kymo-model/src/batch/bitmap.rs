//! Bits, packed as in Apache Arrow.

use std::ops::Range;

/// Bits in a row, the first one the least significant bit of the first byte, as in Apache Arrow
/// (columnar format, "Validity bitmaps").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    bytes: Vec<u8>,
    len: usize,
    ones: usize,
}

impl Bitmap {
    /// A bitmap of `len` bits of the same value.
    pub fn repeat(bit: bool, len: usize) -> Self {
        let mut bytes = vec![if bit { 0xff } else { 0 }; len.div_ceil(8)];
        if let Some(last) = bytes.last_mut()
            && !len.is_multiple_of(8)
        {
            *last &= (1 << (len % 8)) - 1;
        }
        let ones = if bit { len } else { 0 };
        Self { bytes, len, ones }
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.len % 8);
        }
        self.len += 1;
        self.ones += usize::from(bit);
    }

    /// The bit at a position; `false` beyond the end.
    #[inline]
    pub fn get(&self, position: usize) -> bool {
        position < self.len && self.bytes[position / 8] >> (position % 8) & 1 == 1
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bits that are 1.
    pub fn ones(&self) -> usize {
        self.ones
    }

    /// Keeps the first bits only.
    pub fn truncate(&mut self, len: usize) {
        for position in (len..self.len).rev() {
            self.ones -= usize::from(self.get(position));
        }
        self.len = self.len.min(len);
        self.bytes.truncate(self.len.div_ceil(8));
        if let Some(last) = self.bytes.last_mut()
            && !self.len.is_multiple_of(8)
        {
            *last &= (1 << (self.len % 8)) - 1;
        }
    }

    /// Appends a range of another one's bits.
    pub fn append(&mut self, other: &Self, range: Range<usize>) {
        for position in range {
            self.push(other.get(position));
        }
    }

    /// The bytes; bits beyond the end are 0.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_that_were_pushed() {
        let bits: Vec<bool> = (0..77).map(|n| n % 3 == 0 || n % 7 == 2).collect();
        let mut map = Bitmap::default();
        bits.iter().for_each(|&bit| map.push(bit));
        for len in (0..=bits.len()).rev() {
            map.truncate(len);
            assert_eq!(map.len(), len);
            assert_eq!(map.ones(), bits[..len].iter().filter(|&&bit| bit).count());
            let mut copy = Bitmap::default();
            copy.append(&map, 0..len);
            assert_eq!(copy, map, "unused bits are 0");
            assert!((0..len).all(|position| map.get(position) == bits[position]));
            assert!(!map.get(len));
        }
        assert_eq!(Bitmap::repeat(true, 11).as_bytes(), [0xff, 0b111]);
        assert_eq!(Bitmap::repeat(true, 11).ones(), 11);
    }
}
