//! The file of configuration: what is not said on the command line each time.
//!
//! ```toml
//! [defaults]
//! # Times in UTC (--clock-gmt) and with dates (--clock-date), of all commands that have these options.
//! utc = true
//! date = true
//! color = "never"
//! quiet = false
//!
//! [print]
//! # Options of a command by their long names.
//! format = "json"
//!
//! [rrd]
//! # The form of new databases: `portable`, or a machine of `kymo machine list`.
//! format = "portable"
//! ```

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kymo_text::nearest;

use crate::args;
use crate::views::push;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// The directory for everybody on this machine.
const SHARED: &str = "/etc/kymo";
/// Names another file; none is read if it is empty.
const VARIABLE: &str = "KYMO_CONFIG";

/// The options of `[defaults]`: how the file calls them, and the command line.
const DEFAULTS: [(&str, &str); 4] = [
    ("utc", "clock-gmt"),
    ("date", "clock-date"),
    ("color", "color"),
    ("quiet", "quiet"),
];

/// A file of configuration.
struct Config {
    path: PathBuf,
    table: toml::Table,
}

/// The form of new databases, and the file that says so.
///
/// # Errors
///
/// A file that cannot be read, or that says what is not known, as a message.
pub(crate) fn rrd_format() -> Result<Option<(String, String)>, String> {
    for config in files()? {
        if let Some(format) = config
            .format()
            .map_err(|problem| config.problem(&problem))?
        {
            return Ok(Some((config.shown(), format)));
        }
    }
    Ok(None)
}

/// Puts the options that the configuration has for a command before those of the command line, which replace them.
///
/// # Errors
///
/// A file that cannot be read, or that says what is not known, as a message.
pub(crate) fn expand(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let Some(name) = words.get(1).and_then(|word| word.to_str()) else {
        return Ok(words);
    };
    let mut options = Vec::new();
    // What the user's file says stands behind what is for everybody.
    for config in files()?.into_iter().rev() {
        let found = config
            .options(name, &words[2..])
            .map_err(|problem| config.problem(&problem))?;
        options.extend(found);
    }
    if options.is_empty() {
        return Ok(words);
    }
    let (before, rest) = words.split_at(2);
    let all = before.iter().cloned().chain(options);
    Ok(all.chain(rest.iter().cloned()).collect())
}

/// The files that there are: the user's, and that for everybody.
fn files() -> Result<Vec<Config>, String> {
    let given = std::env::var_os(VARIABLE);
    let paths: Vec<PathBuf> = match &given {
        Some(path) if path.is_empty() => return Ok(Vec::new()),
        Some(path) => vec![path.into()],
        None => paths("config.toml").collect(),
    };
    let mut files = Vec::new();
    for path in paths {
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if given.is_none() && is_none(&path, error.kind()) => continue,
            Err(error) => {
                let explained = kymo::explain::reading(&path, &error);
                let hint = match (&explained.hint, given.is_some()) {
                    (_, true) => {
                        format!(
                            "the environment variable {VARIABLE} names this file: correct it, or set it to nothing to read none"
                        )
                    }
                    (Some(hint), false) => hint.clone(),
                    (None, false) => format!("`{VARIABLE}= kymo ...` runs without it"),
                };
                return Err(format!("{}\nhint: {hint}", explained.problem));
            }
        };
        let table = text.parse();
        let table =
            table.map_err(|error: toml::de::Error| format!("`{}`: {error}", path.display()))?;
        files.push(Config { path, table });
    }
    Ok(files)
}

/// The text of a file, which is neither a device nor larger than anybody would write it.
fn read(path: &Path) -> std::io::Result<String> {
    let there = std::fs::metadata(path)?;
    if there.is_dir()
        || there.file_type().is_file() && there.len() <= LARGEST
        || path == Path::new("/dev/null")
    {
        return std::fs::read_to_string(path);
    }
    let problem = format!("expected a regular file of at most {LARGEST} bytes");
    Err(std::io::Error::new(ErrorKind::InvalidData, problem))
}

