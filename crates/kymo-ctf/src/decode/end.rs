//! Where events of most classes end: known without running a program.

use std::cell::Cell;
use std::num::NonZeroUsize;

use kymo_model::batch::Number;

use super::op::{BytesOp, Count, Op, Program, Shown};
use super::text;

/// Finds the end of an event whose fields are numbers of whole bytes, texts, and arrays of such numbers.
///
/// All positions within are those of bytes: only an event that begins within a byte has none.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// What the first field is aligned to, in bits, less one.
    align: u64,
    /// The size of the fields that all events begin with.
    bytes: usize,
    /// What follows them.
    steps: Box<[Step]>,
    /// The number of values of every event, without the elements of arrays of variable length.
    values: u64,
}

/// Alignments are masks: what is aligned to `n` bytes has `n - 1`.
// A tag of its own is read faster than one that is hidden in a field.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Step {
    Skip {
        mask: usize,
        bytes: usize,
    },
    Text {
        mask: usize,
    },
    /// As many elements as the number before them says, which nothing else needs.
    Sequence(Sequence),
    /// A number that is saved.
    Length {
        length: Length,
        slot: u32,
    },
    Clear {
        slot: u32,
    },
    /// As many elements as a number says that was saved.
    Elements {
        elements: Elements,
        slot: u32,
    },
}

/// A little-endian number without a sign, and as many elements, one right behind the other.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    /// The bits of the number that count in a word.
    bits: u64,
    /// The number's alignment and size.
    mask: u32,
    bytes: u32,
    /// The elements' alignment and size, and the values in one.
    element_mask: u32,
    element_bytes: u32,
    values: u32,
}

impl Sequence {
    /// Both as one step, if they are as simple as that.
    fn of(length: Length, elements: Elements) -> Option<Self> {
        let is_simple = !length.is_big && !length.is_signed && elements.stride == elements.bytes;
        if !is_simple {
            return None;
        }
        Some(Self {
            bits: u64::MAX >> length.others,
            mask: length.mask.try_into().ok()?,
            bytes: length.bytes.into(),
            element_mask: elements.mask.try_into().ok()?,
            element_bytes: elements.bytes.try_into().ok()?,
            values: elements.values.try_into().ok()?,
        })
    }

    /// Where it ends, and the values in it.
    #[inline(always)]
    fn end(&self, content: &Extent<'_>, at: usize) -> Option<(usize, u64)> {
        let begin = align(at, self.mask as usize);
        let count = u64::from_le_bytes(content.word(begin)?) & self.bits;
        let size = count.checked_mul(self.element_bytes.into())?;
        let elements = align(begin + self.bytes as usize, self.element_mask as usize);
        let end = elements.checked_add(usize::try_from(size).ok()?)?;
        Some((end, count.wrapping_mul(self.values.into())))
    }
}

/// A number of elements.
#[derive(Clone, Copy, Debug)]
struct Length {
    mask: usize,
    /// Its size in bytes, and how many bits 64 have more.
    bytes: u8,
    others: u8,
    is_big: bool,
    is_signed: bool,
}

impl Length {
    /// The number in the next bytes, extended to 64 bits, and where it ends.
    fn read(&self, content: &Extent<'_>, at: usize) -> Option<(u64, usize)> {
        let begin = align(at, self.mask);
        let word = content.word(begin)?;
        // The number in the highest bits.
        let others = u32::from(self.others);
        let high = match self.is_big {
            false => u64::from_le_bytes(word) << others,
            true => u64::from_be_bytes(word),
        };
        let number = match self.is_signed {
            false => high >> others,
            true => (high as i64 >> others) as u64,
        };
        Some((number, begin + usize::from(self.bytes)))
    }
}

/// Elements of the same size.
#[derive(Clone, Copy, Debug)]
struct Elements {
    mask: usize,
    /// Size of an element, and from one to the next.
    bytes: u64,
    stride: u64,
    /// The values in an element.
    values: u64,
}

impl Elements {
    /// Elements of whole bytes; sizes are in bits.
    fn new(align: u8, bits: u32, stride: u32, values: u64) -> Option<Self> {
        Some(Self {
            mask: byte_mask(mask(align))?,
            bytes: whole_bytes(bits.into())?,
            stride: whole_bytes(stride.into())?,
            values,
        })
    }

