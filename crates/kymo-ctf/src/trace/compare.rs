//! What packets say of themselves beside what the index of their file says: where all of a trace
//! is read anyway, damage that an index hides is reported.

use std::sync::Arc;

use kymo_model::{FaultCode, FaultReport};

use super::packet::{Packet, differ};
use super::scan::{FileFaults, Found, Identity, Scanner};
use super::{StreamFile, report};
use crate::class::Role;
use crate::decode::PacketHead;

/// A counter, and the bits that it has in a packet.
type Counter = Option<(u64, u32)>;

/// Goes through the packets of a file as its index lists them.
pub(super) struct Comparison<'s, 'a> {
    scanner: &'s mut Scanner<'a>,
    file: &'s StreamFile,
    faults: FileFaults,
    identity: Identity,
    /// The packet before the one in hand.
    before: Option<Found>,
    /// The packet in hand, which is judged once the next one is known.
    now: Option<Found>,
}

impl<'s, 'a> Comparison<'s, 'a> {
    pub(super) fn new(scanner: &'s mut Scanner<'a>, file: &'s StreamFile) -> Self {
        Self {
            scanner,
            file,
            faults: FileFaults::default(),
            identity: Identity::default(),
            before: None,
            now: None,
        }
    }

    /// Takes the next packet, as the index lists it; gives back the one before it with the
    /// numbers that are to be believed. `None` stands for the end of the file.
    pub(super) fn next(&mut self, next: Option<Found>) -> Option<Found> {
        let found = std::mem::replace(&mut self.now, next)?;
        let found = self.judge(found);
        self.before = Some(found);
        Some(found)
    }

    /// Ends the file: reports how many faults there are beyond those already reported.
    pub(super) fn finish(self) {
        self.faults.finish(self.scanner.faults);
    }

    fn judge(&mut self, found: Found) -> Found {
        let Scanner { class, decoder, .. } = *self.scanner;
        let data = found.packet.data(std::slice::from_ref(self.file));
        // If the head cannot be read, or is of another class, that is reported when the packet is read.
        let Ok(head) = self.file.head(decoder, data) else {
            return found;
        };
        if head.stream_class != found.stream_class as usize {
            return found;
        }
        for (code, role, message) in self.identity.odd(class, &head) {
            self.fault(&found, &head, code, role, message);
        }
        let begin = head.begin.filter(|_| decoder.has_clock(head.stream_class));
        if differ(begin, found.begin) || !found.packet.has_sizes(class, Some(self.file), &head) {
            // So it is of these.
            return found;
        }
        let sizes = [
            (
                Role::PacketTotalLength,
                head.total_bits,
                found.packet.total_bits,
            ),
            (
                Role::PacketContentLength,
                head.content_bits,
                found.packet.content_bits,
            ),
            (
                Role::StreamId,
                head.stream_id,
                found.stream_id.unwrap_or_default(),
            ),
        ];
        for (role, own, of_index) in sizes {
            if let Some(own) = own.filter(|&own| own != of_index) {
                self.differs(&found, &head, role, own, of_index, of_index);
            }
        }
        let mut believed = found;
        let (before, next) = (self.before, self.now);
        believed.end = {
            let least = found.begin.map(|(begin, _)| begin);
            let most = next.and_then(|next| next.begin).map(|(begin, _)| begin);
            self.number(
                &found,
                &head,
                Role::PacketEndTimestamp,
                |head| head.end,
                found.end,
                (least, most),
            )
        };
        let around = |counter: fn(&Found) -> Counter| {
            let number =
                |found: Option<Found>| found.as_ref().and_then(counter).map(|(number, _)| number);
            (number(before), number(next))
        };
        believed.discarded = self.number(
            &found,
            &head,
            Role::DiscardedEvents,
            |head| head.discarded,
            found.discarded,
            around(|found| found.discarded),
        );
        believed.sequence = self.number(
            &found,
            &head,
            Role::PacketSequenceNumber,
            |head| head.sequence,
            found.sequence,
            around(|found| found.sequence),
        );
        believed
    }

    /// Which of two numbers is believed: that of the index, unless only that of the packet is
    /// between those of the packets `around` it.
    fn number(
        &mut self,
        found: &Found,
        head: &PacketHead,
        role: Role,
        own: fn(&PacketHead) -> Counter,
        of_index: Counter,
        around: (Option<u64>, Option<u64>),
    ) -> Counter {
        let own = own(head);
        let (Some((said, bits)), Some((indexed, _)), true) = (own, of_index, differ(own, of_index))
        else {
            return of_index;
        };
        let (least, most) = around;
        let fits = |number: u64| {
            least.is_none_or(|least| least <= number) && most.is_none_or(|most| number <= most)
        };
        let believed = match !fits(indexed) && fits(said) {
            true => said,
            false => indexed,
        };
        self.differs(found, head, role, said, indexed, believed);
        Some((believed, bits))
    }

    /// Reports that a packet and its index state different numbers.
    fn differs(
        &mut self,
        found: &Found,
        head: &PacketHead,
        role: Role,
        own: u64,
        of_index: u64,
        believed: u64,
    ) {
        let message =
            format!("the packet says {own}, the index of its file {of_index}; {believed} is taken");
        self.fault(found, head, FaultCode::Index, role, message);
    }

    fn fault(
        &mut self,
        found: &Found,
        head: &PacketHead,
        code: FaultCode,
        role: Role,
        message: String,
    ) {
        let Scanner { class, decoder, .. } = *self.scanner;
        let report = FaultReport {
            code,
            file: Arc::clone(&self.file.path),
            offset: found.packet.offset,
            packet: Some(found.packet.number.into()),
            event: None,
            field: report::role_path(class, decoder, head.stream_class, role),
            message,
        };
        self.faults.add(report, self.scanner.faults);
    }
}

impl Packet {
    /// Puts what is known of a packet by an index in the place of what its head says otherwise;
    /// whether there is such a thing. `end` is its end in full ticks.
    pub(super) fn believe(
        &self,
        head: &mut PacketHead,
        stream_id: Option<u64>,
        end: Option<u64>,
        discarded: Counter,
        sequence: Counter,
    ) -> bool {
        let own = head.clone();
        let believed = |own: Counter, known: Counter| match differ(own, known) {
            true => own.zip(known).map(|((_, bits), (known, _))| (known, bits)),
            false => own,
        };
        head.stream_id = own.stream_id.map(|own| stream_id.unwrap_or(own));
        head.total_bits = own.total_bits.map(|_| self.total_bits);
        head.content_bits = own.content_bits.map(|_| self.content_bits);
        head.end = believed(own.end, end.map(|end| (end, 64)));
        head.discarded = believed(own.discarded, discarded);
        head.sequence = believed(own.sequence, sequence);
        *head != own
    }
}
