//! Numbers of the fields of Perfetto's messages, and of kinds.
#![allow(missing_docs)] // The names are those of Perfetto's own schema.

/// Of a trace.
pub mod trace {
    pub const PACKET: u32 = 1;
}

pub mod packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const TRUSTED_UID: u32 = 3;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const SYNCHRONIZATION_MARKER: u32 = 36;
    pub const STATE_CLEARED: u32 = 41;
    pub const PREVIOUS_DROPPED: u32 = 42;
    pub const PROCESS_DESCRIPTOR: u32 = 43;
    pub const THREAD_DESCRIPTOR: u32 = 44;
    pub const COMPRESSED_PACKETS: u32 = 50;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const TRUSTED_PID: u32 = 79;
    pub const FIRST_ON_SEQUENCE: u32 = 87;
    pub const MACHINE_ID: u32 = 98;

    /// What was interned before on the sequence is forgotten.
    pub const CLEARED: u64 = 1;
    /// What was interned before is needed.
    pub const NEEDS_STATE: u64 = 2;
}

pub mod defaults {
    pub const TRACK_EVENT: u32 = 11;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    // Of its track event.
    pub const TRACK_UUID: u32 = 11;
    pub const EXTRA_COUNTER_TRACKS: u32 = 31;
    pub const EXTRA_DOUBLE_COUNTER_TRACKS: u32 = 45;
}

pub mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const STATIC_NAME: u32 = 10;
    pub const CHILD_ORDERING: u32 = 11;
    pub const RANK: u32 = 12;
    pub const ATRACE_NAME: u32 = 13;
    pub const SIBLING_MERGE: u32 = 15;

    /// Tracks within are in the order of their ranks.
    pub const EXPLICIT: u64 = 3;
    /// Tracks of the same name are not made one.
    pub const NO_MERGE: u64 = 2;
}

pub mod process {
    pub const PID: u32 = 1;
    pub const CMDLINE: u32 = 2;
    pub const NAME: u32 = 6;
}

pub mod thread {
    pub const PID: u32 = 1;
    pub const TID: u32 = 2;
    pub const NAME: u32 = 5;
    pub const REFERENCE_TIMESTAMP_US: u32 = 6;
}

pub mod counter {
    pub const UNIT: u32 = 3;
    pub const UNIT_MULTIPLIER: u32 = 4;
    pub const IS_INCREMENTAL: u32 = 5;
    pub const UNIT_NAME: u32 = 6;
}

pub mod event {
    pub const TIMESTAMP_DELTA_US: u32 = 1;
    pub const THREAD_TIME_DELTA_US: u32 = 2;
    pub const CATEGORY_IIDS: u32 = 3;
    pub const ANNOTATIONS: u32 = 4;
    pub const LEGACY_EVENT: u32 = 6;
    pub const THREAD_INSTRUCTIONS_DELTA: u32 = 8;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const EXTRA_COUNTER_VALUES: u32 = 12;
    pub const TIMESTAMP_ABSOLUTE_US: u32 = 16;
    pub const CATEGORIES: u32 = 22;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const EXTRA_COUNTER_TRACKS: u32 = 31;
    pub const FLOW_IDS_OLD: u32 = 36;
    pub const TERMINATING_FLOW_IDS_OLD: u32 = 42;
    pub const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub const EXTRA_DOUBLE_COUNTER_TRACKS: u32 = 45;
    pub const EXTRA_DOUBLE_COUNTER_VALUES: u32 = 46;
    pub const FLOW_IDS: u32 = 47;
    pub const TERMINATING_FLOW_IDS: u32 = 48;
    pub const CORRELATION_ID: u32 = 52;

    // Types.
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNT: u64 = 4;
    pub const STATE: u64 = 5;
}

pub mod legacy {
    pub const NAME_IID: u32 = 1;
    pub const PHASE: u32 = 2;
    pub const DURATION_US: u32 = 3;
    pub const THREAD_DURATION_US: u32 = 4;
    pub const UNSCOPED_ID: u32 = 6;
    pub const ID_SCOPE: u32 = 7;
    pub const BIND_ID: u32 = 8;
    pub const LOCAL_ID: u32 = 10;
    pub const GLOBAL_ID: u32 = 11;
    pub const FLOW_DIRECTION: u32 = 13;
    pub const INSTANT_SCOPE: u32 = 14;
    pub const PID_OVERRIDE: u32 = 18;
    pub const TID_OVERRIDE: u32 = 19;
}

