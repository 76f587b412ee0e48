//! What the fragments mean, and the sequence of them.

use super::*;

#[test]
fn the_least_is_a_preamble_and_a_data_stream_class() {
    let class = trace(&sequence(&[PREAMBLE, STREAM]));
    assert_eq!((class.streams.len(), class.streams[0].id), (1, 0));
    assert_eq!(class.streams[0].clock, None);
    assert_eq!((class.uuid, class.byte_order), (None, None));
}

#[test]
fn blanks_and_bytes_not_written_yet_do_not_matter() {
    let text = format!(
        "\u{feff}\u{1e}\u{1e}\r\n \u{1e}\n{PREAMBLE}\u{1e}{}\0\0\n\u{1e}\0\0\0",
        STREAM.replace(' ', "\t\n")
    );
    assert_eq!(trace(&text).streams.len(), 1);
    assert!(warnings(&text).is_empty());
}

#[test]
fn missing_separators_are_odd() {
    assert_eq!(
        warnings(&format!("{PREAMBLE}\n{STREAM}{}", "\n")),
        ["the fragments are not separated"]
    );
}

#[test]
fn a_trace_may_have_headers_alone() {
    let header = r#"{"type": "trace-class", "packet-header-field-class": {"type": "structure"}}"#;
    let text = sequence(&[PREAMBLE, header]);
    assert_eq!(trace(&text).streams.len(), 0);
    assert_eq!(warnings(&text), ["no data stream class"]);
}

#[test]
fn the_trace_class_has_an_identity_and_an_environment() {
    let class = trace(&sequence(&[
        r#"{"type": "preamble", "version": 2, "uuid": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,255], "attributes": {}}"#,
        r#"{"type": "trace-class", "namespace": "ns", "name": "n\u00e9\ud83d\ude00", "uid": "u", "extensions": {},
            "environment": {"z": "text", "a": -9223372036854775808, "b": 9223372036854775807},
            "attributes": {"a,1": [1, 2.5e3, {"x": null}], "b": "c"}}"#,
        STREAM,
    ]));
    let mut uuid = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    uuid[15] = 255;
    assert_eq!(class.uuid, Some(uuid));
    assert_eq!(class.namespace.as_deref(), Some("ns"));
    assert_eq!(class.name.as_deref(), Some("né😀"));
    assert_eq!(class.uid.as_deref(), Some("u"));
    assert_eq!(
        class.environment,
        [
            ("z".to_owned(), EnvironmentValue::Text("text".to_owned())),
            ("a".to_owned(), EnvironmentValue::Integer(i64::MIN)),
            ("b".to_owned(), EnvironmentValue::Integer(i64::MAX)),
        ]
    );
    assert_eq!(
        class.attributes,
        [
            ("a,1".to_owned(), r#"[1, 2.5e3, {"x": null}]"#.to_owned()),
            ("b".to_owned(), r#""c""#.to_owned()),
        ]
    );
}

#[test]
fn clock_classes() {
    let class = trace(&sequence(&[
        PREAMBLE,
        r#"{"type": "clock-class", "id": "a", "frequency": 1}"#,
        r#"{"type": "clock-class", "id": "b", "namespace": "ns", "name": "mono", "uid": "u",
            "description": "d", "frequency": 1000, "precision": 3, "accuracy": 18446744073709551615,
            "origin": "unix-epoch", "offset-from-origin": {"seconds": -5, "cycles": 999}}"#,
        r#"{"type": "clock-class", "id": "c", "frequency": 5,
            "origin": {"namespace": "ns", "name": "boot", "uid": "7"}, "offset-from-origin": {}}"#,
        r#"{"type": "data-stream-class", "default-clock-class-id": "b"}"#,
    ]));
    let named = |namespace: &str, name: &str, uid: &str| Origin::Named {
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        uid: uid.to_owned(),
    };
    assert_eq!(
        class
            .clocks
            .iter()
            .map(|clock| (**clock).clone())
            .collect::<Vec<_>>(),
        [
            Clock {
                frequency: 1,
                ..Clock::default()
            },
            Clock {
                namespace: Some("ns".to_owned()),
                name: Some("mono".to_owned()),
                uid: Some("u".to_owned()),
                description: Some("d".to_owned()),
                frequency: 1000,
                offset_seconds: -5,
                offset_cycles: 999,
                precision: Some(3),
                accuracy: Some(u64::MAX),
                origin: Origin::UnixEpoch,
            },
            Clock {
                frequency: 5,
                origin: named("ns", "boot", "7"),
                ..Clock::default()
            },
        ]
    );
    assert_eq!(class.streams[0].clock, Some(1));
}

