//! Times as a clock on the wall shows them.

use jiff::tz::TimeZone;
use kymo_text::{Line, Stamp};
use kymo_time::{NANOS_PER_SECOND, Timestamp, date_of_days};

use crate::filter::zone;

/// How times are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallOptions {
    /// With the date.
    pub date: bool,
    /// In UTC, and not in local time.
    pub gmt: bool,
    /// As seconds since the origin.
    pub seconds: bool,
}

/// Writes times. What precedes the nanoseconds is kept for as long as the second lasts.
#[derive(Debug)]
pub(crate) struct Wall {
    options: WallOptions,
    /// Of local time, once it was asked for: finding it takes a while.
    zone: Option<TimeZone>,
    /// The second that `stamp` is of.
    second: Option<i64>,
    /// Text of that second, up to the point.
    stamp: Stamp,
    /// Whether it was said that times before the origin are shown as seconds.
    warned: bool,
}

impl Wall {
    pub(crate) fn new(options: WallOptions) -> Self {
        Self {
            options,
            zone: None,
            second: None,
            stamp: Stamp::default(),
            warned: false,
        }
    }

    /// Appends a time. Those before the origin are always shown as seconds, of which a
    /// warning is printed once.
    #[inline]
    pub(crate) fn write(
        &mut self,
        time: Option<Timestamp>,
        line: &mut Line,
        warnings: &mut Vec<u8>,
    ) {
        let Some(time) = time else {
            return line.push(b"??:??:??.?????????");
        };
        let nanos = self.begin(time, line, warnings);
        line.nanos(nanos);
    }

    /// Appends a time up to the point of the second, and gives the nanoseconds that belong
    /// behind it.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        time: Timestamp,
        line: &mut Line,
        warnings: &mut Vec<u8>,
    ) -> u32 {
        let nanos = time.as_nanos();
        if nanos < 0 {
            return self.begin_negative(nanos, line, warnings);
        }
        let second = nanos / NANOS_PER_SECOND;
        if self.second != Some(second) {
            self.turn_to(time, second);
        }
        line.stamp(&self.stamp);
        (nanos % NANOS_PER_SECOND) as u32
    }

    #[cold]
    fn begin_negative(&mut self, nanos: i64, line: &mut Line, warnings: &mut Vec<u8>) -> u32 {
        if !self.options.seconds && !self.warned {
            self.warned = true;
            warnings.extend_from_slice(
                b"[warning] Fallback to [sec.ns] to print negative time value. \
                  Use --clock-seconds.\n",
            );
        }
        let unit = NANOS_PER_SECOND.unsigned_abs();
        line.push_byte(b'-');
        line.decimal(nanos.unsigned_abs() / unit);
        line.push_byte(b'.');
        (nanos.unsigned_abs() % unit) as u32
    }

    #[cold]
    fn turn_to(&mut self, time: Timestamp, second: i64) {
        self.second = Some(second);
        let mut text = Line::new();
        self.turn(time, second, &mut text);
        self.stamp = Stamp::new(text.as_bytes());
    }

    /// Writes what precedes the nanoseconds.
    fn turn(&mut self, time: Timestamp, second: i64, text: &mut Line) {
        if self.options.seconds {
            text.decimal(second.unsigned_abs());
            return text.push_byte(b'.');
        }
        let local = match self.options.gmt {
            true => second,
            false => {
                let zone = self.zone.get_or_insert_with(|| zone(false));
                second + i64::from(offset(zone, time))
            }
        };
        if self.options.date {
            let date = date_of_days(local.div_euclid(86_400));
            text.padded(date.year.unsigned_abs(), 4);
            text.push_byte(b'-');
            text.padded(date.month.into(), 2);
            text.push_byte(b'-');
            text.padded(date.day.into(), 2);
            text.push_byte(b' ');
        }
        let of_day = local.rem_euclid(86_400) as u64;
        for (value, after) in [
            (of_day / 3600, b':'),
            (of_day / 60 % 60, b':'),
            (of_day % 60, b'.'),
        ] {
            text.padded(value, 2);
            text.push_byte(after);
        }
    }
}

/// Seconds that local time is ahead of UTC.
fn offset(zone: &TimeZone, time: Timestamp) -> i32 {
    jiff::Timestamp::from_nanosecond(time.as_nanos().into())
        .map_or(0, |time| zone.to_offset(time).seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(wall: &mut Wall, nanos: i64) -> (String, Vec<u8>) {
        let (mut line, mut warnings) = (Line::new(), Vec::new());
        wall.write(Some(Timestamp::from_nanos(nanos)), &mut line, &mut warnings);
        let text = String::from_utf8(line.as_bytes().to_vec()).unwrap();
        (text, warnings)
    }

    #[test]
    fn universal_time() {
        let mut wall = Wall::new(WallOptions {
            date: true,
            gmt: true,
            seconds: false,
        });
        let time = 1_600_000_000_000_000_123;
        assert_eq!(show(&mut wall, time).0, "2020-09-13 12:26:40.000000123");
        assert_eq!(show(&mut wall, time + 7).0, "2020-09-13 12:26:40.000000130");
        assert_eq!(show(&mut wall, 0).0, "1970-01-01 00:00:00.000000000");
        assert_eq!(show(&mut wall, i64::MAX).0, "2262-04-11 23:47:16.854775807");
    }

    #[test]
    fn local_time_follows_the_zone() {
        let mut wall = Wall::new(WallOptions::default());
        wall.zone = Some(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
        let summer = 1_600_000_000_000_000_000;
        assert_eq!(show(&mut wall, summer).0, "14:26:40.000000000");
        let winter = 1_577_836_800_000_000_000;
        assert_eq!(show(&mut wall, winter).0, "01:00:00.000000000");
    }

    #[test]
    fn before_the_origin() {
        let mut wall = Wall::new(WallOptions {
            gmt: true,
            ..WallOptions::default()
        });
        let (text, warning) = show(&mut wall, -1);
        assert_eq!(text, "-0.000000001");
        assert!(warning.starts_with(b"[warning] Fallback"));
        let (text, warning) = show(&mut wall, i64::MIN);
        assert_eq!(text, "-9223372036.854775808");
        assert!(warning.is_empty());
    }
}
