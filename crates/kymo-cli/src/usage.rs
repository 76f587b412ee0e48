//! What is wrong with a command line, in words that say what to do.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use kymo::explain::Explained;

use crate::args;
use crate::terminal::{Outcome, Terminal};

/// Reports what is wrong with a command line, or prints the help that was asked for.
pub(crate) fn report(error: &clap::Error, words: &[OsString], terminal: &Terminal) -> Outcome {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // If printing fails, there is no reader.
        let _ = error.print();
        return match error.use_stderr() {
            true => Outcome::Usage,
            false => Outcome::Good,
        };
    }
    let command = Called::new(words);
    let explained = explain(error, words, &command);
    #[cfg(all(unix, feature = "serve"))]
    if crate::serve::wants_json(words) {
        let text = match explained {
            Some((problem, hint)) => format!("{problem}\nhint: {hint}"),
            None => {
                let text = error.to_string();
                text.trim().trim_start_matches("error: ").to_owned()
            }
        };
        crate::serve::report_as_json(&text);
        return Outcome::Usage;
    }
    let Some((problem, hint)) = explained else {
        let _ = error.print();
        return Outcome::Usage;
    };
    terminal.error(problem);
    terminal.hint(hint);
    Outcome::Usage
}

/// The command that a command line calls.
struct Called {
    /// Its name, such as `kymo rrd convert`.
    name: String,
}

impl Called {
    fn new(words: &[OsString]) -> Self {
        let mut command = args::command();
        command.build();
        let mut name = "kymo".to_string();
        for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
            let Some(subcommand) = command.find_subcommand(word).cloned() else {
                break;
            };
            name = format!("{name} {word}");
            command = subcommand;
        }
        Self { name }
    }

    fn help(&self) -> String {
        format!("`{} --help` lists the options", self.name)
    }
}

/// The first command that has a command of its own with this name.
fn group_with(name: &str) -> Option<String> {
    let mut command = args::command();
    command.build();
    let group = command
        .get_subcommands()
        .find(|group| group.find_subcommand(name).is_some())?;
    Some(group.get_name().to_string())
}

