//! What a tick of a log is worth.
//!
//! The page that describes CPEL calls the field of an event section the clock's ticks in a
//! microsecond; every program that writes or reads it takes it for the ticks in a second.
//! Which one it is shows in its size.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use kymo_time::{NANOS_PER_SECOND, Timestamp};

/// Nanoseconds in a second.
const NANOS: u64 = NANOS_PER_SECOND.unsigned_abs();
/// From this number on, a clock field is taken for the ticks in a second: what is written with fewer
/// is read a million times too fast.
pub const LEAST_PER_SECOND: u32 = 100_000;
const MICROS: u64 = 1_000_000;

/// How the clock field of event sections is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockChoice {
    /// By its size: from 100,000 on as ticks in a second, below as ticks in a microsecond.
    #[default]
    Auto,
    /// As ticks in a second.
    PerSecond,
    /// As ticks in a microsecond.
    PerMicrosecond,
    /// Not at all: this many ticks are a second.
    Ticks(NonZeroU64),
}

/// A word that is no [`ClockChoice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownClock;

impl fmt::Display for UnknownClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected `auto`, `per-second`, `per-us`, or the ticks in a second")
    }
}

impl std::error::Error for UnknownClock {}

impl FromStr for ClockChoice {
    type Err = UnknownClock;

    fn from_str(word: &str) -> Result<Self, UnknownClock> {
        match word {
            "auto" => Ok(Self::Auto),
            "per-second" => Ok(Self::PerSecond),
            "per-us" => Ok(Self::PerMicrosecond),
            number => number.parse().map(Self::Ticks).map_err(|_| UnknownClock),
        }
    }
}

/// What was doubtful about a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// So small a number was taken for the ticks in a microsecond.
    TakenPerMicrosecond(u32),
    /// The field is zero: ticks were taken for nanoseconds.
    Zero,
    /// The format has no clock: ticks were taken for nanoseconds.
    NoClock,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakenPerMicrosecond(field) => write!(
                f,
                "the clock is {field}, which is taken for the ticks in a microsecond; \
                 hint: `--clock per-second` takes it for those in a second"
            ),
            Self::Zero => f.write_str(
                "the clock is 0: ticks are taken as nanoseconds; \
                 hint: `--clock N` sets the ticks a second",
            ),
            Self::NoClock => f.write_str(
                "the file has no clock: ticks are taken as nanoseconds; \
                 hint: `--clock N` sets the ticks a second",
            ),
        }
    }
}

/// How many ticks are a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// A tick is a nanosecond.
    pub const NANOSECONDS: Self = Self(NonZeroU64::new(NANOS).expect("it is not zero"));

    /// What the clock field of a section means; `None` where the format has none.
    pub fn new(field: Option<u32>, choice: ClockChoice) -> (Self, Option<Doubt>) {
        let per_second = match (choice, field) {
            (ClockChoice::Ticks(ticks), _) => return (Self(ticks), None),
            (_, None) => return (Self::NANOSECONDS, Some(Doubt::NoClock)),
            (ClockChoice::PerSecond, Some(field)) => (u64::from(field), None),
            (ClockChoice::PerMicrosecond, Some(field)) => (u64::from(field) * MICROS, None),
            (ClockChoice::Auto, Some(field)) if field >= LEAST_PER_SECOND => {
                (u64::from(field), None)
            }
            (ClockChoice::Auto, Some(field)) => (
                u64::from(field) * MICROS,
                Some(Doubt::TakenPerMicrosecond(field)),
            ),
        };
        match NonZeroU64::new(per_second.0) {
            Some(ticks) => (Self(ticks), per_second.1),
            None => (Self::NANOSECONDS, Some(Doubt::Zero)),
        }
    }

    /// Ticks in a second.
    pub const fn per_second(self) -> u64 {
        self.0.get()
    }

    /// The nanoseconds that some ticks take, rounded down; `None` where they are more than 64
    /// bits hold. The calculation is exact.
    #[inline]
    pub fn nanos(self, ticks: u64) -> Option<u64> {
        let frequency = self.0.get();
        if frequency == NANOS {
            return Some(ticks);
        }
        let (seconds, rest) = (ticks / frequency, ticks % frequency);
        let below = match rest.checked_mul(NANOS) {
            Some(product) => product / frequency,
            None => (u128::from(rest) * u128::from(NANOS) / u128::from(frequency)) as u64,
        };
        seconds.checked_mul(NANOS)?.checked_add(below)
    }
}

/// Where the ticks of a log are on the common line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// What a tick is worth.
    pub rate: Rate,
    /// Nanoseconds from the origin to tick zero.
    pub offset_nanos: i64,
}

impl Place {
    /// The time of some ticks; `None` where it does not fit.
    #[inline]
    pub fn timestamp(&self, ticks: u64) -> Option<Timestamp> {
        let nanos = self.rate.nanos(ticks)?;
        self.offset_nanos
            .checked_add_unsigned(nanos)
            .map(Timestamp::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(field: u32, choice: ClockChoice) -> (u64, Option<Doubt>) {
        let (rate, doubt) = Rate::new(Some(field), choice);
        (rate.per_second(), doubt)
    }

    #[test]
    fn the_size_of_the_field_reports_its_unit() {
        assert_eq!(
            rate(1_000_000_000, ClockChoice::Auto),
            (1_000_000_000, None)
        );
        assert_eq!(rate(100_000, ClockChoice::Auto), (100_000, None));
        let doubt = Some(Doubt::TakenPerMicrosecond(1000));
        assert_eq!(rate(1000, ClockChoice::Auto), (1_000_000_000, doubt));
        assert_eq!(rate(1000, ClockChoice::PerSecond), (1000, None));
        assert_eq!(rate(1000, ClockChoice::PerMicrosecond).0, 1_000_000_000);
        assert_eq!(
            rate(u32::MAX, ClockChoice::PerMicrosecond).0,
            4_294_967_295_000_000
        );
        for choice in ["auto", "per-second", "per-us"] {
            let choice = choice.parse().unwrap();
            assert_eq!(rate(0, choice), (1_000_000_000, Some(Doubt::Zero)));
        }
        assert_eq!(rate(0, "7".parse().unwrap()), (7, None));
        assert_eq!(
            Rate::new(None, ClockChoice::PerSecond),
            (Rate::NANOSECONDS, Some(Doubt::NoClock))
        );
        for wrong in ["0", "-1", "fast", "", "1.5"] {
            assert_eq!(wrong.parse::<ClockChoice>(), Err(UnknownClock));
        }
    }

    proptest! {
        #[test]
        fn times_are_exact(ticks: u64, frequency in prop_oneof![1..=u64::MAX, 1..=5_000_000_000u64]) {
            let rate = Rate(NonZeroU64::new(frequency).unwrap());
            let exact = u128::from(ticks) * u128::from(NANOS) / u128::from(frequency);
            prop_assert_eq!(rate.nanos(ticks), u64::try_from(exact).ok());
        }
    }
}
