//! Messages for people: their levels, and the forms in which they are written.

use std::fmt;
use std::sync::{Arc, Mutex};

use kymo_text::json::{Writer, escape};
use kymo_text::{is_invisible, visible};

use crate::sync::lock;

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

/// Messages that are kept.
#[cfg(test)]
pub(crate) fn kept_log() -> (Log, Arc<std::sync::Mutex<Vec<String>>>) {
    let kept = Arc::<std::sync::Mutex<Vec<String>>>::default();
    let log = Arc::clone(&kept);
    let keep = move |_, text: &str| crate::sync::lock(&log).push(text.to_owned());
    (Arc::new(keep), kept)
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: `kymo serve: warning: TEXT`.
    #[default]
    Text,
    /// An object of JSON with `time`, `level`, `message` and, if there is one, `hint` in each line.
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

    /// The line of a message of now, with its end. A hint follows the message on a line that begins with `hint: `.
    /// Characters that a terminal obeys instead of showing them are escaped; lines of a text after the first are
    /// indented, so that none looks like another message.
    pub fn line(self, level: Level, text: &str) -> Vec<u8> {
        match self {
            Self::Text => {
                let level = match level {
                    Level::Info => String::new(),
                    level => format!("{level}: "),
                };
                let lines: Vec<_> = text.lines().map(visible).collect();
                format!("kymo serve: {level}{}\n", lines.join("\n  ")).into_bytes()
            }
            Self::Json => {
                let now = jiff::Timestamp::now();
                let (message, hint) = match text.split_once("\nhint: ") {
                    Some((message, hint)) => (message, Some(hint)),
                    None => (text, None),
                };
                let mut json = Writer::default();
                json.begin_object();
                json.entry("time", format!("{now:.6}").as_str());
                json.entry("level", level.to_string().as_str());
                json.entry("message", message);
                if let Some(hint) = hint {
                    json.entry("hint", hint);
                }
                json.end_object();
                let line = String::from_utf8_lossy(json.as_bytes());
                (escape(&line, is_invisible) + "\n")
                    .into_owned()
                    .into_bytes()
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

/// Messages on standard error, by options that can change.
#[derive(Clone, Debug, Default)]
pub struct StandardError(Arc<Mutex<LogOptions>>);

impl StandardError {
    /// Writes messages as these options say.
    pub fn new(options: LogOptions) -> Self {
        Self(Arc::new(Mutex::new(options)))
    }

    /// Writes messages from now on as other options say.
    pub fn change(&self, options: LogOptions) {
        *lock(&self.0) = options;
    }

    /// What takes the messages.
    pub fn log(&self) -> Log {
        let logger = self.clone();
        Arc::new(move |level, text| logger.write(level, text))
    }

    /// Writes a message, if it matters enough.
    pub fn write(&self, level: Level, text: &str) {
        use std::io::Write as _;
        let options = *lock(&self.0);
        if level <= options.level {
            // Nobody can be notified that messages are not seen.
            let _ = std::io::stderr().write_all(&options.format.line(level, text));
        }
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
    fn hints_are_apart() {
        let text = "`a` is not a directory\nhint: `--data` is one";
        let line = LogFormat::Json.line(Level::Error, text);
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["message"], "`a` is not a directory");
        assert_eq!(value["hint"], "`--data` is one");
        assert_eq!(value.as_object().unwrap().len(), 4);
        let line = LogFormat::Text.line(Level::Error, text);
        let expected = "kymo serve: error: `a` is not a directory\n  hint: `--data` is one\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let text = "a\x1b[2J\u{9b}\u{202e}\u{2066}\u{7f}\nkymo serve: all is well \u{e4}\u{feff}";
        let line = LogFormat::Text.line(Level::Info, text);
        let expected = "kymo serve: a\\x1b[2J\\x9b\\u{202e}\\u{2066}\\x7f\n  \
            kymo serve: all is well \u{e4}\\u{feff}\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
        let line = LogFormat::Json.line(Level::Info, text);
        let found = std::str::from_utf8(&line).unwrap().trim_end();
        assert!(!found.contains(is_invisible), "{found:?}");
        assert!(found.contains("\\u202e\\u2066\\u007f\\n"), "{found}");
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["message"], text);
    }

    #[test]
    fn levels_have_an_order() {
        assert!(Level::Error < Level::Warning && Level::Warning < Level::Info);
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name()), Some(level));
        }
    }
}
