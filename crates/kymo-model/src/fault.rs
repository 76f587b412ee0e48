//! Damage in a recording: small on the hot path, reported in full on the cold one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::FieldId;

/// What is wrong with the data of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultCode {
    /// A field or alignment goes beyond the content of its packet.
    BeyondContent,
    /// A packet goes beyond the end of its file.
    Truncated,
    /// A packet's sizes contradict each other or cannot be.
    PacketSize,
    /// A packet begins with another number than the magic one.
    Magic,
    /// A packet is compressed, encrypted or has a checksum, of a kind that is not read.
    Scheme,
    /// The content of a packet is not what its checksum was made of.
    Checksum,
    /// A packet is encrypted, and no key is given.
    KeyNeeded,
    /// A packet was encrypted with another key, or altered.
    Encryption,
    /// The content of a packet cannot be decompressed.
    Compression,
    /// The content of a packet would become too large when decompressed.
    PacketLimit,
    /// A packet is secured, and the program was built without support of that.
    NotBuilt,
    /// A packet that was counted is not there.
    MissingPacket,
    /// A packet belongs to another trace than its metadata does.
    TraceId,
    /// The metadata knows no stream class of this number.
    UnknownStreamClass,
    /// The metadata knows no event class of this number.
    UnknownEventClass,
    /// No option of a variant has this selector.
    NoVariantOption,
    /// A field of one byte order follows one of the other within a byte.
    ByteOrderChange,
    /// A variable-length integer has more than 64 bits.
    IntegerTooLong,
    /// A length is larger than the limits allow.
    LengthLimit,
    /// An event would be shown as a text that is too long.
    TextLimit,
    /// An event takes no space, so the number of events is unbounded.
    EmptyEvent,
    /// Time goes backwards.
    NotMonotonic,
    /// A time is more nanoseconds than 64 bits can hold.
    TimeRange,
    /// Zeros, or other bytes that are not a packet, after the last packet.
    TrailingData,
    /// An index does not agree with the data it describes.
    Index,
    /// A file has more or fewer sections than it says.
    SectionCount,
    /// A statement of a script cannot be read.
    Statement,
    /// A section's length and the number of its entries contradict each other.
    SectionSize,
    /// A section names a string table that the file does not have, or has twice.
    StringTable,
    /// An offset leads beyond its string table.
    StringOffset,
    /// Something is defined that has been defined before.
    Redefined,
    /// What must be sorted is not.
    NotSorted,
    /// A datagram, or a part of one, is not what it should be.
    Datagram,
    /// A file could not be read.
    Unreadable,
    /// A text is not what its grammar allows.
    Syntax,
}

impl FaultCode {
    /// The code as scripts see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeyondContent => "beyond-content",
            Self::Truncated => "truncated",
            Self::PacketSize => "packet-size",
            Self::Magic => "magic",
            Self::Scheme => "scheme",
            Self::Checksum => "checksum",
            Self::KeyNeeded => "key-needed",
            Self::Encryption => "encryption",
            Self::Compression => "compression",
            Self::PacketLimit => "packet-limit",
            Self::NotBuilt => "not-built",
            Self::MissingPacket => "missing-packet",
            Self::TraceId => "trace-id",
            Self::UnknownStreamClass => "unknown-stream-class",
            Self::UnknownEventClass => "unknown-event-class",
            Self::NoVariantOption => "no-variant-option",
            Self::ByteOrderChange => "byte-order-change",
            Self::IntegerTooLong => "integer-too-long",
            Self::LengthLimit => "length-limit",
            Self::TextLimit => "text-limit",
            Self::EmptyEvent => "empty-event",
            Self::NotMonotonic => "not-monotonic",
            Self::TimeRange => "time-range",
            Self::TrailingData => "trailing-data",
            Self::Index => "index",
            Self::SectionCount => "section-count",
            Self::Statement => "statement",
            Self::SectionSize => "section-size",
            Self::StringTable => "string-table",
            Self::StringOffset => "string-offset",
            Self::Redefined => "redefined",
            Self::NotSorted => "not-sorted",
            Self::Datagram => "datagram",
            Self::Unreadable => "unreadable",
            Self::Syntax => "syntax",
        }
    }

    /// Whether what follows in the same chunk was decoded all the same.
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::Magic
                | Self::TraceId
                | Self::NotMonotonic
                | Self::TimeRange
                | Self::TrailingData
                | Self::Index
                | Self::MissingPacket
                | Self::SectionCount
                | Self::Statement
                | Self::SectionSize
                | Self::StringTable
                | Self::StringOffset
                | Self::Redefined
                | Self::NotSorted
        )
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Damage, as the hot path sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub code: FaultCode,
    /// The field at which it was found.
    pub field: Option<FieldId>,
    /// Where: bits from the start of the chunk.
    pub bit: u64,
    /// The number that was found (a length, an identifier, a selector, a position);
    /// its meaning is the code's.
    pub found: u64,
}

impl Fault {
    /// A fault with a position and a number.
    pub const fn new(code: FaultCode, bit: u64, found: u64) -> Self {
        Self {
            code,
            field: None,
            bit,
            found,
        }
    }

    /// The same, at a field.
    #[must_use]
    pub const fn at(self, field: FieldId) -> Self {
        Self {
            field: Some(field),
            ..self
        }
    }

    /// The report of a fault in a file that has no packets, at a byte of it.
    pub fn report(self, file: &Path, offset: u64, event: Option<u64>) -> FaultReport {
        FaultReport {
            event,
            ..FaultReport::new(
                self.code,
                Arc::new(file.to_path_buf()),
                offset,
                self.to_string(),
            )
        }
    }
}

/// The code and the number. The report that a recording makes of a fault says more, with its place.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.found)
    }
}

impl std::error::Error for Fault {}

/// Damage, as it is reported to people and scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// What is wrong.
    pub code: FaultCode,
    /// The file.
    pub file: Arc<PathBuf>,
    /// Byte in the file (rounded down).
    pub offset: u64,
    /// Packet in the file, counted from 0.
    pub packet: Option<u64>,
    /// Event in the packet, counted from 0.
    pub event: Option<u64>,
    /// Scope and names of the field, such as `payload.list[].len`.
    pub field: Option<String>,
    /// What was found and what was expected.
    pub message: String,
}

impl FaultReport {
    /// Damage at a byte of a file.
    pub fn new(code: FaultCode, file: Arc<PathBuf>, offset: u64, message: String) -> Self {
        Self {
            code,
            file,
            offset,
            packet: None,
            event: None,
            field: None,
            message,
        }
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: offset {}", self.file.display(), self.offset)?;
        if let Some(packet) = self.packet {
            write!(f, ", packet {packet}")?;
        }
        if let Some(event) = self.event {
            write!(f, ", event {event}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ", field `{field}`")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_errors() {
        fn next() -> Result<(), Box<dyn std::error::Error>> {
            Err(Fault::new(FaultCode::Magic, 0, 17))?;
            Ok(())
        }
        assert_eq!(next().unwrap_err().to_string(), "magic: 17");
    }
}
