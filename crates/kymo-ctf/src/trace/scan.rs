//! Finds the packets of a data stream file.

use std::sync::Arc;

use kymo_machine::ByteOrder;
use kymo_model::{Fault, FaultCode, FaultReport};

use super::compare::Comparison;
use super::packet::{self, BadSize, Sizes};
use super::{Packet, StreamFile, index, report, sections};
use crate::class::{FieldClass, Role, TraceClass};
use crate::decode::{Decoder, FREE_EMPTY_ELEMENTS, PACKET_MAGIC, PacketHead};
use crate::metadata::rfc::PacketHeader;
use crate::metadata::uuid_text;

/// Packets of a file, which are numbered with 32 bits: a file of fewer than 4 GiB cannot have more.
const MOST_PACKETS: u32 = u32::MAX;

/// Damaged heads, and what only looks like one, may be read over and over to the end of the file:
/// this limits the bytes of a file that are read in vain, and the number of times that a whole file is.
const READ_IN_VAIN: u64 = 1 << 28;
const TIMES_IN_VAIN: u64 = 4;

/// Bytes that are looked at together where no more than what is needed is to be fetched.
const PIECE: usize = 1 << 20;

/// How many faults of a file are reported one by one.
pub(super) const MOST_FAULTS: u64 = 1000;

/// A packet as it was found: the numbers of counters and clocks as they are in its head, with
/// the bits that they have there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) packet: Packet,
    pub(super) stream_class: u32,
    pub(super) stream_id: Option<u64>,
    pub(super) begin: Option<(u64, u32)>,
    pub(super) end: Option<(u64, u32)>,
    pub(super) discarded: Option<(u64, u32)>,
    pub(super) sequence: Option<(u64, u32)>,
    /// Whether it must be opened before it is read.
    pub(super) secured: bool,
}

/// Finds the packets of files, one file after the other.
pub(super) struct Scanner<'a> {
    pub(super) class: &'a TraceClass,
    pub(super) decoder: &'a Decoder,
    pub(super) faults: &'a mut Vec<FaultReport>,
    /// What is odd, and no damage.
    pub(super) notes: &'a mut Vec<String>,
    /// RFC v1.1: number of the session to which the metadata belongs, or the first packet.
    pub(super) session_id: Option<u32>,
    /// Whether each packet is asked whether it says what its index does.
    pub(super) compares: bool,
}

impl Scanner<'_> {
    /// Reports the packets of a file: by its index where that is right, else by what each packet
    /// says of its own size. `true` where it is the index that was believed.
    pub(super) fn file(
        &mut self,
        number: u32,
        file: &StreamFile,
        report: &mut impl FnMut(Found),
    ) -> bool {
        let foreign = file.index.as_ref().and_then(|(path, bytes)| {
            let why = index::foreign(bytes)?;
            let name = path.file_name().unwrap_or_default().display();
            Some(format!("`index/{name}` is ignored: {why}"))
        });
        let known = file.index.as_ref().filter(|_| foreign.is_none());
        self.notes.extend(foreign);
        if let Some((path, bytes)) = known {
            let (decoder, class) = (self.decoder, self.class);
            // Only its last packet makes it known whether an index is right.
            let is_right = index::packets(decoder, class, number, file, bytes, &mut |_| ())
                .and_then(|is_right| match is_right {
                    true if self.compares => {
                        let mut comparison = Comparison::new(self, file);
                        let mut next =
                            |found| comparison.next(found).into_iter().for_each(&mut *report);
                        let is_right =
                            index::packets(decoder, class, number, file, bytes, &mut |found| {
                                next(Some(found));
                            });
                        next(None);
                        comparison.finish();
                        is_right
                    }
                    true => index::packets(decoder, class, number, file, bytes, report),
                    false => Ok(false),
                });
            match is_right {
                Ok(true) => return true,
                Ok(false) => {}
                Err(message) => self.faults.push(FaultReport::new(
                    FaultCode::Index,
                    Arc::clone(path),
                    0,
                    format!("{message}; the packets are found without it"),
                )),
            }
        }
        self.scan(number, file, 0, 0, report);
        false
    }

    /// Reports the packets of a file from byte `from` on, where packet number `found` begins, by what each
    /// packet says of its own size.
    pub(super) fn scan(
        &mut self,
        number: u32,
        file: &StreamFile,
        from: usize,
        found: u32,
        report: &mut impl FnMut(Found),
    ) {
        let mut scan = Scan {
            scanner: self,
            file,
            number,
            report,
            found,
            left_out: 0,
            usual_bits: 0,
            identity: Identity::default(),
            encrypted: 0,
            plain: 0,
            first_plain: None,
            in_vain: READ_IN_VAIN + TIMES_IN_VAIN * file.bytes.len() as u64,
            faults: FileFaults::default(),
        };
        let mut next = Some(from);
        while let Some(offset) = next.filter(|&offset| offset < file.bytes.len()) {
            next = scan.packet(offset);
        }
        scan.check_encryption();
        let faults = scan.faults;
        faults.finish(self.faults);
    }
}

