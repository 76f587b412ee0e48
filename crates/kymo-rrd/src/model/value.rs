//! The small values that an RRD is made of: numbers that may be unknown, texts, times.

use std::fmt;

/// Units of a [`Time`]'s fraction in a second: 2^30.
pub const UNITS_PER_SECOND: u32 = 1 << 30;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// A number of a database, or that it is unknown.
///
/// Files say "unknown" with a NaN, each machine with its own bit pattern, some of which trap
/// or change when they pass through a floating-point register of another machine. So the
/// bits are kept as an integer, and every NaN becomes the one of [`Value::UNKNOWN`]. Two
/// values are equal where their bits are: 0 and -0 differ, unknown equals unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u64);

impl Value {
    /// Not known.
    pub const UNKNOWN: Self = Self(0x7ff8_0000_0000_0000);
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// The value of an IEEE 754 double's bits. Every NaN is unknown.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        const INFINITY: u64 = 0x7ff0_0000_0000_0000;
        if bits & (u64::MAX >> 1) > INFINITY {
            Self::UNKNOWN
        } else {
            Self(bits)
        }
    }

    /// The bits of the double: of an unknown value, those of the canonical NaN.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Whether it is not known.
    #[inline]
    pub const fn is_unknown(self) -> bool {
        self.0 == Self::UNKNOWN.0
    }

    /// The number, where it is known; it may be infinite.
    #[inline]
    pub const fn get(self) -> Option<f64> {
        if self.is_unknown() {
            None
        } else {
            Some(f64::from_bits(self.0))
        }
    }

    /// The number, or a NaN where it is unknown.
    #[inline]
    pub const fn to_f64(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f64> for Value {
    #[inline]
    fn from(number: f64) -> Self {
        match number.is_nan() {
            true => Self::UNKNOWN,
            false => Self(number.to_bits()),
        }
    }
}

impl Default for Value {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Value {
    /// The shortest text that reads back as this number; `U` where it is unknown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(number) => write!(f, "{number:?}"),
            None => f.write_str("U"),
        }
    }
}

/// A text of a file: bytes without a NUL, which are ASCII where nothing is damaged.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Vec<u8>);

impl Text {
    /// The text of some bytes, up to the first NUL.
    pub fn new(bytes: &[u8]) -> Self {
        let length = bytes.iter().position(|&byte| byte == 0);
        Self(bytes[..length.unwrap_or(bytes.len())].to_vec())
    }

    /// Makes it these bytes up to the first NUL, in the same memory.
    pub(crate) fn set_padded(&mut self, bytes: &[u8]) {
        let length = bytes.iter().position(|&byte| byte == 0);
        self.0.clear();
        self.0
            .extend_from_slice(&bytes[..length.unwrap_or(bytes.len())]);
    }

    /// The bytes, of which none is a NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, where it is UTF-8.
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Whether all of it can be printed as ASCII.
    pub fn is_printable(&self) -> bool {
        self.0
            .iter()
            .all(|&byte| byte == b' ' || byte.is_ascii_graphic())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl fmt::Display for Text {
    /// The text; what cannot be printed is escaped as in C, such as `\xff`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// A time: seconds since 1970-01-01T00:00:00Z and a fraction.
///
/// The fraction counts units of 2^-30 s, so that it holds collectd's times exactly and
/// whole microseconds without loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    seconds: i64,
    fraction: u32,
}

impl Time {
    /// A time of whole seconds.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self {
            seconds,
            fraction: 0,
        }
    }

    /// A time; `None` if the fraction is a second ([`UNITS_PER_SECOND`]) or more.
    pub const fn new(seconds: i64, fraction: u32) -> Option<Self> {
        if fraction < UNITS_PER_SECOND {
            Some(Self { seconds, fraction })
        } else {
            None
        }
    }

    /// The time nearest to seconds and microseconds; `None` if the latter are a
    /// million or more. [`Time::to_micros`] gives both back.
    pub const fn from_micros(seconds: i64, micros: u32) -> Option<Self> {
        if micros as u64 >= MICROS_PER_SECOND {
            return None;
        }
        let units = ((micros as u64) << 30) + MICROS_PER_SECOND / 2;
        Some(Self {
            seconds,
            fraction: (units / MICROS_PER_SECOND) as u32,
        })
    }

    /// The time of a count of 2^-30 s since 1970, collectd's `cdtime_t`.
    pub const fn from_cdtime(count: u64) -> Self {
        Self {
            seconds: (count >> 30) as i64,
            fraction: (count % UNITS_PER_SECOND as u64) as u32,
        }
    }

    /// The count of 2^-30 s since 1970; `None` before that year and after 2514.
    pub const fn to_cdtime(self) -> Option<u64> {
        if self.seconds < 0 || self.seconds >= 1 << 34 {
            return None;
        }
        Some((self.seconds as u64) << 30 | self.fraction as u64)
    }

    /// Seconds, rounded down.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Units of 2^-30 s above the seconds.
    pub const fn fraction(self) -> u32 {
        self.fraction
    }

    /// Seconds and the nearest microsecond above them.
    pub const fn to_micros(self) -> (i64, u32) {
        if self.fraction == 0 {
            return (self.seconds, 0);
        }
        let half = UNITS_PER_SECOND as u64 / 2;
        let micros = (self.fraction as u64 * MICROS_PER_SECOND + half) >> 30;
        if micros == MICROS_PER_SECOND {
            (self.seconds.saturating_add(1), 0)
        } else {
            (self.seconds, micros as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nan_is_unknown() {
        for bits in [
            0x7ff8_0000_0000_0000,
            0xfff8_0000_0000_0000,
            0x7ff7_ffff_ffff_ffff,
            0x7ff4_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            u64::MAX,
        ] {
            assert_eq!(Value::from_bits(bits), Value::UNKNOWN);
        }
        for number in [f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE] {
            let value = Value::from(number);
            assert_eq!(value.to_bits(), number.to_bits());
            assert_eq!(value.get(), Some(number));
        }
    }

    #[test]
    fn every_microsecond_is_held() {
        for micros in 0..1_000_000 {
            let time = Time::from_micros(7, micros).unwrap();
            assert_eq!(time.to_micros(), (7, micros));
        }
        assert_eq!(Time::from_micros(7, 1_000_000), None);
    }

    #[test]
    fn collectds_times_are_held() {
        for count in [0, 1, (1 << 30) - 1, 1 << 30, u64::MAX] {
            assert_eq!(Time::from_cdtime(count).to_cdtime(), Some(count));
        }
        assert_eq!(Time::from_seconds(-1).to_cdtime(), None);
        assert_eq!(Time::from_seconds(1 << 34).to_cdtime(), None);
        let last = Time::new(9, UNITS_PER_SECOND - 1).unwrap();
        assert_eq!(last.to_micros(), (10, 0));
    }

    #[test]
    fn texts_end_at_a_nul_and_show_what_cannot_be_printed() {
        let text = Text::new(b"a\xff\0b");
        assert_eq!(text.as_bytes(), b"a\xff");
        assert_eq!(text.to_string(), "a\\xff");
        assert!(!text.is_printable());
    }
}
