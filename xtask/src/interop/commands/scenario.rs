//! What is done in both folders.

use std::fmt;

/// A row of things to do, beginning in an empty folder.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// Local time.
    pub(super) zone: &'static str,
    pub(super) steps: Vec<Step>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Line(Line),
    /// Many lines to one process.
    Script(String),
    /// A file is written.
    File(&'static str, Vec<u8>),
    /// A file loses its end.
    Cut(&'static str, u64),
    /// A folder is made.
    Folder(&'static str),
    /// Permissions change; those of the folder itself, if no name is given.
    Mode(&'static str, u32),
    /// A file is locked, as by a process that updates it, until the end of the scenario.
    Lock(&'static str),
}

/// A command line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) words: Vec<String>,
    pub(super) by: By,
    /// Whether the time at which it is run matters.
    pub(super) clock: bool,
}

/// How a command line is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum By {
    #[default]
    Pipe,
    Process,
    /// A process of a user who may not write everywhere.
    Nobody,
}

impl Line {
    /// Words that blanks divide.
    pub(super) fn new(words: impl AsRef<str>) -> Self {
        let words = words.as_ref().split_whitespace().map(str::to_owned);
        Self::of(words.collect())
    }

    pub(super) fn of(words: Vec<String>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// The same with one more word, which may have blanks.
    pub(super) fn with(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    pub(super) fn by(mut self, by: By) -> Self {
        self.by = by;
        self
    }

    /// The same, the time of day having to do with it.
    pub(super) fn by_clock(mut self) -> Self {
        self.clock = true;
        self
    }

    /// The command's name.
    pub(super) fn command(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Whether a pipe takes these words: none is empty or has both kinds of quotes.
    pub(super) fn fits_pipe(&self) -> bool {
        self.words
            .iter()
            .all(|word| !word.is_empty() && !word.contains(['\'', '"', '\n', '\\']))
    }

    /// As it is written in a pipe.
    pub(super) fn quoted(&self) -> String {
        let words = self.words.iter().map(|word| match word.contains(' ') {
            true => format!("\"{word}\""),
            false => word.clone(),
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

impl From<Line> for Step {
    fn from(line: Line) -> Self {
        Self::Line(line)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => {
                let by = match line.by {
                    By::Pipe => "",
                    By::Process => "rrdtool ",
                    By::Nobody => "as nobody: rrdtool ",
                };
                let words = line.words.iter().map(|word| {
                    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=@/+%".contains(c);
                    match !word.is_empty() && word.chars().all(plain) {
                        true => word.clone(),
                        false => format!("{word:?}"),
                    }
                });
                write!(f, "{by}{}", words.collect::<Vec<_>>().join(" "))
            }
            Self::Script(lines) => write!(f, "rrdtool - <<< {lines:?}"),
            Self::File(name, bytes) => write!(f, "({} bytes into {name})", bytes.len()),
            Self::Cut(name, length) => write!(f, "({name} cut to {length} bytes)"),
            Self::Folder(name) => write!(f, "(mkdir {name})"),
            Self::Mode(name, mode) => write!(f, "(chmod {mode:o} ./{name})"),
            Self::Lock(name) => write!(f, "({name} is locked)"),
        }
    }
}
