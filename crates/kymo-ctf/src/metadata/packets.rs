//! Metadata in packets (CTF 1.8.3 §7.1): what a tracer writes over a network, or to a
//! file that it may have to abandon at any time. The contents joined are the text.

use kymo_machine::ByteOrder;
use kymo_text::diagnostic::Diagnostic;

use super::Envelope;

/// The magic number that each packet begins with.
const MAGIC: u32 = 0x75d1_1d57;
/// Size of a packet's header, in bytes.
const HEADER: usize = 37;
/// Size of a packet's header, in bits.
const HEADER_BITS: u64 = 8 * HEADER as u64;

/// The byte order of metadata that comes in packets; `None` where it does not.
pub(super) fn detect(bytes: &[u8]) -> Option<ByteOrder> {
    let magic = bytes.first_chunk()?;
    if u32::from_le_bytes(*magic) == MAGIC {
        Some(ByteOrder::Little)
    } else if u32::from_be_bytes(*magic) == MAGIC {
        Some(ByteOrder::Big)
    } else {
        None
    }
}

/// What the header of a packet says.
struct Header {
    magic: u32,
    uuid: [u8; 16],
    content_bits: u64,
    packet_bits: u64,
    compression: u8,
    encryption: u8,
    checksum: u8,
    version: (u8, u8),
}

impl Header {
    /// The header that bytes begin with; `None` where they are too few.
    fn read(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let number = |at: usize| {
            let bytes = std::array::from_fn(|i| header[at + i]);
            match order {
                ByteOrder::Little => u32::from_le_bytes(bytes),
                ByteOrder::Big => u32::from_be_bytes(bytes),
            }
        };
        Some(Self {
            magic: number(0),
            uuid: std::array::from_fn(|i| header[4 + i]),
            // The checksum itself, at 20, is of use with a checksum scheme only.
            content_bits: number(24).into(),
            packet_bits: number(28).into(),
            compression: header[32],
            encryption: header[33],
            checksum: header[34],
            version: (header[35], header[36]),
        })
    }

    /// Checks everything that does not depend on the bytes that follow; `at` is the
    /// packet's offset.
    fn check(&self, at: usize, uuid: Option<[u8; 16]>) -> Result<(), Envelope> {
        let fault = |offset: usize, found: String, expected: String| {
            Err(Envelope {
                offset: (at + offset) as u64,
                found,
                expected,
            })
        };
        if self.magic != MAGIC {
            return fault(
                0,
                format!("{:#010x}", self.magic),
                format!("the magic number {MAGIC:#010x} of another packet"),
            );
        }
        if uuid.is_some_and(|uuid| uuid != self.uuid) {
            return fault(
                4,
                "another UUID than in the first packet".to_owned(),
                "the same UUID in all packets".to_owned(),
            );
        }
        if self.content_bits < HEADER_BITS || !self.content_bits.is_multiple_of(8) {
            return fault(
                24,
                format!("a content of {} bits", self.content_bits),
                format!("whole bytes, at least the {HEADER_BITS} bits of the header"),
            );
        }
        if self.packet_bits < self.content_bits || !self.packet_bits.is_multiple_of(8) {
            return fault(
                28,
                format!("a packet of {} bits", self.packet_bits),
                format!(
                    "whole bytes, at least the {} bits of the content",
                    self.content_bits
                ),
            );
        }
        for (offset, what, scheme) in [
            (32, "compression", self.compression),
            (33, "encryption", self.encryption),
            (34, "checksum", self.checksum),
        ] {
            if scheme != 0 {
                return fault(
                    offset,
                    format!("{what} scheme {scheme}"),
                    format!("no {what}: nobody has defined how it is done"),
                );
            }
        }
        if !matches!(self.version, (1, 8) | (2, 0)) {
            let (major, minor) = self.version;
            return fault(
                35,
                format!("version {major}.{minor}"),
                "version 1.8 or 2.0".to_owned(),
            );
        }
        Ok(())
    }
}

