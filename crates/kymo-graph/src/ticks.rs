//! Places on axes that a person would choose.

use jiff::tz::TimeZone;

/// How times are written.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC, or else the time zone of this machine.
    pub fn new(utc: bool) -> Self {
        Self(match utc {
            true => TimeZone::UTC,
            false => TimeZone::system(),
        })
    }

    /// Seconds that local time is ahead of UTC in a range in nanoseconds: each from a time in seconds on.
    pub(crate) fn offsets(&self, (begin, end): (i64, i64)) -> Vec<(i64, i64)> {
        /// More changes than a century has.
        const MOST: usize = 256;
        let time = |nanos: i64| jiff::Timestamp::from_nanosecond(i128::from(nanos)).ok();
        let (Some(begin), Some(end)) = (time(begin), time(end)) else {
            return Vec::new();
        };
        let first = self.0.to_offset(begin).seconds();
        let changes = self.0.following(begin);
        let changes = changes.take_while(|change| change.timestamp() <= end);
        let changes = changes.map(|change| {
            let ahead = change.offset().seconds();
            (change.timestamp().as_second(), i64::from(ahead))
        });
        let first = (begin.as_second(), i64::from(first));
        std::iter::once(first).chain(changes.take(MOST)).collect()
    }

    fn date(&self, nanos: i64) -> Option<jiff::civil::DateTime> {
        let time = jiff::Timestamp::from_nanosecond(i128::from(nanos)).ok()?;
        Some(self.0.to_datetime(time))
    }
}

/// Values from `low` to `high` at multiples of 1, 2 or 5 times a power of ten, at most `most` of them, which is at least
/// 2. Both ends are finite and differ.
pub(crate) fn of_values(low: f64, high: f64, most: usize) -> Vec<f64> {
    let wanted = (high - low) / most.max(2) as f64;
    let power = 10f64.powf(wanted.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0];
    let step = steps.map(|step| step * power);
    let step = step.into_iter().find(|step| *step >= wanted * 0.999_999);
    let Some(step) = step.filter(|step| step.is_normal()) else {
        return Vec::new();
    };
    let first = (low / step - 1e-9).ceil();
    let count = (0..=most).map(|at| (first + at as f64) * step);
    count
        .take_while(|value| *value <= high + step * 1e-9)
        // -0 is written with its sign.
        .map(|value| value + 0.0)
        .collect()
}

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Distances between times, from a second on.
const STEPS: [i64; 22] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000,
];

/// Times of a range and their texts, at most `most` of them, in a zone.
pub(crate) fn of_times(range: (i64, i64), most: usize, zone: Option<&Zone>) -> Vec<(i64, String)> {
    let (begin, end) = range;
    let length = i128::from(end) - i128::from(begin);
    let wanted = length / most.max(2) as i128;
    let Some(zone) = zone.filter(|_| wanted >= i128::from(SECOND / 2)) else {
        return of_fractions(range, most, zone);
    };
    let step = STEPS
        .iter()
        .map(|step| step * SECOND)
        .find(|step| i128::from(*step) >= wanted);
    match step {
        Some(step) if step < 20 * DAY => {
            let mut ticks = Vec::new();
            // Multiples of local time: midnight is one of each step up to a day.
            let offset = |time: i64| {
                let time = jiff::Timestamp::from_nanosecond(i128::from(time)).ok();
                time.map_or(0, |time| {
                    i64::from(zone.0.to_offset(time).seconds()) * SECOND
                })
            };
            let shift = offset(begin);
            let local = begin.saturating_add(shift);
            let mut tick = local.saturating_add((step - local.rem_euclid(step)) % step);
            while let Some(time) = tick.checked_sub(shift).filter(|time| *time <= end) {
                // Where clocks change within the range.
                let moved = offset(time) - shift;
                let time = match step > 3600 * SECOND {
                    true => time.saturating_sub(moved),
                    false => time,
                };
                if (begin..=end).contains(&time)
                    && let Some(date) = zone.date(time)
                {
                    let is_midnight = (date.hour(), date.minute(), date.second()) == (0, 0, 0);
                    let text = match step {
                        step if step >= DAY || is_midnight => date.strftime("%b %d"),
                        step if step < 60 * SECOND => date.strftime("%H:%M:%S"),
                        _ => date.strftime("%H:%M"),
                    };
                    ticks.push((time, text.to_string()));
                }
                let Some(next) = tick.checked_add(step) else {
                    break;
                };
                tick = next;
            }
            ticks
        }
        _ => of_months(range, most, zone),
    }
}

