//! What metadata of CTF 2 means, construct by construct.

mod errors;
mod round_trip;

use kymo_model::Base;
use kymo_time::{Clock, Origin};

use crate::class::{
    Encoding, EnvironmentValue, FieldClass, FieldRef, Length, Role, Selector, Step, TraceClass,
};

/// Fragments, each after a record separator.
fn sequence(fragments: &[&str]) -> String {
    fragments
        .iter()
        .map(|fragment| format!("\u{1e}{fragment}\n"))
        .collect()
}

const PREAMBLE: &str = r#"{"type": "preamble", "version": 2}"#;
const STREAM: &str = r#"{"type": "data-stream-class"}"#;

/// An unsigned integer of 8 bits.
const U8: &str =
    r#"{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}"#;
/// A signed integer of 8 bits.
const I8: &str =
    r#"{"type": "fixed-length-signed-integer", "length": 8, "byte-order": "little-endian"}"#;
const BOOL: &str =
    r#"{"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"}"#;

fn trace(text: &str) -> TraceClass {
    match super::parse(text) {
        Ok((class, _)) => class,
        Err(error) => panic!("{}", error.render("metadata", text, false)),
    }
}

fn warnings(text: &str) -> Vec<String> {
    let (_, warnings) = super::parse(text).unwrap();
    warnings
        .into_iter()
        .map(|warning| warning.message)
        .collect()
}

/// A structure with members `NAME CLASS`.
fn structure(members: &[(&str, &str)]) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(name, class)| format!(r#"{{"name": "{name}", "field-class": {class}}}"#))
        .collect();
    format!(
        r#"{{"type": "structure", "member-classes": [{}]}}"#,
        members.join(", ")
    )
}