/// The faults of a file that were reported so far.
#[derive(Debug, Default)]
pub(super) struct FileFaults {
    count: u64,
    /// Of the faults beyond [`MOST_FAULTS`] the last one.
    last: Option<FaultReport>,
}

impl FileFaults {
    /// Reports one more.
    pub(super) fn add(&mut self, report: FaultReport, faults: &mut Vec<FaultReport>) {
        self.count += 1;
        match self.count {
            ..=MOST_FAULTS => faults.push(report),
            _ => self.last = Some(report),
        }
    }

    /// Reports the last one, and how many were not reported.
    pub(super) fn finish(self, faults: &mut Vec<FaultReport>) {
        if let Some(mut last) = self.last {
            if let unreported @ 1.. = self.count - MOST_FAULTS - 1 {
                last.message +=
                    &format!("; {unreported} faults of the file before it are not listed");
            }
            faults.push(last);
        }
    }
}

/// Whether packets of a file are the trace's: each mismatch is reported once for a file, for the first
/// packet that has it.
#[derive(Debug, Default)]
pub(super) struct Identity {
    odd_magic: bool,
    odd_uuid: bool,
}

impl Identity {
    /// What a packet that begins with another number than it should, or belongs to another trace,
    /// says of that: code, field and message.
    pub(super) fn odd(
        &mut self,
        class: &TraceClass,
        head: &PacketHead,
    ) -> impl Iterator<Item = (FaultCode, Role, String)> + use<> {
        let magic = head.magic.filter(|&magic| magic != PACKET_MAGIC);
        let magic = magic.filter(|_| !std::mem::replace(&mut self.odd_magic, true));
        let magic = magic.map(|magic| {
            let message = format!(
                "the packet begins with the magic number {magic:#x}, expected {PACKET_MAGIC:#x}"
            );
            (FaultCode::Magic, Role::PacketMagic, message)
        });
        let uuids = head
            .uuid
            .zip(class.uuid)
            .filter(|(found, own)| found != own);
        let uuids = uuids.filter(|_| !std::mem::replace(&mut self.odd_uuid, true));
        let uuid = uuids.map(|(found, expected)| {
            let message = format!(
                "the packet belongs to the trace {}, the metadata to {}",
                uuid_text(found),
                uuid_text(expected)
            );
            (FaultCode::TraceId, Role::MetadataUuid, message)
        });
        magic.into_iter().chain(uuid)
    }
}

/// A scan of one file.
struct Scan<'s, 'a, T> {
    scanner: &'s mut Scanner<'a>,
    file: &'s StreamFile,
    number: u32,
    report: &'s mut T,
    /// The number of packets that were reported.
    found: u32,
    /// Packets that are not found but left out: they count where packets are counted.
    left_out: u32,
    /// Size of the packet before.
    usual_bits: u64,
    identity: Identity,
    /// Packets that are encrypted, and that are not, and place and number of the first of the latter.
    encrypted: u64,
    plain: u64,
    first_plain: Option<(usize, u32)>,
    /// How many more bytes may be read in vain.
    in_vain: u64,
    faults: FileFaults,
}

