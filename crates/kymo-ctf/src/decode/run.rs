//! What runs a decode program.

mod deep;
mod values;

use std::cell::Cell;

use kymo_machine::ByteOrder;
use kymo_model::{Fault, FaultCode, FieldId, Visitor};
use kymo_time::Ticks;

use super::end::number;
use super::op::{BytesOp, Count, Op, Program};
use crate::class::Role;

/// How many elements without any bits a packet may have, beyond one for each of its bits:
/// they cost time but no data, so that the data does not bound them.
pub(crate) const FREE_EMPTY_ELEMENTS: u64 = 1 << 16;

/// The content of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'r> {
    /// All of it, with the byte in which it ends.
    pub data: &'r [u8],
    /// Its whole bytes.
    pub bytes: &'r [u8],
    /// Its bits.
    pub bits: u64,
}

impl<'r> Content<'r> {
    /// The first `bits` bits of `data`, or fewer if there are not that many.
    #[inline]
    pub(super) fn new(data: &'r [u8], bits: u64) -> Self {
        let bits = (data.len() as u64).saturating_mul(8).min(bits);
        Self {
            data: &data[..bits.div_ceil(8) as usize],
            bytes: &data[..(bits / 8) as usize],
            bits,
        }
    }
}

/// The state of a run: where it is and what it has noted.
pub(super) struct Run<'r> {
    /// The content, with the byte in which it ends.
    data: &'r [u8],
    /// The whole bytes of the content.
    bytes: &'r [u8],
    content_bits: u64,
    pub pos: u64,
    /// The number read last, and its size where that varies.
    last: u64,
    last_bits: u32,
    /// Byte order of the bit field before, if there is one: it counts while `pos` is within
    /// a byte.
    pub order: Option<ByteOrder>,
    slots: &'r [Cell<u64>],
    /// Elements without any bits that the packet has had so far.
    pub empty_elements: u64,
    /// Ticks of the default clock.
    pub clock: Ticks,
    /// Number of the event class.
    pub event_class: u64,
    /// Where to note what a packet's header and context say.
    notes: Option<&'r mut Notes>,
}

/// What the header and context of a packet say of it.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Roles, numbers and their bits, as they come.
    pub roles: Vec<(Role, u64, u32)>,
    pub uuid: Option<[u8; 16]>,
}

impl<'r> Run<'r> {
    /// A run over the content of a packet from `pos`.
    #[inline]
    pub(super) fn over(content: Content<'r>, pos: u64, slots: &'r [Cell<u64>]) -> Self {
        let Content { data, bytes, bits } = content;
        Self {
            data,
            bytes,
            content_bits: bits,
            pos,
            last: 0,
            last_bits: 0,
            order: None,
            slots,
            empty_elements: 0,
            clock: Ticks(0),
            event_class: 0,
            notes: None,
        }
    }

    /// A run over the beginning of a packet, with notes of what its header and context say.
    pub(super) fn noting(data: &'r [u8], slots: &'r [Cell<u64>], notes: &'r mut Notes) -> Self {
        Self {
            notes: Some(notes),
            ..Self::over(Content::new(data, u64::MAX), 0, slots)
        }
    }

    /// Runs a program to its end.
    #[inline]
    pub(super) fn run<V: Visitor>(
        &mut self,
        program: &Program,
        visitor: &mut V,
    ) -> Result<(), Fault> {
        self.ops(program, &program.ops, visitor)
    }

