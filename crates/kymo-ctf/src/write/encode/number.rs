//! Numbers: of fixed sizes at any bit, in LEB128, floating point.

use kymo_machine::{ByteOrder, bits};
use kymo_model::{FieldId, Wide};

use super::{Encode, Stop};
use crate::decode::op::{BitsOp, BytesOp, Op, Shown, WideOp};

/// How many bytes of LEB128 hold any number.
const MOST_LEB128: u32 = 10;

/// A fixed number of bits.
#[derive(Clone, Copy)]
pub(super) struct Fixed {
    pub(super) field: FieldId,
    pub(super) bits: u32,
    pub(super) align: u8,
    pub(super) order: ByteOrder,
    pub(super) reversed: bool,
    pub(super) unit: u8,
    pub(super) shown: Shown,
    /// Whether it counts as a bit field: what follows it in the same byte must have its order.
    pub(super) is_bits: bool,
}

impl Fixed {
    pub(super) fn of(op: &Op) -> Option<Self> {
        use ByteOrder::{Big, Little};
        use Shown::{Float, Sint, Uint};
        let whole = |at: BytesOp, bits, order, shown| Self {
            field: at.field,
            bits,
            align: at.align(),
            order,
            reversed: false,
            unit: 0,
            shown,
            is_bits: false,
        };
        Some(match *op {
            Op::U8(at) => whole(at, 8, Little, Uint),
            Op::U16Le(at) => whole(at, 16, Little, Uint),
            Op::U16Be(at) => whole(at, 16, Big, Uint),
            Op::U32Le(at) => whole(at, 32, Little, Uint),
            Op::U32Be(at) => whole(at, 32, Big, Uint),
            Op::U64Le(at) => whole(at, 64, Little, Uint),
            Op::U64Be(at) => whole(at, 64, Big, Uint),
            Op::S8(at) => whole(at, 8, Little, Sint),
            Op::S16Le(at) => whole(at, 16, Little, Sint),
            Op::S16Be(at) => whole(at, 16, Big, Sint),
            Op::S32Le(at) => whole(at, 32, Little, Sint),
            Op::S32Be(at) => whole(at, 32, Big, Sint),
            Op::S64Le(at) => whole(at, 64, Little, Sint),
            Op::S64Be(at) => whole(at, 64, Big, Sint),
            Op::F32Le(at) => whole(at, 32, Little, Float),
            Op::F32Be(at) => whole(at, 32, Big, Float),
            Op::F64Le(at) => whole(at, 64, Little, Float),
            Op::F64Be(at) => whole(at, 64, Big, Float),
            Op::Bits(BitsOp {
                field,
                bits,
                align,
                order,
                reversed,
                unit,
                shown,
            }) => Self {
                field,
                bits: bits.into(),
                align,
                order,
                reversed,
                unit,
                shown,
                is_bits: true,
            },
            _ => return None,
        })
    }
}

