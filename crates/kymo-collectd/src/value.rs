//! Values: numbers of four kinds, on the wire and in text.

use std::fmt;

use kymo_machine::Number;

/// How the numbers of a value are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A level at a point in time.
    Gauge,
    /// A count that only grows, and goes round.
    Counter,
    /// A count that may also shrink; its rate is meant.
    Derive,
    /// What was counted since the value before.
    Absolute,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count that only grows, and goes round.
    Counter(u64),
    /// A level; NaN where it is not known.
    Gauge(f64),
    /// A count that may also shrink.
    Derive(i64),
    /// What was counted since the value before.
    Absolute(u64),
}

/// Why a text is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// It is not a number, or something follows it.
    NotANumber,
    /// It does not fit in 64 bits.
    OutOfRange,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "expected a number",
            Self::OutOfRange => "the number does not fit in 64 bits",
        })
    }
}

impl std::error::Error for ValueError {}

/// The name of a kind, as configurations and `types.db` write it.
pub(crate) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "COUNTER",
        Kind::Gauge => "GAUGE",
        Kind::Derive => "DERIVE",
        Kind::Absolute => "ABSOLUTE",
    }
}

/// The kind that a name means, in letters of any case.
pub(crate) fn kind_of_name(name: &str) -> Option<Kind> {
    [Kind::Counter, Kind::Gauge, Kind::Derive, Kind::Absolute]
        .into_iter()
        .find(|kind| kind_name(*kind).eq_ignore_ascii_case(name))
}

/// The kind that a number on the wire means.
pub(crate) const fn kind_of_code(code: u8) -> Option<Kind> {
    match code {
        0 => Some(Kind::Counter),
        1 => Some(Kind::Gauge),
        2 => Some(Kind::Derive),
        3 => Some(Kind::Absolute),
        _ => None,
    }
}

impl Value {
    /// Its kind.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Counter(_) => Kind::Counter,
            Self::Gauge(_) => Kind::Gauge,
            Self::Derive(_) => Kind::Derive,
            Self::Absolute(_) => Kind::Absolute,
        }
    }

    /// The name of its kind.
    pub const fn kind_name(self) -> &'static str {
        kind_name(self.kind())
    }

    /// The number of its kind and its bytes on the wire: levels have the least significant byte
    /// first, all others the most significant one.
    pub fn to_wire(self) -> (u8, [u8; 8]) {
        match self {
            Self::Counter(value) => (0, value.to_be_bytes()),
            Self::Gauge(value) => (1, value.to_bits().to_le_bytes()),
            Self::Derive(value) => (2, value.to_be_bytes()),
            Self::Absolute(value) => (3, value.to_be_bytes()),
        }
    }

    /// The value of a kind with these bytes.
    pub const fn from_wire(kind: Kind, bytes: [u8; 8]) -> Self {
        match kind {
            Kind::Counter => Self::Counter(u64::from_be_bytes(bytes)),
            Kind::Gauge => Self::Gauge(f64::from_bits(u64::from_le_bytes(bytes))),
            Kind::Derive => Self::Derive(i64::from_be_bytes(bytes)),
            Kind::Absolute => Self::Absolute(u64::from_be_bytes(bytes)),
        }
    }

    /// Reads a value of a kind as people write it: levels as C's `strtod` reads them, with `U`
    /// for one that is not known; counts in base 10, 8 (`017`) or 16 (`0x1f`), of which decimals
    /// are cut off. Blanks around it are skipped.
    ///
    /// # Errors
    ///
    /// If the whole text is not a number, or is a count that does not fit into 64 bits.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, ValueError> {
        let text = text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
        Ok(match kind {
            Kind::Gauge if text == "U" => Self::Gauge(f64::NAN),
            Kind::Gauge => {
                let number = Number::parse(text).map_err(|_| ValueError::NotANumber)?;
                Self::Gauge(number.value())
            }
            Kind::Counter => Self::Counter(unsigned(text)?),
            Kind::Absolute => Self::Absolute(unsigned(text)?),
            Kind::Derive => {
                let number = integer(text)?;
                Self::Derive(number.try_into().map_err(|_| ValueError::OutOfRange)?)
            }
        })
    }
}

/// As [`Value::parse`] reads it, with as few digits as needed.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(value) | Self::Absolute(value) => value.fmt(f),
            Self::Derive(value) => value.fmt(f),
            Self::Gauge(value) if value.is_nan() => f.write_str("U"),
            Self::Gauge(value) => write!(f, "{value:?}"),
        }
    }
}

