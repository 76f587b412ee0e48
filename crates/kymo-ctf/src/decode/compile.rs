//! From field classes to instructions and schemas.

use std::fmt;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{FieldId, Kind, Schema, Scope, Wide};

use super::choice::Choice;
use super::op::{BitsOp, BytesOp, Count, Op, OptionEntry, Options, Program, Shown, WideOp};
use super::slots::Slots;
use crate::class::{
    BitLayout, Encoding, FieldClass, FieldPath, FieldRef, IntegerStyle, Length, Member, Role, Step,
};
use crate::deep::MAX_LEVELS;
use crate::units::{Extent, Members, at_beginning, without_unit};

/// How many arrays, optionals and variants lie within each other before decoding stops to recurse.
const RECURSION: usize = 64;
/// How many fields all schemas of a trace may have together: contexts count for each event class.
const MAX_FIELDS: usize = 1 << 20;

/// How many fields of headers the event classes of a trace may have, each its own.
const MAX_HEADER_FIELDS: usize = 1 << 22;

/// Why a class model cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError(String);

impl CompileError {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(super) fn too_deep() -> Self {
        Self::new(format!("fields are nested deeper than {MAX_LEVELS} levels"))
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CompileError {}

/// Counts the fields of all schemas of a trace.
#[derive(Debug, Default)]
pub(super) struct Budget {
    fields: usize,
    header_fields: usize,
}

impl Budget {
    /// Counts a field that is about to be made.
    fn field(&mut self) -> Result<(), CompileError> {
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            return Err(CompileError::new(format!(
                "the classes have more than {MAX_FIELDS} fields"
            )));
        }
        Ok(())
    }

    /// Counts what an event class is about to have of the headers.
    pub(super) fn headers(&mut self, fields: usize) -> Result<(), CompileError> {
        self.header_fields += fields;
        if self.header_fields > MAX_HEADER_FIELDS {
            return Err(CompileError::new(format!(
                "the classes have more than {MAX_HEADER_FIELDS} fields in their headers"
            )));
        }
        Ok(())
    }
}

/// Appends the instructions of one scope to `program` and its fields to `schema`.
pub(super) fn scope(
    scope: Scope,
    class: &FieldClass,
    slots: &Slots,
    schema: &mut Schema,
    program: &mut Program,
    budget: &mut Budget,
) -> Result<(), CompileError> {
    for slot in slots.conditional(scope) {
        program.ops.push(Op::Clear { slot });
    }
    let root = schema.push_root(scope, kind(class));
    let path = FieldPath {
        scope,
        steps: Vec::new(),
    };
    let mut compiler = Compiler {
        slots,
        schema,
        program,
        budget,
        path,
        around: 0,
    };
    compiler.class(class, root).map(drop)
}

struct Compiler<'c> {
    slots: &'c Slots,
    schema: &'c mut Schema,
    program: &'c mut Program,
    budget: &'c mut Budget,
    path: FieldPath,
    /// How many arrays, optionals and variants are around.
    around: usize,
}

