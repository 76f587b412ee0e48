//! Views: options of analyses that have a name.
//!
//! `kymo latency syscalls trace/` stands for `kymo latency --start=... --end=... trace/`. The views that kymo has are
//! in `views.toml`; a user's files add to them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config;

/// The views that kymo has.
const OWN: &str = include_str!("views.toml");

/// The commands that have views.
pub(crate) const COMMANDS: [&str; 5] = ["latency", "states", "profile", "stats", "values"];

/// By command and name, the options.
type Views = BTreeMap<(String, String), Vec<OsString>>;

/// Replaces the name of a view, which stands behind the command, by its options.
///
/// # Errors
///
/// A file of views that cannot be read or says what is not known, as a message.
pub(crate) fn expand(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str());
    let (Some(command), Some(name)) = (word(1), word(2)) else {
        return Ok(words);
    };
    if !COMMANDS.contains(&command) {
        return Ok(words);
    }
    if !may_be_view(name) {
        let misplaced = misplaced(&words[2..]).filter(|name| {
            known(&words)
                .is_ok_and(|views| views.contains_key(&(command.to_string(), name.to_string())))
        });
        return match misplaced {
            Some(name) => Err(format!(
                "the view `{name}` is not the first argument\n\
                 hint: write `kymo {command} {name}`, then options and paths"
            )),
            None => Ok(words),
        };
    }
    let mut views = known(&words)?;
    let Some(options) = views.remove(&(command.to_string(), name.to_string())) else {
        return Ok(words);
    };
    let (before, rest) = words.split_at(2);
    let all = before.iter().cloned().chain(options);
    Ok(all.chain(rest[1..].iter().cloned()).collect())
}

/// The names of the views of a command.
pub(crate) fn names(command: &str, words: &[OsString]) -> Vec<String> {
    let views = known(words).unwrap_or_default().into_keys();
    let of_command = views.filter(|(of_view, _)| of_view == command);
    of_command.map(|(_, name)| name).collect()
}

/// Whether a word can be the name of a view.
fn may_be_view(word: &str) -> bool {
    !word.starts_with('-') && !word.contains(['/', '.'])
}

/// The first path that does not exist. A word behind one that begins with `-` may be the value of an option.
fn misplaced(words: &[OsString]) -> Option<&str> {
    let mut paths = words.windows(2).filter_map(|pair| {
        let word = pair[1].to_str().filter(|word| may_be_view(word))?;
        (!pair[0].to_str()?.starts_with('-')).then_some(word)
    });
    paths.find(|word| !Path::new(word).exists())
}

/// The views that kymo has, and those of files.
fn known(words: &[OsString]) -> Result<Views, String> {
    let mut views = Views::new();
    read(OWN, &mut views)?;
    let given = file(words);
    // The user's own file counts more than that for everybody, and one that is given more than both.
    let mut files: Vec<(PathBuf, bool)> = config::paths("views.toml")
        .map(|path| (path, false))
        .collect();
    files.reverse();
    files.extend(given.map(|path| (path, true)));
    for (path, is_given) in files {
        let text = match kymo_io::read_small_text(&path) {
            Ok(text) => text,
            Err(error) if !is_given && config::is_none(&path, error.kind()) => continue,
            Err(error) => return Err(format!("'{}': {}", path.display(), kymo_io::reason(&error))),
        };
        read(&text, &mut views).map_err(|error| format!("'{}': {error}", path.display()))?;
    }
    Ok(views)
}

/// The file that `--views` names.
fn file(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--views" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--views=")) {
            return Some(Path::new(path).to_path_buf());
        }
    }
    None
}

