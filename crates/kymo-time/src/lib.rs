//! Clocks, raw ticks, and points on the one line of time that all recordings share.
//!
//! A time in a recording is a clock and that clock's raw ticks. To order the
//! events of several recordings, ticks are placed on a common line: a
//! [`Timestamp`], a signed count of nanoseconds. Raw ticks are never thrown away.
//! [`CdTime`] is the time of collectd, whose ticks are finer than that.
//!
//! ```
//! use kymo_time::{Clock, Ticks};
//!
//! let clock = Clock { frequency: 1_000_000, offset_seconds: 10, ..Clock::default() };
//! assert_eq!(clock.timestamp(1_500_000).unwrap().as_nanos(), 11_500_000_000);
//! // A 27-bit counter that went round once since the tick before:
//! assert_eq!(Ticks(0x7ff_fff0).advance(5, 27), Ticks(0x800_0005));
//! ```

mod calendar;
mod cdtime;
mod clock;
mod duration;

pub use calendar::{Date, date_of_days, days_of_date};
pub use cdtime::{CdTime, CdTimeError};
pub use clock::{Clock, Origin, TickConverter, Ticks};
pub use duration::{Duration, DurationError};

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A point on the common time line: nanoseconds since the Unix epoch, or since
/// the origin of its clock where the clock's origin is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest point that can be held.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest point that can be held.
    pub const MAX: Self = Self(i64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Whole seconds since the origin, rounded down, and the nanoseconds above them.
    ///
    /// ```
    /// # use kymo_time::Timestamp;
    /// assert_eq!(Timestamp::from_nanos(-1).split(), (-1, 999_999_999));
    /// ```
    pub const fn split(self) -> (i64, u32) {
        (
            self.0.div_euclid(NANOS_PER_SECOND),
            self.0.rem_euclid(NANOS_PER_SECOND) as u32,
        )
    }
}