    /// The bytes of a text or a BLOB, which are one value.
    fn of_bytes(align: u64) -> Option<Self> {
        Some(Self {
            mask: byte_mask(align)?,
            bytes: 1,
            stride: 1,
            values: 0,
        })
    }

    /// The end of `count` of them, if it is within the content.
    fn end(&self, content: &Extent<'_>, at: usize, count: u64) -> Option<usize> {
        let size = match count.checked_sub(1) {
            None => 0,
            Some(steps) => steps.checked_mul(self.stride)?.checked_add(self.bytes)?,
        };
        let end = align(at, self.mask).checked_add(usize::try_from(size).ok()?)?;
        (end <= content.bytes.len()).then_some(end)
    }
}

/// The content of a packet, as far as it consists of whole bytes, and the numbers that were saved.
#[derive(Clone, Copy)]
pub(super) struct Extent<'c> {
    pub bytes: &'c [u8],
    pub slots: &'c [Cell<u64>],
}

impl Extent<'_> {
    /// The next 8 bytes; at the end of the content zeros stand for what it has not.
    #[inline(always)]
    fn word(&self, at: usize) -> Option<[u8; 8]> {
        let rest = self.bytes.get(at..)?;
        Some(
            rest.first_chunk()
                .copied()
                .unwrap_or_else(|| last_word(rest)),
        )
    }
}

#[cold]
fn last_word(bytes: &[u8]) -> [u8; 8] {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    word
}

#[inline(always)]
pub(super) fn align(at: usize, mask: usize) -> usize {
    (at + mask) & !mask
}

/// The mask in bytes of an alignment in bits; none below a byte, where all positions are those of bytes.
fn byte_mask(mask: u64) -> Option<usize> {
    usize::try_from(mask / 8).ok()
}

/// A number of bits in bytes, if they are whole ones.
fn whole_bytes(bits: u64) -> Option<u64> {
    bits.is_multiple_of(8).then_some(bits / 8)
}

impl End {
    /// The end of the events that a program decodes, of which `short` only finds the end; `None` if it takes more
    /// than this to find it.
    pub(super) fn of(fields: &Program, short: &Program) -> Option<Self> {
        let mut values = 0;
        // The numbers of values of the elements of each array of variable length.
        let mut of_elements = Vec::new();
        let mut next = 0;
        while let Some(op) = fields.ops.get(next) {
            next += 1;
            match op {
                Op::Array { count, body, .. } => {
                    let body = fields.ops.get(next..next + *body as usize)?;
                    next += body.len();
                    if body.iter().any(|op| op.is_compound()) {
                        return None;
                    }
                    let in_element = body.iter().filter(|op| is_value(op)).count() as u64;
                    match count {
                        Count::Static(count) => {
                            let in_all = in_element.checked_mul(*count)?;
                            values = in_all.checked_add(values)?;
                        }
                        _ => of_elements.push(in_element),
                    }
                }
                Op::Optional { .. } | Op::Variant { .. } | Op::Deep => return None,
                op => values += u64::from(is_value(op)),
            }
        }
        let mut of_elements = of_elements.into_iter();
        let mut steps = Vec::new();
        let mut ops = short.ops.iter();
        while let Some(op) = ops.next() {
            let step = match *op {
                Op::Skip { align, bits } => skip(align, bits)?,
                Op::BeginStruct { align, .. } => skip(align, 0)?,
                Op::EndStruct { .. } => continue,
                Op::Clear { slot } => Step::Clear { slot },
                Op::SkipArray {
                    align,
                    count: Count::Slot(slot),
                    bits,
                    stride,
                } => Step::Elements {
                    elements: Elements::new(align, bits, stride, of_elements.next()?)?,
                    slot,
                },
                Op::Text(at) => Step::Text {
                    mask: byte_mask(at.mask.into())?,
                },
                Op::Blob {
                    ref at,
                    length: Count::Slot(slot),
                }
                | Op::SizedText {
                    ref at,
                    length: Count::Slot(slot),
                    ..
                } => Step::Elements {
                    elements: Elements::of_bytes(at.mask.into())?,
                    slot,
                },
                ref op => {
                    let (at, number) = number(op)?;
                    let Some(&Op::Save { slot }) = ops.next() else {
                        return None;
                    };
                    let (size, is_big, is_signed) = integer(number)?;
                    let length = Length {
                        mask: byte_mask(at.mask.into())?,
                        bytes: size,
                        others: 64 - size * 8,
                        is_big,
                        is_signed,
                    };
                    Step::Length { length, slot }
                }
            };
            steps.push(step);
        }
        if of_elements.next().is_some() {
            return None;
        }
        // In bits, since an event may begin within a byte.
        let is_first = |op: &&Op| !matches!(op, Op::EndStruct { .. });
        let first_align = match short.ops.iter().find(is_first) {
            Some(&(Op::Skip { align, .. } | Op::BeginStruct { align, .. })) => mask(align),
            _ => 0,
        };
        let bytes = match steps.first() {
            Some(&Step::Skip { bytes, .. }) => {
                steps.remove(0);
                bytes
            }
            _ => 0,
        };
        Some(Self {
            align: first_align,
            bytes,
            steps: with_sequences(steps).into(),
            values,
        })
    }

