//! Where events of most classes end, and where their numbers are: known without running a program.

use std::cell::Cell;

use kymo_model::FieldId;
use kymo_model::batch::{Layout, Number, Place};

use super::op::{BytesOp, Count, Op, Program, Shown};
use super::skip::{Fixed, fixed};
use super::text;
use crate::class::Encoding;

/// Finds the end of an event whose fields are numbers of whole bytes, texts, and arrays of such numbers.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The fields that all events begin with: what the first one is aligned to, and their size.
    mask: u64,
    bits: u64,
    /// What follows them.
    steps: Box<[Step]>,
    /// The number of values of every event, without the elements of arrays of variable length.
    values: u64,
}

/// Alignments are masks: what is aligned to `n` bits has `n - 1`.
#[derive(Clone, Copy, Debug)]
enum Step {
    Skip {
        mask: u64,
        bits: u64,
    },
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
    /// As many elements as the number before them says, which nothing else needs.
    Sequence {
        length: Length,
        elements: Elements,
    },
    Text {
        mask: u64,
    },
}

/// A number of elements.
#[derive(Clone, Copy, Debug)]
struct Length {
    mask: u64,
    /// Its size in bits, and how many more 64 are.
    bits: u8,
    others: u8,
    is_big: bool,
    is_signed: bool,
}

impl Length {
    /// The number in the next bytes behind a bit, extended to 64 bits, and where it ends.
    #[inline(always)]
    fn read(&self, content: Extent<'_>, at: u64) -> Option<(u64, u64)> {
        let begin = (at + self.mask) & !self.mask;
        let bytes = content.bytes.get((begin / 8) as usize..)?;
        let word = match bytes.first_chunk() {
            Some(word) => *word,
            None => {
                let bytes = bytes.get(..usize::from(self.bits / 8))?;
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                word
            }
        };
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
        Some((number, begin + u64::from(self.bits)))
    }
}

/// Elements of the same size.
#[derive(Clone, Copy, Debug)]
struct Elements {
    mask: u64,
    /// Size of an element, and from one to the next.
    bits: u64,
    stride: u64,
    /// The values in an element.
    values: u64,
}

impl Elements {
    /// The bytes of a text or a BLOB, which are one value.
    fn bytes(mask: u64) -> Self {
        Self {
            mask,
            bits: 8,
            stride: 8,
            values: 0,
        }
    }

    /// The end of `count` of them that begin behind a bit, if it is within the content.
    #[inline(always)]
    fn end(&self, content: Extent<'_>, at: u64, count: u64) -> Option<u64> {
        let begin = (at + self.mask) & !self.mask;
        let size = match count.checked_sub(1) {
            None => 0,
            Some(steps) => steps.checked_mul(self.stride)?.checked_add(self.bits)?,
        };
        let end = begin.checked_add(size)?;
        (end <= content.bits).then_some(end)
    }
}

