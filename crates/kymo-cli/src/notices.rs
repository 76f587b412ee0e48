//! What is met beside rows, for commands that read rows: damage is listed, losses are counted.

use std::cell::RefCell;

use kymo::Discarded;
use kymo::timeline::{Notice, NoticeKind};

use crate::convert::report_discarded;
use crate::terminal::{Outcome, Terminal};

/// Lists damage and counts losses.
pub(crate) struct Notices<'t> {
    terminal: &'t Terminal,
    found: RefCell<Found>,
}

#[derive(Default)]
struct Found {
    faults: u64,
    discarded: Discarded,
}

impl<'t> Notices<'t> {
    pub(crate) fn new(terminal: &'t Terminal) -> Self {
        Self {
            terminal,
            found: RefCell::default(),
        }
    }

    pub(crate) fn take(&self, notice: &Notice) {
        let mut found = self.found.borrow_mut();
        match &notice.kind {
            NoticeKind::LostEvents(lost) => found.discarded.add_events(lost),
            NoticeKind::LostChunks(lost) => found.discarded.add_packets(lost),
            NoticeKind::Fault(fault) => {
                found.faults += 1;
                self.terminal.fault(fault);
            }
            _ => {}
        }
    }

    /// Counts losses that an analysis met.
    pub(crate) fn add(&self, discarded: &Discarded) {
        self.found.borrow_mut().discarded.add(discarded);
    }

    /// Reports what was lost, and returns whether damage was found; losses count as damage if `strict`.
    pub(crate) fn end(&self, strict: bool) -> Outcome {
        let found = self.found.borrow();
        if !found.discarded.is_empty() {
            report_discarded(&found.discarded, self.terminal);
        }
        match found.faults > 0 || strict && !found.discarded.is_empty() {
            true => Outcome::Damage,
            false => Outcome::Good,
        }
    }
}
