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
    /// A named point in time, shared by all clocks that name the same one.
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
    /// For a clock of another frequency than 1 GHz, cycles become nanoseconds in double
    /// precision, and the fraction is cut off, as babeltrace2 does: both then show the same
    /// nanosecond, which can differ from the exact one. docs/formats/ctf.md has the rule.
    #[inline]
    pub fn timestamp(&self, ticks: u64) -> Option<Timestamp> {
        self.converter().timestamp(ticks)
    }

    /// What [`timestamp`](Self::timestamp) does, for many counts.
    #[inline]
    pub fn converter(&self) -> TickConverter {
        let nanos = nanos(self.frequency, self.offset_cycles);
        let seconds = self.offset_seconds.checked_mul(NANOS_PER_SECOND);
        let zero = nanos.and_then(|nanos| seconds?.checked_add_unsigned(nanos));
        TickConverter {
            zero,
            frequency: self.frequency,
        }
    }

    /// The same clock with another frequency, so that each second gains `parts` picoseconds, and the nanosecond
    /// `pivot` of the common line stays where it is; and what is still wrong then, in picoseconds per second, since a
    /// frequency is a whole number. `None` where that does not fit.
    #[must_use]
    pub fn corrected(&self, pivot: i64, parts: i64) -> Option<(Self, u64)> {
        const UNIT: i128 = 1_000_000_000_000;
        let gain = UNIT + i128::from(parts.clamp(-500_000_000_000, 500_000_000_000));
        let frequency = i128::from(self.frequency.max(1));
        let new = ((frequency * UNIT + gain / 2) / gain).max(1);
        // With the new one, a second of the old one takes frequency / new.
        let rest = (frequency * UNIT / new - gain).unsigned_abs();
        let zero = i128::from(self.converter().zero?);
        let distance = i128::from(pivot) - zero;
        let zero = i128::from(pivot) - distance.checked_mul(frequency)?.div_euclid(new);
        let nanos = i128::from(NANOS_PER_SECOND);
        let clock = Self {
            frequency: u64::try_from(new).ok()?,
            offset_seconds: i64::try_from(zero.div_euclid(nanos)).ok()?,
            offset_cycles: u64::try_from(zero.rem_euclid(nanos) * new / nanos).ok()?,
            ..self.clone()
        };
        Some((clock, u64::try_from(rest).unwrap_or(u64::MAX)))
    }

    /// The same clock, which shows each count `nanos` nanoseconds later. Offsets that do not fit stay at their limits.
    #[must_use]
    pub fn shifted(&self, nanos: i128) -> Self {
        let unit = i128::from(NANOS_PER_SECOND);
        let (seconds, nanos) = (nanos.div_euclid(unit), nanos.rem_euclid(unit));
        let frequency = i128::from(self.frequency);
        let cycles = i128::from(self.offset_cycles) + nanos * frequency / unit;
        let carry = match nanos {
            0 => 0,
            _ => cycles / frequency.max(1),
        };
        let seconds = i128::from(self.offset_seconds) + seconds + carry;
        Self {
            offset_seconds: seconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            offset_cycles: u64::try_from(cycles - carry * frequency).unwrap_or(u64::MAX),
            ..self.clone()
        }
    }
}

/// Turns the ticks of a clock into times.
#[derive(Clone, Copy, Debug)]
pub struct TickConverter {
    /// When the clock shows zero, if that fits in a [`Timestamp`].
    zero: Option<i64>,
    frequency: u64,
}

impl TickConverter {
    /// What [`Clock::timestamp`] says.
    #[inline]
    pub fn timestamp(&self, ticks: u64) -> Option<Timestamp> {
        let nanos = self
            .zero?
            .checked_add_unsigned(nanos(self.frequency, ticks)?)?;
        Some(Timestamp::from_nanos(nanos))
    }

    /// Appends the times of ticks, in nanoseconds; `none` stands for a time that does not fit.
    pub fn append_nanos(&self, ticks: &[u64], none: i64, to: &mut Vec<i64>) {
        // None is greater; cheaper to find than the greatest.
        let most = ticks.iter().fold(0, |most, ticks| most | ticks);
        match self.zero {
            // The usual clock: all of them fit if this one does.
            Some(zero)
                if self.frequency == NANOS_PER_SECOND as u64
                    && zero.checked_add_unsigned(most).is_some() =>
            {
                to.extend(ticks.iter().map(|&ticks| zero.wrapping_add_unsigned(ticks)));
            }
            _ => to.extend(
                ticks
                    .iter()
                    .map(|&ticks| self.timestamp(ticks).map_or(none, Timestamp::as_nanos)),
            ),
        }
    }
}

