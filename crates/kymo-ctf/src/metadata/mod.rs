//! Metadata: from the bytes of a `metadata` file to the class model.
//!
//! The text may be plain or come in packets (CTF 1.8.3 §7.1, RFC v1.1 §7). Which language it is
//! written in follows from the packets or the text itself; each has a module of its own, and all make the
//! same [class model](crate::class).

pub mod ctf2;
pub mod fit;
mod lexer;
mod limits;
mod packets;
pub(crate) mod rfc;
#[cfg(test)]
mod testing;
mod text;
mod tokens;
mod tsdl;
pub mod write;

use std::fmt;

use kymo_machine::ByteOrder;
use kymo_text::diagnostic::Diagnostic;

use crate::class::TraceClass;
use crate::deep;
use crate::secure::Key;

/// The longest metadata that is read, in bytes: that of a whole kernel has some 2 MB.
const MAX_LENGTH: usize = 1 << 27;

/// The metadata of a trace.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The text, without packets around it.
    pub text: String,
    /// What it says.
    pub class: TraceClass,
    /// The byte order of the packets, where the text came in packets.
    pub packetized: Option<ByteOrder>,
    /// Number of the session, if packets of RFC v1.1 state it.
    pub session_id: Option<u32>,
    /// Whether it came in encrypted packets (RFC v1.1), and so can only have been changed by holders of the key.
    pub is_encrypted: bool,
    /// What is odd about it; places are places in [`Metadata::text`].
    pub warnings: Vec<Diagnostic>,
}

/// Why metadata cannot be used.
///
/// It shows itself as a compiler would: place, line, what was expected.
#[derive(Clone, Debug)]
pub struct MetadataError(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    name: String,
    text: String,
    diagnostics: Vec<Diagnostic>,
    envelope: Option<Envelope>,
}

/// What is wrong with the bytes that hold the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Where, in bytes from the start of the file.
    pub offset: u64,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

impl MetadataError {
    fn new(name: &str, text: String, diagnostics: Vec<Diagnostic>) -> Self {
        Self(Box::new(Inner {
            name: name.to_owned(),
            text,
            diagnostics,
            envelope: None,
        }))
    }

    fn of_envelope(name: &str, envelope: Envelope) -> Self {
        let message = format!(
            "the metadata is damaged at byte {}: found {}, expected {}",
            envelope.offset, envelope.found, envelope.expected
        );
        let mut error = Self::new(name, String::new(), vec![Diagnostic::error(message)]);
        error.0.envelope = Some(envelope);
        error
    }

    /// Name of the metadata, as given to [`parse`].
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The text to which the places of the diagnostics belong; empty where the packets
    /// around it are damaged.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The errors and what was warned of before them.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0.diagnostics
    }

    /// What is wrong with the bytes that hold the text, if they are to blame.
    pub fn envelope(&self) -> Option<&Envelope> {
        self.0.envelope.as_ref()
    }

    /// The errors as a compiler would show them.
    pub fn render(&self, color: bool) -> String {
        let rendered: Vec<_> = self
            .diagnostics()
            .iter()
            .map(|diagnostic| diagnostic.render(self.name(), self.text(), color))
            .collect();
        rendered.join("\n\n")
    }
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for MetadataError {}

/// The metadata languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Rfc,
    Tsdl,
    Json,
}

impl Language {
    /// The language of a text: JSON fragments begin with a record separator (RFC 7464),
    /// or, of a tool that forgot it, with a brace.
    fn of(text: &str) -> Self {
        let blank = |c: char| c.is_ascii_whitespace() || c == '\0' || c == '\u{feff}';
        if text.trim_start_matches(blank).starts_with(['\u{1e}', '{']) {
            Self::Json
        } else if rfc::is_language_of(text) {
            Self::Rfc
        } else {
            Self::Tsdl
        }
    }
}

/// The UUID that a text is.
fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes();
    let is_uuid = bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let mut digits = bytes
        .iter()
        .filter_map(|&byte| char::from(byte).to_digit(16))
        .map(|digit| digit as u8);
    is_uuid.then(|| {
        std::array::from_fn(|_| {
            let high = digits.next().unwrap_or(0);
            high << 4 | digits.next().unwrap_or(0)
        })
    })
}

/// A UUID as text (RFC 4122 §3).
pub fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Reads metadata; `name` is what errors call it, usually the path of the file.
///
/// Bytes that are not UTF-8 are replaced by U+FFFD.
///
/// # Errors
///
/// If the metadata, or the packets around it, cannot be understood.
pub fn parse(bytes: &[u8], name: &str) -> Result<Metadata, MetadataError> {
    parse_with(bytes, name, || None)
}

