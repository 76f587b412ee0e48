//! Metadata in packets (§7): each has the header of every packet, and then nothing but
//! zero-terminated strings, one behind the other. The strings joined are the text.

use kymo_machine::ByteOrder;
use kymo_text::diagnostic::Diagnostic;

use super::layout::{HEADER_BYTES, MAGIC, PacketHeader, byte_order};
use crate::metadata::{Envelope, MAX_LENGTH};
use crate::secure::{self, Key, Limits, OpenError};

/// What the packets hold: the text and the number of the session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) text: Vec<u8>,
    pub(crate) session_id: Option<u32>,
    /// Whether all packets are encrypted.
    pub(crate) is_encrypted: bool,
}

/// A plain packet that holds metadata; `None` if that is too large for one.
pub(crate) fn packet(text: &[u8], order: ByteOrder, session_id: u32) -> Option<Vec<u8>> {
    // A string ends with a zero.
    let size = text.len().checked_add(HEADER_BYTES + 1)?;
    let size = u32::try_from(size).ok()?;
    let mut packet = vec![0; HEADER_BYTES];
    packet.extend_from_slice(text);
    packet.push(0);
    let header = PacketHeader {
        magic: MAGIC,
        session_id,
        content_size: size,
        packet_size: size,
        checksum: 0,
        count_bits: 0,
        compression: 0,
        encryption: 0,
        checksum_scheme: 0,
    };
    header.write(&mut packet, order);
    Some(packet)
}

/// The contents of all packets, which begin with a magic number of this byte order. Zeros between
/// the strings are blanks to whoever reads the text.
///
/// What a tracer did not finish is taken as far as it goes, with a warning; but a secured packet
/// only as a whole.
pub(crate) fn join(
    bytes: &[u8],
    order: ByteOrder,
    keys: &[Key],
    warnings: &mut Vec<Diagnostic>,
) -> Result<Joined, Envelope> {
    let mut joined = Joined {
        text: Vec::new(),
        session_id: None,
        is_encrypted: true,
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.iter().all(|&byte| byte == 0) {
            break;
        }
        let Some(header) = PacketHeader::read(rest, order) else {
            warnings.push(Diagnostic::warning(format!(
                "the metadata ends with {} bytes that are not a packet (at byte {at})",
                rest.len()
            )));
            break;
        };
        check(&header, rest, at, order, joined.session_id)?;
        joined.session_id = Some(header.session_id);
        joined.is_encrypted &= header.encryption != 0;
        let content = header.content_size as usize;
        if header.is_secured() {
            let limits = Limits::among(header.packet_size.into(), bytes.len() as u64);
            let plain = secure::open(rest, order, keys, &limits);
            let plain = plain.map_err(|error| closed(&error, at))?;
            let header = PacketHeader::read(&plain, order).unwrap_or(header);
            let content = plain.get(HEADER_BYTES..header.content_size as usize);
            joined.text.extend_from_slice(content.unwrap_or_default());
            if joined.text.len() > MAX_LENGTH {
                return Err(Envelope {
                    offset: at as u64,
                    found: "more metadata".to_owned(),
                    expected: "its end in this packet at the latest".to_owned(),
                });
            }
        } else if let Some(content) = rest.get(HEADER_BYTES..content) {
            joined.text.extend_from_slice(content);
        } else {
            joined.text.extend_from_slice(&rest[HEADER_BYTES..]);
            warnings.push(Diagnostic::warning(format!(
                "the last packet of the metadata is cut: {} of {content} bytes (at byte {at})",
                rest.len()
            )).with_help("the trace may have been copied before its session was stopped, or not as a whole"));
        }
        at = at.saturating_add(header.packet_size as usize);
    }
    Ok(joined)
}

/// Checks the header of the packet at byte `at`, with which `rest` begins.
fn check(
    header: &PacketHeader,
    rest: &[u8],
    at: usize,
    order: ByteOrder,
    session_id: Option<u32>,
) -> Result<(), Envelope> {
    let fault = |offset: usize, found: String, expected: String| {
        Err(Envelope {
            offset: at.saturating_add(offset) as u64,
            found,
            expected,
        })
    };
    if byte_order(rest) != Some(order) {
        return fault(
            0,
            format!("{:#010x}", header.magic),
            "the magic number 0xc1fc1fc1 of another packet".to_owned(),
        );
    }
    if let Some(session_id) = session_id.filter(|&id| id != header.session_id) {
        return fault(
            4,
            format!("session {}", header.session_id),
            format!("session {session_id}, as in the first packet"),
        );
    }
    if (header.content_size as usize) < HEADER_BYTES {
        return fault(
            8,
            format!("a content of {} bytes", header.content_size),
            format!("at least the {HEADER_BYTES} bytes of the header"),
        );
    }
    if header.packet_size < header.content_size {
        return fault(
            12,
            format!("a packet of {} bytes", header.packet_size),
            format!("at least the {} bytes of the content", header.content_size),
        );
    }
    if let Some((_, offset, what, scheme)) = header.unknown_scheme() {
        return fault(
            offset,
            format!("{what} scheme {scheme}"),
            "one that the RFC knows".to_owned(),
        );
    }
    Ok(())
}

