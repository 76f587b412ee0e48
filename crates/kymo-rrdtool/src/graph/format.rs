//! Numbers, dates and durations as PRINT, GPRINT and the axes format them.

use std::iter;

use crate::Failure;

/// Fields are not wider, and have no more decimals.
const MAX_FIELD: usize = 512;

/// A `printf` format of one `double`, perhaps with a place for a unit symbol.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberFormat {
    before: String,
    flag: Option<u8>,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
    /// The text up to the symbol.
    between: String,
    /// Whether a symbol follows, and whether it is that of an earlier value.
    symbol: Option<Symbol>,
    after: String,
}

/// Which symbol a format asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// `%s`: the one that suits the value.
    Own,
    /// `%S`: the one of the first value.
    Shared,
}

impl NumberFormat {
    /// Reads a format without a symbol, as labels of axes have it.
    ///
    /// # Errors
    ///
    /// A format with `%s`, `%S` or anything else that [`parse`](Self::parse) refuses.
    pub(crate) fn parse_plain(format: &str) -> Result<Self, Failure> {
        let parsed = Self::parse(format)?;
        match parsed.symbol {
            None => Ok(parsed),
            Some(_) => Err(Failure::new(format!(
                "invalid format string '{format}': labels of axes have no `%s` and no `%S`"
            ))),
        }
    }

    /// Reads a format: text with `%%`, one of `%lf`, `%le`, `%lg` with a flag, a width and a precision, and
    /// then `%s` or `%S` at most.
    ///
    /// # Errors
    ///
    /// A format with anything else.
    pub(crate) fn parse(format: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::new(format!(
                "invalid format string '{format}': expected text, one number such as `%6.2lf` or `%le`, \
                 and then `%s` or `%S` at most; `%%` is a percent sign"
            ))
        };
        let (before, rest) = literal(format);
        let rest = rest.strip_prefix('%').ok_or_else(wrong)?;
        let flag = rest.bytes().next().filter(|byte| b"-+ 0#".contains(byte));
        let rest = &rest[usize::from(flag.is_some())..];
        let (width, rest) = digits(rest);
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = digits(rest);
                (Some(precision.ok_or_else(wrong)?), rest)
            }
            None => (None, rest),
        };
        let rest = rest.strip_prefix('l').ok_or_else(wrong)?;
        let conversion = rest.bytes().next().filter(|byte| b"eEfFgG".contains(byte));
        let conversion = conversion.ok_or_else(wrong)?;
        let (between, rest) = literal(&rest[1..]);
        let symbol = match rest.as_bytes() {
            [] => None,
            [b'%', b's', ..] => Some(Symbol::Own),
            [b'%', b'S', ..] => Some(Symbol::Shared),
            _ => return Err(wrong()),
        };
        let (after, rest) = literal(rest.get(2..).unwrap_or_default());
        if !rest.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            before,
            flag,
            width: width.unwrap_or_default(),
            precision,
            conversion,
            between,
            symbol,
            after,
        })
    }

    /// The symbol that it asks for.
    pub(crate) fn symbol(&self) -> Option<Symbol> {
        self.symbol
    }

    /// Formats a number and the symbol of its unit.
    pub(crate) fn format(&self, value: f64, symbol: &str) -> String {
        let mut text = self.before.clone();
        text.push_str(&self.number(value));
        text.push_str(&self.between);
        if self.symbol.is_some() {
            text.push_str(symbol);
        }
        text.push_str(&self.after);
        text
    }

    fn number(&self, value: f64) -> String {
        let magnitude = value.abs();
        let precision = self.precision.unwrap_or(6);
        let alternate = self.flag == Some(b'#');
        let mut text = match self.conversion {
            _ if value.is_nan() => "nan".to_owned(),
            _ if value.is_infinite() => "inf".to_owned(),
            b'f' | b'F' => format!("{magnitude:.precision$}"),
            b'e' | b'E' => exponential(magnitude, precision),
            _ => general(magnitude, precision.max(1), alternate),
        };
        if self.conversion.is_ascii_uppercase() {
            text.make_ascii_uppercase();
        }
        let sign = match self.flag {
            _ if value.is_sign_negative() => "-",
            Some(b'+') => "+",
            Some(b' ') => " ",
            _ => "",
        };
        let fill = self.width.saturating_sub(sign.len() + text.len());
        let fill = |with: char| iter::repeat_n(with, fill).collect::<String>();
        match self.flag {
            Some(b'-') => format!("{sign}{text}{}", fill(' ')),
            Some(b'0') if value.is_finite() => format!("{sign}{}{text}", fill('0')),
            _ => format!("{}{sign}{text}", fill(' ')),
        }
    }
}

