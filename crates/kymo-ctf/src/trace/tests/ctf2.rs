//! What CTF 2 says otherwise than CTF 1.8.

use super::*;

/// An integer of bytes with a role.
fn integer(name: &str, bytes: u32, role: &str) -> String {
    let length = bytes * 8;
    let roles = match role {
        "" => String::new(),
        role => format!(r#", "roles": ["{role}"]"#),
    };
    format!(
        r#"{{"name": "{name}", "field-class": {{"type": "fixed-length-unsigned-integer",
            "length": {length}, "byte-order": "little-endian", "alignment": 8{roles}}}}}"#
    )
}

fn structure(members: &[String]) -> String {
    let members = members.join(", ");
    format!(r#"{{"type": "structure", "member-classes": [{members}]}}"#)
}

/// A trace of one file, whose packets have these members and their size in bytes before them,
/// and whose events have an 8-bit time and value.
fn one_file(context: &[String], bytes: Vec<u8>) -> Trace {
    let mut members = vec![integer("size", 1, "packet-total-length")];
    members.extend_from_slice(context);
    let header = structure(&[integer("time", 1, "default-clock-timestamp")]);
    let (context, payload) = (structure(&members), structure(&[integer("x", 1, "")]));
    let fragments = [
        r#"{"type": "preamble", "version": 2}"#,
        r#"{"type": "clock-class", "id": "c", "frequency": 1000}"#,
        &format!(
            r#"{{"type": "data-stream-class", "default-clock-class-id": "c",
            "packet-context-field-class": {context},
            "event-record-header-field-class": {header}}}"#
        ),
        &format!(r#"{{"type": "event-record-class", "payload-field-class": {payload}}}"#),
    ];
    let text: String = fragments
        .iter()
        .map(|fragment| format!("\x1e{fragment}\n"))
        .collect();
    trace(vec![directory_of("/trace", &text, &[("file", bytes)])])
}

fn begins(trace: &Trace) -> Vec<Option<u64>> {
    trace.chunks(0).map(|chunk| chunk.begin).collect()
}

#[test]
fn the_clock_begins_at_zero_in_each_packet() {
    let trace = one_file(&[], vec![40, 250, 1, 5, 2, 24, 4, 3]);
    assert_eq!(begins(&trace), [None; 2]);
    assert_eq!(events(&trace, 0), [(250, 1), (261, 2), (4, 3)]);

    let narrow = integer("begin", 2, "default-clock-timestamp");
    let packets = vec![40, 0xF0, 0xFF, 0xF5, 1, 40, 0x02, 0x00, 0x01, 2];
    let trace = one_file(&[narrow], packets);
    assert_eq!(begins(&trace), [Some(0xFFF0), Some(2)]);
    assert_eq!(events(&trace, 0), [(0xFFF5, 1), (0x101, 2)]);
}

#[test]
fn each_timestamp_of_a_packet_brings_the_clock_forward() {
    let context = [
        integer("rough", 2, "default-clock-timestamp"),
        integer("low", 1, "default-clock-timestamp"),
    ];
    let trace = one_file(&context, vec![48, 0xF0, 0x01, 0x10, 0x11, 7]);
    assert_eq!(begins(&trace), [Some(0x210)]);
    assert_eq!(events(&trace, 0), [(0x211, 7)]);
}

#[test]
fn of_several_fields_with_a_role_the_last_counts() {
    let context = [integer("right_size", 1, "packet-total-length")];
    let trace = one_file(&context, vec![8, 32, 1, 7, 9, 32, 2, 8]);
    assert_eq!(events(&trace, 0), [(1, 7), (2, 8)]);
}

/// A trace of one file and one event class with these fields, without any headers.
fn of_payload(members: &[String], bytes: &[u8]) -> Trace {
    let payload = structure(members);
    let text = [
        r#"{"type": "preamble", "version": 2}"#,
        r#"{"type": "data-stream-class"}"#,
        &format!(r#"{{"type": "event-record-class", "payload-field-class": {payload}}}"#),
    ]
    .map(|fragment| format!("\x1e{fragment}\n"))
    .concat();
    trace(vec![directory_of(
        "/trace",
        &text,
        &[("file", bytes.to_vec())],
    )])
}

#[test]
fn an_element_does_not_use_the_lengths_of_the_one_before_it() {
    let length = integer("length", 1, "");
    let length = length.split_once(r#""field-class": "#).unwrap().1;
    let length = length.strip_suffix('}').unwrap();
    let element = structure(&[
        integer("has_length", 1, ""),
        format!(
            r#"{{"name": "length", "field-class": {{"type": "optional", "field-class": {length},
            "selector-field-location": {{"path": ["has_length"]}},
            "selector-field-ranges": [[1, 1]]}}}}"#
        ),
        r#"{"name": "text", "field-class": {"type": "dynamic-length-string",
            "length-field-location": {"path": ["length"]}}}"#
            .to_owned(),
    ]);
    let array = format!(
        r#"{{"name": "array", "field-class": {{"type": "static-length-array", "length": 2,
        "element-field-class": {element}}}}}"#
    );
    // The second element has no length: it ends with the byte that says so, and `x` follows.
    let bytes = [1, 2, b'a', b'b', 0, 7];
    let trace = of_payload(&[array, integer("x", 1, "")], &bytes);
    let (events, fault) = walk(&trace, 0, 0);
    assert_eq!(fault, None);
    let numbers: Vec<_> = events.into_iter().map(|(_, numbers)| numbers).collect();
    assert_eq!(numbers, [[1, 2, 0, 7]]);
}

#[test]
#[cfg_attr(
    target_endian = "big",
    ignore = "as much is read in vain as may be, which takes minutes on a machine that is emulated"
)]
fn packets_whose_heads_never_end_are_not_looked_for_without_end() {
    let magic = r#"{"name": "magic", "field-class": {"type": "fixed-length-unsigned-integer",
        "length": 32, "byte-order": "little-endian", "roles": ["packet-magic-number"]}}"#;
    let nothing = r#"{"name": "nothing", "field-class": {"type": "dynamic-length-array",
        "element-field-class": {"type": "structure"},
        "length-field-location": {"path": ["count"]}}}"#;
    let header = structure(&[
        magic.to_owned(),
        integer("count", 4, ""),
        nothing.to_owned(),
    ]);
    let text = [
        r#"{"type": "preamble", "version": 2}"#,
        &format!(r#"{{"type": "trace-class", "packet-header-field-class": {header}}}"#),
        r#"{"type": "data-stream-class"}"#,
    ]
    .map(|fragment| format!("\x1e{fragment}\n"))
    .concat();
    // Every word is a magic number, and says how many elements without bits follow.
    let bytes = 0xC1FC_1FC1_u32.to_le_bytes().repeat(20_000);
    let trace = trace(vec![directory_of("/trace", &text, &[("file", bytes)])]);
    assert_eq!(trace.faults().len(), 1);
    assert_eq!(trace.faults()[0].code, FaultCode::LengthLimit);
}
