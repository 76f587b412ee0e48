//! What is wrong, and how it is told.

use proptest::prelude::*;

use super::{BOOL, I8, PREAMBLE, STREAM, U8, event, sequence, structure, variant};

fn error(text: &str) -> String {
    match super::super::parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.render("metadata", text, false),
    }
}

/// Message, labels, and what is in the text at the first of them.
fn brief(text: &str) -> String {
    let Err(error) = super::super::parse(text) else {
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
fn after(fragments: &[&str]) -> String {
    brief(&sequence(&[&[PREAMBLE, STREAM], fragments].concat()))
}

/// The error in the field classes of a payload.
fn payload(members: &[(&str, &str)]) -> String {
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
            "the field class of a scope is no structure: expected a structure [{\"type\": \"null-terminated-string\"}]",
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
            "the first fragment is no preamble: expected `{\"type\": \"preamble\", \"version\": 2}` before this [{\"type\": \"data-stream-class\"}]",
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
            "expected a UUID as an array of 16 numbers, found an array: expected a UUID as an array of 16 numbers [[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]]",
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

#[test]
fn field_classes() {
    let long = format!(r#"{{"type": "{}"}}"#, "x".repeat(50));
    for (class, expected) in [
        (
            "3",
            "expected a field class or the name of an alias, found `3`: expected a field class or the name of an alias [3]",
        ),
        (
            "{}",
            "a field class has no `type`: expected a property `\"type\"` in this [{}]",
        ),
        (
            r#"{"type": 1}"#,
            "expected text in quotes, found `1`: expected text in quotes [1]",
        ),
        (
            r#"{"type": "fixed-length-boolean"}"#,
            "a boolean has no `length`: expected a property `\"length\"` in this [{\"type\": \"fixed-length-boolean\"}]",
        ),
        (
            r#"{"type": "fixed-length-boolean", "length": 1}"#,
            "a boolean has no `byte-order`: expected a property `\"byte-order\"` in this [{\"type\": \"fixed-length-boolean\", \"length\": 1}]",
        ),
        (
            r#"{"type": "fixed-length-boolean", "length": 0}"#,
            "expected at least 1 bit, found `0`: expected at least 1 bit [0]",
        ),
        (
            r#"{"type": "fixed-length-bit-array", "length": 65}"#,
            "expected at most 64 bits, which is what is supported, found `65`: expected at most 64 bits, which is what is supported [65]",
        ),
        (
            r#"{"type": "fixed-length-floating-point-number", "length": 24}"#,
            "expected 16, 32, 64 or 128 bits, found `24`: expected 16, 32, 64 or 128 bits [24]",
        ),
        (
            r#"{"type": "fixed-length-floating-point-number", "length": 160}"#,
            "expected at most 128 bits, which is what is supported, found `160`: expected at most 128 bits, which is what is supported [160]",
        ),
        (
            r#"{"type": "fixed-length-boolean", "length": 1, "byte-order": "native"}"#,
            "expected `\"little-endian\"` or `\"big-endian\"`, found `\"native\"`: expected `\"little-endian\"` or `\"big-endian\"` [\"native\"]",
        ),
        (
            r#"{"type": "fixed-length-boolean", "length": 1, "byte-order": "big-endian", "bit-order": 1}"#,
            "expected `\"first-to-last\"` or `\"last-to-first\"`, found `1`: expected `\"first-to-last\"` or `\"last-to-first\"` [1]",
        ),
        (
            r#"{"type": "fixed-length-boolean", "length": 1, "byte-order": "big-endian", "alignment": 3}"#,
            "expected a power of two up to 2^31, found `3`: expected a power of two up to 2^31 [3]",
        ),
        (
            r#"{"type": "structure", "minimum-alignment": 0}"#,
            "expected a power of two up to 2^31, found `0`: expected a power of two up to 2^31 [0]",
        ),
        (
            r#"{"type": "structure", "minimum-alignment": 4294967296}"#,
            "expected a power of two up to 2^31, found `4294967296`: expected a power of two up to 2^31 [4294967296]",
        ),
        (
            r#"{"type": "fixed-length-bit-map", "length": 1, "byte-order": "big-endian", "flags": {}}"#,
            "expected at least one flag, found an object: expected at least one flag [{}]",
        ),
        (
            r#"{"type": "fixed-length-bit-map", "length": 1, "byte-order": "big-endian", "flags": {"a": [[-1, 0]]}}"#,
            "a bit with a negative number: expected numbers of bits, from 0 on [[-1, 0]]",
        ),
        (
            r#"{"type": "variable-length-signed-integer", "roles": []}"#,
            "unknown property `roles` of an integer of variable length: not a property of CTF 2 [\"roles\"]",
        ),
        (
            r#"{"type": "variable-length-unsigned-integer", "preferred-display-base": 3}"#,
            "expected 2, 8, 10 or 16, found `3`: expected 2, 8, 10 or 16 [3]",
        ),
        (
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": []}}"#,
            "expected at least one range, found an array: expected at least one range [[]]",
        ),
        (
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": [[1]]}}"#,
            "expected a range such as `[0, 9]`, found an array: expected a range such as `[0, 9]` [[1]]",
        ),
        (
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": [[2, 1]]}}"#,
            "expected a range whose first number is not greater than its last, found an array: expected a range whose first number is not greater than its last [[2, 1]]",
        ),
        (
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": [[2, 18446744073709551616]]}}"#,
            "expected an integer of 64 bits, found `18446744073709551616`: expected an integer of 64 bits [18446744073709551616]",
        ),
        (
            r#"{"type": "variable-length-signed-integer", "mappings": {"a": [[2, 9223372036854775808]]}}"#,
            "a range beyond the signed integers of 64 bits: expected numbers less than 2^63 [[2, 9223372036854775808]]",
        ),
        (
            r#"{"type": "null-terminated-string", "encoding": "ascii"}"#,
            "expected `\"utf-8\"`, `\"utf-16le\"`, `\"utf-16be\"`, `\"utf-32le\"` or `\"utf-32be\"`, found `\"ascii\"`: expected `\"utf-8\"`, `\"utf-16le\"`, `\"utf-16be\"`, `\"utf-32le\"` or `\"utf-32be\"` [\"ascii\"]",
        ),
        (
            r#"{"type": "static-length-string"}"#,
            "a string has no `length`: expected a property `\"length\"` in this [{\"type\": \"static-length-string\"}]",
        ),
        (
            r#"{"type": "dynamic-length-blob", "roles": []}"#,
            "unknown property `roles` of a BLOB: not a property of CTF 2 [\"roles\"]",
        ),
        (
            r#"{"type": "structure", "member-classes": [{"name": "a"}]}"#,
            "a member has no `field-class`: expected a property `\"field-class\"` in this [{\"name\": \"a\"}]",
        ),
        (
            r#"{"type": "static-length-array", "length": 1}"#,
            "an array has no `element-field-class`: expected a property `\"element-field-class\"` in this [{\"type\": \"static-length-array\", \"length\": 1}]",
        ),
        (
            r#"{"type": "variant", "selector-field-location": {"path": ["x"]}, "options": []}"#,
            "expected at least one option, found an array: expected at least one option [[]]",
        ),
    ] {
        assert_eq!(payload(&[("x", class)]), expected, "{class}");
    }
    let message = payload(&[("x", &long)]);
    assert!(
        message.starts_with("unknown type of field classes `xxxx"),
        "{message}"
    );
    assert_eq!(
        payload(&[("x", U8), ("x", U8)]),
        "a structure with two members `x`: named again; first named here [\"x\"]"
    );
}

#[test]
fn variants_and_optionals() {
    let at_s = r#"{"path": ["s"]}"#;
    let named = format!(
        r#"{{"type": "variant", "selector-field-location": {at_s}, "options": [
            {{"name": "a", "selector-field-ranges": [[0, 3]], "field-class": {U8}}},
            {{"name": "a", "selector-field-ranges": [[5, 6]], "field-class": {U8}}}]}}"#
    );
    let two = |one: &str, two: &str| variant(at_s, &[(one, U8), (two, U8)]);
    let optional = |more: &str| {
        format!(
            r#"{{"type": "optional", "selector-field-location": {at_s}, "field-class": {U8}{more}}}"#
        )
    };
    let ranges = |ranges: &str| optional(&format!(r#", "selector-field-ranges": {ranges}"#));
    for (selector, class, expected) in [
        (
            U8,
            &named,
            "a variant with two options `a`: named again; first named here [\"a\"]",
        ),
        (
            U8,
            &two("[[0, 3]]", "[[5, 6], [3, 4]]"),
            "two options for the same selector: 3 selects this option...; ... and this one [[3, 4]]",
        ),
        (
            U8,
            &two("[[0, 9], [1, 2]]", "[[3, 3]]"),
            "two options for the same selector: 3 selects this option...; ... and this one [[3, 3]]",
        ),
        (
            I8,
            &two("[[-3, -3]]", "[[-9, 9]]"),
            "two options for the same selector: -3 selects this option...; ... and this one [[-3, -3]]",
        ),
        (
            BOOL,
            &two("[[0, 0]]", "[[1, 1]]"),
            "ranges of a boolean selector: expected no ranges; this field is a boolean [[0, 0]]",
        ),
        (
            U8,
            &two("[[0, 0]]", "[[-2, -1]]"),
            "a negative range of an unsigned selector: expected numbers from 0 on; this field is an unsigned integer [[-2, -1]]",
        ),
        (
            I8,
            &two("[[0, 0]]", "[[9223372036854775808, 9223372036854775808]]"),
            "a range beyond the signed integers of 64 bits: expected numbers less than 2^63 [[9223372036854775808, 9223372036854775808]]",
        ),
        (
            BOOL,
            &ranges("[[1, 1]]"),
            "ranges of a boolean selector: expected no ranges; this field is a boolean [[1, 1]]",
        ),
        (
            U8,
            &optional(""),
            "an integer selector without ranges: this field is an integer [{\"path\": [\"s\"]}]",
        ),
        (
            r#"{"type": "null-terminated-string"}"#,
            &optional(""),
            "a selector that is neither integer nor boolean: expected the location of such a field; this is the field [{\"path\": [\"s\"]}]",
        ),
    ] {
        assert_eq!(
            payload(&[("s", selector), ("x", class)]),
            expected,
            "{class}"
        );
    }
    let mixed = variant(at_s, &[("[[0, 0]]", U8), ("[[1, 1]]", I8)]);
    let last = variant(r#"{"path": ["m"]}"#, &[("[[0, 0]]", U8)]);
    assert_eq!(
        payload(&[("s", U8), ("m", &mixed), ("x", &last)]),
        "a selector of different types: expected fields that are all unsigned, all signed or all boolean; this is one; this is another [{\"path\": [\"m\"]}]"
    );
}

#[test]
fn locations() {
    let text = |location: &str| {
        format!(r#"{{"type": "dynamic-length-string", "length-field-location": {location}}}"#)
    };
    for (location, expected) in [
        (
            "3",
            "expected a field location as an object, found `3`: expected a field location as an object [3]",
        ),
        (
            "{}",
            "a field location has no `path`: expected a property `\"path\"` in this [{}]",
        ),
        (
            r#"{"path": []}"#,
            "expected at least one name, found an object: expected at least one name [{\"path\": []}]",
        ),
        (
            r#"{"path": ["n", null]}"#,
            "expected the name of a field, found `null`: expected the name of a field [null]",
        ),
        (
            r#"{"path": [1]}"#,
            "expected text in quotes, found `1`: expected text in quotes [1]",
        ),
        (
            r#"{"path": ["what"]}"#,
            "no field `what`: expected the location of a field; looked for in this structure [{\"path\": [\"what\"]}]",
        ),
        (
            r#"{"path": ["n", "what"]}"#,
            "no field `n.what`: expected the location of a field; looked for in this structure [{\"path\": [\"n\", \"what\"]}]",
        ),
        (
            r#"{"path": [null, "n"]}"#,
            "a way out of the scope: there are not as many structures around this [{\"path\": [null, \"n\"]}]",
        ),
        (
            r#"{"origin": "event-record-payload", "path": [null, "n"]}"#,
            "a way out of the scope: there is no structure around that of the scope [null]",
        ),
        (
            r#"{"origin": "packet-context", "path": ["n"]}"#,
            "a location in a scope that is not there: this scope has no field class [{\"origin\": \"packet-context\", \"path\": [\"n\"]}]",
        ),
        (
            r#"{"origin": "payload", "path": ["n"]}"#,
            "expected `\"packet-header\"`, `\"packet-context\"`, `\"event-record-header\"`, `\"event-record-common-context\"`, `\"event-record-specific-context\"` or `\"event-record-payload\"`, found `\"payload\"`: expected `\"packet-header\"`, `\"packet-context\"`, `\"event-record-header\"`, `\"event-record-common-context\"`, `\"event-record-specific-context\"` or `\"event-record-payload\"` [\"payload\"]",
        ),
        (
            r#"{"path": ["later"]}"#,
            "`later` does not come before this: expected a field that is decoded before; this is the field [{\"path\": [\"later\"]}]",
        ),
        (
            r#"{"path": ["x"]}"#,
            "`x` does not come before this: expected a field that is decoded before; this is the field [{\"path\": [\"x\"]}]",
        ),
        (
            r#"{"path": ["i"]}"#,
            "a length that is no unsigned integer: expected the location of an unsigned integer; this is the field [{\"path\": [\"i\"]}]",
        ),
        (
            r#"{"path": ["b"]}"#,
            "a length that is no unsigned integer: expected the location of an unsigned integer; this is the field [{\"path\": [\"b\"]}]",
        ),
        (
            r#"{"path": ["s"]}"#,
            "a length that is no unsigned integer: expected the location of an unsigned integer; this is the field [{\"path\": [\"s\"]}]",
        ),
        (
            r#"{"path": ["a", "m"]}"#,
            "`a.m` lies in an array that is not being decoded here: expected a field that there is once; this is the array [{\"path\": [\"a\", \"m\"]}]",
        ),
        (
            "[]",
            "expected a field location, found an array: expected a field location [[]]",
        ),
        (
            r#"["payload-header"]"#,
            "expected `\"packet-header\"`, `\"packet-context\"`, `\"event-record-header\"`, `\"event-record-common-context\"`, `\"event-record-specific-context\"` or `\"event-record-payload\"`, found `\"payload-header\"`: expected `\"packet-header\"`, `\"packet-context\"`, `\"event-record-header\"`, `\"event-record-common-context\"`, `\"event-record-specific-context\"` or `\"event-record-payload\"` [\"payload-header\"]",
        ),
    ] {
        let inner = structure(&[("m", U8)]);
        let array = format!(
            r#"{{"type": "static-length-array", "length": 2, "element-field-class": {inner}}}"#
        );
        let members = [
            ("n", U8),
            ("i", I8),
            ("b", BOOL),
            ("s", &*inner),
            ("a", &array),
            ("x", &text(location)),
            ("later", U8),
        ];
        assert_eq!(payload(&members), expected, "{location}");
    }
    // The payload comes after the contexts.
    let context = structure(&[(
        "t",
        &*text(r#"{"origin": "event-record-payload", "path": ["n"]}"#),
    )]);
    let event = format!(
        r#"{{"type": "event-record-class", "specific-context-field-class": {context}, "payload-field-class": {}}}"#,
        structure(&[("n", U8)])
    );
    assert_eq!(
        after(&[&event]),
        "`n` does not come before this: this scope is decoded later [{\"origin\": \"event-record-payload\", \"path\": [\"n\"]}]"
    );
}

#[test]
fn roles() {
    let with = |length: u32, role: &str| {
        format!(
            r#"{{"type": "fixed-length-unsigned-integer", "length": {length}, "byte-order": "big-endian", "roles": ["{role}"]}}"#
        )
    };
    let uuid = |length: u32| {
        format!(
            r#"{{"type": "static-length-blob", "length": {length}, "roles": ["metadata-stream-uuid"]}}"#
        )
    };
    let var = r#"{"type": "variable-length-unsigned-integer", "roles": ["packet-magic-number"]}"#;
    let magic = with(32, "packet-magic-number");
    let nested = structure(&[("m", &magic)]);
    let header = |members: &[(&str, &str)]| {
        let header = structure(members);
        let trace = format!(r#"{{"type": "trace-class", "packet-header-field-class": {header}}}"#);
        brief(&sequence(&[PREAMBLE, &trace]))
    };
    let stream = |part: &str, role: &str| {
        let class = structure(&[("x", &*with(8, role))]);
        let stream =
            format!(r#"{{"type": "data-stream-class", "id": 1, "{part}-field-class": {class}}}"#);
        after(&[&stream])
    };
    for (found, expected) in [
        (
            header(&[("x", &with(8, "event-record-class-id"))]),
            "the role `event-record-class-id` has no place here: expected in an event record header only [\"event-record-class-id\"]",
        ),
        (
            header(&[("x", &with(8, "packet-total-length"))]),
            "the role `packet-total-length` has no place here: expected in a packet context only [\"packet-total-length\"]",
        ),
        (
            header(&[("x", &with(8, "packet-magic-number"))]),
            "the role `packet-magic-number` is that of an integer of another size: expected in a field of a fixed length of 32 bits [\"packet-magic-number\"]",
        ),
        (
            header(&[("x", var)]),
            "the role `packet-magic-number` is that of an integer of another size: expected in a field of a fixed length of 32 bits [\"packet-magic-number\"]",
        ),
        (
            header(&[("x", U8), ("m", &magic)]),
            "the role `packet-magic-number` is not that of the first field: expected in the first member of the packet header [\"packet-magic-number\"]",
        ),
        (
            header(&[("x", &nested)]),
            "the role `packet-magic-number` is not that of the first field: expected in the first member of the packet header [\"packet-magic-number\"]",
        ),
        (
            header(&[("u", &uuid(16))]),
            "the role `metadata-stream-uuid` needs a UUID: expected `\"uuid\"` in the preamble of the metadata [\"metadata-stream-uuid\"]",
        ),
        (
            header(&[("u", &uuid(15))]),
            "the role `metadata-stream-uuid` is that of a BLOB of another size: expected in a BLOB of 16 bytes [\"metadata-stream-uuid\"]",
        ),
        (
            payload(&[("u", &uuid(16))]),
            "the role `metadata-stream-uuid` has no place here: expected in a packet header only [\"metadata-stream-uuid\"]",
        ),
        (
            stream("packet-context", "packet-magic-number"),
            "the role `packet-magic-number` has no place here: expected in a packet header only [\"packet-magic-number\"]",
        ),
        (
            stream("packet-context", "default-clock-timestamp"),
            "the role `default-clock-timestamp` needs a clock: expected `\"default-clock-class-id\"` in the data stream class [\"default-clock-timestamp\"]",
        ),
        (
            stream("packet-context", "packet-end-default-clock-timestamp"),
            "the role `packet-end-default-clock-timestamp` needs a clock: expected `\"default-clock-class-id\"` in the data stream class [\"packet-end-default-clock-timestamp\"]",
        ),
        (
            stream("event-record-header", "packet-sequence-number"),
            "the role `packet-sequence-number` has no place here: expected in a packet context only [\"packet-sequence-number\"]",
        ),
        (
            stream("event-record-common-context", "default-clock-timestamp"),
            "the role `default-clock-timestamp` has no place here: expected in a packet context or an event record header only [\"default-clock-timestamp\"]",
        ),
        (
            payload(&[("x", &with(8, "data-stream-id"))]),
            "the role `data-stream-id` has no place here: expected in a packet header only [\"data-stream-id\"]",
        ),
    ] {
        assert_eq!(found, expected);
    }
    let message = payload(&[("x", &with(8, "what"))]);
    assert!(
        message.starts_with("expected `\"packet-magic-number\"`, "),
        "{message}"
    );
}

// Sizes.

#[test]
fn values_do_not_nest_without_end() {
    for deep in [
        "[".repeat(1_000_000),
        r#"{"a":"#.repeat(1_000_000),
        format!("{PREAMBLE}\u{1e}{}", "[".repeat(1_000_000)),
    ] {
        let message = brief(&format!("\u{1e}{deep}"));
        assert!(
            message
                .starts_with("values lie too deep within each other: expected at most 256 levels"),
            "{message}"
        );
    }
}

#[test]
fn field_classes_do_not_nest_without_end() {
    let nested = |levels: usize| {
        let class = format!(
            "{}{U8}{}",
            r#"{"type": "static-length-array", "length": 1, "element-field-class": "#
                .repeat(levels),
            "}".repeat(levels)
        );
        event(&[], &structure(&[("x", &class)]))
    };
    assert!(super::super::parse(&nested(62)).is_ok());
    let message = brief(&nested(63));
    assert!(
        message.starts_with(
            "field classes lie too deep within each other: expected at most 64 levels"
        ),
        "{message}"
    );
}

/// Aliases of arrays in arrays, each around the one before.
fn aliases(count: usize, class: impl Fn(&str) -> String) -> Vec<String> {
    let first = format!(r#"{{"type": "field-class-alias", "name": "a0", "field-class": {U8}}}"#);
    let mut aliases = vec![first];
    for level in 1..=count {
        let class = class(&format!("\"a{}\"", level - 1));
        aliases.push(format!(
            r#"{{"type": "field-class-alias", "name": "a{level}", "field-class": {class}}}"#
        ));
    }
    aliases
}

#[test]
fn aliases_do_not_nest_without_end() {
    let aliases = aliases(64, |inner| {
        format!(r#"{{"type": "static-length-array", "length": 1, "element-field-class": {inner}}}"#)
    });
    let fragments: Vec<_> = aliases.iter().map(|alias| &**alias).collect();
    let message = brief(&event(&fragments, &structure(&[])));
    assert!(
        message.starts_with("field classes lie too deep within each other"),
        "{message}"
    );
}

#[test]
fn aliases_do_not_multiply_beyond_measure() {
    let aliases = aliases(40, |inner| structure(&[("a", inner), ("b", inner)]));
    let fragments: Vec<_> = aliases.iter().map(|alias| &**alias).collect();
    // Named, they cost nothing; used, they are too many.
    assert!(super::super::parse(&event(&fragments, &structure(&[]))).is_ok());
    let message = brief(&event(&fragments, &structure(&[("x", r#""a40""#)])));
    assert!(
        message.starts_with("more field classes than a trace may have: this one is too much"),
        "{message}"
    );
}

#[test]
fn ways_through_variants_do_not_multiply_beyond_measure() {
    let aliases = aliases(40, |inner| {
        let options = [("[[0, 0]]", inner), ("[[1, 1]]", inner)];
        variant(
            r#"{"origin": "event-record-payload", "path": ["n"]}"#,
            &options,
        )
    });
    let fragments: Vec<_> = aliases.iter().map(|alias| &**alias).collect();
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"path": ["v"]}}"#;
    let members = [("n", U8), ("v", r#""a40""#), ("t", text)];
    let message = brief(&event(&fragments, &structure(&members)));
    assert!(
        message.starts_with("more field classes than a trace may have"),
        "{message}"
    );
}

#[test]
fn values_of_a_fragment_are_counted() {
    let many = format!("\u{1e}[{}0]", "0,".repeat(1 << 21));
    let message = brief(&many);
    assert!(
        message.starts_with("more values than a fragment may have"),
        "{message}"
    );
}

/// Pieces of which texts are made that come close to metadata.
fn pieces() -> impl Strategy<Value = String> {
    let fragment = r#"{"type": "event-record-class", "payload-field-class": "#;
    let owned = |text: &str| text.to_owned();
    let piece = prop::sample::select(vec![
        owned("\u{1e}"),
        sequence(&[PREAMBLE]),
        sequence(&[STREAM]),
        sequence(&[r#"{"type": "clock-class", "id": "c", "frequency": 5}"#]),
        format!(
            "\u{1e}{{\"type\": \"field-class-alias\", \"name\": \"u8\", \"field-class\": {U8}}}"
        ),
        format!("\u{1e}{fragment}"),
        owned(fragment),
        owned(r#"{"type": "structure", "member-classes": ["#),
        owned(r#"{"name": "a", "field-class": "#),
        owned(r#"{"name": "b", "field-class": "#),
        owned(r#"{"type": "variant", "options": ["#),
        owned(r#""selector-field-ranges": [[0, 5]]"#),
        owned(r#""selector-field-location": {"path": ["a"]}"#),
        owned(r#""length-field-location": {"path": [null, "a"]}"#),
        owned(r#"{"type": "dynamic-length-string""#),
        owned(r#"{"type": "optional", "field-class": "#),
        owned(U8),
        owned(BOOL),
        owned("\"u8\""),
        owned("{"),
        owned("}"),
        owned("["),
        owned("]"),
        owned(","),
        owned(":"),
        owned("}}"),
        owned("]}"),
        owned("\"type\""),
        owned("\"roles\": [\"packet-magic-number\"]"),
        owned("\"\\u"),
        owned("\"é"),
        owned("-1"),
        owned("18446744073709551616"),
        owned("null"),
        owned("\0"),
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_upsets_the_parser(text in pieces()) {
        if let Err(error) = super::super::parse(&text) {
            prop_assert!(!error.render("metadata", &text, true).is_empty());
        }
    }

    #[test]
    fn json_is_what_others_take_for_it(pieces in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\\n\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\"",
        "\"\u{7f}é\"", "\"", "\\", "0", "-0", "12", "-7", "1.5", "1e5", "2E-3", "01", "1.", "+1", ".5",
        "null", "true", "false", "nul", " ", "\n", "\t",
    ]), 1..12)) {
        let text = pieces.concat();
        let theirs: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let ours = super::super::json::parse(&text, 0..text.len());
        let ours = ours.ok().filter(|(_, end)| *end == text.len());
        match (theirs, ours) {
            (Some(theirs), Some((ours, _))) => prop_assert!(same(&theirs, &ours), "{}", text),
            (None, None) => {}
            // Members of one name, which are an error here, the last one there.
            (Some(_), None) => prop_assert!(text.contains("\"a\""), "{}", text),
            (None, Some(_)) => prop_assert!(false, "{}", text),
        }
    }
}

fn same(theirs: &serde_json::Value, ours: &super::super::json::Value<'_>) -> bool {
    use super::super::json::Kind;
    use serde_json::Value;
    match (theirs, &ours.kind) {
        (Value::Null, Kind::Null) => ours.text == "null",
        (Value::Bool(boolean), Kind::Bool) => ours.text == boolean.to_string(),
        (Value::Number(number), Kind::Integer(integer)) => {
            number.to_string().trim_start_matches("-0.0") == ""
                || number.as_i128() == Some(*integer)
        }
        (Value::Number(number), Kind::Number) => number.is_f64(),
        (Value::String(theirs), Kind::Text(ours)) => theirs == ours,
        (Value::Array(theirs), Kind::Array(ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(a, b)| same(a, b))
        }
        (Value::Object(theirs), Kind::Object(ours)) => {
            theirs.len() == ours.len()
                && ours.iter().all(|member| {
                    theirs
                        .get(&*member.name)
                        .is_some_and(|value| same(value, &member.value))
                })
        }
        _ => false,
    }
}