/// The contents of all packets.
///
/// What a tracer did not finish is taken as far as it goes, with a warning.
pub(super) fn join(
    bytes: &[u8],
    order: ByteOrder,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Vec<u8>, Envelope> {
    let mut text = Vec::new();
    let mut uuid = None;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.iter().all(|&byte| byte == 0) {
            break;
        }
        let Some(header) = Header::read(rest, order) else {
            warnings.push(Diagnostic::warning(format!(
                "the metadata ends with {} bytes that are not a packet (at byte {at})",
                rest.len()
            )));
            break;
        };
        header.check(at, uuid)?;
        uuid = Some(header.uuid);
        let content = (header.content_bits / 8) as usize;
        let packet = (header.packet_bits / 8) as usize;
        if let Some(content) = rest.get(HEADER..content) {
            text.extend_from_slice(content);
        } else {
            text.extend_from_slice(&rest[HEADER..]);
            warnings.push(Diagnostic::warning(format!(
                "the last packet of the metadata is cut: {} of {content} bytes (at byte {at})",
                rest.len()
            )).with_help("the trace may have been copied before its session was stopped, or not as a whole"));
        }
        at = at.saturating_add(packet);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: [u8; 16] = *b"0123456789abcdef";

    /// A packet that holds `text` and `padding` bytes after it.
    fn packet(text: &str, padding: usize, order: ByteOrder) -> Vec<u8> {
        let number = |number: usize| match order {
            ByteOrder::Little => (number as u32).to_le_bytes(),
            ByteOrder::Big => (number as u32).to_be_bytes(),
        };
        let content = HEADER + text.len();
        let mut packet = number(MAGIC as usize).to_vec();
        packet.extend(UUID);
        packet.extend(number(0));
        packet.extend(number(8 * content));
        packet.extend(number(8 * (content + padding)));
        packet.extend([0, 0, 0, 1, 8]);
        packet.extend(text.as_bytes());
        packet.extend(vec![0; padding]);
        packet
    }

    fn joined(bytes: &[u8]) -> (String, usize) {
        let mut warnings = Vec::new();
        let order = detect(bytes).unwrap();
        let text = join(bytes, order, &mut warnings).unwrap();
        (String::from_utf8(text).unwrap(), warnings.len())
    }

    #[test]
    fn contents_are_joined_in_either_byte_order() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut bytes = packet("one ", 5, order);
            assert_eq!(detect(&bytes), Some(order));
            bytes.extend(packet("", 0, order));
            bytes.extend(packet("two", 3, order));
            assert_eq!(joined(&bytes), ("one two".to_owned(), 0));
            // Padding that a tracer had no time to write, or wrote too much of.
            assert_eq!(joined(&bytes[..bytes.len() - 3]).1, 0);
            bytes.extend([0; 100]);
            assert_eq!(joined(&bytes), ("one two".to_owned(), 0));
        }
        assert_eq!(detect(b"/* CTF 1.8 */"), None);
        assert_eq!(detect(b"/*"), None);
    }

    #[test]
    fn what_was_not_finished_is_taken_as_far_as_it_goes() {
        let first = packet("one ", 0, ByteOrder::Little);
        let mut bytes = first.clone();
        bytes.extend(packet("two", 0, ByteOrder::Little));
        assert_eq!(joined(&bytes[..bytes.len() - 1]), ("one tw".to_owned(), 1));
        for cut in first.len() + 1..first.len() + HEADER {
            assert_eq!(joined(&bytes[..cut]), ("one ".to_owned(), 1));
        }
    }

    #[test]
    fn damage_is_reported_with_its_place() {
        let good = packet("text", 4, ByteOrder::Little);
        for (at, bytes, expected) in [
            (
                0,
                &b"nonsense"[..],
                "the magic number 0x75d11d57 of another packet",
            ),
            (4, b"x", "the same UUID in all packets"),
            (
                24,
                &[0, 0, 0, 0],
                "whole bytes, at least the 296 bits of the header",
            ),
            (
                24,
                &[0x49, 1, 0, 0],
                "whole bytes, at least the 296 bits of the header",
            ),
            (
                28,
                &[0, 1, 0, 0],
                "whole bytes, at least the 328 bits of the content",
            ),
            (
                32,
                &[1],
                "no compression: nobody has defined how it is done",
            ),
            (33, &[1], "no encryption: nobody has defined how it is done"),
            (34, &[3], "no checksum: nobody has defined how it is done"),
            (35, &[1, 9], "version 1.8 or 2.0"),
        ] {
            let mut damaged = good.clone();
            damaged.extend(&good);
            let second = good.len() + at;
            damaged[second..second + bytes.len()].copy_from_slice(bytes);
            let envelope = join(&damaged, ByteOrder::Little, &mut Vec::new()).unwrap_err();
            assert_eq!(envelope.offset, second as u64);
            assert_eq!(envelope.expected, expected);
        }
    }
}
