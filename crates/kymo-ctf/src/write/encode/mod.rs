//! Runs a decode program the other way: takes values in the order in which a reader reports
//! them, and puts them where that reader will look for them.

mod bytes;
mod compound;
mod number;

use kymo_model::{FieldId, Schema, Visitor, Wide};

use self::number::Fixed;

use super::buffer::Buffer;
use super::error::WriteError;
use crate::class::Role;
use crate::decode::FREE_EMPTY_ELEMENTS;
use crate::decode::op::{BitsOp, Count, Op, Program, Shown};

/// A number that lengths and selectors refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub value: u64,
    /// One more than the position of the number among those that are filled in; 0 for one that
    /// was given.
    filled: u32,
}

/// Numbers that the writer finds out: lengths of what follows, selectors. They are known when
/// the event has been gone through once.
#[derive(Debug, Default)]
pub(super) struct Fills {
    values: Vec<Option<u64>>,
    /// How many were asked for in this run.
    asked: usize,
    /// Whether this run only finds them out.
    pub searching: bool,
}

impl Fills {
    /// Begins a run over an event.
    pub(super) fn begin(&mut self, searching: bool) {
        if searching {
            self.values.clear();
        }
        self.asked = 0;
        self.searching = searching;
    }

    /// Whether the run has to be done once more, now that they are known.
    pub(super) fn any(&self) -> bool {
        self.asked > 0
    }
}

/// Why a run has stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// Something cannot be written.
    Error(WriteError),
    /// The packet has no room.
    Full,
}

/// A compound that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    kind: FrameKind,
    /// Where the instructions of the compound around it end.
    outer_end: usize,
    /// The first instruction after it.
    after: usize,
    /// Whether a structure was begun for it alone.
    in_made_struct: bool,
}

#[derive(Clone, Copy, Debug)]
enum FrameKind {
    Array {
        field: FieldId,
        start: usize,
        remaining: u64,
        /// Where the element in hand begins, in bits.
        begin: u64,
    },
    Choice {
        field: FieldId,
    },
}

/// What is needed to run programs again and again without asking for memory.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub slots: Vec<Slot>,
    pub fills: Fills,
    frames: Vec<Frame>,
    /// Text in another encoding.
    text: Vec<u8>,
    /// Elements without any bits that the packet has had so far.
    pub empty_elements: u64,
}

impl Scratch {
    /// For programs that save this many numbers.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: vec![Slot::default(); slots],
            ..Self::default()
        }
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// A value, or an array that may stand for one.
    Value(FieldId),
    BeginStruct(FieldId),
    EndStruct(FieldId),
    BeginArray(FieldId),
    EndArray(FieldId),
    BeginOptional(FieldId),
    BeginVariant(FieldId),
    /// The end of an optional or a variant.
    EndChoice(FieldId),
    /// Nothing: the program has come to its end.
    End,
}

/// Puts values into a packet, as a program says.
///
/// It takes them as a [`Visitor`] does; the place of a value in the order determines its field,
/// not the identifier it comes with. The first thing that is wrong stops it, and what comes after
/// that is ignored.
#[derive(Debug)]
pub struct Encode<'e> {
    program: &'e Program,
    schema: &'e Schema,
    pub(super) buffer: &'e mut Buffer,
    scratch: &'e mut Scratch,
    /// Where the packet must end, in bits.
    limit: u64,
    /// The next instruction, and where those of the compound in hand end.
    next: usize,
    end: usize,
    /// The number written last.
    last: u64,
    last_filled: u32,
    stop: Option<Stop>,
    /// Whether values of other kinds are taken that mean the same, as they come from classes that
    /// this dialect does not have.
    lenient: bool,
}

impl<'e> Encode<'e> {
    pub(super) fn new(
        program: &'e Program,
        schema: &'e Schema,
        buffer: &'e mut Buffer,
        scratch: &'e mut Scratch,
        limit: u64,
        lenient: bool,
    ) -> Self {
        scratch.frames.clear();
        let mut encode = Self {
            program,
            schema,
            buffer,
            scratch,
            limit,
            next: 0,
            end: program.ops.len(),
            last: 0,
            last_filled: 0,
            stop: None,
            lenient,
        };
        encode.settle();
        encode
    }

    /// Ends the run: everything must have been written.
    pub(super) fn finish(mut self) -> Result<(), Stop> {
        if self.stop.is_none() && self.expected() != Expected::End {
            self.missing();
        }
        self.stop.map_or(Ok(()), Err)
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    pub(super) fn schema(&self) -> &'e Schema {
        self.schema
    }

