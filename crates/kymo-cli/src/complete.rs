//! `kymo complete`, which is in no help: the scripts of `kymo completions` ask it for the names of events and fields
//! that the recordings on a command line have.
//!
//! `kymo complete -- WORD...` gets the words up to the cursor, `kymo complete --bash LINE` the line. It prints what can
//! take the place of the last word, a line each, and nothing if that is not such a name: then the script goes on.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command};
use kymo_model::{Kind, Recording, Schema, Scope};

use crate::terminal::{Outcome, Terminal};

/// Facts of an event that have no field of their own, as `--where` names them.
const FACTS: [&str; 10] = [
    "event.name",
    "event.id",
    "event.kind",
    "event.level",
    "event.time",
    "stream.class",
    "stream.id",
    "stream.name",
    "trace.name",
    "recording.path",
];

/// What an option's value consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// The name of an event, in a pattern.
    Event,
    /// Names of fields between commas, and words that may stand for one.
    Fields(&'static [&'static str]),
    /// The name of an event, a colon, and the name of a field of it.
    EventField,
    /// A condition, which begins with a field.
    Condition,
}

impl Names {
    /// What an option takes, by the name that its help gives the value.
    pub(crate) fn of(option: &Arg) -> Option<Self> {
        if !option.get_action().takes_values() {
            return None;
        }
        let value = option.get_value_names()?.first()?.as_str();
        Some(match (option.get_long()?, value) {
            // They name facts of a recording, and scopes.
            ("fields" | "names", _) => return None,
            ("event", "GLOB") | ("align-event", "NAME") | (_, "EVENT") => Self::Event,
            (_, "FIELD" | "FIELD[,FIELD]...") => Self::Fields(&[]),
            (_, "track|FIELD[,FIELD]...") => Self::Fields(&["track"]),
            (_, "track|name|FIELD[,...]") => Self::Fields(&["track", "name"]),
            (_, "time|name|FIELD[,...]") => Self::Fields(&["time", "name"]),
            (_, "EVENT:FIELD") => Self::EventField,
            ("where", _) => Self::Condition,
            _ => return None,
        })
    }
}

/// Answers a script if the first word is `complete`.
pub(crate) fn take(words: &[OsString], terminal: &Terminal) -> Option<Outcome> {
    let rest = match words {
        [_, command, rest @ ..] if command == "complete" => rest,
        _ => return None,
    };
    let (line, is_bash) = match rest {
        [flag, line] if flag == "--bash" => (split(&line.to_string_lossy()), true),
        [end, words @ ..] if end == "--" => {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            (words.collect(), false)
        }
        _ => return None,
    };
    let mut text = String::new();
    for name in candidates(&line) {
        let name = match is_bash {
            true => for_bash(&name, line.last().map_or("", String::as_str)),
            false => name,
        };
        text.push_str(&name);
        text.push('\n');
    }
    // Without a reader there is nothing to complete.
    let _ = terminal.write(text.as_bytes());
    Some(Outcome::Good)
}

/// What can take the place of the last word.
fn candidates(words: &[String]) -> Vec<String> {
    let [program @ .., typed] = words else {
        return Vec::new();
    };
    let mut root = crate::args::command();
    root.build();
    let mut parsed = Parsed {
        command: &root,
        paths: Vec::new(),
        pending: None,
        is_only_paths: false,
    };
    for word in program.iter().skip(1) {
        parsed.take(word);
    }
    let (option, before, value) = match (parsed.pending, typed.split_once('=')) {
        (Some(option), _) => (Some(option), String::new(), typed.as_str()),
        (None, Some((name, value))) if name.starts_with("--") => {
            (parsed.long(&name[2..]), format!("{name}="), value)
        }
        _ => return Vec::new(),
    };
    let Some(names) = option.and_then(Names::of) else {
        return Vec::new();
    };
    // The cursor may stand before the recordings, but what is behind it is not known here.
    let paths: Vec<PathBuf> = parsed
        .paths
        .into_iter()
        .filter(|path| path.exists())
        .collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let found = Found::new(&paths);
    let values = found.values(names, value);
    values
        .into_iter()
        .filter(|value| !value.contains(char::is_control))
        .map(|value| format!("{before}{value}"))
        .collect()
}

