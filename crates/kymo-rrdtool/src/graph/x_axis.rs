//! The time axis: where its lines are, and what is written below them.

use super::dates::date;
use super::options::XGrid;
use crate::times::Clock;
use crate::times::calendar::Calendar;
use crate::{Failure, LocalZone};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const MONTH: i64 = 30 * DAY;
const YEAR: i64 = 365 * DAY;

/// Lines of one kind at most: more than pixels that any picture has.
const MAX_LINES: usize = 1 << 16;

/// A unit of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

use Unit as U;

const UNITS: [(&str, Unit); 7] = [
    ("SECOND", U::Second),
    ("MINUTE", U::Minute),
    ("HOUR", U::Hour),
    ("DAY", U::Day),
    ("WEEK", U::Week),
    ("MONTH", U::Month),
    ("YEAR", U::Year),
];

/// A number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval(u32, Unit);

/// Distances of lines and labels, and how labels are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimeGrid {
    minor: Interval,
    major: Interval,
    label: Interval,
    /// Number of seconds in whose middle a label is placed.
    precision: i64,
    pub(crate) format: String,
}

/// A row of the table of automatic grids.
struct Automatic {
    /// Seconds per pixel, at least.
    seconds: f64,
    /// The length of the axis, at least.
    length: i64,
    grid: (Interval, Interval, Interval, i64, &'static str),
}

/// `%V` of the row of weeks is replaced by the format that is set.
const WEEK: &str = "";

#[rustfmt::skip]
const TABLE: &[Automatic] = &[
    row(0.0, (1, U::Second), (5, U::Second), (1, U::Second), 0, "%H:%M:%S"),
    row(0.015, (1, U::Second), (5, U::Second), (5, U::Second), 0, "%H:%M:%S"),
    row(0.08, (1, U::Second), (5, U::Second), (10, U::Second), 0, "%H:%M:%S"),
    row(0.15, (5, U::Second), (15, U::Second), (30, U::Second), 0, "%H:%M:%S"),
    row(0.4, (10, U::Second), (1, U::Minute), (1, U::Minute), 0, "%H:%M"),
    row(0.7, (20, U::Second), (1, U::Minute), (1, U::Minute), 0, "%H:%M"),
    row(1.0, (30, U::Second), (1, U::Minute), (2, U::Minute), 0, "%H:%M"),
    row(2.0, (1, U::Minute), (5, U::Minute), (5, U::Minute), 0, "%H:%M"),
    row(5.0, (2, U::Minute), (10, U::Minute), (10, U::Minute), 0, "%H:%M"),
    row(10.0, (5, U::Minute), (20, U::Minute), (20, U::Minute), 0, "%H:%M"),
    row(30.0, (10, U::Minute), (30, U::Minute), (1, U::Hour), 0, "%H:%M"),
    row(60.0, (30, U::Minute), (1, U::Hour), (2, U::Hour), 0, "%H:%M"),
    Automatic { length: DAY, ..row(60.0, (30, U::Minute), (1, U::Hour), (3, U::Hour), 0, "%a %H:%M") },
    row(140.0, (1, U::Hour), (2, U::Hour), (4, U::Hour), 0, "%a %H:%M"),
    row(180.0, (1, U::Hour), (3, U::Hour), (6, U::Hour), 0, "%a %H:%M"),
    row(300.0, (2, U::Hour), (6, U::Hour), (12, U::Hour), 0, "%a %H:%M"),
    row(600.0, (6, U::Hour), (1, U::Day), (1, U::Day), DAY, "%a %d %b"),
    row(1200.0, (6, U::Hour), (1, U::Day), (1, U::Day), DAY, "%d %b"),
    row(1800.0, (12, U::Hour), (1, U::Day), (2, U::Day), DAY, "%a %d %b"),
    row(2400.0, (12, U::Hour), (1, U::Day), (2, U::Day), DAY, "%d %b"),
    row(3600.0, (1, U::Day), (1, U::Week), (1, U::Week), 7 * DAY, WEEK),
    row(12_000.0, (1, U::Day), (1, U::Month), (1, U::Month), MONTH, "%B %Y"),
    row(18_000.0, (2, U::Day), (1, U::Month), (1, U::Month), MONTH, "%B %Y"),
    row(23_000.0, (1, U::Week), (1, U::Month), (1, U::Month), MONTH, "%b %Y"),
    row(32_000.0, (1, U::Week), (1, U::Month), (1, U::Month), MONTH, "%b '%g"),
    row(42_000.0, (1, U::Week), (1, U::Month), (2, U::Month), MONTH, "%B %Y"),
    row(52_000.0, (1, U::Week), (1, U::Month), (2, U::Month), MONTH, "%b %Y"),
    row(78_000.0, (1, U::Week), (1, U::Month), (2, U::Month), MONTH, "%b '%g"),
    row(84_000.0, (2, U::Week), (1, U::Month), (3, U::Month), MONTH, "%B %Y"),
    row(94_000.0, (2, U::Week), (1, U::Month), (3, U::Month), MONTH, "%b %Y"),
    row(120_000.0, (2, U::Week), (1, U::Month), (3, U::Month), MONTH, "%b '%g"),
    row(130_000.0, (1, U::Month), (2, U::Month), (4, U::Month), 0, "%Y-%m-%d"),
    row(142_000.0, (1, U::Month), (3, U::Month), (6, U::Month), 0, "%Y-%m-%d"),
    row(220_000.0, (1, U::Month), (6, U::Month), (12, U::Month), 0, "%Y-%m-%d"),
    row(400_000.0, (2, U::Month), (12, U::Month), (12, U::Month), YEAR, "%Y"),
    row(800_000.0, (4, U::Month), (12, U::Month), (24, U::Month), YEAR, "%Y"),
    row(2_000_000.0, (6, U::Month), (12, U::Month), (24, U::Month), YEAR, "'%g"),
];

const fn row(
    seconds: f64,
    minor: (u32, Unit),
    major: (u32, Unit),
    label: (u32, Unit),
    precision: i64,
    format: &'static str,
) -> Automatic {
    const fn interval((count, unit): (u32, Unit)) -> Interval {
        Interval(count, unit)
    }
    Automatic {
        seconds,
        length: 0,
        grid: (
            interval(minor),
            interval(major),
            interval(label),
            precision,
            format,
        ),
    }
}

/// The grid that suits an axis of `seconds` seconds and `pixels` pixels.
fn automatic(seconds: i64, pixels: u32, week_format: &str) -> TimeGrid {
    let each = seconds as f64 / f64::from(pixels);
    let suits = |row: &&Automatic| row.seconds <= each && row.length <= seconds;
    let row = TABLE.iter().rev().find(suits).unwrap_or(&TABLE[0]);
    let (minor, major, label, precision, format) = row.grid;
    TimeGrid {
        minor,
        major,
        label,
        precision,
        format: match format {
            WEEK => week_format,
            format => format,
        }
        .to_owned(),
    }
}

/// Reads `UNIT:N:UNIT:N:UNIT:N:SECONDS:FORMAT`: minor lines, major lines, labels.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn parse_grid(text: &str) -> Result<TimeGrid, Failure> {
    let wrong = || {
        Failure::new(format!(
            "invalid x-grid format '{text}' (expected UNIT:N:UNIT:N:UNIT:N:SECONDS:FORMAT)"
        ))
    };
    let mut parts = text.splitn(8, ':');
    let mut interval = || {
        let (unit, count) = (parts.next()?, parts.next()?);
        Some((unit, count))
    };
    let (Some(minor), Some(major), Some(label)) = (interval(), interval(), interval()) else {
        return Err(wrong());
    };
    let interval = |(name, count): (&str, &str)| {
        let unit = UNITS
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| {
                let units = UNITS.map(|(name, _)| name).join(" ");
                Failure::new(format!(
                    "unknown keyword '{name}' in x-grid (known: {units})"
                ))
            })?;
        let count = count
            .trim()
            .parse()
            .ok()
            .filter(|count| (1..=1_000_000).contains(count));
        Ok(Interval(count.ok_or_else(wrong)?, unit.1))
    };
    let (Some(precision), Some(format)) = (parts.next(), parts.next()) else {
        return Err(wrong());
    };
    let precision = precision
        .trim()
        .parse()
        .ok()
        .filter(|precision| (0..=i64::from(u32::MAX)).contains(precision));
    Ok(TimeGrid {
        minor: interval(minor)?,
        major: interval(major)?,
        label: interval(label)?,
        precision: precision.ok_or_else(wrong)?,
        format: format.to_owned(),
    })
}

