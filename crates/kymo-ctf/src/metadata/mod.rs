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
#[cfg(test)]
mod tests;
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
            warnings.push(not_text(&text, packetized.is_some()).unwrap_or(error));
            Err(MetadataError::new(name, text, warnings))
        }
    }
}

/// What is wrong with metadata as a whole, if no language is to blame.
fn not_text(text: &str, is_packetized: bool) -> Option<Diagnostic> {
    let blank = |c: char| c.is_ascii_whitespace() || c == '\0' || c == '\u{feff}';
    match text.trim_start_matches(blank).chars().next() {
        None => Some(Diagnostic::error("the metadata is empty").with_help(
            "programs write it when tracing ends or a session is stopped (`lttng stop`): copy the trace again after that",
        )),
        Some(first) if !is_packetized && (first == '\u{fffd}' || first.is_control() && first != '\u{1e}') => {
            Some(Diagnostic::error("the metadata is neither text nor packets of text").with_help(
                "the file was overwritten or damaged, or is of something else: copy it again from where it was recorded",
            ))
        }
        Some(_) => None,
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
