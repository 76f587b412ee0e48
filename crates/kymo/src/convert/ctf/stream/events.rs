//! Writes the events of a packet: their bits where these are the same, else their values.

use kymo_ctf::class::Dialect;
use kymo_ctf::repair::Sifted;
use kymo_ctf::trace::{ChunkCursor, Trace};
use kymo_ctf::write::{Encode, EventId, RawEvent, WriteError};
use kymo_model::{Chunk, Cursor, Event, Fault, FaultCode, Recording, Scope};

use super::Scribe;
use crate::convert::ctf::nested::Nested;
use crate::filter::name_of;

impl Scribe<'_, '_> {
    /// Leaves out an event that is out of the order of time.
    fn untimely(&mut self, chunk: &Chunk, at: Option<(u64, usize)>, fault: Fault, name: &str) {
        let input = self.job.input;
        self.done.fault(|| {
            let mut report = input.report(chunk, at, fault);
            report.message = format!(
                "the event's time, {} ticks, is out of order with the events around it, or out of the time of \
                 its packet: it is left out",
                fault.found
            );
            report
        });
        let problem = "their times are out of order, or out of the time of their packet";
        self.done.refuse(name, problem.to_owned(), 1);
        self.all_copied = false;
        self.count_damage();
    }

    /// The events of a packet of a trace, but those that are sifted out; `clock` is what the time of the
    /// first one goes on from.
    pub(super) fn trace_events(
        &mut self,
        trace: &Trace,
        chunk: &Chunk,
        mut cursor: ChunkCursor<'_>,
        sifted: &Sifted,
        mut clock: u64,
    ) -> Result<(), WriteError> {
        let source = self.source;
        let class = trace.stream_class(chunk.stream);
        let agreement = &source.agreements[class];
        let stream = &trace.class().streams[class];
        let has_more = stream.event_header.as_ref().is_some_and(has_other_fields);
        let before: usize = trace.class().streams[..class]
            .iter()
            .map(|stream| stream.events.len())
            .sum();
        let mut untimely = sifted.untimely.iter().copied().peekable();
        loop {
            let event = match cursor.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(fault) => {
                    self.damage(chunk, None, fault);
                    return Ok(());
                }
            };
            let at = Some((event.number(), event.class_index()));
            let is_end = sifted.end == Some(event.number());
            if is_end || untimely.next_if_eq(&event.number()).is_some() {
                let ticks = event.ticks().unwrap_or_default();
                let fault = Fault::new(FaultCode::NotMonotonic, event.begin_bit(), ticks);
                let name = name_of(event.class()).to_owned();
                self.untimely(chunk, at, fault, &name);
                if is_end {
                    return Ok(());
                }
                // Where events contain only some bits of their time, the others go on from the good ones.
                cursor.set_clock(clock);
                continue;
            }
            clock = event.ticks().unwrap_or(clock);
            let wanted = match self.worker.accepts(&event) {
                Ok(wanted) => wanted,
                Err(fault) => {
                    self.damage(chunk, at, fault);
                    return Ok(());
                }
            };
            if !wanted {
                continue;
            }
            let id = source.events[event.class_index()];
            let ticks = self.ticks(&event);
            if has_more {
                let schema = trace.decoder().header_schema(class);
                let members = self.writer.header_members();
                // The cursor has been through it.
                let _ = event.visit_header(members.decoded(schema));
            }
            let in_stream = event.class_index() - before;
            let mut copied = Ok(false);
            if agreement.events.get(in_stream) == Some(&true) {
                let (fields, end) = match event.extent() {
                    Ok(extent) => extent,
                    Err(fault) => {
                        self.damage(chunk, at, fault);
                        return Ok(());
                    }
                };
                let raw = RawEvent {
                    data: event.packet_bytes(),
                    fields,
                    end,
                    align: agreement.align,
                    order: agreement.order,
                };
                copied = self.writer.copied(id, ticks, &raw);
            }
            let written = match copied {
                Ok(true) => Ok(Ok(())),
                Ok(false) => self.visited(id, ticks, &event),
                Err(error) => Err(error),
            };
            match written {
                Ok(Ok(())) => self.done.events += 1,
                Ok(Err(fault)) => {
                    self.damage(chunk, at, fault);
                    return Ok(());
                }
                Err(error) => self.refuse(name_of(event.class()), error)?,
            }
        }
    }

    /// Writes an event by its values.
    fn visited<E: Event>(
        &mut self,
        id: EventId,
        ticks: Option<u64>,
        event: &E,
    ) -> Result<Result<(), Fault>, WriteError> {
        let schema = &event.class().schema;
        let is_nested = self.plan.model.dialect == Dialect::Rfc11
            && schema.root(Scope::SpecificContext).is_some();
        self.writer
            .visited(id, ticks, |encode: &mut Encode<'_>| match is_nested {
                true => event.visit(&mut Nested::new(encode, schema)),
                false => event.visit(encode),
            })
    }

    /// The events of a chunk of another format.
    pub(super) fn events(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        let input = self.job.input;
        let mut cursor = input.cursor(chunk);
        loop {
            let event = match cursor.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(()),
                Err(fault) => {
                    self.fault(chunk, None, fault);
                    return Ok(());
                }
            };
            let at = Some((event.number(), event.class_index()));
            let written = match self.worker.accepts(&event) {
                Ok(false) => continue,
                Ok(true) => {
                    let id = self.source.events[event.class_index()];
                    let ticks = self.ticks(&event);
                    self.visited(id, ticks, &event)
                }
                Err(fault) => Ok(Err(fault)),
            };
            match written {
                Ok(Ok(())) => self.done.events += 1,
                Ok(Err(fault)) => {
                    self.fault(chunk, at, fault);
                    return Ok(());
                }
                Err(error) => self.refuse(name_of(event.class()), error)?,
            }
        }
    }
}

/// Whether an event header holds something other than class, time and what selects them.
fn has_other_fields(class: &kymo_ctf::class::FieldClass) -> bool {
    let parts = class.parts();
    let is_compound = matches!(
        class,
        kymo_ctf::class::FieldClass::Struct { .. }
            | kymo_ctf::class::FieldClass::Variant { .. }
            | kymo_ctf::class::FieldClass::Optional { .. }
    );
    match is_compound {
        true => parts.into_iter().any(has_other_fields),
        false => class.roles().is_empty(),
    }
}