/// Reads views: tables `[COMMAND.NAME]` of options by their long names.
fn read(text: &str, views: &mut Views) -> Result<(), String> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.to_string())?;
    for (command, names) in table {
        let toml::Value::Table(names) = names else {
            return Err(format!(
                "found `{command}`, expected a table `[COMMAND.NAME]`"
            ));
        };
        if !COMMANDS.contains(&command.as_str()) {
            let known = COMMANDS.join(", ");
            return Err(format!("`{command}` has no views: expected one of {known}"));
        }
        for (name, options) in names {
            let toml::Value::Table(options) = options else {
                return Err(format!("found `{command}.{name}`, expected a table"));
            };
            let mut words = Vec::new();
            for (option, value) in options {
                if option != "about" {
                    push(&option, &value, &mut words)
                        .map_err(|problem| format!("{command}.{name}.{option}: {problem}"))?;
                }
            }
            views.insert((command.clone(), name), words);
        }
    }
    Ok(())
}

/// Adds an option as words: texts and numbers are values, lists are options that are given several times, `true` is an
/// option without a value.
pub(crate) fn push(
    option: &str,
    value: &toml::Value,
    words: &mut Vec<OsString>,
) -> Result<(), String> {
    match value {
        toml::Value::String(text) => words.push(format!("--{option}={text}").into()),
        toml::Value::Integer(number) => words.push(format!("--{option}={number}").into()),
        toml::Value::Float(number) => words.push(format!("--{option}={number}").into()),
        toml::Value::Boolean(true) => words.push(format!("--{option}").into()),
        toml::Value::Boolean(false) => {}
        toml::Value::Array(values) => {
            for value in values {
                match value {
                    toml::Value::Array(_) => return Err("found a list in a list".to_string()),
                    value => push(option, value, words)?,
                }
            }
        }
        value => return Err(format!("found a value of type {}", value.type_str())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_view_stands_for_its_options() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.toml");
        std::fs::write(
            &file,
            "[latency.mine]\nabout = \"x\"\nstart = \"a\"\nend = \"b\"\nworst = 3\nevent = [\"c\", \"d\"]\njson = true",
        )
        .unwrap();
        let line = format!("kymo latency mine --views {} trace", file.display());
        let found = expand(words(&line)).unwrap();
        let found: Vec<&str> = found.iter().map(|word| word.to_str().unwrap()).collect();
        let mut options = found[2..found.len() - 3].to_vec();
        options.sort_unstable();
        assert_eq!(
            options,
            [
                "--end=b",
                "--event=c",
                "--event=d",
                "--json",
                "--start=a",
                "--worst=3"
            ]
        );
        assert_eq!(found.last(), Some(&"trace"));
        for other in [
            "kymo latency ./mine",
            "kymo print mine",
            "kymo latency --json mine",
            "kymo",
        ] {
            assert_eq!(expand(words(other)).unwrap(), words(other));
        }
        let late = format!("kymo latency --views {} mine trace", file.display());
        let problem = expand(words(&late)).unwrap_err();
        assert!(
            problem.starts_with("the view `mine` is not the first argument"),
            "{problem}"
        );
    }

    #[test]
    fn what_is_not_known_is_reported() {
        for (text, message) in [
            ("x = 1", "found `x`, expected a table `[COMMAND.NAME]`"),
            (
                "[print.x]",
                "`print` has no views: expected one of latency, states, profile, stats, values",
            ),
            ("[latency]\nx = 1", "found `latency.x`, expected a table"),
            (
                "[latency.x]\nstart = { a = 1 }",
                "latency.x.start: found a value of type table",
            ),
        ] {
            assert_eq!(read(text, &mut Views::new()), Err(message.into()));
        }
    }

    #[test]
    fn views_of_kymo_are_options_of_their_commands() {
        let mut views = Views::new();
        read(OWN, &mut views).unwrap();
        for ((command, name), options) in views {
            let line = ["kymo".into(), OsString::from(&command)].into_iter();
            let line = line.chain(options).chain(["trace".into()]);
            let parsed = crate::args::command().try_get_matches_from(line);
            assert!(parsed.is_ok(), "{command} {name}: {}", parsed.unwrap_err());
        }
    }
}
