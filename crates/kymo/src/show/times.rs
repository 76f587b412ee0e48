//! Times as scripts read them.

use jiff::tz::{Offset, TimeZone};
use kymo_text::{Line, Stamp};
use kymo_time::{Timestamp, date_of_days};

use super::WallOptions;

/// How JSON and CSV hold times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// Nanoseconds, as a number.
    #[default]
    Number,
    /// Nanoseconds, as text: programs that read numbers as doubles lose the last digits of one.
    Text,
    /// As in RFC 3339, with nine digits of the second.
    Iso,
}

/// Writes times. What precedes the nanoseconds is kept for as long as the second lasts.
#[derive(Debug)]
pub(crate) struct TimeText {
    times: Times,
    zone: TimeZone,
    second: Option<i64>,
    /// Text of that second, up to the point.
    stamp: Stamp,
    /// What follows the nanoseconds: the distance from UTC.
    end: Stamp,
}

impl TimeText {
    /// In the time zone that `wall` names.
    pub(crate) fn new(times: Times, wall: WallOptions) -> Self {
        Self {
            times,
            zone: crate::filter::zone(wall.gmt),
            second: None,
            stamp: Stamp::default(),
            end: Stamp::default(),
        }
    }

    /// Whether times are texts in JSON.
    #[inline]
    pub(crate) fn is_text(&self) -> bool {
        self.times != Times::Number
    }

    /// Appends a time.
    #[inline]
    pub(crate) fn write(&mut self, time: Timestamp, line: &mut Line) {
        match self.times {
            Times::Number | Times::Text => line.signed(time.as_nanos()),
            Times::Iso => self.iso(time, line),
        }
    }

    fn iso(&mut self, time: Timestamp, line: &mut Line) {
        let (second, nanos) = time.split();
        if self.second != Some(second) {
            self.turn_to(time, second);
        }
        line.stamp(&self.stamp);
        line.nanos(nanos);
        line.stamp(&self.end);
    }

    #[cold]
    fn turn_to(&mut self, time: Timestamp, second: i64) {
        let (mut text, mut end) = (Line::new(), Line::new());
        // RFC 3339 gives distances from UTC in whole minutes: seconds of old time zones are left out.
        let minutes = i64::from(offset(&self.zone, time).seconds() / 60);
        let local = second + minutes * 60;
        let date = date_of_days(local.div_euclid(86_400));
        text.padded(date.year.unsigned_abs(), 4);
        for part in [date.month, date.day] {
            text.push_byte(b'-');
            text.padded(part.into(), 2);
        }
        let of_day = local.rem_euclid(86_400).unsigned_abs();
        for (before, part) in [
            (b'T', of_day / 3600),
            (b':', of_day / 60 % 60),
            (b':', of_day % 60),
        ] {
            text.push_byte(before);
            text.padded(part, 2);
        }
        text.push_byte(b'.');
        if self.zone == TimeZone::UTC {
            end.push_byte(b'Z');
        } else {
            end.push_byte(if minutes < 0 { b'-' } else { b'+' });
            end.padded(minutes.unsigned_abs() / 60, 2);
            end.push_byte(b':');
            end.padded(minutes.unsigned_abs() % 60, 2);
        }
        self.second = Some(second);
        self.stamp = Stamp::new(text.as_bytes());
        self.end = Stamp::new(end.as_bytes());
    }
}

fn offset(zone: &TimeZone, time: Timestamp) -> Offset {
    jiff::Timestamp::from_nanosecond(time.as_nanos().into())
        .map_or(Offset::UTC, |time| zone.to_offset(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(zone: TimeZone, nanos: i64) -> String {
        let mut text = TimeText::new(Times::Iso, WallOptions::default());
        text.zone = zone;
        let mut line = Line::new();
        text.write(Timestamp::from_nanos(nanos), &mut line);
        String::from_utf8(line.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn times_are_those_of_rfc_3339() {
        for (nanos, expected) in [
            (1_600_000_000_000_000_123, "2020-09-13T12:26:40.000000123Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
        ] {
            assert_eq!(iso(TimeZone::UTC, nanos), expected);
            // Other programs read the same time.
            let back: jiff::Timestamp = expected.parse().unwrap();
            assert_eq!(back.as_nanosecond(), i128::from(nanos));
        }
        for (zone, expected) in [
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2020-09-13T14:26:40.000000000+02:00",
            ),
            ("NST3:30", "2020-09-13T08:56:40.000000000-03:30"),
            ("OLD-0:53:28", "2020-09-13T13:19:40.000000000+00:53"),
        ] {
            let zone = TimeZone::posix(zone).unwrap();
            assert_eq!(iso(zone, 1_600_000_000_000_000_000), expected);
        }
    }
}
