//! The options of the program.

use std::collections::{BTreeMap, BTreeSet};

use clap::Command;

use super::markdown;

/// The options of the program, and those of others that documents name.
pub(super) struct Options {
    /// By command, such as `kymo rrd convert`, its long options.
    by_command: BTreeMap<String, BTreeSet<String>>,
    help: Vec<(String, String)>,
    others: BTreeSet<String>,
}

impl Options {
    /// Those of the program; `others` has an option a line, `#` begins a comment.
    pub(super) fn new(others: &str) -> Self {
        let mut options = Self {
            by_command: BTreeMap::new(),
            help: Vec::new(),
            others: others
                .lines()
                .map(str::trim)
                .filter(|line| line.starts_with("--"))
                .map(str::to_string)
                .collect(),
        };
        let mut command = kymo_cli::command();
        command.build();
        options.add("kymo", &command);
        options
    }

    fn add(&mut self, name: &str, command: &Command) {
        let longs = command.get_arguments().flat_map(|arg| {
            let all = arg.get_long_and_visible_aliases().unwrap_or_default();
            all.into_iter().map(|long| format!("--{long}"))
        });
        let longs: BTreeSet<String> = longs.collect();
        self.by_command.insert(name.to_string(), longs);
        let help = command.clone().render_long_help().to_string();
        self.help.push((name.to_string(), help));
        for command in command
            .get_subcommands()
            .filter(|it| it.get_name() != "help")
        {
            self.add(&format!("{name} {}", command.get_name()), command);
        }
    }

    /// Each command and each of its options, but for those that all commands have.
    pub(super) fn of_program(&self) -> impl Iterator<Item = (&str, String)> {
        let all = self.by_command.iter();
        all.flat_map(|(command, options)| {
            options
                .iter()
                .map(move |option| (command.as_str(), option.clone()))
        })
        // rrdtool's own options are described by their help, which is also their manual page.
        .filter(|(command, _)| match command.strip_prefix("kymo rrd ") {
            Some(name) => matches!(name, "convert" | "check" | "repair"),
            None => true,
        })
        .filter(|(_, option)| !matches!(option.as_str(), "--help" | "--version"))
    }

    /// The help of each command.
    pub(super) fn help(&self) -> impl Iterator<Item = (&str, &str)> {
        self.help
            .iter()
            .map(|(name, help)| (name.as_str(), help.as_str()))
    }

    /// Options in code that neither the program nor others have.
    pub(super) fn unknown(&self, code: &str) -> Vec<String> {
        let mut found = Vec::new();
        // Each program of a pipe has its own options.
        for part in code.split(['|', ';', '&']) {
            let command = self.command(part);
            for option in markdown::options(part) {
                let is_known = match &command {
                    Some(command) => {
                        self.by_command[command.as_str()].contains(&option)
                            // It hands its words to a program that is not part of the workspace.
                            || (command == "kymo query" && self.others.contains(&option))
                            || matches!(
                                option.as_str(),
                                "--help" | "--version" | "--from-file" | "--quiet"
                            )
                    }
                    None => {
                        let mut all = self.by_command.values();
                        self.others.contains(&option)
                            || all.any(|options| options.contains(&option))
                    }
                };
                if !is_known {
                    let program = command.as_deref().unwrap_or("kymo");
                    found.push(format!("`{option}` is not an option of `{program}`"));
                }
            }
        }
        found
    }

    /// The command that a command line calls.
    fn command(&self, code: &str) -> Option<String> {
        let words: Vec<&str> = code.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "kymo")?;
        let mut name = "kymo".to_string();
        for word in &words[at + 1..] {
            let longer = format!("{name} {word}");
            if !self.by_command.contains_key(&longer) {
                break;
            }
            name = longer;
        }
        // Without a command, any option may be meant.
        (name != "kymo").then_some(name)
    }
}
