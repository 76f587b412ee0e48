//! Which events of a packet are out of the order of time, where some are.
//!
//! A wrong time does not show at its own event alone: where events contain only the low bits of their
//! time, those that follow seem to have gone once around, and where it is too late, all are before it
//! for a while. So as few events are taken for wrong as can be, such that the others are in order and
//! within the packet.

use crate::trace::{ChunkCursor, Trace};
use kymo_model::{Chunk, Cursor, Event, Nothing, Recording};

/// Number of states of the search, one for each count of omitted events, from the lowest: wrong times
/// that follow each other and are not recognised at once may be as many.
const STATES: usize = 16;

/// Maximum number of events with a change that are remembered of a packet; the search ends there.
const MOST_STEPS: usize = 1 << 20;

/// What is left of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Numbers of the events that are out of order, ascending.
    pub untimely: Vec<u64>,
    /// How many events are good.
    pub events: u64,
    /// Ticks of the first good event.
    pub first: Option<u64>,
    /// Ticks of the last good event.
    pub last: Option<u64>,
    /// Where it ends in the middle.
    pub end: Option<u64>,
}

/// Times between which the events of a packet are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// What the time of the first event goes on from.
    pub(super) clock: u64,
    /// The earliest and the latest time that an event may have.
    pub(super) floor: u64,
    pub(super) latest: u64,
}

/// The last event that was taken for good: what the next one's time goes on from, and its least
/// time.
#[derive(Clone, Copy, Debug)]
struct State {
    clock: u64,
    least: u64,
}

/// How the states of an event have come from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// For each state, whether it is that of one event left out less before the event, and the
    /// event is left out.
    left_out: u32,
    /// Whether the event is omitted in all states, so that the first state is gone.
    is_shift: bool,
}

/// The step at an event that is in order.
const ORDERLY: Step = Step {
    left_out: (1 << STATES) - 2,
    is_shift: false,
};

/// The events of a packet that are in order, `open` walks them; those that cannot be decoded, and what
/// is behind them, do not count.
pub(super) fn sift<'t>(open: impl Fn() -> ChunkCursor<'t>, span: Span) -> Sifted {
    let mut way = Way::new(span);
    let mut cursor = open();
    let (mut number, mut end) = (0, None);
    while let Ok(Some(event)) = cursor.next_event() {
        if event.visit(&mut Nothing).is_err() {
            break;
        }
        if way.steps.len() >= MOST_STEPS {
            end = Some(number);
            break;
        }
        way.next(number, |clock| event.ticks_from(clock));
        number += 1;
    }
    let untimely = way.untimely(number);
    let events = number - untimely.len() as u64;
    let mut first = None;
    if events > 0 {
        let mut bad = untimely.iter().copied().peekable();
        let mut cursor = open();
        while let Ok(Some(event)) = cursor.next_event() {
            if bad.next_if_eq(&event.number()).is_none() {
                first = event.ticks_from(span.clock);
                break;
            }
        }
    }
    Sifted {
        untimely,
        events,
        first,
        last: (events > 0).then_some(way.states[0].map_or(0, |state| state.least)),
        end,
    }
}

/// Where the events of a packet end by its own time at the end, where that can be relied on: some
/// tracers are known for events behind it.
pub(super) fn end_of_events(trace: &Trace, chunk: &Chunk) -> Option<u64> {
    let clock = trace.streams()[chunk.stream].clock.as_deref();
    let is_end = chunk.end_time.is_none()
        || chunk.end_time
            == chunk
                .end
                .zip(clock)
                .and_then(|(end, clock)| clock.timestamp(end));
    chunk.end.filter(|_| is_end)
}

/// The ways through the events of a packet: with as few left out as can be, with one more, and so
/// on; of those with as many the one that is earliest, since it can go on wherever another one can.
#[derive(Debug)]
struct Way {
    latest: u64,
    /// The first one is always there.
    states: [Option<State>; STATES],
    /// Events at which something else happens than [`ORDERLY`], by number.
    steps: Vec<(u64, Step)>,
}

impl Way {
    fn new(span: Span) -> Self {
        let mut states = [None; STATES];
        states[0] = Some(State {
            clock: span.clock,
            least: span.floor,
        });
        Self {
            latest: span.latest,
            states,
            steps: Vec::new(),
        }
    }

