//! Which of the two formats a file is of.

use std::path::Path;

use crate::message::{packet, trace};
use crate::proto::{Fields, Wire};

/// Packets that are looked at.
const PACKETS: usize = 16;

/// A format of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Perfetto's protocol buffers.
    Perfetto,
    /// Chrome's JSON trace events.
    Chrome,
}

/// How well some bytes look like a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The format.
    pub form: Form,
    /// How sure it is, from 1 to 100.
    pub score: u8,
    /// Why.
    pub reason: &'static str,
}

/// Determines the format of a file by its first bytes and its name; `None` if it has neither format.
pub fn probe(bytes: &[u8], path: &Path) -> Option<Probe> {
    let found = |form, score, reason| {
        Some(Probe {
            form,
            score,
            reason,
        })
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let named = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let head = &bytes[..bytes.len().min(1 << 16)];
    let text = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let has = |what: &[u8]| memchr::memmem::find(text, what).is_some();
    match text.first() {
        Some(b'{') if has(b"\"traceEvents\"") => {
            return found(Form::Chrome, 90, "an object with `traceEvents`");
        }
        Some(b'[') if has(b"\"ph\"") => return found(Form::Chrome, 80, "an array of trace events"),
        _ => {}
    }
    let packets = packets(bytes);
    if packets > 0 {
        return match named(&[".pftrace", ".perfetto-trace", ".perfetto"]) {
            true => found(
                Form::Perfetto,
                90,
                "packets of Perfetto, and a name of its traces",
            ),
            false if packets > 2 => found(Form::Perfetto, 60, "packets of Perfetto"),
            false => found(Form::Perfetto, 40, "what may be packets of Perfetto"),
        };
    }
    None
}

/// How many packets there are at the beginning, up to some, before anything else.
fn packets(bytes: &[u8]) -> usize {
    Fields::new(bytes)
        .take(PACKETS)
        .take_while(|field| match field {
            Ok(field) if field.number == trace::PACKET => is_packet(field.wire.bytes()),
            _ => false,
        })
        .count()
}

/// Whether a message has what packets have, and nothing that is damaged.
fn is_packet(message: &[u8]) -> bool {
    let mut is_packet = false;
    for field in Fields::new(message) {
        let Ok(field) = field else { return false };
        let is_message = matches!(field.wire, Wire::Bytes(_));
        is_packet |= match field.number {
            packet::TIMESTAMP | packet::SEQUENCE | packet::TRUSTED_UID => !is_message,
            packet::TRACK_DESCRIPTOR
            | packet::CLOCK_SNAPSHOT
            | packet::COMPRESSED_PACKETS
            | packet::SYNCHRONIZATION_MARKER
            | packet::FTRACE_EVENTS => is_message,
            _ => false,
        };
    }
    is_packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_reported_by_their_bytes() {
        let form = |bytes: &[u8], path: &str| {
            probe(bytes, Path::new(path)).map(|probe| (probe.form, probe.score))
        };
        let chrome = |score| Some((Form::Chrome, score));
        assert_eq!(form(b"\n {\"traceEvents\":[", "x"), chrome(90));
        assert_eq!(form(b"[{\"ph\":\"B\"", "x.json"), chrome(80));
        assert_eq!(form(b"[{\"a\":1}]", "x.json"), None);
        let packet = b"\x0a\x04\x40\x05\x50\x01";
        assert_eq!(form(packet, "x"), Some((Form::Perfetto, 40)));
        assert_eq!(form(packet, "x.pftrace"), Some((Form::Perfetto, 90)));
        assert_eq!(form(&packet.repeat(3), "x"), Some((Form::Perfetto, 60)));
        assert_eq!(
            form(&packet.repeat(3)[..16], "x"),
            Some((Form::Perfetto, 40))
        );
        assert_eq!(form(b"\x0a\x02\x08\x01", "x.pftrace"), None);
        assert_eq!(form(b"text", "x.pftrace"), None);
        assert_eq!(form(b"", "x.pftrace"), None);
    }
}