/// The words before the cursor.
struct Parsed<'c> {
    command: &'c Command,
    paths: Vec<PathBuf>,
    /// The option whose value comes next.
    pending: Option<&'c Arg>,
    is_only_paths: bool,
}

impl<'c> Parsed<'c> {
    fn take(&mut self, word: &str) {
        if self.pending.take().is_some() {
            return;
        }
        if self.is_only_paths || !word.starts_with('-') || word == "-" {
            match self.command.find_subcommand(word) {
                Some(command) if self.paths.is_empty() && !self.is_only_paths => {
                    self.command = command
                }
                _ => self.paths.push(PathBuf::from(word)),
            }
            return;
        }
        if word == "--" {
            self.is_only_paths = true;
            return;
        }
        let option = match word.strip_prefix("--") {
            Some(name) if name.contains('=') => None,
            Some(name) => self.long(name),
            None => {
                // The value may be in the same word.
                let mut letters = word[1..].chars();
                let letter = letters.next();
                let mut all = self.command.get_arguments();
                let found = all.find(|arg| arg.get_short().is_some() && arg.get_short() == letter);
                found.filter(|_| letters.next().is_none())
            }
        };
        self.pending = option.filter(|arg| arg.get_action().takes_values());
    }

    fn long(&self, name: &str) -> Option<&'c Arg> {
        let mut all = self.command.get_arguments();
        all.find(|arg| arg.get_long() == Some(name))
    }
}

/// The names that recordings have.
struct Found {
    events: BTreeSet<String>,
    /// With the event that has them.
    fields: BTreeSet<(String, String)>,
}

impl Found {
    fn new(paths: &[PathBuf]) -> Self {
        let opened = kymo::open::open(paths, &kymo::open::Options::default());
        let mut found = Self {
            events: BTreeSet::new(),
            fields: BTreeSet::new(),
        };
        for recording in &opened.recordings {
            for stream in recording.streams() {
                for path in paths_of(&stream.packet_schema) {
                    found.fields.insert((String::new(), path));
                }
            }
            for class in recording.event_classes() {
                let name = class.name.as_deref().unwrap_or_default();
                if !name.is_empty() {
                    found.events.insert(name.to_owned());
                }
                for path in paths_of(&class.schema) {
                    found.fields.insert((name.to_owned(), path));
                }
            }
        }
        found
    }

    /// Values that begin with what is typed.
    fn values(&self, names: Names, typed: &str) -> Vec<String> {
        let fields = self.fields.iter().map(|(_, field)| field.as_str());
        let (kept, all): (&str, BTreeSet<&str>) = match names {
            Names::Event => {
                let events = self.events.iter().map(|name| escape(name));
                let events: Vec<String> = events.collect();
                return begin_with(typed, "", events.iter().map(String::as_str));
            }
            Names::EventField => match typed.rsplit_once(':') {
                Some((event, _)) if self.events.contains(event) => {
                    let of_event = self
                        .fields
                        .iter()
                        .filter(|(name, _)| name == event || name.is_empty());
                    let kept = &typed[..=event.len()];
                    let fields = of_event.map(|(_, field)| field.as_str());
                    return begin_with(&typed[kept.len()..], kept, fields);
                }
                _ => {
                    let events: Vec<String> =
                        self.events.iter().map(|name| format!("{name}:")).collect();
                    return begin_with(typed, "", events.iter().map(String::as_str));
                }
            },
            Names::Fields(others) => {
                let begin = typed.rfind([',', '=']).map_or(0, |at| at + 1);
                (
                    &typed[..begin],
                    fields.chain(others.iter().copied()).collect(),
                )
            }
            Names::Condition => ("", fields.collect()),
        };
        let part = &typed[kept.len()..];
        let mut values = begin_with(part, kept, all.into_iter());
        // Listing all facts would hide the fields.
        if !part.is_empty() {
            values.extend(begin_with(part, kept, FACTS.into_iter()));
        }
        values
    }
}

