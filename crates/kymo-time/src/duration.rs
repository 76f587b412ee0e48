//! Durations, as people write them.

use std::fmt;
use std::str::FromStr;

/// A span of time, forwards or backwards.
///
/// Written as `[+|-]N[.N][UNIT]`. Units are `ns`, `us` or `µs`, `ms`, `s`, `m` or `min`, `h`, `d`, `w` and `y`, from
/// seconds on also as words (`2hours`); a number alone is seconds. A year has 366 days, as in rrdtool. What is less
/// than a nanosecond is cut off.
///
/// ```
/// use kymo_time::Duration;
///
/// assert_eq!("-1.5ms".parse(), Ok(Duration { nanos: -1_500_000 }));
/// assert_eq!(Duration::parse_seconds("5min"), Ok(300));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    /// Nanoseconds.
    pub nanos: i64,
}

/// Why a text is not a duration, or not one of those that fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    text: String,
    problem: &'static str,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.text, self.problem)
    }
}

impl std::error::Error for DurationError {}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let nanos = nanos(text).ok_or_else(|| DurationError {
            text: text.to_string(),
            problem: "a duration: expected [-]N[.N][ns|us|ms|s|m|h|d|w|y]",
        })?;
        Ok(Self { nanos })
    }
}

impl Duration {
    /// Reads a duration above 0.
    ///
    /// # Errors
    ///
    /// The text is not a duration, or not above 0.
    pub fn parse_positive(text: &str) -> Result<std::time::Duration, DurationError> {
        match u64::try_from(text.parse::<Self>()?.nanos) {
            Ok(nanos @ 1..) => Ok(std::time::Duration::from_nanos(nanos)),
            _ => Err(DurationError {
                text: text.to_string(),
                problem: "above 0: expected a duration such as 1s or 10ms",
            }),
        }
    }

    /// Reads a duration of whole seconds, at least one.
    ///
    /// # Errors
    ///
    /// The text is not a duration, not above 0, or not a number of whole seconds.
    pub fn parse_seconds(text: &str) -> Result<u64, DurationError> {
        match Self::parse_positive(text)? {
            duration if duration.subsec_nanos() == 0 => Ok(duration.as_secs()),
            _ => Err(DurationError {
                text: text.to_string(),
                problem: "a number of whole seconds: expected a duration such as 1s or 5m",
            }),
        }
    }
}

/// The nanoseconds that a duration specifies, without what is less than one.
fn nanos(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (number, unit) = rest.split_at(end);
    const SECOND: i128 = 1_000_000_000;
    let unit = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hour" | "hours" => 3_600 * SECOND,
        "d" | "day" | "days" => 86_400 * SECOND,
        "w" | "week" | "weeks" => 7 * 86_400 * SECOND,
        "y" | "year" | "years" => 366 * 86_400 * SECOND,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 18 || fraction.contains('.') {
        return None;
    }
    let mut total = whole.parse::<i128>().ok()?.checked_mul(unit)?;
    if !fraction.is_empty() {
        let digits: i128 = fraction.parse().ok()?;
        total = total.checked_add(digits * unit / 10i128.pow(fraction.len() as u32))?;
    }
    i64::try_from(sign * total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, nanos) in [
            ("1", 1_000_000_000),
            ("-1.5s", -1_500_000_000),
            ("+2ms", 2_000_000),
            ("3us", 3_000),
            ("0.25h", 900_000_000_000),
            ("1d", 86_400_000_000_000),
            ("7ns", 7),
            ("0.0000000019", 1),
        ] {
            assert_eq!(text.parse(), Ok(Duration { nanos }), "{text}");
        }
        for text in [
            "",
            "-",
            "s",
            "1x",
            "1.2.3",
            ".5",
            "1 s",
            "99999999999d",
            "99999999999999999999",
            "1e3",
            "1mon",
            "1weird",
            "1h1m",
            "5d1",
            "2M",
            "1D",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn seconds_are_whole() {
        for (text, seconds) in [
            ("90", 90),
            ("15s", 15),
            ("5m", 300),
            ("5min", 300),
            ("2minutes", 120),
            ("36h", 129_600),
            ("1.5d", 129_600),
            ("1day", 86_400),
            ("2w", 1_209_600),
            ("1y", 31_622_400),
            ("2years", 63_244_800),
        ] {
            assert_eq!(Duration::parse_seconds(text), Ok(seconds), "{text}");
        }
        for text in ["", "s", "0", "0s", "1.5s", "10ms", "-1s", "1mon"] {
            assert!(Duration::parse_seconds(text).is_err(), "{text}");
        }
    }
}
