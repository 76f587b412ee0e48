//! What the packets of a sequence rely on: names, clocks, defaults.

use std::sync::Arc;

use foldhash::HashMap;

use super::clocks::{nanos, readings};
use crate::message::{defaults, interned};
use crate::proto::{fields, first, varints};

/// Bytes that interned names of all sequences may take at a time, with what each costs.
const MOST_INTERNED: usize = 256 << 20;
const INTERNED_COST: usize = 64;
/// Tracks of counters that an event may have values of.
const MOST_EXTRA: usize = 1024;

/// Names by their numbers.
pub(super) type Interned = HashMap<u64, Arc<[u8]>>;

/// A clock whose packets contain increments.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceClock {
    pub(super) multiplier: u64,
    pub(super) is_incremental: bool,
    /// The last value, in units.
    pub(super) value: u64,
}

/// Values that are stated once for the packets that follow.
#[derive(Clone, Debug, Default)]
pub(super) struct Defaults {
    pub(super) clock: Option<u64>,
    pub(super) track: Option<u64>,
    pub(super) extra: Vec<u64>,
    pub(super) extra_double: Vec<u64>,
}

/// The state of a sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) number: u32,
    /// Whether the names that packets rely on have been defined.
    pub(super) is_valid: bool,
    pub(super) categories: Interned,
    pub(super) event_names: Interned,
    pub(super) annotation_names: Interned,
    pub(super) texts: Interned,
    pub(super) clocks: HashMap<u64, SequenceClock>,
    pub(super) defaults: Defaults,
    /// Process and thread of events without a track.
    pub(super) thread: Option<(i64, i64)>,
    /// Times of old events count from here, in microseconds.
    pub(super) reference_us: i64,
    /// The last values of counters that say what was added.
    pub(super) counters: HashMap<u64, i64>,
    /// Bytes of the names.
    interned: usize,
}

impl Sequence {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Forgets what packets have defined; the clocks stay. `all` are the bytes of the names of all sequences.
    pub(super) fn clear(&mut self, all: &mut usize) {
        *all = all.saturating_sub(std::mem::take(&mut self.interned));
        self.is_valid = true;
        self.categories.clear();
        self.event_names.clear();
        self.annotation_names.clear();
        self.texts.clear();
        self.counters.clear();
        self.defaults = Defaults::default();
    }

    /// Learns names; says how many are too many, and how many places in source code there are.
    pub(super) fn intern(&mut self, message: &[u8], all: &mut usize) -> (u64, u64) {
        let (mut folded, mut locations) = (0, 0);
        for field in fields(message) {
            let names = match field.number {
                interned::CATEGORIES => &mut self.categories,
                interned::EVENT_NAMES => &mut self.event_names,
                interned::ANNOTATION_NAMES => &mut self.annotation_names,
                interned::STRING_VALUES => &mut self.texts,
                interned::SOURCE_LOCATIONS => {
                    locations += 1;
                    continue;
                }
                _ => continue,
            };
            let entry = field.wire.bytes();
            let iid = first(entry, interned::IID).map_or(0, |wire| wire.uint());
            let text = first(entry, interned::TEXT).map_or(&[][..], |wire| wire.bytes());
            let cost = text.len() + INTERNED_COST;
            if *all + cost <= MOST_INTERNED {
                *all += cost;
                self.interned += cost;
                names.insert(iid, text.into());
            } else {
                folded += 1;
            }
        }
        (folded, locations)
    }

    /// Learns defaults: those that come later take the place of all before.
    pub(super) fn set_defaults(&mut self, message: &[u8]) {
        let mut found = Defaults::default();
        for field in fields(message) {
            match field.number {
                defaults::TIMESTAMP_CLOCK_ID => found.clock = Some(field.wire.uint()),
                defaults::TRACK_EVENT => {
                    for field in fields(field.wire.bytes()) {
                        let more = |tracks: &mut Vec<u64>| {
                            let left = MOST_EXTRA.saturating_sub(tracks.len());
                            tracks.extend(varints(field.wire).take(left));
                        };
                        match field.number {
                            defaults::TRACK_UUID => found.track = Some(field.wire.uint()),
                            defaults::EXTRA_COUNTER_TRACKS => more(&mut found.extra),
                            defaults::EXTRA_DOUBLE_COUNTER_TRACKS => more(&mut found.extra_double),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        self.defaults = found;
    }

    /// Learns how the clocks of a snapshot count, and where they stand.
    pub(super) fn set_clocks(&mut self, snapshot: &[u8]) {
        for reading in readings(snapshot) {
            if (64..128).contains(&reading.id) {
                let clock = SequenceClock {
                    multiplier: reading.multiplier,
                    is_incremental: reading.is_incremental,
                    value: reading.value,
                };
                self.clocks.insert(reading.id, clock);
            }
        }
    }

    /// The nanoseconds that a packet says on a clock.
    pub(super) fn nanos(&mut self, clock: u64, value: u64) -> Option<i64> {
        let Some(known) = self.clocks.get_mut(&clock) else {
            return nanos(value, 1);
        };
        let value = match known.is_incremental {
            true => known.value.wrapping_add(value),
            false => value,
        };
        known.value = value;
        nanos(value, known.multiplier)
    }
}
