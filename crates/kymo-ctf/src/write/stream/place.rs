//! The place of an event in a packet, and the header that goes before its fields.

use kymo_time::Ticks;

use super::super::buffer::Buffer;
use super::super::encode::{Encode, Scratch, Stop};
use super::super::encoder::Encoder;
use super::super::error::WriteError;
use super::super::head::{Members, Reported};
use crate::decode::EventDecoder;

/// Writes the fields of an event in their place.
pub(super) type Write<'w, R> = dyn FnMut(Place<'_>) -> Result<(R, Keep), Stop> + 'w;

/// Whether an event stays.
pub(super) enum Keep {
    Yes,
    No,
}

/// Where the fields of an event go.
pub(super) struct Place<'p> {
    pub(super) encoder: &'p Encoder,
    pub(super) event: &'p EventDecoder,
    pub(super) buffer: &'p mut Buffer,
    pub(super) scratch: &'p mut Scratch,
    pub(super) limit: u64,
}

impl Place<'_> {
    /// Writes the header of an event.
    pub(super) fn header(
        &mut self,
        stream_class: usize,
        reported: &Reported,
        members: &Members,
        lenient: bool,
    ) -> Result<(), Stop> {
        let compiled = &self.encoder.decoder.streams[stream_class];
        let buffer = &mut *self.buffer;
        if let (Some(fast), Some(ticks)) = (&compiled.fast_header, reported.ticks) {
            buffer.reserve(buffer.pos + fast.most_bits());
            let at = buffer.pos;
            let clock = Ticks(reported.clock);
            buffer.pos = fast.write(at, reported.id, clock, ticks, |at, bits, order, value| {
                buffer.put(at, bits, order, value);
            });
            buffer.order = None;
            return match buffer.pos > self.limit {
                true => Err(Stop::Full),
                false => Ok(()),
            };
        }
        let forms = &self.encoder.streams[stream_class].forms;
        let before = buffer.mark();
        for form in 0..forms.count() {
            let mut encode = Encode::new(
                &compiled.event_header,
                &compiled.header_schema,
                self.buffer,
                self.scratch,
                self.limit,
                lenient,
            );
            let fits = forms.write(form, &mut encode, reported, members);
            match encode.finish() {
                Ok(()) if fits => return Ok(()),
                Err(Stop::Full) => return Err(Stop::Full),
                // What the last form says is as good as any.
                Err(stop) if fits && form + 1 == forms.count() => return Err(stop),
                _ => self.buffer.rewind(before),
            }
        }
        let Reported { id, ticks, clock } = *reported;
        let at = ticks.map_or(String::new(), |ticks| {
            format!(" at {ticks} ticks, {clock} being those before")
        });
        Err(Stop::Error(WriteError::Misuse(format!(
            "the header of events cannot hold that this one has class {id}{at}"
        ))))
    }
}
