//! Errors, and how they are reported.

use kymo_machine::ByteOrder;

use super::LEAST;

/// Message and labels of an error.
fn brief(text: &str) -> String {
    let Err(error) = super::super::parse(text, ByteOrder::Big) else {
        panic!("accepted: {text}");
    };
    let labels: Vec<_> = error.spans.iter().map(|span| &*span.label).collect();
    for span in &error.spans {
        assert!(
            span.range.end <= text.len() && !span.range.is_empty()
                || span.range.start == text.len(),
            "{span:?} of {text}"
        );
    }
    format!("{}: {}", error.message, labels.join("; "))
}

#[test]
fn the_culprit_is_shown_with_what_was_expected() {
    let text =
        "trace { major = 1; minor = 1; }\ntype t {\n\tparent = integer;\n\tsize = 4097;\n}\n";
    let error = super::super::parse(text, ByteOrder::Big).unwrap_err();
    assert_eq!(
        error.render("metadata", text, false),
        "\
error: integer of 4097 bits
 --> metadata:4:9
  |
4 |     size = 4097;
  |            ^^^^ expected 1 to 4096 bits"
    );
}

#[test]
fn every_error_names_what_was_found_and_what_was_expected() {
    let of_type = |body: &str| format!("{LEAST}type t {{ {body} }}");
    let of_fields = |fields: &str| of_type(&format!("parent = struct; fields = {{ {fields} }};"));
    let of_section = |section: &str| format!("trace {{ major = 1; minor = 1; }} {section}");
    let of_event = |event: &str| format!("{LEAST}event {{ {event} }}");
    for (text, expected) in [
        // Tokens and grammar.
        (
            "stream { }".to_owned(),
            "expected `trace`, `section`, `event`, `type` or `abstract_type`, found `stream`: expected `trace`, `section`, `event`, `type` or `abstract_type`",
        ),
        (
            "abstract_type { }".to_owned(),
            "expected `trace`, `section`, `event`, `type` or `abstract_type`, found `abstract_type`: expected `trace`, `section`, `event`, `type` or `abstract_type`",
        ),
        (
            "trace { major = 1".to_owned(),
            "expected `;`, found the end of the metadata: expected `;`",
        ),
        (
            "trace { major = 1;".to_owned(),
            "expected `}`, found the end of the metadata: expected `}`; to close this `{`",
        ),
        (
            "trace { major : 1; }".to_owned(),
            "expected `=`, found `:`: expected `=`",
        ),
        (
            "trace { major = ; }".to_owned(),
            "expected a value, found `;`: expected a value",
        ),
        (
            "type t { type u { } }".to_owned(),
            "expected `=`, found `u`: expected `=`",
        ),
        (
            "type t { map = { 1 } }".to_owned(),
            "expected `}`, found `1`: expected `}`; to close this `{`",
        ),
        (
            "type t { map = { { 1, A, B } } }".to_owned(),
            "expected `}`, found `B`: expected `}`; to close this `{`",
        ),
        // As in the RFC, where it says which values there are.
        (
            "abstract_type integer { signed = true OR false; }".to_owned(),
            "expected `;`, found `OR`: expected `;`",
        ),
        (
            "abstract_type string { encoding = UTF8 OR ASCII; }".to_owned(),
            "expected `;`, found `OR`: expected `;`",
        ),
        (
            "abstract_type enum { .map = { { value , string }, ... }; }".to_owned(),
            "expected `}`, found `...`: expected `}`; to close this `{`",
        ),
        (
            "event { fields = type inheriting from \"struct\" abstract type. }".to_owned(),
            "expected `;`, found `inheriting`: expected `;`",
        ),
        // The trace.
        ("section { name = s; }".to_owned(), "no `trace` block: "),
        (
            "trace { major = 1; minor = 1; } trace { }".to_owned(),
            "two `trace` blocks: second block; first block",
        ),
        (
            "trace { major = 1; }".to_owned(),
            "the `trace` block has no `minor`: expected `minor = ...;` in this",
        ),
        (
            "trace { major = 1; minor = 2; }".to_owned(),
            "metadata of RFC v1.1 with version 1.2: expected `major = 1; minor = 1;`",
        ),
        (
            "trace { major = one; minor = 1; }".to_owned(),
            "expected an unsigned integer, found `one`: expected an unsigned integer",
        ),
        (
            "trace { major = 1; major = 1; minor = 1; }".to_owned(),
            "`major` of the trace is given twice: given again; first given here",
        ),
        // Names and parents.
        (
            of_type(""),
            "this type has no `parent`: expected `parent = ...;` in this",
        ),
        (
            of_type("parent = 8;"),
            "expected a name, found `8`: expected a name",
        ),
        (
            of_type("parent = x;"),
            "unknown type `x`: expected the name of a type that is declared",
        ),
        (
            of_type("parent = t;"),
            "type `t` is its own ancestor: expected another type; declared here",
        ),
        (
            of_type("parent = u;") + "type u { parent = t; }",
            "type `t` is its own ancestor: expected another type; declared here",
        ),
        (
            of_type("parent = string;") + "type t { parent = string; }",
            "type `t` is declared twice: declared again in the same scope; first declared here",
        ),
        // Integers.
        (
            of_type("parent = integer;"),
            "an integer has no `size`: expected `size = ...;` in this",
        ),
        (
            of_type("parent = integer; size = 0;"),
            "integer of 0 bits: expected 1 to 4096 bits",
        ),
        (
            of_type("parent = enum; size = 65; map = { { 1, A } };"),
            "enumeration of an integer of 65 bits: expected values of at most 64 bits",
        ),
        (
            of_type(
                "parent = sequence; length_type = type { parent = integer; size = 65; }; \
                 elem_type = uint;",
            ),
            "a length of 65 bits: expected a type of at most 64 bits",
        ),
        (
            of_type("parent = integer; size = -1;"),
            "expected an unsigned integer, found `-1`: expected an unsigned integer",
        ),
        (
            of_type("parent = integer; size = 8; align = 3;"),
            "expected an alignment: 1, 2, 4, 8, 16... bits, up to 2147483648, found `3`: expected an alignment: 1, 2, 4, 8, 16... bits, up to 2147483648",
        ),
        (
            of_type("parent = integer; size = 8; signed = 1;"),
            "expected `true` or `false`, found `1`: expected `true` or `false`",
        ),
        (
            of_type("parent = integer; size = 8; byte_order = \"le\";"),
            "expected `native`, `network`, `be` or `le`, found quoted text: expected `native`, `network`, `be` or `le`",
        ),
        (
            of_type("parent = gcc_bitfield; size = 8;"),
            "a bit field has no `unit_size`: expected `unit_size = ...;` in this",
        ),
        (
            of_type("parent = gcc_bitfield; size = 9; unit_size = 8;"),
            "a bit field of 9 bits in units of 8 bits: expected at least 9 bits",
        ),
        (
            of_type("parent = gcc_bitfield; size = 9; unit_size = 24;"),
            "expected the size of a unit: 1, 2, 4, 8, 16... bits, up to 2147483648, found `24`: expected the size of a unit: 1, 2, 4, 8, 16... bits, up to 2147483648",
        ),
        (
            of_type("parent = enum; size = 8;"),
            "an enumeration has no `map`: expected `map = ...;` in this",
        ),
        (
            of_type("parent = enum; size = 8; map = x;"),
            "expected a list: expected `{ { value, string }, ... }`",
        ),
        (
            of_type("parent = enum; size = 8; map = { { A, 1 } };"),
            "expected an integer, found `A`: expected an integer",
        ),
        // Compounds.
        (
            of_type("parent = string; encoding = latin1;"),
            "expected `UTF8` or `ASCII`, found `latin1`: expected `UTF8` or `ASCII`",
        ),
        (
            of_type("parent = array; length = 1;"),
            "an array has no `elem_type`: expected `elem_type = ...;` in this",
        ),
        (
            of_type("parent = array; elem_type = uint;"),
            "an array has no `length`: expected `length = ...;` in this",
        ),
        (
            of_type("parent = array; length = 1; elem_type = t;"),
            "a type that contains itself: expected a type that does not contain this field; declared here",
        ),
        (
            of_type("parent = sequence; elem_type = uint;"),
            "a sequence has no `length_type`: expected `length_type = ...;` in this",
        ),
        (
            of_type("parent = sequence; length_type = int; elem_type = uint;"),
            "the length of a sequence is not an unsigned integer: expected an unsigned type that derives from `integer`",
        ),
        (
            of_type("parent = struct;"),
            "a structure has no `fields`: expected `fields = ...;` in this",
        ),
        (
            of_fields("{ uint, a }, { uint, a }"),
            "a structure has two fields `a`: the second one",
        ),
        (
            of_fields("{ string, a }"),
            "`string` is an abstract type: expected a type that has a form in the trace",
        ),
        (
            of_fields("{ a, b }") + "abstract_type a { parent = integer; size = 8; }",
            "`a` is an abstract type: expected a type that has a form in the trace; declared here",
        ),
        (
            of_fields("{ 5, b }"),
            "expected a type: expected the name of a type or `type { ... }`",
        ),
        (
            of_fields("{ uint, 5 }"),
            "expected a name, found `5`: expected a name",
        ),
        // Sections.
        (
            of_section("section { }"),
            "the section has no `name`: expected `name = ...;` in this",
        ),
        (
            of_section("section { name = s; }"),
            "the section has no `event`: expected `event { header_type = type1; }` or `type2` in this",
        ),
        (
            of_section("section { name = s; event { } }"),
            "the section's `event` block has no `header_type`: expected `header_type = ...;` in this",
        ),
        (
            of_section("section { name = s; event { header_type = type3; } }"),
            "expected `type1` or `type2`, found `type3`: expected `type1` or `type2`",
        ),
        (
            of_section("section { name = s; event { } event { } }"),
            "the section has two `event` blocks: second block; first block",
        ),
        (
            of_section(
                "section { name = s; event { header_type = type1; context { } context { } } }",
            ),
            "the section's events have two `context` blocks: second block; first block",
        ),
        (
            of_section(
                "section { name = s; event { header_type = type1; context { type { parent = uint; } } } }",
            ),
            "a type that is not a structure: expected a type that derives from `struct`",
        ),
        (
            of_section("section { name = s; event { header_type = type1; context = uint; } }"),
            "a type that is not a structure: expected a type that derives from `struct`",
        ),
        (
            of_section(
                "section { name = s; event { header_type = type1; } type a { parent = struct; fields = { }; } type b { parent = struct; fields = { }; } }",
            ),
            "which of these structures is the context?: this one?; or this one?",
        ),
        (
            format!("{LEAST}section {{ name = s; }}"),
            "two sections `s`: declared again; first declared here",
        ),
        // Events.
        (
            of_event("id = 0; section = s;"),
            "the event has no `name`: expected `name = ...;` in this",
        ),
        (
            of_event("name = e; section = s;"),
            "the event has no `id`: expected `id = ...;` in this",
        ),
        (
            of_event("name = e; id = 0;"),
            "the event has no `section`: expected `section = ...;` in this",
        ),
        (
            of_event("name = e; id = 0; section = x;"),
            "unknown section `x`: expected the name of a `section` block",
        ),
        (
            of_event("name = e; id = 4294967296; section = s;"),
            "event number 4294967296 is too large: expected at most 4294967295",
        ),
        (
            of_event("name = e; id = 0; section = s; fields = uint;"),
            "a type that is not a structure: expected a type that derives from `struct`",
        ),
        (
            of_event("name = e; id = 0; section = s; } event { name = f; id = 0; section = s;"),
            "two events of the section have number 0: given again; first given here",
        ),
    ] {
        assert_eq!(brief(&text), expected, "{text}");
    }
}