impl Encode<'_> {
    /// Leaves the number that comes next to the writer: it is the length or selector of something
    /// that follows, or 0 while that is being found out.
    pub fn fill(&mut self) {
        if self.stop.is_some() {
            return;
        }
        if self.next >= self.end || self.number_bits().is_none() {
            return self.unexpected("a number to fill in");
        }
        let fills = &mut self.scratch.fills;
        let at = fills.asked;
        fills.asked += 1;
        let value = match fills.searching {
            true => {
                fills.values.push(None);
                0
            }
            false => match fills.values.get(at).copied().flatten() {
                Some(value) => value,
                None => {
                    let field = self.field();
                    return self.fail(
                        field,
                        "it has no value: none was given, and no array, text or option refers to it",
                    );
                }
            },
        };
        self.last_filled = at as u32 + 1;
        self.write_number(value, (value as i64) < 0 && self.is_signed(), None);
    }

    pub(super) fn is_signed(&self) -> bool {
        match self.program.ops.get(self.next) {
            Some(Op::VarSint(_)) => true,
            Some(op) => Fixed::of(op).is_some_and(|fixed| fixed.shown == Shown::Sint),
            None => false,
        }
    }

    /// A number that is the low bits of a clock or counter, or one that is not known yet: of a
    /// variable-length integer, `bytes` are written.
    pub(in crate::write) fn low_bits(&mut self, value: u64, bytes: u32) {
        let bits = self.number_bits().unwrap_or(0);
        let value = match bits {
            0 if bytes < MOST_LEB128 => value & ((1 << (7 * bytes)) - 1),
            1..=63 => value & ((1 << bits) - 1),
            _ => value,
        };
        // As many bits of a signed number mean a negative one.
        let negative = match self.is_signed() && bits > 0 {
            true => value >> (bits - 1) & 1 == 1,
            false => false,
        };
        let value = match negative {
            true => bits::sign_extend(value, bits) as u64,
            false => value,
        };
        self.last_filled = 0;
        self.write_number(value, negative, Some(bytes));
    }

    /// Writes a number: of a negative one, its bits in two's complement.
    #[inline]
    pub(super) fn number(&mut self, value: u64, negative: bool) {
        self.last_filled = 0;
        self.write_number(value, negative, None);
    }

    #[inline]
    fn write_number(&mut self, value: u64, negative: bool, leb128: Option<u32>) {
        if self.stop.is_some() {
            return;
        }
        if self.next >= self.end {
            return self.unexpected("a number");
        }
        let op = &self.program.ops[self.next];
        if let Some(fixed) = Fixed::of(op) {
            let room = 64 - fixed.bits.min(64);
            let fits = match fixed.shown {
                Shown::Sint => {
                    let signed = value as i64;
                    negative == (signed < 0) && (signed << room) >> room == signed
                }
                Shown::Float | Shown::Count => return self.unexpected("a number"),
                Shown::Uint | Shown::Bool | Shown::Bits => {
                    !negative && (value << room) >> room == value
                }
            };
            if !fits {
                return self.too_large(fixed.field, value, negative, fixed.bits, fixed.shown);
            }
            self.fixed(&fixed, value);
            return;
        }
        match *op {
            Op::VarUint(at) if !negative => self.leb128(at, value, false, leb128),
            Op::VarSint(at) if negative == ((value as i64) < 0) => {
                self.leb128(at, value, true, leb128);
            }
            Op::Wide(op) if op.signed || !negative => {
                let sign = if negative { u64::MAX } else { 0 };
                self.wide(&op, |above| if above == 0 { value } else { sign });
            }
            Op::Wide(op) => {
                self.too_large(op.field, value, negative, op.bits.into(), Shown::Uint);
            }
            Op::VarUint(at) => self.too_large(at.field, value, negative, 64, Shown::Uint),
            Op::VarSint(at) => self.too_large(at.field, value, negative, 64, Shown::Sint),
            _ => self.unexpected("a number"),
        }
    }

    #[cold]
    fn too_large(&mut self, field: FieldId, value: u64, negative: bool, bits: u32, shown: Shown) {
        let value = match negative {
            true => (value as i64).to_string(),
            false => value.to_string(),
        };
        let kind = match shown {
            Shown::Sint => "a signed integer",
            _ => "an unsigned integer",
        };
        self.fail(field, format!("{value} does not fit {kind} of {bits} bits"));
    }

    /// Puts the bits of a fixed field.
    #[inline]
    pub(super) fn fixed(&mut self, fixed: &Fixed, value: u64) {
        let Some(at) = self.place(fixed, fixed.bits) else {
            return;
        };
        self.last = value;
        let value = match fixed.reversed {
            true => value.reverse_bits() >> (64 - fixed.bits),
            false => value,
        };
        self.buffer.put(at, fixed.bits, fixed.order, value);
        self.buffer.pos = at + u64::from(fixed.bits);
        self.step();
    }

    /// Where a fixed field begins, with room for it.
    #[inline]
    fn place(&mut self, fixed: &Fixed, bits: u32) -> Option<u64> {
        let mut at = self.buffer.aligned(fixed.align);
        if fixed.unit != 0 {
            let unit = 1u64 << (fixed.unit - 1);
            if at % unit + u64::from(bits) > unit {
                at = (at + unit - 1) & !(unit - 1);
            }
        }
        if fixed.is_bits {
            let order = fixed.order;
            if !at.is_multiple_of(8) && self.buffer.order.is_some_and(|before| before != order) {
                self.fail(
                    fixed.field,
                    "it would begin in a byte whose first bits have the other byte order: align it to 8 bits",
                );
                return None;
            }
            self.buffer.order = Some(order);
        }
        self.room(at + u64::from(bits)).then_some(at)
    }

    /// Makes room up to a bit.
    #[inline]
    pub(super) fn room(&mut self, end: u64) -> bool {
        if end > self.limit {
            self.stop = Some(Stop::Full);
            return false;
        }
        self.buffer.reserve(end);
        true
    }

    /// Writes LEB128, as short as can be or in a number of bytes.
    fn leb128(&mut self, at: BytesOp, value: u64, signed: bool, bytes: Option<u32>) {
        let begin = self.buffer.aligned(at.align());
        let mut out = [0; MOST_LEB128 as usize];
        let mut rest = value;
        let mut count = 0;
        loop {
            let byte = (rest & 0x7f) as u8;
            rest = match signed {
                true => (rest as i64 >> 7) as u64,
                false => rest >> 7,
            };
            let sign = if signed && byte & 0x40 != 0 {
                u64::MAX
            } else {
                0
            };
            let is_last = match bytes {
                Some(bytes) => count + 1 == bytes as usize,
                None => rest == sign,
            };
            out[count] = byte | if is_last { 0 } else { 0x80 };
            count += 1;
            if is_last || count == out.len() {
                break;
            }
        }
        if self.room(begin + count as u64 * 8) {
            self.buffer.put_bytes(begin, &out[..count]);
            self.buffer.pos = begin + count as u64 * 8;
            self.last = value;
            self.step();
        }
    }

    pub(super) fn write_float(&mut self, value: f64) {
        if self.stop.is_some() {
            return;
        }
        self.last_filled = 0;
        let op = self.upcoming();
        let Some(fixed) = op.and_then(Fixed::of) else {
            return self.unexpected("a floating point number");
        };
        // Where a dialect has no floating point numbers, their bits are an integer.
        let is_bits = self.lenient && fixed.shown == Shown::Uint;
        match (fixed.shown == Shown::Float || is_bits, fixed.bits) {
            (true, 16) => self.fixed(&fixed, f64_to_half(value).into()),
            (true, 32) => self.fixed(&fixed, (value as f32).to_bits().into()),
            (true, 64) => self.fixed(&fixed, value.to_bits()),
            _ => self.unexpected("a floating point number"),
        }
    }

    pub(super) fn write_wide(&mut self, value: Wide<'_>) {
        if self.stop.is_some() {
            return;
        }
        let Some(&Op::Wide(op)) = self.upcoming() else {
            return self.unexpected("an integer of more than 64 bits");
        };
        let bits = u32::from(op.bits);
        if (value.bits(), value.is_signed()) != (bits, op.signed) {
            let kind = |signed| if signed { "signed" } else { "unsigned" };
            return self.fail(
                op.field,
                format!(
                    "{} integer of {} bits is given, and here is {} one of {bits} bits",
                    kind(value.is_signed()),
                    value.bits(),
                    kind(op.signed)
                ),
            );
        }
        let bytes = value.bytes();
        self.wide(&op, |above| {
            let low_first = bytes.iter().rev().skip(above as usize / 8).take(8);
            low_first
                .rev()
                .fold(0, |part, &byte| part << 8 | u64::from(byte))
        });
    }

    /// Writes an integer of more than 64 bits: `part` returns the 64 bits from a bit position on.
    fn wide(&mut self, op: &WideOp, part: impl Fn(u32) -> u64) {
        self.last_filled = 0;
        let Some(fixed) = Fixed::of(&Op::Bits(op.place())) else {
            return;
        };
        let Some(at) = self.place(&fixed, op.bits.into()) else {
            return;
        };
        for piece in op.parts() {
            let value = part(piece.above) & u64::MAX >> (64 - piece.bits);
            let value = match op.reversed {
                true => bits::reverse_bits(value, piece.bits),
                false => value,
            };
            self.buffer.put(at + piece.at, piece.bits, op.order, value);
        }
        self.buffer.pos = at + u64::from(op.bits);
        self.step();
    }

    pub(super) fn write_float128(&mut self, value: u128) {
        if self.stop.is_some() {
            return;
        }
        let Some(&Op::F128(op)) = self.upcoming() else {
            return self.unexpected("a floating point number of 128 bits");
        };
        let Some(fixed) = Fixed::of(&Op::Bits(op)) else {
            return;
        };
        let Some(at) = self.place(&fixed, 128) else {
            return;
        };
        let value = match op.reversed {
            true => value.reverse_bits(),
            false => value,
        };
        let (first, second) = match op.order {
            ByteOrder::Little => (value as u64, (value >> 64) as u64),
            ByteOrder::Big => ((value >> 64) as u64, value as u64),
        };
        self.buffer.put(at, 64, op.order, first);
        self.buffer.put(at + 64, 64, op.order, second);
        self.buffer.pos = at + 128;
        self.step();
    }
}

/// The nearest floating point number of 16 bits, of two the even one.
fn f64_to_half(value: f64) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    if value.is_nan() {
        return sign | 0x7e00;
    }
    let magnitude = value.abs();
    // Halfway between the largest number and the next one that there would be.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    // Numbers below 2^-14 have the exponent of those.
    let exponent = exponent.max(-14);
    let units = magnitude / 2f64.powi(exponent - 10);
    let rounded = round_half_even(units);
    // A carry out of the fraction goes into the exponent, as it should.
    let base = ((exponent + 14) as u16) << 10;
    sign | (base + rounded as u16)
}

fn round_half_even(value: f64) -> u32 {
    let whole = value as u32;
    let rest = value - f64::from(whole);
    if rest > 0.5 || rest == 0.5 && whole % 2 == 1 {
        whole + 1
    } else {
        whole
    }
}
