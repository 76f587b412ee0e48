//! How recordings are shown as text: pretty, details, JSON lines, CSV, and event logs as VPP's
//! own programs show them.
//!
//! Showing is split in two, so that most of it runs on all cores: a [`Painter`] turns
//! the events of one chunk into text (in any thread, chunks in any order), and an
//! [`Assembler`] gets all messages in their final order, adds what depends on that
//! order, and writes.

pub(crate) mod color;
pub mod cpeldump;
pub mod csv;
pub mod details;
pub mod elog_dump;
mod facts;
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
pub(crate) mod wall;

use std::io;

use kymo_model::{Chunk, Event, Fault, Lost};
use kymo_text::Line;
use kymo_time::Timestamp;

pub use self::color::Palette;
pub use self::lost::Teller;
pub use self::wall::WallOptions;
use crate::AnyRecording;

/// What a message tells.
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
    /// An event. Its text was made by a [`Painter`].
    Event,
    /// A chunk ends.
    ChunkEnd,
    /// A stream ends.
    StreamEnd,
}

/// A message and its place.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// What it tells.
    pub kind: MessageKind,
    /// Position among the recordings that are shown.
    pub recording: usize,
    /// Position among the recording's streams.
    pub stream: usize,
    /// Position among the stream's chunks; of a message that belongs to no chunk, of the
    /// next one.
    pub chunk: usize,
    /// Position among the recording's event classes; 0 where it is no event.
    pub class: usize,
    /// When, on the common line.
    pub time: Option<Timestamp>,
    /// When, in ticks of the stream's clock.
    pub ticks: Option<u64>,
}

/// Turns the events of chunks into text. There is one for each thread.
pub trait Painter: Send {
    /// A chunk begins: the events that follow are of it.
    ///
    /// # Errors
    ///
    /// A fault in the packet header or context.
    fn chunk(&mut self, recording: usize, of: &AnyRecording, chunk: &Chunk) -> Result<(), Fault>;

    /// Appends the text of an event to `out`. On a fault the caller drops what was appended.
    ///
    /// # Errors
    ///
    /// The fault at which decoding of the event stopped.
    fn event<E: Event>(&mut self, event: &E, out: &mut Line) -> Result<(), Fault>;
}

/// Gets all messages in their final order and appends their final text to `out`, which
/// the caller writes to standard output from time to time; warnings to `warnings`, which
/// go to standard error.
pub trait Assembler {
    /// What paints the events for it.
    type Painter: Painter;

    /// A painter for one more thread.
    fn painter(&self) -> Self::Painter;

    /// Whether it wants messages that are no events and no losses.
    fn wants_structure(&self) -> bool {
        false
    }

    /// Whether streams come one after the other, in the order of the recordings, and are not
    /// merged by time. The text of their events is what painters made of them: no messages tell
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

    /// One event. `text` is what the painter made of it.
    fn event(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    );

    /// What tells of losses; without it nothing does.
    fn teller(&mut self) -> Option<&mut Teller> {
        None
    }

    /// One message: an [event](Self::event), or something else, of which `text` is empty. Of that,
    /// losses are [told](Self::teller), and nothing becomes of what else there is.
    #[inline]
    fn message(
        &mut self,
        message: &Message,
        of: &[AnyRecording],
        text: &[u8],
        out: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        if message.kind == MessageKind::Event {
            self.event(message, of, text, out, warnings);
        } else if let Some(teller) = self.teller() {
            teller.tell(message, of, warnings);
        }
    }

    /// All messages have been handed over.
    fn finish(&mut self, _out: &mut Line, _warnings: &mut Vec<u8>) {}
}