impl<T: FnMut(Found)> Scan<'_, '_, T> {
    /// Looks at the packet that begins at byte `offset`, which is before the end of the file.
    /// Returns where the next one begins.
    fn packet(&mut self, offset: usize) -> Option<usize> {
        let rest = &self.file.bytes[offset..];
        if self.packet_number() == MOST_PACKETS {
            let message = format!(
                "the file has more than {MOST_PACKETS} packets; those that follow are left out"
            );
            self.fault(FaultCode::LengthLimit, offset, None, message);
            return None;
        }
        let head = match self.head(offset) {
            Ok(head) => head,
            Err(fault) if fault.code == FaultCode::Unreadable => return self.unreadable(offset),
            Err(_) if self.padding(offset) => return None,
            Err(fault) => return self.bad_head(offset, fault),
        };
        let wrong_magic = head.magic.is_some_and(|magic| magic != PACKET_MAGIC);
        let available = bits(rest.len());
        let sizes = Sizes::new(&head, available).and_then(|sizes| match wrong_magic {
            true if sizes.total_bits > available => Err(BadSize {
                role: Role::PacketMagic,
                message: format!(
                    "the packet begins with {:#x} instead of {PACKET_MAGIC:#x} and goes beyond the end of the file",
                    head.magic.unwrap_or_default()
                ),
            }),
            _ => Ok(sizes),
        });
        if (wrong_magic || sizes.is_err()) && self.padding(offset) {
            return None;
        }
        let mut sizes = match sizes {
            Ok(sizes) => sizes,
            Err(bad) => {
                let field = self.field(&head, bad.role);
                return self.leave_out(FaultCode::PacketSize, offset, offset, field, &bad.message);
            }
        };
        self.check_identity(offset, &head);
        let fixed = sections::packet_header(self.scanner.class, rest);
        if let Some(fixed) = &fixed {
            self.check_session(offset, fixed);
            if let Some((field, place, what, scheme)) = fixed.unknown_scheme() {
                let message = format!(
                    "the packet has {what} scheme {scheme}, which kymo does not read; it is left out"
                );
                let field = format!("packet_header.{field}");
                self.fault(FaultCode::Scheme, offset + place, Some(field), message);
                self.left_out = self.left_out.saturating_add(1);
                return offset.checked_add((sizes.total_bits / 8) as usize);
            }
        }
        if sizes.content_bits > available && fixed.is_some_and(|fixed| fixed.is_secured()) {
            let what = format!(
                "the packet has {} bytes, but the file ends after {} of them; a secured packet cannot be read in part",
                sizes.total_bits / 8,
                rest.len()
            );
            let field = self.field(&head, Role::PacketTotalLength);
            return self.leave_out(FaultCode::Truncated, offset, offset, field, &what);
        }
        if sizes.total_bits > available {
            sizes = self.truncated(offset, &head, sizes);
        } else if let Some(next) = self.swallowed(offset, sizes) {
            let bytes = next - offset;
            let message = format!(
                "the packet has {} bytes, but another one begins after {bytes} of them, behind its content",
                sizes.total_bits / 8
            );
            let field = self.field(&head, Role::PacketTotalLength);
            if fixed.is_some_and(|fixed| fixed.is_secured()) {
                // Nothing can be read of it, as it was secured with another size.
                return self.leave_out(FaultCode::PacketSize, offset, offset, field, &message);
            }
            self.fault(FaultCode::PacketSize, offset, field, message);
            sizes.total_bits = bits(bytes);
        }
        self.usual_bits = sizes.total_bits;
        let number = self.packet_number();
        match fixed {
            Some(fixed) if fixed.encryption != 0 => self.encrypted += 1,
            Some(_) => {
                self.plain += 1;
                self.first_plain.get_or_insert((offset, number));
            }
            None => {}
        }
        self.found += 1;
        (self.report)(Found {
            packet: Packet {
                file: self.number,
                number,
                offset: offset as u64,
                total_bits: sizes.total_bits,
                content_bits: sizes.content_bits,
                clock: 0,
            },
            stream_class: head.stream_class as u32,
            stream_id: head.stream_id,
            begin: head.begin,
            end: head.end,
            discarded: head.discarded,
            sequence: match (&fixed, head.sequence) {
                (Some(fixed), Some((number, _))) => sections::sequence(fixed, number),
                (_, sequence) => sequence,
            },
            secured: fixed.is_some_and(|fixed| fixed.is_secured()),
        });
        offset.checked_add((sizes.total_bits / 8) as usize)
    }

    /// Reports that the file cannot be read from byte `offset` on.
    fn unreadable(&mut self, offset: usize) -> Option<usize> {
        let message = report::unreadable(self.file);
        self.fault(FaultCode::Unreadable, offset, None, message);
        None
    }

    /// Where another packet begins in what the packet at byte `offset` says is its padding: then its
    /// size is wrong. Packets that are as large as the one before need no look.
    fn swallowed(&mut self, offset: usize, sizes: Sizes) -> Option<usize> {
        if sizes.total_bits == self.usual_bits {
            return None;
        }
        let end = offset.checked_add((sizes.total_bits / 8) as usize)?;
        let behind = offset.checked_add((sizes.content_bits.div_ceil(8)) as usize)?;
        self.next_magic(behind, end)
    }