#[test]
fn roles_report_what_fields_are_for() {
    let with = |length: u32, role: &str| {
        format!(
            r#"{{"type": "fixed-length-unsigned-integer", "length": {length}, "byte-order": "big-endian", "roles": ["{role}", "{role}"]}}"#
        )
    };
    let time =
        r#"{"type": "variable-length-unsigned-integer", "roles": ["default-clock-timestamp"]}"#;
    let header = structure(&[
        ("magic", &with(32, "packet-magic-number")),
        (
            "uuid",
            r#"{"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}"#,
        ),
        ("class", &with(8, "data-stream-class-id")),
        ("stream", &with(8, "data-stream-id")),
    ]);
    let context = structure(&[
        ("total", &with(8, "packet-total-length")),
        ("content", &with(8, "packet-content-length")),
        ("begin", time),
        ("end", &with(8, "packet-end-default-clock-timestamp")),
        ("lost", &with(8, "discarded-event-record-counter-snapshot")),
        ("number", &with(8, "packet-sequence-number")),
    ]);
    let event = structure(&[("id", &with(8, "event-record-class-id")), ("time", time)]);
    let class = trace(&sequence(&[
        r#"{"type": "preamble", "version": 2, "uuid": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#,
        r#"{"type": "clock-class", "id": "c", "frequency": 1}"#,
        &format!(r#"{{"type": "trace-class", "packet-header-field-class": {header}}}"#),
        &format!(
            r#"{{"type": "data-stream-class", "id": 7, "namespace": "ns", "name": "s", "uid": "u", "default-clock-class-id": "c",
                "packet-context-field-class": {context}, "event-record-header-field-class": {event}, "attributes": {{"a": 1}}}}"#
        ),
    ]));
    assert_eq!(
        show(class.packet_header.as_ref().unwrap()),
        "{magic: u32be@1 PacketMagic, uuid: blob[16] application/octet-stream MetadataUuid, \
         class: u8be@1 StreamClassId, stream: u8be@1 StreamId}"
    );
    let stream = &class.streams[0];
    assert_eq!(
        show(stream.packet_context.as_ref().unwrap()),
        "{total: u8be@1 PacketTotalLength, content: u8be@1 PacketContentLength, \
         begin: uvar DefaultClockTimestamp, end: u8be@1 PacketEndTimestamp, \
         lost: u8be@1 DiscardedEvents, number: u8be@1 PacketSequenceNumber}"
    );
    assert_eq!(
        show(stream.event_header.as_ref().unwrap()),
        "{id: u8be@1 EventClassId, time: uvar DefaultClockTimestamp}"
    );
    assert_eq!(
        (
            stream.id,
            stream.namespace.as_deref(),
            stream.name.as_deref(),
            stream.uid.as_deref()
        ),
        (7, Some("ns"), Some("s"), Some("u"))
    );
    assert_eq!(stream.attributes, [("a".to_owned(), "1".to_owned())]);
    // Each role once, however often it is said.
    let Some(FieldClass::Struct { members, .. }) = &class.packet_header else {
        panic!("a structure")
    };
    assert!(matches!(&members[0].class,
        FieldClass::Integer { style, .. } if style.roles == [Role::PacketMagic]));
}

#[test]
fn event_record_classes() {
    let class = trace(&sequence(&[
        PREAMBLE,
        STREAM,
        r#"{"type": "data-stream-class", "id": 2}"#,
        r#"{"type": "event-record-class"}"#,
        r#"{"type": "event-record-class", "id": 5, "namespace": "ns", "name": "e", "uid": "u",
            "payload-field-class": {"type": "structure", "member-classes": [
                {"name": "t", "field-class": {"type": "null-terminated-string", "encoding": "utf-16be"}, "attributes": {"m": {}}}]},
            "attributes": {"n": true}}"#,
        r#"{"type": "event-record-class", "data-stream-class-id": 2}"#,
    ]));
    let events = &class.streams[0].events;
    assert_eq!((events[0].id, &events[0].name), (0, &None));
    assert_eq!((events[1].id, events[1].name.as_deref()), (5, Some("e")));
    assert_eq!(events[1].namespace.as_deref(), Some("ns"));
    assert_eq!(events[1].uid.as_deref(), Some("u"));
    assert_eq!(events[1].attributes, [("n".to_owned(), "true".to_owned())]);
    let Some(FieldClass::Struct { members, .. }) = &events[1].payload else {
        panic!("a structure")
    };
    assert_eq!(members[0].attributes, [("m".to_owned(), "{}".to_owned())]);
    assert_eq!(
        members[0].class,
        FieldClass::Text {
            encoding: Encoding::Utf16Be,
            align: 8
        }
    );
    assert_eq!(class.streams[1].events.len(), 1);
}

