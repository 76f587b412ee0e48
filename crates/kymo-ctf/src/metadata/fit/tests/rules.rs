//! What becomes of what a dialect cannot hold, rule by rule.

use kymo_machine::ByteOrder;

use crate::class::{Dialect, FieldClass, Length, TraceClass};
use crate::metadata::fit::{Fitted, fit};
use crate::metadata::parse_with;
use crate::metadata::testing::show;
use crate::metadata::write::write;

/// The class model of metadata of any dialect; that of RFC v1.1 is little endian.
fn read(text: &str) -> TraceClass {
    read_as(text, ByteOrder::Little)
}

/// The same where that of RFC v1.1 has a byte order.
fn read_as(text: &str, order: ByteOrder) -> TraceClass {
    match parse_with(text.as_bytes(), "metadata", || Some(order)) {
        Ok(metadata) => metadata.class,
        Err(error) => panic!("{error}"),
    }
}

/// Fits and writes a model, and reads it again.
fn fitted(model: &TraceClass, dialect: Dialect) -> (Fitted, String) {
    let fitted = fit(model, dialect).unwrap_or_else(|error| panic!("{error}"));
    let text = write(&fitted.model).unwrap_or_else(|error| panic!("{error}"));
    let order = fitted.model.byte_order.unwrap_or(ByteOrder::Little);
    assert_eq!(read_as(&text, order), fitted.model);
    (fitted, text)
}

fn changes(fitted: &Fitted) -> Vec<String> {
    fitted.changes.iter().map(ToString::to_string).collect()
}