/// Like [`parse`] for a trace whose data streams can be looked at: plain text of RFC v1.1 does
/// not state the native byte order, but the [magic number](byte_order_of_packets) of every packet
/// does. Only for such text, `native` is called.
///
/// # Errors
///
/// If the metadata, or the packets around it, cannot be understood.
pub fn parse_with(
    bytes: &[u8],
    name: &str,
    native: impl FnOnce() -> Option<ByteOrder>,
) -> Result<Metadata, MetadataError> {
    parse_secured(bytes, name, native, &[])
}

/// Like [`parse_with`] where the packets of the metadata may be encrypted with one of some keys
/// (RFC v1.1).
///
/// # Errors
///
/// If the metadata, or the packets around it, cannot be understood or opened.
pub fn parse_secured(
    bytes: &[u8],
    name: &str,
    native: impl FnOnce() -> Option<ByteOrder>,
    keys: &[Key],
) -> Result<Metadata, MetadataError> {
    if bytes.len() > MAX_LENGTH {
        return Err(MetadataError::of_envelope(
            name,
            Envelope {
                offset: MAX_LENGTH as u64,
                found: "more metadata".to_owned(),
                expected: "its end here at the latest".to_owned(),
            },
        ));
    }
    let mut warnings = Vec::new();
    let damaged = |envelope| MetadataError::of_envelope(name, envelope);
    let rfc_packets = rfc::byte_order(bytes);
    let packetized = packets::detect(bytes).or(rfc_packets);
    let mut session_id = None;
    let mut is_encrypted = false;
    let joined;
    let bytes = match (rfc_packets, packetized) {
        (Some(order), _) => {
            let packets = rfc::packets::join(bytes, order, keys, &mut warnings).map_err(damaged)?;
            session_id = packets.session_id;
            is_encrypted = packets.is_encrypted && packets.session_id.is_some();
            joined = packets.text;
            &joined
        }
        (None, Some(order)) => {
            joined = packets::join(bytes, order, &mut warnings).map_err(damaged)?;
            &joined
        }
        (None, None) => bytes,
    };
    let text = String::from_utf8_lossy(bytes).into_owned();
    let language = match rfc_packets {
        Some(_) => Language::Rfc,
        None => Language::of(&text),
    };
    let parsed = match language {
        Language::Rfc => {
            let order = packetized.or_else(native).unwrap_or_else(|| {
                warnings.push(Diagnostic::warning(
                    "the native byte order is unknown: neither the metadata nor a data stream has it; \
                     little endian is assumed",
                ));
                ByteOrder::Little
            });
            deep::retry(|| rfc::parse(&text, order))
        }
        Language::Tsdl => deep::retry(|| tsdl::parse(&text)),
        Language::Json => deep::retry(|| ctf2::parse(&text)),
    };
    match parsed {
        Ok((class, more)) => {
            warnings.extend(more);
            if let (Some(packets), Some(trace)) = (packetized, class.byte_order)
                && packets != trace
            {
                warnings.push(Diagnostic::warning(format!(
                    "the packets of the metadata are {packets:?} endian, the trace is {trace:?} endian"
                )));
            }
            Ok(Metadata {
                text,
                class,
                packetized,
                session_id,
                is_encrypted,
                warnings,
            })
        }
        Err(error) => {
            warnings.push(error);
            Err(MetadataError::new(name, text, warnings))
        }
    }
}

/// What metadata in JSON says without its last fragment, where it is because of that one that it
/// cannot be understood; and where that fragment begins in its text.
pub(crate) fn before_cut(error: &MetadataError) -> Option<(Metadata, usize)> {
    let text = error.text();
    let end = text.rfind('\u{1e}').filter(|&end| end > 0)?;
    if Language::of(text) != Language::Json {
        return None;
    }
    let metadata = parse(&text.as_bytes()[..end], error.name()).ok()?;
    Some((metadata, end))
}

/// The byte order of a packet that begins with the magic number of RFC v1.1, as all of its
/// packets do; `None` of other bytes.
pub fn byte_order_of_packets(bytes: &[u8]) -> Option<ByteOrder> {
    rfc::byte_order(bytes)
}

#[cfg(test)]
mod tests {
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
        let never = || panic!("only plain text does not tell the byte order");
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
        let text = "\u{1e}{\"type\": \"preamble\", \"version\": 2}\n\u{1e}{\"type\": \"data-stream-class\"}\n";
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
}
