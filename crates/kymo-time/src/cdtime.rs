//! collectd's high resolution time.

use std::fmt;

use kymo_machine::Number;

use crate::{Date, date_of_days, days_of_date};

/// A timestamp or a duration as collectd counts it: units of 2^-30 seconds, a little less than a
/// nanosecond, in 64 bits. As a timestamp it counts from 1970-01-01T00:00:00Z and ends in 2514.
///
/// Every conversion rounds as collectd's own does (its `utils_time.h`), and is an error where
/// that goes round or is not defined. Nanoseconds survive the way to a `CdTime` and back, most
/// `CdTime`s do not survive the way to nanoseconds or to a double and back: keep the
/// [count](Self::ticks).
///
/// ```
/// use kymo_time::CdTime;
///
/// let time = CdTime::from_nanos(1_439_981_652_801_860_766).unwrap();
/// assert_eq!(time.ticks(), 1_546_168_526_406_004_689);
/// assert_eq!(time.to_nanos(), 1_439_981_652_801_860_766);
/// assert_eq!(time.to_string(), "1439981652.802");
/// assert_eq!(time.lossless(), "1439981652.8018607656");
/// assert_eq!(CdTime::from_decimal(&time.lossless()), Ok(time));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CdTime(u64);

/// Units in a second, as a power of two.
const BITS: u32 = 30;
const SECOND: u64 = 1 << BITS;
const FRACTION: u64 = SECOND - 1;
const HALF: u64 = SECOND / 2;
/// Decimals that distinguish every unit from its neighbours.
const LOSSLESS: u32 = 10;

/// Why something is no [`CdTime`], or a [`CdTime`] nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdTimeError {
    /// The text is not a number, or something follows the number.
    NotANumber,
    /// The text is not a date and time in the format of RFC 3339.
    NotADate,
    /// Not a number, or infinite.
    NotFinite,
    /// Before 1970, or a negative duration.
    Negative,
    /// 2^34 seconds or more, or so close below that rounding leads there.
    TooLarge,
    /// A number so close to zero that no double is near it.
    TooSmall,
}

impl fmt::Display for CdTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "expected a number of seconds",
            Self::NotADate => "expected a date and time such as 2006-01-02T15:04:05Z",
            Self::NotFinite => "the number of seconds is not finite",
            Self::Negative => "the number of seconds is negative",
            Self::TooLarge => "the number of seconds is not below 2^34",
            Self::TooSmall => "the number of seconds is too close to zero",
        })
    }
}

impl std::error::Error for CdTimeError {}

impl CdTime {
    /// The epoch, or no time at all.
    pub const ZERO: Self = Self(0);
    /// The latest time.
    pub const MAX: Self = Self(u64::MAX);
    /// Units in a second.
    pub const TICKS_PER_SECOND: u64 = SECOND;

    /// The time with this count.
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    /// The count: what goes over the wire.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Whole seconds, exactly (`TIME_T_TO_CDTIME_T`).
    ///
    /// # Errors
    ///
    /// Negative seconds, or 2^34 of them and more.
    pub const fn from_seconds(seconds: i64) -> Result<Self, CdTimeError> {
        if seconds < 0 {
            return Err(CdTimeError::Negative);
        }
        match seconds >> (u64::BITS - BITS) {
            0 => Ok(Self((seconds as u64) << BITS)),
            _ => Err(CdTimeError::TooLarge),
        }
    }

    /// To the nearest unit, of two the later (`MS_TO_CDTIME_T`).
    ///
    /// # Errors
    ///
    /// 2^34 seconds and more.
    pub const fn from_millis(millis: u64) -> Result<Self, CdTimeError> {
        Self::from_parts(millis, 1_000)
    }

    /// To the nearest unit, of two the later (`US_TO_CDTIME_T`).
    ///
    /// # Errors
    ///
    /// 2^34 seconds and more.
    pub const fn from_micros(micros: u64) -> Result<Self, CdTimeError> {
        Self::from_parts(micros, 1_000_000)
    }

    /// To the nearest unit, of two the later (`NS_TO_CDTIME_T`).
    ///
    /// # Errors
    ///
    /// 2^34 seconds and more.
    pub const fn from_nanos(nanos: u64) -> Result<Self, CdTimeError> {
        Self::from_parts(nanos, 1_000_000_000)
    }

    const fn from_parts(count: u64, parts: u64) -> Result<Self, CdTimeError> {
        let seconds = count / parts;
        if seconds >> (u64::BITS - BITS) != 0 {
            return Err(CdTimeError::TooLarge);
        }
        // The quotient stays below a second, since a part is more than a unit's half.
        let fraction = (((count % parts) << BITS) + parts / 2) / parts;
        Ok(Self(seconds << BITS | fraction))
    }

