//! Whether the events of a stream are in the order of time.

use kymo_model::{Chunk, Event, EventBlock, EventMark, Fault, FaultCode, FaultReport, Recording};

/// The order of the events of a chunk, or of a part of one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order {
    first: Option<EventMark>,
    last_ticks: u64,
    /// The first event that goes back in time.
    backwards: Option<EventMark>,
}

impl Order {
    /// The order of the events that a cursor has met on its way over a block.
    pub(crate) fn of_block(block: &EventBlock) -> Self {
        Self {
            first: block.first,
            last_ticks: block.last_ticks,
            backwards: block.backwards,
        }
    }

    /// Adds the next event.
    #[inline]
    pub(crate) fn add<E: Event>(&mut self, event: &E) {
        let Some(ticks) = event.ticks() else {
            return;
        };
        if ticks < self.last_ticks || self.first.is_none() {
            self.note(EventMark {
                ticks,
                number: event.number(),
                class: event.class_index(),
                bit: event.begin_bit(),
            });
        }
        self.last_ticks = ticks;
    }

    #[cold]
    fn note(&mut self, mark: EventMark) {
        if self.first.is_none() {
            self.first = Some(mark);
        } else if self.backwards.is_none() {
            self.backwards = Some(mark);
        }
    }

    /// Ticks of the last event, if there is one.
    pub(crate) fn last_ticks(&self) -> Option<u64> {
        self.first.map(|_| self.last_ticks)
    }

    /// The first event that goes back in time; `before` are the ticks of the last event of the
    /// stream before these.
    pub(crate) fn backwards(&self, before: Option<u64>) -> Option<EventMark> {
        self.first
            .filter(|first| before.is_some_and(|before| first.ticks < before))
            .or(self.backwards)
    }
}

/// The fault that an event goes back in time; `None` where the times of its packet have
/// shown it when the recording was opened: once is enough.
pub(crate) fn report<R: Recording>(mark: &EventMark, of: &R, chunk: &Chunk) -> Option<FaultReport> {
    // What was added to a capture while it was open is behind what was there.
    if of.format().name == "collectd" {
        return None;
    }
    let fault = Fault::new(FaultCode::NotMonotonic, mark.bit, mark.ticks);
    let report = of.report(chunk, Some((mark.number, mark.class)), fault);
    let is_known = of.faults().iter().any(|known| {
        known.code == report.code && known.file == report.file && known.packet == report.packet
    });
    (!is_known).then_some(report)
}