/// The text up to a conversion, with `%%` as one, and the rest.
fn literal(format: &str) -> (String, &str) {
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        if !rest[at..].starts_with("%%") {
            return (text, &rest[at..]);
        }
        text.push('%');
        rest = &rest[at + 2..];
    }
    text.push_str(rest);
    (text, "")
}

/// A number at the beginning, at most [`MAX_FIELD`], and the rest.
fn digits(text: &str) -> (Option<usize>, &str) {
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = (!digits.is_empty()).then(|| digits.parse().unwrap_or(MAX_FIELD).min(MAX_FIELD));
    (number, rest)
}

/// C's `%.*e` of a positive number.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// C's `%.*g` of a positive number.
fn general(value: f64, precision: usize, alternate: bool) -> String {
    let text = exponential(value, precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
    let exponent: i64 = exponent.parse().unwrap_or_default();
    let trimmed = |text: &str| match alternate || !text.contains('.') {
        true => text.to_owned(),
        false => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    if exponent < -4 || exponent >= precision as i64 {
        return format!("{}{}", trimmed(mantissa), &text[mantissa.len()..]);
    }
    let decimals = (precision as i64 - 1 - exponent) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

/// The SI prefix of a value, and what the value is divided by to go with it.
pub(crate) fn scale(value: f64, base: f64) -> (f64, &'static str) {
    const SYMBOLS: [&str; 13] = [
        "a", "f", "p", "n", "u", "m", " ", "k", "M", "G", "T", "P", "E",
    ];
    if value == 0.0 || value.is_nan() {
        return (1.0, SYMBOLS[6]);
    }
    let power = (value.abs().ln() / base.ln()).floor();
    let place = power + 6.0;
    let symbol = match (0.0..SYMBOLS.len() as f64).contains(&place) {
        true => SYMBOLS[place as usize],
        false => "?",
    };
    (base.powf(power), symbol)
}

/// A conversion of a date or of [`duration`]: what is between `%` and its letter, and the letter.
fn conversions(format: &str) -> impl Iterator<Item = Result<(&str, char), &str>> {
    let mut rest = format;
    iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(at) = rest.find('%') else {
            return Some(Err(std::mem::take(&mut rest)));
        };
        if at > 0 {
            let (text, more) = rest.split_at(at);
            rest = more;
            return Some(Err(text));
        }
        let is_option = |char: char| "-_0^#.EO".contains(char) || char.is_ascii_digit();
        let end = rest[1..].find(|char| !is_option(char)).map(|end| end + 1);
        let Some((end, letter)) = end.and_then(|end| Some((end, rest[end..].chars().next()?)))
        else {
            return Some(Err(std::mem::take(&mut rest)));
        };
        let options = &rest[1..end];
        rest = &rest[end + letter.len_utf8()..];
        Some(Ok((options, letter)))
    })
}

/// A date that does not exist: dashes in the form of its format.
pub(crate) fn no_date(format: &str) -> String {
    let mut text = String::new();
    for conversion in conversions(format) {
        let (options, letter) = match conversion {
            Ok(found) => found,
            Err(literal) => {
                text.push_str(literal);
                continue;
            }
        };
        if options.contains(['E', 'O']) {
            text.push('-');
            continue;
        }
        text.push_str(match letter {
            'C' | 'd' | 'g' | 'H' | 'I' | 'm' | 'M' | 'S' | 'U' | 'V' | 'W' | 'y' => "--",
            'j' => "---",
            'G' | 'Y' => "----",
            'R' => "--:--",
            'T' => "--:--:--",
            'F' => "----------",
            'D' => "--/--/--",
            'n' => "\n",
            't' => "\t",
            '%' => "%",
            _ => "-",
        });
    }
    text
}

/// The format of a timestamp for which none is specified.
pub(crate) const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S";
/// The format of a duration for which none is specified.
pub(crate) const DURATION: &str = "%H:%02m:%02s";

/// Milliseconds as weeks, days, hours...: `%[0][WIDTH][.PRECISION]LETTER`.
pub(crate) fn duration(format: &str, milliseconds: f64) -> String {
    if !milliseconds.is_finite() {
        return number("%lf", milliseconds);
    }
    let total = milliseconds.abs().trunc() as u64;
    let mut text = String::new();
    if milliseconds < 0.0 {
        text.push('-');
    }
    const SECOND: u64 = 1000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    for conversion in conversions(format) {
        let (options, letter) = match conversion {
            Ok(found) => found,
            Err(literal) => {
                text.push_str(literal);
                continue;
            }
        };
        let (value, whole) = match letter {
            'W' => (total / (7 * DAY), 7 * DAY),
            'd' => (total / DAY % 7, DAY),
            'D' => (total / DAY, DAY),
            'h' => (total / HOUR % 24, HOUR),
            'H' => (total / HOUR, HOUR),
            'm' => (total / MINUTE % 60, MINUTE),
            'M' => (total / MINUTE, MINUTE),
            's' => (total / SECOND % 60, SECOND),
            'S' => (total / SECOND, SECOND),
            'f' => (total % SECOND, 1),
            '%' => {
                text.push('%');
                continue;
            }
            other => {
                text.push('%');
                text.push_str(options);
                text.push(other);
                continue;
            }
        };
        let (width, precision) = match options.split_once('.') {
            Some((width, precision)) => (width, digits(precision).0),
            None => (options, None),
        };
        let zeros = width.starts_with('0');
        let width = digits(width).0.unwrap_or_default();
        // Decimals are those of the unit, cut off.
        let shown = match precision.filter(|precision| *precision > 0) {
            Some(precision) => {
                let rest = (total % whole) as f64 / whole as f64;
                let decimals = format!("{rest:.*}", precision + 3);
                format!("{value}.{}", &decimals[2..2 + precision])
            }
            None => value.to_string(),
        };
        text.push_str(&match zeros {
            true => format!("{shown:0>width$}"),
            false => format!("{shown:>width$}"),
        });
    }
    text
}

/// A number in a format that is known to be right.
pub(crate) fn number(format: &str, value: f64) -> String {
    let format = NumberFormat::parse(format);
    format.map_or_else(|_| value.to_string(), |format| format.format(value, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_printf() {
        for (format, value, expected) in [
            ("%lf", 1.5, "1.500000"),
            ("<%8.3le>", 12345.678, "<1.235e+04>"),
            ("%-8.1lf|", 2.25, "2.2     |"),
            ("%08.2lf", -3.25, "-0003.25"),
            ("%+lg", 0.0001, "+0.0001"),
            ("%lg", 1e10, "1e+10"),
            ("%#lg", 1.0, "1.00000"),
            ("% lG", 1e-10, " 1E-10"),
            ("%5.0lf%%", 42.5, "   42%"),
            ("%lf", f64::NAN, "nan"),
            ("%6.1lF", f64::NEG_INFINITY, "  -INF"),
            ("%le", 0.0, "0.000000e+00"),
        ] {
            let parsed = NumberFormat::parse(format).unwrap();
            assert_eq!(parsed.format(value, "k"), expected, "{format}");
        }
        let format = NumberFormat::parse("a %lf%sb%%").unwrap();
        assert_eq!(format.symbol(), Some(Symbol::Own));
        assert_eq!(format.format(1.0, "k"), "a 1.000000kb%");
    }

    #[test]
    fn other_formats_are_refused() {
        for format in [
            "", "%d", "%f", "%lf%lf", "%lf%s%s", "%s%lf", "%", "%1$lf", "%lf%", "%.lf",
        ] {
            assert!(NumberFormat::parse(format).is_err(), "{format}");
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_dashes() {
        assert_eq!(
            no_date("%Y-%m-%d %H:%M at %A%%"),
            "-------- --:-- at -%".replace("--------", "----------")
        );
    }

    #[test]
    fn durations_have_units() {
        for (format, milliseconds, expected) in [
            (DURATION, 3_725_000.0, "1:02:05"),
            ("%dd %hh %.1s %f%%", -90_061_250.0, "-1d 1h 1.2 250%"),
            ("%5W|%05S", 1e9, "    1|1000000"),
        ] {
            assert_eq!(duration(format, milliseconds), expected);
        }
        assert_eq!(duration("%W", f64::INFINITY), "inf");
    }

    #[test]
    fn values_have_prefixes() {
        assert_eq!(scale(1500.0, 1000.0), (1000.0, "k"));
        assert_eq!(scale(0.0, 1000.0), (1.0, " "));
        assert_eq!(scale(-0.0015, 1000.0).1, "m");
        assert_eq!(scale(1e300, 1000.0).1, "?");
    }
}
