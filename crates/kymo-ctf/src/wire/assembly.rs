//! Packets of one stream, as their fragments come.

use std::collections::BTreeMap;
use std::time::Duration;

use super::envelope::{ALL, Fragment, Range};

/// What a fragment takes beside its bytes, roughly.
const OVERHEAD: usize = 96;

/// A packet of which not all is there.
#[derive(Debug, Default)]
struct Partial {
    size: u32,
    fragment_size: u16,
    fragments: BTreeMap<u32, Box<[u8]>>,
    /// It is larger than what is taken, and never will be whole.
    is_refused: bool,
}

impl Partial {
    fn count(&self) -> u32 {
        Fragment::count(self.size, self.fragment_size)
    }

    fn is_whole(&self) -> bool {
        !self.is_refused && self.fragments.len() == self.count() as usize
    }

    fn cost(&self) -> usize {
        let bytes: usize = self.fragments.values().map(|bytes| bytes.len()).sum();
        bytes + self.fragments.len().max(1) * OVERHEAD
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size as usize);
        for fragment in self.fragments.values() {
            bytes.extend_from_slice(fragment);
        }
        bytes
    }
}

/// What comes out of a stream, in the order of its packets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Packet(Vec<u8>),
    /// Packets that will never come, from the first to the last.
    Lost(u32, u32),
}

/// The packets of a stream: those that wait for others before them.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// The packet that comes out next.
    next: u32,
    /// How many there are, once that is known.
    total: Option<u32>,
    /// The sender no longer has those before this one.
    gone: u32,
    /// The last packet and fragment that has come, in their order.
    high: Option<(u32, u32)>,
    packets: BTreeMap<u32, Partial>,
    /// Since when the next packet is missing while others wait for it.
    gap_since: Option<Duration>,
}

impl Assembly {
    /// A stream of which the first packets are there already.
    pub(super) fn beginning_at(next: u32) -> Self {
        Self {
            next,
            ..Self::default()
        }
    }

    /// How many packets have come out or are given up.
    pub(super) fn next_number(&self) -> u32 {
        self.next
    }

    pub(super) fn total(&self) -> Option<u32> {
        self.total
    }

    pub(super) fn set_total(&mut self, total: u32) {
        self.total.get_or_insert(total);
    }

    /// The sender keeps no packets before this one.
    pub(super) fn set_gone(&mut self, before: u32) {
        self.gone = self.gone.max(before);
    }

