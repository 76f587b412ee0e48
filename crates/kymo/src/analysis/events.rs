//! Which event classes are meant by a name, a pattern or a number.

use std::fmt;

use kymo_model::Recording;

use crate::filter::{FilterError, Glob, name_of, nearest};

/// Names events: by their name, by a pattern of names, or by the number of their class.
///
/// What is the name of a class means that class, and nothing else. Otherwise it is a pattern,
/// and where that matches no name, a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPattern(Glob);

/// Whether the class of a name and a number is meant.
type Way<'a> = &'a dyn Fn(&str, u64) -> bool;

impl EventPattern {
    /// Takes a text for one; every text is.
    pub fn new(text: &str) -> Self {
        Self(Glob::new(text))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.0.pattern()
    }

    /// The part of a name that the only `*` of the pattern stands for, or the whole name if there is no such part.
    pub(super) fn short_name<'n>(&self, name: &'n str) -> &'n str {
        let part = self.as_str().split_once('*').and_then(|(before, after)| {
            let is_plain = |text: &str| !text.contains(['*', '?', '[', '\\']);
            let part = name.strip_prefix(before)?.strip_suffix(after)?;
            (is_plain(before) && is_plain(after) && !part.is_empty()).then_some(part)
        });
        part.unwrap_or(name)
    }

    /// By recording and class, whether it is meant.
    ///
    /// # Errors
    ///
    /// No class of any of the recordings is.
    pub(super) fn classes<R: Recording>(
        &self,
        recordings: &[R],
    ) -> Result<Vec<Vec<bool>>, UnknownEvent> {
        let text = self.as_str();
        let number: Option<u64> = text.parse().ok();
        let ways: [Way<'_>; 3] = [
            &|name, _| name == text,
            &|name, _| self.0.matches(name.as_bytes()),
            &|_, id| number == Some(id),
        ];
        for is_meant in ways {
            let classes: Vec<Vec<bool>> = recordings
                .iter()
                .map(|recording| {
                    let classes = recording.event_classes().iter();
                    classes
                        .map(|class| is_meant(name_of(class), class.id))
                        .collect()
                })
                .collect();
            if classes.iter().flatten().any(|&meant| meant) {
                return Ok(classes);
            }
        }
        let names = recordings
            .iter()
            .flat_map(Recording::event_classes)
            .map(name_of);
        Err(UnknownEvent {
            pattern: text.to_string(),
            meant: nearest(text, names).map(str::to_string),
        })
    }
}

/// No recording has such an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEvent {
    /// What was looked for.
    pub pattern: String,
    /// What may have been meant.
    pub meant: Option<String>,
}

impl fmt::Display for UnknownEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no event is called `{}`", self.pattern)?;
        match &self.meant {
            Some(meant) => write!(f, "hint: did you mean `{meant}`?"),
            None => f.write_str("hint: `kymo info` lists the events of a recording"),
        }
    }
}

/// Why an analysis cannot be made of some recordings.
#[derive(Clone, Debug)]
pub enum Error {
    /// No recording has an event that it needs.
    Event(UnknownEvent),
    /// No event has a field that it needs.
    Field {
        /// What the field is for: `track`, `pair-by`, `per`, `key`, `by`, `field`, `switch`.
        purpose: &'static str,
        /// What is wrong with its name.
        error: Box<FilterError>,
    },
    /// No recording says which of its events begin and end something.
    NoSlices {
        /// The options that say it.
        options: &'static str,
    },
    /// No event has the thing whose critical path was requested.
    NoThing {
        /// Its value.
        text: String,
    },
    /// An event is the beginning and the end of the same thing.
    BothEnds {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(unknown) => unknown.fmt(f),
            Self::Field { purpose, error } => write!(f, "{purpose}: {error}"),
            Self::NoSlices { options } => write!(
                f,
                "no recording says which of its events begin and end something\n\
                 hint: specify them with {options}"
            ),
            Self::NoThing { text } => write!(f, "no event brings `{text}` to a state"),
            Self::BothEnds { name } => {
                write!(f, "event `{name}` is meant as a beginning and as an end")
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fake;

    #[test]
    fn names_come_before_patterns_and_patterns_before_numbers() {
        let mut recording = Fake::default();
        for name in ["a*", "ab", "1", "rx"] {
            recording.class(name, Vec::new());
        }
        let recordings = [recording];
        let find = |text: &str| {
            let found = EventPattern::new(text).classes(&recordings);
            found.map(|mut classes| {
                let classes = classes.remove(0).into_iter().enumerate();
                classes
                    .filter_map(|(class, meant)| meant.then_some(class))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(find("a*"), Ok(vec![0]), "a name that looks like a pattern");
        assert_eq!(find("?b"), Ok(vec![1]));
        assert_eq!(find("[ar]*"), Ok(vec![0, 1, 3]));
        assert_eq!(find("1"), Ok(vec![2]), "a name that looks like a number");
        assert_eq!(find("3"), Ok(vec![3]));
        let error = find("rxx").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no event is called `rxx`\nhint: did you mean `rx`?"
        );
        assert_eq!(find("4").unwrap_err().meant, Some("1".to_string()));
        let short = |pattern| EventPattern::new(pattern).short_name("syscall_entry_read");
        assert_eq!(short("syscall_entry_*"), "read");
        assert_eq!(short("*_read"), "syscall_entry");
        for whole in [
            "syscall_entry_read",
            "*_*",
            "syscall_entry_read*",
            "[s]yscall_*",
            "x*",
        ] {
            assert_eq!(short(whole), "syscall_entry_read");
        }
        assert_eq!(find("").unwrap_err().meant, Some("1".to_string()));
    }
}