    /// Position of the next instruction.
    pub(super) fn position(&self) -> usize {
        self.next
    }

    /// What comes next.
    pub(super) fn expected(&self) -> Expected {
        if self.next < self.end {
            return match self.program.ops[self.next] {
                Op::BeginStruct { field, .. } => Expected::BeginStruct(field),
                Op::EndStruct { field } => Expected::EndStruct(field),
                Op::Array { field, .. } => Expected::BeginArray(field),
                Op::Optional { field, .. } => Expected::BeginOptional(field),
                Op::Variant { field, .. } => Expected::BeginVariant(field),
                Op::Bits(BitsOp {
                    shown: Shown::Count,
                    field,
                    ..
                }) if matches!(self.program.ops.get(self.next + 1), Some(Op::Array { .. })) => {
                    Expected::BeginArray(field)
                }
                ref op => value_field(op).map_or(Expected::End, Expected::Value),
            };
        }
        match self.scratch.frames.last().map(|frame| frame.kind) {
            Some(FrameKind::Array { field, .. }) => Expected::EndArray(field),
            Some(FrameKind::Choice { field }) => Expected::EndChoice(field),
            None => Expected::End,
        }
    }

    /// The roles of the value that comes next.
    pub(super) fn roles(&self) -> impl Iterator<Item = (Role, u32)> + '_ {
        let following = self.program.ops[self.next..].iter().skip(1);
        let notes = following.take_while(|op| {
            matches!(
                op,
                Op::Save { .. } | Op::Role { .. } | Op::EventClassId | Op::Clock { .. }
            )
        });
        notes.filter_map(|op| match *op {
            Op::Role { role, bits } => Some((role, u32::from(bits))),
            Op::EventClassId => Some((Role::EventClassId, 0)),
            Op::Clock { bits } => Some((Role::DefaultClockTimestamp, u32::from(bits))),
            _ => None,
        })
    }

    /// Whether the array or blob that comes next is the UUID of the metadata.
    pub(super) fn is_uuid(&self) -> bool {
        let ops = &self.program.ops;
        let after = match ops[self.next] {
            Op::Array { body, .. } => self.next + 1 + body as usize,
            Op::Blob { .. } => self.next + 1,
            _ => return false,
        };
        matches!(ops.get(after), Some(Op::Uuid))
    }

    /// Size in bits of the number that comes next: 0 where it varies, `None` where none comes.
    pub(super) fn number_bits(&self) -> Option<u32> {
        let op = self.program.ops.get(self.next)?;
        match op {
            Op::VarUint(_) | Op::VarSint(_) => Some(0),
            op => Fixed::of(op)
                .filter(|fixed| fixed.shown != Shown::Float)
                .map(|fixed| fixed.bits),
        }
    }

    /// The next instruction of the compound in hand; `None` at its end.
    #[inline]
    fn upcoming(&self) -> Option<&'e Op> {
        self.program
            .ops
            .get(self.next)
            .filter(|_| self.next < self.end)
    }

    /// The instruction of the value that comes next.
    pub(super) fn value_kind(&self) -> &'e Op {
        &self.program.ops[self.next]
    }

    /// Whether the structure that comes next holds something with a role.
    pub(super) fn struct_has_roles(&self) -> bool {
        let mut depth = 0;
        for op in &self.program.ops[self.next..] {
            match op {
                Op::BeginStruct { .. } => depth += 1,
                Op::EndStruct { .. } => depth -= 1,
                Op::Role { .. } | Op::EventClassId | Op::Clock { .. } | Op::Uuid => return true,
                _ => {}
            }
            if depth == 0 {
                return false;
            }
        }
        false
    }

    /// The length of the array or blob that comes next, as far as something else gives it.
    pub(super) fn reported_length(&self) -> u64 {
        match self.program.ops[self.next] {
            Op::Array { count, .. } | Op::Blob { length: count, .. } => match count {
                Count::Static(count) => count,
                Count::Slot(slot) => self.scratch.slots[slot as usize].value,
                Count::Last => 0,
            },
            _ => 0,
        }
    }

    /// The option of the optional or variant that comes next, as its selector says, and the
    /// selector.
    pub(super) fn reported_option(&self) -> (Option<usize>, u64) {
        match self.program.ops[self.next] {
            Op::Optional { table, slot, .. } | Op::Variant { table, slot, .. } => {
                let selector = self.scratch.slots[slot as usize].value;
                let choice = &self.program.tables[table as usize].choice;
                (choice.of(selector), selector)
            }
            _ => (None, 0),
        }
    }

    /// The option that an optional or variant which comes next has by its selector, which is written.
    pub fn selected(&self) -> Option<usize> {
        (self.next < self.end).then(|| self.reported_option().0)?
    }

    /// Goes to the next instruction.
    #[inline]
    fn step(&mut self) {
        self.next += 1;
        self.settle();
    }

    /// Carries out what needs no value, up to the next instruction that does.
    #[inline]
    fn settle(&mut self) {
        loop {
            if self.next == self.end {
                match self.element_end() {
                    true => continue,
                    false => return,
                }
            }
            match self.program.ops[self.next] {
                Op::Save { slot } => {
                    self.scratch.slots[slot as usize] = Slot {
                        value: self.last,
                        filled: self.last_filled,
                    };
                }
                Op::Clear { slot } => self.scratch.slots[slot as usize] = Slot::default(),
                Op::Role { .. } | Op::EventClassId | Op::Clock { .. } | Op::Uuid | Op::Deep => {}
                Op::Skip { align, bits } => {
                    let end = self.buffer.aligned(align).saturating_add(bits);
                    if self.stop.is_some() || !self.room(end) {
                        return;
                    }
                    self.buffer.pos = end;
                }
                _ => return,
            }
            self.next += 1;
        }
    }

    /// At the end of an element: whether another one follows, to which it goes.
    #[inline]
    fn element_end(&mut self) -> bool {
        let pos = self.buffer.pos;
        let Some(Frame {
            kind:
                FrameKind::Array {
                    field,
                    start,
                    remaining,
                    begin,
                },
            ..
        }) = self.scratch.frames.last_mut()
        else {
            return false;
        };
        if *remaining == 0 {
            return false;
        }
        *remaining -= 1;
        if *begin == pos {
            self.scratch.empty_elements += 1;
            if self.scratch.empty_elements > FREE_EMPTY_ELEMENTS {
                let field = *field;
                self.fail(field, "the packet has too many elements that take no space");
                return false;
            }
        }
        *begin = pos;
        if *remaining == 0 {
            return false;
        }
        self.next = *start;
        true
    }

    /// The field that comes next.
    fn field(&self) -> FieldId {
        match self.expected() {
            Expected::Value(field)
            | Expected::BeginStruct(field)
            | Expected::EndStruct(field)
            | Expected::BeginArray(field)
            | Expected::EndArray(field)
            | Expected::BeginOptional(field)
            | Expected::BeginVariant(field)
            | Expected::EndChoice(field) => field,
            Expected::End => FieldId(u32::MAX),
        }
    }

    /// Stops for what was given is not what comes next.
    #[cold]
    fn unexpected(&mut self, given: &str) {
        let expected = self.expected();
        let what = match expected {
            Expected::Value(_) => match self.program.ops.get(self.next) {
                Some(op) => value_name(op),
                None => "a value",
            },
            Expected::BeginStruct(_) => "a structure",
            Expected::EndStruct(_) => "the end of the structure",
            Expected::BeginArray(_) => "an array",
            Expected::EndArray(_) => "the end of the array",
            Expected::BeginOptional(_) => "an optional",
            Expected::BeginVariant(_) => "a variant",
            Expected::EndChoice(_) => "the end of what was selected",
            Expected::End => {
                self.refuse(WriteError::Misuse(format!(
                    "{given} is given beyond the last field of the event"
                )));
                return;
            }
        };
        let field = self.field();
        self.fail(field, format!("{given} is given, and here is {what}"));
    }

    #[cold]
    fn missing(&mut self) {
        let field = self.field();
        self.fail(field, "it is not given, nor what follows");
    }

    #[cold]
    pub(super) fn fail(&mut self, field: FieldId, problem: impl Into<String>) {
        self.refuse(WriteError::field(self.schema, field, problem));
    }

    #[cold]
    pub(super) fn refuse(&mut self, error: WriteError) {
        self.stop.get_or_insert(Stop::Error(error));
    }
}

