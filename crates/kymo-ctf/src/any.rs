//! Any class model: what properties are asked of.

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Flag, Labels, Mapping, Scope};
use kymo_time::{Clock, Origin};
use proptest::prelude::*;

use crate::class::{
    BitLayout, Dialect, Encoding, EnvironmentValue, EventRecordClass, FieldClass, FieldPath,
    FieldRef, IntegerStyle, Length, Member, Role, Selector, Step, StreamClass, TraceClass,
    VariantOption,
};
use crate::metadata::ctf2;

/// Class models without references; those are added with [`with_references`].
fn leaf() -> impl Strategy<Value = FieldClass> {
    let layout = || {
        (1u32..=64, 0u32..8, any::<bool>(), any::<bool>()).prop_map(
            |(bits, align, big, reversed)| BitLayout {
                bits,
                align: 1 << align,
                order: if big {
                    ByteOrder::Big
                } else {
                    ByteOrder::Little
                },
                reversed,
                unit: None,
            },
        )
    };
    let wide = (layout(), 65u32..=4096, any::<bool>()).prop_map(|(layout, bits, signed)| {
        FieldClass::Integer {
            layout: BitLayout { bits, ..layout },
            style: IntegerStyle {
                signed,
                ..IntegerStyle::default()
            },
        }
    });
    let encoding = || {
        prop::sample::select(vec![
            Encoding::Utf8,
            Encoding::Utf16Le,
            Encoding::Utf16Be,
            Encoding::Utf32Le,
            Encoding::Utf32Be,
        ])
    };
    let flags = prop::collection::btree_map(".{0,5}", ranges(), 1..4).prop_map(|flags| {
        let flag = |(name, ranges): (String, _)| Flag {
            name: name.into(),
            ranges,
        };
        flags.into_iter().map(flag).collect::<Arc<[Flag]>>()
    });
    let float = (layout(), prop::sample::select(vec![16, 32, 64, 128]));
    prop_oneof![
        layout().prop_map(FieldClass::BitArray),
        (layout(), flags).prop_map(|(layout, flags)| FieldClass::BitMap { layout, flags }),
        layout().prop_map(FieldClass::Bool),
        (layout(), style()).prop_map(|(layout, style)| FieldClass::Integer { layout, style }),
        wide,
        style().prop_map(FieldClass::VarInteger),
        float.prop_map(|(layout, bits)| FieldClass::Float(BitLayout { bits, ..layout })),
        encoding().prop_map(|encoding| FieldClass::Text { encoding, align: 8 }),
        (encoding(), any::<u64>()).prop_map(|(encoding, length)| FieldClass::SizedText {
            length: Length::Static(length),
            encoding,
            align: 8,
        }),
        (any::<u64>(), ".{0,5}").prop_map(|(length, media_type)| FieldClass::Blob {
            length: Length::Static(length),
            media_type,
            roles: Vec::new(),
        }),
    ]
}

fn ranges() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let range = (any::<u64>(), any::<u64>()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop::collection::vec(range, 1..3)
}

fn style() -> impl Strategy<Value = IntegerStyle> {
    let base = prop::sample::select(vec![
        Base::Binary,
        Base::Octal,
        Base::Decimal,
        Base::Hexadecimal,
    ]);
    let labels = prop::option::of(prop::collection::btree_map(".{0,5}", ranges(), 0..4));
    (any::<bool>(), base, labels).prop_map(|(signed, base, labels)| {
        let mapping = |(label, ranges): (String, Vec<(u64, u64)>)| {
            // In the order of signed numbers.
            let flip = u64::from(signed) << 63;
            let ranges = ranges.iter().map(|(low, high)| (low ^ flip, high ^ flip));
            Mapping {
                label: label.into(),
                ranges: ranges.collect(),
            }
        };
        IntegerStyle {
            signed,
            base,
            labels: labels.map(|labels| {
                Arc::new(Labels::new(
                    signed,
                    labels.into_iter().map(mapping).collect(),
                ))
            }),
            roles: Vec::new(),
        }
    })
}

