//! Where analyses get their events from.

use kymo_time::Timestamp;

use super::events::Error;
use crate::AnyRecording;
use crate::pipeline::Select;

/// Where an analysis gets its events from: recordings that are whole, or that grow while they are read.
pub trait Feed {
    /// Hands over the events part by part, in order of time, until there are no more or `taker` wants no more.
    ///
    /// # Errors
    ///
    /// What `taker` cannot make of the recordings, unless that may change when more comes.
    fn each(&mut self, taker: &mut dyn Taker) -> Result<(), Error>;

    /// The recordings as they were handed over last.
    fn recordings(&self) -> &[AnyRecording];
}

/// Takes the events of a [`Feed`].
pub trait Taker {
    /// Takes the events that `select` wants. Where more may come, all events before `known` have been handed over
    /// with these; `None` says that nothing more comes. Returns whether more is wanted.
    ///
    /// # Errors
    ///
    /// The recordings do not have the events or fields that are needed. Nothing was taken then.
    fn take(
        &mut self,
        recordings: &[AnyRecording],
        select: &dyn Select,
        known: Option<Timestamp>,
    ) -> Result<bool, Error>;
}

/// Recordings that are whole: all events are one part.
#[derive(Clone, Copy)]
pub struct Whole<'a> {
    /// The recordings.
    pub recordings: &'a [AnyRecording],
    /// Which events are wanted.
    pub select: &'a dyn Select,
}

impl Feed for Whole<'_> {
    fn each(&mut self, taker: &mut dyn Taker) -> Result<(), Error> {
        taker
            .take(self.recordings, self.select, None)
            .map(|_wants_more| ())
    }

    fn recordings(&self) -> &[AnyRecording] {
        self.recordings
    }
}