    /// Seconds and microseconds (`TIMEVAL_TO_CDTIME_T`), to the nearest unit.
    ///
    /// # Errors
    ///
    /// 2^34 seconds and more.
    pub const fn from_timeval(seconds: u64, micros: u32) -> Result<Self, CdTimeError> {
        match seconds.checked_mul(1_000_000) {
            Some(whole) => match whole.checked_add(micros as u64) {
                Some(micros) => Self::from_micros(micros),
                None => Err(CdTimeError::TooLarge),
            },
            None => Err(CdTimeError::TooLarge),
        }
    }

    /// Seconds and nanoseconds (`TIMESPEC_TO_CDTIME_T`), to the nearest unit.
    ///
    /// # Errors
    ///
    /// 2^34 seconds and more.
    pub const fn from_timespec(seconds: u64, nanos: u32) -> Result<Self, CdTimeError> {
        match seconds.checked_mul(1_000_000_000) {
            Some(whole) => match whole.checked_add(nanos as u64) {
                Some(nanos) => Self::from_nanos(nanos),
                None => Err(CdTimeError::TooLarge),
            },
            None => Err(CdTimeError::TooLarge),
        }
    }

    /// The unit that the seconds lie in (`DOUBLE_TO_CDTIME_T`): what is below it is cut off. This
    /// is how numbers in collectd's configuration are read.
    ///
    /// # Errors
    ///
    /// What is not finite, negative, or 2^34 and more.
    pub fn from_f64(seconds: f64) -> Result<Self, CdTimeError> {
        if !seconds.is_finite() {
            return Err(CdTimeError::NotFinite);
        }
        if seconds < 0.0 {
            return Err(CdTimeError::Negative);
        }
        // Exact: the factor is a power of two.
        let ticks = seconds * SECOND as f64;
        match ticks < 2f64.powi(64) {
            true => Ok(Self(ticks as u64)),
            false => Err(CdTimeError::TooLarge),
        }
    }

    /// What a person wrote, read as collectd advises: a number as C's `strtod` reads it, by way
    /// of a double, of which a count of today keeps 54 bits.
    ///
    /// # Errors
    ///
    /// The text is not just a number, or the number is not finite, is negative, or is out of range.
    pub fn from_user(text: &str) -> Result<Self, CdTimeError> {
        let number = Number::parse(text).map_err(|_| CdTimeError::NotANumber)?;
        let seconds = number.value();
        if number.is_out_of_range && seconds.is_finite() {
            return Err(CdTimeError::TooSmall);
        }
        Self::from_f64(seconds)
    }