impl Compiler<'_> {
    fn class(&mut self, class: &FieldClass, field: FieldId) -> Result<Extent, CompileError> {
        // The alignment of classes that are not compounds.
        let align = match class {
            FieldClass::Struct { .. } | FieldClass::Array { .. } => 0,
            class => log2(class.align())?,
        };
        let mut extent = Extent::of_leaf(class, 1 << align);
        match class {
            FieldClass::BitArray(layout) | FieldClass::BitMap { layout, .. } => {
                self.fixed(layout, Shown::Bits, field)?;
                self.save();
            }
            FieldClass::Bool(layout) => {
                self.fixed(layout, Shown::Bool, field)?;
                self.save();
            }
            FieldClass::Integer { layout, style } if layout.bits > 64 => {
                self.wide(layout, style, field)?;
            }
            FieldClass::Integer { layout, style } => {
                let shown = if style.signed {
                    Shown::Sint
                } else {
                    Shown::Uint
                };
                self.fixed(layout, shown, field)?;
                self.save();
                self.roles(&style.roles, layout.bits as u8);
            }
            FieldClass::VarInteger(style) => {
                let at = BytesOp::new(field, align);
                self.emit(if style.signed {
                    Op::VarSint(at)
                } else {
                    Op::VarUint(at)
                });
                self.save();
                self.roles(&style.roles, 0);
            }
            FieldClass::Float(layout) => self.fixed(layout, Shown::Float, field)?,
            FieldClass::Text { encoding, .. } => {
                let at = BytesOp::new(field, align);
                self.emit(match encoding {
                    Encoding::Utf8 => Op::Text(at),
                    &encoding => Op::WideText { at, encoding },
                });
            }
            FieldClass::SizedText {
                length, encoding, ..
            } => {
                let length = self.count(length, field)?;
                self.emit(Op::SizedText {
                    at: BytesOp::new(field, align),
                    encoding: *encoding,
                    length,
                });
            }
            FieldClass::Blob { length, roles, .. } => {
                let length = self.count(length, field)?;
                self.emit(Op::Blob {
                    at: BytesOp::new(field, align),
                    length,
                });
                if roles.contains(&Role::MetadataUuid) {
                    self.emit(Op::Uuid);
                }
            }
            FieldClass::Struct { members, min_align } => {
                let at = self.emit(Op::BeginStruct { field, align: 0 });
                extent = self.members(members, *min_align, field)?;
                if let Op::BeginStruct { align, .. } = &mut self.program.ops[at] {
                    *align = log2(extent.all)?;
                }
                self.emit(Op::EndStruct { field });
            }
            FieldClass::Array {
                element,
                length,
                roles,
                min_align,
            } => {
                self.begin_compound();
                let count = self.count(length, field)?;
                let at = self.emit(Op::Array {
                    field,
                    align: 0,
                    count,
                    body: 0,
                });
                let of_element = self.part(field, None, Step::Element, element)?;
                self.forget_elements(at + 1);
                let length_of_body = self.end_compound(at);
                extent = of_element.repeated(length, *min_align);
                // What comes before the elements has aligned itself.
                let begin = log2(of_element.begin.max(*min_align))?;
                if let Op::Array { body, align, .. } = &mut self.program.ops[at] {
                    (*body, *align) = (length_of_body, begin);
                }
                if roles.contains(&Role::MetadataUuid) {
                    self.emit(Op::Uuid);
                }
            }
            FieldClass::Optional {
                content,
                selector,
                when,
            } => {
                let slot = self.slot(selector)?;
                let table = self.table(Choice::new([when]));
                self.begin_compound();
                let at = self.emit(Op::Optional {
                    field,
                    table,
                    slot,
                    body: 0,
                });
                self.part(field, None, Step::Content, &at_beginning(content))?;
                let length = self.end_compound(at);
                if let Op::Optional { body, .. } = &mut self.program.ops[at] {
                    *body = length;
                }
            }
            FieldClass::Variant { options, selector } => {
                let slot = self.slot(selector)?;
                let table = self.table(Choice::new(options.iter().map(|option| &option.when)));
                self.begin_compound();
                let at = self.emit(Op::Variant {
                    field,
                    table,
                    slot,
                    body: 0,
                });
                let mut entries = Vec::with_capacity(options.len());
                for (position, option) in options.iter().enumerate() {
                    let start = self.body(at);
                    self.part(
                        field,
                        option.name.as_ref(),
                        Step::Child(position),
                        &at_beginning(&option.class),
                    )?;
                    entries.push(OptionEntry {
                        start,
                        end: self.body(at),
                    });
                }
                self.program.tables[table as usize].entries = entries;
                let length = self.end_compound(at);
                if let Op::Variant { body, .. } = &mut self.program.ops[at] {
                    *body = length;
                }
            }
        }
        Ok(extent)
    }

    /// The members of a structure; gives the extent of the whole.
    fn members(
        &mut self,
        members: &[Member],
        min_align: u32,
        field: FieldId,
    ) -> Result<Extent, CompileError> {
        let mut before = Members::new(members, min_align);
        for (position, member) in members.iter().enumerate() {
            let placed = match before.padding(&member.class) {
                None => None,
                Some(padding) => {
                    let align = member.class.align();
                    if padding > 0 {
                        let align = log2(align)?;
                        self.emit(Op::Skip {
                            align,
                            bits: padding,
                        });
                    }
                    // Its own alignment comes before the padding.
                    let align = if padding > 0 { 1 } else { align };
                    Some((without_unit(&member.class, align), padding))
                }
            };
            let class = placed.as_ref().map_or(&member.class, |(class, _)| class);
            let step = Step::Child(position);
            let part = self.part(field, Some(&member.name), step, class)?;
            match placed {
                Some((_, padding)) => before.pass_bits(&member.class, padding),
                None => before.pass(part),
            }
        }
        Ok(before.extent())
    }

    /// Starts the element whose instructions begin at `at`, without the values that the element
    /// before it has saved and it does not save itself: what lies in a compound that may be
    /// absent or empty.
    fn forget_elements(&mut self, at: usize) {
        let mut slots = Vec::new();
        // Where the compound in hand ends.
        let mut end = at;
        for (position, op) in self.program.ops.iter().enumerate().skip(at) {
            match *op {
                Op::Array { body, .. } | Op::Optional { body, .. } | Op::Variant { body, .. } => {
                    end = end.max(position + 1 + body as usize);
                }
                Op::Save { slot } if position < end => slots.push(slot),
                _ => {}
            }
        }
        slots.sort_unstable();
        slots.dedup();
        let clear = slots.into_iter().map(|slot| Op::Clear { slot });
        self.program.ops.splice(at..at, clear);
    }

    /// A member, element, option or content.
    fn part(
        &mut self,
        parent: FieldId,
        name: Option<&Arc<str>>,
        step: Step,
        class: &FieldClass,
    ) -> Result<Extent, CompileError> {
        self.budget.field()?;
        let field = self.schema.push_child(parent, name.cloned(), kind(class));
        self.path.steps.push(step);
        let extent = self.class(class, field)?;
        self.path.steps.pop();
        Ok(extent)
    }

    /// Begins an array, optional or variant.
    fn begin_compound(&mut self) {
        self.around += 1;
        if self.around == RECURSION {
            self.emit(Op::Deep);
        }
    }

    /// Ends it; gives the number of its instructions.
    fn end_compound(&mut self, at: usize) -> u32 {
        self.around -= 1;
        self.body(at)
    }

    fn emit(&mut self, op: Op) -> usize {
        self.program.ops.push(op);
        self.program.ops.len() - 1
    }

    fn table(&mut self, choice: Choice) -> u32 {
        self.program.tables.push(Options {
            choice,
            entries: Vec::new(),
        });
        self.program.tables.len() as u32 - 1
    }

    /// Instructions after the one at `at`.
    fn body(&self, at: usize) -> u32 {
        (self.program.ops.len() - at - 1) as u32
    }

    fn slot(&self, reference: &FieldRef) -> Result<u32, CompileError> {
        self.slots.of_ref.get(reference).copied().ok_or_else(|| {
            CompileError::new("a length or selector refers to a field of another class")
        })
    }

    fn count(&mut self, length: &Length, field: FieldId) -> Result<Count, CompileError> {
        match length {
            Length::Static(count) => Ok(Count::Static(*count)),
            Length::Dynamic(reference) => self.slot(reference).map(Count::Slot),
            // The length is a part of the array and not shown as a field of its own.
            Length::Inline(class) => match &**class {
                FieldClass::Integer { layout, style } if !style.signed => {
                    self.fixed(layout, Shown::Count, field)?;
                    Ok(Count::Last)
                }
                _ => Err(CompileError::new(
                    "the length of a sequence is not an unsigned integer",
                )),
            },
        }
    }

    /// Saves the number just read where a length or selector refers to it.
    fn save(&mut self) {
        for &slot in self.slots.of_target.get(&self.path).into_iter().flatten() {
            self.program.ops.push(Op::Save { slot });
        }
    }

    fn roles(&mut self, roles: &[Role], bits: u8) {
        for &role in roles {
            let op = match (self.path.scope, role) {
                (Scope::EventHeader, Role::EventClassId) => Op::EventClassId,
                (Scope::EventHeader, Role::DefaultClockTimestamp) => Op::Clock { bits },
                (Scope::PacketHeader | Scope::PacketContext, role) => Op::Role { role, bits },
                _ => continue,
            };
            self.emit(op);
        }
    }

    /// An integer of more than 64 bits: a value, and nothing else.
    fn wide(
        &mut self,
        layout: &BitLayout,
        style: &IntegerStyle,
        field: FieldId,
    ) -> Result<(), CompileError> {
        if layout.bits > Wide::MAX_BITS {
            return Err(CompileError::new(format!(
                "integers of {} bits are not supported: up to {} are",
                layout.bits,
                Wide::MAX_BITS
            )));
        }
        let is_needed = !style.roles.is_empty() || style.labels.is_some();
        if is_needed || self.slots.of_target.contains_key(&self.path) {
            return Err(CompileError::new(
                "an integer of more than 64 bits has labels or a role, or is a length or selector",
            ));
        }
        self.emit(Op::Wide(WideOp {
            field,
            bits: layout.bits as u16,
            align: log2(layout.align)?,
            order: layout.order,
            reversed: layout.reversed,
            unit: unit(layout)?,
            signed: style.signed,
        }));
        Ok(())
    }

    fn fixed(
        &mut self,
        layout: &BitLayout,
        shown: Shown,
        field: FieldId,
    ) -> Result<(), CompileError> {
        use ByteOrder::{Big, Little};
        let align = log2(layout.align)?;
        let at = BytesOp::new(field, align);
        let ordinary = layout.align >= 8 && !layout.reversed && layout.unit.is_none();
        let op = match (shown, layout.bits, layout.order) {
            (Shown::Uint, 8, _) if ordinary => Op::U8(at),
            (Shown::Uint, 16, Little) if ordinary => Op::U16Le(at),
            (Shown::Uint, 16, Big) if ordinary => Op::U16Be(at),
            (Shown::Uint, 32, Little) if ordinary => Op::U32Le(at),
            (Shown::Uint, 32, Big) if ordinary => Op::U32Be(at),
            (Shown::Uint, 64, Little) if ordinary => Op::U64Le(at),
            (Shown::Uint, 64, Big) if ordinary => Op::U64Be(at),
            (Shown::Sint, 8, _) if ordinary => Op::S8(at),
            (Shown::Sint, 16, Little) if ordinary => Op::S16Le(at),
            (Shown::Sint, 16, Big) if ordinary => Op::S16Be(at),
            (Shown::Sint, 32, Little) if ordinary => Op::S32Le(at),
            (Shown::Sint, 32, Big) if ordinary => Op::S32Be(at),
            (Shown::Sint, 64, Little) if ordinary => Op::S64Le(at),
            (Shown::Sint, 64, Big) if ordinary => Op::S64Be(at),
            (Shown::Float, 32, Little) if ordinary => Op::F32Le(at),
            (Shown::Float, 32, Big) if ordinary => Op::F32Be(at),
            (Shown::Float, 64, Little) if ordinary => Op::F64Le(at),
            (Shown::Float, 64, Big) if ordinary => Op::F64Be(at),
            (shown, bits, order) => {
                let op = BitsOp {
                    field,
                    bits: bits as u8,
                    align,
                    order,
                    reversed: layout.reversed,
                    unit: unit(layout)?,
                    shown,
                };
                match (shown, bits) {
                    (Shown::Float, 128) => Op::F128(op),
                    (Shown::Float, 16 | 32 | 64) => Op::Bits(op),
                    (Shown::Float, _) => {
                        return Err(CompileError::new(format!(
                            "floating point numbers of {bits} bits are not supported"
                        )));
                    }
                    (_, 1..=64) => Op::Bits(op),
                    _ => {
                        return Err(CompileError::new(format!(
                            "fields of {bits} bits are not supported: 1 to 64 are"
                        )));
                    }
                }
            }
        };
        self.emit(op);
        Ok(())
    }
}

