//! Values that come on two ways.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher;

use kymo_time::CdTime;

use crate::Identifier;

/// Finds values that were received before, among the last ones.
///
/// Values are the same that have the same name and the same time: whatever they are, a server can
/// keep one of them only. Names are remembered as 128 bits of a keyed hash.
#[derive(Clone, Debug)]
pub struct Repeats {
    hashers: [RandomState; 2],
    room: usize,
    seen: HashSet<[u64; 2]>,
    order: VecDeque<[u64; 2]>,
}

impl Repeats {
    /// Remembers the last `room` lists of values, of some 40 bytes each.
    pub fn new(room: usize) -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            room,
            seen: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Changes the number of remembered lists; keeps the latest ones.
    pub fn resize(&mut self, room: usize) {
        self.room = room;
        self.forget();
    }

    /// Whether values of this name and time were not seen before; they are now.
    pub fn is_first(&mut self, id: &Identifier<'_>, time: CdTime) -> bool {
        let mark = [0, 1].map(|which: usize| self.hashers[which].hash_one((id, time)));
        if !self.seen.insert(mark) {
            return false;
        }
        self.order.push_back(mark);
        self.forget();
        true
    }

    fn forget(&mut self) {
        while self.order.len() > self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered() {
        let mut repeats = Repeats::new(2);
        let id = Identifier::parse("h/p/t").unwrap();
        let other = Identifier::parse("h/p/t-x").unwrap();
        let time = CdTime::from_ticks;
        assert!(repeats.is_first(&id, time(1)));
        assert!(!repeats.is_first(&id, time(1)));
        assert!(repeats.is_first(&other, time(1)));
        assert!(!repeats.is_first(&id, time(1)));
        assert!(repeats.is_first(&id, time(2)));
        assert!(repeats.is_first(&id, time(1)), "forgotten");
        repeats.resize(1);
        assert!(!repeats.is_first(&id, time(1)));
        assert!(repeats.is_first(&id, time(2)), "forgotten");
        repeats.resize(2);
        assert!(repeats.is_first(&id, time(3)));
        assert!(!repeats.is_first(&id, time(2)));
    }
}
