//! What a recording is, whatever machine or program wrote it.
//!
//! * A [`Recording`] has [streams](StreamInfo) of events.
//! * Each stream is cut into [chunks](Chunk), the unit of parallel work: a chunk can
//!   be decoded with nothing but itself.
//! * A [`Cursor`] walks the events of one chunk. An [`Event`] is borrowed and lazy: its
//!   class and time are known, its fields are decoded when [visited](Event::visit).
//! * What the fields of an event mean is in its class's [`Schema`]; a [`Visitor`] gets
//!   each value with the [`FieldId`] that finds its description there.
//! * A [`Selection`] captures chosen fields of an event; [`Columns`] gather them from many.
//! * Damage is a [`Fault`]: small where it happens, a [`FaultReport`] where it is told.

mod columns;
mod event;
mod fault;
mod recording;
mod schema;
mod select;
mod visit;

pub use columns::{Column, ColumnData, Columns, NotColumnar, Strings, Validity};
pub use event::{Cursor, Event, EventClass, Walk};
pub use fault::{Fault, FaultCode, FaultReport};
pub use recording::{Chunk, Format, Lost, Recording, StreamInfo, Tally};
pub use schema::{Base, Field, FieldId, Flag, Kind, Labels, Mapping, Schema, Scope};
pub use select::{Pick, Selection, Value};
pub use visit::{Nothing, Visitor};