/// Metadata of CTF 2 with one event class, whose payload has the given members.
fn ctf2(members: &str) -> TraceClass {
    read(&format!(
        "\u{1e}{{\"type\": \"preamble\", \"version\": 2}}\n\
         \u{1e}{{\"type\": \"data-stream-class\"}}\n\
         \u{1e}{{\"type\": \"event-record-class\", \"name\": \"e\", \"payload-field-class\":
         {{\"type\": \"structure\", \"member-classes\": [{members}]}}}}\n"
    ))
}

/// A member of a structure of CTF 2.
fn member(name: &str, class: &str) -> String {
    format!("{{\"name\": \"{name}\", \"field-class\": {{{class}}}}}")
}

/// Metadata of CTF 1.8 with one event class of this payload.
fn tsdl(fields: &str) -> TraceClass {
    read(&format!(
        "trace {{ major = 1; minor = 8; byte_order = le; }};
         event {{ name = e; fields := struct {{ {fields} }}; }};"
    ))
}

/// Metadata of RFC v1.1 with one event of this payload.
fn rfc(fields: &str) -> TraceClass {
    read(&format!(
        "trace {{ major = 1; minor = 1; }}
         section {{ name = s; event {{ header_type = type1; }} }}
         event {{ name = e; id = 0; section = s; fields = type {{ parent = struct;
         fields = {{ {fields} }}; }} }}"
    ))
}

/// The payload of the first event class, in short.
fn payload(model: &TraceClass) -> String {
    show(model.streams[0].events[0].payload.as_ref().unwrap())
}

const U8: &str = "\"type\": \"fixed-length-unsigned-integer\", \"length\": 8, \
                  \"byte-order\": \"little-endian\", \"alignment\": 8";
const BOOL: &str = "\"type\": \"fixed-length-boolean\", \"length\": 1, \
                    \"byte-order\": \"little-endian\"";

/// What a class of CTF 2 becomes in a dialect, and what is reported about it.
fn becomes(class: &str, dialect: Dialect) -> (String, Vec<String>) {
    let (fitted, _) = fitted(&ctf2(&member("f", class)), dialect);
    let of_field = fitted.changes.iter().filter(|c| c.place.scope.is_some());
    let rules = of_field.map(|change| change.rule.to_string()).collect();
    (payload(&fitted.model), rules)
}

// To CTF 1.8.

#[test]
fn a_whole_trace_of_ctf_2() {
    let model = read(include_str!("../../../../tests/data/ctf2-small/metadata"));
    let (_, text) = fitted(&model, Dialect::Ctf18);
    assert_eq!(text, include_str!("ctf2-small.tsdl"));
}

#[test]
fn a_whole_trace_of_rfc_v1_1() {
    let model = rfc(
        "{ type { parent = integer; size = 32; align = 32; map = { { 1, \"on\" }, }; }, state },
         { type { parent = sequence; length_type = uint8_t; elem_type = uint16_t; }, data },
         { type { parent = string; }, \"a name\" },",
    );
    let (_, text) = fitted(&model, Dialect::Ctf18);
    assert_eq!(text, include_str!("rfc.tsdl"));
    let (fitted, text) = fitted(&model, Dialect::Rfc11);
    assert!(fitted.changes.is_empty());
    assert_eq!(text, include_str!("rfc.txt"));
}

#[test]
fn bits_become_integers() {
    let bits = |class: &str| {
        format!("\"type\": \"{class}\", \"length\": 5, \"byte-order\": \"big-endian\"")
    };
    assert_eq!(
        becomes(&bits("fixed-length-bit-array"), Dialect::Ctf18),
        (
            "{f: u5be@1 Hexadecimal}".to_owned(),
            vec!["a bit array becomes an integer".to_owned()]
        )
    );
    assert_eq!(
        becomes(&bits("fixed-length-boolean"), Dialect::Ctf18).0,
        "{f: u5be@1}"
    );
    let map = bits("fixed-length-bit-map");
    let map =
        format!("{map}, \"flags\": {{\"a\": [[0, 0]], \"b\": [[2, 3], [9, 9]], \"c\": [[7, 7]]}}");
    assert_eq!(
        becomes(&map, Dialect::Ctf18).0,
        "{f: u5be@1 Hexadecimal a=[(1, 1)] b=[(4, 4), (8, 8)]}"
    );
    // RFC v1.1 does not state bases.
    assert_eq!(
        becomes(&map, Dialect::Rfc11).0,
        "{f: u5be@1 a=[(1, 1)] b=[(4, 4), (8, 8)]}"
    );
}

#[test]
fn what_has_another_encoding_is_recoded() {
    let reversed = "\"type\": \"fixed-length-unsigned-integer\", \"length\": 5, \
                    \"byte-order\": \"big-endian\", \"bit-order\": \"first-to-last\"";
    assert_eq!(
        becomes(reversed, Dialect::Ctf18),
        (
            "{f: u5be@1}".to_owned(),
            vec!["the bits are written in their usual order".to_owned()]
        )
    );
    let long = "\"type\": \"variable-length-signed-integer\", \"preferred-display-base\": 16";
    assert_eq!(becomes(long, Dialect::Ctf18).0, "{f: i64le@8 Hexadecimal}");
    let half = "\"type\": \"fixed-length-floating-point-number\", \"length\": 16, \
                \"byte-order\": \"little-endian\"";
    assert_eq!(becomes(half, Dialect::Ctf18).0, "{f: f32@1}");
    assert_eq!(becomes(half, Dialect::Rfc11).0, "{f: u16le@1}");
    let wide = "\"type\": \"static-length-string\", \"length\": 8, \"encoding\": \"utf-16le\"";
    assert_eq!(becomes(wide, Dialect::Ctf18).0, "{f: text}");
    let model = ctf2(&member("f", wide));
    assert!(
        fit(&model, Dialect::Ctf18).unwrap().changes[0]
            .rule
            .recodes()
    );
    let narrow = "\"type\": \"static-length-string\", \"length\": 8";
    assert_eq!(
        becomes(narrow, Dialect::Ctf18),
        ("{f: text[8]}".to_owned(), Vec::new())
    );
    assert_eq!(becomes(narrow, Dialect::Rfc11).0, "{f: text}");
}

#[test]
fn bytes_become_arrays() {
    let blob = "\"type\": \"static-length-blob\", \"length\": 3, \"media-type\": \"image/tiff\"";
    assert_eq!(
        becomes(blob, Dialect::Ctf18),
        (
            "{f: [u8le@8 Hexadecimal; 3]}".to_owned(),
            vec!["a BLOB becomes an array of bytes without a media type".to_owned()]
        )
    );
    assert_eq!(becomes(blob, Dialect::Rfc11).0, "{f: [u8le@8; 3]}");
}

#[test]
fn arrays_are_as_aligned_as_their_elements() {
    let array = |bits: u32| {
        format!(
            "\"type\": \"static-length-array\", \"length\": 3, \"minimum-alignment\": 32, \
             \"element-field-class\": {{\"type\": \"fixed-length-unsigned-integer\", \
             \"length\": {bits}, \"byte-order\": \"little-endian\", \"alignment\": 8}}"
        )
    };
    let none = Vec::<String>::new();
    // Where each element lies at such a place anyway, nothing moves.
    for dialect in [Dialect::Ctf18, Dialect::Rfc11] {
        assert_eq!(
            becomes(&array(64), dialect),
            ("{f: [u64le@32; 3]}".to_owned(), none.clone())
        );
        assert_eq!(
            becomes(&array(16), dialect),
            (
                "{f: [u16le@8; 3]}".to_owned(),
                vec!["the alignment becomes 8 bits".to_owned()]
            )
        );
    }
}

#[test]
fn optionals_become_variants() {
    let selected = |selector: &str, ranges: &str| {
        let optional = format!(
            "\"type\": \"optional\", \"selector-field-location\": {{\"path\": [\"s\"]}}, {ranges} \
             \"field-class\": {{{U8}}}"
        );
        let model = ctf2(&[member("s", selector), member("o", &optional)].join(","));
        payload(&fitted(&model, Dialect::Ctf18).0.model)
    };
    assert_eq!(
        selected(BOOL, ""),
        "{s: u1le@1 none=[(0, 0)] some=[(1, 1)], \
         o: <Payload.0>(none[(0, 0)]: {}, some[(1, 1)]: u8le@8)}"
    );
    let ranges = "\"selector-field-ranges\": [[9, 9], [0, 3]],";
    assert_eq!(
        selected(U8, ranges),
        "{s: u8le@8 none=[(4, 8), (10, 255)] some=[(9, 9), (0, 3)], \
         o: <Payload.0>(none[(4, 8), (10, 255)]: {}, some[(9, 9), (0, 3)]: u8le@8)}"
    );
    let signed = "\"type\": \"variable-length-signed-integer\"";
    let ranges = "\"selector-field-ranges\": [[-9223372036854775808, -1]],";
    assert_eq!(
        selected(signed, ranges),
        "{s: i64le@8 none=[(0, 9223372036854775807)] \
         some=[(9223372036854775808, 18446744073709551615)], \
         o: <Payload.0>(none[(0, 9223372036854775807)]: {}, \
         some[(-9223372036854775808, -1)]: u8le@8)}"
    );
}

#[test]
fn labels_select_options() {
    let option = |name: &str, low: u32, high: u32| {
        let name = match name {
            "" => String::new(),
            name => format!("\"name\": \"{name}\","),
        };
        format!(
            "{{{name} \"field-class\": {{{U8}}}, \"selector-field-ranges\": [[{low}, {high}]]}}"
        )
    };
    let variant = |options: &[String]| {
        format!(
            "\"type\": \"variant\", \"selector-field-location\": {{\"path\": [\"s\"]}}, \
             \"options\": [{}]",
            options.join(",")
        )
    };
    // One label is as it must be, one a keyword, one stands for something else; one option has a
    // blank, one no name.
    let labels = "\"mappings\": {\"a\": [[0, 0]], \"string\": [[1, 1]], \"b\": [[7, 7]]}";
    let options = [
        option("a", 0, 0),
        option("string", 1, 1),
        option("b", 2, 3),
        option("b c", 4, 4),
        option("", 5, 5),
    ];
    let first = member("s", &format!("{U8}, {labels}"));
    // The same names stand for other numbers here.
    let second = member("w", &variant(&[option("a", 8, 8), option("b", 9, 9)]));
    let model = ctf2(&[first, member("v", &variant(&options)), second].join(","));
    let (fitted, text) = fitted(&model, Dialect::Ctf18);
    assert_eq!(
        payload(&fitted.model),
        "{s: u8le@8 a=[(0, 0)] _string=[(1, 1)] b=[(7, 7)] _b=[(2, 3)] b_c=[(4, 4)] \
         option_4=[(5, 5)] _a=[(8, 8)] b_2=[(9, 9)], \
         v: <Payload.0>(a[(0, 0)]: u8le@8, string[(1, 1)]: u8le@8, b[(2, 3)]: u8le@8, \
         b_c[(4, 4)]: u8le@8, option_4[(5, 5)]: u8le@8), \
         w: <Payload.0>(a[(8, 8)]: u8le@8, b_2[(9, 9)]: u8le@8)}"
    );
    assert!(
        text.contains("integer { size = 8; align = 8; } _string;"),
        "{text}"
    );
    assert_eq!(
        changes(&fitted)[1..],
        [
            "event record class `e`, `payload.v`: `` becomes `option_4`",
            "event record class `e`, `payload.s`: the selector has labels for the options",
            "event record class `e`, `payload`: `b` becomes `b_2`",
            "event record class `e`, `payload.s`: the selector has labels for the options",
        ]
    );
}

#[test]
fn names_are_words() {
    let names = ["struct", "_a", "a", "a b", "a_b", "", "1", "é"];
    let members: Vec<_> = names.iter().map(|name| member(name, U8)).collect();
    let (fitted, text) = fitted(&ctf2(&members.join(",")), Dialect::Ctf18);
    let Some(FieldClass::Struct { members, .. }) = &fitted.model.streams[0].events[0].payload
    else {
        panic!("a payload is a structure")
    };
    let names: Vec<_> = members.iter().map(|member| &*member.name).collect();
    assert_eq!(
        names,
        [
            "struct", "_a", "a", "a_b_2", "a_b", "field_", "field_1", "field__"
        ]
    );
    for declared in ["_struct;", "__a;", " a;"] {
        assert!(text.contains(declared), "{declared} in {text}");
    }
}

#[test]
fn names_do_not_make_roles() {
    let header = "{\"type\": \"structure\", \"member-classes\": [
        {\"name\": \"id\", \"field-class\": {INT}},
        {\"name\": \"timestamp\", \"field-class\": {INT}},
        {\"name\": \"number\", \"field-class\": {INT, \"roles\": [\"event-record-class-id\"]}},
        {\"name\": \"time\", \"field-class\": {INT, \"roles\": [\"default-clock-timestamp\"]}}]}"
        .replace("INT", U8);
    let context = "{\"type\": \"structure\", \"member-classes\": [
        {\"name\": \"size\", \"field-class\": {INT, \"roles\": [\"packet-total-length\",
            \"packet-content-length\"]}},
        {\"name\": \"lost\", \"field-class\": {INT,
            \"roles\": [\"discarded-event-record-counter-snapshot\"]}},
        {\"name\": \"begin\", \"field-class\": {INT, \"roles\": [\"default-clock-timestamp\"]}},
        {\"name\": \"end\", \"field-class\": {INT,
            \"roles\": [\"packet-end-default-clock-timestamp\"]}}]}"
        .replace("INT", U8);
    let model = read(&format!(
        "\u{1e}{{\"type\": \"preamble\", \"version\": 2}}\n\
         \u{1e}{{\"type\": \"clock-class\", \"id\": \"c\", \"name\": \"the clock\",
            \"frequency\": 1000}}\n\
         \u{1e}{{\"type\": \"data-stream-class\", \"default-clock-class-id\": \"c\",
            \"packet-context-field-class\": {context},
            \"event-record-header-field-class\": {header}}}\n"
    ));
    let (fitted, text) = fitted(&model, Dialect::Ctf18);
    let stream = &fitted.model.streams[0];
    assert_eq!(
        show(stream.event_header.as_ref().unwrap()),
        "{id_field: u8le@8, timestamp_field: u8le@8, id: u8le@8 EventClassId, \
         time: u8le@8 DefaultClockTimestamp}"
    );
    assert_eq!(
        show(stream.packet_context.as_ref().unwrap()),
        "{packet_size: u8le@8 PacketTotalLength, events_discarded: u8le@8 DiscardedEvents, \
         timestamp_begin: u8le@8 DefaultClockTimestamp, timestamp_end: u8le@8 PacketEndTimestamp}"
    );
    assert!(text.contains("map = clock.the_clock.value;"), "{text}");
}

#[test]
fn all_events_have_names() {
    let mut model = ctf2("");
    model.streams[0].events[0].name = None;
    for dialect in [Dialect::Ctf18, Dialect::Rfc11] {
        let (fitted, _) = fitted(&model, dialect);
        let name = &fitted.model.streams[0].events[0].name;
        assert_eq!(name.as_deref(), Some("<unknown>"));
        let reported = "event record class 0: `` becomes `<unknown>`".to_owned();
        assert!(changes(&fitted).contains(&reported));
    }
    // Of a trace that is one of CTF 1.8 already, nothing is changed.
    model.dialect = Dialect::Ctf18;
    model.byte_order = Some(ByteOrder::Little);
    let (fitted, _) = fitted(&model, Dialect::Ctf18);
    assert_eq!(fitted.model.streams[0].events[0].name, None);
}

// To CTF 2 and RFC v1.1.

#[test]
fn bit_fields_stay_in_their_units() {
    let model = rfc(
        "{ type { parent = gcc_bitfield; unit_size = 16; size = 12; align = 1; }, a },
         { type { parent = gcc_bitfield; unit_size = 16; size = 5; align = 1; }, b },
         { type { parent = gcc_bitfield; unit_size = 16; size = 5; align = 1; }, c },
         { type { parent = sequence; length_type = uint8_t; elem_type = uint8_t; }, d },
         { type { parent = gcc_bitfield; unit_size = 16; size = 5; align = 1; }, e },",
    );
    for dialect in [Dialect::Ctf18, Dialect::Ctf2] {
        let (fitted, _) = fitted(&model, dialect);
        assert_eq!(
            payload(&fitted.model),
            "{a: u12le@1, b: u5le@16, c: u5le@1, d_length: u8le@8, d: [u8le@8; Payload.3], \
             e: u5le@1}@16"
        );
        // Where `e` lies depends on the packet.
        let recoded: Vec<_> = fitted.changes.iter().filter(|c| c.rule.recodes()).collect();
        assert_eq!(recoded.len(), 1);
        assert_eq!(
            recoded[0].to_string(),
            "event record class `e`, `payload.e`: the bit field may cross its unit"
        );
    }
    assert_eq!(
        payload(&fitted(&model, Dialect::Rfc11).0.model),
        payload(&model)
    );
}

#[test]
fn bit_fields_of_tsdl_stay_in_their_units() {
    let model = |align| {
        tsdl(&format!(
            "typealias integer {{ size = 16; align = {align}; }} := word; word a : 12; word b : 5;"
        ))
    };
    let aligned = "{a: u12le@1/16, b: u5le@1/16}@16";
    let placed = "{a: u12le@1, b: u5le@16}@16";
    for (dialect, expected) in [
        (Dialect::Ctf18, aligned),
        (Dialect::Rfc11, aligned),
        (Dialect::Ctf2, placed),
    ] {
        let (fitted, _) = fitted(&model(16), dialect);
        assert_eq!(payload(&fitted.model), expected);
        assert!(!fitted.changes.iter().any(|change| change.rule.recodes()));
    }
    // In RFC v1.1, the unit would align the structure.
    let (fitted, _) = fitted(&model(8), Dialect::Rfc11);
    assert_eq!(payload(&fitted.model), "{a: u12le@8, b: u5le@1}");
    let reported =
        "event record class `e`, `payload.b`: the bit field may cross its unit".to_owned();
    assert!(
        changes(&fitted).contains(&reported),
        "{:?}",
        changes(&fitted)
    );
}

#[test]
fn enumerations_of_tsdl_have_labels() {
    let class = format!("{U8}, \"mappings\": {{}}");
    let (shown, changes) = becomes(&class, Dialect::Ctf18);
    assert_eq!(shown, "{f: u8le@8}");
    assert_eq!(
        changes,
        ["labels that cannot be written are left out or changed"]
    );
}

#[test]
fn what_is_there_or_not_is_a_sequence() {
    let text = "\"type\": \"null-terminated-string\"";
    let optional = |class: &str| {
        format!(
            "\"type\": \"optional\", \"selector-field-location\": {{\"path\": [\"s\"]}}, \
             \"field-class\": {{{class}}}"
        )
    };
    let option = |name: &str, at: u32, class: &str| {
        format!(
            "{{{name} \"selector-field-ranges\": [[{at}, {at}]], \"field-class\": {{{class}}}}}"
        )
    };
    let variant = format!(
        "\"type\": \"variant\", \"selector-field-location\": {{\"path\": [\"t\"]}}, \
         \"options\": [{}, {}]",
        option("\"name\": \"it\",", 1, U8),
        option("", 2, &optional(text))
    );
    let bits = "\"type\": \"fixed-length-unsigned-integer\", \"length\": 3, \
                \"byte-order\": \"big-endian\"";
    let model = ctf2(
        &[
            member("s", BOOL),
            member("o", &optional(bits)),
            member("t", U8),
            member("v", &variant),
        ]
        .join(","),
    );
    let (fitted, _) = fitted(&model, Dialect::Rfc11);
    assert_eq!(
        payload(&fitted.model),
        "{s: u1le@1, o: [u3be@1; u8be@1], t: u8le@8, \
         v: {it: [u8le@8; u8le@8], option_1: [[text; u8le@8]; u8le@8]}}"
    );
    let of_fields = fitted.changes.iter().filter(|c| c.place.scope.is_some());
    let reported: Vec<_> = of_fields.clone().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        [
            "event record class `e`, `payload.s`: a truth value becomes an integer",
            "event record class `e`, `payload.o`: an optional becomes a sequence of one element or \
             none",
            "event record class `e`, `payload.v`: a variant becomes a structure of sequences, one \
             for each option, of one element or none",
            "event record class `e`, `payload.v`: `` becomes `option_1`",
            "event record class `e`, `payload.v.option_1`: an optional becomes a sequence of one \
             element or none",
        ]
    );
    let is_recoded: Vec<_> = of_fields.map(|change| change.rule.recodes()).collect();
    assert_eq!(is_recoded, [false, true, true, false, true]);
}

#[test]
fn overlapping_labels_select_one_option() {
    let model = tsdl(
        "enum : integer { size = 8; } { a = 0 ... 9, b = 5 ... 20, } s;
         variant <s> { integer { size = 8; } a; integer { size = 16; } b; string c; } v;",
    );
    let (fitted, _) = fitted(&model, Dialect::Ctf2);
    assert_eq!(
        payload(&fitted.model),
        "{s: u8le@8 a=[(0, 9)] b=[(5, 20)], \
         v: <Payload.0>(a[(0, 9)]: u8le@8, b[(10, 20)]: u16le@8, c[(256, 256)]: text)}"
    );
}

#[test]
fn options_that_nothing_selects_have_numbers_of_their_own() {
    // `b` never counts, and the labels stand for numbers that no 2 bits have.
    for (signed, labels, expected) in [
        (
            false,
            "a = 0 ... 4, b = 1, c = 5",
            vec![
                "Unsigned([(0, 4)])",
                "Unsigned([(6, 6)])",
                "Unsigned([(5, 5)])",
            ],
        ),
        (
            true,
            "a = -2 ... 2, b = 0, c = 3",
            vec!["Signed([(-2, 2)])", "Signed([(4, 4)])", "Signed([(3, 3)])"],
        ),
        (
            true,
            "a = -2 ... 9223372036854775807, b = 0, c = -3",
            vec![
                "Signed([(-2, 9223372036854775807)])",
                "Signed([(-9223372036854775808, -9223372036854775808)])",
                "Signed([(-3, -3)])",
            ],
        ),
    ] {
        let model = tsdl(&format!(
            "enum : integer {{ size = 2; signed = {signed}; }} {{ {labels} }} tag;
             variant <tag> {{ string a; string b; string c; }} v;"
        ));
        let (fitted, _) = fitted(&model, Dialect::Ctf2);
        let payload = fitted.model.streams[0].events[0].payload.as_ref().unwrap();
        let parts = payload.parts();
        let FieldClass::Variant { options, .. } = parts[1] else {
            panic!("{payload:?}");
        };
        let when: Vec<_> = options.iter().map(|o| format!("{:?}", o.when)).collect();
        assert_eq!(when, expected);
    }
}

#[test]
fn lengths_elsewhere_are_repeated() {
    let model = tsdl(
        "integer { size = 16; align = 32; } n; integer { size = 8; } a[n]; 
         integer { size = 8; encoding = UTF8; } t[n]; floating_point { exp_dig = 8; mant_dig = 24; } x;",
    );
    let (fitted, _) = fitted(&model, Dialect::Rfc11);
    assert_eq!(
        payload(&fitted.model),
        "{n: u16le@32, a: [u8le@8; u16le@32], t: text, x: u32le@8}"
    );
    assert!(fitted.model.streams[0].events[0].specific_context.is_none());
}

#[test]
fn long_names_of_sections_are_cut() {
    let mut model = rfc("");
    model.dialect = Dialect::Ctf2;
    let mut second = model.streams[0].clone();
    second.id = 1;
    let long = "n\u{e9}".repeat(300);
    model.streams[0].name = Some(long.clone());
    second.name = Some(long);
    model.streams.push(second);
    let (fitted, _) = fitted(&model, Dialect::Rfc11);
    let cut = "n_".repeat(100);
    let names: Vec<_> = (fitted.model.streams.iter())
        .map(|stream| stream.name.clone().unwrap())
        .collect();
    assert_eq!(names, [cut.clone(), format!("{cut}x2")]);
}

#[test]
fn sections_have_names_of_files() {
    let mut model = rfc("");
    model.dialect = Dialect::Ctf2;
    let names = [
        Some("a/b"),
        None,
        Some("irq_0"),
        Some("a b"),
        Some("metadata"),
    ];
    let stream = model.streams[0].clone();
    model.streams.clear();
    for (id, name) in (7..).zip(names) {
        let mut stream = stream.clone();
        (stream.id, stream.name) = (id, name.map(str::to_owned));
        model.streams.push(stream);
    }
    let (fitted, _) = fitted(&model, Dialect::Rfc11);
    let streams = fitted.model.streams.iter();
    let names: Vec<_> = streams
        .map(|stream| (stream.id, stream.name.as_deref().unwrap()))
        .collect();
    assert_eq!(
        names,
        [
            (0, "a_b"),
            (1, "stream1"),
            (2, "irq_0_section"),
            (3, "a_bx2"),
            (4, "metadata_section")
        ]
    );
}

#[test]
fn what_has_no_equal_is_reported() {
    let quad = "\"type\": \"fixed-length-floating-point-number\", \"length\": 128, \
                \"byte-order\": \"little-endian\"";
    let error = |model: &TraceClass, dialect| fit(model, dialect).unwrap_err().to_string();
    let model = ctf2(&member("f", quad));
    assert_eq!(
        error(&model, Dialect::Ctf18),
        "event record class `e`, `payload.f`: readers of CTF 1.8 know no floating point number of \
         128 bits; convert to CTF 2, or leave out the events that have it"
    );
    assert!(error(&model, Dialect::Rfc11).contains("`payload.f`: RFC v1.1 knows no floating"));
    let mut model = tsdl("");
    model.streams.push(model.streams[0].clone());
    assert!(error(&model, Dialect::Ctf18).starts_with("trace: several stream classes"));
    let mut model = tsdl("");
    model.streams.clear();
    model.packet_header = None;
    assert!(error(&model, Dialect::Ctf2).starts_with("trace: no stream class, and CTF 2 has"));
    let mut model = tsdl("");
    model.streams[0].events[0].id = 1 << 32;
    assert!(error(&model, Dialect::Rfc11).contains("more than 32 bits"));
    // A length within a text that no structure holds, which only a program can make.
    let mut model = tsdl("");
    model.streams[0].events[0].payload = Some(FieldClass::Blob {
        length: Length::Static(1),
        media_type: String::new(),
        roles: Vec::new(),
    });
    assert!(error(&model, Dialect::Ctf2).ends_with("no structure; put it in a structure"));
}