/// Lines and labels of the axis, in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct XAxis {
    pub(crate) minor: Vec<i64>,
    pub(crate) major: Vec<i64>,
    pub(crate) labels: Vec<(i64, String)>,
}

impl XAxis {
    /// The axis from a time to another.
    ///
    /// # Errors
    ///
    /// If it has too many lines.
    pub(crate) fn new(
        grid: &XGrid,
        (start, end): (i64, i64),
        pixels: u32,
        week_format: &str,
        zone: &LocalZone,
    ) -> Result<Self, Failure> {
        let grid = match grid {
            XGrid::None => return Ok(Self::default()),
            XGrid::Automatic => automatic(end - start, pixels, week_format),
            XGrid::Lines(grid) => grid.clone(),
        };
        let clock = Clock {
            now: start,
            zone,
            is_first: false,
        };
        let calendar = Calendar::new(&clock);
        let lines = |interval: Interval| {
            let first = interval.first(start, &calendar);
            let times = interval.times(first, &calendar);
            bounded(
                times
                    .take_while(|time| *time < end)
                    .filter(|time| *time >= start),
            )
        };
        let major = lines(grid.major)?;
        let mut minor = lines(grid.minor)?;
        minor.retain(|time| major.binary_search(time).is_err());
        let half = grid.precision / 2;
        let first = grid.label.first(start - half, &calendar);
        let times = grid.label.times(first, &calendar);
        let labels = times.map(|time| time.saturating_add(half));
        let labels = labels
            .take_while(|time| *time <= end)
            .filter(|time| *time >= start);
        let labels = bounded(labels)?.into_iter();
        Ok(Self {
            minor,
            major,
            labels: labels
                .map(|time| (time, date(&grid.format, time, zone)))
                .collect(),
        })
    }
}

