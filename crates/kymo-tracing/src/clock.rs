//! The clock of a recording: nanoseconds since the recording began, and when that was.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the two clocks are compared: between two of its readings a thread may be put to sleep.
const COMPARISONS: usize = 8;

/// A clock that never goes back, and the distance of its zero from the Unix epoch.
///
/// It follows the system's monotonic clock: when the time of day is set, a recording
/// goes on as if nothing had been.
#[derive(Debug)]
pub(crate) struct Clock {
    /// What the system's clock showed at its zero.
    zero: u64,
    epoch: Duration,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Self {
        let begin = Instant::now();
        let zero = kymo_io::monotonic_nanos();
        let compared = (0..COMPARISONS).map(|_| {
            let before = Instant::now();
            let epoch = SystemTime::now().duration_since(UNIX_EPOCH);
            let took = before.elapsed();
            let since_zero = before.duration_since(begin) + took / 2;
            // A clock that is set to before 1970 is wrong anyway.
            let epoch = epoch.unwrap_or_default().saturating_sub(since_zero);
            (took, epoch)
        });
        let best = compared.min_by_key(|&(took, _)| took);
        Self {
            zero,
            epoch: best.map_or(Duration::ZERO, |(_, epoch)| epoch),
        }
    }

    /// Nanoseconds since the zero of the clock.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        kymo_io::monotonic_nanos().wrapping_sub(self.zero)
    }

    /// How metadata describes it.
    pub(crate) fn description(&self) -> kymo_time::Clock {
        kymo_time::Clock {
            name: Some("monotonic".to_owned()),
            description: Some("monotonic clock since the recording began".to_owned()),
            offset_seconds: self.epoch.as_secs().try_into().unwrap_or(i64::MAX),
            offset_cycles: self.epoch.subsec_nanos().into(),
            origin: kymo_time::Origin::UnixEpoch,
            ..kymo_time::Clock::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use kymo_time::NANOS_PER_SECOND;

    use super::*;

    #[test]
    fn its_description_reports_the_time_of_day() {
        let clock = Clock::start();
        let ticks = clock.now();
        let reported = clock.description().timestamp(ticks).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_nanos()).unwrap();
        let difference = (now - reported.as_nanos()).abs();
        assert!(difference < 10 * NANOS_PER_SECOND, "{difference} ns");
        assert!(clock.now() >= ticks);
    }
}