    /// Reports a packet that says it goes beyond the end of the file, and returns how much of it is there:
    /// all that is left, or what lies before the next packet.
    fn truncated(&mut self, offset: usize, head: &PacketHead, sizes: Sizes) -> Sizes {
        let next = self.next_magic(offset + 1, usize::MAX);
        let end = next.unwrap_or(self.file.bytes.len());
        // If it cannot be fetched, that is reported when the packet is read.
        let is_there = self.file.fetch(offset, end).is_ok();
        let rest = &self.file.bytes[offset..end];
        let message = format!(
            "the packet has {} bytes, but {} after {} of them; its complete events are kept",
            sizes.total_bits / 8,
            if next.is_some() {
                "another one begins"
            } else {
                "the file ends"
            },
            rest.len()
        );
        let field = self.field(head, Role::PacketTotalLength);
        self.fault(FaultCode::Truncated, offset, field, message);
        let available = bits(rest.len());
        Sizes {
            total_bits: available,
            content_bits: match is_there && sizes.content_bits > available {
                true => packet::complete_bits(self.scanner.decoder, rest, head, available),
                false => sizes.content_bits.min(available),
            },
        }
    }

    /// Reports damage at byte `place` of the packet that begins at byte `offset`, because of which
    /// the packet is left out. Returns where the next one begins that can be found.
    fn leave_out(
        &mut self,
        code: FaultCode,
        offset: usize,
        place: usize,
        field: Option<String>,
        what: &str,
    ) -> Option<usize> {
        let next = self.next_magic(offset + 1, usize::MAX);
        let message = match next {
            Some(next) => format!(
                "{what}; {} bytes are left out, up to the next packet",
                next - offset
            ),
            None => format!("{what}; what follows in the file is left out"),
        };
        self.fault(code, place, field, message);
        self.left_out = self.left_out.saturating_add(1);
        next
    }

    /// Where the next packet begins at or after byte `from` and before byte `to`, as far as packets can be known: they
    /// begin with the magic number, belong to the trace, have possible sizes and are there as a
    /// whole.
    fn next_magic(&mut self, from: usize, to: usize) -> Option<usize> {
        let pattern = magic_bytes(self.scanner.class)?;
        let to = to
            .saturating_add(pattern.len() - 1)
            .min(self.file.bytes.len());
        let rest = self.file.bytes.get(from..to)?;
        self.file.fetch(from, to).ok()?;
        for at in memchr::memmem::find_iter(rest, &pattern) {
            let at = from + at;
            if self.is_packet(at) {
                return Some(at);
            }
            if self.in_vain == 0 {
                break;
            }
        }
        None
    }

    /// Whether a packet begins at a byte where there is a magic number.
    fn is_packet(&mut self, at: usize) -> bool {
        let Ok(head) = self.head(at) else {
            return false;
        };
        let class = self.scanner.class;
        let ours = class
            .uuid
            .is_none_or(|uuid| head.uuid.is_none_or(|found| found == uuid));
        let available = bits(self.file.bytes.len() - at);
        let fixed = sections::packet_header(class, &self.file.bytes[at..]);
        let session_id = self.scanner.session_id;
        let ours =
            ours && fixed.is_none_or(|fixed| session_id.is_none_or(|id| id == fixed.session_id));
        let fits =
            ours && Sizes::new(&head, available).is_ok_and(|sizes| sizes.total_bits <= available);
        if !fits {
            self.in_vain = self.in_vain.saturating_sub(head.events_bit / 8);
        }
        fits
    }

    /// Reads the head of the packet at byte `offset`; counts what is read in vain.
    fn head(&mut self, offset: usize) -> Result<PacketHead, Fault> {
        let rest = &self.file.bytes[offset..];
        let decoder = self.scanner.decoder;
        let head = self
            .file
            .head_at(offset, |data| self.file.head(decoder, data));
        if let Err(fault) = &head {
            let read = match fault.code {
                // Perhaps only the end of the file has ended it.
                FaultCode::BeyondContent => rest.len() as u64,
                // As many elements without bits as there may be, which are read one by one.
                FaultCode::LengthLimit => FREE_EMPTY_ELEMENTS + bits(rest.len()),
                _ => fault.bit / 8,
            };
            self.in_vain = self.in_vain.saturating_sub(read);
        }
        head
    }

    /// The number of the packet in hand.
    fn packet_number(&self) -> u32 {
        self.found.saturating_add(self.left_out)
    }