    /// Whether all has come out.
    pub(super) fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.next >= total)
    }

    /// Bytes that its packets take.
    pub(super) fn cost(&self) -> usize {
        self.packets.values().map(Partial::cost).sum()
    }

    /// What a fragment would take; 0 where it is not needed.
    pub(super) fn cost_of(&self, fragment: &Fragment<'_>) -> usize {
        let is_late =
            fragment.packet < self.next || self.total.is_some_and(|total| fragment.packet >= total);
        let is_known = self.packets.get(&fragment.packet).is_some_and(|partial| {
            partial.is_refused
                || partial.fragments.contains_key(&fragment.fragment)
                || (partial.size, partial.fragment_size) != (fragment.size, fragment.fragment_size)
        });
        match is_late || is_known {
            true => 0,
            false => fragment.bytes.len() + OVERHEAD,
        }
    }

    /// Adds a fragment that is needed.
    pub(super) fn add(&mut self, fragment: &Fragment<'_>) {
        let partial = self.packets.entry(fragment.packet).or_insert(Partial {
            size: fragment.size,
            fragment_size: fragment.fragment_size,
            fragments: BTreeMap::new(),
            is_refused: false,
        });
        partial
            .fragments
            .insert(fragment.fragment, fragment.bytes.into());
        let place = (fragment.packet, fragment.fragment);
        self.high = self.high.max(Some(place));
    }

    /// Does without the packet of a fragment that is needed: it is too large.
    pub(super) fn refuse(&mut self, fragment: &Fragment<'_>) {
        self.packets.insert(
            fragment.packet,
            Partial {
                size: fragment.size,
                fragment_size: fragment.fragment_size,
                fragments: BTreeMap::new(),
                is_refused: true,
            },
        );
        self.high = self.high.max(Some((fragment.packet, fragment.fragment)));
    }

    /// What comes out next, if that is known, and the bytes that it took.
    pub(super) fn pop(&mut self) -> Option<(Next, usize)> {
        if self
            .packets
            .get(&self.next)
            .is_some_and(|next| next.is_refused)
        {
            return Some(self.lose_until(self.next + 1));
        }
        if self.packets.get(&self.next).is_some_and(Partial::is_whole) {
            let partial = self.packets.remove(&self.next)?;
            self.next += 1;
            self.gap_since = None;
            return Some((Next::Packet(partial.bytes()), partial.cost()));
        }
        (self.next < self.gone).then(|| {
            let whole = |(_, partial): &(&u32, &Partial)| partial.is_whole();
            let next_whole = self.packets.range(self.next..).find(whole);
            let end = next_whole.map_or(self.gone, |(&number, _)| number.min(self.gone));
            self.lose_until(end)
        })
    }

    /// Gives up the packets before `end`, of which there is one.
    fn lose_until(&mut self, end: u32) -> (Next, usize) {
        let rest = self.packets.split_off(&end);
        let lost = std::mem::replace(&mut self.packets, rest);
        let cost = lost.values().map(Partial::cost).sum();
        let first = self.next;
        self.next = end;
        self.gap_since = None;
        (Next::Lost(first, end - 1), cost)
    }

    /// Gives up what is missing before the next packet that is whole or in hand, to make room; and
    /// the packet in hand only where nothing comes before it.
    pub(super) fn make_room(&mut self) -> Option<(Next, usize)> {
        let whole = self.packets.iter().find(|(_, partial)| partial.is_whole());
        let begun = self.high.map_or(0, |(packet, _)| packet);
        let end = whole.map_or(begun, |(&number, _)| number);
        match end > self.next {
            true => Some(self.lose_until(end)),
            false => self.give_up(),
        }
    }

    /// Gives up what is missing before the next whole packet, or if there is none, everything
    /// that was begun or is known to be.
    pub(super) fn give_up(&mut self) -> Option<(Next, usize)> {
        let whole = self.packets.iter().find(|(_, partial)| partial.is_whole());
        let end = match whole {
            Some((&number, _)) => number,
            None => {
                let seen = self.high.map_or(0, |(packet, _)| packet + 1);
                self.total.unwrap_or(seen).max(seen)
            }
        };
        (end > self.next).then(|| self.lose_until(end))
    }

    /// Gives up what is missing before the next packet that is whole, or before the last that has begun to come, once
    /// these have waited for `patience`. Fragments of the packet in hand may still come.
    pub(super) fn give_up_after(
        &mut self,
        now: Duration,
        patience: Duration,
    ) -> Option<(Next, usize)> {
        let whole = self.packets.iter().find(|(_, partial)| partial.is_whole());
        let begun = self.high.map_or(0, |(packet, _)| packet);
        let end = whole.map_or(begun, |(&number, _)| number);
        let end = match self.total {
            // After the end, nothing is in hand.
            Some(total) if whole.is_none() => total,
            _ => end,
        };
        if end <= self.next {
            self.gap_since = None;
            return None;
        }
        let since = *self.gap_since.get_or_insert(now);
        (now.saturating_sub(since) >= patience).then(|| self.lose_until(end))
    }

    /// When what is missing has been so for `patience`; `None` where nothing was missing when
    /// [`give_up_after`](Self::give_up_after) looked last.
    pub(super) fn late_at(&self, patience: Duration) -> Option<Duration> {
        Some(self.gap_since? + patience)
    }

    /// Adds what is missing, as far as it should have come: what lies before something that has come,
    /// and where nothing more comes (`is_stale`), the rest of the packet in hand, too.
    pub(super) fn missing(&self, stream: u32, is_stale: bool, most: usize, to: &mut Vec<Range>) {
        let (end, fragments) = match (self.total, self.high) {
            (Some(total), _) => (total, 0),
            (None, Some((packet, _))) if is_stale => (packet + 1, 0),
            (None, Some((packet, fragment))) => (packet, fragment),
            (None, None) => return,
        };
        let whole = |first: u32, end: u32| Range {
            stream,
            packet: first,
            packets: end - first,
            fragment: 0,
            fragments: ALL,
        };
        let mut next = self.next.max(self.gone);
        for (&number, partial) in self.packets.range(next..) {
            if to.len() >= most || number > end {
                return;
            }
            if number > next {
                to.push(whole(next, number));
            }
            if partial.is_refused {
                next = number + 1;
                continue;
            }
            let count = if number < end {
                partial.count()
            } else {
                fragments
            };
            missing_fragments(stream, number, partial, count, most, to);
            next = number + 1;
        }
        if next < end && to.len() < most {
            to.push(whole(next, end));
        }
    }
}

/// Adds what is missing of the first `count` fragments of a packet.
fn missing_fragments(
    stream: u32,
    packet: u32,
    partial: &Partial,
    count: u32,
    most: usize,
    to: &mut Vec<Range>,
) {
    let mut next = 0;
    let ends = partial
        .fragments
        .keys()
        .copied()
        .take_while(|&at| at < count);
    for at in ends.chain([count]) {
        if to.len() >= most {
            return;
        }
        if at > next {
            to.push(Range {
                stream,
                packet,
                packets: 1,
                fragment: next,
                fragments: at - next,
            });
        }
        next = at + 1;
    }
}
