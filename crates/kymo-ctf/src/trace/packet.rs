//! One packet: where it is, how large it is.

use std::borrow::Cow;

use kymo_model::{Cursor, Event, Fault, FaultCode, Nothing, Visitor};

use super::{StreamFile, report, scan, sections};
use crate::class::{Role, TraceClass};
use crate::decode::{Decoder, PacketCursor, PacketHead};
use crate::secure::{self, Key, Limits};

/// What packets are read with.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) class: &'a TraceClass,
    pub(super) decoder: &'a Decoder,
    pub(super) files: &'a [StreamFile],
    /// What encrypted packets are opened with.
    pub(super) keys: &'a [Key],
    /// Bytes of all files.
    pub(super) bytes: u64,
}

/// Where a packet is and what is needed to decode it on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Position of its file in [`Trace::files`](super::Trace::files).
    pub file: u32,
    /// Position among the packets of its file.
    pub number: u32,
    /// Where it begins in its file, in bytes.
    pub offset: u64,
    /// Its size in bits, as it says itself; of a truncated packet, as much as there is.
    pub total_bits: u64,
    /// Where its events end, in bits from its beginning: of a truncated packet, where the
    /// last event ends that is there as a whole.
    pub content_bits: u64,
    /// Full ticks of the default clock at its beginning; 0 where it has no clock.
    pub clock: u64,
}

impl Packet {
    /// Its bytes, as far as there are any.
    #[inline]
    pub(super) fn data<'a>(&self, files: &'a [StreamFile]) -> &'a [u8] {
        self.fetched(files).unwrap_or_default()
    }

    /// The same; an error if they are far away and cannot be read.
    pub(super) fn fetched<'a>(&self, files: &'a [StreamFile]) -> Result<&'a [u8], Fault> {
        let (Some(file), Ok(begin)) = (files.get(self.file as usize), usize::try_from(self.offset))
        else {
            return Ok(&[]);
        };
        let rest = file.bytes.get(begin..).unwrap_or_default();
        let size = usize::try_from(self.total_bits / 8).unwrap_or(usize::MAX);
        let data = &rest[..size.min(rest.len())];
        file.fetch(begin, begin.saturating_add(data.len()))?;
        Ok(data)
    }

    /// Walks its events. A secured packet is opened for that, and kept by the cursor.
    pub(super) fn cursor<'a>(
        &self,
        reader: Reader<'a>,
        stream_class: usize,
    ) -> Result<PacketCursor<'a>, Fault> {
        let head = self.head(reader)?;
        // Of most of its packets, only an index was believed so far.
        if head.stream_class != stream_class || !self.agrees(reader, &head) {
            return Err(Fault::new(FaultCode::Index, 0, 0));
        }
        self.walk(reader, &head)
    }

    /// Walks the events of a packet that says something else than its index: where the content ends, that
    /// one of both is believed with which more of it can be decoded, the index where that is the same.
    pub(super) fn salvage<'a>(
        &self,
        reader: Reader<'a>,
        stream_class: usize,
    ) -> Result<PacketCursor<'a>, Fault> {
        let head = self.head(reader)?;
        if head.stream_class != stream_class {
            return Err(Fault::new(FaultCode::Index, 0, 0));
        }
        let content_bits = head.content_bits.or(head.total_bits);
        let said = content_bits.filter(|&bits| bits <= self.total_bits && bits >= head.events_bit);
        let candidates = [Some(self.content_bits), said].into_iter().flatten();
        let packets = candidates.map(|content_bits| Self {
            content_bits,
            ..*self
        });
        // Of several, the last one would be taken that is as good.
        let best = packets
            .rev()
            .max_by_key(|packet| packet.walk(reader, &head).map_or((false, 0), decodable));
        best.unwrap_or(*self).walk(reader, &head)
    }

    pub(super) fn head(&self, reader: Reader<'_>) -> Result<PacketHead, Fault> {
        let data = self.fetched(reader.files)?;
        match reader.files.get(self.file as usize) {
            Some(file) => file.head(reader.decoder, data),
            None => reader.decoder.packet_head(data),
        }
    }

    /// Walks its events, whatever its head says of its sizes.
    pub(super) fn walk<'a>(
        &self,
        reader: Reader<'a>,
        head: &PacketHead,
    ) -> Result<PacketCursor<'a>, Fault> {
        let Reader {
            class,
            decoder,
            files,
            keys,
            bytes,
        } = reader;
        let data = self.fetched(files)?;
        let fixed = sections::packet_header(class, data).filter(|fixed| fixed.is_secured());
        let (data, content_bits) = match (fixed, class.byte_order) {
            (Some(_), Some(order)) => {
                let limits = Limits::among(data.len() as u64, bytes);
                let opened = secure::open(data, order, keys, &limits)
                    .map_err(|error| report::closed(&error))?;
                let content_bits = match &opened {
                    Cow::Borrowed(_) => self.content_bits,
                    Cow::Owned(plain) => (plain.len() as u64).saturating_mul(8),
                };
                (opened, content_bits)
            }
            _ => (Cow::Borrowed(data), self.content_bits),
        };
        Ok(decoder.cursor(data, head, content_bits, self.clock))
    }

    /// Whether its content is stored in another form than plain.
    pub(super) fn is_transformed(&self, class: &TraceClass, files: &[StreamFile]) -> bool {
        sections::packet_header(class, self.data(files)).is_some_and(|fixed| fixed.is_transformed())
    }
}

