//! Bit fields of 1 to 64 bits at any bit offset (CTF RFC v1.1 §4.1.5; CTF 1.8.3 §4.1.5).
//!
//! Bits are counted from the beginning of the bytes, in the order in which a field
//! takes them:
//!
//! * [`ByteOrder::Little`]: bit `i` is bit `i % 8` of byte `i / 8`, where bit 0 of a byte
//!   is its least significant one; the first bit of a field is its least significant one.
//! * [`ByteOrder::Big`]: bit `i` is bit `7 - i % 8` of byte `i / 8`; the first bit of a
//!   field is its most significant one.
//!
//! ```
//! use kymo_machine::ByteOrder::{Big, Little};
//! use kymo_machine::bits::{read_uint, write_uint};
//!
//! let mut bytes = [0; 5];
//! for (bit, size, value) in [(0, 4, 0xE), (4, 32, 0xA1B2_C3D4), (36, 4, 0xF)] {
//!     write_uint(&mut bytes, bit, size, Big, value).unwrap();
//! }
//! assert_eq!(bytes, [0xEA, 0x1B, 0x2C, 0x3D, 0x4F]);
//! assert_eq!(read_uint(&bytes, 4, 32, Big), Some(0xA1B2_C3D4));
//! assert_eq!(read_uint(&bytes, 4, 8, Little), Some(0xBE));
//! ```

use crate::ByteOrder;

/// Where the bytes of a field begin, and the number of bits before it in its first byte;
/// `None` unless `size` is 1 to 64 and the field lies within `len` bytes.
#[inline(always)]
fn locate(len: usize, bit: u64, size: u32) -> Option<(usize, u32)> {
    if size.wrapping_sub(1) >= 64 {
        return None;
    }
    let end = bit.checked_add(u64::from(size))?.div_ceil(8);
    if end > len as u64 {
        return None;
    }
    // Both fit: the field ends within `len`, and the remainder is below 8.
    Some(((bit / 8) as usize, (bit % 8) as u32))
}

/// The unsigned integer in the `size` bits (1 to 64) from bit `bit`.
///
/// `None` if `size` is out of range or the field goes beyond the end of `data`.
#[inline]
pub fn read_uint(data: &[u8], bit: u64, size: u32, order: ByteOrder) -> Option<u64> {
    let (byte, before) = locate(data.len(), bit, size)?;
    let rest = &data[byte..];
    let (word, ninth) = match rest.first_chunk::<8>() {
        Some(word) => (*word, rest.get(8).copied().unwrap_or(0)),
        // Near the end of the data; a field within fewer than 8 bytes needs no ninth one.
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            (word, 0)
        }
    };
    let unused = 64 - size;
    Some(match order {
        ByteOrder::Little => {
            let mut value = u64::from_le_bytes(word) >> before;
            if before > unused {
                value |= u64::from(ninth) << (64 - before);
            }
            value & (u64::MAX >> unused)
        }
        ByteOrder::Big => {
            let mut value = u64::from_be_bytes(word) << before;
            if before > unused {
                value |= u64::from(ninth) >> (8 - before);
            }
            value >> unused
        }
    })
}

/// The signed integer (two's complement) in the `size` bits (1 to 64) from bit `bit`.
///
/// `None` if `size` is out of range or the field goes beyond the end of `data`.
#[inline]
pub fn read_sint(data: &[u8], bit: u64, size: u32, order: ByteOrder) -> Option<i64> {
    read_uint(data, bit, size, order).map(|value| sign_extend(value, size))
}

/// Puts the low `size` bits (1 to 64) of `value` in the bits from bit `bit`, and leaves
/// all other bits as they are. A signed integer is written as its two's complement:
/// `value as u64`.
///
/// `None`, and nothing is written, if `size` is out of range or the field goes beyond
/// the end of `data`.
#[inline]
pub fn write_uint(
    data: &mut [u8],
    bit: u64,
    size: u32,
    order: ByteOrder,
    value: u64,
) -> Option<()> {
    let (byte, before) = locate(data.len(), bit, size)?;
    // A field touches at most 9 bytes; the window is wide enough for any of them.
    let count = (before + size).div_ceil(8) as usize;
    let bytes = &mut data[byte..byte + count];
    let mut window = [0; 16];
    window[..count].copy_from_slice(bytes);
    let mask = u128::from(u64::MAX >> (64 - size));
    let put = |old: u128, shift: u32| old & !(mask << shift) | (u128::from(value) & mask) << shift;
    window = match order {
        ByteOrder::Little => put(u128::from_le_bytes(window), before).to_le_bytes(),
        ByteOrder::Big => put(u128::from_be_bytes(window), 128 - size - before).to_be_bytes(),
    };
    bytes.copy_from_slice(&window[..count]);
    Some(())
}

/// The signed integer whose two's complement in `size` bits is the low bits of `value`.
///
/// Sizes above 64 count as 64; of 0 bits the value is 0.
#[inline]
pub const fn sign_extend(value: u64, size: u32) -> i64 {
    match size {
        0 => 0,
        1..=63 => (value << (64 - size)) as i64 >> (64 - size),
        _ => value as i64,
    }
}