    /// A decimal number of seconds to the nearest unit, of two the later, without a double on
    /// the way: digits, and behind a point more of them. Reads what [`lossless`](Self::lossless)
    /// writes.
    ///
    /// # Errors
    ///
    /// Anything else, or 2^34 seconds and more.
    pub fn from_decimal(text: &str) -> Result<Self, CdTimeError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return Err(CdTimeError::NotANumber);
        }
        let seconds: u64 = whole.parse().map_err(|_| CdTimeError::TooLarge)?;
        if seconds >> (u64::BITS - BITS) != 0 {
            return Err(CdTimeError::TooLarge);
        }
        // Half a unit has 31 decimals exactly: digits behind them decide nothing.
        let mut digits: Vec<u8> = fraction.bytes().take(31).map(|byte| byte - b'0').collect();
        let mut ticks = 0u64;
        for _ in 0..=BITS {
            ticks = ticks << 1 | double(&mut digits);
        }
        let ticks = (ticks >> 1) + (ticks & 1);
        (seconds << BITS)
            .checked_add(ticks)
            .map(Self)
            .ok_or(CdTimeError::TooLarge)
    }

    /// To the nearest second, of two the later (`CDTIME_T_TO_TIME_T`).
    ///
    /// # Errors
    ///
    /// The last half second, of which collectd makes 1970.
    pub const fn to_seconds(self) -> Result<u64, CdTimeError> {
        match self.0.checked_add(HALF) {
            Some(ticks) => Ok(ticks >> BITS),
            None => Err(CdTimeError::TooLarge),
        }
    }

    /// To the nearest millisecond, of two the later (`CDTIME_T_TO_MS`).
    pub const fn to_millis(self) -> u64 {
        self.to_parts(1_000)
    }

    /// To the nearest microsecond, of two the later (`CDTIME_T_TO_US`).
    pub const fn to_micros(self) -> u64 {
        self.to_parts(1_000_000)
    }

    /// To the nearest nanosecond, of two the later (`CDTIME_T_TO_NS`).
    pub const fn to_nanos(self) -> u64 {
        self.to_parts(1_000_000_000)
    }

    /// At most 2^34 billionths: they always fit.
    const fn to_parts(self, parts: u64) -> u64 {
        (self.0 >> BITS) * parts + (((self.0 & FRACTION) * parts + HALF) >> BITS)
    }

    /// Seconds and microseconds (`CDTIME_T_TO_TIMEVAL`), rounded to the nearest microsecond. Where
    /// that is the next second, it is carried: collectd gives a million microseconds.
    pub const fn to_timeval(self) -> (u64, u32) {
        let micros = self.to_micros();
        (micros / 1_000_000, (micros % 1_000_000) as u32)
    }

    /// Seconds and nanoseconds (`CDTIME_T_TO_TIMESPEC`), rounded to the nearest nanosecond.
    pub const fn to_timespec(self) -> (u64, u32) {
        let nanos = self.to_nanos();
        (nanos / 1_000_000_000, (nanos % 1_000_000_000) as u32)
    }

    /// Whole seconds, cut off, and the units above them.
    pub const fn split(self) -> (u64, u32) {
        (self.0 >> BITS, (self.0 & FRACTION) as u32)
    }

    /// Seconds as the nearest double (`CDTIME_T_TO_DOUBLE`).
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Returns the seconds, as a double, with `decimals` decimals (at most 10), as C's `%.Nf` prints them.
    pub fn fixed(self, decimals: u32) -> String {
        // As a double the count is still an integer.
        decimal(self.0 as f64 as u128, decimals, |is_odd, rest| {
            rest > HALF || rest == HALF && is_odd
        })
    }

    /// The seconds with ten decimals, which is enough to distinguish every unit from its neighbours:
    /// [`from_decimal`](Self::from_decimal) reads the same time back. They are rounded up, so that
    /// who cuts off, as [`from_user`](Self::from_user) does, comes back to it, too, as far as a
    /// double has its digits.
    pub fn lossless(self) -> String {
        decimal(self.0.into(), LOSSLESS, |_, rest| rest > 0)
    }

    /// How much later this is, which is negative where it is earlier. It cannot go round.
    pub const fn ticks_since(self, earlier: Self) -> i128 {
        self.0 as i128 - earlier.0 as i128
    }

    /// The time from `earlier` to this; `None` where that is later.
    pub const fn checked_sub(self, earlier: Self) -> Option<Self> {
        match self.0.checked_sub(earlier.0) {
            Some(ticks) => Some(Self(ticks)),
            None => None,
        }
    }

    /// Returns the time that is later by `duration`, or `None` if it is beyond the last one.
    pub const fn checked_add(self, duration: Self) -> Option<Self> {
        match self.0.checked_add(duration.0) {
            Some(ticks) => Some(Self(ticks)),
            None => None,
        }
    }

    /// The same on the common line, to the nearest nanosecond; `None` after the year 2262.
    pub fn timestamp(self) -> Option<crate::Timestamp> {
        i64::try_from(self.to_nanos())
            .ok()
            .map(crate::Timestamp::from_nanos)
    }
}

/// Dates and times as RFC 3339 writes them.
impl CdTime {
    /// In UTC to the second, which is cut off: `2006-01-02T15:04:05Z`.
    pub fn rfc3339(self) -> String {
        let (date, second) = date_and_second(self.0 >> BITS);
        format!("{date}T{second}Z")
    }

    /// In UTC to the nearest nanosecond: `2006-01-02T15:04:05.000000000Z`.
    pub fn rfc3339_nanos(self) -> String {
        let (seconds, nanos) = self.to_timespec();
        let (date, second) = date_and_second(seconds);
        format!("{date}T{second}.{nanos:09}Z")
    }

