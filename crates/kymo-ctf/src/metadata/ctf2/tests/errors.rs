//! Errors, and how they are reported.

use super::{PREAMBLE, STREAM, event, sequence, structure};

fn error(text: &str) -> String {
    match super::super::parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.render("metadata", text, false),
    }
}

/// Message, labels, and what is in the text at the first of them.
pub(super) fn brief(text: &str) -> String {
    let Err(error) = crate::deep::retry(|| super::super::parse(text)) else {
        panic!("accepted: {text}");
    };
    let labels: Vec<_> = error.spans.iter().map(|span| &*span.label).collect();
    let place = error
        .spans
        .first()
        .map_or("", |span| &text[span.range.clone()]);
    format!("{}: {} [{place}]", error.message, labels.join("; "))
}

/// The error in fragments after the preamble and the data stream class.
pub(super) fn after(fragments: &[&str]) -> String {
    brief(&sequence(&[&[PREAMBLE, STREAM], fragments].concat()))
}

/// The error in the field classes of a payload.
pub(super) fn payload(members: &[(&str, &str)]) -> String {
    brief(&event(&[], &structure(members)))
}

#[test]
fn the_culprit_is_shown_with_what_was_expected() {
    let text = "\u{1e}{\n  \"type\": \"preamble\",\n  \"version\": 3\n}\n";
    assert_eq!(
        error(text),
        "\
error: expected 2, the only version that is known, found `3`
 --> metadata:3:14
  |
3 |   \"version\": 3
  |              ^ expected 2, the only version that is known"
    );
}

