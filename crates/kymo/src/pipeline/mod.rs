//! Decodes chunks in parallel, merges their events by time, hands them over in order.
//!
//! Each stream of each recording is a *source*. Its chunks are decoded and rendered in
//! *jobs*, by any thread, a bounded number ahead of what is needed; a job pauses when its
//! batch is full and goes on when that batch has been taken. The calling thread merges
//! the batches by time and works on jobs itself whenever the next batch is not ready. The
//! result does not depend on the number of threads.
//!
//! Events of the same time come in the order of babeltrace2's muxer: by the UUID of their
//! trace, its name, stream class, stream, kind of message, event class.

mod entries;
mod head;
mod job;
mod merge;
mod places;
mod predicate;
mod rows;
mod source;
mod tail;
mod until;
mod watched;
mod window;

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use kymo_model::{FaultReport, FieldId, Recording as _, RowPlace};
use kymo_time::Timestamp;

use self::job::{Worker, WorkerState};
use crate::AnyRecording;
use crate::Discarded;
use crate::show::Sink;

pub(crate) use entries::{EntrySlice, NO_TIME};
pub(crate) use merge::compare_recordings;
pub use places::{Places, Span};
pub use predicate::Predicate;
pub(crate) use predicate::{Forced, Layer};
pub(crate) use rows::ClassRows;
pub use rows::{BlockWish, Row, RowBuffers, RowRun, Values};
pub use tail::Tail;
pub use until::{ReadPlaces, Until, may_be_incomplete};
pub use watched::Watched;

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

    /// Whether the window contains a time.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.begin <= time && time <= self.end
    }

    /// The intersection of both; if it is empty, a window that contains no time.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            begin: self.begin.max(other.begin),
            end: self.end.min(other.end),
        }
    }
}

/// Which events a run wants.
///
/// A choice mostly narrows another one: what it has nothing to say about, the other one answers.
pub trait Select: Sync {
    /// The choice that it narrows; [`Everything`] if there is no other.
    fn inner(&self) -> &dyn Select;

    /// Decides on single events, in one more thread.
    fn predicate(&self) -> Predicate<'_>;

    /// What marks events, if something does: their text then ends with a byte, 1 if it wants them and 0 if not.
    fn mark(&self) -> Option<Predicate<'_>> {
        self.inner().mark()
    }

    /// The time of which events are wanted. Events without a time are always in it.
    fn window(&self, recording: usize) -> Window {
        self.inner().window(recording)
    }

    /// Whether any event of a class may be wanted.
    fn wants_class(&self, recording: usize, source: &AnyRecording, class: usize) -> bool {
        self.inner().wants_class(recording, source, class)
    }

    /// Whether deciding on an event of a class may look at a field of it.
    fn looks_at(&self, recording: usize, class: usize, field: FieldId) -> bool {
        self.inner().looks_at(recording, class, field)
    }

    /// The chunk of a stream to begin with, where those before it are not wanted.
    fn first_chunk(&self, recording: usize, stream: usize) -> usize {
        self.inner().first_chunk(recording, stream)
    }

    /// The chunk of a stream to end before, where it and those behind it are not wanted.
    fn end_chunk(&self, recording: usize, stream: usize) -> usize {
        self.inner().end_chunk(recording, stream)
    }

    /// The first row of a stream that may be wanted.
    fn first_row(&self, recording: usize, stream: usize) -> RowPlace {
        let first = RowPlace {
            chunk: self.first_chunk(recording, stream),
            number: 0,
        };
        first.max(self.inner().first_row(recording, stream))
    }

    /// The chunks of a stream that hold no wanted event, if some are known to: by number, whether each one is such a
    /// chunk. They are not read.
    fn idle_chunks(&self, recording: usize, stream: usize) -> Option<Arc<[bool]>> {
        self.inner().idle_chunks(recording, stream)
    }

    /// Whether the run ends before its next chunk.
    fn is_stopped(&self) -> bool {
        self.inner().is_stopped()
    }

    /// Whether the first events of a chunk are left out, and with them what was lost before it.
    fn begins_within(&self, recording: usize, stream: usize, chunk: usize) -> bool {
        self.inner().begins_within(recording, stream, chunk)
    }
}

impl<S: Select> Select for &S {
    fn inner(&self) -> &dyn Select {
        *self
    }

    fn predicate(&self) -> Predicate<'_> {
        (**self).predicate()
    }
}

/// Wants every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Select for Everything {
    fn inner(&self) -> &dyn Select {
        self
    }

    fn predicate(&self) -> Predicate<'_> {
        Predicate::everything()
    }

    fn mark(&self) -> Option<Predicate<'_>> {
        None
    }

    fn window(&self, _recording: usize) -> Window {
        Window::ALL
    }

    fn wants_class(&self, _recording: usize, _of: &AnyRecording, _class: usize) -> bool {
        true
    }

    fn looks_at(&self, _recording: usize, _class: usize, _field: FieldId) -> bool {
        false
    }

    fn first_chunk(&self, _recording: usize, _stream: usize) -> usize {
        0
    }

    fn end_chunk(&self, _recording: usize, _stream: usize) -> usize {
        usize::MAX
    }

    fn first_row(&self, _recording: usize, _stream: usize) -> RowPlace {
        RowPlace::default()
    }

    fn idle_chunks(&self, _recording: usize, _stream: usize) -> Option<Arc<[bool]>> {
        None
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn begins_within(&self, _recording: usize, _stream: usize, _chunk: usize) -> bool {
        false
    }
}

/// Where the text of a run goes.
pub trait Output {
    /// The next part of the text. Without it, none is kept.
    ///
    /// # Errors
    ///
    /// What hinders writing; the run ends.
    fn text(&mut self, _text: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Lines for standard error, after the text before them has been handed over. Without it, none are kept.
    ///
    /// # Errors
    ///
    /// What hinders writing; the run ends.
    fn warning(&mut self, _lines: &[u8]) -> io::Result<()> {
        Ok(())
    }

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
    /// What recorders discarded between the events.
    pub discarded: Discarded,
}

/// Shows the wanted events of recordings, merged by time.
///
/// # Errors
///
/// What hindered the output.
pub fn run<A: Sink>(
    recordings: &[AnyRecording],
    select: &dyn Select,
    options: &Options,
    sink: &mut A,
    output: &mut dyn Output,
) -> io::Result<Summary> {
    let chunks = recordings.iter().map(|recording| {
        let streams = 0..recording.streams().len();
        streams
            .map(|stream| recording.chunk_count(stream))
            .sum::<usize>()
    });
    let threads = options.threads.clamp(1, chunks.sum::<usize>().max(1));
    let worker =
        |_| -> Box<dyn Worker<'_> + '_> { Box::new(WorkerState::new(sink.renderer(), select)) };
    let workers = (0..threads).map(worker).collect();
    merge::Merger::new(recordings, select, options, sink, output).run(workers)
}