impl Packet {
    /// Whether the packet says what is known of it: where it is not truncated, its sizes, and its
    /// time at the beginning.
    fn agrees(&self, reader: Reader<'_>, head: &PacketHead) -> bool {
        let Reader {
            class,
            decoder,
            files,
            ..
        } = reader;
        let begin = head.begin.filter(|_| decoder.has_clock(head.stream_class));
        self.has_sizes(class, files.get(self.file as usize), head)
            && !differ(begin, Some((self.clock, 64)))
    }

    /// Whether the packet says the sizes that are known of it, where it is not truncated.
    pub(super) fn has_sizes(
        &self,
        class: &TraceClass,
        file: Option<&StreamFile>,
        head: &PacketHead,
    ) -> bool {
        let available = file.map_or(0, |file| file.bytes.len() as u64);
        let available = available.saturating_sub(self.offset).saturating_mul(8);
        let (total, content) = (head.total_bits, head.content_bits);
        // A packet behind its content has shown that it is smaller than it says.
        let is_swallowing = total.is_some_and(|total| total > self.total_bits)
            && content.is_some_and(|content| content <= self.total_bits)
            && file.is_some_and(|file| {
                let next = self.offset.saturating_add(self.total_bits / 8);
                let next = usize::try_from(next)
                    .ok()
                    .filter(|&next| file.fetch(next, next.saturating_add(4)).is_ok())
                    .and_then(|next| file.bytes.get(next..));
                let magic = scan::magic_bytes(class);
                next.zip(magic)
                    .is_some_and(|(next, magic)| next.starts_with(&magic))
            });
        let total = total.filter(|_| !is_swallowing);
        let is_whole = total.max(content).is_none_or(|bits| bits <= available);
        let differs = |said: Option<u64>, known| said.is_some_and(|said| said != known);
        !is_whole || !(differs(total, self.total_bits) || differs(content, self.content_bits))
    }
}

/// Whether a number in a packet differs from what is known of it, in the bits that the packet has.
pub(super) fn differ(said: Option<(u64, u32)>, known: Option<(u64, u32)>) -> bool {
    let both = said.zip(known);
    both.is_some_and(|((said, bits), (known, _))| {
        let unknown = 64u32.saturating_sub(bits);
        (said ^ known).checked_shl(unknown).unwrap_or(0) != 0
    })
}

/// The sizes of a packet, checked against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) total_bits: u64,
    pub(super) content_bits: u64,
}

/// Sizes that cannot be: which field says so, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadSize {
    pub(super) role: Role,
    pub(super) message: String,
}

impl Sizes {
    /// The sizes that a packet says it has, each in the place of the other where it says
    /// one only, or what is left of its file (`available_bits`) where it says none.
    pub(super) fn new(head: &PacketHead, available_bits: u64) -> Result<Self, BadSize> {
        let (total_bits, content_bits) = match (head.total_bits, head.content_bits) {
            (Some(total), Some(content)) => (total, content),
            (Some(total), None) => (total, total),
            // A packet ends with a byte, its content need not.
            (None, Some(content)) => (
                content.checked_next_multiple_of(8).unwrap_or(content),
                content,
            ),
            (None, None) => (available_bits, available_bits),
        };
        let total_role = match head.total_bits {
            Some(_) => Role::PacketTotalLength,
            None => Role::PacketContentLength,
        };
        let bad = |role, message| Err(BadSize { role, message });
        let header = head.events_bit;
        if !total_bits.is_multiple_of(8) {
            let message =
                format!("the packet has {total_bits} bits, which is not a whole number of bytes");
            bad(total_role, message)
        } else if total_bits == 0 || total_bits < header {
            let message = format!(
                "the packet has {total_bits} bits, fewer than its header and context, which end at bit {header}"
            );
            bad(total_role, message)
        } else if content_bits > total_bits {
            let message = format!(
                "the packet's content has {content_bits} bits, the packet itself only {total_bits}"
            );
            bad(Role::PacketContentLength, message)
        } else if content_bits < header {
            let message = format!(
                "the packet's content ends at bit {content_bits}, before its header and context do at bit {header}"
            );
            bad(Role::PacketContentLength, message)
        } else {
            Ok(Self {
                total_bits,
                content_bits,
            })
        }
    }
}

/// Whether all of a packet can be decoded, and how many events can.
fn decodable(mut cursor: PacketCursor<'_>) -> (bool, u64) {
    let mut events = 0;
    loop {
        match cursor.next_event() {
            Ok(Some(event)) if event.visit(&mut Nothing).is_ok() => events += 1,
            Ok(None) => return (true, events),
            Ok(Some(_)) | Err(_) => return (false, events),
        }
    }
}

/// Where the last event ends that `content_bits` bits hold as a whole; `content_bits` itself
/// where decoding stops at something else than their end.
pub(super) fn complete_bits(
    decoder: &Decoder,
    data: &[u8],
    head: &PacketHead,
    content_bits: u64,
) -> u64 {
    /// The position that was reported last.
    struct End(u64);
    impl Visitor for End {
        const POSITIONS: bool = true;
        fn at(&mut self, bit: u64) {
            self.0 = bit;
        }
        fn after(&mut self, bit: u64) {
            self.0 = bit;
        }
    }

    let mut cursor = decoder.cursor(data, head, content_bits, 0);
    let mut end = head.events_bit;
    loop {
        match cursor.next_event() {
            Ok(Some(event)) => {
                let mut after = End(event.begin_bit());
                let decoded = event
                    .visit_header(&mut after)
                    .and_then(|()| event.visit(&mut after));
                match decoded {
                    Ok(()) => end = after.0,
                    Err(fault) if fault.code == FaultCode::BeyondContent => return end,
                    Err(_) => return content_bits,
                }
            }
            Ok(None) => return content_bits,
            Err(fault) if fault.code == FaultCode::BeyondContent => return end,
            Err(_) => return content_bits,
        }
    }
}
