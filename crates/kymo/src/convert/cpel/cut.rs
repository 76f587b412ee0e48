//! Some of the events of one CPEL file, with everything else that is in it.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::sync::Arc;

use kymo_cpel::entries::Entry;
use kymo_cpel::file::File;
use kymo_cpel::recording::Recording as Log;
use kymo_cpel::rewrite::{NewEvents, rewrite_events};
use kymo_machine::ByteOrder;

use super::ticks;
use crate::AnyRecording;
use crate::convert::losses::{Losses, Times};
use crate::convert::pieces::{Bits, Pieces};

/// Writes one CPEL file again with the events that stay. Everything else in the file stays as it is: definitions,
/// strings, symbols, sections of unknown types, the date.
#[derive(Debug)]
pub struct Cut {
    order: ByteOrder,
    clock: Option<NonZeroU32>,
    losses: Arc<Losses>,
}

/// Whether a recording is a CPEL file, some events of which can be [cut out](Cut). Gist files have
/// nothing but events.
pub fn is_cut(recording: &AnyRecording) -> bool {
    matches!(recording, AnyRecording::Cpel(log) if log.header().is_some())
}

impl Cut {
    /// A file in a byte order. With `clock`, the ticks in a second, times are written as they are
    /// read; without, clocks and ticks stay those of the file.
    pub fn new(order: ByteOrder, clock: Option<NonZeroU32>) -> Self {
        Self {
            order,
            clock,
            losses: Arc::new(Losses::default()),
        }
    }

    /// What the file cannot hold.
    pub fn losses(&self) -> &Arc<Losses> {
        &self.losses
    }

    /// Writes the file of which `pieces` stay.
    ///
    /// # Errors
    ///
    /// Those of the output; that it is [no such file](is_cut).
    pub fn write(
        &self,
        pieces: &Pieces,
        recording: &AnyRecording,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let AnyRecording::Cpel(log) = recording else {
            return Err(io::Error::other("it is not a CPEL file"));
        };
        let file = File::open(log.bytes()).map_err(io::Error::other)?;
        let streams = kymo_model::Recording::streams(log).len();
        let mut kept = vec![Bits::default(); streams];
        for (stream, chunk, number) in pieces.places(0) {
            if let Some(position) = log.position(stream, chunk, number) {
                kept[stream].insert(position as u64);
            }
        }
        let kept = &kept;
        let mut streams = (0..streams).peekable();
        // Streams come in the order of their sections.
        let events = |section: usize| {
            let stream = streams.next_if(|&stream| log.section(stream) == section)?;
            let kept = &kept[stream];
            let clock = self.clock.map(NonZeroU32::get);
            let own = log.event_section(stream)?.clock;
            Some(NewEvents {
                clock: clock.or(own).unwrap_or(0),
                count: kept.count(),
                entries: self.entries(log, stream, kept),
            })
        };
        rewrite_events(&file, self.order, events, out)
    }

    /// The events of a stream that stay, as they are written.
    fn entries<'a>(
        &'a self,
        log: &'a Log,
        stream: usize,
        kept: &'a Bits,
    ) -> Box<dyn Iterator<Item = Entry> + 'a> {
        let entries = (0..).zip(log.entries_of(stream).iter());
        let entries = entries.filter(|&(position, _)| kept.contains(position));
        let entries = entries.map(|(_, entry)| entry);
        let Some(clock) = self.clock else {
            return Box::new(entries);
        };
        let mut times = Times::new(Arc::clone(&self.losses));
        Box::new(entries.map(move |entry| {
            let time = log.timestamp(stream, entry.time);
            let nanos = times.next_from_zero(time.map(|time| time.as_nanos()));
            Entry {
                time: ticks(nanos, clock, &self.losses),
                ..entry
            }
        }))
    }
}
