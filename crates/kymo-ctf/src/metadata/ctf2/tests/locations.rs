//! Which fields locations mean.

use super::*;

/// The location that a text of a length given at `location` has, in a payload with many fields.
fn located(location: &str) -> String {
    let text =
        format!(r#"{{"type": "dynamic-length-string", "length-field-location": {location}}}"#);
    let inner = structure(&[
        ("n", U8),
        ("deep", &structure(&[("m", U8), ("text", &text)])),
    ]);
    let array = format!(
        r#"{{"type": "static-length-array", "length": 2, "element-field-class": {inner}}}"#
    );
    let optional = format!(
        r#"{{"type": "optional", "selector-field-location": {{"path": ["flag"]}}, "field-class": {U8}}}"#
    );
    let a = structure(&[("x", U8)]);
    let b = structure(&[("y", U8), ("x", U8)]);
    let choice = variant(
        r#"{"path": ["n"]}"#,
        &[("[[0, 0]]", &a), ("[[1, 1]]", U8), ("[[2, 2]]", &b)],
    );
    let event = format!(
        r#"{{"type": "event-record-class", "specific-context-field-class": {}, "payload-field-class": {}}}"#,
        structure(&[("n", U8)]),
        structure(&[
            ("n", U8),
            ("flag", BOOL),
            ("o", &optional),
            ("v", &choice),
            ("array", &array)
        ]),
    );
    let stream = format!(
        r#"{{"type": "data-stream-class", "packet-context-field-class": {0},
            "event-record-header-field-class": {0}, "event-record-common-context-field-class": {0}}}"#,
        structure(&[("n", U8)])
    );
    let header = format!(
        r#"{{"type": "trace-class", "packet-header-field-class": {}}}"#,
        structure(&[("n", U8)])
    );
    let trace = trace(&sequence(&[PREAMBLE, &header, &stream, &event]));
    let shown = show(trace.streams[0].events[0].payload.as_ref().unwrap());
    let (_, shown) = shown.split_once("text: text[").unwrap();
    shown.split_once(']').unwrap().0.to_owned()
}

#[test]
fn locations_begin_at_the_structure_around() {
    assert_eq!(located(r#"{"path": ["m"]}"#), "Payload.4.*.1.0");
    assert_eq!(located(r#"{"path": [null, "n"]}"#), "Payload.4.*.0");
    assert_eq!(located(r#"{"path": [null, null, "n"]}"#), "Payload.0");
    assert_eq!(
        located(r#"{"path": [null, "n", null, null, "n"]}"#),
        "Payload.0"
    );
    assert_eq!(
        located(r#"{"path": ["no", "such", null, null, null, null, "n"]}"#),
        "Payload.0"
    );
}

#[test]
fn locations_begin_at_a_scope() {
    for (origin, expected) in [
        ("packet-header", "PacketHeader.0"),
        ("packet-context", "PacketContext.0"),
        ("event-record-header", "EventHeader.0"),
        ("event-record-common-context", "CommonContext.0"),
        ("event-record-specific-context", "SpecificContext.0"),
        ("event-record-payload", "Payload.0"),
    ] {
        let location = format!(r#"{{"origin": "{origin}", "path": ["n"]}}"#);
        assert_eq!(located(&location), expected);
    }
    assert_eq!(
        located(r#"{"origin": "event-record-payload", "path": ["o", null, "n"]}"#),
        "Payload.0"
    );
}

#[test]
fn arrays_optionals_and_variants_on_the_way_have_no_name() {
    let in_payload = |path: &str| {
        located(&format!(
            r#"{{"origin": "event-record-payload", "path": {path}}}"#
        ))
    };
    assert_eq!(in_payload(r#"["array", "n"]"#), "Payload.4.*.0");
    assert_eq!(in_payload(r#"["array", "deep", "m"]"#), "Payload.4.*.1.0");
    assert_eq!(in_payload(r#"["o"]"#), "Payload.2.?");
    assert_eq!(in_payload(r#"["v", "x"]"#), "Payload.3.0.0|Payload.3.2.1");
    assert_eq!(in_payload(r#"["v", "y"]"#), "Payload.3.2.0");
    // The options that are structures have more to offer, but no length.
    let options = [("[[0, 0]]", U8), ("[[1, 1]]", U8)];
    let choice = variant(r#"{"path": ["n"]}"#, &options);
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"path": ["v"]}}"#;
    assert_eq!(
        payload(&[], &[("n", U8), ("v", &choice), ("t", text)]),
        "{n: u8le@1, v: <Payload.0>(u[(0, 0)]: u8le@1, u[(1, 1)]: u8le@1), \
         t: text[Payload.1.0|Payload.1.1] Utf8@8}"
    );
}

#[test]
fn of_the_variant_around_only_the_own_option_is_meant() {
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"origin": "event-record-payload", "path": ["v", "n"]}}"#;
    let one = structure(&[("n", U8)]);
    let two = structure(&[("a", U8), ("n", U8), ("t", text)]);
    let choice = variant(
        r#"{"path": ["n"]}"#,
        &[("[[0, 0]]", &one), ("[[1, 1]]", &two)],
    );
    let shown = payload(&[], &[("n", U8), ("v", &choice)]);
    assert!(shown.contains("text[Payload.1.1.1]"), "{shown}");
}
