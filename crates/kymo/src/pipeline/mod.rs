//! Decodes chunks in parallel, merges their events by time, hands them over in order.
//!
//! Each stream of each recording is a *source*. Its chunks are decoded and painted in
//! *jobs*, by any thread, a bounded number ahead of what is needed; a job pauses when its
//! batch is full and goes on when that batch has been taken. The calling thread merges
//! the batches by time and works on jobs itself whenever the next batch is not ready. The
//! result does not depend on the number of threads.
//!
//! Events of the same time come in the order of babeltrace2's muxer: by the UUID of their
//! trace, its name, stream class, stream, kind of message, event class.

mod job;
mod merge;

use std::io;
use std::ops::ControlFlow;

use kymo_model::{Chunk, Event, Fault, FaultReport};
use kymo_time::Timestamp;

use crate::AnyRecording;
use crate::show::Assembler;

pub(crate) use merge::compare_recordings;

/// An inclusive range of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From.
    pub begin: Timestamp,
    /// To, included.
    pub end: Timestamp,
}

impl Window {
    /// All of time.
    pub const ALL: Self = Self {
        begin: Timestamp::MIN,
        end: Timestamp::MAX,
    };

    /// Whether a moment lies in it.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.begin <= time && time <= self.end
    }

    /// What both have in common; where that is nothing, a window that contains no moment.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            begin: self.begin.max(other.begin),
            end: self.end.min(other.end),
        }
    }
}

/// Which events a run wants.
pub trait Select: Sync {
    /// Decides on single events. There is one for each thread.
    type Judge: Judge + Send;

    /// A judge for one more thread.
    fn judge(&self) -> Self::Judge;

    /// The time of which events are wanted. Events without a time are always in it.
    fn window(&self, _recording: usize) -> Window {
        Window::ALL
    }

    /// Whether any event of a class may be wanted.
    fn wants_class(&self, _recording: usize, _of: &AnyRecording, _class: usize) -> bool {
        true
    }

    /// The chunk of a stream to begin with, where those before it are not wanted.
    fn first_chunk(&self, _recording: usize, _stream: usize) -> usize {
        0
    }
}

/// Decides on single events of wanted classes, within the window.
pub trait Judge {
    /// A chunk begins: the events that follow are of it.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    fn chunk(
        &mut self,
        _recording: usize,
        _of: &AnyRecording,
        _chunk: &Chunk,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether an event is wanted.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped.
    fn wants<E: Event>(&mut self, event: &E) -> Result<bool, Fault>;
}

/// Wants every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Select for Everything {
    type Judge = Self;

    fn judge(&self) -> Self {
        Self
    }
}

impl Judge for Everything {
    #[inline]
    fn wants<E: Event>(&mut self, _event: &E) -> Result<bool, Fault> {
        Ok(true)
    }
}

/// Where the text of a run goes.
pub trait Output {
    /// The next part of the text.
    ///
    /// # Errors
    ///
    /// What hinders writing; the run ends.
    fn text(&mut self, text: &[u8]) -> io::Result<()>;

    /// Lines for standard error, after the text before them has been handed over.
    ///
    /// # Errors
    ///
    /// What hinders writing; the run ends.
    fn warning(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Damage was met and skipped. `Break` ends the run.
    fn fault(&mut self, fault: &FaultReport) -> ControlFlow<()>;
}

/// How a run is done.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads to work with, the caller's included; at least 1.
    pub threads: usize,
    /// How many events to hand over before the run ends.
    pub limit: Option<u64>,
    /// How many bytes of text may wait to be merged, roughly.
    pub buffer: usize,
}

impl Default for Options {
    /// As many threads as there are processors, no limit, 24 MiB.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            limit: None,
            buffer: 24 << 20,
        }
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events handed over.
    pub events: u64,
    /// Faults met.
    pub faults: u64,
}

/// Shows the wanted events of recordings, merged by time.
///
/// # Errors
///
/// What hindered the output.
pub fn run<A: Assembler, S: Select>(
    recordings: &[AnyRecording],
    select: &S,
    options: &Options,
    assembler: &mut A,
    output: &mut dyn Output,
) -> io::Result<Summary> {
    merge::Merger::new(recordings, select, options, assembler, output).run()
}
