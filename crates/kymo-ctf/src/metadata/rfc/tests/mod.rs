//! What the language means, construct by construct, and every example of the RFC.

mod errors;

use kymo_machine::ByteOrder;

use super::is_language_of;
use crate::class::{Dialect, TraceClass};
use crate::metadata::testing::{is_written, show};

/// The least that declares a section.
const LEAST: &str = "trace { major = 1; minor = 1; }
section { name = s; event { header_type = type1; } }
";

fn parsed(text: &str) -> (TraceClass, Vec<String>) {
    match super::parse(text, ByteOrder::Little) {
        Ok((class, warnings)) => {
            is_written(&class);
            (class, warnings.into_iter().map(|w| w.message).collect())
        }
        Err(error) => panic!("{}", error.render("metadata", text, false)),
    }
}

/// A trace without anything odd.
fn trace(text: &str) -> TraceClass {
    let (class, warnings) = parsed(text);
    assert!(warnings.is_empty(), "{warnings:?} of {text}");
    class
}

/// The payload of an event whose structure has a declared type of this name.
fn named(declarations: &str, name: &str) -> (String, Vec<String>) {
    let text = format!(
        "{LEAST}{declarations} event {{ name = e; id = 0; section = s; fields = {name}; }}"
    );
    let (class, warnings) = parsed(&text);
    (
        show(class.streams[0].events[0].payload.as_ref().unwrap()),
        warnings,
    )
}

/// The class of a field of a type.
fn field(declarations: &str, class: &str) -> String {
    let fields = format!("type {{ parent = struct; fields = {{ {{ {class}, f }} }}; }}");
    let (payload, warnings) = named(declarations, &fields);
    assert!(warnings.is_empty(), "{warnings:?} of {class}");
    payload
}

// The examples of the RFC, as they are written there.

#[test]
fn the_integers_of_the_rfc() {
    let text = "type uint32_t {
        parent = integer;
        size = 8;
        signed = false;
        align = 32;
    }
    type int5_t {
        parent = integer;
        size = 5;
        signed = true;
        align = 1;
    }";
    // It says 8 where it means 32: so it has 8 bits.
    assert_eq!(field(text, "uint32_t"), "{f: u8le@32}");
    assert_eq!(field(text, "int5_t"), "{f: i5le@1}");
    let corrected = text.replace("size = 8;", "size = 32;");
    assert_eq!(field(&corrected, "uint32_t"), "{f: u32le@32}");
}

#[test]
fn the_bit_fields_of_the_rfc() {
    let text = "type struct_example {
        parent = struct;
        fields = {
        {
        type {
        parent = gcc_bitfield;
        unit_size = 16; /* sizeof(short) */
        size = 12;
        signed = true;
        align = 1;
        },
        a,
        },
        {
        type {
        parent = gcc_bitfield;
        unit_size = 16; /* sizeof(short) */
        size = 5;
        signed = true;
        align = 1;
        },
        b,
        },
        };
    }";
    let (payload, warnings) = named(text, "struct_example");
    assert!(warnings.is_empty(), "{warnings:?}");
    // Aligned as a `short` is.
    assert_eq!(payload, "{a: i12le@1/16, b: i5le@1/16}@16");
}

#[test]
fn the_structure_of_the_rfc() {
    let text = "type struct_example {
        parent = struct;
        fields = {
        {
        type { /* Nameless type */
        parent = integer;
        size = 16;
        signed = true;
        align = 16;
        },
        first_field_name,
        },
        {
        uint64_t, /* Named type declared in the metadata */
        second_field_name,
        }
        };
    }";
    let (payload, warnings) = named(text, "struct_example");
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(
        payload,
        "{first_field_name: i16le@16, second_field_name: u64le@8}"
    );
}

#[test]
fn the_array_of_the_rfc() {
    let text = "type example_array {
        parent = array;
        length = 10;
        elem_type = uint32_t;
    }";
    assert_eq!(field(text, "example_array"), "{f: [u32le@8; 10]}");
}

#[test]
fn the_context_of_the_rfc() {
    let text = "trace { major = 1; minor = 1; }
    section {
        name = s;
        event { header_type = type2; }
        type per_section_event_ctx {
        parent = struct;
        fields = {
        { uint, pid },
        { uint16_t, payload_size },
        };
        };
    }";
    let context = "{pid: u32le@8, payload_size: u16le@8}";
    let in_event = text.replace(
        "header_type = type2; }",
        "header_type = type2; context { event_size = true; } }",
    );
    for text in [text, &in_event] {
        let class = trace(text);
        assert_eq!(
            show(class.streams[0].common_context.as_ref().unwrap()),
            context
        );
    }
}

