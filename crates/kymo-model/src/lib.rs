//! What a recording is, whatever machine or program wrote it.
//!
//! * A [`Recording`] has [streams](StreamInfo) of events.
//! * Each stream is cut into [chunks](Chunk), the unit of parallel work: a chunk can
//!   be decoded with nothing but itself.
//! * A [`Cursor`] walks the events of one chunk. An [`Event`] is borrowed and lazy: its
//!   class and time are known, its fields are decoded when [visited](Event::visit).
//! * What the fields of an event mean is in its class's [`Schema`]; a [`Visitor`] gets
//!   each value with the [`FieldId`] that finds its description there. An [`EventBlock`] is many events at once.
//! * A [`Selection`] captures chosen fields of an event; [`Columns`] gather them from many, and a
//!   [`Batch`] is rows with their times and columns, in Arrow's layout.
//! * A [`Track`] is a line of the time line; [`Roles`] say what rows do there.
//! * Damage is a [`Fault`]: small where it happens, a [`FaultReport`] where it is reported.

pub mod batch;
mod block;
mod event;
mod fault;
mod recording;
mod refresh;
mod schema;
mod select;
mod targets;
mod track;
mod visit;
mod wide;

pub use batch::{Batch, Column, ColumnData, ColumnType, Columns, DataType};
pub use block::{
    BlockQuery, EventBlock, EventCounts, EventHeaders, EventMark, EventOrder, EventVisitor,
    Interest,
};
pub use event::{Cursor, Event, EventClass, ValueCounter, Walk};
pub use fault::{Fault, FaultCode, FaultReport};
pub use recording::{
    Chunk, Drift, Format, Lost, Narrowed, Recording, Shift, ShiftError, StreamInfo, Tally,
};
pub use refresh::{Change, RefreshError, Refreshed, RowPlace, StreamChange};
pub use schema::{Base, Field, FieldId, Flag, Kind, Labels, Mapping, Schema, Scope};
pub use select::{Pick, Selection, Value, narrow_float128};
pub use track::{EntryKind, Roles, SliceRole, Track, TrackPart, TrackPath, TrackRule};
pub use visit::{Both, Nothing, Visitor};
pub use wide::Wide;