impl Visitor for Encode<'_> {
    #[inline]
    fn uint(&mut self, _: FieldId, value: u64) {
        self.number(value, false);
    }

    #[inline]
    fn sint(&mut self, _: FieldId, value: i64) {
        self.number(value as u64, value < 0);
    }

    fn wide(&mut self, _: FieldId, value: Wide<'_>) {
        self.write_wide(value);
    }

    fn float(&mut self, _: FieldId, value: f64) {
        self.write_float(value);
    }

    fn float128(&mut self, _: FieldId, bits: u128) {
        self.write_float128(bits);
    }

    fn boolean(&mut self, _: FieldId, value: bool) {
        self.number(value.into(), false);
    }

    fn bits(&mut self, _: FieldId, value: u64) {
        self.number(value, false);
    }

    fn text(&mut self, _: FieldId, text: &[u8]) {
        self.write_text(text);
    }

    fn blob(&mut self, _: FieldId, bytes: &[u8]) {
        self.write_blob(bytes);
    }

    fn begin_struct(&mut self, _: FieldId) {
        if self.stop.is_some() {
            return;
        }
        match self.upcoming() {
            Some(&Op::BeginStruct { align, .. }) => {
                if self.align(align) {
                    self.step();
                }
            }
            _ => self.unexpected("a structure"),
        }
    }

    fn end_struct(&mut self, _: FieldId) {
        if self.stop.is_some() {
            return;
        }
        match self.upcoming() {
            Some(Op::EndStruct { .. }) => self.step(),
            _ => self.unexpected("the end of a structure"),
        }
    }

    fn begin_array(&mut self, _: FieldId, length: u64) {
        if self.stop.is_none() {
            self.begin_elements(length);
        }
    }

    fn end_array(&mut self, _: FieldId) {
        self.end_elements();
    }

    fn begin_optional(&mut self, _: FieldId, present: bool, _selector: u64) {
        if self.stop.is_some() {
            return;
        }
        let in_made_struct = self.made_choice(u64::from(present));
        if self.lenient && matches!(self.expected(), Expected::BeginArray(_)) {
            // RFC v1.1 has a sequence of nothing or of the content.
            return self.begin_elements(present.into());
        }
        let Some(&Op::Variant { slot, .. }) = self.upcoming().filter(|_| self.lenient) else {
            return self.choose(present.then_some(0), in_made_struct);
        };
        // Where a dialect has no optionals, they are variants of an empty structure and the
        // content: a selector that was given determines which is which, and one that is to be filled
        // in is not known yet.
        let option = match self.scratch.slots[slot as usize].filled {
            0 => self.reported_option().0,
            _ => Some(usize::from(present)),
        };
        self.choose(option, in_made_struct);
        if !present && self.stop.is_none() {
            self.begin_struct(FieldId(0));
            self.end_struct(FieldId(0));
        }
    }

    fn end_optional(&mut self, field: FieldId) {
        match self.expected() {
            Expected::EndArray(_) if self.lenient => self.end_elements(),
            _ => self.end_variant(field),
        }
    }

    fn begin_variant(&mut self, _: FieldId, selected: u32, _selector: u64) {
        match self.upcoming() {
            Some(Op::BeginStruct { .. }) if self.lenient && self.is_choice_of_sequences() => {
                self.begin_option(selected);
            }
            _ => self.begin_choice(Some(selected as usize)),
        }
    }

    fn end_variant(&mut self, _: FieldId) {
        if self.stop.is_some() {
            return;
        }
        match self.expected() {
            Expected::EndChoice(_) => self.leave(),
            Expected::EndArray(_) if self.lenient => self.end_option(),
            _ => self.unexpected("the end of what was selected"),
        }
    }
}