const PACKET_HEADER: &str = "type packet_header {
    parent = struct;
    fields = {
    { uint32_t, magic },
    { uint32_t, session_id },
    { uint32_t, content_size },
    { uint32_t, packet_size },
    { uint32_t, checksum },
    { uint32_t, section_packet_count },
    { uint64_t, timestamp_begin }
    { uint64_t, timestamp_end }
    [ uint32_t, events_discarded },
    { uint8_t, section_packet_count_bits }, /* Significant counter bits */
    { uint8_t, compression_scheme },
    { uint8_t, encryption_scheme },
    { uint8_t, checksum },
    };
    };";

const EVENT_HEADERS: &str = "type event_header_1 {
    parent = struct;
    fields = {
    { uint5_t, id }, /*
    * id: range: 0 - 30.
    * id 31 is reserved to indicate a following
    * extended header.
    */
    { uint27_t, timestamp },
    };
    };
    type event_header_1_ext {
    parent = struct;
    fields = {
    { uint32_t, id }, /* 32-bit event IDs */
    { uint64_t, timestamp }, /* 64-bit timestamps */
    };
    };
    type event_header_2 {
    parent = struct;
    fields = {
    { uint32_t, timestamp },
    { uint16_t, id }, /*
    * id: range: 0 - 65534.
    * id 65535 is reserved to indicate a following
    * extended header.
    */
    };
    };
    type event_header_2_ext {
    parent = struct;
    fields = {
    { uint64_t, timestamp }, /* 64-bit timestamps */
    { uint32_t, id }, /* 32-bit event IDs */
    };
    };";

#[test]
fn the_headers_of_the_rfc_are_what_they_are_without_being_declared() {
    const SQUARE: &str = "`[` where `{` is meant";
    let (class, warnings) = parsed(&format!("{LEAST}{PACKET_HEADER}{EVENT_HEADERS}"));
    assert_eq!(warnings, [SQUARE]);
    assert_eq!(class.packet_header, trace(LEAST).packet_header);

    let corrected = PACKET_HEADER
        .replace("[ uint32_t", "{ uint32_t")
        .replace("begin }", "begin },")
        .replace("end }", "end },")
        .replace("uint8_t, checksum", "uint8_t, checksum_scheme");
    trace(&format!("{LEAST}{corrected}"));

    // Nowhere else may there be two fields of one name.
    let other = PACKET_HEADER.replace("packet_header", "other");
    let error = super::parse(&format!("{LEAST}{other}"), ByteOrder::Little).unwrap_err();
    assert_eq!(error.message, "a structure has two fields `checksum`");

    let different = EVENT_HEADERS.replace("uint27_t", "uint28_t");
    let (_, warnings) = parsed(&format!("{LEAST}{different}"));
    assert_eq!(warnings, ["`event_header_1` is not as it is in RFC v1.1"]);
}

#[test]
fn the_abstract_types_of_the_rfc_written_out() {
    // If they list the possible values, they are not metadata; these name the kind of value.
    let text = "
    abstract_type gcc_bitfield {
        parent = integer;
        unit_size = value;
    }
    abstract_type array {
        length = value;
        elem_type = type;
    }
    abstract_type sequence {
        length_type = type; /* Inheriting from integer */
        elem_type = type;
    }
    abstract_type struct {
        fields = {
        { field_type, field_name },
        { field_type, field_name },
        };
    }
    abstract_type enum {
        .parent = integer;
        .map = {
        { value , string },
        };
    }";
    let array = "type { parent = array; length = 2; elem_type = uint8_t; }";
    assert_eq!(field(text, array), "{f: [u8le@8; 2]}");
    let label = "type { parent = enum; size = 8; map = { { 1, A } }; }";
    assert_eq!(field(text, label), "{f: u8le@8 A=[(1, 1)]}");
    let bits = "type { parent = gcc_bitfield; unit_size = 8; size = 3; }";
    assert_eq!(field(text, bits), "{f: u3le@1/8}@8");
}

