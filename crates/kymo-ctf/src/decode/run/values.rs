//! Values that are not numbers of whole bytes: bit fields, numbers of any size, texts, BLOBs.

use kymo_machine::{ByteOrder, bits};
use kymo_model::{Fault, FaultCode, Visitor, Wide};

use super::Run;
use crate::class::Encoding;
use crate::decode::leb128::{self, Unreadable};
use crate::decode::op::{BitsOp, BytesOp, Count, Shown, WideOp};
use crate::decode::{text, wide};

impl<'r> Run<'r> {
    /// The start of a bit field: aligned, not across a unit, and not in another byte order
    /// than its neighbour in the same byte.
    #[inline]
    fn bit_start(&mut self, op: &BitsOp, bits: u64) -> Result<u64, Fault> {
        let mut at = self.aligned(op.align);
        if op.unit != 0 {
            let unit = 1u64 << (op.unit - 1);
            if at % unit + bits > unit {
                at = (at + unit - 1) & !(unit - 1);
            }
        }
        if at > self.content_bits || bits > self.content_bits - at {
            return Err(self.beyond(self.pos).at(op.field));
        }
        if !at.is_multiple_of(8) && self.order.is_some_and(|order| order != op.order) {
            return Err(Fault::new(FaultCode::ByteOrderChange, at, at % 8).at(op.field));
        }
        self.order = Some(op.order);
        Ok(at)
    }

    /// An integer of more than 64 bits; apart from the others, since it needs room.
    #[inline(never)]
    pub(super) fn wide<V: Visitor>(&mut self, op: &WideOp, v: &mut V) -> Result<(), Fault> {
        let size = u32::from(op.bits);
        let at = self.bit_start(&op.place(), size.into())?;
        let mut room = [0; wide::MAX_BYTES];
        let bytes = wide::read(self.data, at, op, &mut room);
        self.pos = at + u64::from(size);
        let value = Wide::new(bytes, size, op.signed);
        self.value(at, v, |v| v.wide(op.field, value));
        Ok(())
    }

    pub(super) fn bit_field<V: Visitor>(&mut self, op: &BitsOp, v: &mut V) -> Result<(), Fault> {
        let size = u32::from(op.bits);
        let at = self.bit_start(op, size.into())?;
        let Some(mut value) = bits::read_uint(self.data, at, size, op.order) else {
            return Err(self.beyond(at).at(op.field));
        };
        if op.reversed {
            value = value.reverse_bits() >> (64 - size);
        }
        self.pos = at + u64::from(size);
        let field = op.field;
        match op.shown {
            Shown::Uint => {
                self.last = value;
                self.value(at, v, |v| v.uint(field, value));
            }
            Shown::Sint => {
                let value = bits::sign_extend(value, size);
                self.last = value as u64;
                self.value(at, v, |v| v.sint(field, value));
            }
            Shown::Bool => {
                self.last = value;
                self.value(at, v, |v| v.boolean(field, value != 0));
            }
            Shown::Bits => {
                self.last = value;
                self.value(at, v, |v| v.bits(field, value));
            }
            Shown::Count => self.last = value,
            Shown::Float => {
                let value = match size {
                    16 => half_to_f64(value as u16),
                    32 => f64::from(f32::from_bits(value as u32)),
                    _ => f64::from_bits(value),
                };
                self.value(at, v, |v| v.float(field, value));
            }
        }
        Ok(())
    }

    pub(super) fn float128<V: Visitor>(&mut self, op: &BitsOp, v: &mut V) -> Result<(), Fault> {
        let at = self.bit_start(op, 128)?;
        let half = |at| bits::read_uint(self.data, at, 64, op.order);
        let (Some(first), Some(second)) = (half(at), half(at + 64)) else {
            return Err(self.beyond(at).at(op.field));
        };
        let mut value = match op.order {
            ByteOrder::Little => u128::from(second) << 64 | u128::from(first),
            ByteOrder::Big => u128::from(first) << 64 | u128::from(second),
        };
        if op.reversed {
            value = value.reverse_bits();
        }
        self.pos = at + 128;
        self.value(at, v, |v| v.float128(op.field, value));
        Ok(())
    }

