//! Writing bit by bit, as section 4.1.5 says it: slow, and plain to see right.

use crate::Endian;

/// Bytes that grow bit by bit.
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    position: u64,
    /// What padding is made of.
    filler: u8,
    /// Who wrote the bits of the byte that is not full yet.
    last: Option<Endian>,
}

impl BitWriter {
    pub(crate) fn new(filler: u8) -> Self {
        Self {
            bytes: Vec::new(),
            position: 0,
            filler,
            last: None,
        }
    }

    /// Bits written so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Everything written, its last byte filled up.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.align(8);
        self.bytes
    }

    /// Pads to the next multiple of `alignment` bits.
    pub(crate) fn align(&mut self, alignment: u32) {
        while !self.position.is_multiple_of(u64::from(alignment)) {
            let bit = self.position % 8;
            if bit == 0 {
                self.bytes.push(self.filler);
            }
            // The bits that are left in a begun byte already hold the filler.
            self.position += 1;
        }
    }

    /// Writes the low `size` bits of `value`.
    ///
    /// # Panics
    ///
    /// If the byte order changes inside a byte: no trace can say that.
    pub(crate) fn write(&mut self, value: u64, size: u32, order: Endian) {
        if !self.position.is_multiple_of(8) {
            assert_eq!(
                self.last,
                Some(order),
                "the byte order changes inside a byte"
            );
        }
        self.last = Some(order);
        let start = self.position;
        self.position += u64::from(size);
        let needed = usize::try_from(self.position.div_ceil(8)).expect("a packet fits in memory");
        self.bytes.resize(needed, self.filler);
        self.put(start, value, size, order);
    }

    /// Overwrites `size` bits at bit `start`, which have been written before.
    pub(crate) fn put(&mut self, start: u64, value: u64, size: u32, order: Endian) {
        for i in 0..size {
            let place = start + u64::from(i);
            let byte = usize::try_from(place / 8).expect("a packet fits in memory");
            let in_byte = u32::try_from(place % 8).expect("below 8");
            // Little endian fills bytes from their low bits with the low bits of the value first,
            // big endian from their high bits with the high bits first.
            let (bit, shift) = match order {
                Endian::Little => (value >> i & 1, in_byte),
                Endian::Big => (value >> (size - 1 - i) & 1, 7 - in_byte),
            };
            self.bytes[byte] &= !(1 << shift);
            self.bytes[byte] |= u8::from(bit == 1) << shift;
        }
    }

    /// Writes whole bytes at a byte boundary.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write(u64::from(byte), 8, Endian::Little);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(order: Endian) -> Vec<u8> {
        let mut bits = BitWriter::new(0);
        bits.write(0xE, 4, order);
        bits.write(0xA1B2_C3D4, 32, order);
        bits.write(0xF, 4, order);
        bits.finish()
    }

    #[test]
    fn fields_across_bytes() {
        assert_eq!(example(Endian::Big), [0xEA, 0x1B, 0x2C, 0x3D, 0x4F]);
        assert_eq!(example(Endian::Little), [0x4E, 0x3D, 0x2C, 0x1B, 0xFA]);
    }

    #[test]
    fn padding_holds_the_filler() {
        let mut bits = BitWriter::new(0xFF);
        bits.write(0, 3, Endian::Little);
        bits.align(16);
        bits.write(0, 1, Endian::Big);
        assert_eq!(bits.finish(), [0xF8, 0xFF, 0x7F]);
    }

    #[test]
    #[should_panic(expected = "inside a byte")]
    fn order_may_not_change_inside_a_byte() {
        let mut bits = BitWriter::new(0);
        bits.write(1, 3, Endian::Little);
        bits.write(1, 3, Endian::Big);
    }

    #[test]
    fn order_may_change_at_a_byte() {
        let mut bits = BitWriter::new(0);
        bits.write(0x1234, 16, Endian::Little);
        bits.write(0x1234, 16, Endian::Big);
        bits.write(0b101, 3, Endian::Big);
        bits.align(8);
        bits.write(0b101, 3, Endian::Little);
        assert_eq!(bits.finish(), [0x34, 0x12, 0x12, 0x34, 0xA0, 0x05]);
    }
}
