//! Which field a length or tag means (§4.2.2, §7.3).

use super::super::parse;
use super::{TRACE, fields, warnings};

/// The error in an event's payload: its message, and the text that it is about.
fn error(fields: &str) -> (String, String) {
    let text = format!("{TRACE}event {{ name = e; fields := struct {{ {fields} }}; }};");
    let error = parse(&text).map(drop).unwrap_err();
    (error.message, text[error.spans[0].range.clone()].to_owned())
}

const TAG: &str = "enum : u8 { A = 1, B = 2 }";

#[test]
fn a_variant_keeps_the_tag_of_its_declaration() {
    for declaration in [
        "typedef variant <x> { u8 A; i8 B; } v;",
        "typealias variant <x> { u8 A; i8 B; } := v;",
        "variant named { u8 A; i8 B; }; typedef variant named <x> v;",
        "variant named <x> { u8 A; i8 B; }; typedef variant named v;",
        "typedef variant <x> { u8 A; i8 B; } w; typedef w v;",
        "struct t { variant <x> { u8 A; i8 B; } v; }; typealias struct t := v;",
        "typedef variant <x> { u8 A; i8 B; } v; struct t { u8 x; v v; }; typedef struct t w;",
    ] {
        let shown = fields(&format!(
            "{TAG} x; {declaration} struct {{ {TAG} x; v v; }} f[2];"
        ));
        assert!(shown.contains("<Payload.0>"), "{declaration}: {shown}");
        assert!(!shown.contains("<Payload.1"), "{declaration}: {shown}");
    }
}

#[test]
fn a_sequence_keeps_the_length_of_its_declaration() {
    for (declaration, type_name) in [
        ("typedef u8 t[n];", "t"),
        ("typealias u8 := t[n];", "t"),
        ("typealias u8 [n] := t;", "t"),
        ("struct t { u8 d[n]; };", "struct t"),
        ("typedef struct { u8 d[n]; } t;", "t"),
        ("typedef u8 s[n]; typedef s t;", "t"),
    ] {
        let shown = fields(&format!(
            "u8 n; {declaration} struct {{ u8 n; {type_name} d; }} f;"
        ));
        assert!(shown.contains("; Payload.0]"), "{declaration}: {shown}");
    }
}

#[test]
fn the_closest_preceding_field_is_meant() {
    // The inner structure has one when the type is declared.
    assert_eq!(
        fields("u8 n; struct { u8 n; typedef u8 t[n]; struct { u8 n; t d; } g; } f;"),
        "{n: u8le@8, f: {n: u8le@8, g: {n: u8le@8, d: [u8le@8; Payload.1.0]}}}"
    );
    // It comes behind the declaration.
    assert_eq!(
        fields("u8 n; struct { typedef u8 t[n]; u8 n; t d; } f;"),
        "{n: u8le@8, f: {n: u8le@8, d: [u8le@8; Payload.0]}}"
    );
    // A type's own fields come first, wherever it is used.
    assert_eq!(
        fields("u8 n; struct t { u8 n; u8 d[n]; }; struct { u8 n; struct t x[2]; } f;"),
        "{n: u8le@8, f: {n: u8le@8, x: [{n: u8le@8, d: [u8le@8; Payload.1.1.*.0]}; 2]}}"
    );
}

#[test]
fn a_tag_or_length_that_is_given_at_the_use_is_one_of_the_use() {
    assert_eq!(
        fields(&format!(
            "{TAG} x; variant v {{ u8 A; i8 B; }}; struct {{ {TAG} x; variant v <x> v; }} f;"
        )),
        fields(&format!(
            "{TAG} x; struct {{ {TAG} x; variant <x> {{ u8 A; i8 B; }} v; }} f;"
        ))
    );
    assert_eq!(
        fields("u8 n; typedef struct { u8 a; } t; struct { u8 n; t d[n]; } f;"),
        "{n: u8le@8, f: {n: u8le@8, d: [{a: u8le@8}; Payload.1.0]}}"
    );
}

