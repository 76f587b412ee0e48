//! What protected datagrams are compared with, at all addresses where there is a replay window.

use std::sync::{Mutex, PoisonError};

use kymo_collectd::network::{Guard, ReplayWindow};
use kymo_time::CdTime;

/// Datagrams that are remembered for each address that has a window.
pub(super) const REMEMBERED: usize = 1 << 20;

/// The window of an address at a time, whose memory all addresses share. Plain data does not wait for the
/// others.
#[derive(Debug)]
pub(super) struct Window<'m> {
    pub(super) memory: &'m Mutex<ReplayWindow>,
    pub(super) width: CdTime,
    pub(super) now: CdTime,
}

impl Guard for Window<'_> {
    fn admits(&mut self, mark: [u8; 16]) -> bool {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.at(self.now).admits(mark)
    }

    fn is_fresh(&self, time: CdTime) -> bool {
        time.ticks_since(self.now).unsigned_abs() <= u128::from(self.width.ticks())
    }
}
