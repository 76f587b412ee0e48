//! A slow, plain decoder that walks the classes bit by bit, and the test that the fast one
//! agrees with it on random classes and random data.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::batch::{ColumnSource, ColumnType, Columns, DataType, WantedColumn};
use kymo_model::{
    BlockQuery, Cursor, Event, EventBlock, EventCounts, EventHeaders, EventVisitor, Fault,
    FaultCode, FieldId, Interest, Scope, Value, ValueCounter, Visitor, Wide,
};
use kymo_time::Timestamp;
use proptest::prelude::*;

use super::{Decoder, PacketCursor, PacketEvent};
use crate::any::structure_of;
use crate::class::{
    BitLayout, Dialect, Encoding, EventRecordClass, FieldClass, FieldPath, FieldRef, IntegerStyle,
    Length, Member, Selector, Step, StreamClass, TraceClass, VariantOption,
};

/// What a decoder reports, one after another.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Uint(u64),
    Sint(i64),
    Wide(Vec<u8>),
    Float(u64),
    Bool(bool),
    Bits(u64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
    BeginStruct,
    EndStruct,
    BeginArray(u64),
    EndArray,
    BeginOptional(bool, u64),
    EndOptional,
    BeginVariant(u32, u64),
    EndVariant,
    At(u64),
}

#[derive(Default)]
struct Recorder(Vec<Token>);

impl Visitor for Recorder {
    const POSITIONS: bool = true;

    fn at(&mut self, bit: u64) {
        self.0.push(Token::At(bit));
    }
    fn after(&mut self, bit: u64) {
        self.0.push(Token::At(bit));
    }
    fn uint(&mut self, _: FieldId, value: u64) {
        self.0.push(Token::Uint(value));
    }
    fn sint(&mut self, _: FieldId, value: i64) {
        self.0.push(Token::Sint(value));
    }
    fn wide(&mut self, _: FieldId, value: Wide<'_>) {
        self.0.push(Token::Wide(value.bytes().to_vec()));
    }
    fn float(&mut self, _: FieldId, value: f64) {
        // All NaNs are one: widening may change their bits.
        self.0.push(Token::Float(if value.is_nan() {
            u64::MAX
        } else {
            value.to_bits()
        }));
    }
    fn boolean(&mut self, _: FieldId, value: bool) {
        self.0.push(Token::Bool(value));
    }
    fn bits(&mut self, _: FieldId, value: u64) {
        self.0.push(Token::Bits(value));
    }
    fn text(&mut self, _: FieldId, text: &[u8]) {
        self.0.push(Token::Text(text.to_vec()));
    }
    fn blob(&mut self, _: FieldId, bytes: &[u8]) {
        self.0.push(Token::Blob(bytes.to_vec()));
    }
    fn begin_struct(&mut self, _: FieldId) {
        self.0.push(Token::BeginStruct);
    }
    fn end_struct(&mut self, _: FieldId) {
        self.0.push(Token::EndStruct);
    }
    fn begin_array(&mut self, _: FieldId, length: u64) {
        self.0.push(Token::BeginArray(length));
    }
    fn end_array(&mut self, _: FieldId) {
        self.0.push(Token::EndArray);
    }
    fn begin_optional(&mut self, _: FieldId, present: bool, selector: u64) {
        self.0.push(Token::BeginOptional(present, selector));
    }
    fn end_optional(&mut self, _: FieldId) {
        self.0.push(Token::EndOptional);
    }
    fn begin_variant(&mut self, _: FieldId, selected: u32, selector: u64) {
        self.0.push(Token::BeginVariant(selected, selector));
    }
    fn end_variant(&mut self, _: FieldId) {
        self.0.push(Token::EndVariant);
    }
}

/// The plain decoder.
struct Plain<'d> {
    data: &'d [u8],
    content_bits: u64,
    pos: u64,
    order: Option<ByteOrder>,
    /// Values of the event's integers by their path.
    values: HashMap<FieldPath, u64>,
    path: FieldPath,
    tokens: Vec<Token>,
    units: UnitsFrom,
}

