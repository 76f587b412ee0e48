//! What field classes mean.

use super::*;

#[test]
fn fixed_bits_have_an_order_and_defaults() {
    let bits = |kind: &str, more: &str| {
        class(&format!(
            r#"{{"type": "fixed-length-{kind}", "length": 16, {more}}}"#
        ))
    };
    let le = r#""byte-order": "little-endian""#;
    let be = r#""byte-order": "big-endian", "alignment": 32"#;
    assert_eq!(bits("bit-array", le), "bits16le@1");
    assert_eq!(bits("boolean", be), "bool16be@32");
    assert_eq!(bits("unsigned-integer", le), "u16le@1");
    assert_eq!(bits("signed-integer", be), "i16be@32");
    assert_eq!(bits("floating-point-number", be), "f16be@32");
    assert_eq!(
        bits(
            "bit-map",
            &format!(r#"{le}, "flags": {{"a": [[0, 0], [3, 5]], "b": [[1, 1]]}}"#)
        ),
        "map16le@1 a=[(0, 0), (3, 5)] b=[(1, 1)]"
    );
    for (order, bit_order, reversed) in [
        ("little", "first-to-last", ""),
        ("little", "last-to-first", " reversed"),
        ("big", "first-to-last", " reversed"),
        ("big", "last-to-first", ""),
    ] {
        let more = format!(r#""byte-order": "{order}-endian", "bit-order": "{bit_order}""#);
        assert_eq!(
            bits("unsigned-integer", &more),
            format!("u16{}e@1{reversed}", &order[..1])
        );
    }
}

#[test]
fn integers_have_bases_and_mappings() {
    for (base, shown) in [
        (2, " Binary"),
        (8, " Octal"),
        (10, ""),
        (16, " Hexadecimal"),
    ] {
        assert_eq!(
            class(&format!(
                r#"{{"type": "variable-length-unsigned-integer", "preferred-display-base": {base}}}"#
            )),
            format!("uvar{shown}")
        );
    }
    assert_eq!(
        class(
            r#"{"type": "variable-length-signed-integer",
                "mappings": {"all": [[-9223372036854775808, 9223372036854775807]], "b": [[-1, 2], [1, 1]]}}"#
        ),
        format!(
            "ivar all=[({}, {})] b=[({}, 2), (1, 1)]",
            1u64 << 63,
            i64::MAX,
            u64::MAX
        )
    );
    assert_eq!(
        class(
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"z": [[0, 18446744073709551615]], "a": [[9, 9]]}}"#
        ),
        format!("uvar z=[(0, {})] a=[(9, 9)]", u64::MAX)
    );
}

#[test]
fn labels_of_what_an_unsigned_integer_is_never_are_odd() {
    let integer = r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": [[-3, -1], [-2, 7]], "b": [[-9, -9]]}}"#;
    assert_eq!(class(integer), "uvar a=[(0, 7)]");
    let message =
        |label| format!("the label `{label}` of an unsigned integer is for negative ones");
    assert_eq!(
        warnings(&event(&[], &structure(&[("x", integer)]))),
        [message("a"), message("a"), message("b")]
    );
}

#[test]
fn floats_of_128_bits_are_read() {
    assert_eq!(
        class(
            r#"{"type": "fixed-length-floating-point-number", "length": 128, "byte-order": "big-endian"}"#
        ),
        "f128be@1"
    );
}

