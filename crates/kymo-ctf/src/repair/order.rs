//! Whether the events of a stream are in the order of time, where packets are kept as they are.

use crate::trace::Trace;
use kymo_model::{Chunk, Cursor, Event, Recording};

use super::sift::{self, Sifted, Span};

/// The events of a packet.
#[derive(Debug, Default)]
pub struct Judged {
    /// The number of events, if all of them are good.
    pub whole: Option<u64>,
    /// What is left of them, where not all are good.
    pub sifted: Sifted,
    /// Whether the packet says itself that it begins before the events of the packet before, which
    /// opening has reported: its events are where it says.
    pub is_apart: bool,
}

/// Goes through the packets of a stream.
#[derive(Debug, Default)]
pub struct Order {
    /// Ticks of the last good event so far.
    last: u64,
}

impl Order {
    /// Judges the next packet. Its events are out of order where time goes back in it, from the
    /// packet before to it, or from it to the next one: there it is this packet that is wrong only if
    /// an event of it is beyond the packet's end. Events that are beyond it and go nowhere back count as
    /// wrong only if some of them come back when others are left out: else it may be the end that is.
    pub fn next(&mut self, trace: &Trace, chunk: &Chunk) -> Judged {
        let apart = chunk.begin.filter(|&begin| begin < self.last);
        let floor = apart.unwrap_or(self.last);
        let mut judged = Judged {
            is_apart: apart.is_some(),
            ..Judged::default()
        };
        let mut cursor = trace.cursor(chunk);
        let end = sift::end_of_events(trace, chunk)
            .filter(|&end| end >= floor && chunk.begin.is_none_or(|begin| end > begin));
        let (mut events, mut beyond, mut last, mut goes_back) = (0, 0, floor, false);
        let is_decoded = loop {
            match cursor.next_event() {
                Ok(Some(event)) => {
                    if let Some(ticks) = event.ticks() {
                        goes_back |= ticks < last;
                        last = ticks;
                        beyond += u64::from(end.is_some_and(|end| ticks > end));
                    }
                    events += 1;
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let next = match end {
            // Only then anything depends on it.
            Some(end) if last <= end && !goes_back => None,
            _ => first_of_next(trace, chunk),
        };
        goes_back |= events > 0 && next.is_some_and(|next| next < last && next >= floor);
        if (goes_back || beyond > 0)
            && let Some(packet) = trace.packet(chunk.stream, chunk.number)
        {
            let span = Span {
                clock: packet.clock,
                floor,
                latest: end
                    .or(next.filter(|&next| next >= floor))
                    .unwrap_or(u64::MAX),
            };
            let sifted = sift::sift(|| trace.cursor(chunk), span);
            if goes_back || !is_decoded || (sifted.untimely.len() as u64) < beyond {
                last = sifted.last.unwrap_or(floor);
                judged.sifted = sifted;
            }
        }
        let is_good = judged.sifted.untimely.is_empty() && judged.sifted.end.is_none();
        judged.whole = (is_decoded && is_good).then_some(events);
        self.last = last;
        judged
    }
}

/// Ticks of the first event of the packet behind one.
fn first_of_next(trace: &Trace, chunk: &Chunk) -> Option<u64> {
    let next = trace.chunk(chunk.stream, chunk.number + 1)?;
    trace.cursor(&next).next_event().ok()??.ticks()
}
