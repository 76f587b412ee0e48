//! Integers of more than 64 bits.

use std::fmt;

/// An integer of more than 64 bits, borrowed from where it was decoded.
///
/// It is shown in hexadecimal: a negative one as its two's complement, in as many digits as its
/// bits need.
///
/// ```
/// use kymo_model::Wide;
///
/// let mut bytes = [0; 9];
/// bytes[7] = 0x1F;
/// assert_eq!(Wide::new(&bytes, 72, false).to_string(), "0x1F00");
/// assert_eq!(Wide::new(&[0xFF; 9], 65, true).to_string(), "0xFFFFFFFFFFFFFFFFF");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wide<'a> {
    bytes: &'a [u8],
    bits: u32,
    signed: bool,
}

impl<'a> Wide<'a> {
    /// The most bits that an integer may have.
    pub const MAX_BITS: u32 = 4096;

    /// An integer of `bits` bits. `bytes` are exactly as many as hold them, the most significant one
    /// first; the bits of the first byte that are beyond the size repeat the sign, or are zero.
    ///
    /// # Panics
    ///
    /// If the number of bytes is not the one that the bits need.
    pub fn new(bytes: &'a [u8], bits: u32, signed: bool) -> Self {
        assert_eq!(
            bytes.len(),
            bits.div_ceil(8) as usize,
            "bytes of an integer of {bits} bits"
        );
        Self {
            bytes,
            bits,
            signed,
        }
    }

    /// Its bytes, the most significant one first, with its sign repeated up to a whole byte.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Its size in bits.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Whether it is of a signed type.
    pub fn is_signed(self) -> bool {
        self.signed
    }

    /// The digits it is shown with, without `0x`: at least one.
    pub fn digits(self) -> impl Iterator<Item = u8> + Clone {
        let halves = self.bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
        // A size of 1 to 4 bits beyond whole bytes takes half a byte.
        let unused = 2 * self.bytes.len() - self.bits.div_ceil(4) as usize;
        let digits = halves.skip(unused);
        let zeros = digits.clone().take_while(|digit| *digit == 0).count();
        let all = self.bits.div_ceil(4) as usize;
        digits
            .skip(zeros.min(all.saturating_sub(1)))
            .map(|digit| b"0123456789ABCDEF"[usize::from(digit)])
    }
}

impl fmt::Display for Wide<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.digits()
            .try_for_each(|digit| fmt::Write::write_char(f, digit.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_are_not_shown() {
        assert_eq!(Wide::new(&[0; 9], 70, true).to_string(), "0x0");
        let mut bytes = [0; 16];
        bytes[15] = 0xA5;
        assert_eq!(Wide::new(&bytes, 128, false).to_string(), "0xA5");
        bytes[0] = 0x0F;
        let digits = format!("0xF{}A5", "0".repeat(28));
        assert_eq!(Wide::new(&bytes, 124, false).to_string(), digits);
    }

    #[test]
    fn negative_ones_have_the_digits_of_their_bits() {
        let bytes = [0xFF; 9];
        for (bits, digits) in [(65, 17), (68, 17), (69, 18), (72, 18)] {
            let text = Wide::new(&bytes, bits, true).to_string();
            assert_eq!(text, format!("0x{}", "F".repeat(digits)), "{bits}");
        }
    }
}
