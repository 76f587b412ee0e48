//! What is written means what it was made of.

use kymo_machine::ByteOrder;
use kymo_model::Scope;
use proptest::prelude::*;

use super::super::{parse, write};
use super::{show, trace};
use crate::any::{any_trace, structure_of};
use crate::class::{
    BitLayout, Dialect, Encoding, EnvironmentValue, FieldClass, FieldPath, FieldRef, IntegerStyle,
    Length, Role, Step, TraceClass,
};

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
        "event record class 0: its attributes leave no name space for the log level; remove the \
         attributes of one of them"
    );
    class.streams[0].events[0].attributes =
        vec![("lttng.org,2009".to_owned(), "{\"log-level\": 3}".to_owned())];
    assert_eq!(
        write(&class).unwrap_err().to_string(),
        "CTF 2 cannot describe the class: a length or selector refers to fields that have the same location, \
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
fn what_ctf_2_cannot_hold_is_reported() {
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
    for _ in 0..2049 {
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
            FieldClass::Bool(layout(Some(4))),
            "with the same layout: event record class `e`, `payload.m1`: the bit field may cross \
             its unit",
        ),
        (
            text(32, Length::Static(1)),
            "with the same layout: event record class `e`, `payload.m1`: the alignment becomes 8 \
             bits",
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
            "trace: field classes lie too deep within each other; use at most 2048 levels",
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
    for class in [
        array(inline, &[]),
        array(Length::Static(3), &role),
        integer(false, &role),
        integer(true, &role),
    ] {
        let mut trace = trace(&super::sequence(&[
            super::PREAMBLE,
            super::STREAM,
            r#"{"type": "event-record-class", "name": "e"}"#,
        ]));
        let payload = structure_of(vec![integer(false, &[]), class], 1);
        trace.streams[0].events[0].payload = Some(payload);
        assert!(write(&trace).is_ok());
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
        "the attributes of the namespace `ns` are not JSON"
    );
}
