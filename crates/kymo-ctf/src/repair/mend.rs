//! What the header and context of a packet should say, where its events and its neighbours
//! contradict what they say: for repairing.
//!
//! Damage seldom hits two neighbours at once. So a time is believed where it is not before the end
//! of the packet before; events are where both their packet's end and the next one's beginning say
//! so, or, where all of the packet can be decoded, one of the two. Of the events themselves those
//! are wrong that [`sift`] finds.

use std::cell::OnceCell;

use crate::class::Dialect;
use crate::decode::PacketHead;
use crate::trace::{ChunkCursor, Trace};
use kymo_model::{Chunk, Cursor, Event, Fault, Nothing, Recording};

use super::section::Section;
use super::sift::{self, Sifted, Span};

/// Ticks of the clock that a packet should state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// What the events' clock goes on from, where that is not what the packet says.
    pub clock: Option<u64>,
    /// The time at which it begins.
    pub begin: Option<u64>,
    /// The time at which it ends.
    pub end: Option<u64>,
}

/// A packet, as it should be.
#[derive(Clone, Debug)]
pub struct Mended {
    /// Its header and context.
    pub head: PacketHead,
    /// Its times.
    pub times: Times,
    /// Whether something of it is not what the packet says.
    pub is_changed: bool,
    /// The number of its events, if all of them are good.
    pub whole: Option<u64>,
    /// The remaining events, if not all of them are good.
    pub sifted: Sifted,
    /// That it says something else than its index file, if so.
    pub contradiction: Option<Fault>,
    /// Whether its times contradict its events or those of its neighbours, and nothing shows that
    /// it is in the right position: the times of its events are then unknown.
    pub is_lost: bool,
}

/// Goes through the packets of a stream.
#[derive(Debug, Default)]
pub struct Mender {
    /// Ticks at which the packet before ends.
    floor: u64,
    discarded: Option<u64>,
    sequence: Option<u64>,
    /// What the packet before says its number is.
    said: Option<u64>,
    /// The counters of its section, once they are needed, where its streams count together.
    section: OnceCell<Option<Section>>,
}

/// What decoding a packet from some ticks on has shown.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// Whether all of it could be decoded, and no event is out of order or beyond all bounds.
    is_whole: bool,
    events: u64,
    first: Option<u64>,
    last: Option<u64>,
    /// Events beyond the strict bound.
    beyond: u64,
}

/// The times between which the events of a packet may be.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    floor: u64,
    /// What the packet's end and the next one's beginning say, where they can be.
    strict: u64,
    wide: u64,
}

/// Larger packets are not decoded again and again, in bytes.
const MOST_TRIED: u64 = 1 << 24;

impl Mender {
    /// What the next packet should say; `head` is what it says.
    pub fn next(&mut self, trace: &Trace, chunk: &Chunk, head: &PacketHead) -> Mended {
        let next = trace.chunk(chunk.stream, chunk.number + 1);
        let next_head = next
            .as_ref()
            .and_then(|next| trace.head(next.stream, next.number).ok());
        let next_head = next_head.map(|(head, _)| head);
        let (times, heard, sifted) = self.times(trace, chunk, next.as_ref());
        let is_lost = match self.is_in_place(head, next_head.as_ref()) {
            Some(true) => false,
            Some(false) => times.clock.is_some() || chunk.begin > chunk.end.or(chunk.begin),
            None => times.clock.is_some(),
        };
        let mut mended = head.clone();
        let number = |counter: Counter| counter.map(|(number, _)| number);
        let next = |counter_of: fn(&PacketHead) -> Counter| next_head.as_ref().and_then(counter_of);
        let sequence = |head: &PacketHead| head.sequence;
        mended.sequence = counter(self.sequence, sequence(head), next(sequence), 1);
        if let Some((said, bits)) = head.sequence.filter(|_| mended.sequence != head.sequence)
            && let Some(section) = self.section(trace, chunk.stream)
            && let Some(found) = section.number(self.sequence, said, number(next(sequence)))
        {
            mended.sequence = Some((found, bits));
        }
        let discarded = |head: &PacketHead| head.discarded;
        mended.discarded = counter(self.discarded, discarded(head), next(discarded), 0);
        if mended.discarded != head.discarded
            && let Some(at) = number(mended.sequence)
            && let Some(section) = self.section(trace, chunk.stream)
        {
            let (before, behind) = section.discarded_around(at);
            let behind = behind
                .zip(head.discarded)
                .map(|(behind, (_, bits))| (behind, bits));
            mended.discarded = counter(before, head.discarded, behind, 0);
        }
        if !is_lost {
            (self.sequence, self.discarded) = (number(mended.sequence), number(mended.discarded));
            self.said = number(head.sequence);
            let last = heard.last.max(times.end).unwrap_or(0);
            self.floor = self.floor.max(last);
        }
        let (_, contradiction) = trace.salvage(chunk);
        let is_changed = contradiction.is_some()
            || times.clock.is_some()
            || (times.begin, times.end) != (chunk.begin, chunk.end)
            || (mended.sequence, mended.discarded) != (head.sequence, head.discarded);
        Mended {
            head: mended,
            times,
            is_changed,
            whole: heard.is_whole.then_some(heard.events),
            sifted,
            contradiction,
            is_lost,
        }
    }