/// A fragment with a payload, after fragments of aliases and such.
fn event(before: &[&str], payload: &str) -> String {
    let event = format!(r#"{{"type": "event-record-class", "payload-field-class": {payload}}}"#);
    let mut fragments = vec![PREAMBLE];
    fragments.extend(before);
    fragments.extend([STREAM, &event]);
    sequence(&fragments)
}

/// The field class of a payload's only member, in short.
fn class(class: &str) -> String {
    let trace = trace(&event(&[], &structure(&[("x", class)])));
    let shown = show(trace.streams[0].events[0].payload.as_ref().unwrap());
    let inner = shown.strip_prefix("{x: ").and_then(|s| s.strip_suffix('}'));
    inner.unwrap().to_owned()
}

/// The field classes of a payload, in short.
fn payload(before: &[&str], members: &[(&str, &str)]) -> String {
    let trace = trace(&event(before, &structure(members)));
    show(trace.streams[0].events[0].payload.as_ref().unwrap())
}

fn show(class: &FieldClass) -> String {
    let layout = |layout: &crate::class::BitLayout| {
        let order = match layout.order {
            kymo_machine::ByteOrder::Little => "le",
            kymo_machine::ByteOrder::Big => "be",
        };
        let reversed = if layout.reversed { " reversed" } else { "" };
        format!("{}{order}@{}{reversed}", layout.bits, layout.align)
    };
    let style = |style: &crate::class::IntegerStyle| {
        let mut text = String::new();
        match style.base {
            Base::Decimal => {}
            base => text += &format!(" {base:?}"),
        }
        for mapping in style.labels.iter().flat_map(|labels| labels.mappings()) {
            text += &format!(" {}={:?}", mapping.label, mapping.ranges);
        }
        for role in &style.roles {
            text += &format!(" {role:?}");
        }
        text
    };
    let sign = |signed| if signed { 'i' } else { 'u' };
    let min = |align: u32| match align {
        1 => String::new(),
        align => format!("@{align}"),
    };
    match class {
        FieldClass::BitArray(bits) => format!("bits{}", layout(bits)),
        FieldClass::BitMap {
            layout: bits,
            flags,
        } => {
            let flags: Vec<_> = flags
                .iter()
                .map(|flag| format!(" {}={:?}", flag.name, flag.ranges))
                .collect();
            format!("map{}{}", layout(bits), flags.concat())
        }
        FieldClass::Bool(bits) => format!("bool{}", layout(bits)),
        FieldClass::Integer {
            layout: bits,
            style: s,
        } => format!("{}{}{}", sign(s.signed), layout(bits), style(s)),
        FieldClass::VarInteger(s) => format!("{}var{}", sign(s.signed), style(s)),
        FieldClass::Float(bits) => format!("f{}", layout(bits)),
        FieldClass::Text { encoding, align } => format!("text {encoding:?}@{align}"),
        FieldClass::SizedText {
            length,
            encoding,
            align,
        } => format!("text[{}] {encoding:?}@{align}", show_length(length)),
        FieldClass::Blob {
            length,
            media_type,
            roles,
        } => {
            let roles: Vec<_> = roles.iter().map(|role| format!(" {role:?}")).collect();
            let length = show_length(length);
            format!("blob[{length}] {media_type}{}", roles.concat())
        }
        FieldClass::Struct { members, min_align } => {
            let members: Vec<_> = members
                .iter()
                .map(|member| format!("{}: {}", member.name, show(&member.class)))
                .collect();
            format!("{{{}}}{}", members.join(", "), min(*min_align))
        }
        FieldClass::Array {
            element,
            length,
            min_align,
            ..
        } => format!(
            "[{}; {}]{}",
            show(element),
            show_length(length),
            min(*min_align)
        ),
        FieldClass::Optional {
            content,
            selector,
            when,
        } => {
            let when = show_when(when);
            format!("<{}>({when}: {})?", show_ref(selector), show(content))
        }
        FieldClass::Variant { options, selector } => {
            let options: Vec<_> = options
                .iter()
                .map(|option| {
                    let name = option.name.as_deref().unwrap_or_default();
                    format!("{name}{}: {}", show_when(&option.when), show(&option.class))
                })
                .collect();
            format!("<{}>({})", show_ref(selector), options.join(", "))
        }
    }
}

fn show_when(when: &Selector) -> String {
    match when {
        Selector::True => "true".to_owned(),
        Selector::Unsigned(ranges) => format!("u{ranges:?}"),
        Selector::Signed(ranges) => format!("i{ranges:?}"),
    }
}

fn show_length(length: &Length) -> String {
    match length {
        Length::Static(length) => length.to_string(),
        Length::Dynamic(reference) => show_ref(reference),
        Length::Inline(class) => show(class),
    }
}

fn show_ref(reference: &FieldRef) -> String {
    let targets: Vec<_> = reference
        .targets
        .iter()
        .map(|target| {
            let mut text = format!("{:?}", target.scope);
            for step in &target.steps {
                text += &match step {
                    Step::Child(at) => format!(".{at}"),
                    Step::Element => ".*".to_owned(),
                    Step::Content => ".?".to_owned(),
                };
            }
            text
        })
        .collect();
    targets.join("|")
}

// The sequence.

#[test]
fn the_least_is_a_preamble_and_a_data_stream_class() {
    let class = trace(&sequence(&[PREAMBLE, STREAM]));
    assert_eq!((class.streams.len(), class.streams[0].id), (1, 0));
    assert_eq!(class.streams[0].clock, None);
    assert_eq!((class.uuid, class.byte_order), (None, None));
}

#[test]
fn blanks_and_bytes_not_written_yet_do_not_matter() {
    let text = format!(
        "\u{feff}\u{1e}\u{1e}\r\n \u{1e}\n{PREAMBLE}\u{1e}{}\0\0\n\u{1e}\0\0\0",
        STREAM.replace(' ', "\t\n")
    );
    assert_eq!(trace(&text).streams.len(), 1);
    assert!(warnings(&text).is_empty());
}

#[test]
fn missing_separators_are_odd() {
    assert_eq!(
        warnings(&format!("{PREAMBLE}\n{STREAM}{}", "\n")),
        ["the fragments are not separated"]
    );
}

#[test]
fn a_trace_may_have_headers_alone() {
    let header = r#"{"type": "trace-class", "packet-header-field-class": {"type": "structure"}}"#;
    let text = sequence(&[PREAMBLE, header]);
    assert_eq!(trace(&text).streams.len(), 0);
    assert_eq!(warnings(&text), ["no data stream class"]);
}

// Field classes.

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
    for (name, encoding) in super::classes::ENCODINGS {
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

fn variant(selector: &str, options: &[(&str, &str)]) -> String {
    let options: Vec<_> = options
        .iter()
        .map(|(ranges, class)| {
            format!(r#"{{"selector-field-ranges": {ranges}, "field-class": {class}}}"#)
        })
        .collect();
    format!(
        r#"{{"type": "variant", "selector-field-location": {selector}, "options": [{}]}}"#,
        options.join(", ")
    )
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

// Aliases.

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

// Locations.

/// The location that a text of a length given at `location` has, in a payload with many fields.
fn located(location: &str) -> String {
    let text =
        format!(r#"{{"type": "dynamic-length-string", "length-field-location": {location}}}"#);
    let inner = structure(&[
        ("n", U8),
        ("deep", &structure(&[("m", U8), ("text", &text)])),
    ]);
    let array = format!(
        r#"{{"type": "static-length-array", "length": 2, "element-field-class": {inner}}}"#
    );
    let optional = format!(
        r#"{{"type": "optional", "selector-field-location": {{"path": ["flag"]}}, "field-class": {U8}}}"#
    );
    let a = structure(&[("x", U8)]);
    let b = structure(&[("y", U8), ("x", U8)]);
    let choice = variant(
        r#"{"path": ["n"]}"#,
        &[("[[0, 0]]", &a), ("[[1, 1]]", U8), ("[[2, 2]]", &b)],
    );
    let event = format!(
        r#"{{"type": "event-record-class", "specific-context-field-class": {}, "payload-field-class": {}}}"#,
        structure(&[("n", U8)]),
        structure(&[
            ("n", U8),
            ("flag", BOOL),
            ("o", &optional),
            ("v", &choice),
            ("array", &array)
        ]),
    );
    let stream = format!(
        r#"{{"type": "data-stream-class", "packet-context-field-class": {0},
            "event-record-header-field-class": {0}, "event-record-common-context-field-class": {0}}}"#,
        structure(&[("n", U8)])
    );
    let header = format!(
        r#"{{"type": "trace-class", "packet-header-field-class": {}}}"#,
        structure(&[("n", U8)])
    );
    let trace = trace(&sequence(&[PREAMBLE, &header, &stream, &event]));
    let shown = show(trace.streams[0].events[0].payload.as_ref().unwrap());
    let (_, shown) = shown.split_once("text: text[").unwrap();
    shown.split_once(']').unwrap().0.to_owned()
}

#[test]
fn locations_begin_at_the_structure_around() {
    assert_eq!(located(r#"{"path": ["m"]}"#), "Payload.4.*.1.0");
    assert_eq!(located(r#"{"path": [null, "n"]}"#), "Payload.4.*.0");
    assert_eq!(located(r#"{"path": [null, null, "n"]}"#), "Payload.0");
    assert_eq!(
        located(r#"{"path": [null, "n", null, null, "n"]}"#),
        "Payload.0"
    );
    assert_eq!(
        located(r#"{"path": ["no", "such", null, null, null, null, "n"]}"#),
        "Payload.0"
    );
}

#[test]
fn locations_begin_at_a_scope() {
    for (origin, expected) in [
        ("packet-header", "PacketHeader.0"),
        ("packet-context", "PacketContext.0"),
        ("event-record-header", "EventHeader.0"),
        ("event-record-common-context", "CommonContext.0"),
        ("event-record-specific-context", "SpecificContext.0"),
        ("event-record-payload", "Payload.0"),
    ] {
        let location = format!(r#"{{"origin": "{origin}", "path": ["n"]}}"#);
        assert_eq!(located(&location), expected);
    }
    assert_eq!(
        located(r#"{"origin": "event-record-payload", "path": ["o", null, "n"]}"#),
        "Payload.0"
    );
}

#[test]
fn arrays_optionals_and_variants_on_the_way_have_no_name() {
    let in_payload = |path: &str| {
        located(&format!(
            r#"{{"origin": "event-record-payload", "path": {path}}}"#
        ))
    };
    assert_eq!(in_payload(r#"["array", "n"]"#), "Payload.4.*.0");
    assert_eq!(in_payload(r#"["array", "deep", "m"]"#), "Payload.4.*.1.0");
    assert_eq!(in_payload(r#"["o"]"#), "Payload.2.?");
    assert_eq!(in_payload(r#"["v", "x"]"#), "Payload.3.0.0|Payload.3.2.1");
    assert_eq!(in_payload(r#"["v", "y"]"#), "Payload.3.2.0");
    // The options that are structures have more to offer, but no length.
    let options = [("[[0, 0]]", U8), ("[[1, 1]]", U8)];
    let choice = variant(r#"{"path": ["n"]}"#, &options);
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"path": ["v"]}}"#;
    assert_eq!(
        payload(&[], &[("n", U8), ("v", &choice), ("t", text)]),
        "{n: u8le@1, v: <Payload.0>(u[(0, 0)]: u8le@1, u[(1, 1)]: u8le@1), \
         t: text[Payload.1.0|Payload.1.1] Utf8@8}"
    );
}

#[test]
fn of_the_variant_around_only_the_own_option_is_meant() {
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"origin": "event-record-payload", "path": ["v", "n"]}}"#;
    let one = structure(&[("n", U8)]);
    let two = structure(&[("a", U8), ("n", U8), ("t", text)]);
    let choice = variant(
        r#"{"path": ["n"]}"#,
        &[("[[0, 0]]", &one), ("[[1, 1]]", &two)],
    );
    let shown = payload(&[], &[("n", U8), ("v", &choice)]);
    assert!(shown.contains("text[Payload.1.1.1]"), "{shown}");
}

// The trace, its clocks, streams and events.

#[test]
fn the_trace_class_has_an_identity_and_an_environment() {
    let class = trace(&sequence(&[
        r#"{"type": "preamble", "version": 2, "uuid": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,255], "attributes": {}}"#,
        r#"{"type": "trace-class", "namespace": "ns", "name": "n\u00e9\ud83d\ude00", "uid": "u", "extensions": {},
            "environment": {"z": "text", "a": -9223372036854775808, "b": 9223372036854775807},
            "attributes": {"a,1": [1, 2.5e3, {"x": null}], "b": "c"}}"#,
        STREAM,
    ]));
    let mut uuid = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    uuid[15] = 255;
    assert_eq!(class.uuid, Some(uuid));
    assert_eq!(class.namespace.as_deref(), Some("ns"));
    assert_eq!(class.name.as_deref(), Some("né😀"));
    assert_eq!(class.uid.as_deref(), Some("u"));
    assert_eq!(
        class.environment,
        [
            ("z".to_owned(), EnvironmentValue::Text("text".to_owned())),
            ("a".to_owned(), EnvironmentValue::Integer(i64::MIN)),
            ("b".to_owned(), EnvironmentValue::Integer(i64::MAX)),
        ]
    );
    assert_eq!(
        class.attributes,
        [
            ("a,1".to_owned(), r#"[1, 2.5e3, {"x": null}]"#.to_owned()),
            ("b".to_owned(), r#""c""#.to_owned()),
        ]
    );
}

#[test]
fn clock_classes() {
    let class = trace(&sequence(&[
        PREAMBLE,
        r#"{"type": "clock-class", "id": "a", "frequency": 1}"#,
        r#"{"type": "clock-class", "id": "b", "namespace": "ns", "name": "mono", "uid": "u",
            "description": "d", "frequency": 1000, "precision": 3, "accuracy": 18446744073709551615,
            "origin": "unix-epoch", "offset-from-origin": {"seconds": -5, "cycles": 999}}"#,
        r#"{"type": "clock-class", "id": "c", "frequency": 5,
            "origin": {"namespace": "ns", "name": "boot", "uid": "7"}, "offset-from-origin": {}}"#,
        r#"{"type": "data-stream-class", "default-clock-class-id": "b"}"#,
    ]));
    let named = |namespace: &str, name: &str, uid: &str| Origin::Named {
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        uid: uid.to_owned(),
    };
    assert_eq!(
        class
            .clocks
            .iter()
            .map(|clock| (**clock).clone())
            .collect::<Vec<_>>(),
        [
            Clock {
                frequency: 1,
                ..Clock::default()
            },
            Clock {
                namespace: Some("ns".to_owned()),
                name: Some("mono".to_owned()),
                uid: Some("u".to_owned()),
                description: Some("d".to_owned()),
                frequency: 1000,
                offset_seconds: -5,
                offset_cycles: 999,
                precision: Some(3),
                accuracy: Some(u64::MAX),
                origin: Origin::UnixEpoch,
            },
            Clock {
                frequency: 5,
                origin: named("ns", "boot", "7"),
                ..Clock::default()
            },
        ]
    );
    assert_eq!(class.streams[0].clock, Some(1));
}

#[test]
fn roles_tell_what_fields_are_for() {
    let with = |length: u32, role: &str| {
        format!(
            r#"{{"type": "fixed-length-unsigned-integer", "length": {length}, "byte-order": "big-endian", "roles": ["{role}", "{role}"]}}"#
        )
    };
    let time =
        r#"{"type": "variable-length-unsigned-integer", "roles": ["default-clock-timestamp"]}"#;
    let header = structure(&[
        ("magic", &with(32, "packet-magic-number")),
        (
            "uuid",
            r#"{"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}"#,
        ),
        ("class", &with(8, "data-stream-class-id")),
        ("stream", &with(8, "data-stream-id")),
    ]);
    let context = structure(&[
        ("total", &with(8, "packet-total-length")),
        ("content", &with(8, "packet-content-length")),
        ("begin", time),
        ("end", &with(8, "packet-end-default-clock-timestamp")),
        ("lost", &with(8, "discarded-event-record-counter-snapshot")),
        ("number", &with(8, "packet-sequence-number")),
    ]);
    let event = structure(&[("id", &with(8, "event-record-class-id")), ("time", time)]);
    let class = trace(&sequence(&[
        r#"{"type": "preamble", "version": 2, "uuid": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#,
        r#"{"type": "clock-class", "id": "c", "frequency": 1}"#,
        &format!(r#"{{"type": "trace-class", "packet-header-field-class": {header}}}"#),
        &format!(
            r#"{{"type": "data-stream-class", "id": 7, "namespace": "ns", "name": "s", "uid": "u", "default-clock-class-id": "c",
                "packet-context-field-class": {context}, "event-record-header-field-class": {event}, "attributes": {{"a": 1}}}}"#
        ),
    ]));
    assert_eq!(
        show(class.packet_header.as_ref().unwrap()),
        "{magic: u32be@1 PacketMagic, uuid: blob[16] application/octet-stream MetadataUuid, \
         class: u8be@1 StreamClassId, stream: u8be@1 StreamId}"
    );
    let stream = &class.streams[0];
    assert_eq!(
        show(stream.packet_context.as_ref().unwrap()),
        "{total: u8be@1 PacketTotalLength, content: u8be@1 PacketContentLength, \
         begin: uvar DefaultClockTimestamp, end: u8be@1 PacketEndTimestamp, \
         lost: u8be@1 DiscardedEvents, number: u8be@1 PacketSequenceNumber}"
    );
    assert_eq!(
        show(stream.event_header.as_ref().unwrap()),
        "{id: u8be@1 EventClassId, time: uvar DefaultClockTimestamp}"
    );
    assert_eq!(
        (
            stream.id,
            stream.namespace.as_deref(),
            stream.name.as_deref(),
            stream.uid.as_deref()
        ),
        (7, Some("ns"), Some("s"), Some("u"))
    );
    assert_eq!(stream.attributes, [("a".to_owned(), "1".to_owned())]);
    // Each role once, however often it is said.
    let Some(FieldClass::Struct { members, .. }) = &class.packet_header else {
        panic!("a structure")
    };
    assert!(matches!(&members[0].class,
        FieldClass::Integer { style, .. } if style.roles == [Role::PacketMagic]));
}

#[test]
fn event_record_classes() {
    let class = trace(&sequence(&[
        PREAMBLE,
        STREAM,
        r#"{"type": "data-stream-class", "id": 2}"#,
        r#"{"type": "event-record-class"}"#,
        r#"{"type": "event-record-class", "id": 5, "namespace": "ns", "name": "e", "uid": "u",
            "payload-field-class": {"type": "structure", "member-classes": [
                {"name": "t", "field-class": {"type": "null-terminated-string", "encoding": "utf-16be"}, "attributes": {"m": {}}}]},
            "attributes": {"n": true}}"#,
        r#"{"type": "event-record-class", "data-stream-class-id": 2}"#,
    ]));
    let events = &class.streams[0].events;
    assert_eq!((events[0].id, &events[0].name), (0, &None));
    assert_eq!((events[1].id, events[1].name.as_deref()), (5, Some("e")));
    assert_eq!(events[1].namespace.as_deref(), Some("ns"));
    assert_eq!(events[1].uid.as_deref(), Some("u"));
    assert_eq!(events[1].attributes, [("n".to_owned(), "true".to_owned())]);
    let Some(FieldClass::Struct { members, .. }) = &events[1].payload else {
        panic!("a structure")
    };
    assert_eq!(members[0].attributes, [("m".to_owned(), "{}".to_owned())]);
    assert_eq!(
        members[0].class,
        FieldClass::Text {
            encoding: Encoding::Utf16Be,
            align: 8
        }
    );
    assert_eq!(class.streams[1].events.len(), 1);
}

#[test]
fn log_levels_are_attributes() {
    let level = |attributes: &str| {
        let event = format!(r#"{{"type": "event-record-class", "attributes": {{{attributes}}}}}"#);
        let class = trace(&sequence(&[PREAMBLE, STREAM, &event]));
        let event = &class.streams[0].events[0];
        (event.log_level, event.emf_uri.as_deref().map(str::to_owned))
    };
    let lttng = |level: &str| format!(r#""lttng.org,2009": {{"log-level": {level}}}"#);
    assert_eq!(level(&lttng(r#""emergency""#)), (Some(0), None));
    assert_eq!(level(&lttng(r#""debug:line""#)), (Some(13), None));
    assert_eq!(level(&lttng("42")), (Some(42), None));
    assert_eq!(level(&lttng(r#""loud""#)), (None, None));
    assert_eq!(
        level(r#""babeltrace.org,2020": {"log-level": "debug", "emf-uri": "http://x"}"#),
        (Some(14), Some("http://x".to_owned()))
    );
    assert_eq!(
        level(r#""lttng.org,2009": 3, "other": {"log-level": 1}"#),
        (None, None)
    );
    let loud = format!(
        r#"{{"type": "event-record-class", "attributes": {{{}}}}}"#,
        lttng(r#""loud""#)
    );
    assert_eq!(
        warnings(&sequence(&[PREAMBLE, STREAM, &loud])),
        ["unknown log level"]
    );
}

#[test]
fn drafts_are_read_with_warnings() {
    let enumeration = r#"{"type": "fixed-length-unsigned-enumeration", "length": 8,
        "byte-order": "little-endian", "mappings": {"a": [[0, 1]]}}"#;
    let choice = variant(r#"["event-record-payload", "id"]"#, &[("[[0, 0]]", U8)]);
    let text = sequence(&[
        PREAMBLE,
        r#"{"type": "trace-class", "uuid": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}"#,
        r#"{"type": "clock-class", "name": "mono", "frequency": 1, "offset": {"seconds": 3},
            "uuid": [16,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}"#,
        r#"{"type": "data-stream-class", "default-clock-class-name": "mono"}"#,
        &format!(
            r#"{{"type": "event-record-class", "payload-field-class": {},
                "user-attributes": {{"babeltrace.org,2020": {{"log-level": "info"}}}}}}"#,
            structure(&[("id", enumeration), ("v", &choice)])
        ),
    ]);
    let class = trace(&text);
    assert_eq!(class.uuid.unwrap()[15], 16);
    assert_eq!(
        class.clocks[0].uid.as_deref(),
        Some("10010203-0405-0607-0809-0a0b0c0d0e0f")
    );
    assert_eq!(class.clocks[0].offset_seconds, 3);
    assert_eq!(class.streams[0].clock, Some(0));
    assert_eq!(class.streams[0].events[0].log_level, Some(6));
    assert_eq!(
        show(class.streams[0].events[0].payload.as_ref().unwrap()),
        "{id: u8le@1 a=[(0, 1)], v: <Payload.0>(u[(0, 0)]: u8le@1)}"
    );
    assert_eq!(
        warnings(&text),
        [
            "`uuid` of the trace class is of a draft of CTF 2",
            "`offset` is of a draft of CTF 2",
            "`uuid` is of a draft of CTF 2",
            "a clock class without `id` is of a draft of CTF 2",
            "`default-clock-class-name` is of a draft of CTF 2",
            "`user-attributes` is of a draft of CTF 2",
            "`fixed-length-unsigned-enumeration` is of a draft of CTF 2",
            "a field location as an array is of a draft of CTF 2",
        ]
    );
}