fn unsigned(text: &str) -> Result<u64, ValueError> {
    integer(text)?
        .try_into()
        .map_err(|_| ValueError::OutOfRange)
}

/// An integer, of which decimals are cut off.
fn integer(text: &str) -> Result<i128, ValueError> {
    let (is_negative, text) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (digits, 16)
    } else if lower.len() > 1 && lower.starts_with('0') && !lower.contains('.') {
        (&lower[1..], 8)
    } else {
        let (whole, decimals) = lower.split_once('.').unwrap_or((&lower, ""));
        if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ValueError::NotANumber);
        }
        (whole, 10)
    };
    if digits.is_empty() {
        return Err(ValueError::NotANumber);
    }
    let mut number = 0i128;
    for digit in digits.chars() {
        let digit = digit.to_digit(radix).ok_or(ValueError::NotANumber)?;
        // Saturated above 64 bits, which is out of range all the same.
        number = (number * i128::from(radix) + i128::from(digit)).min(1 << 100);
    }
    Ok(if is_negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, value) in [
            ("010", Ok(8)),
            ("0x1F", Ok(31)),
            ("+5", Ok(5)),
            ("0", Ok(0)),
            (" 7 ", Ok(7)),
            ("1.9", Ok(1)),
            ("0.9", Ok(0)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(ValueError::OutOfRange)),
            ("-1", Err(ValueError::OutOfRange)),
            ("", Err(ValueError::NotANumber)),
            ("U", Err(ValueError::NotANumber)),
            ("089", Err(ValueError::NotANumber)),
            ("0x", Err(ValueError::NotANumber)),
            ("1x", Err(ValueError::NotANumber)),
            ("1.2.3", Err(ValueError::NotANumber)),
            (".5", Err(ValueError::NotANumber)),
            ("--1", Err(ValueError::NotANumber)),
        ] {
            let expected = value.map(Value::Counter);
            assert_eq!(Value::parse(Kind::Counter, text), expected, "{text}");
        }
        let parse = |text| Value::parse(Kind::Derive, text);
        assert_eq!(parse("-9223372036854775808"), Ok(Value::Derive(i64::MIN)));
        assert_eq!(parse("-0x10"), Ok(Value::Derive(-16)));
        assert_eq!(parse("9223372036854775808"), Err(ValueError::OutOfRange));
        assert_eq!(parse(&"9".repeat(500)), Err(ValueError::OutOfRange));
    }

    #[test]
    fn levels() {
        let parse = |text| Value::parse(Kind::Gauge, text);
        assert_eq!(parse("1e3"), Ok(Value::Gauge(1000.0)));
        assert_eq!(parse("0x10"), Ok(Value::Gauge(16.0)));
        assert_eq!(parse("-inf"), Ok(Value::Gauge(f64::NEG_INFINITY)));
        for text in ["U", "nan"] {
            assert!(matches!(parse(text), Ok(Value::Gauge(value)) if value.is_nan()));
        }
        assert_eq!(parse("u"), Err(ValueError::NotANumber));
        assert_eq!(parse("1 2"), Err(ValueError::NotANumber));
    }

    #[test]
    fn names_and_numbers_of_kinds() {
        for (code, name) in ["counter", "Gauge", "DERIVE", "absolute"]
            .iter()
            .enumerate()
        {
            let kind = kind_of_name(name).unwrap();
            assert_eq!(kind_of_code(code as u8), Some(kind));
            assert_eq!(Value::from_wire(kind, [0; 8]).to_wire().0, code as u8);
        }
        assert_eq!(kind_of_code(4), None);
        assert_eq!(kind_of_name("gauges"), None);
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        fn kind() -> impl Strategy<Value = Kind> {
            (0u8..4).prop_map(|code| kind_of_code(code).unwrap())
        }

        proptest! {
            #[test]
            fn bytes_are_kept(kind in kind(), bytes: [u8; 8]) {
                prop_assert_eq!(Value::from_wire(kind, bytes).to_wire().1, bytes);
            }

            #[test]
            fn text_is_read_back(kind in kind(), bytes: [u8; 8]) {
                let value = Value::from_wire(kind, bytes);
                let again = Value::parse(kind, &value.to_string()).unwrap();
                let same = match (value, again) {
                    (Value::Gauge(a), Value::Gauge(b)) if a.is_nan() => b.is_nan(),
                    (a, b) => a.to_wire() == b.to_wire(),
                };
                prop_assert!(same, "{} {}", value, again);
            }
        }
    }
}