pub mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const BOOL_VALUE: u32 = 2;
    pub const UINT_VALUE: u32 = 3;
    pub const INT_VALUE: u32 = 4;
    pub const DOUBLE_VALUE: u32 = 5;
    pub const STRING_VALUE: u32 = 6;
    pub const POINTER_VALUE: u32 = 7;
    pub const NESTED_VALUE: u32 = 8;
    pub const LEGACY_JSON: u32 = 9;
    pub const NAME: u32 = 10;
    pub const DICT_ENTRIES: u32 = 11;
    pub const ARRAY_VALUES: u32 = 12;
    pub const STRING_IID: u32 = 17;
}

pub mod nested {
    pub const TYPE: u32 = 1;
    pub const DICT_KEYS: u32 = 2;
    pub const DICT_VALUES: u32 = 3;
    pub const ARRAY_VALUES: u32 = 4;
    pub const INT_VALUE: u32 = 5;
    pub const DOUBLE_VALUE: u32 = 6;
    pub const BOOL_VALUE: u32 = 7;
    pub const STRING_VALUE: u32 = 8;

    pub const DICT: u64 = 1;
    pub const ARRAY: u64 = 2;
}

pub mod interned {
    pub const CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const ANNOTATION_NAMES: u32 = 3;
    pub const SOURCE_LOCATIONS: u32 = 4;
    pub const STRING_VALUES: u32 = 29;

    // Of each.
    pub const IID: u32 = 1;
    pub const TEXT: u32 = 2;
}

pub mod clocks {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY: u32 = 2;

    // Of each clock.
    pub const ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;
    pub const IS_INCREMENTAL: u32 = 3;
    pub const UNIT_MULTIPLIER: u32 = 4;

    // Identifiers.
    pub const REALTIME: u64 = 1;
    pub const BOOTTIME: u64 = 6;
}

pub mod process_tree {
    pub const PROCESSES: u32 = 1;
    pub const THREADS: u32 = 2;

    // Of a process.
    pub const PID: u32 = 1;
    pub const CMDLINE: u32 = 3;

    // Of a thread.
    pub const TID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const TGID: u32 = 3;
}

pub mod ftrace {
    // Of a bundle.
    pub const CPU: u32 = 1;
    pub const EVENT: u32 = 2;
    pub const LOST_EVENTS: u32 = 3;
    pub const COMPACT_SCHED: u32 = 4;
    pub const CLOCK: u32 = 5;
    pub const FTRACE_TIMESTAMP: u32 = 6;
    pub const BOOT_TIMESTAMP: u32 = 7;

    // Of an event.
    pub const TIMESTAMP: u32 = 1;
    pub const PID: u32 = 2;
    pub const PRINT: u32 = 3;
    pub const SCHED_SWITCH: u32 = 4;
    pub const COMMON_FLAGS: u32 = 5;
    pub const SCHED_WAKEUP: u32 = 17;
    pub const SCHED_WAKING: u32 = 20;
    pub const SCHED_WAKEUP_NEW: u32 = 114;

    // Of a print.
    pub const BUF: u32 = 2;
}

pub mod compact {
    pub const SWITCH_TIMESTAMP: u32 = 1;
    pub const SWITCH_PREV_STATE: u32 = 2;
    pub const SWITCH_NEXT_PID: u32 = 3;
    pub const SWITCH_NEXT_PRIO: u32 = 4;
    pub const INTERN_TABLE: u32 = 5;
    pub const SWITCH_NEXT_COMM: u32 = 6;
    pub const WAKING_TIMESTAMP: u32 = 7;
    pub const WAKING_PID: u32 = 8;
    pub const WAKING_TARGET_CPU: u32 = 9;
    pub const WAKING_PRIO: u32 = 10;
    pub const WAKING_COMM: u32 = 11;
}
