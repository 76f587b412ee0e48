//! Lines of a log on standard error: a time, a level, what happened, and facts as `key=value`.

use std::fmt::{self, Display, Write as _};
use std::io::Write as _;

use kymo_text::visible;

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warn,
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// Writes a line. Values with blanks stand between double quotes.
pub(super) fn log(level: Level, what: &str, facts: &[(&str, &dyn Display)]) {
    let mut line = format!("{} {level} {what}", now());
    for (name, value) in facts {
        let value = value.to_string();
        let value = visible(&value);
        let is_plain = !value.is_empty() && !value.contains([' ', '"', '=', '\n']);
        // Writing to a text cannot fail.
        let _ = match is_plain {
            true => write!(line, " {name}={value}"),
            false => write!(line, " {name}={value:?}"),
        };
    }
    line.push('\n');
    // If the log has no reader, work goes on.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// The time in UTC, to the millisecond.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    });
    let text = kymo::report::Style::new(true).time(kymo_time::Timestamp::from_nanos(nanos));
    let millis = text.get(..23).unwrap_or(&text);
    millis.replace(' ', "T") + "Z"
}