    /// Whether the number of a packet, if it has one, shows that it belongs between its neighbours.
    fn is_in_place(&self, head: &PacketHead, next: Option<&PacketHead>) -> Option<bool> {
        let (now, bits) = head.sequence?;
        let next = next.and_then(|next| next.sequence);
        let is_behind = self.said.is_none_or(|before| far(before, now, bits) > 0);
        let is_before = next.is_none_or(|(next, _)| far(now, next, bits) > 0);
        Some(is_behind && is_before)
    }

    /// The counters of all streams of a stream's section, if they count together.
    fn section(&self, trace: &Trace, stream: usize) -> Option<&Section> {
        let is_rfc = trace.class().dialect == Dialect::Rfc11;
        let section = || is_rfc.then(|| Section::of(trace, stream)).flatten();
        self.section.get_or_init(section).as_ref()
    }

    fn times(&self, trace: &Trace, chunk: &Chunk, next: Option<&Chunk>) -> (Times, Heard, Sifted) {
        let floor = self.floor;
        let end = sift::end_of_events(trace, chunk);
        let next = next.and_then(|next| next.begin);
        let possible = [end, next].into_iter().flatten().filter(|&at| at >= floor);
        let bounds = Bounds {
            floor,
            strict: possible.clone().min().unwrap_or(u64::MAX),
            wide: possible.max().unwrap_or(u64::MAX),
        };
        let mut clock = None;
        let mut heard = hear(trace, chunk, None, bounds);
        let mut sifted = match heard.is_whole && heard.beyond == 0 {
            true => Sifted::default(),
            false => sifted(trace, chunk, None, bounds),
        };
        // If others come back with an event that is left out, it is not the packet's end that is wrong.
        heard.is_whole &= heard.beyond <= sifted.untimely.len() as u64;
        let is_within = |at: u64| (floor..=bounds.wide).contains(&at);
        if let Some(begin) = chunk.begin
            && (!is_within(begin) || heard.events == 0)
            && !(heard.is_whole && is_within(begin))
            && chunk.bytes <= MOST_TRIED
        {
            // Mostly a single bit is wrong; or the packet begins where the one before ends.
            let near = (0..64)
                .map(|bit| begin ^ 1 << bit)
                .filter(|&at| is_within(at));
            let late = |begin: u64, heard: &Heard| {
                let before = heard.first.map_or(0, |first| first.saturating_sub(begin));
                let behind = end.zip(heard.last);
                before.saturating_add(behind.map_or(0, |(end, last)| end.saturating_sub(last)))
            };
            let kept = heard.events.max(sifted.events);
            // That the time of one event is wrong is as likely as that of the packet.
            let least = match is_within(begin) && kept > 0 {
                true => kept + 2,
                false => kept,
            };
            let mut best = (least, u64::MAX);
            for from in near.chain([floor]) {
                let found = hear(trace, chunk, Some(from), bounds);
                let late = late(from, &found);
                if found.events > best.0 || found.events == best.0 && late < best.1 {
                    best = (found.events, late);
                    (clock, heard) = (Some(from), found);
                }
            }
        }
        let mut latest = bounds.wide;
        if heard.is_whole {
            sifted = Sifted::default();
        } else {
            if clock.is_some() {
                sifted = self::sifted(trace, chunk, clock, bounds);
            }
            (heard.events, heard.first, heard.last) = (sifted.events, sifted.first, sifted.last);
            latest = bounds.strict;
        }
        let begin = chunk.begin.map(|begin| {
            let most = heard.first.unwrap_or(latest.max(floor));
            clock.unwrap_or(begin).clamp(floor, most.max(floor))
        });
        let end = chunk.end.map(|end| {
            let least = heard.last.max(begin).unwrap_or(floor).max(floor);
            let most = next.filter(|&next| next >= least).unwrap_or(u64::MAX);
            // An end before the packet says nothing; one behind its neighbour says too much.
            end.clamp(least, most)
        });
        (Times { clock, begin, end }, heard, sifted)
    }
}

impl Times {
    /// The events of the packet, at the times that they should have.
    pub fn cursor<'t>(&self, trace: &'t Trace, chunk: &Chunk) -> ChunkCursor<'t> {
        cursor(trace, chunk, self.clock)
    }
}

fn cursor<'t>(trace: &'t Trace, chunk: &Chunk, clock: Option<u64>) -> ChunkCursor<'t> {
    let (mut cursor, _) = trace.salvage(chunk);
    if let Some(clock) = clock {
        cursor.set_clock(clock);
    }
    cursor
}

