//! Integers of more than 64 bits: 64 of them at a time.

use kymo_machine::{ByteOrder, bits};
use kymo_model::Wide;

use super::op::{BitsOp, Shown, WideOp};

/// Bytes of the largest integer.
pub(crate) const MAX_BYTES: usize = Wide::MAX_BITS as usize / 8;

/// 64 bits of an integer, or fewer at its upper end.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Where they lie, from the integer's first bit.
    pub at: u64,
    pub bits: u32,
    /// How many of the integer's bits are below them.
    pub above: u32,
}

impl WideOp {
    /// What is asked where it begins.
    pub(crate) fn place(&self) -> BitsOp {
        BitsOp {
            field: self.field,
            bits: 0,
            align: self.align,
            order: self.order,
            reversed: self.reversed,
            unit: self.unit,
            shown: Shown::Uint,
        }
    }

    /// Its parts, the least significant one first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let size = u32::from(self.bits);
        let low_first = (self.order == ByteOrder::Little) != self.reversed;
        (0..size).step_by(64).map(move |above| {
            let bits = (size - above).min(64);
            let at = match low_first {
                true => above,
                false => size - above - bits,
            };
            Part {
                at: at.into(),
                bits,
                above,
            }
        })
    }
}

/// Reads the integer at a bit, which is all there, into the end of `room`: its bytes, the most
/// significant one first, with its sign repeated up to a whole byte.
pub(super) fn read<'r>(
    data: &[u8],
    at: u64,
    op: &WideOp,
    room: &'r mut [u8; MAX_BYTES],
) -> &'r [u8] {
    let mut end = MAX_BYTES;
    let size = usize::from(op.bits).div_ceil(8);
    for part in op.parts() {
        let value = bits::read_uint(data, at + part.at, part.bits, op.order).unwrap_or_default();
        let value = match op.reversed {
            true => bits::reverse_bits(value, part.bits),
            false => value,
        };
        let value = match op.signed {
            true => bits::sign_extend(value, part.bits) as u64,
            false => value,
        };
        let count = part.bits.div_ceil(8) as usize;
        room[end - count..end].copy_from_slice(&value.to_be_bytes()[8 - count..]);
        end -= count;
    }
    &room[MAX_BYTES - size..]
}