/// The content of a packet, as far as it consists of whole bytes, and its size in bits.
#[derive(Clone, Copy)]
pub(super) struct Extent<'c> {
    pub bytes: &'c [u8],
    pub bits: u64,
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
                Op::Skip { align, bits } => Step::Skip {
                    mask: mask(align),
                    bits,
                },
                Op::BeginStruct { align, .. } => Step::Skip {
                    mask: mask(align),
                    bits: 0,
                },
                Op::EndStruct { .. } => continue,
                Op::Clear { slot } => Step::Clear { slot },
                Op::SkipArray {
                    align,
                    count: Count::Slot(slot),
                    bits,
                    stride,
                } => Step::Elements {
                    elements: Elements {
                        mask: mask(align),
                        bits: bits.into(),
                        stride: stride.into(),
                        values: of_elements.next()?,
                    },
                    slot,
                },
                Op::Text(at) => Step::Text {
                    mask: at.mask.into(),
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
                    elements: Elements::bytes(at.mask.into()),
                    slot,
                },
                ref op => {
                    let (at, number) = number(op)?;
                    let Some(&Op::Save { slot }) = ops.next() else {
                        return None;
                    };
                    let (size, is_big, is_signed) = integer(number)?;
                    let length = Length {
                        mask: at.mask.into(),
                        bits: size * 8,
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
        let (mask, bits) = match steps.first() {
            Some(&Step::Skip { mask, bits }) => {
                steps.remove(0);
                (mask, bits)
            }
            _ => (0, 0),
        };
        Some(Self {
            mask,
            bits,
            steps: with_sequences(steps).into(),
            values,
        })
    }

    /// What the fields are aligned to that all events begin with, in bits, less one; the bits of these fields; and
    /// the values of every event.
    pub(super) fn first_fields(&self) -> (u64, u64, u64) {
        (self.mask, self.bits, self.values)
    }

    /// Whether nothing follows these fields.
    pub(super) fn is_fixed(&self) -> bool {
        self.steps.is_empty()
    }

    /// The number of fields of variable size.
    fn varying(&self) -> usize {
        let is_one = |step: &&Step| {
            matches!(
                step,
                Step::Elements { .. } | Step::Sequence { .. } | Step::Text { .. }
            )
        };
        self.steps.iter().filter(is_one).count()
    }

    /// The end of the event whose fields begin at a bit, and the number of its values. `None` if that is beyond the
    /// content: then running the program reports what is wrong.
    #[inline]
    pub(super) fn find(
        &self,
        content: Extent<'_>,
        slots: &[Cell<u64>],
        at: u64,
    ) -> Option<(u64, u64)> {
        let end = ((at + self.mask) & !self.mask).checked_add(self.bits)?;
        if end > content.bits {
            return None;
        }
        match self.steps.is_empty() {
            true => Some((end, self.values)),
            false => self.find_behind(content, slots, end, |_| {}),
        }
    }

    /// Like `find`, but also adds the byte offsets at which fields of variable size end.
    pub(super) fn find_all(
        &self,
        content: Extent<'_>,
        slots: &[Cell<u64>],
        at: u64,
        ends: &mut Vec<usize>,
    ) -> Option<(u64, u64)> {
        let end = ((at + self.mask) & !self.mask).checked_add(self.bits)?;
        self.find_behind(content, slots, end, |end| {
            ends.push(end.div_ceil(8) as usize)
        })
    }

    /// The same for what is behind the first fields.
    #[inline(never)]
    pub(super) fn find_behind(
        &self,
        content: Extent<'_>,
        slots: &[Cell<u64>],
        mut at: u64,
        mut end_of_field: impl FnMut(u64),
    ) -> Option<(u64, u64)> {
        let mut values = self.values;
        for step in &self.steps {
            at = match *step {
                Step::Skip { mask, bits } => ((at + mask) & !mask).checked_add(bits)?,
                Step::Length { length, slot } => {
                    let (number, end) = length.read(content, at)?;
                    slots.get(slot as usize)?.set(number);
                    end
                }
                Step::Clear { slot } => {
                    slots.get(slot as usize)?.set(0);
                    at
                }
                Step::Elements { elements, slot } => {
                    let count = slots.get(slot as usize)?.get();
                    let end = elements.end(content, at, count)?;
                    // Elements have bits, so that the content bounds this.
                    values += count * elements.values;
                    end
                }
                Step::Sequence { length, elements } => {
                    let (count, begin) = length.read(content, at)?;
                    let end = elements.end(content, begin, count)?;
                    values += count * elements.values;
                    end
                }
                Step::Text { mask } => {
                    let begin = (at + mask) & !mask;
                    let rest = content.bytes.get((begin / 8) as usize..)?;
                    begin + (text::zero(rest)? as u64 + 1) * 8
                }
            };
            if at > content.bits {
                return None;
            }
            if let Step::Elements { .. } | Step::Sequence { .. } | Step::Text { .. } = step {
                end_of_field(at);
            }
        }
        Some((at, values))
    }
}

/// Puts a number and the elements that it counts together, where nothing else needs the number.
fn with_sequences(steps: Vec<Step>) -> Vec<Step> {
    let uses = |wanted: u32| {
        let is_use = |step: &&Step| match **step {
            Step::Length { slot, .. } | Step::Clear { slot } | Step::Elements { slot, .. } => {
                slot == wanted
            }
            Step::Skip { .. } | Step::Sequence { .. } | Step::Text { .. } => false,
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
                &[Step::Elements { elements, slot: of }, ref rest @ ..],
            ) if slot == of && uses(slot) == 2 => (rest, Step::Sequence { length, elements }),
            _ => (rest, first),
        };
        result.push(step);
    }
    result
}

/// Where the values of fields are in the events of a class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// What the first of the fields is aligned to, in bits, less one.
    pub mask: u64,
    /// By field.
    places: Vec<(FieldId, Place)>,
}

