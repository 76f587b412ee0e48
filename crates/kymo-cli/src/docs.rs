//! `kymo completions`, `kymo man`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use clap_complete::Shell;
use kymo_io::{Replace, replace};

use crate::args;
use crate::complete::Names;
use crate::terminal::{Failure, Outcome, Terminal};

/// Writes the completions of a shell.
pub(crate) fn completions(
    args: &args::Completions,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut command = args::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "kymo", &mut script);
    let script = String::from_utf8_lossy(&script);
    terminal.write(with_names(args.shell, &script, &command).as_bytes())?;
    Ok(Outcome::Good)
}

/// Before anything else a script asks the program for the names that the recordings on the line have.
fn with_names(shell: Shell, script: &str, command: &clap::Command) -> String {
    match shell {
        Shell::Bash => {
            let ask = "_kymo_names() {\n    \
                local names\n    \
                names=$(\"$1\" complete --bash \"${COMP_LINE:0:COMP_POINT}\" 2>/dev/null)\n    \
                if [[ -n $names ]]; then\n        \
                mapfile -t COMPREPLY <<<\"$names\"\n        \
                # Behind the name of an event comes a field.\n        \
                [[ $names == *: ]] && compopt -o nospace\n        \
                return 0\n    \
                fi\n    \
                _kymo \"$@\"\n\
                }\n\n";
            let at = script.rfind("\nif [[").map_or(script.len(), |at| at + 1);
            let (functions, end) = script.split_at(at);
            format!(
                "{functions}{ask}{}",
                end.replace(" -F _kymo ", " -F _kymo_names ")
            )
        }
        Shell::Zsh => {
            let ask = "_kymo() {\n    \
                local -a names\n    \
                names=(\"${(@f)$(${(Q)words[1]} complete -- \"${(@Q)words[1,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)}\")\n    \
                if [[ -n $names[1] ]]; then\n        \
                compadd -- $names\n        \
                return\n    \
                fi\n";
            script.replacen("_kymo() {\n", ask, 1)
        }
        Shell::Fish => {
            let mut script = script.to_owned();
            script.push_str(
                "\nfunction __fish_kymo_names\n    \
                 set -l words (commandline -opc) (commandline -ct)\n    \
                 $words[1] complete -- $words 2>/dev/null\n\
                 end\n",
            );
            for (option, commands) in options_with_names(command) {
                script.push_str(&format!(
                    "complete -c kymo -n '__fish_seen_subcommand_from {}' -l {option} -x -a '(__fish_kymo_names)'\n",
                    commands.join(" ")
                ));
            }
            script
        }
        _ => script.to_owned(),
    }
}

/// The options that take names of a recording, with the commands that have them.
fn options_with_names(command: &clap::Command) -> BTreeMap<String, Vec<String>> {
    let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for command in command.get_subcommands() {
        for option in command
            .get_arguments()
            .filter(|option| Names::of(option).is_some())
        {
            let long = option.get_long().unwrap_or_default().to_owned();
            options
                .entry(long)
                .or_default()
                .push(command.get_name().to_owned());
        }
    }
    options
}

/// Writes the manual pages.
pub(crate) fn man(args: &args::Man, terminal: &Terminal) -> Result<Outcome, Failure> {
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        terminal.write(page(command)?.1.as_bytes())?;
        return Ok(Outcome::Good);
    };
    std::fs::create_dir_all(dir).map_err(|error| Failure::at(dir.display(), &error))?;
    write_pages(command, dir)?;
    Ok(Outcome::Good)
}

/// Writes the pages of a command and of those below it.
fn write_pages(command: clap::Command, dir: &Path) -> Result<(), Failure> {
    for below in command.get_subcommands() {
        write_pages(below.clone(), dir)?;
    }
    let (name, text) = page(command)?;
    let path = dir.join(name);
    let how = Replace {
        sync: false,
        ..Replace::NEW
    };
    replace(&path, how, |file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::at(path.display(), &error))
}

/// The name and the text of a manual page. The sections that stand behind the options in the
/// help are sections here too.
fn page(command: clap::Command) -> io::Result<(String, String)> {
    let man = clap_mangen::Man::new(command)
        .source(concat!("kymo ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = String::from_utf8_lossy(&text)
        .replace(".SH EXTRA\n", "")
        .replace("\nEnvironment:\n", "\n.SH ENVIRONMENT\n.nf\n")
        .replace("\nExit status:\n", "\n.SH \"EXIT STATUS\"\n.nf\n")
        .replace("\nExamples:\n", "\n.SH EXAMPLES\n.nf\n")
        .replace(".SH VERSION\n", ".fi\n.SH VERSION\n");
    Ok((man.get_filename(), text))
}