/// The nanoseconds that a number of cycles takes.
#[inline]
fn nanos(frequency: u64, cycles: u64) -> Option<u64> {
    const UNIT: u64 = NANOS_PER_SECOND as u64;
    if frequency == UNIT {
        return Some(cycles);
    }
    let nanos = UNIT as f64 * cycles as f64 / frequency.max(1) as f64;
    (nanos < u64::MAX as f64).then_some(nanos as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_counter_goes_round_once() {
        assert_eq!(Ticks(0).advance(5, 3), Ticks(5));
        assert_eq!(Ticks(5).advance(4, 3), Ticks(12));
        assert_eq!(Ticks(5).advance(5, 3), Ticks(5));
        assert_eq!(Ticks(u64::MAX).advance(0, 1), Ticks(0));
        assert_eq!(Ticks(7).advance(3, 64), Ticks(3));
    }

    proptest! {
        #[test]
        fn times_of_many_ticks_are_those_of_each(
            ticks in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..1000], 0..20),
            frequency in prop_oneof![Just(1_000_000_000u64), Just(3), any::<u64>()],
            offset_seconds in prop_oneof![Just(0i64), -10i64..10_000_000_000, any::<i64>()],
        ) {
            let clock = Clock { frequency, offset_seconds, ..Clock::default() };
            let time = |&ticks: &u64| clock.timestamp(ticks).map_or(-7, Timestamp::as_nanos);
            let mut times = vec![5];
            clock.converter().append_nanos(&ticks, -7, &mut times);
            prop_assert_eq!(&times[1..], &ticks.iter().map(time).collect::<Vec<_>>()[..]);
        }
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

    proptest! {
        #[test]
        fn corrected_clocks_gain_what_is_said(
            frequency in prop_oneof![Just(1_000_000_000u64), 1_000_000u64..4_000_000_000],
            offset_seconds in prop_oneof![Just(0i64), Just(1_700_000_000)],
            cycles in 0u64..1_000_000_000_000_000,
            parts in -100_000_000i64..100_000_000,
            seconds in -600i64..600,
        ) {
            let clock = Clock { frequency, offset_seconds, ..Clock::default() };
            let pivot = clock.timestamp(cycles).unwrap().as_nanos();
            let (corrected, rest) = clock.corrected(pivot, parts).unwrap();
            let far = cycles.saturating_add_signed(seconds * frequency as i64);
            let distance = clock.timestamp(far).unwrap().as_nanos() - pivot;
            let expected = pivot + distance + (i128::from(distance) * i128::from(parts) / 1_000_000_000_000) as i64;
            let found = corrected.timestamp(far).unwrap().as_nanos();
            // Doubles, whole cycles of the offset, and what the frequency cannot say.
            let slack = 200 + 2_000_000_000 / frequency + (rest * distance.unsigned_abs()) / 1_000_000_000_000;
            prop_assert!(expected.abs_diff(found) <= slack, "{} {}", expected, found);
            prop_assert!(rest <= 1_000_000_000_000 / frequency);
        }
    }

    #[test]
    fn shifts_carry_and_stay_in_bounds() {
        let clock = Clock {
            frequency: 3,
            offset_cycles: 2,
            ..Clock::default()
        };
        let clock = clock.shifted(400_000_000);
        assert_eq!((clock.offset_seconds, clock.offset_cycles), (1, 0));
        let clock = clock.shifted(i128::from(i64::MAX) * 1_000_000_000);
        assert_eq!(clock.offset_seconds, i64::MAX);
    }

    /// A number of at most 53 bits, times a power of two.
    #[derive(Clone, Copy)]
    struct Double {
        mantissa: u128,
        exponent: i32,
    }

    /// The double that is nearest to `mantissa * 2^exponent`, plus a little more if `rest`.
    fn round(mantissa: u128, exponent: i32, rest: bool) -> Double {
        let excess = (128 - mantissa.leading_zeros()).saturating_sub(53);
        let cut = mantissa & ((1 << excess) - 1);
        let kept = mantissa >> excess;
        let half = if excess == 0 { 0 } else { 1 << (excess - 1) };
        let is_up = excess > 0 && (cut > half || cut == half && (rest || kept % 2 == 1));
        Double {
            mantissa: kept + u128::from(is_up),
            exponent: exponent + excess as i32,
        }
    }

    /// The rule of docs/formats/ctf.md, in integers.
    fn documented_nanos(cycles: u64, frequency: u64) -> u128 {
        if frequency == 1_000_000_000 {
            return cycles.into();
        }
        let cycles = round(cycles.into(), 0, false);
        let frequency = round(frequency.into(), 0, false);
        let product = round(cycles.mantissa * 1_000_000_000, cycles.exponent, false);
        let dividend = product.mantissa << 64;
        let quotient = round(
            dividend / frequency.mantissa,
            product.exponent - 64 - frequency.exponent,
            !dividend.is_multiple_of(frequency.mantissa),
        );
        match quotient.exponent {
            0.. => quotient.mantissa << quotient.exponent,
            down if down > -128 => quotient.mantissa >> -down,
            _ => 0,
        }
    }

    fn frequency() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(1_000_000_000),
            Just(32_768),
            1u64..100,
            1_000_000u64..5_000_000_000,
            1u64..=u64::MAX,
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn times_follow_the_documented_rule(
            frequency in frequency(),
            offset_seconds in -4_000_000_000i64..4_000_000_000,
            offset_cycles: u64,
            ticks: u64,
            shift in 0u32..64,
        ) {
            let (offset_cycles, ticks) = (offset_cycles % frequency, ticks >> shift);
            let clock = Clock { frequency, offset_seconds, offset_cycles, ..Clock::default() };
            let cycles = documented_nanos(offset_cycles, frequency) + documented_nanos(ticks, frequency);
            let expected = i128::from(offset_seconds) * 1_000_000_000 + cycles as i128;
            let found = clock.timestamp(ticks).map(|time| i128::from(time.as_nanos()));
            prop_assert_eq!(found, i64::try_from(expected).ok().map(i128::from));
        }
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
