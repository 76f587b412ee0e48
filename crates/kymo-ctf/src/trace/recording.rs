//! A trace as a recording.

use std::path::Path;
use std::sync::Arc;

use kymo_model::batch::Place;
use kymo_model::{
    Chunk, Drift, EventClass, Fault, FaultCode, FaultReport, FieldId, Format, Narrowed, Recording,
    RefreshError, Refreshed, Shift, ShiftError, StreamInfo, Visitor,
};
use kymo_time::Origin;

use super::cursor::ChunkCursor;
use super::{Trace, report};
use crate::class::Dialect;

impl Recording for Trace {
    type Cursor<'a> = ChunkCursor<'a>;

    fn path(&self) -> &Path {
        &self.path
    }

    fn format(&self) -> Format {
        Format {
            name: "ctf",
            version: match self.metadata.class.dialect {
                Dialect::Rfc11 => "1.1",
                Dialect::Ctf18 => "1.8",
                Dialect::Ctf2 => "2.0",
            },
        }
    }

    fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&self.name)
    }

    fn uid(&self) -> Option<&str> {
        self.metadata.class.uid.as_deref()
    }

    fn streams(&self) -> &[StreamInfo] {
        &self.infos
    }

    fn event_classes(&self) -> &[EventClass] {
        self.decoder.event_classes()
    }

    fn shift(&mut self, shift: Shift) -> Result<(), ShiftError> {
        self.shift_nanos = self.shift_nanos.saturating_add(shift.nanos);
        let drift = self.drift;
        let class = &mut self.metadata.class;
        for (clock, unshifted) in class.clocks.iter_mut().zip(&self.unshifted) {
            let corrected = drift.and_then(|drift| unshifted.corrected(drift.pivot, drift.parts));
            let corrected = corrected.map(|(corrected, _)| corrected);
            let mut shifted = corrected
                .as_ref()
                .unwrap_or(unshifted)
                .shifted(self.shift_nanos);
            shifted.origin = match shift.from_unix_epoch {
                true => Origin::UnixEpoch,
                false => clock.origin.clone(),
            };
            *clock = Arc::new(shifted);
        }
        self.decoder.set_clocks(class);
        for (info, stream) in self.infos.iter_mut().zip(&self.streams) {
            info.clock = class.stream_clock(stream.class);
        }
        Ok(())
    }

    fn correct_drift(&mut self, drift: Drift) -> Result<Option<u64>, ShiftError> {
        let pivot = i128::from(drift.pivot) - self.shift_nanos;
        let pivot = i64::try_from(pivot).map_err(|_| ShiftError)?;
        let corrected = self.unshifted.iter().map(|clock| {
            let (_, rest) = clock.corrected(pivot, drift.parts).ok_or(ShiftError)?;
            Ok(rest)
        });
        let rests: Vec<u64> = corrected.collect::<Result<_, _>>()?;
        self.drift = Some(Drift { pivot, ..drift });
        self.shift(Shift::default())?;
        Ok(rests.into_iter().max())
    }

    fn refresh(&mut self) -> Result<Refreshed, RefreshError> {
        self.refresh_with(Vec::new())
    }

    fn first_chunk(&self, stream: usize) -> usize {
        self.streams.get(stream).map_or(0, |stream| stream.first)
    }

    fn chunk_count(&self, stream: usize) -> usize {
        self.streams
            .get(stream)
            .map_or(0, |stream| stream.first + stream.packets.len())
    }

    fn chunk(&self, stream: usize, number: usize) -> Option<Chunk> {
        self.chunks_from(stream, number).next()
    }

    fn chunks(&self, stream: usize) -> impl Iterator<Item = Chunk> {
        self.chunks_from(stream, self.first_chunk(stream))
    }

    fn content_bits(&self, chunk: &Chunk) -> u64 {
        self.packet_of(chunk)
            .map_or(0, |(_, packet)| packet.content_bits)
    }

    fn cursor(&self, chunk: &Chunk) -> ChunkCursor<'_> {
        let cursor = self
            .packet_of(chunk)
            .map(|(class, packet)| packet.cursor(self.reader(), class));
        match cursor {
            Some(Ok(packet)) => ChunkCursor {
                packet: Some(packet),
                fault: None,
            },
            Some(Err(fault)) => ChunkCursor {
                packet: None,
                fault: Some(fault),
            },
            None => ChunkCursor {
                packet: None,
                fault: None,
            },
        }
    }

    fn narrow(&self, wanted: &dyn Fn(usize, FieldId) -> bool) -> Narrowed {
        Narrowed::new(Arc::new(self.decoder.narrow(wanted)))
    }

    fn place(&self, class: usize, field: FieldId) -> Option<Place> {
        self.decoder.place(class, field)
    }

    fn narrow_cursor(&self, chunk: &Chunk, narrowed: &Narrowed) -> ChunkCursor<'_> {
        let mut cursor = self.cursor(chunk);
        if let (Some(packet), Some(programs)) = (&mut cursor.packet, narrowed.get()) {
            packet.narrow(programs);
        }
        cursor
    }

    fn visit_packet<V: Visitor>(&self, chunk: &Chunk, visitor: &mut V) -> Result<(), Fault> {
        let Some((_, packet)) = self.packet_of(chunk) else {
            return Ok(());
        };
        self.decoder
            .visit_packet(packet.fetched(&self.files)?, visitor)
            .map(|_| ())
    }

    fn faults(&self) -> &[FaultReport] {
        &self.faults
    }

    fn report(&self, chunk: &Chunk, event: Option<(u64, usize)>, fault: Fault) -> FaultReport {
        let place = self.packet_of(chunk);
        let file = place.and_then(|(_, packet)| self.files.get(packet.file as usize));
        let event = match event {
            Some((number, class)) => Some((number, Some(class))),
            None => self.faulty_event(chunk),
        };
        let classes = self.event_classes();
        let schema = match (event, place) {
            (Some((_, Some(class))), _) => classes.get(class).map(|class| &class.schema),
            // All classes of a stream class have the same event header.
            (Some((_, None)), Some((class, _))) => {
                let id = self.metadata.class.streams[class].id;
                let class = classes.iter().find(|class| class.stream_class == id);
                class.map(|class| &class.schema)
            }
            (None, Some((class, _))) => Some(&**self.decoder.packet_schema(class)),
            (_, None) => None,
        };
        FaultReport {
            code: fault.code,
            file: file.map_or_else(
                || Arc::new(self.path.clone()),
                |file| Arc::clone(&file.path),
            ),
            offset: place.map_or(0, |(_, packet)| {
                // Bits of what was decompressed or decrypted have no place in the file.
                match packet.is_transformed(&self.metadata.class, &self.files) {
                    true => packet.offset,
                    false => packet.offset + fault.bit / 8,
                }
            }),
            packet: place.map(|(_, packet)| u64::from(packet.number)),
            event: event.map(|(number, _)| number),
            field: fault
                .field
                .zip(schema)
                .and_then(|(field, schema)| report::field_path(schema, field)),
            message: match file {
                Some(file) if fault.code == FaultCode::Unreadable => report::unreadable(file),
                _ => report::message(&fault),
            },
        }
    }

    fn is_packet_bookkeeping(&self, stream: usize, field: FieldId) -> bool {
        let class = self
            .streams
            .get(stream)
            .and_then(|stream| self.bookkeeping.get(stream.class));
        class
            .and_then(|fields| fields.get(field.index()))
            .copied()
            .unwrap_or(false)
    }
}