    /// Reads a date and time with its zone, such as `2006-01-02T15:04:05.25+01:00`, to the nearest
    /// unit.
    ///
    /// # Errors
    ///
    /// The text has another form, is not a date, or lies before 1970 or after 2514.
    pub fn from_rfc3339(text: &str) -> Result<Self, CdTimeError> {
        let wrong = CdTimeError::NotADate;
        let (date, rest) = text.split_once(['T', 't', ' ']).ok_or(wrong)?;
        let zone = rest.find(['Z', 'z', '+', '-']).ok_or(wrong)?;
        let (time, zone) = rest.split_at(zone);
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong);
        }
        let [year, month, day] = numbers(date, '-', [4, 2, 2]).ok_or(wrong)?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2]).ok_or(wrong)?;
        let date = Date {
            year: year.into(),
            month: month as u8,
            day: day as u8,
        };
        // A date that is none comes back as another one.
        let days = days_of_date(date);
        if date_of_days(days) != date || hour > 23 || minute > 59 || second > 59 {
            return Err(wrong);
        }
        let east = match zone.as_bytes() {
            [b'Z' | b'z'] => 0,
            [sign, ..] => {
                let [hours, minutes] = numbers(&zone[1..], ':', [2, 2]).ok_or(wrong)?;
                if hours > 23 || minutes > 59 {
                    return Err(wrong);
                }
                let east = i64::from(hours * 60 + minutes) * 60;
                if *sign == b'-' { -east } else { east }
            }
            [] => return Err(wrong),
        };
        let in_day = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
        let whole = Self::from_seconds(days * DAY + in_day - east)?;
        let fraction = Self::from_decimal(&format!("0.{fraction}"))?;
        whole.checked_add(fraction).ok_or(CdTimeError::TooLarge)
    }
}

/// Seconds in a day.
const DAY: i64 = 86_400;

fn date_and_second(seconds: u64) -> (String, String) {
    // At most 2^34 of them.
    let seconds = seconds as i64;
    let Date { year, month, day } = date_of_days(seconds / DAY);
    let second = seconds % DAY;
    (
        format!("{year:04}-{month:02}-{day:02}"),
        format!(
            "{:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        ),
    )
}

/// Parses numbers with the given numbers of digits and a separator between them.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[u16; N]> {
    let mut parts = text.split(separator);
    let mut found = [0; N];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// Twice a decimal fraction, of which the digit before the point is taken away.
fn double(digits: &mut [u8]) -> u64 {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let twice = *digit * 2 + carry;
        (*digit, carry) = (twice % 10, twice / 10);
    }
    carry.into()
}

/// Units as seconds with decimals (at most 10); `up` decides from whether the last one is odd, and
/// from the units of it that are left, whether it is rounded up.
fn decimal(ticks: u128, decimals: u32, up: impl Fn(bool, u64) -> bool) -> String {
    let power = 10u128.pow(decimals.min(LOSSLESS));
    let scaled = ticks * power;
    let rest = (scaled & u128::from(FRACTION)) as u64;
    let count = scaled >> BITS;
    let count = count + u128::from(up(count & 1 == 1, rest));
    match decimals {
        0 => count.to_string(),
        _ => format!(
            "{}.{:0width$}",
            count / power,
            count % power,
            width = decimals.min(LOSSLESS) as usize
        ),
    }
}

