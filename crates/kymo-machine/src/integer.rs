//! Integers of 1, 2, 4 or 8 bytes in either byte order, anywhere in some bytes.

use crate::ByteOrder;

/// The size of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// 1 byte.
    W8,
    /// 2 bytes.
    W16,
    /// 4 bytes.
    W32,
    /// 8 bytes.
    W64,
}

impl Width {
    /// The number of bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::W8 => 1,
            Self::W16 => 2,
            Self::W32 => 4,
            Self::W64 => 8,
        }
    }

    /// The number of bits.
    #[inline]
    pub const fn bits(self) -> u32 {
        8 * self.bytes() as u32
    }
}

/// The unsigned integer that begins at byte `offset`; `None` where it goes beyond the end.
#[inline]
pub fn read_uint(data: &[u8], offset: usize, width: Width, order: ByteOrder) -> Option<u64> {
    let rest = data.get(offset..)?;
    Some(match (width, order) {
        (Width::W8, _) => u64::from(*rest.first()?),
        (Width::W16, ByteOrder::Little) => u16::from_le_bytes(*rest.first_chunk()?).into(),
        (Width::W16, ByteOrder::Big) => u16::from_be_bytes(*rest.first_chunk()?).into(),
        (Width::W32, ByteOrder::Little) => u32::from_le_bytes(*rest.first_chunk()?).into(),
        (Width::W32, ByteOrder::Big) => u32::from_be_bytes(*rest.first_chunk()?).into(),
        (Width::W64, ByteOrder::Little) => u64::from_le_bytes(*rest.first_chunk()?),
        (Width::W64, ByteOrder::Big) => u64::from_be_bytes(*rest.first_chunk()?),
    })
}

/// The signed integer (two's complement) that begins at byte `offset`; `None` where it goes
/// beyond the end.
#[inline]
pub fn read_sint(data: &[u8], offset: usize, width: Width, order: ByteOrder) -> Option<i64> {
    let value = read_uint(data, offset, width, order)?;
    Some(crate::bits::sign_extend(value, width.bits()))
}

/// Writes the low bits of `value` to byte `offset` and those after it. A signed integer is
/// written as its two's complement: `value as u64`.
///
/// `None`, and nothing is written, where it goes beyond the end. [`fits_uint`] and
/// [`fits_sint`] return whether bits are lost.
#[inline]
pub fn write(
    data: &mut [u8],
    offset: usize,
    width: Width,
    order: ByteOrder,
    value: u64,
) -> Option<()> {
    let size = width.bytes();
    let target = data.get_mut(offset..)?.get_mut(..size)?;
    match order {
        ByteOrder::Little => target.copy_from_slice(&value.to_le_bytes()[..size]),
        ByteOrder::Big => target.copy_from_slice(&value.to_be_bytes()[8 - size..]),
    }
    Some(())
}

/// Whether an unsigned integer of this width can hold the value.
#[inline]
pub const fn fits_uint(value: u64, width: Width) -> bool {
    value <= u64::MAX >> (64 - width.bits())
}

/// Whether a signed integer of this width can hold the value.
#[inline]
pub const fn fits_sint(value: i64, width: Width) -> bool {
    crate::bits::sign_extend(value as u64, width.bits()) == value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ByteOrder::{Big, Little};

    const WIDTHS: [Width; 4] = [Width::W8, Width::W16, Width::W32, Width::W64];

    #[test]
    fn both_orders() {
        let data = [0xff, 0x81, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08];
        assert_eq!(read_uint(&data, 1, Width::W16, Little), Some(0x0281));
        assert_eq!(read_uint(&data, 1, Width::W16, Big), Some(0x8102));
        assert_eq!(read_sint(&data, 1, Width::W16, Big), Some(-0x7efe));
        assert_eq!(read_sint(&data, 0, Width::W8, Big), Some(-1));
        assert_eq!(read_uint(&data, 1, Width::W32, Big), Some(0x8102_0304));
        assert_eq!(
            read_uint(&data, 1, Width::W64, Little),
            Some(0x0807_0605_0403_0281)
        );
    }

    #[test]
    fn beyond_the_end_is_nothing() {
        let mut data = [0xee; 8];
        for width in WIDTHS {
            for order in [Little, Big] {
                let last = 8 - width.bytes();
                assert!(read_uint(&data, last, width, order).is_some());
                for offset in [last + 1, 8, 9, usize::MAX] {
                    assert_eq!(read_uint(&data, offset, width, order), None);
                    assert_eq!(read_sint(&data, offset, width, order), None);
                    assert_eq!(write(&mut data, offset, width, order, 0), None);
                }
            }
        }
        assert_eq!(data, [0xee; 8]);
    }

    #[test]
    fn what_fits() {
        assert!(fits_uint(255, Width::W8) && !fits_uint(256, Width::W8));
        assert!(fits_sint(-128, Width::W8) && !fits_sint(128, Width::W8));
        assert!(fits_uint(u64::MAX, Width::W64) && fits_sint(i64::MIN, Width::W64));
        assert!(!fits_sint(1 << 31, Width::W32) && fits_uint(1 << 31, Width::W32));
    }

    proptest! {
        #[test]
        fn bit_fields_agree(
            before: [u8; 12],
            offset in 0..5usize,
            width in prop::sample::select(&WIDTHS),
            order in prop::sample::select(&[Little, Big]),
            value: u64,
        ) {
            let (mut ours, mut fields) = (before, before);
            write(&mut ours, offset, width, order, value).unwrap();
            let bit = 8 * offset as u64;
            crate::bits::write_uint(&mut fields, bit, width.bits(), order, value).unwrap();
            prop_assert_eq!(ours, fields);
            prop_assert_eq!(
                read_uint(&ours, offset, width, order),
                crate::bits::read_uint(&ours, bit, width.bits(), order)
            );
            prop_assert_eq!(
                read_sint(&ours, offset, width, order),
                crate::bits::read_sint(&ours, bit, width.bits(), order)
            );
        }
    }
}