/// Whether the file does not exist or belongs to another user: a server may have `/dev/null`
/// for its home, or the home of whoever started it.
pub(crate) fn is_none(path: &Path, error: ErrorKind) -> bool {
    match error {
        ErrorKind::NotFound | ErrorKind::NotADirectory => true,
        ErrorKind::PermissionDenied => !path.starts_with(SHARED),
        _ => false,
    }
}

/// The user's file of a name, and the one for everybody.
pub(crate) fn paths(name: &str) -> impl Iterator<Item = PathBuf> + use<'_> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")))
        .map(|directory| directory.join("kymo"));
    let directories = own.into_iter().chain([PathBuf::from(SHARED)]);
    directories.map(move |directory| directory.join(name))
}

impl Config {
    fn shown(&self) -> String {
        format!("`{}`", self.path.display())
    }

    fn problem(&self, problem: &str) -> String {
        format!("{}: {problem}", self.shown())
    }

    /// What the file says of new databases.
    fn format(&self) -> Result<Option<String>, String> {
        let rrd = match self.table.get("rrd") {
            None => return Ok(None),
            Some(toml::Value::Table(rrd)) => rrd,
            Some(_) => return Err("found `rrd`, expected the table `[rrd]`".to_string()),
        };
        let mut format = None;
        for (name, value) in rrd {
            match (name.as_str(), value) {
                ("format", toml::Value::String(text)) => format = Some(text.clone()),
                ("format", value) => {
                    let found = value.type_str();
                    return Err(format!(
                        "rrd.format: found a value of type {found}, expected a string"
                    ));
                }
                _ => return Err(format!("found `rrd.{name}`, expected `rrd.format`")),
            }
        }
        Ok(format)
    }

    /// The options that the file has for a command, but for those that contradict what the command line says.
    fn options(&self, command: &str, given: &[OsString]) -> Result<Vec<OsString>, String> {
        self.format()?;
        // To build the commands takes a good part of a short run.
        if self.table.keys().all(|name| name == "rrd") {
            return Ok(Vec::new());
        }
        let mut all = args::command();
        all.build();
        let known = all
            .find_subcommand(command)
            .filter(|command| !command.has_subcommands());
        let mut words = Vec::new();
        for (name, value) in &self.table {
            let options = match value {
                toml::Value::Table(options) => options,
                _ => {
                    let names = DEFAULTS.iter().map(|(name, _)| *name);
                    let hint = match nearest(name, names) {
                        Some(meant) => format!("\nhint: write `{meant}` below a line `[defaults]`"),
                        None => String::new(),
                    };
                    return Err(format!(
                        "found `{name}`, expected a table such as `[defaults]`{hint}"
                    ));
                }
            };
            if name == "rrd" {
                continue;
            }
            let is_defaults = name == "defaults";
            if !is_defaults
                && all
                    .find_subcommand(name)
                    .is_none_or(|command| command.has_subcommands())
            {
                let names = all.get_subcommands().map(clap::Command::get_name);
                return Err(unknown(&format!("[{name}]"), nearest(name, names)));
            }
            for (option, value) in options {
                let long = match DEFAULTS.iter().find(|(name, _)| name == option) {
                    Some((_, long)) if is_defaults => *long,
                    _ if is_defaults => {
                        let names = DEFAULTS.iter().map(|(name, _)| *name);
                        return Err(unknown(&format!("{name}.{option}"), nearest(option, names)));
                    }
                    _ => option.as_str(),
                };
                let has = |command: &clap::Command| {
                    command
                        .get_arguments()
                        .any(|arg| arg.get_long() == Some(long))
                };
                if !is_defaults && !all.find_subcommand(name).is_some_and(has) {
                    let section = all.find_subcommand(name);
                    let longs = section.into_iter().flat_map(|command| {
                        command.get_arguments().filter_map(clap::Arg::get_long)
                    });
                    return Err(unknown(&format!("{name}.{option}"), nearest(option, longs)));
                }
                let gives_way = known.is_some_and(|command| contradicts(command, long, given));
                if known.is_some_and(has) && (is_defaults || name == command) && !gives_way {
                    push(long, value, &mut words)
                        .map_err(|problem| format!("{name}.{option}: {problem}"))?;
                }
            }
        }
        Ok(words)
    }
}