#[test]
fn the_blocks_of_the_rfc() {
    let class = trace(
        "trace {
            major = 1; /* Trace format version */
            minor = 1;
        }
        section {
            name = section_name;
            event {
                /* Type 1 - Few event IDs; Type 2 - Many event IDs */
                header_type = type1;
                context {
                    event_size = true; /* Includes event size field or not */
                }
            }
        }
        event {
            name = event_name;
            id = 7; /* Numeric identifier within the section */
            section = section_name;
            fields = typename;
        }
        type typename { parent = struct; fields = { { uint8_t, x } }; }",
    );
    assert_eq!(class.dialect, Dialect::Rfc11);
    let section = &class.streams[0];
    assert_eq!(section.name.as_deref(), Some("section_name"));
    assert_eq!(
        show(section.common_context.as_ref().unwrap()),
        "{payload_size: u16le@8}"
    );
    let event = &section.events[0];
    assert_eq!((event.id, event.name.as_deref()), (7, Some("event_name")));
    assert_eq!(show(event.payload.as_ref().unwrap()), "{x: u8le@8}");
}

// Types.

#[test]
fn attributes_are_inherited_and_overridden() {
    let text = "type c { parent = b; align = 4; byte_order = be; }
        abstract_type a { parent = integer; size = 12; signed = true; align = 2; }
        type b { parent = a; size = 13; }
        type d { parent = c; byte_order = native; signed = false; }";
    assert_eq!(field(text, "b"), "{f: i13le@2}");
    assert_eq!(field(text, "c"), "{f: i13be@4}");
    assert_eq!(field(text, "d"), "{f: u13le@4}");
    // What an abstract type of the RFC is without saying more can be said.
    let text = "abstract_type integer { byte_order = network; }";
    let class = "type { parent = integer; size = 8; }";
    assert_eq!(field(text, class), "{f: u8be@8}");
}

#[test]
fn integers_need_no_declaration_and_no_alignment() {
    for (class, expected) in [
        ("uint5_t", "u5le@1"),
        ("int64_t", "i64le@8"),
        ("uint24_t", "u24le@1"),
        ("uint", "u32le@8"),
        ("int", "i32le@8"),
        ("type { parent = integer; size = 24; }", "u24le@8"),
        ("type { parent = integer; size = 7; }", "u7le@1"),
        ("type { parent = uint16_t; byte_order = be; }", "u16be@8"),
        ("type { parent = int; size = 9; }", "i9le@1"),
    ] {
        assert_eq!(field("", class), format!("{{f: {expected}}}"));
    }
    for name in ["uint0_t", "uint65_t", "uint08_t", "uint_t", "float"] {
        let text = format!("{LEAST}type t {{ parent = {name}; }}");
        let error = super::parse(&text, ByteOrder::Little).unwrap_err();
        assert_eq!(error.message, format!("unknown type `{name}`"));
    }
}

#[test]
fn the_metadata_reports_how_types_are_aligned() {
    let natural = "type uint32_t { parent = integer; size = 32; align = 32; }";
    let word32 = "type uint64_t { parent = integer; size = 64; align = 32; }";
    let inherited = "abstract_type a { parent = integer; align = 32; }
        type uint32_t { parent = a; size = 32; }";
    for (text, expected) in [
        (String::new(), [8, 8, 8, 8, 1]),
        (natural.to_owned(), [8, 16, 32, 64, 1]),
        (format!("{word32}{natural}"), [8, 16, 32, 32, 1]),
        (inherited.to_owned(), [8, 16, 32, 64, 1]),
        // Only the first decides between packed and aligned.
        (word32.to_owned(), [8, 8, 8, 32, 1]),
    ] {
        for (bits, align) in [8, 16, 32, 64, 24].into_iter().zip(expected) {
            let class = field(&text, &format!("uint{bits}_t"));
            assert_eq!(class, format!("{{f: u{bits}le@{align}}}"), "{text}");
        }
    }
}

#[test]
fn labels_of_impossible_values_stand_for_nothing() {
    for (class, expected) in [
        // Their bits in 64 of them are the same.
        (
            "parent = uint64_t; map = { { 18446744073709551615, A }, { -1, B } };",
            "u64le@8 A=[(18446744073709551615, 18446744073709551615)]",
        ),
        (
            "parent = int64_t; map = { { -1, A }, { 18446744073709551615, B } };",
            "i64le@8 A=[(18446744073709551615, 18446744073709551615)]",
        ),
    ] {
        let fields =
            format!("type {{ parent = struct; fields = {{ {{ type {{ {class} }}, f }} }}; }}");
        let (payload, warnings) = named("", &fields);
        assert_eq!(payload, format!("{{f: {expected}}}"));
        assert_eq!(
            warnings,
            ["label `B` stands for a value the integer cannot have"]
        );
    }
}

