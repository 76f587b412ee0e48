//! What is wrong with field classes, locations and roles.

use super::errors::{after, brief, payload};
use super::{BOOL, I8, PREAMBLE, U8, sequence, structure, variant};

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
            "expected at least one flag, found `{}`: expected at least one flag [{}]",
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
            "expected at least one range, found `[]`: expected at least one range [[]]",
        ),
        (
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": [[1]]}}"#,
            "expected a range such as `[0, 9]`, found `[1]`: expected a range such as `[0, 9]` [[1]]",
        ),
        (
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": [[2, 1]]}}"#,
            "expected a range whose first number is not greater than its last, found `[2, 1]`: expected a range whose first number is not greater than its last [[2, 1]]",
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
            "expected at least one option, found `[]`: expected at least one option [[]]",
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
            "expected at least one name, found `{\"path\": []}`: expected at least one name [{\"path\": []}]",
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
            "a length that is not an unsigned integer: expected the location of an unsigned integer; this is the field [{\"path\": [\"i\"]}]",
        ),
        (
            r#"{"path": ["b"]}"#,
            "a length that is not an unsigned integer: expected the location of an unsigned integer; this is the field [{\"path\": [\"b\"]}]",
        ),
        (
            r#"{"path": ["s"]}"#,
            "a length that is not an unsigned integer: expected the location of an unsigned integer; this is the field [{\"path\": [\"s\"]}]",
        ),
        (
            r#"{"path": ["a", "m"]}"#,
            "`a.m` lies in an array that is not being decoded here: expected a field that there is once; this is the array [{\"path\": [\"a\", \"m\"]}]",
        ),
        (
            "[]",
            "expected a field location, found `[]`: expected a field location [[]]",
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

#[test]
fn integers_of_more_than_64_bits_are_values_only() {
    let wide = |more: &str| {
        format!(
            r#"{{"type": "fixed-length-unsigned-integer", "length": 65, "byte-order": "big-endian"{more}}}"#
        )
    };
    let plain = wide("");
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"path": ["n"]}}"#;
    let optional = format!(
        r#"{{"type": "optional", "field-class": {U8}, "selector-field-location": {{"path": ["n"]}}, "selector-field-ranges": [[1, 1]]}}"#
    );
    for (members, expected) in [
        (
            &[("n", &*wide(r#", "mappings": {"a": [[1, 1]]}"#))][..],
            "expected no `mappings` of an integer of more than 64 bits",
        ),
        (
            &[("n", &*wide(r#", "roles": ["event-record-class-id"]"#))],
            "expected no `roles` of an integer of more than 64 bits",
        ),
        (&[("n", &*plain), ("t", text)], "a length of 65 bits"),
        (
            &[("n", &*plain), ("o", &*optional)],
            "a selector of 65 bits",
        ),
    ] {
        let found = payload(members);
        assert!(found.starts_with(expected), "{found}");
    }
    let larger = wide("").replace("65", "4097");
    let found = payload(&[("n", &*larger)]);
    assert!(found.starts_with("expected at most 4096 bits"), "{found}");
}
