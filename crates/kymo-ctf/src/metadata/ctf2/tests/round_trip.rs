//! What is written means what it was made of.

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Base, Flag, Labels, Mapping, Scope};
use kymo_time::{Clock, Origin};
use proptest::prelude::*;

use super::super::{log, parse, write};
use super::{show, trace};
use crate::class::{
    BitLayout, Dialect, Encoding, EnvironmentValue, EventRecordClass, FieldClass, FieldPath,
    FieldRef, IntegerStyle, Length, Member, Role, Selector, Step, StreamClass, TraceClass,
    VariantOption,
};

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

fn structure_of(classes: Vec<FieldClass>, min_align: u32) -> FieldClass {
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

fn any_class() -> impl Strategy<Value = FieldClass> {
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

fn with_references(classes: Vec<FieldClass>, scope: Scope) -> FieldClass {
    let mut members = classes.clone();
    if let Some(content) = classes.into_iter().next() {
        members.extend(references(content, scope, members.len()));
    }
    structure_of(members, 1)
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
                let json = format!("{{\"log-level\": \"{}\"}}", log::LEVELS[level]);
                attributes.push((log::SPACES[1].to_owned(), json));
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

fn any_trace() -> impl Strategy<Value = TraceClass> {
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
                    packet_header: Some(with_references(header, Scope::PacketHeader)),
                    clocks: clocks.map(Arc::new).into(),
                    streams: vec![streams.0, streams.1],
                    attributes,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(class in any_trace()) {
        let text = write(&class).unwrap();
        let (read, warnings) = parse(&text).unwrap();
        prop_assert_eq!(&read, &class);
        prop_assert!(warnings.is_empty());
    }
}

/// The class model of TSDL.
fn tsdl(text: &str) -> TraceClass {
    let text = format!("trace {{ major = 1; minor = 8; byte_order = le;\n{text}");
    let metadata = crate::metadata::parse(text.as_bytes(), "metadata");
    metadata.map(|metadata| metadata.class).unwrap()
}

#[test]
fn ctf_1_8_becomes_ctf_2() {
    let class = tsdl(
        "uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\";
         packet.header := struct { integer { size = 32; align = 32; } magic;
            integer { size = 8; } uuid[16]; integer { size = 8; } stream_id; }; };
         env { a = 1; }; clock { name = mono; freq = 1000; offset = 2500; };
         typealias integer { size = 32; map = clock.mono.value; } := time;
         stream { id = 0; packet.context := struct { time timestamp_begin; };
            event.header := struct { enum : integer { size = 5; } { compact = 0 ... 30, extended = 31 } id;
            variant <id> { struct { integer { size = 27; map = clock.mono.value; } timestamp; } compact;
                struct { integer { size = 32; } id; time timestamp; } extended; } v; } align(8); };
         event { id = 1; name = e; loglevel = 13; model.emf.uri = \"http://x\"; fields := struct {
            integer { size = 8; } _n; string s[_n]; }; };",
    );
    let read = trace(&write(&class).unwrap());
    assert_eq!(read.dialect, Dialect::Ctf2);
    assert_eq!((read.uid, read.uuid), (class.uid, class.uuid));
    assert_eq!(
        (read.environment, read.clocks),
        (class.environment, class.clocks)
    );
    assert_eq!(
        show(read.packet_header.as_ref().unwrap()),
        "{magic: u32le@32 PacketMagic, uuid: blob[16] application/octet-stream MetadataUuid, \
         stream_id: u8le@8 StreamClassId}"
    );
    assert_eq!(read.streams[0].event_header, class.streams[0].event_header);
    let (new, old) = (&read.streams[0].events[0], &class.streams[0].events[0]);
    assert_eq!(new.payload, old.payload);
    assert_eq!((new.log_level, &new.emf_uri), (Some(13), &old.emf_uri));
    assert_eq!(
        new.attributes,
        [(
            "lttng.org,2009".to_owned(),
            r#"{"log-level":"debug:line","emf-uri":"http://x"}"#.to_owned()
        )]
    );
}

#[test]
fn log_levels_join_other_attributes() {
    let mut class = trace(&super::sequence(&[
        super::PREAMBLE,
        super::STREAM,
        r#"{"type": "event-record-class", "attributes": {"lttng.org,2009": {"a": 1}}}"#,
    ]));
    class.streams[0].events[0].log_level = Some(99);
    let read = trace(&write(&class).unwrap());
    assert_eq!(read.streams[0].events[0].log_level, Some(99));
    assert_eq!(read.streams[0].events[0].attributes.len(), 2);
    class.streams[0].events[0].attributes = vec![
        ("lttng.org,2009".to_owned(), "1".to_owned()),
        ("babeltrace.org,2020".to_owned(), "2".to_owned()),
    ];
    assert_eq!(
        write(&class).unwrap_err().to_string(),
        "event record class 0: its attributes leave no name space for the log level"
    );
    class.streams[0].events[0].attributes =
        vec![("lttng.org,2009".to_owned(), "{\"log-level\": 3}".to_owned())];
    assert_eq!(
        write(&class).unwrap_err().to_string(),
        "no class of CTF 2: a length or selector refers to fields that no location tells apart, \
         or attributes contradict a log level"
    );
}

#[test]
fn times_without_a_clock_are_numbers() {
    let mut class = tsdl(
        "}; clock { name = c; }; stream { event.header := struct {
         integer { size = 8; map = clock.c.value; } timestamp; }; };",
    );
    class.streams[0].clock = None;
    let read = trace(&write(&class).unwrap());
    assert_eq!(
        show(read.streams[0].event_header.as_ref().unwrap()),
        "{timestamp: u8le@8}"
    );
}