#[test]
fn strings_and_blobs() {
    assert_eq!(
        class(r#"{"type": "null-terminated-string"}"#),
        "text Utf8@8"
    );
    for (name, encoding) in super::super::classes::ENCODINGS {
        let text =
            format!(r#"{{"type": "static-length-string", "length": 0, "encoding": "{name}"}}"#);
        assert_eq!(class(&text), format!("text[0] {encoding:?}@8"));
    }
    assert_eq!(
        class(r#"{"type": "static-length-blob", "length": 3}"#),
        "blob[3] application/octet-stream"
    );
    let length = r#""length-field-location": {"path": ["n"]}"#;
    let text = format!(r#"{{"type": "dynamic-length-string", {length}}}"#);
    let blob = format!(r#"{{"type": "dynamic-length-blob", {length}, "media-type": "a/b"}}"#);
    assert_eq!(
        payload(&[], &[("n", U8), ("t", &text), ("b", &blob)]),
        "{n: u8le@1, t: text[Payload.0] Utf8@8, b: blob[Payload.0] a/b}"
    );
}

#[test]
fn compounds() {
    assert_eq!(class(r#"{"type": "structure"}"#), "{}");
    assert_eq!(
        class(r#"{"type": "structure", "minimum-alignment": 16, "member-classes": []}"#),
        "{}@16"
    );
    let array = |more: &str| format!(r#"{{"type": {more}, "element-field-class": {U8}}}"#);
    assert_eq!(
        class(&array(
            r#""static-length-array", "length": 2, "minimum-alignment": 64"#
        )),
        "[u8le@1; 2]@64"
    );
    let array = array(r#""dynamic-length-array", "length-field-location": {"path": ["n"]}"#);
    let n = r#"{"type": "variable-length-unsigned-integer"}"#;
    assert_eq!(
        payload(&[], &[("n", n), ("a", &array)]),
        "{n: uvar, a: [u8le@1; Payload.0]}"
    );
}

#[test]
fn optionals_are_selected_by_booleans_and_integers() {
    let optional = |more: &str| {
        format!(
            r#"{{"type": "optional", "selector-field-location": {{"path": ["s"]}}, "field-class": {U8}{more}}}"#
        )
    };
    let ranges = optional(r#", "selector-field-ranges": [[1, 3], [2, 2]]"#);
    assert_eq!(
        payload(&[], &[("s", BOOL), ("o", &optional(""))]),
        "{s: bool8le@1, o: <Payload.0>(true: u8le@1)?}"
    );
    assert_eq!(
        payload(&[], &[("s", U8), ("o", &ranges)]),
        "{s: u8le@1, o: <Payload.0>(u[(1, 3), (2, 2)]: u8le@1)?}"
    );
    assert_eq!(
        payload(&[], &[("s", I8), ("o", &ranges)]),
        "{s: i8le@1, o: <Payload.0>(i[(1, 3), (2, 2)]: u8le@1)?}"
    );
}

#[test]
fn variants_have_options_with_ranges() {
    let at_s = r#"{"path": ["s"]}"#;
    let named = format!(
        r#"{{"type": "variant", "selector-field-location": {at_s}, "options": [
            {{"name": "a", "selector-field-ranges": [[0, 3], [7, 7], [2, 4]], "field-class": {U8}}},
            {{"name": "b", "selector-field-ranges": [[5, 6], [8, 18446744073709551615]], "field-class": {I8}}}]}}"#
    );
    assert_eq!(
        payload(&[], &[("s", U8), ("v", &named)]),
        format!(
            "{{s: u8le@1, v: <Payload.0>(au[(0, 3), (7, 7), (2, 4)]: u8le@1, bu[(5, 6), (8, {})]: i8le@1)}}",
            u64::MAX
        )
    );
    assert_eq!(
        payload(
            &[],
            &[("s", I8), ("v", &variant(at_s, &[("[[-5, -1]]", U8)]))]
        ),
        "{s: i8le@1, v: <Payload.0>(i[(-5, -1)]: u8le@1)}"
    );
}

#[test]
fn aliases_mean_what_their_place_makes_of_them() {
    let u8_alias = format!(r#"{{"type": "field-class-alias", "name": "u8", "field-class": {U8}}}"#);
    let text = r#"{"type": "field-class-alias", "name": "text", "field-class":
        {"type": "dynamic-length-string", "length-field-location": {"path": ["n"]}}}"#;
    let inner = structure(&[("a", r#""u8""#), ("n", r#""u8""#), ("t", r#""text""#)]);
    assert_eq!(
        payload(
            &[&u8_alias, text],
            &[("n", r#""u8""#), ("t", r#""text""#), ("s", &inner)]
        ),
        "{n: u8le@1, t: text[Payload.0] Utf8@8, \
         s: {a: u8le@1, n: u8le@1, t: text[Payload.2.1] Utf8@8}}"
    );
}
