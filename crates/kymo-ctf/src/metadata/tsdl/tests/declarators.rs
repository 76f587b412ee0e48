//! What stands beside a type: lengths, and the sizes of bit fields (§4.1.6, §C.2).

use super::super::parse;
use super::{TRACE, fields};

const SHORT: &str = "typealias integer { size = 16; align = 16; signed = true; } := short;";

#[test]
fn aliases_have_lengths() {
    assert_eq!(fields("typealias u8 := t[4]; t a;"), "{a: [u8le@8; 4]}");
    // As of a field, the first length is that of the outermost array.
    assert_eq!(
        fields("typealias u8 := t[2][3]; t a; u8 b[2][3];"),
        "{a: [[u8le@8; 3]; 2], b: [[u8le@8; 3]; 2]}"
    );
    assert_eq!(
        fields("u8 n; typealias u8 [2] := t[n]; t a;"),
        "{n: u8le@8, a: [[u8le@8; 2]; Payload.0]}"
    );
    assert_eq!(
        fields(
            "typealias integer { size = 8; encoding = UTF8; } := char; typealias char := text[8]; text a;"
        ),
        "{a: text[8]}"
    );
    assert_eq!(
        fields("typedef u8 t[2], s[3][4]; t a; s b;"),
        "{a: [u8le@8; 2], b: [[u8le@8; 4]; 3]}"
    );
}

#[test]
fn bit_fields_lie_in_units_of_their_type() {
    assert_eq!(
        fields(&format!(
            "{SHORT} short a : 12; short b : 5, c : 0x3; u8 d;"
        )),
        "{a: i12le@1/16, b: i5le@1/16, c: i3le@1/16, d: u8le@8}@16"
    );
    // The structure is aligned as the type is.
    assert_eq!(
        fields(&format!(
            "{SHORT} struct {{ u8 a : 1; short b : 1; }} s; u8 c : 8;"
        )),
        "{s: {a: u1le@1/8, b: i1le@1/16}@16, c: u8le@1/8}@8"
    );
    assert_eq!(
        fields("struct { integer { size = 32; byte_order = be; base = 16; } a : 3; } align(64) s;"),
        "{s: {a: u3be@1/32 Hexadecimal}@64}"
    );
    assert_eq!(
        fields("enum : u8 { A = 1, B = 2 } t : 2; variant <t> { u8 A : 4; u8 B; } v;"),
        "{t: u2le@1/8 A=[(1, 1)] B=[(2, 2)], v: <Payload.0>(A[(1, 1)]: u4le@1/8, B[(2, 2)]: u8le@8)}@8"
    );
}

#[test]
fn bit_fields_are_integers_that_fit_their_unit() {
    for (fields, expected) in [
        ("u8 a : 0;", "bit field of 0 bits in a unit of 8"),
        ("u8 a : 9;", "bit field of 9 bits in a unit of 8"),
        ("u8 n; u8 a : n;", "expected an unsigned integer, found `n`"),
        (
            "string a : 3;",
            "bit field of a type that is not an integer",
        ),
        ("u8 a[2] : 3;", "array of bit fields"),
        (
            "integer { size = 24; } a : 3;",
            "bit field in a unit of 24 bits",
        ),
        ("typedef u8 t : 3;", "bit field that is not a member"),
        ("typealias u8 := t : 3;", "expected `;`, found `:`"),
        ("u8 : 3;", "expected a name after the type, found `:`"),
    ] {
        let text = format!("{TRACE}event {{ name = e; fields := struct {{ {fields} }}; }};");
        let error = parse(&text).map(drop).unwrap_err();
        assert_eq!(error.message, expected, "{fields}");
    }
}