#[test]
fn earlier_places_are_shown() {
    let text = sequence(&[
        PREAMBLE,
        r#"{"type": "data-stream-class", "id": 3}"#,
        r#"{"type": "data-stream-class", "id": 3}"#,
    ]);
    assert_eq!(
        error(&text),
        "\
error: two data stream classes with `id` 3
 --> metadata:3:38
  |
3 | ␞{\"type\": \"data-stream-class\", \"id\": 3}
  |                                      ^ given again
  |
 ::: metadata:2:2
  |
2 | ␞{\"type\": \"data-stream-class\", \"id\": 3}
  |  -------------------------------------- first data stream class"
    );
}

#[test]
fn json() {
    for (fragment, expected) in [
        ("", "no metadata:  []"),
        (
            "x",
            "expected a JSON value, found `x`: expected a JSON value [x]",
        ),
        (
            "{",
            "expected the name of a property in quotes, found the end: expected the name of a property in quotes []",
        ),
        (
            "{1",
            "expected the name of a property in quotes, found `1`: expected the name of a property in quotes [1]",
        ),
        (r#"{"a" 1"#, "expected `:`, found `1`: expected `:` [1]"),
        (
            r#"{"a": 1 "b""#,
            "expected `,` or `}`, found `\"`: expected `,` or `}` [\"]",
        ),
        (
            "[1 2]",
            "expected `,` or `]`, found `2`: expected `,` or `]` [2]",
        ),
        (
            "[1,]",
            "expected a JSON value, found `]`: expected a JSON value []]",
        ),
        (
            "01",
            "two values in one fragment: the fragment ends with this value; expected a record separator (U+001E) before this [0]",
        ),
        ("-", "expected a digit, found the end: expected a digit []"),
        ("1.", "expected a digit, found the end: expected a digit []"),
        (
            "1e+",
            "expected a digit, found the end: expected a digit []",
        ),
        (
            "\"a\nb\"",
            "expected `\"` at the end of the text, found `\n`: expected `\"` at the end of the text [\n]",
        ),
        (
            r#""\x""#,
            "expected an escape such as `\\n` or `\\u00e9`, found `x`: expected an escape such as `\\n` or `\\u00e9` [x]",
        ),
        (
            r#""\u12g4""#,
            "expected four hexadecimal digits after `\\u`, found `g`: expected four hexadecimal digits after `\\u` [g]",
        ),
        (
            r#""\ud800x""#,
            "half of a surrogate pair: expected both halves of a character [\\ud800]",
        ),
        (
            r#""\ud800\u0041""#,
            "half of a surrogate pair: expected both halves of a character [\\ud800\\u0041]",
        ),
        (
            r#"{"a": 1, "b": 2, "a": 3}"#,
            "`a` is given twice: given again; first given here [\"a\"]",
        ),
        (
            r#"{"a": 1, "\u0061": 3}"#,
            "`a` is given twice: given again; first given here [\"\\u0061\"]",
        ),
        (
            "true",
            "expected a fragment as an object, found `true`: expected a fragment as an object [true]",
        ),
        (
            "{}",
            "a fragment has no `type`: expected a property `\"type\"` in this [{}]",
        ),
    ] {
        assert_eq!(brief(&format!("\u{1e}{fragment}")), expected, "{fragment}");
    }
    // Of fragments that nothing separates, the second begins after the first.
    assert_eq!(
        brief(&format!("{PREAMBLE} 1")),
        "expected a fragment as an object, found `1`: expected a fragment as an object [1]"
    );
}

#[test]
fn fragments() {
    let alias =
        r#"{"type": "field-class-alias", "name": "a", "field-class": {"type": "structure"}}"#;
    let again = format!("{alias}\n\u{1e}{alias}");
    let clock = r#"{"type": "clock-class", "id": "c", "frequency": 1}"#;
    let clock_again = format!("{clock}\n\u{1e}{clock}");
    for (fragment, expected) in [
        (
            r#"{"type": "what"}"#,
            "expected `\"preamble\"`, `\"field-class-alias\"`, `\"trace-class\"`, `\"clock-class\"`, `\"data-stream-class\"` or `\"event-record-class\"`, found `\"what\"`: expected `\"preamble\"`, `\"field-class-alias\"`, `\"trace-class\"`, `\"clock-class\"`, `\"data-stream-class\"` or `\"event-record-class\"` [\"what\"]",
        ),
        (
            PREAMBLE,
            "a second preamble: expected no preamble here; first preamble [{\"type\": \"preamble\", \"version\": 2}]",
        ),
        (
            r#"{"type": "trace-class"}"#,
            "the trace class comes too late: expected before all data stream classes; first data stream class [{\"type\": \"trace-class\"}]",
        ),
        (
            r#"{"type": "event-record-class", "nam": 1}"#,
            "unknown property `nam` of an event record class: not a property of CTF 2 [\"nam\"]",
        ),
        (
            r#"{"type": "event-record-class", "name": 1}"#,
            "expected text in quotes, found `1`: expected text in quotes [1]",
        ),
        (
            r#"{"type": "event-record-class", "id": -1}"#,
            "expected an unsigned integer of 64 bits, found `-1`: expected an unsigned integer of 64 bits [-1]",
        ),
        (
            r#"{"type": "event-record-class", "id": 1.0}"#,
            "expected an unsigned integer of 64 bits, found `1.0`: expected an unsigned integer of 64 bits [1.0]",
        ),
        (
            r#"{"type": "event-record-class", "id": 18446744073709551616}"#,
            "expected an unsigned integer of 64 bits, found `18446744073709551616`: expected an unsigned integer of 64 bits [18446744073709551616]",
        ),
        (
            r#"{"type": "event-record-class", "data-stream-class-id": 1}"#,
            "no data stream class with `id` 1: expected the `id` of a data stream class before this [1]",
        ),
        (
            r#"{"type": "event-record-class", "payload-field-class": "a"}"#,
            "unknown field class alias `a`: expected the name of an alias that comes before this [\"a\"]",
        ),
        (
            r#"{"type": "event-record-class", "payload-field-class": {"type": "null-terminated-string"}}"#,
            "the field class of a scope is not a structure: expected a structure [{\"type\": \"null-terminated-string\"}]",
        ),
        (
            r#"{"type": "event-record-class", "attributes": 1}"#,
            "expected an object of name spaces, found `1`: expected an object of name spaces [1]",
        ),
        (
            r#"{"type": "event-record-class", "attributes": {}, "user-attributes": {}}"#,
            "`attributes` of an event record class is given twice: given again; first given here [\"user-attributes\"]",
        ),
        (
            r#"{"type": "event-record-class", "extensions": {"ns": {"e": 1}}}"#,
            "the extension `e` of `ns` is not supported: expected no extension [\"e\"]",
        ),
        (
            r#"{"type": "data-stream-class"}"#,
            "two data stream classes with `id` 0: given again; first data stream class [{\"type\": \"data-stream-class\"}]",
        ),
        (
            r#"{"type": "data-stream-class", "id": 1, "default-clock-class-id": "c"}"#,
            "unknown clock class \"c\": expected the `id` of a clock class before this [\"c\"]",
        ),
        (
            r#"{"type": "clock-class", "frequency": 1}"#,
            "a clock class has no `id`: expected a property `\"id\"` in this [{\"type\": \"clock-class\", \"frequency\": 1}]",
        ),
        (
            r#"{"type": "clock-class", "id": "c"}"#,
            "a clock class has no `frequency`: expected a property `\"frequency\"` in this [{\"type\": \"clock-class\", \"id\": \"c\"}]",
        ),
        (
            r#"{"type": "clock-class", "id": "c", "frequency": 0}"#,
            "expected at least 1 cycle per second, found `0`: expected at least 1 cycle per second [0]",
        ),
        (
            r#"{"type": "clock-class", "id": "c", "frequency": 5, "offset-from-origin": {"cycles": 5}}"#,
            "expected less than a second, which is 5 cycles, found `5`: expected less than a second, which is 5 cycles [5]",
        ),
        (
            r#"{"type": "clock-class", "id": "c", "frequency": 5, "offset-from-origin": {"seconds": 9223372036854775808}}"#,
            "expected a signed integer of 64 bits, found `9223372036854775808`: expected a signed integer of 64 bits [9223372036854775808]",
        ),
        (
            r#"{"type": "clock-class", "id": "c", "frequency": 5, "origin": "boot"}"#,
            "expected `\"unix-epoch\"`, found `\"boot\"`: expected `\"unix-epoch\"` [\"boot\"]",
        ),
        (
            r#"{"type": "clock-class", "id": "c", "frequency": 5, "origin": {"name": "boot"}}"#,
            "the origin of a clock has no `uid`: expected a property `\"uid\"` in this [{\"name\": \"boot\"}]",
        ),
        (
            &clock_again,
            "two clock classes `c`: given again; first given here [\"c\"]",
        ),
        (
            &again,
            "two field class aliases `a`: named again; first named here [\"a\"]",
        ),
        (
            r#"{"type": "event-record-class"}
           {"type": "event-record-class", "id": 1}"#,
            "two values in one fragment: the fragment ends with this value; expected a record separator (U+001E) before this [{\"type\": \"event-record-class\"}]",
        ),
    ] {
        assert_eq!(after(&[fragment]), expected, "{fragment}");
    }
    let event = r#"{"type": "event-record-class", "id": 4}"#;
    assert_eq!(
        after(&[event, event]),
        "two event record classes with `id` 4 in the data stream class with `id` 0: given again; first event record class [4]"
    );
}

#[test]
fn preambles_and_trace_classes() {
    let long = format!(
        r#"{{"type": "preamble", "version": 2, "uuid": [{}]}}"#,
        ["0"; 17].join(",")
    );
    for (fragments, expected) in [
        (
            vec![STREAM],
            "the first fragment is not a preamble: expected `{\"type\": \"preamble\", \"version\": 2}` before this [{\"type\": \"data-stream-class\"}]",
        ),
        (vec![PREAMBLE], "no data stream class:  []"),
        (
            vec![PREAMBLE, r#"{"type": "trace-class"}"#],
            "no data stream class:  []",
        ),
        (
            vec![r#"{"type": "preamble"}"#],
            "the preamble has no `version`: expected a property `\"version\"` in this [{\"type\": \"preamble\"}]",
        ),
        (
            vec![r#"{"type": "preamble", "version": 2, "uuid": "a"}"#],
            "expected a UUID as an array of 16 numbers, found `\"a\"`: expected a UUID as an array of 16 numbers [\"a\"]",
        ),
        (
            vec![&long],
            "expected a UUID as an array of 16 numbers, found `[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]`: expected a UUID as an array of 16 numbers [[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]]",
        ),
        (
            vec![
                r#"{"type": "preamble", "version": 2, "uuid": [256,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#,
            ],
            "expected a number from 0 to 255, found `256`: expected a number from 0 to 255 [256]",
        ),
        (
            vec![
                r#"{"type": "preamble", "version": 2, "extensions": {"some.org,2024": {"piano": true}}}"#,
            ],
            "the extension `piano` of `some.org,2024` is not supported: expected no extension [\"piano\"]",
        ),
        (
            vec![
                PREAMBLE,
                r#"{"type": "trace-class"}"#,
                r#"{"type": "trace-class" }"#,
            ],
            "a second trace class: expected no trace class here; first trace class [{\"type\": \"trace-class\" }]",
        ),
        (
            vec![
                PREAMBLE,
                r#"{"type": "trace-class", "environment": {"a": 1.5}}"#,
            ],
            "expected text in quotes or an integer, found `1.5`: expected text in quotes or an integer [1.5]",
        ),
        (
            vec![
                PREAMBLE,
                r#"{"type": "trace-class", "environment": {"a": 9223372036854775808}}"#,
            ],
            "expected a signed integer of 64 bits, found `9223372036854775808`: expected a signed integer of 64 bits [9223372036854775808]",
        ),
    ] {
        assert_eq!(brief(&sequence(&fragments)), expected);
    }
}
