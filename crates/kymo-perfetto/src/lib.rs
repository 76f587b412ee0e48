//! Traces of Perfetto, and of Chrome's JSON trace event format, as recordings.
//!
//! * [`probe()`] says which of the two a file is.
//! * [`Recording`] is a file that is open: slices, instants, counters, flows and events of the
//!   kernel, in the order of time.
//! * [`PerfettoWriter`] and [`ChromeWriter`] write both formats, event by event.
//! * [`proto`] is the wire format of protocol buffers, [`message`] the numbers of Perfetto's fields.
//!
//! Neither format is sorted, and what an event means depends on what came before it: names that
//! were interned, clocks, descriptors of tracks. So a file is read once when it is opened. What it
//! holds becomes rows that need nothing but the tables of the recording; these are sorted by time
//! in bounded memory, with a temporary file where they are many.

mod builder;
mod chrome;
mod classes;
mod cursor;
mod cut;
mod legacy;
pub mod message;
mod perfetto;
mod probe;
pub mod proto;
mod recording;
mod row;
mod sort;
mod tracks;

pub use chrome::write::{
    ChromeEvent, ChromeName, ChromePhase, ChromeThread, ChromeValue, ChromeWriter,
};
pub use cursor::{RowCursor, RowEvent};
pub use perfetto::write::{
    Annotation, AnnotationKind, AnnotationOf, CounterValue, NameTable, Names, NewTrack,
    PerfettoWriter, TrackContent, TrackEvent,
};
pub use probe::{Form, Probe, probe};
pub use recording::{OpenError, Recording};