#[test]
fn absolute_names_mean_the_same_everywhere() {
    assert_eq!(
        fields("u8 n; typedef u8 t[event.fields.n]; struct { u8 n; t d; } f;"),
        "{n: u8le@8, f: {n: u8le@8, d: [u8le@8; Payload.0]}}"
    );
}

#[test]
fn what_only_the_use_shows_is_odd() {
    for fields in [
        "typedef u8 t[n]; u8 n; t d;",
        "struct t { u8 d[n]; }; u8 n; struct t d;",
    ] {
        let text = format!("{TRACE}event {{ name = e; fields := struct {{ {fields} }}; }};");
        assert_eq!(warnings(&text), ["unknown field `n`"]);
    }
    let text = format!(
        "{TRACE}typedef u8 t[n];
         event {{ name = e; fields := struct {{ u8 n; t d; t e; }}; }};"
    );
    assert_eq!(warnings(&text), ["unknown field `n`"]);
}

#[test]
fn references_mean_something_in_types_that_nothing_uses() {
    for (declaration, message, culprit) in [
        ("struct t { u8 d[nope]; };", "unknown field `nope`", "nope"),
        ("typedef u8 t[nope];", "unknown field `nope`", "nope"),
        ("typedef u8 t[s];", "`s` is not an unsigned integer", "s"),
        (
            "typedef u8 t[f.s];",
            "`f.s` is not an unsigned integer",
            "f.s",
        ),
        ("typedef u8 t[f.x];", "unknown field `f.x`", "f.x"),
        ("typedef u8 t[later];", "unknown field `later`", "later"),
        (
            "typedef variant <n> { u8 A; } t;",
            "`n` is not an enumeration",
            "n",
        ),
        (
            "typedef variant <nope> { u8 A; } t;",
            "unknown field `nope`",
            "nope",
        ),
        (
            "typedef u8 t[event.fields.nope];",
            "unknown field `event.fields.nope`",
            "event.fields.nope",
        ),
        (
            "typedef u8 t[stream.event.header.nope];",
            "unknown field `stream.event.header.nope`",
            "stream.event.header.nope",
        ),
        (
            "struct t { variant { u8 A; } v; };",
            "variant without a tag",
            "v",
        ),
    ] {
        let fields = format!("u8 n; i8 s; struct {{ i8 s; }} f; {declaration} u8 later;");
        let expected = (message.to_owned(), culprit.to_owned());
        assert_eq!(error(&fields), expected, "{declaration}");
    }
    // What another block may have.
    let text = format!(
        "{TRACE}typedef u8 t[event.fields.n]; stream {{ typedef u8 t[event.context.n]; }};"
    );
    assert!(warnings(&text).is_empty());
    let text = format!("{TRACE}typedef u8 t[nope];");
    assert!(parse(&text).is_err());
}

#[test]
fn a_field_in_an_array_is_no_tag_or_length_outside_of_it() {
    let zop = format!("struct {{ {TAG} tag; u8 n; }} zop[2];");
    for (field, culprit) in [
        ("variant <zop.tag> { u8 A; u8 B; } v;", "zop.tag"),
        (
            "variant <event.fields.zop.tag> { u8 A; u8 B; } v;",
            "event.fields.zop.tag",
        ),
        ("u8 d[zop.n];", "zop.n"),
        ("typedef u8 t[zop.n];", "zop.n"),
    ] {
        let (message, at) = error(&format!("{zop} {field}"));
        assert_eq!(message, format!("`{culprit}` is in an array"));
        assert_eq!(at, culprit);
    }
    // Within the array, it is the field of the same element.
    assert_eq!(
        fields("struct { u8 n; u8 d[event.fields.zop.n]; } zop[2];"),
        "{zop: [{n: u8le@8, d: [u8le@8; Payload.0.*.0]}; 2]}"
    );
}
