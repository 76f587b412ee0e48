//! Words of the command line that other commands need to show the same.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use kymo_view::CommandWords;

use crate::args::view::View;
use crate::args::{Input, Selection, SymbolArgs};

/// What the command says of what is shown, as it was written.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Options that say how recordings are opened.
    pub(super) input: Vec<OsString>,
    /// Options that choose events.
    selection: Vec<OsString>,
    /// Options that name addresses.
    symbols: Vec<OsString>,
    pub(super) paths: Vec<OsString>,
}

impl Words {
    /// Those of this program.
    pub(super) fn new() -> Self {
        Self::of(crate::files::expand(std::env::args_os().collect()).unwrap_or_default())
    }

    fn of(words: impl IntoIterator<Item = OsString>) -> Self {
        // As the program itself reads them.
        let own = View::augment_args(Command::new("view"));
        let program = Command::new("kymo").subcommand(own);
        let matches = program.try_get_matches_from(words).ok();
        let matches = matches
            .as_ref()
            .and_then(|matches| matches.subcommand_matches("view"));
        let Some(matches) = matches else {
            return Self::default();
        };
        let (input, paths) = given::<Input>(matches);
        Self {
            input,
            paths,
            selection: given::<Selection>(matches).0,
            symbols: given::<SymbolArgs>(matches).0,
        }
    }

    /// For the commands that the page copies.
    pub(super) fn for_page(self) -> CommandWords {
        let text = |words: Vec<OsString>| {
            let words = words.iter();
            words
                .map(|word| word.to_string_lossy().into_owned())
                .collect()
        };
        CommandWords {
            input: text(self.input),
            selection: text(self.selection),
            symbols: text(self.symbols),
            paths: text(self.paths),
        }
    }
}

/// The options of a group that were given, and what was given without an option.
fn given<A: Args>(matches: &ArgMatches) -> (Vec<OsString>, Vec<OsString>) {
    let group = A::augment_args(Command::new("group"));
    let (mut options, mut others) = (Vec::new(), Vec::new());
    for argument in group.get_arguments() {
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        let Some(name) = argument.get_long() else {
            others.extend(values.map(OsString::from));
            continue;
        };
        if !argument.get_action().takes_values() {
            options.push(format!("--{name}").into());
            continue;
        }
        for value in values {
            let mut word = OsString::from(format!("--{name}="));
            word.push(value);
            options.push(word);
        }
    }
    (options, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_open_name_and_choose() {
        let words = "kymo view --no-open --clock-gmt --offset a/=-1ms --event sched* --debug-root /mnt --port 80 \
                     --offset b=2s a/ -- b -c";
        let found = Words::of(words.split_whitespace().map(OsString::from));
        let found = found.for_page();
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(
            found.input,
            words("--offset=a/=-1ms --offset=b=2s --clock-gmt")
        );
        assert_eq!(found.selection, words("--event=sched*"));
        assert_eq!(found.symbols, words("--debug-root=/mnt"));
        assert_eq!(found.paths, words("a/ b -c"));
    }
}