    /// Whether only zeros are left, which a tracer leaves that makes its file larger than what it
    /// then writes: that is reported, once.
    fn padding(&mut self, offset: usize) -> bool {
        let rest = &self.file.bytes[offset..];
        let zeros = (offset..)
            .step_by(PIECE)
            .zip(rest.chunks(PIECE))
            .all(|(at, piece)| {
                let is_there = self.file.fetch(at, at + piece.len()).is_ok();
                is_there && piece.iter().all(|&byte| byte == 0)
            });
        if zeros {
            let message = match self.found {
                0 => format!("the file has no packet, only zeros: {} bytes", rest.len()),
                _ => format!("zeros follow the last packet: {} bytes", rest.len()),
            };
            self.fault(FaultCode::TrailingData, offset, None, message);
        }
        zeros
    }

    /// Reports a packet whose header and context cannot be read, and returns where the next one begins.
    fn bad_head(&mut self, offset: usize, fault: Fault) -> Option<usize> {
        if fault.code == FaultCode::BeyondContent {
            let left = self.file.bytes.len() - offset;
            let what = format!(
                "the file ends within the header and context of a packet, after {left} bytes of it"
            );
            self.leave_out(FaultCode::Truncated, offset, offset, None, &what)
        } else {
            let place = offset + (fault.bit / 8) as usize;
            self.leave_out(fault.code, offset, place, None, &report::message(&fault))
        }
    }

    /// Reports packets that begin with another number than they should, or belong to another
    /// trace: they are decoded all the same.
    fn check_identity(&mut self, offset: usize, head: &PacketHead) {
        for (code, role, message) in self.identity.odd(self.scanner.class, head) {
            self.fault(code, offset, self.field(head, role), message);
        }
    }

    /// Reports packets of RFC v1.1 that belong to another session: they are decoded all the same.
    fn check_session(&mut self, offset: usize, header: &PacketHeader) {
        let expected = *self.scanner.session_id.get_or_insert(header.session_id);
        if header.session_id != expected && !self.identity.odd_uuid {
            self.identity.odd_uuid = true;
            let found = header.session_id;
            let message = format!("the packet belongs to session {found}, the trace to {expected}");
            let field = "packet_header.session_id".to_owned();
            self.fault(FaultCode::TraceId, offset, Some(field), message);
        }
    }

    /// Reports packets of RFC v1.1 that are not encrypted among others that are: anybody may have put them there, or
    /// said so of one that was encrypted. They are decoded all the same.
    fn check_encryption(&mut self) {
        let Some((offset, number)) = self.first_plain.filter(|_| self.encrypted > 0) else {
            return;
        };
        let others = match self.plain - 1 {
            0 => String::new(),
            others => format!("; so are {others} others of the file"),
        };
        let report = FaultReport {
            code: FaultCode::Scheme,
            file: Arc::clone(&self.file.path),
            offset: offset as u64,
            packet: Some(number.into()),
            event: None,
            field: Some("packet_header.encryption_scheme".to_owned()),
            message: format!(
                "the packet is not encrypted, as {} of the file are: anybody may have written it{others}",
                self.encrypted
            ),
        };
        self.scanner.faults.push(report);
    }

    /// Scope and name of the field of a packet's head that has a role.
    fn field(&self, head: &PacketHead, role: Role) -> Option<String> {
        report::role_path(
            self.scanner.class,
            self.scanner.decoder,
            head.stream_class,
            role,
        )
    }

    /// Reports a fault of the packet that begins at `offset`.
    fn fault(&mut self, code: FaultCode, offset: usize, field: Option<String>, message: String) {
        let report = FaultReport {
            code,
            file: Arc::clone(&self.file.path),
            offset: offset as u64,
            packet: (code != FaultCode::TrailingData).then_some(self.packet_number().into()),
            event: None,
            field,
            message,
        };
        self.faults.add(report, self.scanner.faults);
    }
}

/// Bits of a number of bytes.
fn bits(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(8)
}

/// The bytes that every packet begins with, if the header begins with a magic number.
pub(super) fn magic_bytes(class: &TraceClass) -> Option<[u8; 4]> {
    let Some(FieldClass::Struct { members, .. }) = &class.packet_header else {
        return None;
    };
    match &members.first()?.class {
        FieldClass::Integer { layout, style }
            if layout.bits == 32
                && !layout.reversed
                && style.roles.contains(&Role::PacketMagic) =>
        {
            Some(match layout.order {
                ByteOrder::Little => (PACKET_MAGIC as u32).to_le_bytes(),
                ByteOrder::Big => (PACKET_MAGIC as u32).to_be_bytes(),
            })
        }
        _ => None,
    }
}