/// Binary logarithm plus one of the unit that a field must not cross; 0 for none.
fn unit(layout: &BitLayout) -> Result<u8, CompileError> {
    let unit = layout.unit.map(log2).transpose()?;
    Ok(unit.map_or(0, |unit| unit + 1))
}

fn log2(align: u32) -> Result<u8, CompileError> {
    if align.is_power_of_two() {
        Ok(align.trailing_zeros() as u8)
    } else {
        Err(CompileError::new(format!(
            "the alignment {align} is not a power of two"
        )))
    }
}

/// What a field of a class is to those who read its values.
fn kind(class: &FieldClass) -> Kind {
    let integer = |bits, style: &IntegerStyle| {
        let (base, labels) = (style.base, style.labels.clone());
        if style.signed {
            Kind::Sint { bits, base, labels }
        } else {
            Kind::Uint { bits, base, labels }
        }
    };
    match class {
        FieldClass::BitArray(layout) => Kind::BitArray { bits: layout.bits },
        FieldClass::BitMap { layout, flags } => Kind::BitMap {
            bits: layout.bits,
            flags: flags.clone(),
        },
        FieldClass::Bool(layout) => Kind::Bool { bits: layout.bits },
        FieldClass::Integer { layout, style } if layout.bits > 64 => Kind::Wide {
            bits: layout.bits,
            signed: style.signed,
        },
        FieldClass::Integer { layout, style } => integer(layout.bits, style),
        FieldClass::VarInteger(style) => integer(64, style),
        FieldClass::Float(layout) => Kind::Float { bits: layout.bits },
        FieldClass::Text { .. } | FieldClass::SizedText { .. } => Kind::Text,
        FieldClass::Blob { .. } => Kind::Blob,
        FieldClass::Struct { .. } => Kind::Struct,
        FieldClass::Array { length, .. } => Kind::Array {
            length: match length {
                Length::Static(length) => Some(*length),
                _ => None,
            },
        },
        FieldClass::Optional { .. } => Kind::Optional,
        FieldClass::Variant { .. } => Kind::Variant,
    }
}