    /// What the fields are aligned to that all events begin with, in bytes, less one; the bytes of these fields; and
    /// the values of every event.
    pub(super) fn first_fields(&self) -> (u64, usize, u64) {
        (self.align / 8, self.bytes, self.values)
    }

    /// Whether nothing follows these fields.
    pub(super) fn is_fixed(&self) -> bool {
        self.steps.is_empty()
    }

    /// The number of fields of variable size.
    pub(super) fn varying(&self) -> usize {
        let is_one = |step: &&Step| {
            matches!(
                step,
                Step::Elements { .. } | Step::Sequence(_) | Step::Text { .. }
            )
        };
        self.steps.iter().filter(is_one).count()
    }

    /// The byte behind the first fields of the event whose fields begin at a bit.
    #[inline]
    fn behind_first(&self, content: &Extent<'_>, at: u64) -> Option<usize> {
        let begin = (at + self.align) & !self.align;
        let begin = usize::try_from(whole_bytes(begin)?).ok()?;
        let end = begin.checked_add(self.bytes)?;
        (end <= content.bytes.len()).then_some(end)
    }

    /// The end of the event whose fields begin at a bit, in bits, and the number of its values. `None` if that is beyond
    /// the content, or the event is not in whole bytes: then running the program reports what is wrong.
    #[inline]
    pub(super) fn find(&self, content: &Extent<'_>, at: u64) -> Option<(u64, u64)> {
        let mut found = (self.behind_first(content, at)?, self.values);
        if !self.is_fixed() {
            found = self.find_behind(content, found.0)?.into();
        }
        Some((found.0 as u64 * 8, found.1))
    }

    /// Like `find`, but also adds the byte offsets at which fields of variable size end.
    pub(super) fn find_all(&self, content: &Extent<'_>, at: u64, ends: &mut Vec<usize>) {
        if let Some(behind) = self.behind_first(content, at) {
            // What is wrong with the event is found when it is decoded.
            let _ = self.find_all_behind(content, behind, ends);
        }
    }

    /// The end of the event whose first fields end at a byte.
    #[inline(never)]
    pub(super) fn find_behind(&self, content: &Extent<'_>, at: usize) -> Option<FoundEnd> {
        self.walk(content, at, |_| {})
    }

    /// The same, which also adds the byte offsets at which fields of variable size end.
    #[inline(never)]
    pub(super) fn find_all_behind(
        &self,
        content: &Extent<'_>,
        at: usize,
        ends: &mut Vec<usize>,
    ) -> Option<FoundEnd> {
        self.walk(content, at, |end| ends.push(end))
    }

    #[inline(always)]
    fn walk(
        &self,
        content: &Extent<'_>,
        mut at: usize,
        mut end_of_field: impl FnMut(usize),
    ) -> Option<FoundEnd> {
        let content = &{ *content };
        let Extent { bytes, slots } = *content;
        let mut values = self.values;
        for step in &self.steps {
            match step {
                Step::Skip { mask, bytes } => at = align(at, *mask).checked_add(*bytes)?,
                Step::Text { mask } => {
                    let begin = align(at, *mask);
                    at = begin + text::zero(bytes.get(begin..)?)? + 1;
                    end_of_field(at);
                }
                Step::Sequence(sequence) => {
                    let more;
                    (at, more) = sequence.end(content, at)?;
                    // Elements have bytes, so that the content bounds this.
                    values = values.wrapping_add(more);
                    end_of_field(at);
                }
                Step::Length { length, slot } => {
                    let number;
                    (number, at) = length.read(content, at)?;
                    slots.get(*slot as usize)?.set(number);
                }
                Step::Clear { slot } => slots.get(*slot as usize)?.set(0),
                Step::Elements { elements, slot } => {
                    let count = slots.get(*slot as usize)?.get();
                    at = elements.end(content, at, count)?;
                    values += count * elements.values;
                    end_of_field(at);
                }
            }
            if at > bytes.len() {
                return None;
            }
        }
        Some(FoundEnd {
            at: NonZeroUsize::new(at)?,
            values,
        })
    }
}