#[test]
fn compounds_hold_what_they_say() {
    for (class, expected) in [
        ("type { parent = string; }", "text"),
        ("type { parent = string; encoding = ASCII; }", "text"),
        (
            "type { parent = sequence; length_type = uint5_t;
                elem_type = type { parent = array; length = 0x2; elem_type = int7_t; } }",
            "[[i7le@1; 2]; u5le@1]",
        ),
        ("type { parent = struct; fields = { }; }", "{}"),
        (
            "type { .parent = enum; .size = 8; .signed = true; .map = { { -1, A } { 2, \"b c\" }, { 3, A } } }",
            "i8le@8 A=[(18446744073709551615, 18446744073709551615), (3, 3)] b c=[(2, 2)]",
        ),
        (
            "type { parent = uint8_t; map = { { 0, NO } }; }",
            "u8le@8 NO=[(0, 0)]",
        ),
        // An array of bit fields asks for the place of the first unit, too.
        (
            "type { parent = struct; fields = { { type { parent = array; length = 3;
                elem_type = type { parent = gcc_bitfield; unit_size = 32; size = 3; }; }, x } }; }",
            "{x: [u3le@1/32; 3]}@32",
        ),
    ] {
        assert_eq!(field("", class), format!("{{f: {expected}}}"));
    }
}

#[test]
fn commas_and_semicolons_may_be_missing_where_the_rfc_misses_them() {
    let strict = "type { parent = struct; fields = { { uint8_t, a }, { uint8_t, b } }; }";
    let expected = field("", strict);
    for loose in [
        "type { parent = struct; fields = { { uint8_t, a } { uint8_t, b } } }",
        "type { .parent = struct; .fields = { { uint8_t, a, }, { uint8_t, b, }, }; };",
        "type { parent = struct;; fields = { { uint8_t a }; { uint8_t b; }; }; }",
    ] {
        let loose = loose.trim_end_matches(';');
        assert_eq!(field("", loose), expected);
    }
    let (payload, warnings) = named(
        "",
        "type { parent = struct; fields = { [ uint8_t, a ], [ uint8_t, b } }; }",
    );
    assert_eq!(payload, "{a: u8le@8, b: u8le@8}");
    assert_eq!(warnings.len(), 2);
}

// Sections.

#[test]
fn contexts_have_several_forms() {
    let u8s = "type { parent = struct; fields = { { uint8_t, c } }; }";
    for (event, rest, expected) in [
        ("", String::new(), None),
        ("context { }", String::new(), None),
        ("context { event_size = false; }", String::new(), None),
        (
            "context { event_size = true; }",
            String::new(),
            Some("{payload_size: u16le@8}"),
        ),
        (
            &*format!("context {{ {u8s} }}"),
            String::new(),
            Some("{c: u8le@8}"),
        ),
        (
            &*format!("context = {u8s};"),
            String::new(),
            Some("{c: u8le@8}"),
        ),
        ("context = named;", String::new(), Some("{n: u8le@8}")),
        (u8s, String::new(), Some("{c: u8le@8}")),
        // The innermost one is meant; others may only be of use to it.
        (
            "context { type { parent = struct; fields = { { inner, i } }; } }",
            format!("type inner {{ parent = struct; fields = {{ {{ uint8_t, x }} }}; }} {u8s}"),
            Some("{i: {x: u8le@8}}"),
        ),
        (
            "type event_header_1 { parent = struct; fields = { { uint5_t, id } { uint27_t, timestamp } }; }",
            String::new(),
            None,
        ),
    ] {
        let class = trace(&format!(
            "trace {{ major = 1; minor = 1; }}
            type named {{ parent = struct; fields = {{ {{ uint8_t, n }} }}; }}
            section {{ name = s; event {{ header_type = type1; {event} }} {rest} }}"
        ));
        let context = class.streams[0].common_context.as_ref().map(show);
        assert_eq!(context.as_deref(), expected, "{event}");
    }
    let (_, warnings) = parsed(&format!(
        "trace {{ major = 1; minor = 1; }}
        section {{ name = s; event {{ header_type = type1; context {{ event_size = true; {u8s} }} }} }}"
    ));
    assert_eq!(
        warnings,
        ["events have sizes, but their context has no `payload_size`"]
    );
}

#[test]
fn types_of_a_section_belong_to_it() {
    let class = trace(
        "trace { major = 1; minor = 1; }
        type t { parent = integer; size = 8; }
        section { name = a; event { header_type = type1; }
            type t { parent = integer; size = 9; }
            type ctx { parent = struct; fields = { { t, x } }; } }
        section { name = b; event { header_type = type1; }
            type ctx { parent = struct; fields = { { t, x } }; } }",
    );
    let contexts = class.streams.iter().map(|s| s.common_context.as_ref());
    let contexts: Vec<_> = contexts.map(|context| show(context.unwrap())).collect();
    assert_eq!(contexts, ["{x: u9le@1}", "{x: u8le@8}"]);
}