fn bounded(times: impl Iterator<Item = i64>) -> Result<Vec<i64>, Failure> {
    let times: Vec<i64> = times.take(MAX_LINES + 1).collect();
    match times.len() > MAX_LINES {
        false => Ok(times),
        true => Err(Failure::new(format!(
            "the x grid has more than {MAX_LINES} lines; specify a longer interval with --x-grid"
        ))),
    }
}

impl Interval {
    /// The last beginning of an interval at a time or before it.
    fn first(self, time: i64, calendar: &Calendar<'_>) -> i64 {
        let Self(count, unit) = self;
        let count = i64::from(count);
        let (mut fields, summer) = calendar.fields(time);
        let second = fields.second_of_day;
        match unit {
            U::Second => fields.second_of_day -= second % MINUTE % count,
            U::Minute => {
                fields.second_of_day -= second % MINUTE + MINUTE * (second / MINUTE % 60 % count);
            }
            U::Hour => {
                fields.second_of_day -= second % HOUR + HOUR * (second / HOUR % count);
            }
            U::Day => fields.second_of_day = 0,
            U::Week => {
                fields.second_of_day = 0;
                fields.day -= fields.weekday;
            }
            U::Month => {
                fields.second_of_day = 0;
                fields.day = 1;
                fields.month -= (fields.month - 1) % count;
            }
            U::Year => {
                fields.second_of_day = 0;
                (fields.month, fields.day) = (1, 1);
                fields.year -= fields.year.rem_euclid(count);
            }
        }
        // By the clock of that time, as rrdtool does it.
        calendar.moment(&fields, Some(summer)).unwrap_or(time)
    }