/// What is wrong with the secured packet at byte `at`, which cannot be opened.
fn closed(error: &OpenError, at: usize) -> Envelope {
    let text = |text: &str| text.to_owned();
    let (found, expected) = match error {
        OpenError::Size => (
            text("the end of the file"),
            text("the rest of a secured packet"),
        ),
        OpenError::Scheme { field, scheme } => (
            format!("a packet whose {field} is {scheme}"),
            text("one that the RFC knows"),
        ),
        OpenError::Checksum { found, expected } => (
            format!("a packet with the checksum {found:#010x}"),
            format!("{expected:#010x}, as its header says"),
        ),
        OpenError::KeyNeeded => (
            text("an encrypted packet"),
            text("its key: `--key-file FILE` names a file with it"),
        ),
        OpenError::Encryption => (
            text("a packet that was encrypted with another key, or altered"),
            text("one that the key opens"),
        ),
        OpenError::Compression => (
            text("a packet that cannot be decompressed"),
            text("what its compression makes"),
        ),
        OpenError::Limit(most) => (
            text("a packet that becomes larger when decompressed"),
            format!("at most {most} bytes"),
        ),
        OpenError::NotBuilt => (
            text("a secured packet"),
            text("a plain one: the program was built without support of secured packets"),
        ),
    };
    Envelope {
        offset: at as u64,
        found,
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of session 7 that holds `text` and `padding` bytes after it.
    fn packet(text: &str, padding: usize, order: ByteOrder) -> Vec<u8> {
        let number = |number: usize| match order {
            ByteOrder::Little => (number as u32).to_le_bytes(),
            ByteOrder::Big => (number as u32).to_be_bytes(),
        };
        let content = HEADER_BYTES + text.len();
        let mut packet = number(0xC1FC_1FC1).to_vec();
        packet.extend(number(7));
        packet.extend(number(content));
        packet.extend(number(content + padding));
        packet.extend([0; 32]);
        packet.extend(text.as_bytes());
        packet.extend(vec![0; padding]);
        packet
    }

    fn joined(bytes: &[u8]) -> (String, usize) {
        let mut warnings = Vec::new();
        let order = byte_order(bytes).unwrap();
        let joined = join(bytes, order, &[], &mut warnings).unwrap();
        assert_eq!(joined.session_id, Some(7));
        (String::from_utf8(joined.text).unwrap(), warnings.len())
    }

    #[test]
    fn strings_are_joined_in_either_byte_order() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut bytes = packet("one\0two\0", 5, order);
            assert_eq!(byte_order(&bytes), Some(order));
            bytes.extend(packet("", 0, order));
            bytes.extend(packet("three\0", 3, order));
            assert_eq!(joined(&bytes), ("one\0two\0three\0".to_owned(), 0));
            // Padding that a tracer had no time to write, or wrote too much of.
            assert_eq!(joined(&bytes[..bytes.len() - 3]).1, 0);
            bytes.extend([0; 100]);
            assert_eq!(joined(&bytes).1, 0);
        }
        assert_eq!(byte_order(b"trace {"), None);
        assert_eq!(byte_order(b"tr"), None);
    }

    #[test]
    fn what_was_not_finished_is_taken_as_far_as_it_goes() {
        let first = packet("one ", 0, ByteOrder::Big);
        let mut bytes = first.clone();
        bytes.extend(packet("two", 0, ByteOrder::Big));
        assert_eq!(joined(&bytes[..bytes.len() - 1]), ("one tw".to_owned(), 1));
        for cut in first.len() + 1..first.len() + HEADER_BYTES {
            assert_eq!(joined(&bytes[..cut]), ("one ".to_owned(), 1));
        }
    }

    #[test]
    fn damage_is_reported_with_its_place() {
        let good = packet("text", 4, ByteOrder::Little);
        for (at, bytes, found, expected) in [
            (
                0,
                &b"nonsense"[..],
                "0x736e6f6e",
                "the magic number 0xc1fc1fc1 of another packet",
            ),
            (4, &[8], "session 8", "session 7, as in the first packet"),
            (
                8,
                &[47],
                "a content of 47 bytes",
                "at least the 48 bytes of the header",
            ),
            (
                12,
                &[51],
                "a packet of 51 bytes",
                "at least the 52 bytes of the content",
            ),
            (45, &[3], "compression scheme 3", "one that the RFC knows"),
            (46, &[2], "encryption scheme 2", "one that the RFC knows"),
            (47, &[4], "checksum scheme 4", "one that the RFC knows"),
        ] {
            let mut damaged = good.clone();
            damaged.extend(&good);
            let second = good.len() + at;
            damaged[second..second + bytes.len()].copy_from_slice(bytes);
            let envelope = join(&damaged, ByteOrder::Little, &[], &mut Vec::new()).unwrap_err();
            assert_eq!(envelope.offset, second as u64);
            assert_eq!((&*envelope.found, &*envelope.expected), (found, expected));
        }
    }

    #[test]
    fn secured_packets_that_cannot_be_opened_are_reported() {
        let first = packet("one ", 0, ByteOrder::Little);
        for (scheme, found, expected) in [
            (
                [1, 0, 0],
                "a packet that cannot be decompressed",
                "what its compression makes",
            ),
            (
                [0, 1, 0],
                "an encrypted packet",
                "its key: `--key-file FILE` names a file with it",
            ),
            (
                [0, 0, 3],
                "a packet with the checksum 0x11ca8a66",
                "0x00000000, as its header says",
            ),
        ] {
            let mut second = packet("two", 0, ByteOrder::Little);
            second[45..48].copy_from_slice(&scheme);
            let bytes = [&first[..], &second].concat();
            let envelope = join(&bytes, ByteOrder::Little, &[], &mut Vec::new()).unwrap_err();
            assert_eq!(envelope.offset, first.len() as u64);
            assert_eq!((&*envelope.found, &*envelope.expected), (found, expected));
        }
    }
}
