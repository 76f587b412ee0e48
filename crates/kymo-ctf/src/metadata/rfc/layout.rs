//! What the RFC itself fixes: where the fields of packet headers and event headers lie (§5, §6.1).
//!
//! A packet header is the same in every trace, whether its fields are packed or aligned:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 4 | magic number 0xC1FC1FC1; its byte order is the native byte order |
//! | 4 | 4 | number of the session |
//! | 8, 12 | 4, 4 | size of the content, and of the packet with its padding, in bytes, each with this header |
//! | 16 | 4 | checksum of the content |
//! | 20 | 4 | number of the packet in its section |
//! | 24, 32 | 8, 8 | time at the beginning and at the end |
//! | 40 | 4 | events discarded before the first one of the packet |
//! | 44 | 1 | how many bits of the packet's number count |
//! | 45, 46, 47 | 1, 1, 1 | schemes of compression, encryption, checksum; 0 is none |

use kymo_machine::ByteOrder;
use kymo_model::Scope;

use crate::class::{BitLayout, FieldClass, FieldPath, FieldRef, Member, Role, Selector, Step};

/// The number that every packet begins with, metadata's too.
pub(crate) const MAGIC: u32 = 0xC1FC_1FC1;
/// Size of a packet header, in bytes.
pub(crate) const HEADER_BYTES: usize = 48;

/// How basic types are aligned, as far as the metadata does not say it of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::metadata) enum Alignment {
    /// To bytes.
    Packed,
    /// To their size, or to this many bits where that is less.
    Natural(u32),
}

impl Alignment {
    /// Alignment in bits of an integer of a size: other sizes than those of C lie anywhere.
    pub(super) fn of(self, bits: u32) -> u32 {
        match (self, bits) {
            (Self::Packed, 8 | 16 | 32 | 64) => 8,
            (Self::Natural(word), 8 | 16 | 32 | 64) => bits.min(word),
            _ => 1,
        }
    }
}

/// The byte order of bytes that begin with the magic number; `None` where they do not.
pub(crate) fn byte_order(bytes: &[u8]) -> Option<ByteOrder> {
    let magic = bytes.first_chunk()?;
    if u32::from_le_bytes(*magic) == MAGIC {
        Some(ByteOrder::Little)
    } else if u32::from_be_bytes(*magic) == MAGIC {
        Some(ByteOrder::Big)
    } else {
        None
    }
}

/// What a packet header says that the class model has no roles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    pub(crate) magic: u32,
    pub(crate) session_id: u32,
    /// In bytes, with the header.
    pub(crate) content_size: u32,
    /// In bytes, with the header.
    pub(crate) packet_size: u32,
    pub(crate) checksum: u32,
    /// Significant bits of the packet's number.
    pub(crate) count_bits: u8,
    pub(crate) compression: u8,
    pub(crate) encryption: u8,
    pub(crate) checksum_scheme: u8,
}

impl PacketHeader {
    /// The header that bytes begin with; `None` where they are too few.
    pub(crate) fn read(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let number = |at: usize| {
            let bytes = std::array::from_fn(|i| header[at + i]);
            match order {
                ByteOrder::Little => u32::from_le_bytes(bytes),
                ByteOrder::Big => u32::from_be_bytes(bytes),
            }
        };
        Some(Self {
            magic: number(0),
            session_id: number(4),
            content_size: number(8),
            packet_size: number(12),
            checksum: number(16),
            count_bits: header[44],
            compression: header[45],
            encryption: header[46],
            checksum_scheme: header[47],
        })
    }

    /// Field, its byte, what it is, and number of the first scheme that the RFC does not know.
    pub(crate) fn unknown_scheme(&self) -> Option<(&'static str, usize, &'static str, u8)> {
        [
            ("compression_scheme", 45, "compression", self.compression, 2),
            ("encryption_scheme", 46, "encryption", self.encryption, 1),
            ("checksum_scheme", 47, "checksum", self.checksum_scheme, 3),
        ]
        .into_iter()
        .find(|&(.., scheme, last)| scheme > last)
        .map(|(field, byte, what, scheme, _)| (field, byte, what, scheme))
    }

