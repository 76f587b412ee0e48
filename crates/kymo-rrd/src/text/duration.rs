//! Lengths of time, such as `300`, `5m` and `1w`.

use std::fmt;

/// Why a text is not a length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// It does not begin with a digit.
    NoNumber,
    /// It is 0.
    Zero,
    /// The digits are followed by something that is not a unit.
    Garbage,
    /// It is not a multiple of what it is counted in.
    Truncated,
    /// It is more than 64 bits hold.
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "value must be (suffixed) positive number",
            Self::Zero => "value must be positive",
            Self::Garbage => "value has trailing garbage",
            Self::Truncated => "value would truncate when scaled",
            Self::TooLong => "value is too large",
        })
    }
}

impl std::error::Error for DurationError {}

/// Reads a length of time in seconds: digits, and a unit if it is not seconds. The units are `s`,
/// `m`, `h`, `d`, `w`, `M` of 31 days and `y` of 366; what follows the first letter does not count,
/// so that `5min` is five minutes. A number alone that is more than 64 bits hold is the greatest that they do.
///
/// # Errors
///
/// What is none, and 0.
pub fn duration(text: &[u8]) -> Result<u64, DurationError> {
    scaled(text, 1)
}

/// Reads a count of something that lasts `seconds` seconds: a bare number is the count, with a unit
/// it is a length of time that has to be a multiple.
///
/// # Errors
///
/// Those of [`duration`], and lengths that are not a multiple.
pub fn scaled(text: &[u8], seconds: u64) -> Result<u64, DurationError> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Err(DurationError::NoNumber);
    }
    let number = text[..digits].iter().try_fold(0u64, |number, digit| {
        let number = number.checked_mul(10)?;
        number.checked_add(u64::from(digit - b'0'))
    });
    let number = match number {
        Some(number) => number,
        // As the C library reads it: the greatest there is.
        None if digits == text.len() => u64::MAX,
        None => return Err(DurationError::TooLong),
    };
    if number == 0 {
        // Also of what is none for another reason.
        return Err(match text.get(digits) {
            Some(unit) if unit_seconds(*unit).is_none() => DurationError::Garbage,
            _ => DurationError::Zero,
        });
    }
    let Some(&unit) = text.get(digits) else {
        return Ok(number);
    };
    let unit = unit_seconds(unit).ok_or(DurationError::Garbage)?;
    let length = number.checked_mul(unit).ok_or(DurationError::TooLong)?;
    match length.checked_rem(seconds) {
        Some(0) => Ok(length / seconds),
        _ => Err(DurationError::Truncated),
    }
}

fn unit_seconds(unit: u8) -> Option<u64> {
    const DAY: u64 = 86_400;
    Some(match unit {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => DAY,
        b'w' => 7 * DAY,
        b'M' => 31 * DAY,
        b'y' => 366 * DAY,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_rrdtool_reads_them() {
        for (text, seconds) in [
            ("300", 300),
            ("5m", 300),
            ("5min", 300),
            ("1mo", 60),
            ("5s5", 5),
            ("2h", 7200),
            ("1d", 86_400),
            ("2w", 1_209_600),
            ("1M", 2_678_400),
            ("1y", 31_622_400),
            ("18446744073709551615", u64::MAX),
            ("99999999999999999999", u64::MAX),
        ] {
            assert_eq!(duration(text.as_bytes()), Ok(seconds), "{text}");
        }
        use DurationError::*;
        for (text, error) in [
            ("", NoNumber),
            ("-5", NoNumber),
            ("+5", NoNumber),
            (" 5", NoNumber),
            ("m", NoNumber),
            ("0", Zero),
            ("0s", Zero),
            ("0x", Garbage),
            ("5x", Garbage),
            ("5 m", Garbage),
            ("5.5", Garbage),
            ("99999999999999999999s", TooLong),
            ("99999999999999999w", TooLong),
        ] {
            assert_eq!(duration(text.as_bytes()), Err(error), "{text}");
        }
    }

    #[test]
    fn counts() {
        for (text, seconds, count) in [
            ("1h", 300, Ok(12)),
            ("12", 300, Ok(12)),
            ("1w", 600, Ok(1008)),
            ("301s", 300, Err(DurationError::Truncated)),
            ("7m", 300, Err(DurationError::Truncated)),
            ("7m", 0, Err(DurationError::Truncated)),
            ("0", 300, Err(DurationError::Zero)),
        ] {
            assert_eq!(scaled(text.as_bytes(), seconds), count, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text(text: Vec<u8>, seconds: u64) {
            let _ = scaled(&text, seconds);
        }

        #[test]
        fn any_duration(text in "[0-9]{0,22}[smhdwMyx]?.?", seconds: u16) {
            let _ = scaled(text.as_bytes(), seconds.into());
        }
    }
}