#[test]
fn headers_are_as_the_rfc_fixes_them() {
    let headers = |declarations: &str| {
        let class = trace(&format!(
            "trace {{ major = 1; minor = 1; }} {declarations}
            section {{ name = one; event {{ header_type = type1; }} }}
            section {{ name = two; event {{ header_type = type2; }} }}"
        ));
        let header = |at: usize| show(class.streams[at].event_header.as_ref().unwrap());
        [
            header(0),
            header(1),
            show(class.packet_header.as_ref().unwrap()),
        ]
    };
    let (id, time) = ("EventClassId", "DefaultClockTimestamp");
    let [one, two, packet] = headers("");
    assert_eq!(
        one,
        format!(
            "{{id: u5le@8 {id}, timestamp: u27le@1 {time}, \
             extended: <EventHeader.0>[(31, 31)]: {{id: u32le@8 {id}, timestamp: u64le@8 {time}}}}}"
        )
    );
    assert_eq!(
        two,
        format!(
            "{{timestamp: u32le@8 {time}, id: u16le@8 {id}, extended: <EventHeader.1>[(65535, 65535)]: \
             {{timestamp: u64le@8 {time}, id: u32le@8 {id}}}@8}}"
        )
    );
    assert_eq!(
        packet,
        "{magic: u32le@8 PacketMagic, session_id: u32le@8, content_size: u32le@8 PacketContentLength, \
         packet_size: u32le@8 PacketTotalLength, checksum: u32le@8, \
         section_packet_count: u32le@8 PacketSequenceNumber, timestamp_begin: u64le@8 DefaultClockTimestamp, \
         timestamp_end: u64le@8 PacketEndTimestamp, events_discarded: u32le@8 DiscardedEvents, \
         section_packet_count_bits: u8le@8, compression_scheme: u8le@8, encryption_scheme: u8le@8, \
         checksum_scheme: u8le@8}"
    );
    let natural = "type uint32_t { parent = integer; size = 32; align = 32; }";
    let [one, two, _] = headers(natural);
    assert_eq!(
        one,
        format!(
            "{{id: u5le@32 {id}, timestamp: u27le@1 {time}, \
             extended: <EventHeader.0>[(31, 31)]: {{id: u32le@8 {id}, timestamp: u64le@8 {time}}}, \
             end: <EventHeader.0>[(31, 31)]: {{}}@64}}"
        )
    );
    assert!(two.starts_with("{timestamp: u32le@32"), "{two}");
    assert!(two.contains("id: u16le@16"), "{two}");
    assert!(two.ends_with("}@64}"), "{two}");
    let word32 = format!("{natural} type uint64_t {{ parent = integer; size = 64; align = 32; }}");
    let [one, two, _] = headers(&word32);
    assert!(!one.contains("end:"), "{one}");
    assert!(two.ends_with("}@32}"), "{two}");
}

// The language itself.

#[test]
fn the_language_is_known_from_the_first_declaration_that_is_its_own() {
    for text in [
        LEAST,
        "\u{feff}\0 /* type */ section { name = s; }",
        "trace { minor = 1; major = 1; };",
        "event { name = e; fields = type { }; } type x { parent = integer; }",
        "abstract_type x { }",
        ".;=; type { }",
    ] {
        assert!(is_language_of(text), "{text}");
    }
    for text in [
        "",
        "trace { major = 1; minor = 8; byte_order = le; }; section { name = s; }",
        "/* section { } */ typealias integer { size = 8; } := type;",
        "typedef struct type { int x; } type; struct section { };",
        "struct abstract_type { int minor; };",
        "event { name = x; fields := struct { type section; }; };",
        "env { major = 1; minor = 1; }; trace { minor = 8; };",
        "stream { event.header := struct { }; trace { minor = 1; }; };",
        "trace { x { minor = 1; } minor = 8; };",
        "/* CTF 1.8 */ trace { major = 0; minor = 1; };",
        "section \"",
    ] {
        assert!(!is_language_of(text), "{text}");
    }
}

#[test]
fn strings_of_packets_may_be_cut_anywhere_between_words() {
    let text = LEAST.replace(' ', "\0");
    assert_eq!(trace(&text).streams.len(), 1);
}
