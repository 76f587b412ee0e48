//! What is answered.

use std::fmt;

use kymo_text::Line;
use kymo_time::CdTime;

/// An answer: a status, a text, and as many lines as the status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// -1 where something is wrong.
    status: i64,
    text: String,
    lines: Vec<String>,
}

impl Reply {
    /// Something is wrong. Line ends in the text become blanks.
    pub fn error(text: impl fmt::Display) -> Self {
        Self {
            status: -1,
            text: one_line(&text.to_string()),
            lines: Vec::new(),
        }
    }

    /// It was done.
    pub fn success(text: impl fmt::Display) -> Self {
        Self {
            status: 0,
            text: one_line(&text.to_string()),
            lines: Vec::new(),
        }
    }

    /// The reply to PUTVAL, with the number of lists that were accepted.
    pub fn dispatched(count: usize) -> Self {
        Self::success(match count {
            1 => "Success: 1 value has been dispatched.".to_string(),
            count => format!("Success: {count} values have been dispatched."),
        })
    }

    /// To FLUSH: how many plugins did it, and how many could not.
    pub fn flushed(successful: usize, errors: usize) -> Self {
        Self::success(format!("Done: {successful} successful, {errors} errors"))
    }

    /// To GETVAL: the values by the names of their data sources, to seven digits as collectd
    /// prints them.
    pub fn values<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let line = |(name, value): (&str, f64)| format!("{name}={}", scientific(value));
        Self::list("Value", values.into_iter().map(line).collect())
    }

    /// To LISTVAL: the names with the times of their last values.
    pub fn names<'a>(names: impl IntoIterator<Item = (CdTime, &'a str)>) -> Self {
        let line = |(time, name): (CdTime, &str)| format!("{time} {}", one_line(name));
        Self::list("Value", names.into_iter().map(line).collect())
    }

    fn list(what: &str, lines: Vec<String>) -> Self {
        let plural = if lines.len() == 1 { "" } else { "s" };
        Self {
            status: lines.len() as i64,
            text: format!("{what}{plural} found"),
            lines,
        }
    }

    /// Its status: below 0 something is wrong, else it is the number of lines.
    pub fn status(&self) -> i64 {
        self.status
    }

    /// What it says beside the status.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its lines.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Reads the first line of a reply. As many lines follow as its status says, and are given
    /// to [`with_line`](Self::with_line).
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end_matches(['\n', '\r']);
        let (status, text) = line.split_once(' ').unwrap_or((line, ""));
        Some(Self {
            status: status.parse().ok()?,
            text: text.to_string(),
            lines: Vec::new(),
        })
    }

    /// The reply with a line more.
    #[must_use]
    pub fn with_line(mut self, line: &str) -> Self {
        self.lines.push(one_line(line));
        self
    }

    /// How many lines are still to follow.
    pub fn missing_lines(&self) -> u64 {
        let lines = u64::try_from(self.status).unwrap_or(0);
        lines.saturating_sub(self.lines.len() as u64)
    }
}

/// As C's `%12e` prints it; a value that is not known is `NaN`.
fn scientific(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    let mut line = Line::new();
    line.scientific(value, 6);
    format!("{:>12}", String::from_utf8_lossy(line.as_bytes()))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// With a newline behind each line.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.status, self.text)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
