use proptest::prelude::*;

use super::*;
use crate::class::{Dialect, FieldClass, Role};
use kymo_time::Origin;

const LEAST: &str = "trace { major = 1; minor = 8; byte_order = le; };";

#[test]
fn plain_text_needs_no_signature() {
    for text in [
        LEAST.to_owned(),
        format!("/* CTF 1.8 */\r\n{LEAST}\r\n"),
        format!("\u{feff}\0\0{LEAST}\0\0\0"),
        LEAST.replace(' ', "\0"),
    ] {
        let metadata = parse(text.as_bytes(), "metadata").unwrap();
        assert_eq!(metadata.text, text);
        assert_eq!(metadata.packetized, None);
        assert!(metadata.warnings.is_empty());
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let metadata = parse(
        b"trace { major = 1; minor = 8; byte_order = le; }; env { a = \"\xff\"; };",
        "metadata",
    );
    assert!(metadata.unwrap().text.contains("\"\u{fffd}\""));
}

#[test]
fn an_error_shows_itself() {
    let error = parse(b"trace { major = 1; ", "some/metadata").unwrap_err();
    assert_eq!(error.name(), "some/metadata");
    assert_eq!(error.text(), "trace { major = 1; ");
    assert_eq!(error.diagnostics().len(), 1);
    assert!(
        error.to_string().contains("--> some/metadata:1:"),
        "{error}"
    );
    assert!(error.render(true).contains("\u{1b}["));
    assert!(error.envelope().is_none());
}

#[test]
fn damaged_packets_are_reported_with_their_place() {
    let error = parse(&[0x57, 0x1d, 0xd1, 0x75, 0, 0], "metadata").unwrap_err();
    // Too short for a packet: nothing is left, which is not metadata.
    assert!(
        error.to_string().contains("6 bytes that are not a packet"),
        "{error}"
    );
    let mut packet = [0; 37];
    packet[..4].copy_from_slice(&[0x57, 0x1d, 0xd1, 0x75]);
    let error = parse(&packet, "metadata").unwrap_err();
    assert_eq!(error.envelope().unwrap().offset, 24);
    assert!(error.to_string().contains("damaged at byte 24"), "{error}");
}

#[test]
fn languages_are_distinguished() {
    for text in [
        "\u{1e}{\"type\": \"preamble\", \"version\": 2}\n\u{1e}{\"type\": \"data-stream-class\"}",
        "\n{\"type\": \"preamble\", \"version\": 2}\n{\"type\": \"data-stream-class\"}",
    ] {
        let metadata = parse(text.as_bytes(), "metadata").unwrap();
        assert_eq!(metadata.class.dialect, Dialect::Ctf2);
    }
    let metadata = parse(LEAST.as_bytes(), "metadata").unwrap();
    assert_eq!(metadata.class.dialect, Dialect::Ctf18);
}

#[test]
fn rfc_v1_1_is_distinguished_by_its_packets_and_by_its_words() {
    const TEXT: &str = "trace { major = 1; minor = 1; }";
    let never = || panic!("only plain text has no byte order");
    let mut packet = 0xC1FC_1FC1_u32.to_be_bytes().to_vec();
    packet.extend([0, 0, 0, 9, 0, 0, 0, 48 + TEXT.len() as u8, 0, 0, 0, 100]);
    packet.extend([0; 32]);
    packet.extend(TEXT.as_bytes());
    packet.resize(100, 0);
    let metadata = parse_with(&packet, "metadata", never).unwrap();
    assert_eq!(metadata.text, TEXT);
    assert_eq!(metadata.packetized, Some(ByteOrder::Big));
    assert_eq!(metadata.session_id, Some(9));
    assert_eq!(metadata.class.dialect, Dialect::Rfc11);
    assert_eq!(metadata.class.byte_order, Some(ByteOrder::Big));
    assert!(metadata.warnings.is_empty());
    parse_with(LEAST.as_bytes(), "metadata", never).unwrap();

    for order in [ByteOrder::Big, ByteOrder::Little] {
        let metadata = parse_with(TEXT.as_bytes(), "metadata", || Some(order)).unwrap();
        assert_eq!(metadata.class.byte_order, Some(order));
        assert_eq!((metadata.packetized, metadata.session_id), (None, None));
    }
    let metadata = parse(TEXT.as_bytes(), "metadata").unwrap();
    assert_eq!(metadata.class.byte_order, Some(ByteOrder::Little));
    assert_eq!(metadata.warnings.len(), 1);

    packet[46] = 2;
    let error = parse(&packet, "metadata").unwrap_err();
    assert_eq!(error.envelope().unwrap().offset, 46);
    // In these packets, whatever the text is, it is taken for the RFC's language.
    packet[46] = 0;
    packet.truncate(60);
    let error = parse(&packet, "metadata").unwrap_err();
    assert!(
        error.to_string().contains("is cut: 60 of 79 bytes"),
        "{error}"
    );
    assert!(error.to_string().contains("expected `=`"), "{error}");
}

#[test]
fn fragments_go_on_in_the_next_packet() {
    let text =
        "\u{1e}{\"type\": \"preamble\", \"version\": 2}\n\u{1e}{\"type\": \"data-stream-class\"}\n";
    let packet = |text: &str| {
        let bits = 8 * (37 + text.len() as u32);
        let mut packet = 0x75d1_1d57_u32.to_be_bytes().to_vec();
        packet.extend([0; 20]);
        packet.extend(bits.to_be_bytes());
        packet.extend(bits.to_be_bytes());
        packet.extend([0, 0, 0, 2, 0]);
        packet.extend(text.as_bytes());
        packet
    };
    for cut in 0..text.len() {
        let (first, second) = text.split_at(cut);
        let bytes = [packet(first), packet(second)].concat();
        let metadata = parse(&bytes, "metadata").unwrap();
        assert_eq!(metadata.text, text);
        assert_eq!(metadata.packetized, Some(ByteOrder::Big));
        assert!(metadata.warnings.is_empty());
        assert_eq!(metadata.class.dialect, Dialect::Ctf2);
    }
}

#[test]
fn lttng_writes_packets() {
    let bytes = include_bytes!("../../tests/data/lttng-ust-2.13.metadata");
    let metadata = parse(bytes, "metadata").unwrap();
    assert_eq!(metadata.packetized, Some(ByteOrder::Little));
    assert!(metadata.warnings.is_empty());
    assert!(metadata.text.starts_with("/* CTF 1.8 */\n"));
    let class = metadata.class;
    assert_eq!(class.namespace.as_deref(), Some("lttng.org,2009"));
    assert_eq!(class.environment.len(), 10);
    let clock = &class.clocks[0];
    assert_eq!(clock.origin, Origin::UnixEpoch);
    assert_eq!(clock.offset_seconds, 1_795_251_142);
    assert_eq!(clock.offset_cycles, 794_665_340);
    let ids: Vec<_> = class.streams.iter().map(|stream| stream.id).collect();
    assert_eq!(ids, [1, 0]);
    let stream = &class.streams[0];
    assert_eq!(stream.clock, Some(0));
    let Some(FieldClass::Struct { members, min_align }) = &stream.event_header else {
        panic!("an event header is a structure")
    };
    assert_eq!((members.len(), *min_align), (2, 8));
    assert!(
        matches!(&members[0].class, FieldClass::Integer { layout, style }
        if layout.bits == 16 && style.roles == [Role::EventClassId])
    );
    let ints = &stream.events[0];
    assert_eq!(ints.name.as_deref(), Some("demo:ints"));
    let Some(FieldClass::Struct { members, .. }) = &ints.payload else {
        panic!("a payload is a structure")
    };
    let names: Vec<_> = members.iter().map(|member| &*member.name).take(3).collect();
    assert_eq!(names, ["u8", "s8", "u16"]);
}

/// Pieces of which texts are made that come close to metadata.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "trace",
        "{",
        "}",
        ";",
        "major",
        "=",
        "1",
        "minor",
        "8",
        "byte_order",
        "le",
        "stream",
        "event",
        "clock",
        "env",
        "name",
        "x",
        "id",
        "0",
        "fields",
        ":=",
        "struct",
        "variant",
        "enum",
        "integer",
        "{ size = 8; }",
        "floating_point",
        "string",
        "typealias",
        "typedef",
        "u8",
        "align(8)",
        "<",
        ">",
        "[",
        "]",
        "x.y",
        "event.fields.x",
        "...",
        "-",
        ",",
        ":",
        "\"text\"",
        "*",
        "const",
        "/*",
        "*/",
        "\0",
        "//",
        "18446744073709551615",
        "map",
        "clock.x.value",
        "encoding",
        "UTF8",
        "packet.header",
        "event.header",
        "é",
        "\"",
        "\\",
        "trace { major = 1; minor = 8; byte_order = le; };",
        "typealias integer { size = 8; } := u8;",
        "event { name = x; fields := struct {",
        "u8 x;",
        "enum : u8 { A, B } t;",
        "variant <t> { u8 A; string B; } v;",
        "};",
        "section",
        "type",
        "abstract_type",
        "parent",
        "context",
        "event_size",
        "true",
        "unit_size",
        "length_type",
        "elem_type",
        "trace { major = 1; minor = 1; }",
        "section { name = s; event { header_type = type1; } }",
        "type { parent = struct; fields = {",
        "{ uint8_t, x },",
        "type t { parent = t;",
        "{ { 1, A } }",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #[test]
    fn no_text_upsets_the_parser(text in pieces()) {
        if let Err(error) = parse(text.as_bytes(), "metadata") {
            prop_assert!(!error.render(true).is_empty());
        }
    }

    #[test]
    fn no_bytes_upset_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for head in [
            &[][..],
            &[0x57, 0x1d, 0xd1, 0x75],
            &[0x75, 0xd1, 0x1d, 0x57],
            &[0xC1, 0x1F, 0xFC, 0xC1],
            &[0xC1, 0xFC, 0x1F, 0xC1],
        ] {
            let bytes = [head, &bytes].concat();
            if let Err(error) = parse(&bytes, "metadata") {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
