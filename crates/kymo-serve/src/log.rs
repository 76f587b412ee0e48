//! Messages for people: their levels, and the forms in which they are written.

use std::fmt;
use std::sync::Arc;

use kymo_text::Line;

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is lost, or cannot be done.
    Error,
    /// Something is wrong, or may be lost; the daemon goes on as it can.
    Warning,
    /// What the daemon does.
    Info,
}

impl Level {
    /// All, those that matter most first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Info];

    /// Its name, as configurations have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }

    /// The level of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where messages for people go.
pub type Log = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// Messages that go nowhere.
pub fn no_log() -> Log {
    Arc::new(|_, _| {})
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: `kymo serve: warning: TEXT`.
    #[default]
    Text,
    /// An object of JSON with `time`, `level` and `message` in each line.
    Json,
}

impl LogFormat {
    /// All.
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    /// Its name, as configurations have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// The format of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The line of a message of now, with its end.
    pub fn line(self, level: Level, text: &str) -> Vec<u8> {
        match self {
            Self::Text => {
                let level = match level {
                    Level::Info => String::new(),
                    level => format!("{level}: "),
                };
                format!("kymo serve: {level}{text}\n").into_bytes()
            }
            Self::Json => {
                let now = jiff::Timestamp::now();
                let mut line = Line::new();
                line.push(format!("{{\"time\":\"{now:.6}\",\"level\":\"{level}\",").as_bytes());
                line.push(b"\"message\":");
                line.json_string(text.as_bytes());
                line.push(b"}\n");
                line.as_bytes().to_vec()
            }
        }
    }
}

/// Which messages are written, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// The least that matters.
    pub level: Level,
    /// How they are written.
    pub format: LogFormat,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: Level::Info,
            format: LogFormat::Text,
        }
    }
}

impl LogOptions {
    /// Writes messages to standard error.
    pub fn to_standard_error(self) -> Log {
        use std::io::Write as _;
        Arc::new(move |level, text| {
            if level <= self.level {
                // Nobody can be told that messages are not seen.
                let _ = std::io::stderr().write_all(&self.format.line(level, text));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let text = LogFormat::Text.line(Level::Warning, "no \"room\"");
        assert_eq!(text, b"kymo serve: warning: no \"room\"\n");
        assert_eq!(LogFormat::Text.line(Level::Info, "a"), b"kymo serve: a\n");
        let line = LogFormat::Json.line(Level::Error, "no \"room\"\n");
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["level"], "error");
        assert_eq!(value["message"], "no \"room\"\n");
        let time = value["time"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    }

    #[test]
    fn levels_have_an_order() {
        assert!(Level::Error < Level::Warning && Level::Warning < Level::Info);
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name()), Some(level));
        }
    }
}
