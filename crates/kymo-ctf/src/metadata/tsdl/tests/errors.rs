//! Errors, and how they are reported.

use super::TRACE;

fn error(text: &str) -> String {
    match super::super::parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.render("metadata", text, false),
    }
}

/// The error in an event's payload: message and labels.
fn field_error(fields: &str) -> String {
    let text = format!("{TRACE}event {{ name = e; fields := struct {{ {fields} }}; }};");
    brief(&text)
}

/// Message and labels of an error.
fn brief(text: &str) -> String {
    let Err(error) = super::super::parse(text) else {
        panic!("accepted: {text}");
    };
    let labels: Vec<_> = error.spans.iter().map(|span| &*span.label).collect();
    for span in &error.spans {
        assert!(
            span.range.end <= text.len() && !span.range.is_empty() || text.is_empty(),
            "{span:?} of {text}"
        );
    }
    format!("{}: {}", error.message, labels.join("; "))
}

#[test]
fn the_culprit_is_shown_with_what_was_expected() {
    assert_eq!(
        error("trace {\n\tmajor = 1;\n\tminor = 8\n};\n"),
        "\
error: expected `;`, found `}`
 --> metadata:4:1
  |
4 | };
  | ^ expected `;`"
    );
}

#[test]
fn earlier_declarations_are_shown() {
    let text = "trace { major = 1; minor = 8; byte_order = le; };
clock { name = mono; };
/* Another one: */
clock { name = \"mono\"; freq = 1000; };
";
    assert_eq!(
        error(text),
        "\
error: two different clocks `mono`
 --> metadata:4:16
  |
4 | clock { name = \"mono\"; freq = 1000; };
  |                ^^^^^^ declared again
  |
 ::: metadata:2:16
  |
2 | clock { name = mono; };
  |                ---- first declared here"
    );
}

#[test]
fn what_does_not_come_before_is_shown() {
    let text = "trace { major = 1; minor = 8; byte_order = le; };
typealias integer { size = 8; } := u8;
event {
    name = e;
    fields := struct {
        u8 data[len];
        u8 len;
    };
};
";
    assert_eq!(
        error(text),
        "\
error: unknown field `len`
 --> metadata:6:17
  |
6 |         u8 data[len];
  |                 ^^^ expected a field that comes before this one
  |
 ::: metadata:7:12
  |
7 |         u8 len;
  |            --- this field does not come before"
    );
}

#[test]
fn braces_that_are_not_closed_are_shown() {
    let text = "trace { major = 1; minor = 8; byte_order = le; };\nevent { name = e;\n";
    assert_eq!(
        error(text),
        "\
error: expected `}`, found the end of the metadata
 --> metadata:3:1
  |
3 |
  | ^ expected `}`
  |
 ::: metadata:2:7
  |
2 | event { name = e;
  |       - to close this `{`"
    );
}

#[test]
fn grammar() {
    for (fields, expected) in [
        (
            "u8;",
            "expected a name after the type, found `;`: expected a name after the type",
        ),
        ("u8 a b;", "missing `;`: expected `;` before this"),
        ("u8 a\n u8 b;", "missing `;`: expected `;` before this"),
        (
            "nope a b;",
            "unknown type `nope a`: expected a type that was declared before",
        ),
        (
            "u8 a : 9;",
            "bit field of 9 bits in a unit of 8: expected 1 to 8 bits",
        ),
        (
            "u8 a[];",
            "expected a number or the name of a field, found `]`: \
          expected a number or the name of a field",
        ),
        (
            "u8 a[1;",
            "expected `]`, found `;`: expected `]`; to close this `[`",
        ),
        (
            "u8 a[b.];",
            "expected a name after the dot, found `]`: expected a name after the dot",
        ),
        (
            "u8 3;",
            "expected a name after the type, found `3`: expected a name after the type",
        ),
        (
            "\"u8\" a;",
            "expected `}`, found quoted text: expected `}`; to close this `{`",
        ),
        ("integer a;", "expected `{`, found `a`: expected `{`"),
        (
            "struct;",
            "expected the name of a structure or `{`, found `;`: \
          expected the name of a structure or `{`",
        ),
        (
            "struct { u8 a; } align(8;",
            "expected `)`, found `;`: expected `)`; to close this `(`",
        ),
        (
            "struct { u8 a; };",
            "expected a name, found `;`: expected a name",
        ),
        (
            "variant <> { } v;",
            "expected the name of an enumeration field, found `>`: \
          expected the name of an enumeration field",
        ),
        (
            "enum : u8 { A B } a;",
            "expected `,` or `}`, found `B`: \
          expected `,` or `}`; labels begin here",
        ),
        (
            "enum : u8 { A = x } a;",
            "expected an integer, found `x`: expected an integer",
        ),
        (
            "enum : u8 { 1 } a;",
            "expected a label, found `1`: expected a label",
        ),
        ("enum : u8 a;", "expected `{`, found `;`: expected `{`"),
        ("string s = 3;", "expected `;`, found `=`: expected `;`"),
        (
            "typealias u8 b := c;",
            "unknown type `u8 b`: expected a type that was declared before",
        ),
        (
            "typealias u8 = c;",
            "expected `:=`, found `=`: expected `:=`",
        ),
    ] {
        assert_eq!(field_error(fields), expected, "{fields}");
    }
}

#[test]
fn attributes_of_types() {
    for (class, expected) in [
        (
            "integer { }",
            "this integer has no `size`: expected `size = ...;` in this",
        ),
        (
            "integer { size = 0; }",
            "integer of 0 bits: expected 1 to 4096 bits",
        ),
        (
            "integer { size = 4097; }",
            "integer of 4097 bits: expected 1 to 4096 bits",
        ),
        (
            "integer { size = -8; }",
            "expected an unsigned integer, found `-8`: \
          expected an unsigned integer",
        ),
        (
            "integer { size = \"8\"; }",
            "expected an unsigned integer, found quoted text: \
          expected an unsigned integer",
        ),
        (
            "integer { size = struct { u8 a; }; }",
            "expected an unsigned integer, found a type: \
          expected an unsigned integer",
        ),
        (
            "integer { size = 8; size = 8; }",
            "`size` of an integer is given twice: \
          given again; first given here",
        ),
        (
            "integer { size = 8; signed = \"true\"; }",
            "expected `true`, `false`, 1 or 0, found quoted \
          text: expected `true`, `false`, 1 or 0",
        ),
        (
            "integer { size = 8; signed = maybe; }",
            "expected `true`, `false`, 1 or 0, found `maybe`: \
          expected `true`, `false`, 1 or 0",
        ),
        (
            "integer { size = 8; byte_order = middle; }",
            "expected `le`, `be`, `network` or \
          `native`, found `middle`: expected `le`, `be`, `network` or `native`",
        ),
        (
            "integer { size = 8; encoding = \"UTF8\"; }",
            "expected `UTF8`, `ASCII` or `none`, \
          found quoted text: expected `UTF8`, `ASCII` or `none`",
        ),
        (
            "integer { size = 8; base = 7; }",
            "expected `decimal`, `hexadecimal`, `octal`, \
          `binary`, 10, 16, 8 or 2, found `7`: expected `decimal`, `hexadecimal`, `octal`, \
          `binary`, 10, 16, 8 or 2",
        ),
        (
            "integer { size = 8; map = clock.nobody.value; }",
            "unknown clock `nobody`: \
          expected the name of a `clock` block",
        ),
        (
            "floating_point { exp_dig = 8; }",
            "this floating point number has no `mant_dig`: \
          expected `mant_dig = ...;` in this",
        ),
        (
            "floating_point { exp_dig = 8; mant_dig = 25; }",
            "no IEEE 754 format has 8 and 25 \
          binary digits: expected 5 and 11, 8 and 24, 11 and 53, or 15 and 113",
        ),
    ] {
        assert_eq!(field_error(&format!("{class} a;")), expected, "{class}");
    }
    for align in ["0", "3", "-8", "4294967296", "\"8\"", "eight"] {
        let expected = "expected an alignment: 1, 2, 4, 8, 16... bits";
        let error = field_error(&format!("integer {{ size = 8; align = {align}; }} a;"));
        assert!(error.starts_with(expected), "{error}");
        let error = field_error(&format!("struct {{ u8 x; }} align({align}) a;"));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn declarations_of_types() {
    for (fields, expected) in [
        (
            "nothing a;",
            "unknown type `nothing`: expected a type that was declared before",
        ),
        (
            "struct s a;",
            "unknown structure `s`: expected a structure that was declared before",
        ),
        (
            "variant v <a> a;",
            "unknown variant `v`: expected a variant that was declared before",
        ),
        (
            "enum e a;",
            "unknown enumeration `e`: expected an enumeration that was declared before",
        ),
        (
            "u8 *a;",
            "unknown type `u8 *`: expected a type that was declared before",
        ),
        (
            "struct { u8 x; } *a;",
            "pointer to a type without a name: \
          expected the name of a type before `*`",
        ),
        (
            "u8 a; string a;",
            "this structure has two fields `a`: \
          declared again; first declared here",
        ),
        (
            "typealias u8 := t; typedef i8 t;",
            "type `t` is declared twice: \
          declared again in the same scope; first declared here",
        ),
        (
            "struct s { u8 a; }; struct s { u8 b; };",
            "structure `s` is declared twice: \
          declared again in the same scope; first declared here",
        ),
        (
            "struct s { struct s inner; } a;",
            "unknown structure `s`: \
          expected a structure that was declared before",
        ),
        (
            "enum { A } a;",
            "enumeration without an integer type: expected `: TYPE` after this",
        ),
        (
            "enum : string {} { A } a;",
            "enumeration of a type that is not an integer: \
          expected an integer after the colon",
        ),
        (
            "enum : u8 { A = 5 ... 3 } a;",
            "the range of `A` ends before it begins: \
          expected at least 5",
        ),
        (
            "enum : u8 { A = 18446744073709551615, B } a;",
            "integer too large: \
          this label would stand for 18446744073709551616",
        ),
        (
            "enum : u8 { A = -9223372036854775809 } a;",
            "integer too small: \
          expected at least -9223372036854775808",
        ),
    ] {
        assert_eq!(field_error(fields), expected, "{fields}");
    }
}

#[test]
fn references() {
    let number = "is not an unsigned integer: expected the name of an unsigned integer field; \
                  this is the field";
    let label = "is not an enumeration: expected the name of an enumeration field; \
                 this is the field";
    for (fields, expected) in [
        ("u8 a[a];", "unknown field `a`: expected a field that comes before this one; \
          this field does not come before".to_owned()),
        ("u8 a[n];", "unknown field `n`: expected a field that comes before this one".to_owned()),
        ("i8 n; u8 a[n];", format!("`n` {number}")),
        ("struct { u8 x; } n; u8 a[n];", format!("`n` {number}")),
        ("u8 n; variant <n> { u8 A; } v;", format!("`n` {label}")),
        ("string n; variant <n> { u8 A; } v;", format!("`n` {label}")),
        ("struct { u8 a[x.n]; u8 n; } x;", "`x.n` does not come before this: \
          expected a field that comes before this one; this is the field".to_owned()),
        ("u8 a[event.fields.n]; u8 n;", "`event.fields.n` does not come before this: \
          expected a field that comes before this one; this is the field".to_owned()),
        ("u8 a[event.context.n];", "unknown field `event.context.n`: \
          expected a field that comes before this one".to_owned()),
        ("u8 a[env.n];", "no entry `n` in `env`: expected an entry of the environment".to_owned()),
        ("variant <env.n> { u8 A; } v;", "the environment cannot select an option: \
          expected the name of an enumeration field".to_owned()),
        ("variant { u8 A; } v;", "variant without a tag: \
          expected a variant that says what selects".to_owned()),
        ("enum : u8 { A, B } t; variant <t> { u8 A; struct { u8 x[v.A]; } B; } v;",
         "unknown field `v.A`: expected a field that comes before this one".to_owned()),
        ("enum : u8 { A, B } t; variant <t> { enum : u8 { X } A; enum : u8 { Y } B; } v;
          struct { u8 z; } s; variant <v.A> { u8 X; } w; variant <v> { u8 X; } y;",
         format!("`v` {label}")),
        ("enum : u8 { A, B } t; variant <t> { struct { enum : u8 { X } k; } A;
          struct { enum : u8 { Y } k; } B; } v; variant <v.k> { u8 X; } w;",
         "`v.k` may be one of several enumerations: expected enumerations with the same labels; \
          this one differs".to_owned()),
    ] {
        assert_eq!(field_error(fields), expected, "{fields}");
    }
    assert_eq!(
        brief(&format!(
            "{TRACE}stream {{ packet.context := struct {{ u8 a[event.fields.n]; }}; }};"
        )),
        "`event.fields.n` does not come before this: this part of an event is decoded later"
    );
}

#[test]
fn blocks() {
    let clock = |entries: &str| format!("{TRACE}clock {{ {entries} }};");
    let streams = "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { \
                   integer { size = 8; } stream_id; }; };";
    for (text, expected) in [
        (String::new(), "no `trace` block: "),
        (
            "xyz".to_owned(),
            "expected `trace`, `env`, `clock`, `stream`, `event`, `callsite` or a \
          declaration of a type, found `xyz`: expected `trace`, `env`, `clock`, `stream`, \
          `event`, `callsite` or a declaration of a type",
        ),
        (
            "trace { };".to_owned(),
            "the `trace` block has no `major`: \
          expected `major = 1; minor = 8;` in this",
        ),
        (
            "trace { major = 1; minor = 8; };".to_owned(),
            "the `trace` block has no `byte_order`: \
          expected `byte_order = le;` or `byte_order = be;` in this",
        ),
        (
            "trace { major = 2; minor = 0; };".to_owned(),
            "unknown version of CTF: 2.0: \
          expected `major = 1; minor = 8;`",
        ),
        (
            "trace { major = 1; minor = 8; byte_order = native; };".to_owned(),
            "the native byte order is not given: expected `le` or `be`: this is what `native` means",
        ),
        (
            format!("{TRACE}trace {{ }};"),
            "two `trace` blocks: second block; first block",
        ),
        (
            "trace { major = 1; minor = 8; byte_order = le; uuid = \"2a6422d0\"; };".to_owned(),
            "expected a UUID such as \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\", found quoted text: \
          expected a UUID such as \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"",
        ),
        (
            clock(""),
            "this clock has no `name`: expected `name = ...;` in this",
        ),
        (
            clock("name = a; freq = 0;"),
            "a clock that stands still: \
          expected at least 1 cycle per second",
        ),
        (
            clock("name = a; freq = 1; offset_s = 9223372036854775807; offset = 1;"),
            "the offset of a clock is too large: expected less than 2^63 seconds in all",
        ),
        (
            format!("{TRACE}env {{ a = 18446744073709551615; }};"),
            "expected a signed integer of 64 bits, found `18446744073709551615`: \
          expected a signed integer of 64 bits",
        ),
        (
            format!("{TRACE}stream {{ event.header := u8; }};"),
            "`event.header` is not a structure: expected a structure after `:=`",
        ),
        (
            format!("{TRACE}stream {{ event.header = 8; }};"),
            "`event.header` is not a structure: expected a structure after `:=`",
        ),
        (
            format!("{TRACE}stream {{ id = 0; }}; stream {{ id = 1; }};"),
            "several streams, but packets do not name theirs: second stream",
        ),
        (
            format!("{streams}stream {{ }}; stream {{ }};"),
            "a stream without `id` among several: expected `id = ...;` in this; another stream",
        ),
        (
            format!("{streams}stream {{ id = 3; }}; stream {{ id = 3; }};"),
            "two streams with `id` 3: declared again; first declared here",
        ),
        (
            format!("{streams}stream {{ id = 3; }}; stream {{ id = 4; }}; event {{ name = e; }};"),
            "an event without `stream_id`, though there are several: \
          expected `stream_id = ...;` in this",
        ),
        (
            format!("{streams}stream {{ id = 3; }}; event {{ name = e; stream_id = 4; }};"),
            "no stream with `id` 4: expected the `id` of a `stream` block",
        ),
        (
            format!("{TRACE}event {{ name = a; }}; event {{ name = b; }};"),
            "an event without `id` among several: expected `id = ...;` in this",
        ),
        (
            format!("{TRACE}event {{ name = a; id = 1; }}; event {{ name = b; id = 1; }};"),
            "two events with `id` 1 in the stream with `id` 0: declared again; first declared here",
        ),
        (
            format!("{TRACE}event {{ name = a; id = \"wrong\"; }};"),
            "expected an unsigned integer, found quoted text: expected an unsigned integer",
        ),
        (
            format!("{TRACE}event {{ name = \"a\" \"b\"; }};"),
            "expected `;`, found quoted text: expected `;`",
        ),
        (
            format!("{TRACE}stream {{ packet.context := struct {{ i8 packet_size; }}; }};"),
            "`packet_size` is a signed integer: expected an unsigned integer",
        ),
        (
            format!(
                "{TRACE}clock {{ name = a; }}; clock {{ name = b; }};
            stream {{ event.header := struct {{
                integer {{ size = 8; map = clock.a.value; }} x;
                integer {{ size = 8; map = clock.b.value; }} y; }}; }};"
            ),
            "a stream class with several clocks: this is another clock...; ... than this",
        ),
    ] {
        assert_eq!(brief(&text), expected, "{text}");
    }
}

// Limits.

#[test]
fn types_do_not_lie_too_deep() {
    let deep = "types lie too deep within each other: expected at most 2048 levels";
    assert_eq!(field_error(&"struct { ".repeat(100_000)), deep);
    assert_eq!(
        field_error(&format!("u8 a{};", "[1]".repeat(100_000))),
        deep
    );
    assert_eq!(
        field_error(&format!(
            "typedef u8 t0{0}; typedef t0 t1{0};",
            "[1]".repeat(1030)
        )),
        deep
    );
    let chain: String = (1..2100)
        .map(|i| format!("struct s{i} {{ struct s{} x; }};", i - 1))
        .collect();
    assert_eq!(
        field_error(&format!("struct s0 {{ u8 a; }}; {chain}")),
        deep
    );
}

#[test]
fn types_do_not_multiply_beyond_measure() {
    let double: String = (1..60)
        .map(|i| format!("struct s{i} {{ struct s{0} x; struct s{0} y; }};", i - 1))
        .collect();
    assert_eq!(
        field_error(&format!("struct s0 {{ u8 a; }}; {double} struct s59 s;")),
        "more fields than a trace may have: this one is too much"
    );
    // Nor do the ways to a field.
    let double: String = (1..15)
        .map(|i| {
            format!(
                "struct s{i} {{ enum : u8 {{ x, y }} t;
                 variant <t> {{ struct s{0} x; struct s{0} y; }} v; }};",
                i - 1
            )
        })
        .collect();
    let way = ".v".repeat(14);
    let error = field_error(&format!(
        "struct s0 {{ u8 a; }}; {double} struct s14 s; u8 n; u8 x[s{way}.a]; u8 z[s{way}.b];"
    ));
    assert!(error.starts_with("more fields than") || error.starts_with("unknown field"));
}

#[test]
fn warnings_are_as_many_as_one_can_read() {
    let attributes: String = (0..1000).map(|i| format!("a{i} = 1; ")).collect();
    let text = format!("{TRACE}event {{ name = e; {attributes} }};");
    assert_eq!(super::warnings(&text).len(), 100);
}

#[test]
fn fields_with_a_role_are_unsigned() {
    let block = |header: &str, context: &str, event: &str| {
        format!(
            "trace {{ major = 1; minor = 8; byte_order = le;
                      packet.header := struct {{ {header} }}; }};
             clock {{ name = c; }};
             stream {{ packet.context := struct {{ {context} }};
                       event.header := struct {{ {event} }}; }};"
        )
    };
    let declared =
        |name: &str, map: &str| format!("integer {{ size = 32; signed = true; {map} }} {name};");
    let refused = |text: &str, name: &str| {
        let expected = format!("`{name}` is a signed integer: expected an unsigned integer");
        assert_eq!(brief(text), expected);
    };
    for map in ["", "map = clock.c.value;"] {
        for name in ["magic", "stream_id", "stream_instance_id"] {
            refused(&block(&declared(name, map), "", ""), name);
        }
        for name in [
            "packet_size",
            "content_size",
            "timestamp_begin",
            "timestamp_end",
            "events_discarded",
            "packet_seq_num",
        ] {
            refused(&block("", &declared(name, map), ""), name);
        }
        refused(&block("", "", &declared("id", map)), "id");
        let nested = format!("struct {{ {} }} v;", declared("id", map));
        refused(&block("", "", &nested), "id");
    }
}

