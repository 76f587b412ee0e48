//! Tracks, slices, counters and flows: what a query, and a recording's own rules, make of rows.
//!
//! [`TrackPlan`] decides once per recording and event class: which columns hold the track of a row,
//! which slice the row begins or ends and by which key, which columns are counters and flows. Its
//! [`RowPlan`](crate::timeline::RowPlan) lists the columns to fill, so that nothing else is decoded.
//! The merging thread then reads typed values: a [`RowKey`] looks at them where they are, a [`Key`]
//! owns them, and [`TrackTable`] numbers tracks.

mod intern;
mod key;
mod open;
mod plan;
mod table;
mod value;

pub(crate) use intern::{Interner, OTHERS};
pub(crate) use key::{Key, RowKey};
pub(crate) use open::{Ended, OpenSlices};
pub use plan::UnknownField;
pub(crate) use plan::{
    ClassQuery, ClassTracks, Edge, FieldColumns, Fields, SliceKeys, TrackPlan, TrackQuery,
    TrackSource,
};
pub(crate) use table::{TrackKey, TrackTable};
pub(crate) use value::known_track_name;
pub use value::text_of;