/// Where an event ends, in bytes: never at 0, so that it fits in two registers if there may be none.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundEnd {
    at: NonZeroUsize,
    values: u64,
}

impl From<FoundEnd> for (usize, u64) {
    #[inline(always)]
    fn from(found: FoundEnd) -> Self {
        (found.at.get(), found.values)
    }
}

/// The step over fields of a size in bits.
fn skip(align: u8, bits: u64) -> Option<Step> {
    Some(Step::Skip {
        mask: byte_mask(mask(align))?,
        bytes: usize::try_from(whole_bytes(bits)?).ok()?,
    })
}

/// Puts a number and the elements that it counts together, where nothing else needs the number.
fn with_sequences(steps: Vec<Step>) -> Vec<Step> {
    let uses = |wanted: u32| {
        let is_use = |step: &&Step| match **step {
            Step::Length { slot, .. } | Step::Clear { slot } | Step::Elements { slot, .. } => {
                slot == wanted
            }
            Step::Skip { .. } | Step::Sequence(_) | Step::Text { .. } => false,
        };
        steps.iter().filter(is_use).count()
    };
    let mut result = Vec::with_capacity(steps.len());
    let mut left = &steps[..];
    while let Some((&first, rest)) = left.split_first() {
        let step;
        (left, step) = match (first, rest) {
            (
                Step::Length { length, slot },
                &[
                    Step::Elements {
                        elements,
                        slot: length_slot,
                    },
                    ref rest @ ..,
                ],
            ) if slot == length_slot
                && uses(slot) == 2
                && let Some(sequence) = Sequence::of(length, elements) =>
            {
                (rest, Step::Sequence(sequence))
            }
            _ => (rest, first),
        };
        result.push(step);
    }
    result
}

pub(super) fn mask(align: u8) -> u64 {
    (1 << align) - 1
}

/// Whether an instruction hands a visitor a value.
fn is_value(op: &Op) -> bool {
    match op {
        Op::Bits(at) => at.shown != Shown::Count,
        Op::F128(_)
        | Op::Wide(_)
        | Op::VarUint(_)
        | Op::VarSint(_)
        | Op::Text(_)
        | Op::WideText { .. }
        | Op::SizedText { .. }
        | Op::Blob { .. } => true,
        op => op.is_number(),
    }
}

/// A number of whole bytes that an instruction reads.
pub(super) fn number(op: &Op) -> Option<(&BytesOp, Number)> {
    macro_rules! numbers {
        ($($kind:ident)*) => {
            match op {
                $(Op::$kind(at) => Some((at, Number::$kind)),)*
                _ => None,
            }
        };
    }
    numbers! {
        U8 U16Le U16Be U32Le U32Be U64Le U64Be S8 S16Le S16Be S32Le S32Be S64Le S64Be F32Le F32Be F64Le F64Be
    }
}

/// Size in bytes of an integer, whether it is big-endian, and whether it has a sign.
fn integer(number: Number) -> Option<(u8, bool, bool)> {
    Some(match number {
        Number::U8 => (1, false, false),
        Number::U16Le => (2, false, false),
        Number::U16Be => (2, true, false),
        Number::U32Le => (4, false, false),
        Number::U32Be => (4, true, false),
        Number::U64Le => (8, false, false),
        Number::U64Be => (8, true, false),
        Number::S8 => (1, false, true),
        Number::S16Le => (2, false, true),
        Number::S16Be => (2, true, true),
        Number::S32Le => (4, false, true),
        Number::S32Be => (4, true, true),
        Number::S64Le => (8, false, true),
        Number::S64Be => (8, true, true),
        _ => return None,
    })
}