    /// Takes the next event, whose time depends on the time that it goes on from.
    fn next(&mut self, number: u64, ticks_from: impl Fn(u64) -> Option<u64>) {
        let mut next = [None; STATES + 1];
        let mut left_out: u32 = 0;
        for (position, state) in self.states.iter().enumerate() {
            let Some(state) = *state else { continue };
            let ticks = ticks_from(state.clock);
            let ticks = ticks.filter(|ticks| (state.least..=self.latest).contains(ticks));
            if let Some(ticks) = ticks
                && next[position].is_none_or(|other: State| ticks < other.least)
            {
                next[position] = Some(State {
                    clock: ticks,
                    least: ticks,
                });
                left_out &= !(1 << position);
            }
            next[position + 1] = Some(state);
            left_out |= 2 << position;
        }
        let is_shift = next[0].is_none();
        let from = usize::from(is_shift);
        self.states.copy_from_slice(&next[from..from + STATES]);
        let step = Step {
            left_out: left_out >> from & ((1 << STATES) - 1),
            is_shift,
        };
        if step != ORDERLY {
            self.steps.push((number, step));
        }
    }

    /// The numbers of the events that the best path omits, out of `count`.
    fn untimely(&self, count: u64) -> Vec<u64> {
        let mut untimely = Vec::new();
        let mut state: u64 = 0;
        // The first event of those behind, which are done.
        let mut behind = count;
        for &(number, step) in self.steps.iter().rev() {
            let run = behind - number - 1;
            let orderly = run.min(state);
            untimely.extend((0..orderly).map(|back| behind - 1 - back));
            state -= orderly;
            let is_left_out = step.left_out >> state & 1 == 1;
            state += u64::from(step.is_shift);
            if is_left_out {
                untimely.push(number);
                state = state.saturating_sub(1);
            }
            behind = number;
        }
        untimely.extend((0..state.min(behind)).map(|back| behind - 1 - back));
        untimely.reverse();
        untimely
    }
}

#[cfg(test)]
mod tests {
    use kymo_time::Ticks;
    use proptest::prelude::*;

    use super::*;

    /// The numbers of the omitted events among events whose times have `bits` bits, from time 1000 on.
    fn untimely(times: &[u64], bits: u32, latest: u64) -> Vec<u64> {
        let mut way = Way::new(Span {
            clock: 1000,
            floor: 900,
            latest,
        });
        for (number, &ticks) in (0..).zip(times) {
            let low = ticks & (u64::MAX >> (64 - bits));
            way.next(number, |clock| Some(Ticks(clock).advance(low, bits).0));
        }
        way.untimely(times.len() as u64)
    }

    #[test]
    fn a_wrong_time_takes_no_other_event_with_it() {
        let right: Vec<u64> = (0..100).map(|event| 1000 + 10 * event).collect();
        for bits in [8, 12, 64] {
            assert_eq!(untimely(&right, bits, 2000), [0u64; 0]);
            for at in [0, 1, 50, 98] {
                for bit in 5..8 {
                    let mut times = right.clone();
                    times[at] ^= 1 << bit;
                    let is_between = at > 0 && (times[at - 1]..=times[at + 1]).contains(&times[at])
                        || at == 0 && (900..=1010).contains(&times[at]);
                    let left_out = untimely(&times, bits, 2000);
                    match is_between && bits == 64 {
                        true => assert_eq!(left_out, [0u64; 0]),
                        // With few bits, another one around it may be taken for the wrong one.
                        false => assert!(left_out.len() <= 1, "{bits} {at} {bit}: {left_out:?}"),
                    }
                    if bits == 64 && !is_between {
                        assert!(
                            left_out[0].abs_diff(at as u64) <= 1,
                            "{at} {bit}: {left_out:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn all_that_is_beyond_the_packet_is_left_out() {
        assert_eq!(untimely(&[5000; 40], 64, 2000), (0..40).collect::<Vec<_>>());
        let mut times = vec![5000; 40];
        times.extend([1100, 100, 1200]);
        let mut expected: Vec<u64> = (0..40).collect();
        expected.push(41);
        assert_eq!(untimely(&times, 64, 2000), expected);
        assert_eq!(untimely(&[], 64, 2000), [0u64; 0]);
    }

    proptest! {
        /// As few as with the longest part in order, found the slow way.
        #[test]
        fn as_few_are_left_out_as_can_be(times in proptest::collection::vec(850..1200u64, 0..STATES)) {
            let left_out = untimely(&times, 64, 1100);
            let good = |&(number, ticks): &(u64, u64)| {
                !left_out.contains(&number) && ticks > 0
            };
            let kept: Vec<u64> =
                (0..).zip(times.iter().copied()).filter(good).map(|(_, ticks)| ticks).collect();
            prop_assert!(kept.is_sorted());
            prop_assert!(kept.iter().all(|ticks| (900..=1100).contains(ticks)));
            let mut best: Vec<usize> = Vec::new();
            for (at, ticks) in times.iter().enumerate() {
                let is_in = (900..=1100).contains(ticks);
                let before = (0..at).filter(|&before| times[before] <= *ticks);
                let longest = before.map(|before| best[before]).max().unwrap_or(0);
                best.push(if is_in { longest + 1 } else { 0 });
            }
            prop_assert_eq!(kept.len(), best.into_iter().max().unwrap_or(0));
        }
    }
}