    /// Writes what it says over the header that a packet begins with; times and counters stay.
    #[cfg_attr(
        not(feature = "secure"),
        allow(dead_code, reason = "only secured packets get another header")
    )]
    pub(crate) fn write(&self, packet: &mut [u8], order: ByteOrder) {
        let Some(header) = packet.first_chunk_mut::<HEADER_BYTES>() else {
            return;
        };
        for (at, number) in [
            (0, self.magic),
            (4, self.session_id),
            (8, self.content_size),
            (12, self.packet_size),
            (16, self.checksum),
        ] {
            let bytes = match order {
                ByteOrder::Little => number.to_le_bytes(),
                ByteOrder::Big => number.to_be_bytes(),
            };
            header[at..at + 4].copy_from_slice(&bytes);
        }
        header[44] = self.count_bits;
        header[45] = self.compression;
        header[46] = self.encryption;
        header[47] = self.checksum_scheme;
    }

    /// Whether the content is stored in another form than plain, so that places in it are none in
    /// the file.
    pub(crate) fn is_transformed(&self) -> bool {
        self.compression != 0 || self.encryption != 0
    }

    /// Whether the content must be opened before it is read.
    pub(crate) fn is_secured(&self) -> bool {
        self.is_transformed() || self.checksum_scheme != 0
    }
}

/// Makes the classes of fixed fields.
pub(in crate::metadata) struct Fixed {
    pub(in crate::metadata) order: ByteOrder,
    pub(in crate::metadata) alignment: Alignment,
}

impl Fixed {
    /// The class of packet headers (§5).
    pub(in crate::metadata) fn packet_header(&self) -> FieldClass {
        let field =
            |name, bits, roles: &[Role]| self.unsigned(name, bits, self.alignment.of(bits), roles);
        FieldClass::structure(vec![
            field("magic", 32, &[Role::PacketMagic]),
            field("session_id", 32, &[]),
            field("content_size", 32, &[Role::PacketContentLength]),
            field("packet_size", 32, &[Role::PacketTotalLength]),
            field("checksum", 32, &[]),
            field("section_packet_count", 32, &[Role::PacketSequenceNumber]),
            field("timestamp_begin", 64, &[Role::DefaultClockTimestamp]),
            field("timestamp_end", 64, &[Role::PacketEndTimestamp]),
            field("events_discarded", 32, &[Role::DiscardedEvents]),
            field("section_packet_count_bits", 8, &[]),
            field("compression_scheme", 8, &[]),
            field("encryption_scheme", 8, &[]),
            // §5 calls it `checksum` too, as no other field of a structure may be.
            field("checksum_scheme", 8, &[]),
        ])
    }

    /// The class of event headers of a type: 1 for few event classes, else that for many
    /// (§6.1.1 to §6.1.4).
    ///
    /// The number that stands for "extended" is followed by the full number and the full time,
    /// which nothing separates, whatever their alignment elsewhere: they have 96 bits.
    pub(in crate::metadata) fn event_header(&self, header_type: u8) -> FieldClass {
        let word = self.alignment.of(32);
        let double = self.alignment.of(64);
        let id = |name, bits, align| self.unsigned(name, bits, align, &[Role::EventClassId]);
        let time =
            |name, bits, align| self.unsigned(name, bits, align, &[Role::DefaultClockTimestamp]);
        let full_id = id("id", 32, 8);
        let full_time = time("timestamp", 64, 8);
        if header_type == 1 {
            let extended = FieldClass::structure(vec![full_id, full_time]);
            let mut members = vec![
                id("id", 5, word),
                time("timestamp", 27, 1),
                Member::new("extended", when(0, 31, extended)),
            ];
            if double > 32 {
                // The end of what is extended is aligned, though not its beginning. It lies behind
                // it, since within it another `id` hides the one that selects.
                let end = FieldClass::Struct {
                    members: Vec::new(),
                    min_align: double,
                };
                members.push(Member::new("end", when(0, 31, end)));
            }
            FieldClass::structure(members)
        } else {
            let extended = FieldClass::Struct {
                members: vec![full_time, full_id],
                min_align: double,
            };
            FieldClass::structure(vec![
                time("timestamp", 32, word),
                id("id", 16, self.alignment.of(16)),
                Member::new("extended", when(1, 0xffff, extended)),
            ])
        }
    }

    /// The context of a section that only says that events have sizes (§7).
    pub(super) fn payload_size(&self) -> FieldClass {
        FieldClass::structure(vec![self.unsigned(
            "payload_size",
            16,
            self.alignment.of(16),
            &[],
        )])
    }

    fn unsigned(&self, name: &str, bits: u32, align: u32, roles: &[Role]) -> Member {
        let layout = BitLayout::new(bits, align, self.order);
        Member::new(name, FieldClass::unsigned(layout, roles))
    }
}

/// Something that is there when a member of the event header has a value.
fn when(member: usize, value: u64, content: FieldClass) -> FieldClass {
    FieldClass::Optional {
        content: Box::new(content),
        selector: FieldRef {
            targets: vec![FieldPath {
                scope: Scope::EventHeader,
                steps: vec![Step::Child(member)],
            }],
        },
        when: Selector::Unsigned(vec![(value, value)]),
    }
}