#[test]
fn integers_of_more_than_64_bits_are_values_only() {
    let wide = "integer { size = 65; }";
    for (fields, expected) in [
        (
            format!("enum : {wide} {{ A }} e;"),
            "enumeration of an integer of 65 bits: expected an integer of 1 to 64 bits after the \
             colon",
        ),
        (
            format!("{wide} n; u8 a[n];"),
            "a length of 65 bits: expected the name of an integer of at most 64 bits; this is the \
             field",
        ),
    ] {
        assert_eq!(field_error(&fields), expected, "{fields}");
    }
    for (stream, expected) in [
        (
            format!("packet.context := struct {{ {wide} packet_size; }};"),
            "`packet_size` is an integer of 65 bits: expected at most 64 bits",
        ),
        (
            format!("event.header := struct {{ {wide} id; }};"),
            "`id` is an integer of 65 bits: expected at most 64 bits",
        ),
        (
            format!("event.header := struct {{ {wide} timestamp; }};"),
            "`timestamp` is an integer of 65 bits: expected at most 64 bits",
        ),
        (
            "event.header := struct { integer { size = 65; map = clock.c.value; } x; };".to_owned(),
            "`x` is an integer of 65 bits: expected at most 64 bits",
        ),
    ] {
        let text = format!("{TRACE}clock {{ name = c; }}; stream {{ {stream} }};");
        assert_eq!(brief(&text), expected, "{stream}");
    }
}