#[test]
fn log_levels_are_attributes() {
    let level = |attributes: &str| {
        let event = format!(r#"{{"type": "event-record-class", "attributes": {{{attributes}}}}}"#);
        let class = trace(&sequence(&[PREAMBLE, STREAM, &event]));
        let event = &class.streams[0].events[0];
        (event.log_level, event.emf_uri.as_deref().map(str::to_owned))
    };
    let lttng = |level: &str| format!(r#""lttng.org,2009": {{"log-level": {level}}}"#);
    assert_eq!(level(&lttng(r#""emergency""#)), (Some(0), None));
    assert_eq!(level(&lttng(r#""debug:line""#)), (Some(13), None));
    assert_eq!(level(&lttng("42")), (Some(42), None));
    assert_eq!(level(&lttng(r#""loud""#)), (None, None));
    assert_eq!(
        level(r#""babeltrace.org,2020": {"log-level": "debug", "emf-uri": "http://x"}"#),
        (Some(14), Some("http://x".to_owned()))
    );
    assert_eq!(
        level(r#""lttng.org,2009": 3, "other": {"log-level": 1}"#),
        (None, None)
    );
    let loud = format!(
        r#"{{"type": "event-record-class", "attributes": {{{}}}}}"#,
        lttng(r#""loud""#)
    );
    assert_eq!(
        warnings(&sequence(&[PREAMBLE, STREAM, &loud])),
        ["unknown log level"]
    );
}

#[test]
fn drafts_are_read_with_warnings() {
    let enumeration = r#"{"type": "fixed-length-unsigned-enumeration", "length": 8,
        "byte-order": "little-endian", "mappings": {"a": [[0, 1]]}}"#;
    let choice = variant(r#"["event-record-payload", "id"]"#, &[("[[0, 0]]", U8)]);
    let text = sequence(&[
        PREAMBLE,
        r#"{"type": "trace-class", "uuid": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}"#,
        r#"{"type": "clock-class", "name": "mono", "frequency": 1, "offset": {"seconds": 3},
            "uuid": [16,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}"#,
        r#"{"type": "data-stream-class", "default-clock-class-name": "mono"}"#,
        &format!(
            r#"{{"type": "event-record-class", "payload-field-class": {},
                "user-attributes": {{"babeltrace.org,2020": {{"log-level": "info"}}}}}}"#,
            structure(&[("id", enumeration), ("v", &choice)])
        ),
    ]);
    let class = trace(&text);
    assert_eq!(class.uuid.unwrap()[15], 16);
    assert_eq!(
        class.uid.as_deref(),
        Some("01020304-0506-0708-090a-0b0c0d0e0f10")
    );
    assert_eq!(
        class.clocks[0].uid.as_deref(),
        Some("10010203-0405-0607-0809-0a0b0c0d0e0f")
    );
    assert_eq!(class.clocks[0].offset_seconds, 3);
    assert_eq!(class.streams[0].clock, Some(0));
    assert_eq!(class.streams[0].events[0].log_level, Some(6));
    assert_eq!(
        show(class.streams[0].events[0].payload.as_ref().unwrap()),
        "{id: u8le@1 a=[(0, 1)], v: <Payload.0>(u[(0, 0)]: u8le@1)}"
    );
    assert_eq!(
        warnings(&text),
        [
            "`uuid` of the trace class is of a draft of CTF 2",
            "`offset` is of a draft of CTF 2",
            "`uuid` is of a draft of CTF 2",
            "a clock class without `id` is of a draft of CTF 2",
            "`default-clock-class-name` is of a draft of CTF 2",
            "`user-attributes` is of a draft of CTF 2",
            "`fixed-length-unsigned-enumeration` is of a draft of CTF 2",
            "a field location as an array is of a draft of CTF 2",
        ]
    );
}
