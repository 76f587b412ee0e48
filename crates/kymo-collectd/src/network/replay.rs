//! Protection against datagrams that are recorded and sent again.

use std::collections::{HashSet, VecDeque};

use kymo_time::CdTime;

/// Decides about what is signed or encrypted, beside its password. `()` lets everything pass.
pub trait Guard {
    /// Whether something with this mark may be read: its signature or its initial vector.
    fn admits(&mut self, mark: [u8; 16]) -> bool;

    /// Whether values of this time may be taken.
    fn is_fresh(&self, time: CdTime) -> bool;
}

impl Guard for () {
    fn admits(&mut self, _mark: [u8; 16]) -> bool {
        true
    }

    fn is_fresh(&self, _time: CdTime) -> bool {
        true
    }
}

/// Remembers what was received, as long as its values could be taken again.
///
/// Values are taken while their time is not further than `width` from now. So what was received is
/// remembered for twice that; if there is no room left, nothing is admitted until something
/// is forgotten.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    width: CdTime,
    room: usize,
    seen: HashSet<[u8; 16]>,
    /// What was seen, with the time after which it is forgotten.
    order: VecDeque<(CdTime, [u8; 16])>,
}

impl ReplayWindow {
    /// Takes values of times that are not further than `width` from now, and remembers `room`
    /// datagrams at most, of some 60 bytes each.
    pub fn new(width: CdTime, room: usize) -> Self {
        Self {
            width,
            room,
            seen: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Changes the accepted times and the number of remembered datagrams. If the window becomes wider,
    /// what it remembers is remembered longer; what it has forgotten it does not know again.
    pub fn resize(&mut self, width: CdTime, room: usize) {
        if let Some(wider) = width.checked_sub(self.width) {
            for (until, _) in &mut self.order {
                let longer = [wider; 2].into_iter().try_fold(*until, CdTime::checked_add);
                *until = longer.unwrap_or(CdTime::MAX);
            }
        }
        (self.width, self.room) = (width, room);
    }

    /// Returns the window at the time `now`. The clock may go back: entries are then remembered longer.
    pub fn at(&mut self, now: CdTime) -> WindowAt<'_> {
        while let Some((until, mark)) = self.order.front()
            && *until < now
        {
            self.seen.remove(mark);
            self.order.pop_front();
        }
        WindowAt { window: self, now }
    }
}

/// A [`ReplayWindow`] at a certain time.
#[derive(Debug)]
pub struct WindowAt<'w> {
    window: &'w mut ReplayWindow,
    now: CdTime,
}

impl Guard for WindowAt<'_> {
    fn admits(&mut self, mark: [u8; 16]) -> bool {
        let window = &mut *self.window;
        if window.order.len() >= window.room || !window.seen.insert(mark) {
            return false;
        }
        let until = [window.width; 2]
            .into_iter()
            .try_fold(self.now, CdTime::checked_add);
        // The order is that of arrival, and so that of times unless the clock goes back.
        let last = window.order.back().map_or(CdTime::ZERO, |last| last.0);
        let until = until.unwrap_or(CdTime::MAX).max(last);
        window.order.push_back((until, mark));
        true
    }

    fn is_fresh(&self, time: CdTime) -> bool {
        time.ticks_since(self.now).unsigned_abs() <= u128::from(self.window.width.ticks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> CdTime {
        CdTime::from_seconds(seconds).unwrap()
    }

    #[test]
    fn what_was_seen_is_not_admitted_again_while_it_could_be_taken() {
        let mut window = ReplayWindow::new(at(10), 3);
        assert!(window.at(at(100)).admits([1; 16]));
        assert!(!window.at(at(100)).admits([1; 16]));
        assert!(!window.at(at(120)).admits([1; 16]));
        // Its values are from 110 at the latest.
        assert!(!window.at(at(121)).is_fresh(at(110)));
        assert!(window.at(at(121)).admits([1; 16]));
        // The clock goes back.
        assert!(window.at(at(50)).admits([2; 16]));
        assert!(!window.at(at(140)).admits([2; 16]));
        // There is no room left.
        assert!(window.at(at(140)).admits([3; 16]));
        assert!(!window.at(at(140)).admits([4; 16]));
        assert!(window.at(at(142)).admits([4; 16]));
    }

    #[test]
    fn a_wider_window_remembers_longer() {
        let mut window = ReplayWindow::new(at(10), 1);
        assert!(window.at(at(100)).admits([1; 16]));
        window.resize(at(20), 2);
        assert!(!window.at(at(140)).admits([1; 16]));
        assert!(window.at(at(140)).admits([2; 16]));
        window.resize(at(5), 2);
        assert!(!window.at(at(180)).admits([2; 16]));
        assert!(window.at(at(181)).admits([2; 16]));
        assert!(!window.at(at(181)).is_fresh(at(175)));
    }

    #[test]
    fn times_near_now_are_fresh() {
        let mut window = ReplayWindow::new(at(10), 1);
        for (time, fresh) in [(89, false), (90, true), (110, true), (111, false)] {
            assert_eq!(window.at(at(100)).is_fresh(at(time)), fresh, "{time}");
        }
        let mut window = ReplayWindow::new(CdTime::MAX, 1);
        assert!(window.at(CdTime::MAX).admits([0; 16]));
        assert!(!window.at(CdTime::MAX).admits([0; 16]));
    }
}