/// From where the units of a bit field count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum UnitsFrom {
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

    fn class(&mut self, class: &FieldClass) -> Result<(), FaultCode> {
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

fn order() -> impl Strategy<Value = ByteOrder> {
    // Mostly one order: a change within a byte ends an event.
    prop_oneof![9 => Just(ByteOrder::Little), 1 => Just(ByteOrder::Big)]
}

pub(crate) fn layout() -> impl Strategy<Value = BitLayout> {
    let bits = prop_oneof![1u32..=64, Just(8), Just(16), Just(32), Just(64)];
    let unit = prop_oneof![6 => Just(None), 1 => Just(Some(64u32))];
    (bits, 0u32..7, order(), prop::bool::weighted(0.1), unit).prop_map(
        |(bits, align, order, reversed, unit)| BitLayout {
            bits,
            align: 1 << align,
            order,
            reversed,
            // As small as it can be, half of the time.
            unit: unit.map(|unit| match align {
                0 | 2 | 5 => bits.next_power_of_two(),
                _ => unit,
            }),
        },
    )
}

/// The same of more than 64 bits.
fn wide_layout() -> impl Strategy<Value = BitLayout> {
    (layout(), 65u32..=300).prop_map(|(layout, bits)| BitLayout {
        bits,
        unit: layout.unit.map(|_| 512),
        ..layout
    })
}

pub(crate) fn style(signed: bool) -> IntegerStyle {
    IntegerStyle {
        signed,
        ..IntegerStyle::default()
    }
}

fn leaf() -> impl Strategy<Value = FieldClass> {
    prop_oneof![
        4 => (layout(), any::<bool>()).prop_map(|(layout, signed)| FieldClass::Integer { layout, style: style(signed) }),
        1 => (wide_layout(), any::<bool>()).prop_map(|(layout, signed)| FieldClass::Integer { layout, style: style(signed) }),
        1 => layout().prop_map(FieldClass::BitArray),
        1 => layout().prop_map(FieldClass::Bool),
        1 => (layout(), any::<bool>()).prop_map(|(layout, double)| FieldClass::Float(BitLayout {
            bits: if double { 64 } else { 32 },
            unit: layout.unit.map(|_| 64),
            ..layout
        })),
        1 => any::<bool>().prop_map(|signed| FieldClass::VarInteger(style(signed))),
        1 => Just(FieldClass::Text { encoding: Encoding::Utf8, align: 8 }),
        1 => (0u64..5, 3u32..6).prop_map(|(length, align)| FieldClass::SizedText {
            length: Length::Static(length),
            encoding: Encoding::Utf8,
            align: 1 << align,
        }),
        1 => (0u64..5).prop_map(|length| FieldClass::Blob {
            length: Length::Static(length),
            media_type: String::new(),
            roles: Vec::new(),
        }),
    ]
}

pub(crate) fn any_class() -> impl Strategy<Value = FieldClass> {
    leaf().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..5), 0u32..6)
                .prop_map(|(members, align)| structure_of(members, 1 << align)),
            (inner.clone(), 0u64..4, 0u32..6).prop_map(|(element, length, align)| {
                FieldClass::Array {
                    element: Box::new(element),
                    length: Length::Static(length),
                    min_align: 1 << align,
                    roles: Vec::new(),
                }
            }),
            (inner, layout(), 1u32..=3).prop_map(|(element, layout, bits)| FieldClass::Array {
                element: Box::new(element),
                length: Length::Inline(Box::new(FieldClass::Integer {
                    layout: BitLayout {
                        bits,
                        unit: layout.unit.map(|_| 8),
                        ..layout
                    },
                    style: style(false),
                })),
                min_align: 1,
                roles: Vec::new(),
            }),
        ]
    })
}

/// What the last member of the payload does with the integer that is its first one.
fn dependent() -> impl Strategy<Value = FieldClass> {
    let first = || FieldRef {
        targets: vec![FieldPath {
            scope: Scope::Payload,
            steps: vec![Step::Child(0)],
        }],
    };
    prop_oneof![
        any_class().prop_map(move |element| FieldClass::Array {
            element: Box::new(element),
            length: Length::Dynamic(first()),
            min_align: 1,
            roles: Vec::new(),
        }),
        Just(FieldClass::SizedText {
            length: Length::Dynamic(first()),
            encoding: Encoding::Utf8,
            align: 8
        }),
        Just(FieldClass::Blob {
            length: Length::Dynamic(first()),
            media_type: String::new(),
            roles: Vec::new()
        }),
        any_class().prop_map(move |content| FieldClass::Optional {
            content: Box::new(content),
            selector: first(),
            when: Selector::Unsigned(vec![(1, 1), (3, 9)]),
        }),
        (any_class(), any_class()).prop_map(move |(one, two)| FieldClass::Variant {
            options: vec![
                VariantOption {
                    name: None,
                    class: one,
                    when: Selector::Unsigned(vec![(0, 1), (4, 4)])
                },
                VariantOption {
                    name: Some("two".into()),
                    class: two,
                    when: Selector::Unsigned(vec![(2, 3)])
                },
            ],
            selector: first(),
        }),
    ]
}