#[test]
fn what_ctf_2_cannot_hold_is_told() {
    let layout = |unit| BitLayout {
        bits: 3,
        align: 1,
        order: ByteOrder::Little,
        reversed: false,
        unit,
    };
    let integer = |signed, roles: &[Role]| FieldClass::Integer {
        layout: layout(None),
        style: IntegerStyle {
            signed,
            roles: roles.to_vec(),
            ..IntegerStyle::default()
        },
    };
    let array = |length, roles: &[Role]| FieldClass::Array {
        element: Box::new(integer(false, &[])),
        length,
        min_align: 1,
        roles: roles.to_vec(),
    };
    let text = |align, length| FieldClass::SizedText {
        length,
        encoding: Encoding::Utf8,
        align,
    };
    let mut deep = integer(false, &[]);
    for _ in 0..70 {
        deep = FieldClass::Array {
            element: Box::new(deep),
            length: Length::Static(1),
            min_align: 1,
            roles: Vec::new(),
        };
    }
    let to = |steps: Vec<Step>| FieldPath {
        scope: Scope::Payload,
        steps,
    };
    let reference = |targets: &[Vec<Step>]| {
        Length::Dynamic(FieldRef {
            targets: targets.iter().cloned().map(to).collect(),
        })
    };
    let inline = Length::Inline(Box::new(integer(false, &[])));
    let role = [Role::EventClassId];
    for (class, expected) in [
        (
            FieldClass::Bool(layout(Some(32))),
            "event record class `e`, `payload.m1`: a bit field that must not cross 32 bits",
        ),
        (
            array(inline, &[]),
            "event record class `e`, `payload.m1`: a length that lies within the field itself",
        ),
        (
            text(32, Length::Static(1)),
            "event record class `e`, `payload.m1`: text aligned to 32 bits instead of 8",
        ),
        (
            array(Length::Static(3), &role),
            "event record class `e`, `payload.m1`: an array with a role",
        ),
        (
            integer(true, &role),
            "event record class `e`, `payload.m1`: a signed integer with a role",
        ),
        (
            integer(false, &role),
            "no class of CTF 2: the role `event-record-class-id` has no place here",
        ),
        (
            array(reference(&[vec![Step::Child(7)]]), &[]),
            "a length or selector refers to no field",
        ),
        (
            array(reference(&[vec![Step::Element]]), &[]),
            "a length or selector refers to no field",
        ),
        (
            array(reference(&[]), &[]),
            "a length or selector refers to no field",
        ),
        (
            array(
                reference(&[vec![Step::Child(0)], vec![Step::Child(1)]]),
                &[],
            ),
            "a length or selector refers to both `m0` and `m1`, which have no common location",
        ),
        (
            array(reference(&[vec![Step::Child(1)]]), &[]),
            "no class of CTF 2: `m1` does not come before this",
        ),
        (
            deep,
            "event record class `e`, `payload.m1`: field classes lie too deep within each other",
        ),
    ] {
        let mut trace = trace(&super::sequence(&[
            super::PREAMBLE,
            super::STREAM,
            r#"{"type": "event-record-class", "name": "e"}"#,
        ]));
        let payload = structure_of(vec![integer(false, &[]), class], 1);
        trace.streams[0].events[0].payload = Some(payload);
        assert_eq!(write(&trace).unwrap_err().to_string(), expected);
    }
    let mut trace = trace(&super::sequence(&[super::PREAMBLE, super::STREAM]));
    let entry = ("a".to_owned(), EnvironmentValue::Integer(1));
    trace.environment = vec![entry.clone(), entry];
    assert_eq!(
        write(&trace).unwrap_err().to_string(),
        "no class of CTF 2: `a` is given twice"
    );
    trace.environment.clear();
    trace.attributes = vec![("ns".to_owned(), "1 2".to_owned())];
    assert_eq!(
        write(&trace).unwrap_err().to_string(),
        "the attributes of the name space `ns` are no JSON"
    );
}