pub(crate) fn structure_of(classes: Vec<FieldClass>, min_align: u32) -> FieldClass {
    let members = classes
        .into_iter()
        .enumerate()
        .map(|(position, class)| Member {
            name: format!("m{position}").into(),
            class,
            attributes: Vec::new(),
        })
        .collect();
    FieldClass::Struct { members, min_align }
}

pub(crate) fn any_class() -> impl Strategy<Value = FieldClass> {
    leaf().prop_recursive(3, 16, 4, |inner| {
        let classes = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            (classes, 0u32..8).prop_map(|(classes, align)| structure_of(classes, 1 << align)),
            (inner, 0u64..5, 0u32..8).prop_map(|(element, length, align)| FieldClass::Array {
                element: Box::new(element),
                length: Length::Static(length),
                min_align: 1 << align,
                roles: Vec::new(),
            }),
        ]
    })
}

/// A key of each kind, and what refers to it. `way` leads to the structure; its members begin
/// at `first`.
fn references(content: FieldClass, scope: Scope, first: usize) -> Vec<FieldClass> {
    let layout = BitLayout {
        bits: 8,
        align: 8,
        order: ByteOrder::Big,
        reversed: false,
        unit: None,
    };
    let integer = |signed| FieldClass::Integer {
        layout,
        style: IntegerStyle {
            signed,
            ..IntegerStyle::default()
        },
    };
    let to = |member: usize| FieldRef {
        targets: vec![FieldPath {
            scope,
            steps: vec![Step::Child(first + member)],
        }],
    };
    let option = |when, name: Option<&str>| VariantOption {
        name: name.map(Arc::from),
        class: content.clone(),
        when,
    };
    vec![
        integer(false),
        integer(true),
        FieldClass::Bool(layout),
        FieldClass::Array {
            element: Box::new(content.clone()),
            length: Length::Dynamic(to(0)),
            min_align: 1,
            roles: Vec::new(),
        },
        FieldClass::Optional {
            content: Box::new(content.clone()),
            selector: to(2),
            when: Selector::True,
        },
        FieldClass::Optional {
            content: Box::new(content.clone()),
            selector: to(1),
            when: Selector::Signed(vec![(i64::MIN, -1), (3, i64::MAX)]),
        },
        FieldClass::Variant {
            options: vec![
                option(Selector::Unsigned(vec![(0, 5), (7, 7)]), Some("a")),
                option(Selector::Unsigned(vec![(6, 6), (8, u64::MAX)]), None),
            ],
            selector: to(0),
        },
        FieldClass::Blob {
            length: Length::Dynamic(to(0)),
            media_type: "text/plain".to_owned(),
            roles: Vec::new(),
        },
        FieldClass::SizedText {
            length: Length::Dynamic(to(0)),
            encoding: Encoding::Utf8,
            align: 8,
        },
    ]
}

pub(crate) fn with_references(classes: Vec<FieldClass>, scope: Scope) -> FieldClass {
    let mut members = classes.clone();
    if let Some(content) = classes.into_iter().next() {
        members.extend(references(content, scope, members.len()));
    }
    structure_of(members, 1)
}

/// The structure with a member that is the number of the stream class.
fn with_class_id(mut class: FieldClass) -> FieldClass {
    if let FieldClass::Struct { members, .. } = &mut class {
        members.push(Member {
            name: "class".into(),
            class: FieldClass::VarInteger(IntegerStyle {
                roles: vec![Role::StreamClassId],
                ..IntegerStyle::default()
            }),
            attributes: Vec::new(),
        });
    }
    class
}

