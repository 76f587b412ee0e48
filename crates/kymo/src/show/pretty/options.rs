//! Options of the pretty text, and the lists they are given as.

use std::fmt;

use crate::AnyRecording;
use crate::show::{Palette, WallOptions};

/// How events are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How times are shown, unless as cycles.
    pub wall: WallOptions,
    /// Times as cycles of their clock.
    pub cycles: bool,
    /// With the time since the event before.
    pub delta: bool,
    /// Which names are shown.
    pub names: Names,
    /// Which fields of the trace and the event class are shown.
    pub fields: Fields,
    /// Colours, where wanted.
    pub colors: Option<Palette>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wall: WallOptions::default(),
            cycles: false,
            delta: true,
            names: Names::default(),
            fields: Fields::default(),
            colors: None,
        }
    }
}

impl Options {
    /// The same for these recordings: of several that are not all traces, each event names its
    /// recording. babeltrace2, which knows traces only, names none.
    #[must_use]
    pub fn for_recordings(mut self, recordings: &[AnyRecording]) -> Self {
        let all_traces = recordings
            .iter()
            .all(|recording| recording.as_ctf().is_some());
        self.fields.recording |= recordings.len() > 1 && !all_traces;
        self
    }
}

/// A word that is not an item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownItem {
    /// The word.
    pub item: String,
    /// What could stand there.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not one of {}", self.item, self.known.join(", "))
    }
}

impl std::error::Error for UnknownItem {}

/// Which names are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// Of the members of payloads.
    pub payload: bool,
    /// Of the members of contexts.
    pub context: bool,
    /// Of scopes.
    pub scope: bool,
    /// Of what comes before the fields.
    pub header: bool,
    /// Of the bits of a value that has no label of its own: the labels of each bit that is set.
    pub enum_flags: bool,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            payload: true,
            context: true,
            scope: false,
            header: false,
            enum_flags: false,
        }
    }
}

impl Names {
    const KNOWN: &'static [&'static str] =
        &["payload", "context", "scope", "header", "all", "none"];

    /// Reads a list of words separated by commas: `payload`, `context`, `scope`, `header`
    /// for what is shown, `all` or `none` for what is shown beside that (without either,
    /// nothing is). An empty list stands for the default.
    ///
    /// # Errors
    ///
    /// The first word that is not known.
    pub fn parse(list: &str) -> Result<Self, UnknownItem> {
        let mut rest = None;
        let mut named = Vec::new();
        for item in items(list, Self::KNOWN)? {
            match item {
                "all" => rest = Some(true),
                "none" => rest = Some(false),
                _ => named.push(item),
            }
        }
        if rest.is_none() && named.is_empty() {
            return Ok(Self::default());
        }
        let shown = |name| named.contains(&name) || rest == Some(true);
        Ok(Self {
            payload: shown("payload"),
            context: shown("context"),
            scope: shown("scope"),
            header: shown("header"),
            enum_flags: false,
        })
    }
}

/// Which fields of the trace and of the event class are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Path of the recording. babeltrace2 does not have it.
    pub recording: bool,
    /// Name of the trace.
    pub trace: bool,
    /// Host the trace is of.
    pub hostname: bool,
    /// Tracing domain, such as `kernel`.
    pub domain: bool,
    /// Name of the traced process.
    pub procname: bool,
    /// Identifier of the traced process.
    pub vpid: bool,
    /// Log level.
    pub loglevel: bool,
    /// Identifier of the model element behind the event class.
    pub emf: bool,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            hostname: true,
            procname: true,
            vpid: true,
            ..Self::all(false)
        }
    }
}

impl Fields {
    const KNOWN: &'static [&'static str] = &[
        "recording",
        "trace",
        "trace:hostname",
        "trace:domain",
        "trace:procname",
        "trace:vpid",
        "loglevel",
        "emf",
        "callsite",
        "all",
    ];

    const fn all(shown: bool) -> Self {
        Self {
            recording: false,
            trace: shown,
            hostname: shown,
            domain: shown,
            procname: shown,
            vpid: shown,
            loglevel: shown,
            emf: shown,
        }
    }

    /// Reads a list of words separated by commas: `recording`, `trace`, `trace:hostname`,
    /// `trace:domain`, `trace:procname`, `trace:vpid`, `loglevel`, `emf`, `all`, which is all that
    /// babeltrace2 has, and so all but `recording`. `callsite` is taken too, but no recording has
    /// any. An empty list stands for the default.
    ///
    /// # Errors
    ///
    /// The first word that is not known.
    pub fn parse(list: &str) -> Result<Self, UnknownItem> {
        let named = items(list, Self::KNOWN)?;
        if named.is_empty() {
            return Ok(Self::default());
        }
        let recording = named.contains(&"recording");
        if named.contains(&"all") {
            return Ok(Self {
                recording,
                ..Self::all(true)
            });
        }
        Ok(Self {
            recording,
            trace: named.contains(&"trace"),
            hostname: named.contains(&"trace:hostname"),
            domain: named.contains(&"trace:domain"),
            procname: named.contains(&"trace:procname"),
            vpid: named.contains(&"trace:vpid"),
            loglevel: named.contains(&"loglevel"),
            emf: named.contains(&"emf"),
        })
    }
}

/// The words of a list.
fn items<'l>(list: &'l str, known: &'static [&'static str]) -> Result<Vec<&'l str>, UnknownItem> {
    let words = list
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    words
        .map(|word| {
            if known.contains(&word) {
                Ok(word)
            } else {
                Err(UnknownItem {
                    item: word.to_owned(),
                    known,
                })
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names() {
        assert_eq!(Names::parse(""), Ok(Names::default()));
        let only_header = Names {
            payload: false,
            context: false,
            scope: false,
            header: true,
            enum_flags: false,
        };
        assert_eq!(Names::parse("header"), Ok(only_header));
        assert_eq!(Names::parse("none,header"), Ok(only_header));
        assert!(Names::parse("all").unwrap().scope);
        assert!(!Names::parse("none").unwrap().payload);
        assert_eq!(Names::parse("payload, foo").unwrap_err().item, "foo");
    }

    #[test]
    fn lists_of_fields() {
        assert_eq!(Fields::parse(""), Ok(Fields::default()));
        assert_eq!(Fields::parse("callsite"), Ok(Fields::all(false)));
        assert_eq!(Fields::parse("all,trace"), Ok(Fields::all(true)));
        assert!(Fields::parse("trace:domain,emf").unwrap().emf);
        assert!(Fields::parse("recording,all").unwrap().recording);
        assert!(Fields::parse("none").is_err());
    }
}