/// The events of a packet that are good, where not all are; its clock begins with some ticks, unless
/// `clock` is `None`: then with its own.
fn sifted(trace: &Trace, chunk: &Chunk, clock: Option<u64>, bounds: Bounds) -> Sifted {
    let packet = trace.packet(chunk.stream, chunk.number);
    let span = Span {
        clock: clock.unwrap_or_else(|| packet.map_or(0, |packet| packet.clock)),
        floor: bounds.floor,
        latest: bounds.strict,
    };
    sift::sift(|| cursor(trace, chunk, clock), span)
}

/// Decodes a packet whose clock begins with `clock` ticks, by default with its own.
fn hear(trace: &Trace, chunk: &Chunk, clock: Option<u64>, bounds: Bounds) -> Heard {
    let mut cursor = cursor(trace, chunk, clock);
    let mut all = Heard {
        is_whole: true,
        ..Heard::default()
    };
    // Those before the first one beyond the strict bound.
    let mut strict = None;
    loop {
        let event = match cursor.next_event() {
            Ok(Some(event)) => event,
            Ok(None) => break,
            Err(_) => {
                all.is_whole = false;
                break;
            }
        };
        let ticks = event.ticks();
        let is_beyond = ticks.is_some_and(|ticks| ticks > bounds.wide);
        if is_beyond || event.visit(&mut Nothing).is_err() {
            all.is_whole = false;
            break;
        }
        if let Some(ticks) = ticks {
            if ticks < all.last.unwrap_or(bounds.floor) {
                all.is_whole = false;
                continue;
            }
            if ticks > bounds.strict {
                strict.get_or_insert(all);
                all.beyond += 1;
            }
            all.first.get_or_insert(ticks);
            all.last = Some(ticks);
        }
        all.events += 1;
    }
    match (all.is_whole, strict) {
        (false, Some(strict)) => Heard {
            is_whole: false,
            ..strict
        },
        _ => all,
    }
}

/// A counter as it is in a packet, and the bits that it has there.
type Counter = Option<(u64, u32)>;

/// How far it is from one number of a counter to another, with sign, of as many bits as the counter has.
fn far(from: u64, to: u64, bits: u32) -> i64 {
    let unused = 64u32.saturating_sub(bits).min(63);
    (to.wrapping_sub(from) << unused).cast_signed() >> unused
}

/// What a counter should say that grows by `step` at least from packet to packet: the same, unless
/// it leaves the way from the packet before to the next one, and these two agree.
fn counter(before: Option<u64>, now: Counter, next: Counter, step: u64) -> Counter {
    let (number, bits) = now?;
    let unused = 64u32.saturating_sub(bits).min(63);
    let far = |from: u64, to: u64| far(from, to, bits);
    let mask = u64::MAX >> unused;
    let next = next.map(|(next, _)| next);
    let step = step.cast_signed();
    let mended = match (before, next) {
        (Some(before), Some(next)) => {
            let is_way = far(before, next) >= 2 * step;
            let is_on_it = far(before, number) >= step && far(number, next) >= step;
            (is_way && !is_on_it).then(|| before.wrapping_add_signed(step))
        }
        (None, Some(next)) => (far(number, next) < step).then(|| next.wrapping_add_signed(-step)),
        (Some(before), None) => {
            (far(before, number) < step).then(|| before.wrapping_add_signed(step))
        }
        (None, None) => None,
    };
    Some((mended.map_or(number, |mended| mended & mask), bits))
}

#[cfg(test)]
mod tests {
    use super::counter;

    #[test]
    fn a_counter_that_comes_back_is_mended() {
        let mended = |before, now, next, step| {
            let number = |number: u64| (number, 8);
            counter(before, Some(number(now)), Option::map(next, number), step).map(|(now, _)| now)
        };
        // Packet numbers: as expected, damaged, with missing packets, wrapped around, restarted.
        assert_eq!(mended(Some(4), 5, Some(6), 1), Some(5));
        assert_eq!(mended(Some(4), 69, Some(6), 1), Some(5));
        assert_eq!(mended(Some(4), 4, Some(6), 1), Some(5));
        assert_eq!(mended(Some(4), 8, Some(12), 1), Some(8));
        assert_eq!(mended(Some(254), 255, Some(0), 1), Some(255));
        assert_eq!(mended(Some(254), 127, Some(0), 1), Some(255));
        assert_eq!(mended(Some(100), 0, Some(1), 1), Some(0));
        // At both ends.
        assert_eq!(mended(None, 70, Some(7), 1), Some(6));
        assert_eq!(mended(None, 5, Some(7), 1), Some(5));
        assert_eq!(mended(Some(7), 7, None, 1), Some(8));
        assert_eq!(mended(None, 7, None, 1), Some(7));
        // Discarded events.
        assert_eq!(mended(Some(4), 4, Some(4), 0), Some(4));
        assert_eq!(mended(Some(4), 68, Some(4), 0), Some(4));
        assert_eq!(mended(Some(4), 5, Some(9), 0), Some(5));
        assert_eq!(counter(None, None, None, 0), None);
    }
}