    /// This time, and all that follow.
    fn times(self, first: i64, calendar: &Calendar<'_>) -> impl Iterator<Item = i64> {
        std::iter::successors(Some(first), move |time| {
            let next = self.next(*time, calendar);
            (next > *time).then_some(next)
        })
    }

    fn next(self, time: i64, calendar: &Calendar<'_>) -> i64 {
        let Self(count, unit) = self;
        let count = i64::from(count);
        let (mut fields, summer) = calendar.fields(time);
        let seconds = match unit {
            U::Second => 1,
            U::Minute => MINUTE,
            U::Hour => HOUR,
            U::Day => DAY,
            U::Week => 7 * DAY,
            U::Month => MONTH,
            U::Year => YEAR,
        };
        match unit {
            U::Second | U::Minute | U::Hour => fields.second_of_day += count * seconds,
            U::Day => fields.day += count,
            U::Week => fields.day += 7 * count,
            U::Month => fields.month += count,
            U::Year => fields.year += count,
        }
        // As rrdtool does it, by the clock of this time: days have 24 hours where clocks are set.
        match calendar.moment(&fields, Some(summer)) {
            Some(next) if next > time => next,
            _ => time.saturating_add(count * seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(grid: &XGrid, bounds: (i64, i64), zone: &str) -> XAxis {
        let zone = LocalZone::posix(zone).unwrap();
        XAxis::new(grid, bounds, 400, "Week %V", &zone).unwrap()
    }

    #[test]
    fn a_day_has_hours() {
        let day = axis(&XGrid::Automatic, (1_699_920_000, 1_700_006_400), "UTC0");
        assert_eq!((day.minor.len(), day.major.len()), (16, 8));
        assert_eq!(day.labels[0], (1_699_920_000, "Tue 00:00".to_owned()));
        assert_eq!(day.labels[1].0 - day.labels[0].0, 6 * HOUR);
    }

    #[test]
    fn clocks_are_set_back() {
        // 2024-10-27 has 25 hours, but its lines are 24 hours apart, as in rrdtool.
        let start = 1_729_980_000;
        let zone = "CET-1CEST,M3.5.0,M10.5.0/3";
        let grid = XGrid::Lines(parse_grid("HOUR:1:DAY:1:DAY:1:86400:%d").unwrap());
        let day = axis(&grid, (start, start + 3 * DAY), zone);
        assert_eq!(day.major, [start, start + 24 * HOUR, start + 48 * HOUR]);
        assert_eq!(day.labels[0].1, "27");
        assert!(day.minor.is_sorted());
    }

    #[test]
    fn months_begin_by_the_clock_of_the_start() {
        // 2023-03-31 has summer time, the first day of the month has not; seen with rrdtool 1.7.2.
        let start = 1_680_213_600;
        let zone = "CET-1CEST,M3.5.0,M10.5.0/3";
        let grid = XGrid::Lines(parse_grid("MONTH:1:MONTH:1:MONTH:1:0:%m-%d %H:%M").unwrap());
        let axis = axis(&grid, (start, start + 100 * DAY), zone);
        let labels: Vec<&str> = axis.labels.iter().map(|(_, label)| &**label).collect();
        assert_eq!(labels, ["04-29 00:00", "05-29 00:00", "06-29 00:00"]);
    }

    #[test]
    fn grids_are_checked() {
        for wrong in [
            "",
            "HOUR:1:HOUR:1",
            "FOO:1:HOUR:1:HOUR:1:0:%H",
            "HOUR:0:HOUR:1:HOUR:1:0:%H",
            "HOUR:1:HOUR:1:HOUR:1:x:%H",
            "HOUR:1:HOUR:1:HOUR:1:0",
        ] {
            assert!(parse_grid(wrong).is_err(), "{wrong}");
        }
        let zone = LocalZone::posix("UTC0").unwrap();
        let grid = XGrid::Lines(parse_grid("SECOND:1:HOUR:1:HOUR:1:0:%H:%M").unwrap());
        assert!(XAxis::new(&grid, (0, YEAR), 400, "", &zone).is_err());
    }
}
