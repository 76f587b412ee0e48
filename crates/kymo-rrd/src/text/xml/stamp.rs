//! Local times in comments.

use kymo_text::Line;
use kymo_time::date_of_days;

const DAY: i64 = 86_400;

/// The local time from some time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Seconds it is ahead of UTC.
    pub offset: i32,
    /// Its name, such as `CET`.
    pub name: String,
    /// The second at which it may become another; `i64::MAX` where it never does.
    pub until: i64,
}

/// Provides local times.
pub trait Zone {
    /// The local time from a time on, in seconds since 1970.
    fn at(&self, seconds: i64) -> LocalTime;
}

/// Universal time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utc;

impl Zone for Utc {
    fn at(&self, _seconds: i64) -> LocalTime {
        LocalTime {
            offset: 0,
            name: "UTC".to_owned(),
            until: i64::MAX,
        }
    }
}

/// Writes times such as `2023-11-15 03:10:00 UTC`. Most of them are a little later than the
/// one before: local time and date are kept as long as they last.
pub(super) struct Stamps<'z> {
    zone: &'z dyn Zone,
    local: LocalTime,
    /// From when on `local` is known to be right.
    begin: i64,
    /// Days since 1970 of `date`.
    day: i64,
    /// The date and a blank.
    date: Line,
}

impl<'z> Stamps<'z> {
    pub(super) fn new(zone: &'z dyn Zone) -> Self {
        let mut stamps = Self {
            zone,
            local: zone.at(0),
            begin: 0,
            day: 0,
            date: Line::new(),
        };
        stamps.turn(0);
        stamps
    }

    pub(super) fn write(&mut self, seconds: i64, out: &mut Line) {
        if !(self.begin..self.local.until).contains(&seconds) {
            self.local = self.zone.at(seconds);
            self.begin = seconds;
        }
        let local = seconds.saturating_add(self.local.offset.into());
        let day = local.div_euclid(DAY);
        if day != self.day {
            self.turn(day);
        }
        let of_day = local.rem_euclid(DAY) as u64;
        out.push(self.date.as_bytes());
        out.padded(of_day / 3600, 2);
        out.push_byte(b':');
        out.padded(of_day / 60 % 60, 2);
        out.push_byte(b':');
        out.padded(of_day % 60, 2);
        out.push_byte(b' ');
        out.push(self.local.name.as_bytes());
    }

    fn turn(&mut self, day: i64) {
        let date = date_of_days(day);
        self.day = day;
        self.date.clear();
        self.date.signed(date.year);
        self.date.push_byte(b'-');
        self.date.padded(date.month.into(), 2);
        self.date.push_byte(b'-');
        self.date.padded(date.day.into(), 2);
        self.date.push_byte(b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour ahead until 1,000,000,000, two afterwards.
    struct Turning;

    impl Zone for Turning {
        fn at(&self, seconds: i64) -> LocalTime {
            const TURN: i64 = 1_000_000_000;
            if seconds < TURN {
                LocalTime {
                    offset: 3600,
                    name: "ONE".to_owned(),
                    until: TURN,
                }
            } else {
                LocalTime {
                    offset: 7200,
                    name: "TWO".to_owned(),
                    until: i64::MAX,
                }
            }
        }
    }

    #[test]
    fn times_follow_the_zone_in_any_order() {
        let mut stamps = Stamps::new(&Turning);
        for (seconds, expected) in [
            (999_999_999, "2001-09-09 02:46:39 ONE"),
            (1_000_000_000, "2001-09-09 03:46:40 TWO"),
            (0, "1970-01-01 01:00:00 ONE"),
            (-3601, "1969-12-31 23:59:59 ONE"),
            (951_782_400, "2000-02-29 01:00:00 ONE"),
        ] {
            let mut line = Line::new();
            stamps.write(seconds, &mut line);
            assert_eq!(line.as_bytes(), expected.as_bytes());
        }
        for seconds in [i64::MIN, i64::MAX] {
            stamps.write(seconds, &mut Line::new());
        }
    }
}
