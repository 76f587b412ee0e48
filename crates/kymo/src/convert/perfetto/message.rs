//! Numbers of the fields of messages, and of kinds.

/// Of a trace.
pub(super) const PACKET: u32 = 1;

// Of a packet.
pub(super) const TIMESTAMP: u32 = 8;
pub(super) const SEQUENCE: u32 = 10;
pub(super) const TRACK_EVENT: u32 = 11;
pub(super) const INTERNED_DATA: u32 = 12;
pub(super) const SEQUENCE_FLAGS: u32 = 13;
pub(super) const TRACK_DESCRIPTOR: u32 = 60;
pub(super) const FIRST_ON_SEQUENCE: u32 = 87;

/// What was interned before on the sequence is forgotten.
pub(super) const CLEARED: u64 = 1;
/// What was interned before is needed.
pub(super) const NEEDS_STATE: u64 = 2;

// Of a track.
pub(super) const UUID: u32 = 1;
pub(super) const NAME: u32 = 2;
pub(super) const PARENT_UUID: u32 = 5;
pub(super) const COUNTER: u32 = 8;
pub(super) const CHILD_ORDERING: u32 = 11;
pub(super) const RANK: u32 = 12;
pub(super) const SIBLING_MERGE: u32 = 15;

/// Tracks within are in the order of their ranks.
pub(super) const EXPLICIT: u64 = 3;
/// Tracks of the same name are not made one.
pub(super) const NO_MERGE: u64 = 2;

// Of an event.
pub(super) const ANNOTATIONS: u32 = 4;
pub(super) const TYPE: u32 = 9;
pub(super) const EVENT_NAME_IID: u32 = 10;
pub(super) const TRACK_UUID: u32 = 11;
pub(super) const COUNTER_VALUE: u32 = 30;
pub(super) const DOUBLE_COUNTER_VALUE: u32 = 44;
pub(super) const FLOW_IDS: u32 = 47;

// Types of events.
pub(super) const SLICE_BEGIN: u64 = 1;
pub(super) const SLICE_END: u64 = 2;
pub(super) const INSTANT: u64 = 3;
pub(super) const COUNT: u64 = 4;

// Of an annotation.
pub(super) const NAME_IID: u32 = 1;
pub(super) const BOOL_VALUE: u32 = 2;
pub(super) const UINT_VALUE: u32 = 3;
pub(super) const INT_VALUE: u32 = 4;
pub(super) const DOUBLE_VALUE: u32 = 5;
pub(super) const STRING_VALUE: u32 = 6;
pub(super) const DICT_ENTRIES: u32 = 11;
pub(super) const ARRAY_VALUES: u32 = 12;

// Of interned data.
pub(super) const EVENT_NAMES: u32 = 2;
pub(super) const ANNOTATION_NAMES: u32 = 3;

// Of an interned name.
pub(super) const IID: u32 = 1;
pub(super) const INTERNED_NAME: u32 = 2;