/// As collectd prints times: the double with three decimals, unless a precision is given.
impl fmt::Display for CdTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(3);
        f.write_str(&self.fixed(u32::try_from(decimals).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_round_in_c_is_an_error() {
        assert_eq!(CdTime::from_seconds(-1), Err(CdTimeError::Negative));
        assert_eq!(CdTime::from_seconds(1 << 34), Err(CdTimeError::TooLarge));
        assert_eq!(
            CdTime::from_seconds((1 << 34) - 1).map(CdTime::split),
            Ok(((1 << 34) - 1, 0))
        );
        assert_eq!(CdTime::from_millis(u64::MAX), Err(CdTimeError::TooLarge));
        assert_eq!(
            CdTime::from_timeval(u64::MAX, 0),
            Err(CdTimeError::TooLarge)
        );
        assert_eq!(
            CdTime::from_timespec(u64::MAX, 0),
            Err(CdTimeError::TooLarge)
        );
        assert_eq!(CdTime::MAX.to_seconds(), Err(CdTimeError::TooLarge));
        assert_eq!(CdTime(u64::MAX - HALF).to_seconds(), Ok((1 << 34) - 1));
        assert_eq!(CdTime::MAX.to_nanos(), 17_179_869_183_999_999_999);
        assert_eq!(CdTime::from_f64(2f64.powi(34)), Err(CdTimeError::TooLarge));
        assert_eq!(CdTime::from_f64(f64::NAN), Err(CdTimeError::NotFinite));
        assert_eq!(CdTime::from_f64(-1e-300), Err(CdTimeError::Negative));
        assert_eq!(CdTime::from_f64(-0.0), Ok(CdTime::ZERO));
    }

    #[test]
    fn what_people_write() {
        for (text, expected) in [
            ("0x10", Ok(CdTime(16 << BITS))),
            (" +.5", Ok(CdTime(HALF))),
            ("1e400", Err(CdTimeError::NotFinite)),
            ("1e-400", Err(CdTimeError::TooSmall)),
            ("inf", Err(CdTimeError::NotFinite)),
            ("nan", Err(CdTimeError::NotFinite)),
            ("-5", Err(CdTimeError::Negative)),
            ("17179869184", Err(CdTimeError::TooLarge)),
            ("1 ", Err(CdTimeError::NotANumber)),
            ("1s", Err(CdTimeError::NotANumber)),
            ("N", Err(CdTimeError::NotANumber)),
            ("", Err(CdTimeError::NotANumber)),
        ] {
            assert_eq!(CdTime::from_user(text), expected, "{text}");
        }
    }

    #[test]
    fn differences_do_not_go_round() {
        let (early, late) = (CdTime(1), CdTime::MAX);
        assert_eq!(early.ticks_since(late), 2 - (1i128 << 64));
        assert_eq!(late.ticks_since(early), (1i128 << 64) - 2);
        assert_eq!(early.checked_sub(late), None);
        assert_eq!(late.checked_sub(early), Some(CdTime(u64::MAX - 1)));
        assert_eq!(late.checked_add(early), None);
        assert_eq!(early.checked_add(early), Some(CdTime(2)));
    }

    #[test]
    fn decimals_are_exact() {
        for (text, ticks) in [
            ("0", 0),
            ("1.", SECOND),
            // Half a unit, and the least bit less.
            ("0.0000000004656612873077392578125", 1),
            ("0.0000000004656612873077392578124999999", 0),
            ("17179869183.9999999991", u64::MAX),
        ] {
            assert_eq!(CdTime::from_decimal(text), Ok(CdTime(ticks)), "{text}");
        }
        for text in ["", ".5", "-1", "1e3", "1.5 ", "+1"] {
            assert_eq!(CdTime::from_decimal(text), Err(CdTimeError::NotANumber));
        }
        for text in [
            "17179869183.9999999999",
            "17179869184",
            "99999999999999999999999",
        ] {
            assert_eq!(CdTime::from_decimal(text), Err(CdTimeError::TooLarge));
        }
    }

    #[test]
    fn dates() {
        let time = CdTime(1_542_455_354_518_929_408);
        assert_eq!(time.rfc3339(), "2015-07-10T10:18:12Z");
        let late = CdTime(time.0 + FRACTION);
        assert_eq!(late.rfc3339(), "2015-07-10T10:18:12Z");
        assert_eq!(late.rfc3339_nanos(), "2015-07-10T10:18:12.999999999Z");
        assert_eq!(CdTime::MAX.rfc3339(), "2514-05-30T01:53:03Z");
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29t23:59:59z", 951_868_799),
            ("1969-12-31 23:30:00.000-00:30", 0),
            ("1970-01-01T01:00:00+01:00", 0),
        ] {
            let expected = CdTime::from_seconds(seconds);
            assert_eq!(CdTime::from_rfc3339(text), expected, "{text}");
        }
        for text in [
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1999-02-29T00:00:00Z",
            "1999-13-01T00:00:00Z",
            "1999-00-01T00:00:00Z",
            "1999-01-01T24:00:00Z",
            "1999-01-01T00:00:60Z",
            "1999-01-01T00:00:00.Z",
            "1999-01-01T00:00:00+1:00",
            "1999-1-01T00:00:00Z",
            "é",
        ] {
            assert_eq!(
                CdTime::from_rfc3339(text),
                Err(CdTimeError::NotADate),
                "{text}"
            );
        }
        assert_eq!(
            CdTime::from_rfc3339("1969-12-31T23:59:59Z"),
            Err(CdTimeError::Negative)
        );
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn lossless_text_is_read_back(ticks: u64) {
                let time = CdTime(ticks);
                prop_assert_eq!(CdTime::from_decimal(&time.lossless()), Ok(time));
            }

            #[test]
            fn so_is_what_a_double_holds(ticks in 0..1u64 << 53, shift in 0..11u32) {
                let time = CdTime(ticks << shift);
                prop_assert_eq!(CdTime::from_user(&time.lossless()), Ok(time));
            }

            #[test]
            fn nanoseconds_survive(nanos in 0..(1u64 << 34) * 1_000_000_000 - 1_000_000_000) {
                prop_assert_eq!(CdTime::from_nanos(nanos).unwrap().to_nanos(), nanos);
            }

            #[test]
            fn dates_survive_to_the_nanosecond(ticks in 0..u64::MAX - SECOND) {
                let time = CdTime(ticks);
                let again = CdTime::from_rfc3339(&time.rfc3339_nanos()).unwrap();
                prop_assert_eq!(again.to_nanos(), time.to_nanos());
            }
        }
    }
}
