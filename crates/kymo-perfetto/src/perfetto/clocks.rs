//! Clocks of a trace, and how times of one become times of another.

use foldhash::HashMap;

use crate::message::clocks;
use crate::proto::fields;

/// Readings that are kept.
const MOST_READINGS: usize = 1 << 20;
/// Clocks that belong to a sequence.
const OF_SEQUENCE: std::ops::Range<u64> = 64..128;

/// A clock: the sequence it belongs to, 0 of none, and its number.
pub(super) type ClockKey = (u32, u64);

pub(super) fn key(sequence: u32, clock: u64) -> ClockKey {
    match OF_SEQUENCE.contains(&clock) {
        true => (sequence, clock),
        false => (0, clock),
    }
}

/// What a snapshot says of a clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) id: u64,
    /// As it is written: units of the clock.
    pub(super) value: u64,
    /// Nanoseconds of a unit.
    pub(super) multiplier: u64,
    /// Whether packets have what was added since the last one.
    pub(super) is_incremental: bool,
}

/// The clocks of a snapshot.
pub(super) fn readings(snapshot: &[u8]) -> impl Iterator<Item = Reading> {
    fields(snapshot)
        .filter(|field| field.number == clocks::CLOCKS)
        .map(|field| {
            let mut reading = Reading {
                id: 0,
                value: 0,
                multiplier: 1,
                is_incremental: false,
            };
            for field in fields(field.wire.bytes()) {
                let value = field.wire.uint();
                match field.number {
                    clocks::ID => reading.id = value,
                    clocks::TIMESTAMP => reading.value = value,
                    clocks::IS_INCREMENTAL => reading.is_incremental = value != 0,
                    clocks::UNIT_MULTIPLIER => reading.multiplier = value.max(1),
                    _ => {}
                }
            }
            reading
        })
}

/// Nanoseconds of a number of units, as far as 64 bits hold them.
pub(super) fn nanos(value: u64, multiplier: u64) -> Option<i64> {
    value.checked_mul(multiplier)?.try_into().ok()
}

/// All snapshots of a trace, gathered before anything else is read: the nearest one may come later.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    snapshots: Vec<Vec<(ClockKey, i64)>>,
    readings: usize,
    primary: Option<u64>,
    /// Readings that were not kept.
    pub(super) folded: u64,
}

impl Snapshots {
    pub(super) fn add(&mut self, sequence: u32, snapshot: &[u8]) {
        let primary = fields(snapshot).find(|field| field.number == clocks::PRIMARY);
        self.primary = self.primary.or(primary.map(|field| field.wire.uint()));
        let mut found = Vec::new();
        for reading in readings(snapshot) {
            if self.readings >= MOST_READINGS {
                self.folded += 1;
            } else if let Some(nanos) = nanos(reading.value, reading.multiplier) {
                self.readings += 1;
                found.push((key(sequence, reading.id), nanos));
            }
        }
        self.snapshots.push(found);
        if self.snapshots.last().is_some_and(Vec::is_empty) {
            self.snapshots.pop();
        }
    }

    pub(super) fn finish(mut self) -> Clocks {
        let target = (0, self.primary.unwrap_or(clocks::BOOTTIME));
        let mut clocks = Clocks {
            target,
            ..Clocks::default()
        };
        // Snapshots without the clock of the trace lead there by a clock that others have, too.
        for _ in 0..2 {
            let mut rest = Vec::new();
            let mut found = Vec::new();
            for snapshot in std::mem::take(&mut self.snapshots) {
                let at = snapshot
                    .iter()
                    .find_map(|&(clock, value)| clocks.convert(clock, value));
                match at {
                    Some(at) => found.extend(
                        snapshot
                            .iter()
                            .map(|&(clock, reading)| (clock, reading, at)),
                    ),
                    None => rest.push(snapshot),
                }
            }
            for (clock, value, at) in found {
                clocks.tables.entry(clock).or_default().push((value, at));
            }
            clocks
                .tables
                .values_mut()
                .for_each(|table| table.sort_unstable());
            self.snapshots = rest;
        }
        let realtime = clocks.tables.get(&(0, clocks::REALTIME));
        let realtime = realtime.and_then(|table| table.iter().min_by_key(|(_, at)| *at));
        clocks.from_unix_epoch = realtime.and_then(|(real, at)| real.checked_sub(*at));
        clocks
    }
}

/// How times become those of the clock of the trace.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// The clock of the trace.
    target: ClockKey,
    /// Of each clock the times at which it was read, and those of the clock of the trace then.
    tables: HashMap<ClockKey, Vec<(i64, i64)>>,
    /// Nanoseconds from 1970 to time zero.
    pub(super) from_unix_epoch: Option<i64>,
}

impl Clocks {
    /// The time on the clock of the trace, by the reading that is nearest; `None` of a clock that
    /// was not read together with it.
    pub(super) fn convert(&self, clock: ClockKey, value: i64) -> Option<i64> {
        if clock == self.target {
            return Some(value);
        }
        let table = self.tables.get(&clock)?;
        let after = table.partition_point(|&(read, _)| read < value);
        let before = after.checked_sub(1).and_then(|before| table.get(before));
        let near = [before, table.get(after)].into_iter().flatten();
        let (read, at) = near.min_by_key(|(read, _)| read.abs_diff(value))?;
        at.checked_add(value.checked_sub(*read)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(snapshots: &[&[(ClockKey, i64)]]) -> Clocks {
        Snapshots {
            snapshots: snapshots.iter().map(|snapshot| snapshot.to_vec()).collect(),
            ..Snapshots::default()
        }
        .finish()
    }

    #[test]
    fn the_nearest_reading_counts() {
        let clocks = clocks(&[
            &[((0, 3), 1000), ((0, 6), 5000)],
            &[((0, 6), 7010), ((0, 3), 3000), ((0, 1), 1_000_000)],
            &[((0, 3), 1100), ((5, 64), 10)],
        ]);
        assert_eq!(clocks.convert((0, 3), 900), Some(4900));
        assert_eq!(clocks.convert((0, 3), 1500), Some(5500), "read in between");
        assert_eq!(clocks.convert((0, 3), 2900), Some(6910));
        assert_eq!(clocks.convert((5, 64), 20), Some(5110));
        assert_eq!(clocks.convert((6, 64), 20), None);
        assert_eq!(clocks.convert((0, 6), 20), Some(20));
        assert_eq!(clocks.convert((0, 3), i64::MIN), None);
        assert_eq!(clocks.from_unix_epoch, Some(992_990));
    }
}
