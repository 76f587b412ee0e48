//! Random classes of fields, and a trace whose events have them.

use kymo_machine::ByteOrder;
use kymo_model::Scope;
use proptest::prelude::*;

use crate::any::structure_of;
use crate::class::{
    BitLayout, Dialect, Encoding, EventRecordClass, FieldClass, FieldPath, FieldRef, IntegerStyle,
    Length, Selector, Step, StreamClass, TraceClass, VariantOption,
};

fn order() -> impl Strategy<Value = ByteOrder> {
    // Mostly one order: a change within a byte ends an event.
    prop_oneof![9 => Just(ByteOrder::Little), 1 => Just(ByteOrder::Big)]
}

fn layout() -> impl Strategy<Value = BitLayout> {
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

fn style(signed: bool) -> IntegerStyle {
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

pub(super) fn any_class() -> impl Strategy<Value = FieldClass> {
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