#[test]
fn what_is_odd_is_reported_and_not_used() {
    for (text, expected) in [
        (
            "type { parent = uint; }",
            "a type without a name, which nothing can use",
        ),
        (
            "type t { parent = uint; unit_size = 8; }",
            "unknown attribute `unit_size` of an integer",
        ),
        (
            "type t { parent = struct; fields = { }; align = 8; }",
            "unknown attribute `align` of a structure",
        ),
        (
            "type t { parent = enum; size = 1; map = { { 2, A } }; }",
            "label `A` stands for a value the integer cannot have",
        ),
        (
            "type packet_header { parent = uint; }",
            "`packet_header` is not as it is in RFC v1.1",
        ),
        (
            "abstract_type event_header_2 { parent = struct; }",
            "`event_header_2` is not as it is in RFC v1.1",
        ),
    ] {
        let (_, warnings) = super::parsed(&format!("{LEAST}{text}"));
        assert_eq!(warnings, [expected], "{text}");
    }
}

#[test]
fn little_text_does_not_make_much_of_anything() {
    // Ancestors without end.
    let chain: String = (0..100)
        .map(|i| format!("type t{i} {{ parent = t{}; }} ", i + 1))
        .collect();
    assert_eq!(
        brief(&format!("{LEAST}{chain}type t100 {{ parent = uint; }}")),
        "a type with too many ancestors: expected at most 64 of them"
    );
    // Arrays within arrays, by name and written out; where the innermost one comes first, each is
    // known when it is used.
    let chain: Vec<String> = (0..2100)
        .map(|i| {
            let inner = i + 1;
            format!("type t{i} {{ parent = array; length = 1; elem_type = t{inner}; }} ")
        })
        .collect();
    let reversed: String = chain.iter().rev().cloned().collect();
    for text in [
        format!("{LEAST}{}type t2100 {{ parent = uint; }}", chain.concat()),
        format!("{LEAST}type t2100 {{ parent = uint; }}{reversed}"),
        format!(
            "{LEAST}type t {{ parent = array; length = 1; elem_type = {} uint {} }}",
            "type { parent = array; length = 1; elem_type = ".repeat(100_000),
            "; }".repeat(100_000)
        ),
    ] {
        assert_eq!(
            brief(&text),
            "types lie too deep within each other: expected at most 2048 levels"
        );
    }
    // Structures that double.
    let double: String = (0..60)
        .map(|i| {
            let inner = i + 1;
            format!(
                "type t{i} {{ parent = struct; fields = {{ {{ t{inner}, a }} {{ t{inner}, b }} }}; }} "
            )
        })
        .collect();
    assert!(
        brief(&format!("{LEAST}{double}type t60 {{ parent = uint; }}"))
            .starts_with("more fields than a trace may have: ")
    );
}