/// The field of a value.
fn value_field(op: &Op) -> Option<FieldId> {
    match op {
        Op::VarUint(at) | Op::VarSint(at) | Op::Text(at) => Some(at.field),
        Op::WideText { at, .. } | Op::SizedText { at, .. } | Op::Blob { at, .. } => Some(at.field),
        Op::F128(op) => Some(op.field),
        Op::Wide(op) => Some(op.field),
        op => Fixed::of(op).map(|fixed| fixed.field),
    }
}

/// What a value is called.
fn value_name(op: &Op) -> &'static str {
    match op {
        Op::VarUint(_) | Op::VarSint(_) => "an integer",
        Op::Text(_) | Op::WideText { .. } | Op::SizedText { .. } => "text",
        Op::Blob { .. } => "a BLOB",
        Op::Wide(_) => "an integer of more than 64 bits",
        Op::F128(_) => "a floating point number of 128 bits",
        op => match Fixed::of(op).map(|fixed| fixed.shown) {
            Some(Shown::Uint) => "an unsigned integer",
            Some(Shown::Sint) => "a signed integer",
            Some(Shown::Float) => "a floating point number",
            Some(Shown::Bool) => "a truth value",
            Some(Shown::Bits) => "bits",
            _ => "a sized value",
        },
    }
}