/// The problem and what to do; `None` where clap's own words are better.
fn explain(error: &clap::Error, words: &[OsString], command: &Called) -> Option<(String, String)> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join("`, `")),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    };
    let first = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        // The best one comes last.
        Some(ContextValue::Strings(texts)) => texts.last().cloned(),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg);
    Some(match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = argument?;
            let problem = match argument.starts_with('-') {
                true => format!("unknown option `{argument}` of `{}`", command.name),
                false => format!("unexpected argument `{argument}` of `{}`", command.name),
            };
            let hint = match (
                first(ContextKind::SuggestedArg),
                text(ContextKind::SuggestedSubcommand),
            ) {
                // What latencies have as an option.
                _ if argument == "--all" && command.name == "kymo values" => {
                    "`kymo print --columns time,FIELD` prints every value".to_string()
                }
                (Some(meant), _) => format!("did you mean `{meant}`?"),
                (_, Some(subcommand)) => {
                    format!("`{subcommand}` has this option: write it behind `{subcommand}`")
                }
                _ if argument.parse::<f64>().is_ok() => {
                    format!("a value that begins with `-` is written behind `=`, such as `--begin={argument}`")
                }
                _ if command.name == "kymo print" && ["-o", "--output"].contains(&&*argument) => {
                    "`kymo print ... > FILE` writes text to a file, `kymo convert -o FILE` other formats".to_string()
                }
                _ if Path::new(&argument).exists() => {
                    format!("a file named like an option is written `./{argument}`")
                }
                _ => command.help(),
            };
            (problem, hint)
        }
        ErrorKind::InvalidSubcommand => {
            let wrong = text(ContextKind::InvalidSubcommand)?;
            let is_left_out = match (command.name.as_str(), wrong.as_str()) {
                ("kymo", "serve") => cfg!(not(feature = "serve")),
                ("kymo", "graph" | "view") => cfg!(not(feature = "draw")),
                ("kymo rrd", _) => cfg!(not(feature = "draw")),
                _ => false,
            };
            if is_left_out {
                return Some((
                    format!("this kymo was built without `{} {wrong}`", command.name),
                    "`cargo install --path crates/kymo-cli` in the sources builds all commands"
                        .to_string(),
                ));
            }
            let is_command = words.get(1).is_some_and(|word| *word == *wrong);
            // What rrdtool calls a command is one of `kymo rrd`.
            let group = group_with(&wrong).filter(|_| is_command);
            let hint = match (group, first(ContextKind::SuggestedSubcommand)) {
                _ if is_command && Path::new(&wrong).exists() => {
                    format!("to print the events of a recording, write `kymo print {wrong}`")
                }
                (Some(group), _) => format!("did you mean `kymo {group} {wrong}`?"),
                (None, Some(meant)) => format!("did you mean `{} {meant}`?", command.name),
                (None, None) => format!("`{} --help` lists the commands", command.name),
            };
            (format!("unknown command `{wrong}`"), hint)
        }
        ErrorKind::InvalidValue => {
            let (argument, value) = (argument?, text(ContextKind::InvalidValue)?);
            let values = text(ContextKind::ValidValue).filter(|values| !values.is_empty());
            let values = values.map(|values| format!("the values are `{values}`"));
            if value.is_empty() {
                return Some((
                    format!("`{argument}` needs a value"),
                    values.unwrap_or_else(|| command.help()),
                ));
            }
            let hint = match (first(ContextKind::SuggestedValue), values) {
                (Some(meant), Some(values)) => format!("did you mean `{meant}`? {values}"),
                (_, Some(values)) => values,
                _ => command.help(),
            };
            (format!("invalid value `{value}` for `{argument}`"), hint)
        }
        ErrorKind::ValueValidation => {
            let (argument, value) = (argument?, text(ContextKind::InvalidValue)?);
            let why = std::error::Error::source(error)?.to_string();
            let why = match std::error::Error::source(error)?.is::<std::num::ParseIntError>()
                || why.contains("invalid digit found")
            {
                true => "expected a whole number".to_string(),
                false => match why.strip_prefix(&format!("{value} is not in ")) {
                    Some(range) => whole_number(range),
                    None => why,
                },
            };
            let Explained { problem: why, hint } = why.as_str().into();
            let hint =
                hint.unwrap_or_else(|| format!("`{} --help` describes `{argument}`", command.name));
            let problem = match why.starts_with(&format!("`{value}` ")) {
                true => format!("invalid value for `{argument}`: {why}"),
                false => format!("invalid value `{value}` for `{argument}`: {why}"),
            };
            (problem, hint)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = argument?;
            let usage = text(ContextKind::Usage)?.replace("Usage: ", "usage: ");
            // One of several: <--output <FILE>|--in-place>.
            let choices = missing
                .strip_prefix("<--")
                .and_then(|rest| rest.strip_suffix('>'));
            let problem = match choices.filter(|choices| choices.contains('|')) {
                Some(choices) => format!("one of `--{}` is required", choices.replace('|', "`, `")),
                None if missing.contains("`, `") => format!("`{missing}` are missing"),
                None => format!("`{missing}` is missing"),
            };
            (problem, usage)
        }
        ErrorKind::MissingSubcommand => (
            format!("`{}` needs a command", command.name),
            format!("`{} --help` lists the commands", command.name),
        ),
        ErrorKind::ArgumentConflict => {
            let argument = argument?;
            match text(ContextKind::PriorArg) {
                Some(prior) if prior == argument => {
                    (format!("`{argument}` is specified twice"), command.help())
                }
                Some(prior) => (
                    format!("`{argument}` cannot be used with `{prior}`"),
                    "leave out one of them".to_string(),
                ),
                None => return None,
            }
        }
        _ => return None,
    })
}

/// What is expected of a number: the range as clap names it, `1..=64` or `1..` and the greatest number of all.
fn whole_number(range: &str) -> String {
    match range.split_once("..") {
        Some((least, most)) => match most.strip_prefix('=') {
            Some(most) => format!("expected a whole number from {least} to {most}"),
            None => format!("expected a whole number from {least}"),
        },
        None => "expected a whole number".to_owned(),
    }
}
