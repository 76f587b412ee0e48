//! The plain decoder: a walk along the classes that reads bit by bit.

use std::collections::HashMap;

use kymo_machine::ByteOrder;
use kymo_model::FaultCode;

use super::Token;
use crate::class::{BitLayout, FieldClass, FieldPath, FieldRef, Length, Member, Step};

/// The plain decoder.
pub(super) struct Plain<'d> {
    pub(super) data: &'d [u8],
    pub(super) content_bits: u64,
    pub(super) pos: u64,
    pub(super) order: Option<ByteOrder>,
    /// Values of the event's integers by their path.
    pub(super) values: HashMap<FieldPath, u64>,
    pub(super) path: FieldPath,
    pub(super) tokens: Vec<Token>,
    pub(super) units: UnitsFrom,
}

/// From where the units of a bit field count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum UnitsFrom {
    Packet,
    Bit(u64),
    Itself,
}

/// Whether a class has a size that does not depend on the packet.
fn is_fixed(class: &FieldClass, is_member: bool) -> bool {
    match class {
        FieldClass::Struct { members, .. } => members.iter().all(|m| is_fixed(&m.class, true)),
        FieldClass::Array {
            element,
            length: Length::Static(length),
            ..
        } => *length == 0 || is_fixed(element, false),
        FieldClass::SizedText {
            length: Length::Static(_),
            ..
        }
        | FieldClass::Blob {
            length: Length::Static(_),
            ..
        } => true,
        class => class
            .layout()
            .is_some_and(|layout| is_member || layout.unit.is_none()),
    }
}