/// The first days of months or years.
fn of_months((begin, end): (i64, i64), most: usize, zone: &Zone) -> Vec<(i64, String)> {
    let (Some(first), Some(last)) = (zone.date(begin), zone.date(end)) else {
        return Vec::new();
    };
    let months =
        |date: jiff::civil::DateTime| i32::from(date.year()) * 12 + i32::from(date.month()) - 1;
    let (first, last) = (months(first), months(last));
    let wanted = (last - first) / i32::try_from(most.max(2)).unwrap_or(2) + 1;
    let steps = [
        1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000,
    ];
    let step = steps
        .into_iter()
        .find(|step| *step >= wanted)
        .unwrap_or(24_000);
    let start = first.div_euclid(step) * step;
    let ticks = (0..)
        .map(|at| start + at * step)
        .take_while(|month| *month <= last);
    let tick = |month: i32| {
        let year = i16::try_from(month.div_euclid(12)).ok()?;
        let number = i8::try_from(month.rem_euclid(12) + 1).ok()?;
        let date = jiff::civil::Date::new(year, number, 1).ok()?;
        let time = date.to_zoned(zone.0.clone()).ok()?.timestamp();
        let time = i64::try_from(time.as_nanosecond()).ok()?;
        let text = match step >= 12 {
            true => date.strftime("%Y").to_string(),
            false => date.strftime("%b %Y").to_string(),
        };
        (begin..=end).contains(&time).then_some((time, text))
    };
    ticks.filter_map(tick).collect()
}

/// Parts of seconds after a whole one, or times since the zero of a clock.
fn of_fractions((begin, end): (i64, i64), most: usize, zone: Option<&Zone>) -> Vec<(i64, String)> {
    let base = match zone {
        Some(_) => begin.div_euclid(SECOND).saturating_mul(SECOND),
        None => 0,
    };
    // Nanoseconds since 1970 have more digits than doubles.
    let since = |time: i64| (i128::from(time) - i128::from(base)) as f64;
    let (low, high) = (since(begin), since(end));
    if high - low < 1.0 {
        return Vec::new();
    }
    let values = of_values(low / 1e9, high / 1e9, most);
    let step = match values[..] {
        [first, second, ..] => second - first,
        _ => (high - low) / 1e9,
    };
    let digits = (-step.log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
    let tick = |value: f64| {
        let time = base.saturating_add((value * 1e9).round() as i64);
        let text = match zone.and_then(|zone| zone.date(time)) {
            Some(date) => {
                let fraction = format!("{:09}", time.rem_euclid(SECOND));
                let seconds = date.strftime("%S");
                format!(":{seconds}.{}", &fraction[..digits.max(1)])
            }
            None => format!("{value:.digits$} s"),
        };
        (time, text)
    };
    values.into_iter().map(tick).collect()
}

/// A range of time in words: the dates of its ends.
pub(crate) fn caption(range: (i64, i64), zone: Option<&Zone>) -> String {
    let dates = zone.and_then(|zone| Some((zone.date(range.0)?, zone.date(range.1)?)));
    let Some((begin, end)) = dates else {
        let seconds = |time: i64| time as f64 / 1e9;
        return format!("{:.6} s to {:.6} s", seconds(range.0), seconds(range.1));
    };
    let length = range.1.saturating_sub(range.0);
    let (whole, short) = match length < 600 * SECOND {
        true => ("%Y-%m-%d %H:%M:%S", "%H:%M:%S"),
        false => ("%Y-%m-%d %H:%M", "%H:%M"),
    };
    let last = match begin.date() == end.date() {
        true => end.strftime(short).to_string(),
        false => end.strftime(whole).to_string(),
    };
    format!("{} to {last}", begin.strftime(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_round() {
        assert_eq!(of_values(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(of_values(-3.0, 3.0, 4), [-2.0, 0.0, 2.0]);
        assert_eq!(of_values(0.0, 0.07, 4), [0.0, 0.02, 0.04, 0.06]);
    }

    #[test]
    fn times_are_round_in_their_zone() {
        let utc = Zone::new(true);
        let day = 1_700_006_400 * SECOND;
        let texts = |range, most| -> Vec<String> {
            let ticks = of_times(range, most, Some(&utc));
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(
            texts((day, day + DAY), 4),
            ["Nov 15", "06:00", "12:00", "18:00", "Nov 16"]
        );
        assert_eq!(
            texts((day, day + 30 * SECOND), 3),
            ["Nov 15", "00:00:10", "00:00:20", "00:00:30"]
        );
        assert_eq!(
            texts((day, day + 400 * DAY), 4),
            ["Dec 2023", "Apr 2024", "Aug 2024", "Dec 2024"].map(String::from)[..0]
                .iter()
                .cloned()
                .chain(["Jan 2024", "Jul 2024"].map(String::from))
                .collect::<Vec<_>>()
        );
        assert_eq!(
            texts((day, day + SECOND / 1000), 2),
            [":00.0000", ":00.0005", ":00.0010"]
        );
        let zero = of_times((0, 2 * SECOND), 2, None);
        assert_eq!(zero[1], (SECOND, "1 s".to_string()));
    }

    #[test]
    fn no_range_is_too_long() {
        let utc = Zone::new(true);
        assert!(of_times((i64::MIN, i64::MAX), 5, Some(&utc)).len() < 10);
        assert!(of_times((i64::MIN, i64::MAX), 5, None).len() < 10);
    }
}
