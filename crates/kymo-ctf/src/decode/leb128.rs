//! Integers of a variable length (CTF 2): 7 bits in each byte, the lowest first; the highest
//! bit of a byte indicates that another follows.

use kymo_machine::bits;

/// How many bytes an integer may have: those that 64 bits need.
pub(crate) const MOST_BYTES: usize = 10;

/// Why there is no integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The bytes end before it does.
    Truncated,
    /// It has more than 64 bits, or more than [`MOST_BYTES`].
    TooLong,
}

/// The integer (of a signed one: its bits) at the beginning of `bytes`, and how many of them
/// are its own.
#[inline]
pub(crate) fn read(bytes: &[u8], signed: bool) -> Result<(u64, usize), Unreadable> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate() {
        let shift = 7 * index as u32;
        if index + 1 == MOST_BYTES {
            // Only one bit is left; of a signed number the others repeat it.
            let last = match (byte, signed) {
                (0 | 1, false) => u64::from(byte),
                (0, true) => 0,
                (0x7f, true) => 1,
                _ => return Err(Unreadable::TooLong),
            };
            return Ok((value | last << shift, MOST_BYTES));
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            if signed {
                value = bits::sign_extend(value, shift + 7) as u64;
            }
            return Ok((value, index + 1));
        }
    }
    Err(Unreadable::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine bytes with these bits, then `last`.
    fn ten(bits: u8, last: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80 | bits; 9];
        bytes.extend(last);
        bytes
    }

    #[test]
    fn the_limits_of_64_bits_can_be_read() {
        assert_eq!(read(&[0], false), Ok((0, 1)));
        assert_eq!(read(&[0x7f, 9], false), Ok((127, 1)));
        assert_eq!(read(&[0x7f], true), Ok((u64::MAX, 1)));
        assert_eq!(read(&[0xe5, 0x8e, 0x26], false), Ok((624_485, 3)));
        assert_eq!(read(&ten(0x7f, &[1]), false), Ok((u64::MAX, 10)));
        assert_eq!(read(&ten(0x7f, &[0]), true), Ok((i64::MAX as u64, 10)));
        assert_eq!(read(&ten(0, &[0x7f]), true), Ok((1 << 63, 10)));
        assert_eq!(read(&ten(0, &[0]), false), Ok((0, 10)));
    }

    #[test]
    fn what_is_longer_cannot() {
        for last in [[2], [0x7f], [0x81]] {
            assert_eq!(read(&ten(0, &last), false), Err(Unreadable::TooLong));
        }
        for last in [[1], [0x3f], [0x40], [0x80]] {
            assert_eq!(read(&ten(0, &last), true), Err(Unreadable::TooLong));
        }
        assert_eq!(read(&ten(0, &[]), true), Err(Unreadable::Truncated));
        assert_eq!(read(&[], false), Err(Unreadable::Truncated));
    }
}