fn identity() -> impl Strategy<Value = [Option<String>; 3]> {
    [
        prop::option::of(".{0,5}"),
        prop::option::of(".{0,5}"),
        prop::option::of(".{0,5}"),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<(String, String)>> {
    let json = prop::sample::select(vec!["null", "[1, 2.5]", "{\"a\": {\n}}", "\"\\u00e9\""]);
    prop::collection::btree_map(".{0,5}", json.prop_map(str::to_owned), 0..3)
        .prop_map(|attributes| attributes.into_iter().collect())
}

fn clock() -> impl Strategy<Value = Clock> {
    let origin = prop_oneof![
        Just(Origin::UnixEpoch),
        Just(Origin::Unknown),
        (prop::option::of(".{0,5}"), ".{0,5}", ".{0,5}").prop_map(|(namespace, name, uid)| {
            Origin::Named {
                namespace,
                name,
                uid,
            }
        }),
    ];
    (
        identity(),
        1u64..,
        any::<(i64, u64, Option<u64>, Option<u64>)>(),
        origin,
    )
        .prop_map(
            |([namespace, name, uid], frequency, numbers, origin)| Clock {
                description: name.clone(),
                namespace,
                name,
                uid,
                frequency,
                offset_seconds: numbers.0,
                offset_cycles: numbers.1 % frequency,
                precision: numbers.2,
                accuracy: numbers.3,
                origin,
            },
        )
}

fn event(id: u64) -> impl Strategy<Value = EventRecordClass> {
    let classes = || prop::collection::vec(any_class(), 0..3);
    let level = prop::option::of(0usize..15);
    (identity(), classes(), classes(), attributes(), level).prop_map(
        move |([namespace, name, uid], context, payload, mut attributes, level)| {
            if let Some(level) = level {
                let json = format!("{{\"log-level\": \"{}\"}}", ctf2::LEVELS[level]);
                attributes.push((ctf2::SPACES[1].to_owned(), json));
            }
            EventRecordClass {
                id,
                namespace,
                name: name.map(Arc::from),
                uid,
                log_level: level.map(|level| level as i64),
                emf_uri: None,
                specific_context: Some(with_references(context, Scope::SpecificContext)),
                payload: Some(with_references(payload, Scope::Payload)),
                attributes,
            }
        },
    )
}

pub(crate) fn any_trace() -> impl Strategy<Value = TraceClass> {
    let classes = || prop::collection::vec(any_class(), 0..2);
    let stream = |id: u64| {
        (
            identity(),
            prop::option::of(0usize..2),
            [classes(), classes(), classes()],
            (event(id), event(9)),
            attributes(),
        )
            .prop_map(
                move |([namespace, name, uid], clock, scopes, events, attributes)| {
                    let [context, header, common] = scopes;
                    let time = FieldClass::VarInteger(IntegerStyle {
                        roles: vec![Role::EventClassId, Role::DefaultClockTimestamp],
                        ..IntegerStyle::default()
                    });
                    let mut header = with_references(header, Scope::EventHeader);
                    if let (FieldClass::Struct { members, .. }, Some(_)) = (&mut header, clock) {
                        members.push(Member {
                            name: "time".into(),
                            class: time,
                            attributes: vec![("a".to_owned(), "1".to_owned())],
                        });
                    }
                    StreamClass {
                        id,
                        namespace,
                        name,
                        uid,
                        clock,
                        packet_context: Some(with_references(context, Scope::PacketContext)),
                        event_header: Some(header),
                        common_context: Some(with_references(common, Scope::CommonContext)),
                        events: vec![events.0, events.1],
                        attributes,
                    }
                },
            )
    };
    let value = prop_oneof![
        any::<i64>().prop_map(EnvironmentValue::Integer),
        ".{0,5}".prop_map(EnvironmentValue::Text),
    ];
    (
        identity(),
        any::<Option<[u8; 16]>>(),
        prop::collection::btree_map(".{0,5}", value, 0..4),
        classes(),
        [clock(), clock()],
        (stream(0), stream(u64::MAX)),
        attributes(),
    )
        .prop_map(
            |([namespace, name, uid], uuid, environment, header, clocks, streams, attributes)| {
                TraceClass {
                    dialect: Dialect::Ctf2,
                    namespace,
                    name,
                    uid,
                    uuid,
                    byte_order: None,
                    environment: environment.into_iter().collect(),
                    packet_header: Some(with_class_id(with_references(
                        header,
                        Scope::PacketHeader,
                    ))),
                    clocks: clocks.map(Arc::new).into(),
                    streams: vec![streams.0, streams.1],
                    attributes,
                }
            },
        )
}