    /// Runs some instructions of a program.
    pub(super) fn ops<V: Visitor>(
        &mut self,
        program: &Program,
        ops: &[Op],
        v: &mut V,
    ) -> Result<(), Fault> {
        macro_rules! int {
            ($op:expr, $type:ty, $from:ident, $call:ident, $wide:ty) => {{
                let (at, bytes) = self.bytes($op)?;
                let value = <$type>::$from(bytes) as $wide;
                self.last = value as u64;
                self.value(at, v, |v| v.$call($op.field, value));
            }};
        }
        macro_rules! float {
            ($op:expr, $type:ty, $from:ident) => {{
                let (at, bytes) = self.bytes($op)?;
                let value = <$type>::$from(bytes).into();
                self.value(at, v, |v| v.float($op.field, value));
            }};
        }
        let mut next = 0;
        while let Some(op) = ops.get(next) {
            next += 1;
            match *op {
                Op::U8(ref op) => int!(op, u8, from_le_bytes, uint, u64),
                Op::U16Le(ref op) => int!(op, u16, from_le_bytes, uint, u64),
                Op::U16Be(ref op) => int!(op, u16, from_be_bytes, uint, u64),
                Op::U32Le(ref op) => int!(op, u32, from_le_bytes, uint, u64),
                Op::U32Be(ref op) => int!(op, u32, from_be_bytes, uint, u64),
                Op::U64Le(ref op) => int!(op, u64, from_le_bytes, uint, u64),
                Op::U64Be(ref op) => int!(op, u64, from_be_bytes, uint, u64),
                Op::S8(ref op) => int!(op, i8, from_le_bytes, sint, i64),
                Op::S16Le(ref op) => int!(op, i16, from_le_bytes, sint, i64),
                Op::S16Be(ref op) => int!(op, i16, from_be_bytes, sint, i64),
                Op::S32Le(ref op) => int!(op, i32, from_le_bytes, sint, i64),
                Op::S32Be(ref op) => int!(op, i32, from_be_bytes, sint, i64),
                Op::S64Le(ref op) => int!(op, i64, from_le_bytes, sint, i64),
                Op::S64Be(ref op) => int!(op, i64, from_be_bytes, sint, i64),
                Op::F32Le(ref op) => float!(op, f32, from_le_bytes),
                Op::F32Be(ref op) => float!(op, f32, from_be_bytes),
                Op::F64Le(ref op) => float!(op, f64, from_le_bytes),
                Op::F64Be(ref op) => float!(op, f64, from_be_bytes),
                Op::Bits(ref op) => self.bit_field(op, v)?,
                Op::F128(ref op) => self.float128(op, v)?,
                Op::Wide(ref op) => self.wide(op, v)?,
                Op::VarUint(ref op) => {
                    let at = self.var_integer(op, false)?;
                    let value = self.last;
                    self.value(at, v, |v| v.uint(op.field, value));
                }
                Op::VarSint(ref op) => {
                    let at = self.var_integer(op, true)?;
                    let value = self.last as i64;
                    self.value(at, v, |v| v.sint(op.field, value));
                }
                Op::Text(ref op) => self.text(op, v)?,
                Op::WideText { ref at, encoding } => self.wide_text(at, encoding, v)?,
                Op::SizedText {
                    ref at,
                    encoding,
                    length,
                } => self.sized_text(at, encoding, length, v)?,
                Op::Blob { ref at, length } => {
                    let (begin, bytes) = self.sized(at, length)?;
                    self.value(begin, v, |v| v.blob(at.field, bytes));
                }
                Op::BeginStruct { field, align } => {
                    self.align(align, field)?;
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.begin_struct(field);
                }
                Op::EndStruct { field } => {
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.end_struct(field);
                }
                Op::Array {
                    field,
                    align,
                    count,
                    body,
                } => {
                    let count = self.count(count);
                    self.align(align, field)?;
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.begin_array(field, count);
                    let element = &ops[next..next + body as usize];
                    next += body as usize;
                    if !self.number_elements(element, count, v) {
                        for _ in 0..count {
                            let before = self.pos;
                            self.ops(program, element, v)?;
                            if self.pos == before {
                                self.empty_element(field, count)?;
                            }
                        }
                    }
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.end_array(field);
                }
                Op::Optional {
                    field,
                    table,
                    slot,
                    body,
                } => {
                    let selector = self.slots[slot as usize].get();
                    let present = program.tables[table as usize].choice.of(selector).is_some();
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.begin_optional(field, present, selector);
                    if present {
                        self.ops(program, &ops[next..next + body as usize], v)?;
                    }
                    next += body as usize;
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.end_optional(field);
                }
                Op::Variant {
                    field,
                    table,
                    slot,
                    body,
                } => {
                    let selector = self.slots[slot as usize].get();
                    let options = &program.tables[table as usize];
                    let Some(selected) = options.choice.of(selector) else {
                        return Err(
                            Fault::new(FaultCode::NoVariantOption, self.pos, selector).at(field)
                        );
                    };
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.begin_variant(field, selected as u32, selector);
                    let option = &options.entries[selected];
                    self.ops(
                        program,
                        &ops[next + option.start as usize..next + option.end as usize],
                        v,
                    )?;
                    next += body as usize;
                    if V::POSITIONS {
                        v.at(self.pos);
                    }
                    v.end_variant(field);
                }
                Op::Deep => {
                    let rest = &ops[next..];
                    let compound = &rest[..Op::whole(rest)];
                    self.deep(program, compound, v)?;
                    next += compound.len();
                }
                Op::Save { slot } => self.slots[slot as usize].set(self.last),
                Op::Clear { slot } => self.slots[slot as usize].set(0),
                Op::EventClassId => self.event_class = self.last,
                Op::Clock { bits } => {
                    let bits = if bits == 0 {
                        self.last_bits
                    } else {
                        u32::from(bits)
                    };
                    self.clock = self.clock.advance(self.last, bits);
                }
                Op::Role { role, bits } => {
                    let bits = if bits == 0 {
                        self.last_bits
                    } else {
                        u32::from(bits)
                    };
                    if let Some(notes) = &mut self.notes {
                        notes.roles.push((role, self.last, bits));
                    }
                }
                Op::Uuid => {
                    let end = (self.pos / 8) as usize;
                    let uuid = end
                        .checked_sub(16)
                        .and_then(|begin| self.bytes.get(begin..)?.first_chunk().copied());
                    if let Some(notes) = &mut self.notes {
                        notes.uuid = uuid;
                    }
                }
                Op::Skip { align, bits } => {
                    let at = self.aligned(align);
                    self.advance(at, bits).ok_or_else(|| self.beyond(at))?;
                }
                Op::SkipArray {
                    align,
                    count,
                    bits,
                    stride,
                } => {
                    let count = self.count(count);
                    let at = self.aligned(align);
                    let size = match count.checked_sub(1) {
                        None => Some(0),
                        Some(steps) => steps
                            .checked_mul(stride.into())
                            .and_then(|s| s.checked_add(bits.into())),
                    };
                    size.and_then(|size| self.advance(at, size))
                        .ok_or_else(|| self.beyond(at))?;
                }
            }
        }
        Ok(())
    }