impl Plain<'_> {
    fn align(&mut self, align: u32) -> Result<(), FaultCode> {
        let at = self.pos.next_multiple_of(align.into());
        if at > self.content_bits {
            return Err(FaultCode::BeyondContent);
        }
        self.pos = at;
        Ok(())
    }

    fn bit(&self, at: u64, order: ByteOrder) -> u64 {
        let byte = self.data[(at / 8) as usize];
        u64::from(match order {
            ByteOrder::Little => byte >> (at % 8) & 1,
            ByteOrder::Big => byte >> (7 - at % 8) & 1,
        })
    }

    fn fixed(&mut self, layout: &BitLayout) -> Result<u64, FaultCode> {
        let bits = self.places(layout)?;
        Ok(bits.iter().fold(0, |value, bit| value << 1 | bit))
    }

    /// The bits of a field, the most significant one first.
    fn places(&mut self, layout: &BitLayout) -> Result<Vec<u64>, FaultCode> {
        let mut at = self.pos.next_multiple_of(layout.align.into());
        let size = u64::from(layout.bits);
        let from = match self.units {
            UnitsFrom::Packet => 0,
            UnitsFrom::Bit(bit) => bit,
            UnitsFrom::Itself => at,
        };
        if let Some(unit) = layout.unit
            && (at - from) % u64::from(unit) + size > u64::from(unit)
        {
            at = from + (at - from).next_multiple_of(unit.into());
        }
        if at + size > self.content_bits {
            return Err(FaultCode::BeyondContent);
        }
        if at % 8 != 0 && self.order.is_some_and(|order| order != layout.order) {
            return Err(FaultCode::ByteOrderChange);
        }
        self.order = Some(layout.order);
        let mut bits: Vec<u64> = (at..at + size)
            .map(|at| self.bit(at, layout.order))
            .collect();
        if (layout.order == ByteOrder::Little) != layout.reversed {
            bits.reverse();
        }
        self.tokens.push(Token::At(at));
        self.pos = at + size;
        Ok(bits)
    }

    fn note(&mut self, value: u64) {
        self.values.insert(self.path.clone(), value);
    }

    fn look_up(&self, reference: &FieldRef) -> u64 {
        self.values.get(&reference.targets[0]).copied().unwrap_or(0)
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, FaultCode> {
        let begin = self.pos / 8;
        if length > self.content_bits / 8 || begin + length > self.content_bits / 8 {
            return Err(FaultCode::BeyondContent);
        }
        self.pos += length * 8;
        Ok(self.data[begin as usize..(begin + length) as usize].to_vec())
    }

    fn report(&mut self, token: Token) {
        self.tokens.push(token);
        self.tokens.push(Token::At(self.pos));
    }

    fn begin(&mut self, token: Token) {
        self.tokens.push(Token::At(self.pos));
        self.tokens.push(token);
    }

    fn part(&mut self, step: Step, class: &FieldClass) -> Result<(), FaultCode> {
        self.path.steps.push(step);
        let result = self.class(class);
        self.path.steps.pop();
        self.units = UnitsFrom::Packet;
        result
    }

    fn members(&mut self, class: &FieldClass, members: &[Member]) -> Result<(), FaultCode> {
        // The structure's beginning, or the end of the last member of which the size or place
        // depends on the packet.
        let mut from = self.pos;
        let mut is_whole = true;
        for (position, member) in members.iter().enumerate() {
            let is_placed = is_whole || member.class.begin_align() == 1;
            if let Some(unit) = member.class.layout().and_then(|layout| layout.unit) {
                self.units = match is_placed {
                    _ if !is_whole && unit <= class.align() => UnitsFrom::Packet,
                    true => UnitsFrom::Bit(from),
                    false => UnitsFrom::Itself,
                };
            }
            let from_packet = self.units == UnitsFrom::Packet;
            let has_unit = member.class.layout().is_some_and(|l| l.unit.is_some());
            self.part(Step::Child(position), &member.class)?;
            if !is_placed || !is_fixed(&member.class, true) || has_unit && from_packet {
                (from, is_whole) = (self.pos, false);
            }
        }
        Ok(())
    }

    fn length(&mut self, length: &Length) -> Result<u64, FaultCode> {
        Ok(match length {
            Length::Static(length) => *length,
            Length::Dynamic(reference) => self.look_up(reference),
            Length::Inline(class) => {
                let FieldClass::Integer { layout, .. } = &**class else {
                    panic!("a length is an integer");
                };
                let length = self.fixed(layout)?;
                // It is not a field, so its position is not reported.
                self.tokens.pop();
                length
            }
        })
    }

    pub(super) fn class(&mut self, class: &FieldClass) -> Result<(), FaultCode> {
        if class.layout().is_none() {
            self.units = UnitsFrom::Packet;
        }
        match class {
            FieldClass::Integer { layout, style } if layout.bits > 64 => {
                let mut bits = self.places(layout)?;
                let above = if style.signed { bits[0] } else { 0 };
                while bits.len() % 8 != 0 {
                    bits.insert(0, above);
                }
                let byte = |bits: &[u64]| bits.iter().fold(0, |byte, &bit| byte << 1 | bit as u8);
                self.report(Token::Wide(bits.chunks(8).map(byte).collect()));
            }
            FieldClass::Integer { layout, style } => {
                let value = self.fixed(layout)?;
                if style.signed {
                    let unused = 64 - layout.bits;
                    let value = (value << unused) as i64 >> unused;
                    self.note(value as u64);
                    self.report(Token::Sint(value));
                } else {
                    self.note(value);
                    self.report(Token::Uint(value));
                }
            }
            FieldClass::BitArray(layout) => {
                let value = self.fixed(layout)?;
                self.report(Token::Bits(value));
            }
            FieldClass::Bool(layout) => {
                let value = self.fixed(layout)?;
                self.note(value);
                self.report(Token::Bool(value != 0));
            }
            FieldClass::Float(layout) => {
                let value = self.fixed(layout)?;
                let value = match layout.bits {
                    32 => f64::from(f32::from_bits(value as u32)),
                    _ => f64::from_bits(value),
                };
                self.report(Token::Float(if value.is_nan() {
                    u64::MAX
                } else {
                    value.to_bits()
                }));
            }
            FieldClass::VarInteger(style) => {
                self.align(8)?;
                let begin = self.pos;
                let mut bits = Vec::new();
                loop {
                    let byte = self.bytes(1)?[0];
                    bits.extend((0..7).map(|bit| byte >> bit & 1));
                    if byte & 0x80 == 0 {
                        break;
                    }
                    // The fast decoder gives up at the first byte that cannot belong.
                    if bits.len() == 70 {
                        return Err(FaultCode::IntegerTooLong);
                    }
                }
                if !fits(&bits, style.signed) {
                    return Err(FaultCode::IntegerTooLong);
                }
                let sign = style.signed && bits.last() == Some(&1);
                bits.resize(64, u8::from(sign));
                let value = bits
                    .iter()
                    .rev()
                    .fold(0, |value, &bit| value << 1 | u64::from(bit));
                self.note(value);
                self.tokens.push(Token::At(begin));
                self.report(if style.signed {
                    Token::Sint(value as i64)
                } else {
                    Token::Uint(value)
                });
            }
            FieldClass::Text { align, .. } => {
                self.align(*align)?;
                let begin = self.pos;
                let mut text = Vec::new();
                loop {
                    match self.bytes(1)?[0] {
                        0 => break,
                        byte => text.push(byte),
                    }
                }
                self.tokens.push(Token::At(begin));
                self.report(Token::Text(text));
            }
            FieldClass::SizedText { length, align, .. } => {
                let length = self.length(length)?;
                self.align(*align)?;
                let begin = self.pos;
                let mut text = self.bytes(length)?;
                text.truncate(
                    text.iter()
                        .position(|&byte| byte == 0)
                        .unwrap_or(text.len()),
                );
                self.tokens.push(Token::At(begin));
                self.report(Token::Text(text));
            }
            FieldClass::Blob { length, .. } => {
                let length = self.length(length)?;
                self.align(8)?;
                let begin = self.pos;
                let bytes = self.bytes(length)?;
                self.tokens.push(Token::At(begin));
                self.report(Token::Blob(bytes));
            }
            FieldClass::Struct { members, .. } => {
                self.align(class.align())?;
                self.begin(Token::BeginStruct);
                self.members(class, members)?;
                self.begin(Token::EndStruct);
            }
            FieldClass::Array {
                element,
                length,
                min_align,
                ..
            } => {
                let length = self.length(length)?;
                self.align(element.begin_align().max(*min_align))?;
                self.begin(Token::BeginArray(length));
                for _ in 0..length {
                    let mut path = self.path.steps.clone();
                    path.push(Step::Element);
                    self.values
                        .retain(|field, _| !field.steps.starts_with(&path));
                    self.part(Step::Element, element)?;
                }
                self.begin(Token::EndArray);
            }
            FieldClass::Optional {
                content,
                selector,
                when,
            } => {
                let value = self.look_up(selector);
                let present = when.contains(value);
                self.begin(Token::BeginOptional(present, value));
                if present {
                    self.units = UnitsFrom::Itself;
                    self.part(Step::Content, content)?;
                }
                self.begin(Token::EndOptional);
            }
            FieldClass::Variant { options, selector } => {
                let value = self.look_up(selector);
                let selected = options
                    .iter()
                    .position(|option| option.when.contains(value));
                let selected = selected.ok_or(FaultCode::NoVariantOption)?;
                self.begin(Token::BeginVariant(selected as u32, value));
                self.units = UnitsFrom::Itself;
                self.part(Step::Child(selected), &options[selected].class)?;
                self.begin(Token::EndVariant);
            }
            FieldClass::BitMap { .. } => panic!("not generated"),
        }
        Ok(())
    }
}

/// Whether the bits of a LEB128, lowest first, are those of a 64-bit number.
fn fits(bits: &[u8], signed: bool) -> bool {
    let Some(above) = bits.get(64..) else {
        return true;
    };
    let sign = if signed { bits[63] } else { 0 };
    above.iter().all(|&bit| bit == sign)
}