/// The names that begin with what is typed, behind what is kept of it.
fn begin_with<'n>(typed: &str, kept: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let names = names.filter(|name| name.starts_with(typed));
    names.map(|name| format!("{kept}{name}")).collect()
}

/// A pattern that only this name matches.
fn escape(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The fields of a schema as filters name them. Elements of arrays and odd names, which need brackets and quotes, are
/// left out.
fn paths_of(schema: &Schema) -> Vec<String> {
    // Lengths of sequences have a name that LTTng gives them.
    let is_plain = |name: &str| {
        let is_length = name.starts_with('_') && name.ends_with("_length");
        !is_length
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut paths = Vec::new();
    for scope in Scope::ALL {
        // Headers of events are not fields of filters.
        let Some(root) = schema.root(scope).filter(|_| scope != Scope::EventHeader) else {
            continue;
        };
        let mut ahead = vec![(root, String::new())];
        while let Some((id, path)) = ahead.pop() {
            let field = schema.field(id);
            if matches!(field.kind, Kind::Array { .. }) {
                continue;
            }
            for &child in &field.children {
                match schema.field(child).name.as_deref() {
                    Some(name) if is_plain(name) && !name.is_empty() => {
                        let path = match path.as_str() {
                            "" => name.to_string(),
                            path => format!("{path}.{name}"),
                        };
                        paths.push(path.clone());
                        ahead.push((child, path));
                    }
                    Some(_) => {}
                    None => ahead.push((child, path.clone())),
                }
            }
        }
    }
    paths
}

/// The part of a word that bash replaces: it takes colons and equals signs for ends of words.
fn for_bash(name: &str, typed: &str) -> String {
    let kept = typed.rfind([':', '=']).map_or(0, |at| at + 1);
    let part = name.get(kept..).unwrap_or(name);
    let mut quoted = String::new();
    for c in part.chars() {
        if !(c.is_alphanumeric() || "_-./:,=@%+".contains(c)) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

/// The words of a line up to the cursor, as shells split them; the last one is empty behind a space.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let last = words.len() - 1;
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(end), c) if c == end => quote = None,
            (None | Some('"'), '\\') => words[last].extend(chars.next()),
            (None, c) if c.is_whitespace() => {
                if !words[last].is_empty() {
                    words.push(String::new());
                }
            }
            (_, c) => words[last].push(c),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");

    fn complete(line: &str) -> Vec<String> {
        candidates(&split(&line.replace("TRACE", EXAMPLE)))
    }

    #[test]
    fn events_and_fields_of_the_recording() {
        assert_eq!(complete("kymo print TRACE --event demo:int"), ["demo:ints"]);
        assert_eq!(
            complete("kymo print TRACE --event=demo:en"),
            ["--event=demo:enums"]
        );
        let all = complete("kymo latency TRACE --start ");
        assert!(
            all.len() > 5 && all.contains(&"demo:floats".to_string()),
            "{all:?}"
        );
        assert_eq!(
            complete("kymo print TRACE --columns time,cpu"),
            ["time,cpu_id"]
        );
        assert_eq!(complete("kymo print TRACE --where event.n"), ["event.name"]);
        assert_eq!(
            complete("kymo graph TRACE --value demo:ints:u8"),
            ["demo:ints:u8"]
        );
        assert_eq!(
            complete("kymo graph -o x.svg TRACE --value demo:int"),
            ["demo:ints:"]
        );
    }

    #[test]
    fn nothing_else_is_completed() {
        for line in [
            "kymo print TRACE",
            "kymo print --event demo:",
            "kymo print TRACE --fields t",
            "kymo print TRACE --limit ",
            "kymo print /nonexistent --event ",
            "kymo print -- TRACE --event ",
            "kymo",
            "",
        ] {
            assert_eq!(complete(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn lines_are_split_as_shells_do() {
        assert_eq!(
            split("a 'b c' d\\ e \"f\\\"g\" "),
            ["a", "b c", "d e", "f\"g", ""]
        );
        assert_eq!(for_bash("demo:a b", "demo:a"), "a\\ b");
        assert_eq!(for_bash("--event=demo:x", "--event=de"), "demo:x");
    }
}