    /// Reads LEB128 into `last`; gives where it began.
    pub(super) fn var_integer(&mut self, op: &BytesOp, signed: bool) -> Result<u64, Fault> {
        let at = self.aligned_bytes(op);
        let rest = self.bytes.get((at / 8) as usize..).unwrap_or_default();
        match leb128::read(rest, signed) {
            Ok((value, bytes)) => {
                self.last = value;
                self.last_bits = (7 * bytes as u32).min(64);
                self.pos = at + bytes as u64 * 8;
                Ok(at)
            }
            Err(Unreadable::Truncated) => Err(self.beyond(self.pos).at(op.field)),
            Err(Unreadable::TooLong) => {
                let most = leb128::MOST_BYTES as u64;
                Err(Fault::new(FaultCode::IntegerTooLong, at, most).at(op.field))
            }
        }
    }

    #[inline]
    pub(super) fn text<V: Visitor>(&mut self, op: &BytesOp, v: &mut V) -> Result<(), Fault> {
        let at = self.aligned_bytes(op);
        let rest = self.bytes.get((at / 8) as usize..).unwrap_or_default();
        let Some(length) = text::zero(rest) else {
            return Err(self.beyond(self.pos).at(op.field));
        };
        self.pos = at + (length as u64 + 1) * 8;
        self.value(at, v, |v| v.text(op.field, &rest[..length]));
        Ok(())
    }

    pub(super) fn wide_text<V: Visitor>(
        &mut self,
        op: &BytesOp,
        encoding: Encoding,
        v: &mut V,
    ) -> Result<(), Fault> {
        let at = self.aligned_bytes(op);
        let rest = self.bytes.get((at / 8) as usize..).unwrap_or_default();
        let unit = text::unit(encoding);
        let Some(length) = text::terminator(rest, encoding) else {
            return Err(self.beyond(self.pos).at(op.field));
        };
        self.pos = at + ((length + unit) as u64) * 8;
        let text = text::to_utf8(&rest[..length], encoding);
        self.value(at, v, |v| v.text(op.field, &text));
        Ok(())
    }

    /// The next `length` bytes, and where they begin.
    #[inline]
    pub(super) fn sized(&mut self, op: &BytesOp, length: Count) -> Result<(u64, &'r [u8]), Fault> {
        let length = self.count(length);
        let at = self.aligned_bytes(op);
        let begin = (at / 8) as usize;
        let bytes = usize::try_from(length)
            .ok()
            .and_then(|length| begin.checked_add(length))
            .and_then(|end| self.bytes.get(begin..end));
        match bytes {
            Some(bytes) => {
                self.pos = at + length * 8;
                Ok((at, bytes))
            }
            None => Err(self.beyond(at).at(op.field)),
        }
    }

    pub(super) fn sized_text<V: Visitor>(
        &mut self,
        op: &BytesOp,
        encoding: Encoding,
        length: Count,
        v: &mut V,
    ) -> Result<(), Fault> {
        let (at, bytes) = self.sized(op, length)?;
        let length = text::terminator(bytes, encoding).unwrap_or(bytes.len());
        if encoding == Encoding::Utf8 {
            self.value(at, v, |v| v.text(op.field, &bytes[..length]));
        } else {
            let text = text::to_utf8(&bytes[..length], encoding);
            self.value(at, v, |v| v.text(op.field, &text));
        }
        Ok(())
    }
}

/// Widens a floating point number of 16 bits.
fn half_to_f64(half: u16) -> f64 {
    let magnitude = i32::from(half >> 10 & 0x1f);
    let fraction = f64::from(half & 0x3ff);
    let value = match magnitude {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(magnitude - 25),
    };
    if half >> 15 == 1 { -value } else { value }
}
