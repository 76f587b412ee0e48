//! `kymo complete`, which is in no help: the scripts of `kymo completions` ask it for the names of events and fields
//! that the recordings on a command line have, and for those of machines and views.
//!
//! `kymo complete --cursor N -- WORD...` gets the words, of which the Nth is completed and ends at the cursor;
//! `kymo complete --bash BEFORE BEHIND` gets the line in two parts. It prints what can take the place of that word, a
//! line each, and nothing if that is not such a name: then the script goes on. If files are possible beside the
//! names, an empty line comes first.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command};
use kymo_machine::Machine;
use kymo_model::{Kind, Recording, Schema, Scope};

use crate::terminal::{Outcome, Terminal};
use crate::views;

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
    /// A machine.
    Machine,
    /// A machine whose files are written, or `portable`.
    Target,
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
            ("from" | "machine", "MACHINE") => Self::Machine,
            (_, "MACHINE") => Self::Target,
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
    let (line, behind, is_bash) = match rest {
        [flag, before, behind] if flag == "--bash" => {
            let behind = split_behind(&behind.to_string_lossy());
            (split(&before.to_string_lossy()), behind, true)
        }
        [flag, cursor, end, words @ ..] if flag == "--cursor" && end == "--" => {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            let mut line: Vec<String> = words.collect();
            let cursor: usize = cursor.to_str()?.parse().ok()?;
            let behind = line.split_off(cursor.min(line.len()));
            (line, behind, false)
        }
        _ => return None,
    };
    let mut text = String::new();
    for name in candidates(&line, &behind) {
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

/// What can take the place of the last word before the cursor.
fn candidates(words: &[String], behind: &[String]) -> Vec<String> {
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
        _ => {
            let of_command = match program {
                [_, command] => view_names(command, words, behind),
                _ => Vec::new(),
            };
            let mut found = begin_with(typed, "", of_command.iter().map(String::as_str));
            if !found.is_empty() {
                found.insert(0, String::new());
            }
            return found;
        }
    };
    let Some(names) = option.and_then(Names::of) else {
        return Vec::new();
    };
    let machines = Machine::all().iter().flat_map(Machine::names);
    match names {
        Names::Machine => return begin_with(value, &before, machines),
        Names::Target => return begin_with(value, &before, machines.chain(["portable"])),
        _ => {}
    }
    parsed.pending = None;
    for word in behind {
        parsed.take(word);
    }
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

/// The views of a command.
fn view_names(command: &str, words: &[String], behind: &[String]) -> Vec<String> {
    let words: Vec<OsString> = words.iter().chain(behind).map(OsString::from).collect();
    views::names(command, &words)
}

/// The words of a command line but the one that is completed.
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
            // No recording has them.
            Names::Machine | Names::Target => return Vec::new(),
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

/// The words of a line from the cursor on, without the rest of the word that it stands in.
fn split_behind(line: &str) -> Vec<String> {
    let rest = usize::from(!line.starts_with(char::is_whitespace));
    let words = split(line).into_iter().skip(rest);
    words.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lttng-small");

    /// What can stand at the end of a line, or where it has a `^`.
    fn complete(line: &str) -> Vec<String> {
        let line = line.replace("TRACE", EXAMPLE);
        let (before, behind) = line.split_once('^').unwrap_or((&line, ""));
        candidates(&split(before), &split_behind(behind))
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
    fn recordings_may_stand_behind_the_cursor() {
        for line in [
            "kymo print --event demo:int^ TRACE",
            "kymo print --event demo:int^erfaces TRACE",
            "kymo print --event demo:int^ --limit 5 TRACE ",
            "kymo print --event demo:int^ -- TRACE",
        ] {
            assert_eq!(complete(line), ["demo:ints"], "{line}");
        }
        assert_eq!(complete("kymo print --event demo:int^TRACE"), [""; 0]);
        assert_eq!(
            complete("kymo print --event demo:int^ --pointdefs TRACE"),
            [""; 0]
        );
    }

    #[test]
    fn machines_and_views() {
        assert_eq!(complete("kymo rrd convert a.rrd --to port"), ["portable"]);
        assert_eq!(complete("kymo rrd convert --to=arm6"), ["--to=arm64"]);
        assert!(complete("kymo rrd convert --from ").contains(&"sparc".to_owned()));
        assert_eq!(complete("kymo rrd convert --from port"), [""; 0]);
        // Files are possible, too.
        assert_eq!(complete("kymo latency sys^ TRACE"), ["", "syscalls"]);
        assert!(complete("kymo states ").contains(&"threads".to_owned()));
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
            "kymo print sys",
            "kymo latency TRACE sys",
            "kymo convert --to port",
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
