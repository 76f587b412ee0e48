//! How recordings are shown as text: pretty, details, JSON lines, CSV, and event logs as VPP's
//! own programs show them.
//!
//! Showing is split in two, so that most of it runs on all cores: a [`Renderer`] turns
//! the events of one chunk into text (in any thread, chunks in any order), and an
//! [`Sink`] gets all messages in their final order, adds what depends on that
//! order, and writes.

pub(crate) mod color;
pub mod context;
pub mod cpeldump;
pub mod csv;
pub mod details;
pub mod elog_dump;
mod facts;
pub mod grid;
pub mod json;
pub(crate) mod labels;
mod lost;
pub(crate) mod packet;
pub mod pretty;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod times;
pub(crate) mod wall;

use std::io;

use kymo_model::batch::{MergedRows, SourceRows, SourceRun};
use kymo_model::{Chunk, Cursor, Event, EventBlock, Fault, FieldId, Lost};
use kymo_text::Line;
use kymo_time::Timestamp;

pub use self::color::Palette;
pub use self::lost::LossReporter;
pub use self::times::Times;
pub use self::wall::WallOptions;
use crate::AnyRecording;
use crate::pipeline::{BlockWish, Row, RowBuffers, RowRun};
pub use crate::tracks::text_of;

/// What a message reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MessageKind {
    /// A stream begins.
    StreamBegin,
    /// Events were lost.
    LostEvents(Lost),
    /// Chunks (packets) were lost.
    LostChunks(Lost),
    /// A chunk begins.
    ChunkBegin,
    /// An event. Its text was made by a [`Renderer`].
    Event,
    /// A chunk ends.
    ChunkEnd,
    /// A stream ends.
    StreamEnd,
}

/// A message and its place.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// What it reports.
    pub kind: MessageKind,
    /// Position among the recordings that are shown.
    pub recording: usize,
    /// Position among the recording's streams.
    pub stream: usize,
    /// Position among the stream's chunks; of a message that belongs to no chunk, of the
    /// next one.
    pub chunk: usize,
    /// Position among the recording's event classes; 0 if it is not an event.
    pub class: usize,
    /// When, on the common line.
    pub time: Option<Timestamp>,
    /// When, in ticks of the stream's clock.
    pub ticks: Option<u64>,
}

/// Turns the events of chunks into text. There is one for each thread.
pub trait Renderer: Send {
    /// A chunk begins: the events that follow are of it.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    fn chunk(
        &mut self,
        recording: usize,
        source: &AnyRecording,
        chunk: &Chunk,
    ) -> Result<(), Fault>;

    /// Appends the text of an event to `out`. On a fault the caller drops what was appended.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped.
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault>;

    /// Whether it takes events in [blocks](Self::block).
    fn takes_blocks(&self) -> bool {
        false
    }

    /// Takes the events that follow as rows, `most` at most, fewer if their columns have `most_bytes` bytes by then.
    /// `false` at the end of the chunk.
    ///
    /// # Errors
    ///
    /// The fault that ended the chunk.
    fn block<C: Cursor>(
        &mut self,
        _of: &AnyRecording,
        _cursor: &mut C,
        _wish: &BlockWish<'_>,
        _most: usize,
        _most_bytes: usize,
        _block: &mut EventBlock,
    ) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Whether it needs a field; asked only if the sink takes [rows](Sink::rows).
    fn looks_at(
        &self,
        _recording: usize,
        _source: &AnyRecording,
        _class: usize,
        _field: FieldId,
    ) -> bool {
        true
    }

    /// Hands out the columns of the events since it was last asked, where it makes some beside text.
    fn take_rows(&mut self) -> RowBuffers {
        RowBuffers::default()
    }

    /// The bytes of these columns.
    fn row_bytes(&self) -> usize {
        0
    }
}

/// Gets all messages in their final order and appends their final text to `out`, which
/// the caller writes to standard output from time to time; warnings to `warnings`, which
/// go to standard error.
pub trait Sink {
    /// What renders the events for it.
    type Renderer: Renderer
    where
        Self: Sized;

    /// A renderer for one more thread.
    fn renderer(&self) -> Self::Renderer
    where
        Self: Sized;

    /// Whether it wants messages that are neither events nor losses.
    fn wants_structure(&self) -> bool {
        false
    }

    /// Whether streams come one after the other, in the order of the recordings, and are not
    /// merged by time. The text of their events is what renderers made of them: no messages announce
    /// of them, and many are written at once.
    fn is_by_stream(&self) -> bool {
        false
    }

    /// Before all messages: `write` takes what comes before their text, in parts.
    ///
    /// # Errors
    ///
    /// That of `write`.
    fn begin(
        &mut self,
        _of: &[AnyRecording],
        _write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// One event. `text` is what the renderer made of it. Who takes [rows](Self::rows) gets none.
    fn event(
        &mut self,
        _message: &Message,
        _of: &[AnyRecording],
        _text: &[u8],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) {
    }

    /// Whether it takes [rows](Self::rows) instead of events.
    fn takes_rows(&self) -> bool {
        false
    }

    /// Rows in their final order, with what renderers made of them: unless it has its own way, one [row](Self::row)
    /// after the other. `false` ends the run.
    fn rows(
        &mut self,
        run: RowRun<'_>,
        recordings: &[AnyRecording],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) -> bool {
        for row in run {
            if !self.row(&row, recordings, out, warnings) {
                return false;
            }
        }
        true
    }

    /// One row. `false` ends the run.
    fn row(
        &mut self,
        _row: &Row<'_>,
        _of: &[AnyRecording],
        _out: &mut Line,
        _warnings: &mut Vec<u8>,
    ) -> bool {
        true
    }

    /// Whether it takes many [runs](Self::runs) of rows at once, or [merged](Self::merged) rows, instead of one run
    /// after the other.
    fn takes_runs(&self) -> bool {
        false
    }

    /// Runs of rows in their final order. `false` ends the run.
    fn runs(&mut self, _sources: &[SourceRows<'_>], _runs: &[SourceRun]) -> bool {
        true
    }

    /// Rows of several streams in their final order. `false` ends the run.
    fn merged(&mut self, _sources: &[SourceRows<'_>], _rows: MergedRows<'_>) -> bool {
        true
    }

    /// Rows of several streams in their final order, which are positions among the rows of all runs; `None`, with nothing
    /// done, if they are to come [run by run](Self::rows). `false` ends the run.
    fn mixed_rows(
        &mut self,
        _runs: &mut [RowRun<'_>],
        _order: &[u16],
        _of: &[AnyRecording],
    ) -> Option<bool> {
        None
    }

    /// What reports losses; without it nothing does.
    fn loss_reporter(&mut self) -> Option<&mut LossReporter> {
        None
    }

    /// One message: an [event](Self::event), or something else, of which `text` is empty. Of that,
    /// losses are [reported](Self::loss_reporter), and the rest is ignored.
    #[inline]
    fn message(
        &mut self,
        message: &Message,
        recordings: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        if message.kind == MessageKind::Event {
            self.event(message, recordings, text, out, warnings);
        } else if let Some(loss_reporter) = self.loss_reporter() {
            loss_reporter.report(message, recordings, warnings);
        }
    }

    /// All messages have been handed over.
    fn finish(&mut self, _out: &mut Line, _warnings: &mut Vec<u8>) {}
}