pub(crate) fn payload() -> impl Strategy<Value = FieldClass> {
    let selector = (layout(), 1u32..=3).prop_map(|(layout, bits)| FieldClass::Integer {
        layout: BitLayout {
            bits,
            unit: layout.unit.map(|_| 8),
            ..layout
        },
        style: style(false),
    });
    (
        selector,
        prop::collection::vec(any_class(), 0..4),
        dependent(),
    )
        .prop_map(|(selector, mut members, last)| {
            members.insert(0, selector);
            members.push(last);
            structure_of(members, 1)
        })
}

/// A trace with one event class.
pub(crate) fn trace(payload: FieldClass) -> TraceClass {
    let event = EventRecordClass {
        id: 0,
        namespace: None,
        name: None,
        uid: None,
        log_level: None,
        emf_uri: None,
        specific_context: None,
        payload: Some(payload),
        attributes: Vec::new(),
    };
    let stream = StreamClass {
        id: 0,
        namespace: None,
        name: None,
        uid: None,
        clock: None,
        packet_context: None,
        event_header: None,
        common_context: None,
        events: vec![event],
        attributes: Vec::new(),
    };
    TraceClass {
        dialect: Dialect::Ctf2,
        namespace: None,
        name: None,
        uid: None,
        uuid: None,
        byte_order: None,
        environment: Vec::new(),
        packet_header: None,
        clocks: Vec::new(),
        streams: vec![stream],
        attributes: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_flat_program_decodes_what_the_plain_walk_decodes(
        payload in payload(),
        data in prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..200),
        cut in 0u64..8,
    ) {
        let class = Arc::new(payload);
        let decoder = Decoder::new(&trace((*class).clone())).unwrap();
        let content_bits = (data.len() as u64 * 8).saturating_sub(cut);
        let head = decoder.packet_head(&data).unwrap();

        let mut plain = Plain {
            data: &data,
            content_bits,
            pos: 0,
            order: None,
            values: HashMap::new(),
            path: FieldPath { scope: Scope::Payload, steps: Vec::new() },
            tokens: Vec::new(),
            units: UnitsFrom::Packet,
        };
        let mut cursor = decoder.cursor(&data, &head, content_bits, 0);
        // One that decodes nothing must come by the same events.
        let mut skipping = decoder.cursor(&data, &head, content_bits, 0);
        // The packet does not state its size: the rest of a byte may not belong to an event.
        let ends = |pos: u64| {
            let next = pos.next_multiple_of(class.align().into());
            pos >= content_bits || next >= content_bits && content_bits - pos < 8
        };
        while !ends(plain.pos) {
            let begin = plain.pos;
            plain.tokens.clear();
            plain.values.clear();
            let expected = plain.class(&class);

            let event = cursor.next_event().unwrap().unwrap();
            prop_assert_eq!(event.begin_bit(), begin);
            let mut recorder = Recorder::default();
            let found = event.visit(&mut recorder).map_err(|fault| fault.code);
            prop_assert_eq!(&found, &expected);
            if expected.is_err() {
                // The position of a bit field is reported only if the field is there.
                let shorter = recorder.0.len().min(plain.tokens.len());
                prop_assert_eq!(&recorder.0[..shorter], &plain.tokens[..shorter]);
                return Ok(());
            }
            prop_assert_eq!(&recorder.0, &plain.tokens);
            prop_assert_eq!(skipping.next_event().unwrap().unwrap().begin_bit(), begin);
            if plain.pos == begin {
                prop_assert_eq!(cursor.next_event().unwrap_err().code, FaultCode::EmptyEvent);
                return Ok(());
            }
        }
        prop_assert!(cursor.next_event().unwrap().is_none());
    }
}

/// The numbers of wanted fields: those whose bit, by position, is in the set.
struct Numbers {
    wanted: u32,
    reported: Vec<(FieldId, u64)>,
}

impl Numbers {
    fn add(&mut self, field: FieldId, value: u64) {
        if is_wanted_field(self.wanted, field) {
            self.reported.push((field, value));
        }
    }
}

/// The texts of fields.
#[derive(Default)]
struct Texts(Vec<(FieldId, Vec<u8>)>);

impl Visitor for Texts {
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.0.push((field, text.to_vec()));
    }
}

fn is_wanted_field(wanted: u32, field: FieldId) -> bool {
    wanted >> (field.index() % 32) & 1 == 1
}