/// Whether an option cannot be used with one that the words of a command line have.
fn contradicts(command: &clap::Command, long: &str, words: &[OsString]) -> bool {
    let find = |long: &str| {
        let mut all = command.get_arguments();
        all.find(|arg| arg.get_long() == Some(long))
    };
    let Some(option) = find(long) else {
        return false;
    };
    let excludes = |one: &clap::Arg, other: &clap::Arg| {
        let excluded = command.get_arg_conflicts_with(one);
        excluded.iter().any(|arg| arg.get_id() == other.get_id())
    };
    words
        .iter()
        .map_while(|word| (word != "--").then(|| word.to_str().unwrap_or_default()))
        .filter_map(|word| find(word.strip_prefix("--")?.split('=').next()?))
        .any(|given| excludes(option, given) || excludes(given, option))
}

/// That something is not known, and what may have been meant.
fn unknown(name: &str, meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!("found `{name}`, which is not known\nhint: did you mean `{meant}`?"),
        None => format!(
            "found `{name}`, which is not known\n\
             hint: tables are [defaults] with utc, date, color and quiet, [rrd] with format, and commands with their options"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config {
            path: "c.toml".into(),
            table: text.parse().unwrap(),
        }
    }

    #[test]
    fn formats_are_found() {
        assert_eq!(config("").format(), Ok(None));
        assert_eq!(config("[rrd]").format(), Ok(None));
        let text = "[rrd]\nformat = \"portable\" # here\n";
        assert_eq!(config(text).format(), Ok(Some("portable".into())));
        for (text, message) in [
            (
                "[rrd]\nforms = 1",
                "found `rrd.forms`, expected `rrd.format`",
            ),
            (
                "[rrd]\nformat = 1",
                "rrd.format: found a value of type integer, expected a string",
            ),
        ] {
            assert_eq!(config(text).format(), Err(message.into()));
        }
    }

    #[test]
    fn options_of_commands() {
        let text = "[defaults]\nutc = true\ncolor = \"never\"\nquiet = false\n[print]\nformat = \"json\"\n";
        let options = |command| config(text).options(command, &[]).unwrap();
        assert_eq!(
            options("print"),
            ["--color=never", "--clock-gmt", "--format=json"]
        );
        assert_eq!(options("info"), ["--clock-gmt"]);
        assert_eq!(options("completions"), [""; 0]);
        assert_eq!(options("machine"), [""; 0]);
    }

    #[test]
    fn options_give_way_to_what_they_contradict() {
        let file = config("[print]\nformat = \"json\"\nlimit = 2\n");
        let options = |given: &str| file.options("print", &[given.into()]).unwrap();
        assert_eq!(options("--columns=time"), ["--limit=2"]);
        assert_eq!(options("--columns"), ["--limit=2"]);
        assert_eq!(options("--event"), ["--format=json", "--limit=2"]);
    }

    #[test]
    fn what_is_not_known_is_reported() {
        for (text, message) in [
            ("format = 1", "found `format`, expected a table"),
            ("[defaults]\nutcc = true", "did you mean `utc`?"),
            ("[prnt]", "did you mean `print`?"),
            ("[print]\nfromat = 1", "did you mean `format`?"),
            ("[zzzzzz]", "[defaults] with utc"),
        ] {
            let found = config(text).options("print", &[]).unwrap_err();
            assert!(found.contains(message), "{found}");
        }
    }
}