impl Places {
    /// The places of the fields that a program decodes. Without an `end`, those alone that count from where the fields
    /// begin.
    pub(super) fn of(program: &Program, end: Option<&End>) -> Self {
        let mut places = Self::default();
        // What is counted from, its alignment if that is known, and the bits from there.
        let (mut base, mut aligned, mut bits) = (0, None, Some(0u64));
        let mut ops = &program.ops[..];
        while let Some((op, rest)) = ops.split_first() {
            let (body, behind) = rest.split_at(op.body().min(rest.len()));
            ops = behind;
            if matches!(
                op,
                Op::EndStruct { .. } | Op::Save { .. } | Op::Clear { .. }
            ) {
                continue;
            }
            let (layout, size) = match (op, fixed_or_array(op, body)) {
                (_, Some(fixed)) => (Some(fixed.align), Some(fixed.bits)),
                (Op::Text(at), None) => (Some(at.align()), None),
                (
                    Op::Array {
                        count: Count::Slot(_),
                        ..
                    }
                    | Op::Blob { .. }
                    | Op::SizedText { .. },
                    None,
                ) => (None, None),
                _ => break,
            };
            let mask_of = layout.map(mask);
            if let (None, Some(of)) = (aligned, mask_of) {
                aligned = Some(of);
                if base == 0 {
                    places.mask = of;
                }
            }
            let begin = match (mask_of, aligned, bits) {
                (Some(mask), Some(aligned), Some(bits)) if mask <= aligned => {
                    bits.checked_next_multiple_of(mask + 1)
                }
                _ => None,
            };
            if let (Some(begin), Some(aligned)) = (begin, aligned)
                && let Some((field, layout)) = layout_of(op)
                && let Ok(offset) = usize::try_from(begin / 8)
                // What is aligned to less than a byte has no place in bytes.
                && aligned >= 7
            {
                let mask = (aligned / 8) as usize;
                let place = Place {
                    base,
                    mask,
                    offset,
                    layout,
                };
                places.places.push((field, place));
            }
            match size {
                Some(size) => bits = begin.and_then(|begin| begin.checked_add(size)),
                None => {
                    base += 1;
                    (aligned, bits) = (None, Some(0));
                }
            }
        }
        if end.is_none_or(|end| end.varying() != base) {
            places.places.retain(|(_, place)| place.base == 0);
        }
        places
    }

    /// The place of a field.
    pub(crate) fn get(&self, field: FieldId) -> Option<Place> {
        let mut places = self.places.iter();
        places.find(|(of, _)| *of == field).map(|&(_, place)| place)
    }
}

/// Alignment and size of what an instruction reads, if both are always the same; `body` are those within it.
fn fixed_or_array(op: &Op, body: &[Op]) -> Option<Fixed> {
    let &Op::Array {
        align,
        count: Count::Static(count),
        ..
    } = op
    else {
        return fixed(op);
    };
    let mut element = Fixed { align: 0, bits: 0 };
    for (position, op) in body.iter().enumerate() {
        if matches!(op, Op::EndStruct { .. }) {
            continue;
        }
        let of = fixed(op)?;
        if position == 0 {
            element.align = of.align;
        }
        if of.align > element.align {
            return None;
        }
        let begin = element.bits.checked_next_multiple_of(1 << of.align)?;
        element.bits = begin.checked_add(of.bits)?;
    }
    let stride = element.bits.checked_next_multiple_of(1 << element.align)?;
    let bits = match count.checked_sub(1) {
        None => 0,
        // The first element may be aligned to more than the array.
        Some(_) if element.align > align => return None,
        Some(steps) => steps.checked_mul(stride)?.checked_add(element.bits)?,
    };
    Some(Fixed { align, bits })
}

/// The field of which an instruction reads the value, and how it lies there.
fn layout_of(op: &Op) -> Option<(FieldId, Layout)> {
    match *op {
        Op::Text(at) => Some((at.field, Layout::Text)),
        Op::SizedText {
            at,
            encoding: Encoding::Utf8,
            length: Count::Static(length),
        } => Some((at.field, Layout::SizedText(usize::try_from(length).ok()?))),
        ref op => number(op).map(|(at, number)| (at.field, Layout::Number(number))),
    }
}

fn mask(align: u8) -> u64 {
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
fn number(op: &Op) -> Option<(&BytesOp, Number)> {
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
