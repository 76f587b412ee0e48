//! Writes a stream: whole packets where they can stay as they are, else event by event.

use kymo_ctf::class::Dialect;
use kymo_ctf::decode::{PACKET_MAGIC, PacketHead};
use kymo_ctf::repair::{Judged, Mender, Order, packet_info};
use kymo_ctf::secure;
use kymo_ctf::trace::{Packet, Trace};
use kymo_ctf::write::{PacketInfo, PacketStart, Sealing, StreamWriter, Token, WriteError};
use kymo_model::{Chunk, Cursor, Event, Fault, FaultCode, FieldId, Recording};
use kymo_time::Timestamp;

mod events;

use super::CtfOptions;
use super::done::Done;
use super::plan::{Job, Plan, Source};
use crate::filter::{Filter, Worker};

/// Writes the chosen events of a stream.
pub(super) fn write(
    plan: &Plan<'_>,
    job: &Job<'_>,
    writer: StreamWriter<Sealing>,
    filter: &Filter,
    worker: &mut Worker<'_>,
    options: &CtfOptions,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Done, WriteError> {
    let clock = job.input.streams()[job.stream].clock.as_deref();
    let is_plain = clock.is_some_and(|clock| {
        (clock.frequency, clock.offset_seconds, clock.offset_cycles) == (1_000_000_000, 0, 0)
    });
    let mut scribe = Scribe {
        in_nanos: plan.model.dialect == Dialect::Rfc11 && !is_plain,
        last: 0,
        plan,
        source: &plan.sources[job.source],
        job,
        writer,
        filter,
        worker,
        options,
        done: Done::default(),
        lost_events: 0,
        missing: 0,
        is_begun: false,
        context: None,
        damaged: 0,
        mender: options.repairs.then(Mender::default),
        order: Order::default(),
        renumbered: 0,
        is_apart: false,
        all_copied: true,
        end: None,
    };
    let mut before: Option<Chunk> = None;
    for chunk in job.input.chunks(job.stream) {
        let bytes = chunk.bytes;
        if filter.overlaps(scribe.source.recording, &chunk) {
            if let Some(before) = before.take() {
                scribe.empty(&before, &chunk)?;
            }
            scribe.done.discarded.add_chunk(&chunk);
            scribe.chunk(&chunk)?;
        } else {
            scribe.all_copied = false;
            before = Some(chunk);
        }
        progress(bytes);
        if options.strict && !scribe.done.faults.is_empty() {
            break;
        }
    }
    scribe.finish()
}

/// Writes one stream.
struct Scribe<'s, 'f> {
    plan: &'s Plan<'s>,
    source: &'s Source<'s>,
    job: &'s Job<'s>,
    writer: StreamWriter<Sealing>,
    filter: &'s Filter,
    worker: &'s mut Worker<'f>,
    options: &'s CtfOptions,
    done: Done,
    /// Events that were lost so far, as the chunks report.
    lost_events: u64,
    /// Packets of the source since the one begun last that are not in the target: lost ones, and
    /// those that cannot be read.
    missing: u64,
    /// Whether a packet was begun.
    is_begun: bool,
    /// What the header and context of the packet begun last hold beside what only matters to
    /// readers, where packets are not kept.
    context: Option<Vec<(FieldId, Token)>>,
    /// Events that are known to be lost with damage.
    damaged: u64,
    /// Finds out what damaged packets should say, where that is wanted.
    mender: Option<Mender>,
    /// Finds out which events are out of order, where packets are not mended.
    order: Order,
    /// How much higher than in the source packets are numbered.
    renumbered: u64,
    /// Whether the packet in hand goes back in time, so that it is not put together with the one before.
    is_apart: bool,
    /// Whether all packets so far were copied as they are.
    all_copied: bool,
    /// Ticks at the end of the packet before, where packets are not kept.
    end: Option<u64>,
    /// Whether times are given in nanoseconds since the epoch: RFC v1.1 knows no other clock.
    in_nanos: bool,
    /// Nanoseconds of the event before.
    last: u64,
}

impl Scribe<'_, '_> {
    fn chunk(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        let count = |lost: Option<kymo_model::Lost>| lost.and_then(|lost| lost.count).unwrap_or(0);
        let (events, packets) = (count(chunk.lost_events), count(chunk.lost_chunks));
        self.lost_events = self.lost_events.wrapping_add(events);
        self.missing = self.missing.wrapping_add(packets);
        if let Err(fault) = self
            .worker
            .begin_chunk(self.source.recording, self.job.input, chunk)
        {
            self.fault(chunk, None, fault);
            return Ok(());
        }
        match self.job.input.as_ctf() {
            Some(trace) => self.packet(trace, chunk, events),
            None => self.events(chunk),
        }
    }

    /// Writes the packet before a window without events, where something was lost between it and
    /// the next: readers detect that by the counters of both.
    fn empty(&mut self, chunk: &Chunk, next: &Chunk) -> Result<(), WriteError> {
        let is_lost = next.lost_events.is_some() || next.lost_chunks.is_some();
        let (Some(trace), true, false) = (self.job.input.as_ctf(), is_lost, self.is_begun) else {
            return Ok(());
        };
        let Some(packet) = trace.packet(chunk.stream, chunk.number) else {
            return Ok(());
        };
        // What is damaged here is not of the window.
        let Ok((head, _)) = trace.head(chunk.stream, chunk.number) else {
            return Ok(());
        };
        if self.protect(trace, trace.packet_bytes(&packet)).is_err() {
            return Ok(());
        }
        self.begin(trace, chunk, packet.clock, &head, 0)?;
        self.end = self.bound(chunk.end, chunk.end_time);
        self.end_packet(self.end)
    }

    /// The ticks of an event in the target.
    fn ticks<E: Event>(&mut self, event: &E) -> Option<u64> {
        if !self.in_nanos {
            return event.ticks();
        }
        match event.timestamp() {
            Some(time) => {
                self.done.early += u64::from(time.as_nanos() < 0);
                self.last = nanos(time);
            }
            None => self.done.untimed += 1,
        }
        Some(self.last)
    }

    /// The ticks at which a packet begins or ends, in the target.
    fn bound(&self, ticks: Option<u64>, time: Option<Timestamp>) -> Option<u64> {
        match self.in_nanos {
            true => time.map(nanos),
            false => ticks,
        }
    }

    fn fault(&mut self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) {
        self.done
            .fault(|| self.job.input.report(chunk, event, fault));
        self.all_copied = false;
    }

    /// A packet that cannot be read: the number of the next one shows that it is missing.
    fn unreadable(&mut self, chunk: &Chunk, fault: Fault) {
        self.missing = self.missing.wrapping_add(1);
        self.fault(chunk, None, fault);
    }

    /// A packet that is left out because the times of its events are unknown.
    fn misplaced(&mut self, chunk: &Chunk) {
        let fault = Fault::new(FaultCode::NotMonotonic, 0, chunk.begin.unwrap_or_default());
        let input = self.job.input;
        self.done.fault(|| {
            let mut report = input.report(chunk, None, fault);
            report.message =
                "the times of the packet contradict those around it, and its number does \
                not show that it belongs between them: it is left out"
                    .to_owned();
            report
        });
        self.missing = self.missing.wrapping_add(1);
        self.all_copied = false;
    }

    /// A packet of a trace.
    fn packet(&mut self, trace: &Trace, chunk: &Chunk, lost_events: u64) -> Result<(), WriteError> {
        let Some(packet) = trace.packet(chunk.stream, chunk.number) else {
            return Ok(());
        };
        let bytes = trace.packet_bytes(&packet);
        let (head, is_other) = match trace.head(chunk.stream, chunk.number) {
            Ok(head) => head,
            Err(fault) => {
                self.unreadable(chunk, fault);
                return Ok(());
            }
        };
        let mended = match &mut self.mender {
            Some(mender) if !self.in_nanos => Some(mender.next(trace, chunk, &head)),
            _ => None,
        };
        if mended.as_ref().is_some_and(|mended| mended.is_lost) {
            self.misplaced(chunk);
            return Ok(());
        }
        let is_changed = mended.as_ref().is_some_and(|mended| mended.is_changed) || is_other;
        self.done.mended += u64::from(is_changed && self.options.repairs);
        let judged = match &mended {
            Some(mended) => Judged {
                whole: mended.whole,
                sifted: mended.sifted.clone(),
                is_apart: false,
            },
            None => self.order.next(trace, chunk),
        };
        if !is_changed
            && self.is_copied(trace, chunk, &packet, &head, bytes)
            && let Some(events) = judged.whole
        {
            let info = PacketInfo {
                stream_class_id: self.plan.model.streams[self.job.stream_class].id,
                stream_id: self.job.options.stream_id,
                events,
                ..packet_info(chunk, &packet, &head)
            };
            self.done.events += events;
            self.is_begun = true;
            if self.options.kept_protection.is_some() {
                self.writer.sink().protect(None);
            }
            return self.writer.whole_packet(bytes, &info);
        }
        self.all_copied = false;
        let contradiction = mended.as_ref().and_then(|mended| mended.contradiction);
        if let Some(fault) = contradiction {
            self.fault(chunk, None, fault);
        }
        let times = mended.as_ref().map(|mended| mended.times);
        let mut cursor = match &times {
            Some(times) => times.cursor(trace, chunk),
            None => trace.cursor(chunk),
        };
        if is_secured(trace, bytes)
            && let Some(fault) = cursor.take_fault()
        {
            self.unreadable(chunk, fault);
            return Ok(());
        }
        if let Err(fault) = self.protect(trace, bytes) {
            self.unreadable(chunk, fault);
            return Ok(());
        }
        let reported = mended.as_ref().map_or(&head, |mended| &mended.head);
        let begin = times.and_then(|times| times.begin).unwrap_or(packet.clock);
        let said = head.content_bits.filter(|_| contradiction.is_none());
        let is_cut = said.is_some_and(|bits| bits > packet.content_bits);
        if mended.is_some() && (is_cut || judged.whole.is_none()) {
            self.begin_counting(trace, chunk, begin, reported)?;
        }
        self.is_apart = judged.is_apart;
        self.begin(trace, chunk, begin, reported, lost_events)?;
        let number = self.writer.sequence();
        let clock = times.and_then(|times| times.clock).unwrap_or(packet.clock);
        self.trace_events(trace, chunk, cursor, &judged.sifted, clock)?;
        // Times of its events may have needed several packets.
        let more = self.writer.sequence().wrapping_sub(number);
        self.renumbered = self.renumbered.wrapping_add(more);
        if is_cut {
            // It is cut: what is not there are events, as far as anybody knows.
            self.count_damage();
        }
        let end = match times {
            Some(times) => times.end,
            None => self.bound(chunk.end, chunk.end_time),
        };
        match self.options.packet_bytes {
            None => self.end_packet(end),
            Some(_) => {
                self.end = end;
                Ok(())
            }
        }
    }

    /// Whether a packet can stay as it is, if it is whole.
    fn is_copied(
        &self,
        trace: &Trace,
        chunk: &Chunk,
        packet: &Packet,
        head: &PacketHead,
        bytes: &[u8],
    ) -> bool {
        let class = trace.stream_class(chunk.stream);
        let is_ours = head.magic.is_none_or(|magic| magic == PACKET_MAGIC)
            && (head.uuid.is_none() || head.uuid == trace.class().uuid)
            && (trace.packet_session(packet)).is_none_or(|session| session == self.plan.session_id);
        let agrees = self.source.agreements[class].packets && is_ours;
        // Where a packet does not contain all of its time, a reader goes on from the one before it.
        let has_time = chunk.begin.is_none() && self.all_copied
            || head.begin.is_some_and(|(_, bits)| bits >= 64)
            || self.all_copied && trace.files().len() == trace.streams().len();
        agrees
            && has_time
            && self.options.packet_bytes.is_none()
            && self.damaged == 0
            && (self.renumbered == 0 || head.sequence.is_none())
            && bytes.len() as u64 * 8 == packet.total_bits
            && head
                .content_bits
                .is_none_or(|bits| bits == packet.content_bits)
            && head.total_bits.is_none_or(|bits| bits == packet.total_bits)
            && (self.options.kept_protection.is_some() || !is_secured(trace, bytes))
            && self.filter.wants_whole(self.source.recording, chunk)
    }

    /// Secures the packets that follow as one of the source is, where that is wanted.
    fn protect(&mut self, trace: &Trace, packet: &[u8]) -> Result<(), Fault> {
        let Some((keys, nonce)) = &self.options.kept_protection else {
            return Ok(());
        };
        let protection = match is_secured(trace, packet) {
            true => {
                let order = trace.class().native_order();
                // It was opened before, so it is as it should be.
                let found = secure::protection_of(packet, order, keys)
                    .map_err(|_| Fault::new(FaultCode::Encryption, 0, 0))?;
                Some((found, *nonce))
            }
            false => None,
        };
        self.writer.sink().protect(protection);
        Ok(())
    }

    /// Writes an empty packet before the first one of a stream in which something is lost by damage:
    /// readers detect losses by the counters of two packets.
    fn begin_counting(
        &mut self,
        trace: &Trace,
        chunk: &Chunk,
        begin: u64,
        head: &PacketHead,
    ) -> Result<(), WriteError> {
        let is_counted = head.discarded.is_some() && head.begin.is_some();
        if self.is_begun || !is_counted || trace.class().dialect == Dialect::Rfc11 {
            return Ok(());
        }
        let mut before = head.clone();
        match &mut before.sequence {
            Some((0, _)) => {
                self.begin(trace, chunk, begin, &before, 0)?;
                self.renumbered = 1;
            }
            Some((number, _)) => {
                *number -= 1;
                self.begin(trace, chunk, begin, &before, 0)?;
            }
            None => self.begin(trace, chunk, begin, &before, 0)?,
        }
        self.end_packet(Some(begin))
    }

    /// Begins a packet like one of the source, at the ticks `begin` where packets state when they do;
    /// where packets are not kept, only if the contents of the packet's header and context change.
    fn begin(
        &mut self,
        trace: &Trace,
        chunk: &Chunk,
        begin: u64,
        head: &PacketHead,
        lost_events: u64,
    ) -> Result<(), WriteError> {
        let info = &trace.streams()[chunk.stream];
        let decoded = self.writer.packet_members().decoded(&info.packet_schema);
        // A fault here was met before.
        let _ = trace.visit_packet(chunk, decoded);
        self.is_begun = true;
        if self.options.packet_bytes.is_some() {
            let tokens = decoded.tokens().iter();
            let context = tokens
                .filter(|(field, _)| !trace.is_packet_bookkeeping(chunk.stream, *field))
                .cloned()
                .collect();
            let before = self.context.replace(context);
            // Where packets contain only some bits of their time, a reader needs each of them.
            let is_reported = head.begin.is_none_or(|(_, bits)| bits >= 64);
            let is_alike = before == self.context && is_reported && !self.is_apart;
            if is_alike && lost_events == 0 && self.missing == 0 {
                return Ok(());
            }
        }
        self.end_packet(self.end)?;
        let begin = match (head.begin, self.in_nanos) {
            (Some(_), false) => Some(begin),
            (Some(_), true) => chunk.begin_time.map(nanos),
            (None, _) => self.first_ticks(trace, chunk),
        };
        let start = PacketStart {
            begin,
            ..self.counters(trace, head)
        };
        self.missing = 0;
        match self.writer.begin_packet(start) {
            Err(error) => self.refuse("(a packet)", error),
            Ok(()) => Ok(()),
        }
    }

    /// Ends the current packet; what cannot be written of it is refused.
    fn end_packet(&mut self, end: Option<u64>) -> Result<(), WriteError> {
        match self.writer.end_packet(end) {
            Err(WriteError::LeftOut { events }) => {
                self.done.events -= events;
                let problem =
                    "they end within a byte, and packets do not have the size of their content";
                let what = "(the last ones of a packet)";
                self.done.refuse(what, problem.to_owned(), events);
                Ok(())
            }
            Err(error) => self.refuse("(a packet)", error),
            Ok(()) => Ok(()),
        }
    }

    /// Ticks of the first event of a packet.
    fn first_ticks(&self, trace: &Trace, chunk: &Chunk) -> Option<u64> {
        let mut cursor = trace.cursor(chunk);
        let first = cursor.next_event().ok()??;
        self.bound(first.ticks(), first.timestamp())
    }

    /// What the counters of a packet say in the target: the same as in the source, where that is
    /// of the same kind and has the same packets; else they go on from the packet before.
    fn counters(&self, trace: &Trace, head: &PacketHead) -> PacketStart {
        let is_rfc = |dialect| dialect == Dialect::Rfc11;
        let same_kind = is_rfc(trace.class().dialect) == is_rfc(self.plan.model.dialect);
        let (discarded, sequence) = match same_kind && self.options.packet_bytes.is_none() {
            true => (
                head.discarded.map(|(count, _)| count),
                head.sequence.map(|(number, bits)| {
                    let unused = 64u32.saturating_sub(bits).min(63);
                    number.wrapping_add(self.renumbered) & u64::MAX >> unused
                }),
            ),
            false => (None, None),
        };
        let counted = self.writer.sequence().wrapping_add(self.missing);
        PacketStart {
            discarded: Some(
                discarded
                    .unwrap_or(self.lost_events)
                    .wrapping_add(self.damaged),
            ),
            sequence: Some(sequence.unwrap_or(counted)),
            ..PacketStart::default()
        }
    }

    /// Counts events that were lost to damage: their number is unknown, so it counts one.
    fn count_damage(&mut self) {
        if self.options.repairs {
            self.damaged = self.damaged.wrapping_add(1);
            self.writer.discard(1);
        }
    }

    /// Damage that ends a packet.
    fn damage(&mut self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) {
        self.fault(chunk, event, fault);
        self.count_damage();
    }

    /// Counts an event that cannot be written; what has nothing to do with the event ends it all.
    fn refuse(&mut self, what: &str, error: WriteError) -> Result<(), WriteError> {
        match error {
            WriteError::Field { .. } | WriteError::Misuse(_) => {
                self.done.refuse(what, error.to_string(), 1);
                Ok(())
            }
            error => Err(error),
        }
    }

    fn finish(mut self) -> Result<Done, WriteError> {
        self.end_packet(self.end)?;
        self.writer.finish()?.flush()?;
        Ok(self.done)
    }
}

/// Whether a packet is secured; in the target, options decide that.
fn is_secured(trace: &Trace, packet: &[u8]) -> bool {
    let class = trace.class();
    class.dialect == Dialect::Rfc11 && secure::is_secured(packet, class.native_order())
}

/// A time in nanoseconds; one before the epoch is that.
fn nanos(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(0)
}
