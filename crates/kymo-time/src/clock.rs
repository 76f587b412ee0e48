//! What a tick is worth, and when tick zero was.

use crate::{NANOS_PER_SECOND, Timestamp};

/// A count of a clock's cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

impl Ticks {
    /// The count after the clock's lowest `bits` bits (1 to 64) were read as `low`.
    ///
    /// A counter that is narrower than 64 bits goes round; at most one turn is
    /// assumed since `self`. `bits` above 64 count as 64, `low` is cut to `bits`.
    #[must_use]
    pub const fn advance(self, low: u64, bits: u32) -> Self {
        if bits >= 64 {
            return Self(low);
        }
        let mask = (1u64 << bits) - 1;
        let low = low & mask;
        let base = (self.0 & !mask).wrapping_add(low);
        if low < self.0 & mask {
            Self(base.wrapping_add(mask).wrapping_add(1))
        } else {
            Self(base)
        }
    }
}

/// Where a clock's zero lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// 1970-01-01T00:00:00Z.
    UnixEpoch,
    /// Not said: such a clock correlates with no other one, except of the same recording.
    #[default]
    Unknown,
    /// A named moment, shared by all clocks that name the same one.
    Named {
        /// Name space of the origin's name.
        namespace: Option<String>,
        /// Name of the origin.
        name: String,
        /// Unique identifier of this instance of the origin.
        uid: String,
    },
}

/// A clock: how fast it runs and where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Name space of the clock's name.
    pub namespace: Option<String>,
    /// Name of the clock.
    pub name: Option<String>,
    /// Unique identifier of this instance of the clock: in CTF 1.8 its UUID, as text.
    pub uid: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// Cycles per second; never zero.
    pub frequency: u64,
    /// Seconds from the origin to cycle zero, first part.
    pub offset_seconds: i64,
    /// Cycles from the origin to cycle zero, second part.
    pub offset_cycles: u64,
    /// Uncertainty of a reading, in cycles, where known.
    pub precision: Option<u64>,
    /// Distance of a reading from the true time, in cycles, where known.
    pub accuracy: Option<u64>,
    /// What the offsets count from.
    pub origin: Origin,
}

impl Default for Clock {
    /// A nameless clock of 1 GHz that counts from an unknown origin.
    fn default() -> Self {
        Self {
            namespace: None,
            name: None,
            uid: None,
            description: None,
            frequency: NANOS_PER_SECOND as u64,
            offset_seconds: 0,
            offset_cycles: 0,
            precision: None,
            accuracy: None,
            origin: Origin::Unknown,
        }
    }
}

impl Clock {
    /// The point on the common line at which the clock shows `ticks`; `None` where it does
    /// not fit in a [`Timestamp`].
    ///
    /// For a clock of another frequency than 1 GHz, the product of ticks and nanoseconds is
    /// taken in double precision and its fraction cut off, as babeltrace2 does: both then
    /// show the same nanosecond, which may be one before the exact one.
    #[inline]
    pub fn timestamp(&self, ticks: u64) -> Option<Timestamp> {
        self.offset_seconds
            .checked_mul(NANOS_PER_SECOND)
            .and_then(|nanos| nanos.checked_add_unsigned(self.nanos(self.offset_cycles)?))
            .and_then(|nanos| nanos.checked_add_unsigned(self.nanos(ticks)?))
            .map(Timestamp::from_nanos)
    }

    /// The nanoseconds that a number of cycles takes.
    #[inline]
    fn nanos(&self, cycles: u64) -> Option<u64> {
        const UNIT: u64 = NANOS_PER_SECOND as u64;
        if self.frequency == UNIT {
            return Some(cycles);
        }
        let nanos = UNIT as f64 * cycles as f64 / self.frequency.max(1) as f64;
        (nanos < u64::MAX as f64).then_some(nanos as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_goes_round_once() {
        assert_eq!(Ticks(0).advance(5, 3), Ticks(5));
        assert_eq!(Ticks(5).advance(4, 3), Ticks(12));
        assert_eq!(Ticks(5).advance(5, 3), Ticks(5));
        assert_eq!(Ticks(u64::MAX).advance(0, 1), Ticks(0));
        assert_eq!(Ticks(7).advance(3, 64), Ticks(3));
    }

    #[test]
    fn offsets_and_fractions_are_cut() {
        let clock = Clock {
            frequency: 3,
            offset_seconds: -1,
            offset_cycles: 1,
            ..Clock::default()
        };
        assert_eq!(clock.timestamp(0).unwrap().as_nanos(), -666_666_667);
        assert_eq!(clock.timestamp(3).unwrap().as_nanos(), 333_333_333);
        let clock = Clock {
            frequency: 1_000_000,
            ..Clock::default()
        };
        // The double that is nearest to the product is a little less than it.
        let timestamp = clock.timestamp(1_354_514_255_659).unwrap();
        assert_eq!(timestamp.as_nanos(), 1_354_514_255_658_999);
    }

    #[test]
    fn what_does_not_fit_is_no_time() {
        let clock = Clock {
            offset_seconds: i64::MAX,
            ..Clock::default()
        };
        assert_eq!(clock.timestamp(0), None);
        let clock = Clock {
            frequency: 1,
            ..Clock::default()
        };
        assert_eq!(clock.timestamp(u64::MAX), None);
    }
}
