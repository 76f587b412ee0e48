//! Dates as C's `strftime` writes them, with English names.

use jiff::{Timestamp, Zoned};

use crate::LocalZone;

/// No field is wider.
const MAX_WIDTH: usize = 512;

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A time in a zone, by a format. What is not a conversion stays as it is.
pub(crate) fn date(format: &str, seconds: i64, zone: &LocalZone) -> String {
    let broken = Broken {
        time: zone.zoned(seconds),
        seconds,
    };
    let mut text = String::new();
    broken.write(format, &mut text);
    text
}

/// A time in GMT, by a format. `%s` is the time that `mktime` makes of it, which takes it for local standard time.
pub(crate) fn universal_date(format: &str, seconds: i64, local: &LocalZone) -> String {
    let broken = Broken {
        time: LocalZone::gmt().zoned(seconds),
        seconds: seconds.saturating_sub(standard_offset(local, seconds)),
    };
    let mut text = String::new();
    broken.write(format, &mut text);
    text
}

/// Whether a number of seconds is a time that has a date: those of years up to 9999 have.
pub(crate) fn is_date(seconds: f64) -> bool {
    let [first, last] = [Timestamp::MIN, Timestamp::MAX].map(|it| it.as_second() as f64);
    (first..=last).contains(&seconds)
}

/// Seconds that standard time is ahead of UTC about a time.
fn standard_offset(zone: &LocalZone, seconds: i64) -> i64 {
    const HALF_A_YEAR: i64 = 183 * 86_400;
    let near = [0, HALF_A_YEAR, -HALF_A_YEAR]
        .map(|by| zone.offset(seconds.saturating_add(by)))
        .into_iter()
        .find(|(_, is_summer)| !is_summer);
    near.map_or(0, |(offset, _)| offset)
}

/// A time, and its parts.
struct Broken {
    time: Zoned,
    /// What `%s` shows.
    seconds: i64,
}

/// What a format asks for from a `%` on.
struct Conversion<'a> {
    /// As it is written.
    text: &'a str,
    /// `_`, `-` or `0`.
    pad: Option<u8>,
    /// `^`
    upper: bool,
    /// `#`
    change: bool,
    width: usize,
    /// `E` or `O`
    modifier: Option<u8>,
    letter: Option<char>,
}

impl<'a> Conversion<'a> {
    /// Reads one from a text that begins with `%`.
    fn read(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut conversion = Self {
            text,
            pad: None,
            upper: false,
            change: false,
            width: 0,
            modifier: None,
            letter: None,
        };
        let mut at = 1;
        while let Some(flag) = bytes.get(at) {
            match flag {
                b'_' | b'-' | b'0' => conversion.pad = Some(*flag),
                b'^' => conversion.upper = true,
                b'#' => conversion.change = true,
                _ => break,
            }
            at += 1;
        }
        while let Some(digit) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
            conversion.width = (conversion.width * 10 + usize::from(digit - b'0')).min(MAX_WIDTH);
            at += 1;
        }
        if let Some(modifier @ (b'E' | b'O')) = bytes.get(at) {
            conversion.modifier = Some(*modifier);
            at += 1;
        }
        conversion.letter = text[at..].chars().next();
        at += conversion.letter.map_or(0, char::len_utf8);
        conversion.text = &text[..at];
        conversion
    }

    /// Whether the letter exists with the modifier.
    fn is_known(&self) -> bool {
        let without = match self.modifier {
            None => "",
            Some(b'E') => "aAbBdDeFgGhHIjklmMSUVwW%",
            Some(_) => "aAcCDFxXY%",
        };
        let letters = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%";
        let is = |letters: &str| self.letter.is_some_and(|letter| letters.contains(letter));
        is(letters) && !is(without)
    }

    /// Writes a field as wide as is asked for.
    fn field(&self, field: &str, out: &mut String) {
        let pad = if self.pad == Some(b'0') { '0' } else { ' ' };
        let length = field.chars().count();
        out.extend(std::iter::repeat_n(pad, self.width.saturating_sub(length)));
        match self.upper {
            true => out.push_str(&field.to_uppercase()),
            false => out.push_str(field),
        }
    }

    /// Writes a number of so many digits, filled up with zeros, or with blanks if they are usual there.
    fn number(&self, value: i64, digits: usize, blanks: bool, out: &mut String) {
        let digits = digits.max(self.width);
        let pad = match self.pad {
            Some(pad) => pad,
            None if blanks => b'_',
            None => b'0',
        };
        match pad {
            b'-' => self.field(&value.to_string(), out),
            b'_' => self.field(&format!("{value:digits$}"), out),
            _ => self.field(&format!("{value:0digits$}"), out),
        }
    }
}