/// The low `size` bits of `value` in reverse order; the others are dropped.
///
/// Sizes above 64 count as 64; of 0 bits the value is 0.
#[inline]
pub const fn reverse_bits(value: u64, size: u32) -> u64 {
    match size {
        0 => 0,
        1..=63 => value.reverse_bits() >> (64 - size),
        _ => value.reverse_bits(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ByteOrder::{Big, Little};

    /// What the module's documentation says, one bit after the other.
    fn read_bit_by_bit(data: &[u8], bit: u64, size: u32, order: ByteOrder) -> Option<u64> {
        if !(1..=64).contains(&size) {
            return None;
        }
        let mut value = 0;
        for i in 0..size {
            let at = bit.checked_add(u64::from(i))?;
            let byte = *data.get(usize::try_from(at / 8).ok()?)?;
            match order {
                Little => value |= u64::from(byte >> (at % 8) & 1) << i,
                Big => value = value << 1 | u64::from(byte >> (7 - at % 8) & 1),
            }
        }
        Some(value)
    }

    #[test]
    fn three_fields_across_bytes() {
        for (order, expected) in [
            (Big, [0xEA, 0x1B, 0x2C, 0x3D, 0x4F, 0]),
            (Little, [0x4E, 0x3D, 0x2C, 0x1B, 0xFA, 0]),
        ] {
            let fields = [(0, 4, 0xE), (4, 32, 0xA1B2_C3D4), (36, 4, 0xF)];
            let mut bytes = [0; 6];
            for (bit, size, value) in fields {
                write_uint(&mut bytes, bit, size, order, value).unwrap();
            }
            assert_eq!(bytes, expected);
            for (bit, size, value) in fields {
                assert_eq!(read_uint(&bytes, bit, size, order), Some(value));
            }
        }
    }

    #[test]
    fn what_does_not_lie_in_the_data_is_nothing() {
        let mut data = [0xFF; 9];
        for order in [Little, Big] {
            assert_eq!(read_uint(&data, 8, 64, order), Some(u64::MAX));
            assert_eq!(read_uint(&data, 9, 64, order), None);
            assert_eq!(read_uint(&data, 72, 1, order), None);
            assert_eq!(read_uint(&data, u64::MAX, 64, order), None);
            assert_eq!(read_uint(&data, u64::MAX - 7, 8, order), None);
            assert_eq!(read_uint(&data, 0, 0, order), None);
            assert_eq!(read_uint(&data, 0, 65, order), None);
            assert_eq!(read_uint(&[], 0, 1, order), None);
            assert_eq!(write_uint(&mut data, 9, 64, order, 0), None);
            assert_eq!(write_uint(&mut data, u64::MAX, 1, order, 0), None);
            assert_eq!(write_uint(&mut data, 0, 65, order, 0), None);
        }
        assert_eq!(data, [0xFF; 9]);
    }

    #[test]
    fn signs_and_reversals() {
        assert_eq!(sign_extend(0b10_1111, 5), 15);
        assert_eq!(sign_extend(0b1_0000, 5), -16);
        assert_eq!(sign_extend(1, 1), -1);
        assert_eq!(sign_extend(u64::MAX, 64), -1);
        assert_eq!(sign_extend(u64::MAX, 0), 0);
        assert_eq!(reverse_bits(0b0011_0001, 6), 0b10_0011);
        assert_eq!(reverse_bits(1, 64), 1 << 63);
        assert_eq!(reverse_bits(1, 0), 0);
    }

    fn orders() -> impl Strategy<Value = ByteOrder> {
        prop_oneof![Just(Little), Just(Big)]
    }

    proptest! {
        #[test]
        fn reads_as_bit_by_bit(
            data in prop::collection::vec(any::<u8>(), 0..24),
            bit in prop_oneof![4 => 0..200u64, 1 => any::<u64>()],
            size in 0..70u32,
            order in orders(),
        ) {
            prop_assert_eq!(
                read_uint(&data, bit, size, order),
                read_bit_by_bit(&data, bit, size, order)
            );
        }

        #[test]
        fn writes_what_it_reads_and_nothing_else(
            before in prop::collection::vec(any::<u8>(), 1..24),
            bit in 0..184u64,
            size in 1..=64u32,
            order in orders(),
            value in any::<u64>(),
        ) {
            let mut after = before.clone();
            let fits = bit + u64::from(size) <= before.len() as u64 * 8;
            let written = write_uint(&mut after, bit, size, order, value);
            prop_assert_eq!(written.is_some(), fits);
            for at in 0..before.len() as u64 * 8 {
                if !fits || at < bit || at >= bit + u64::from(size) {
                    prop_assert_eq!(
                        read_bit_by_bit(&after, at, 1, order),
                        read_bit_by_bit(&before, at, 1, order)
                    );
                }
            }
            if fits {
                let kept = value & (u64::MAX >> (64 - size));
                prop_assert_eq!(read_uint(&after, bit, size, order), Some(kept));
                prop_assert_eq!(
                    read_sint(&after, bit, size, order),
                    Some(sign_extend(value, size))
                );
                prop_assert_eq!(reverse_bits(reverse_bits(value, size), size), kept);
            }
        }
    }
}