impl Visitor for Numbers {
    fn uint(&mut self, field: FieldId, value: u64) {
        self.add(field, value);
    }
    fn sint(&mut self, field: FieldId, value: i64) {
        self.add(field, value as u64);
    }
    fn float(&mut self, field: FieldId, value: f64) {
        self.add(
            field,
            if value.is_nan() {
                u64::MAX
            } else {
                value.to_bits()
            },
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_narrow_program_reports_what_the_whole_one_reports_of_wanted_fields(
        first in prop::collection::vec(any_class(), 0..4),
        payload in payload(),
        data in prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..200),
        cut in 0u64..8,
        wanted: u32,
    ) {
        let mut class = trace(payload);
        class.streams[0].common_context = Some(structure_of(first, 1));
        let decoder = Decoder::new(&class).unwrap();
        let content_bits = (data.len() as u64 * 8).saturating_sub(cut);
        let head = decoder.packet_head(&data).unwrap();
        let mut whole = decoder.cursor(&data, &head, content_bits, 0);
        let mut narrow = decoder.cursor(&data, &head, content_bits, 0);
        narrow.narrow(Arc::new(decoder.narrow(&|_, field| is_wanted_field(wanted, field))));
        let new = || Numbers { wanted, reported: Vec::new() };
        loop {
            let (one, two) = (whole.next_event(), narrow.next_event());
            let (Ok(Some(one)), Ok(Some(two))) = (&one, &two) else {
                let code = |it: Result<Option<_>, kymo_model::Fault>| it.map(|it| it.is_some()).map_err(|it| it.code);
                prop_assert_eq!(code(one), code(two));
                break;
            };
            prop_assert_eq!(one.begin_bit(), two.begin_bit());
            let (mut all, mut some) = (new(), new());
            let (of_whole, of_narrow) = (one.visit(&mut all), two.visit(&mut some));
            prop_assert_eq!(of_whole.map_err(|it| it.code), of_narrow.map_err(|it| it.code));
            if of_whole.is_err() {
                break;
            }
            prop_assert_eq!(all.reported, some.reported);
        }
    }
}

/// A cursor that has no faster way to blocks than the events themselves.
struct OneByOne<'a>(PacketCursor<'a>);

impl<'a> Cursor for OneByOne<'a> {
    type Event<'e>
        = PacketEvent<'e>
    where
        Self: 'e;

    fn next_event(&mut self) -> Result<Option<PacketEvent<'_>>, Fault> {
        self.0.next_event()
    }
}

/// Keeps the numbers of events that it visits.
struct Visited {
    wanted: u32,
    reported: Vec<(u64, Vec<(FieldId, u64)>)>,
}