impl Broken {
    fn write(&self, format: &str, out: &mut String) {
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            let conversion = Conversion::read(&rest[at..]);
            rest = &rest[at + conversion.text.len()..];
            match conversion.letter.filter(|_| conversion.is_known()) {
                Some(letter) => self.convert(letter, &conversion, out),
                None => conversion.field(conversion.text, out),
            }
        }
        out.push_str(rest);
    }

    fn convert(&self, letter: char, conversion: &Conversion<'_>, out: &mut String) {
        let time = &self.time;
        let month = MONTHS[usize::from(time.month().unsigned_abs() - 1)];
        let weekday = i64::from(time.weekday().to_sunday_zero_offset());
        let day_of_year = i64::from(time.day_of_year()) - 1;
        let day = DAYS[weekday as usize];
        let week = time.date().iso_week_date();
        let hour = i64::from(time.hour());
        let noon = match hour % 12 {
            0 => 12,
            hour => hour,
        };
        let name = |name: &str, out: &mut String| match conversion.change {
            true => conversion.field(&name.to_uppercase(), out),
            false => conversion.field(name, out),
        };
        let format = |format: &str, out: &mut String| {
            let mut text = String::new();
            self.write(format, &mut text);
            conversion.field(&text, out);
        };
        let number = |value: i64, digits: usize, out: &mut String| {
            conversion.number(value, digits, false, out);
        };
        let blanks = |value: i64, out: &mut String| conversion.number(value, 2, true, out);
        let year = i64::from(time.year());
        match letter {
            'a' => name(&day[..3], out),
            'A' => name(day, out),
            'b' | 'h' => name(&month[..3], out),
            'B' => name(month, out),
            'c' => format("%a %b %e %H:%M:%S %Y", out),
            'C' => number(year.div_euclid(100), 2, out),
            'd' => number(time.day().into(), 2, out),
            'D' | 'x' => format("%m/%d/%y", out),
            'e' => blanks(time.day().into(), out),
            'F' => format("%Y-%m-%d", out),
            'g' => number(i64::from(week.year()).rem_euclid(100), 2, out),
            'G' => number(week.year().into(), 1, out),
            'H' => number(hour, 2, out),
            'I' => number(noon, 2, out),
            'j' => number(day_of_year + 1, 3, out),
            'k' => blanks(hour, out),
            'l' => blanks(noon, out),
            'm' => number(time.month().into(), 2, out),
            'M' => number(time.minute().into(), 2, out),
            'n' => conversion.field("\n", out),
            'p' | 'P' => {
                let half = if hour < 12 { "AM" } else { "PM" };
                self.lower(half, letter == 'P' || conversion.change, conversion, out);
            }
            'r' => format("%I:%M:%S %p", out),
            'R' => format("%H:%M", out),
            's' => conversion.field(&self.seconds.to_string(), out),
            'S' => number(time.second().into(), 2, out),
            't' => conversion.field("\t", out),
            'T' | 'X' => format("%H:%M:%S", out),
            'u' => number((weekday + 6) % 7 + 1, 1, out),
            'U' => number((day_of_year - weekday + 7) / 7, 2, out),
            'V' => number(week.week().into(), 2, out),
            'w' => number(weekday, 1, out),
            'W' => number((day_of_year - (weekday + 6) % 7 + 7) / 7, 2, out),
            'y' => number(year.rem_euclid(100), 2, out),
            'Y' => number(year, 1, out),
            'z' => {
                let offset = i64::from(time.offset().seconds());
                let minutes = offset.abs() / 60;
                conversion.field(if offset < 0 { "-" } else { "+" }, out);
                number(minutes / 60 * 100 + minutes % 60, 4, out);
            }
            'Z' => {
                let info = time.time_zone().to_offset_info(time.timestamp());
                let zone = match time.time_zone().is_unknown() {
                    true => "UTC",
                    false => info.abbreviation(),
                };
                self.lower(zone, conversion.change, conversion, out);
            }
            _ => conversion.field("%", out),
        }
    }

    /// Writes a field, in small letters if these are asked for.
    fn lower(&self, field: &str, is_lower: bool, conversion: &Conversion<'_>, out: &mut String) {
        let begin = out.len();
        conversion.field(field, out);
        if is_lower {
            out[begin..].make_ascii_lowercase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_calendar_are_no_dates() {
        for (seconds, is) in [
            (0.0, true),
            (-7e10, true),
            (2.5e11, true),
            (3e11, false),
            (-1e12, false),
            (4e63, false),
            (f64::INFINITY, false),
            (f64::NAN, false),
        ] {
            assert_eq!(is_date(seconds), is, "{seconds}");
        }
    }

    #[test]
    fn dates_are_those_of_strftime() {
        let zone = LocalZone::posix("UTC0").unwrap();
        for (format, expected) in [
            ("%Y-%m-%d %H:%M", "2023-11-14 22:13"),
            ("Week %V %q%", "Week 46 %q%"),
            ("%a %d %b '%g", "Tue 14 Nov '23"),
            ("%X %-d %OH", "22:13:20 14 22"),
            ("%U %W %u %w %j %C", "46 46 2 2 318 20"),
            ("%p %P %#p %^a %#B %l|%k", "PM pm pm TUE NOVEMBER 10|22"),
        ] {
            assert_eq!(date(format, 1_700_000_000, &zone), expected);
        }
    }

    /// As the C library of GNU has them.
    #[test]
    fn fields_have_flags_and_widths() {
        let zone = LocalZone::posix("GMT0").unwrap();
        for (format, expected) in [
            ("%5.1lf", "  %5.1lf"),
            ("%05.1lf", "0%05.1lf"),
            ("%-5.x", " %-5.x"),
            ("%5%|", "    %|"),
            ("%3", " %3"),
            ("a%", "a%"),
            ("%+5q", "%+5q"),
            ("%E", "%E"),
            ("%Ex", "01/01/70"),
            ("%OQ", "%OQ"),
            ("%E5Y", "%E5Y"),
            ("%10Ez", "         +0000000000"),
            ("%012s", "000000000000"),
            ("%3k", "  0"),
            ("%030c|", "000000Thu Jan  1 00:00:00 1970|"),
            ("%-30c|", "      Thu Jan  1 00:00:00 1970|"),
            ("%#p %#Z %^Z", "am gmt GMT"),
        ] {
            assert_eq!(date(format, 0, &zone), expected, "{format}");
        }
    }

    #[test]
    fn seconds_of_universal_dates_are_local() {
        let zone = LocalZone::posix("NST3:30NDT,M3.2.0,M11.1.0").unwrap();
        for summer in [0, 1_690_000_000] {
            let shown = universal_date("%s", summer, &zone);
            assert_eq!(shown, (summer + 12_600).to_string());
        }
    }
}