    fn report_at<V: Visitor>(&self, v: &mut V) {
        if V::POSITIONS {
            v.at(self.pos);
        }
    }

    /// Decodes the elements of an array where they are ordinary numbers, one behind the
    /// other, and all there; `false`, with nothing done, where they are not.
    #[inline]
    fn number_elements<V: Visitor>(&mut self, element: &[Op], count: u64, v: &mut V) -> bool {
        if V::POSITIONS || count == 0 {
            return count == 0;
        }
        let [op] = element else {
            return false;
        };
        let Some((op, number)) =
            number(op).filter(|(op, number)| op.mask < 8 * number.size() as u32)
        else {
            return false;
        };
        let begin = (self.aligned_bytes(op) / 8) as usize;
        let size = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(number.size()));
        let Some(bytes) = size
            .and_then(|size| begin.checked_add(size))
            .and_then(|end| self.bytes.get(begin..end))
        else {
            return false;
        };
        v.numbers(op.field, bytes, number);
        self.pos = (begin + bytes.len()) as u64 * 8;
        true
    }

    /// Reports to the visitor a value that began at `at` and ends at the position.
    #[inline(always)]
    fn value<V: Visitor>(&mut self, at: u64, v: &mut V, report: impl FnOnce(&mut V)) {
        if V::POSITIONS {
            v.at(at);
        }
        report(v);
        if V::POSITIONS {
            v.after(self.pos);
        }
    }

    /// The position after alignment.
    #[inline(always)]
    fn aligned(&self, align: u8) -> u64 {
        let mask = (1u64 << align) - 1;
        (self.pos + mask) & !mask
    }

    #[inline(always)]
    fn align(&mut self, align: u8, field: FieldId) -> Result<(), Fault> {
        let at = self.aligned(align);
        if at > self.content_bits {
            return Err(self.beyond(self.pos).at(field));
        }
        self.pos = at;
        Ok(())
    }

    /// Moves to `bits` after `at`; `None` where that is beyond the content.
    #[inline(always)]
    fn advance(&mut self, at: u64, bits: u64) -> Option<()> {
        let end = at.checked_add(bits)?;
        (end <= self.content_bits).then(|| self.pos = end)
    }

    #[cold]
    fn beyond(&self, at: u64) -> Fault {
        Fault::new(
            FaultCode::BeyondContent,
            at.min(self.content_bits),
            self.content_bits,
        )
    }

    /// The next `N` bytes and where they begin.
    #[inline(always)]
    fn bytes<const N: usize>(&mut self, op: &BytesOp) -> Result<(u64, [u8; N]), Fault> {
        let at = self.aligned_bytes(op);
        let begin = (at / 8) as usize;
        let bytes = self.bytes.get(begin..begin + N);
        match bytes.and_then(<[u8]>::first_chunk) {
            Some(bytes) => {
                self.pos = at + N as u64 * 8;
                Ok((at, *bytes))
            }
            None => Err(self.beyond(self.pos).at(op.field)),
        }
    }

    /// The position after the alignment of a field of whole bytes.
    #[inline(always)]
    fn aligned_bytes(&self, op: &BytesOp) -> u64 {
        let mask = u64::from(op.mask);
        (self.pos + mask) & !mask
    }

    #[inline(always)]
    fn count(&self, count: Count) -> u64 {
        match count {
            Count::Static(count) => count,
            Count::Slot(slot) => self.slots[slot as usize].get(),
            Count::Last => self.last,
        }
    }

    #[cold]
    fn empty_element(&mut self, field: FieldId, count: u64) -> Result<(), Fault> {
        self.empty_elements += 1;
        if self.empty_elements > FREE_EMPTY_ELEMENTS + self.content_bits {
            return Err(Fault::new(FaultCode::LengthLimit, self.pos, count).at(field));
        }
        Ok(())
    }
}