impl EventVisitor for Visited {
    fn event<E: Event>(&mut self, event: &E) -> Result<bool, Fault> {
        let mut numbers = Numbers {
            wanted: self.wanted,
            reported: Vec::new(),
        };
        event.visit(&mut numbers)?;
        self.reported.push((event.number(), numbers.reported));
        Ok(!self.reported.len().is_multiple_of(3))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_block_has_the_events_that_a_cursor_lends(
        first in prop::collection::vec(any_class(), 0..3),
        payload in payload(),
        data in prop::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..200),
        cut in 0u64..8,
        [is_wanted, is_decoded, is_visited, is_narrow]: [bool; 4],
        numbers in (0u64..3, 2u64..40),
        most in prop_oneof![1usize..9, Just(100)],
        wanted: u32,
        header in prop::option::of(any::<(bool, bool)>()),
        wants_ends: bool,
    ) {
        let mut class = trace(payload);
        class.streams[0].common_context = Some(structure_of(first, 1));
        if let Some((is_large, is_big)) = header {
            let of_lttng = super::header::tests::class(if is_big { "be" } else { "le" }, is_large);
            class.clocks = of_lttng.clocks.clone();
            let stream = &mut class.streams[0];
            let of_lttng = &of_lttng.streams[0];
            stream.event_header = of_lttng.event_header.clone();
            let event = stream.events[0].clone();
            stream.events = (0..3).map(|id| EventRecordClass { id, ..event.clone() }).collect();
            stream.clock = of_lttng.clock;
        }
        let decoder = Decoder::new(&class).unwrap();
        let content_bits = (data.len() as u64 * 8).saturating_sub(cut);
        let head = decoder.packet_head(&data).unwrap();
        let cursor = || {
            let mut cursor = decoder.cursor(&data, &head, content_bits, 0);
            if is_narrow {
                cursor.narrow(Arc::new(decoder.narrow(&|_, field| is_wanted_field(wanted, field))));
            }
            cursor
        };
        let query = BlockQuery {
            interests: &[
                Interest { is_wanted, is_decoded, is_visited, wants_ends },
                Interest { is_wanted: true, is_decoded: true, wants_ends, ..Interest::default() },
            ],
            numbers: if is_narrow { 0..u64::MAX } else { numbers.0..numbers.1 },
            window: (Timestamp::MIN, Timestamp::MAX),
        };
        let (mut plain, mut fast) = (OneByOne(cursor()), cursor());
        let new = || (EventBlock::default(), Visited { wanted, reported: Vec::new() });
        let ((mut one, mut of_one), (mut two, mut of_two)) = (new(), new());
        loop {
            let before = two.len();
            let goes_on = plain.walk_block(&query, most, &mut one, &mut of_one);
            prop_assert_eq!(&goes_on, &fast.walk_block(&query, most, &mut two, &mut of_two));
            prop_assert_eq!((&one.times, &one.ticks, &one.classes), (&two.times, &two.ticks, &two.classes));
            prop_assert_eq!((&one.numbers, one.at), (&two.numbers, two.at));
            prop_assert_eq!(two.len() - before, two.bases.len());
            prop_assert_eq!(&of_one.reported, &of_two.reported);
            // Values are at their places.
            for row in 0..two.bases.len() {
                let (number, class) = (two.numbers[before + row], two.classes[before + row] as usize);
                if is_narrow || class == 0 && !is_decoded {
                    continue;
                }
                let mut events = decoder.cursor(&data, &head, content_bits, 0);
                (0..number).for_each(|_| drop(events.next_event()));
                let event = events.next_event().unwrap().unwrap();
                let mut reported = Numbers { wanted: u32::MAX, reported: Vec::new() };
                let mut texts = Texts::default();
                event.visit(&mut reported).unwrap();
                event.visit(&mut texts).unwrap();
                let gather = |field, data_type| {
                    let place = decoder.place(class, field)?;
                    let base = match place.base.checked_sub(1) {
                        None => two.bases[row],
                        Some(_) if !wants_ends => return None,
                        Some(end) => {
                            let end = two.ends[two.first_ends[row] + end];
                            (end + place.mask) & !place.mask
                        }
                    };
                    let schema = &decoder.event_classes()[class].schema;
                    let wanted = WantedColumn {
                        column: ColumnType { name: "".into(), data_type },
                        source: ColumnSource::Gathered,
                    };
                    let mut columns = Columns::new(schema, &[wanted]).with_raw_texts();
                    columns.gather_each(0, fast.bytes(), std::iter::once((base, Some(place))));
                    Some(columns)
                };
                for (field, value) in reported.reported {
                    let is = |data_type| {
                        let columns = gather(field, data_type);
                        columns.is_none_or(|columns| match columns.value(0, 0) {
                            Value::Uint(is) => is == value,
                            Value::Sint(is) => is as u64 == value,
                            Value::Float(is) => is.to_bits() == value || is.is_nan() && value == u64::MAX,
                            _ => false,
                        })
                    };
                    prop_assert!(is(DataType::Uint64) || is(DataType::Int64) || is(DataType::Float64));
                }
                for (field, text) in texts.0 {
                    let columns = gather(field, DataType::Text);
                    prop_assert!(columns.is_none_or(|columns| columns.value(0, 0) == Value::Text(&text)));
                }
            }
            if goes_on != Ok(true) {
                break;
            }
        }
        prop_assert_eq!(fast.walk_block(&query, most, &mut two, &mut of_two), Ok(false), "the walk has ended");

        let (mut one, mut two) = (EventHeaders::default(), EventHeaders::default());
        prop_assert_eq!(OneByOne(cursor()).walk_headers(&mut one), cursor().walk_headers(&mut two));
        prop_assert_eq!((one.times, one.classes, one.begins), (two.times, two.classes, two.begins));

        let (mut one, mut two) = (EventCounts::default(), EventCounts::default());
        prop_assert_eq!(OneByOne(cursor()).count_events(&mut one), cursor().count_events(&mut two));
        prop_assert_eq!((one.events, one.values, one.at), (two.events, two.values, two.at));
        prop_assert_eq!(one.order.last_ticks(), two.order.last_ticks());
        prop_assert_eq!(one.order.backwards(Some(3)), two.order.backwards(Some(3)));

        let (mut counting, mut visiting) = (cursor(), cursor());
        while let (Ok(Some(one)), Ok(Some(two))) = (counting.next_event(), visiting.next_event()) {
            let (mut count, mut counter) = (0, ValueCounter(0));
            let visited = two.visit(&mut counter);
            prop_assert_eq!(one.count_values(&mut count), visited);
            prop_assert!(is_narrow || count == counter.0, "{} values, not {}", counter.0, count);
            if visited.is_err() {
                break;
            }
        }
    }
}
