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

/// Before anything else a script asks the program for names (`crate::complete`).
fn with_names(shell: Shell, script: &str, command: &clap::Command) -> String {
    match shell {
        Shell::Bash => {
            let ask = "_kymo_names() {\n    \
                local names\n    \
                names=$(\"$1\" complete --bash \"${COMP_LINE:0:COMP_POINT}\" \"${COMP_LINE:COMP_POINT}\" 2>/dev/null)\n    \
                if [[ -n $names && $names != $'\\n'* ]]; then\n        \
                mapfile -t COMPREPLY <<<\"$names\"\n        \
                # Behind the name of an event comes a field.\n        \
                [[ $names == *: ]] && compopt -o nospace\n        \
                return 0\n    \
                fi\n    \
                _kymo \"$@\"\n    \
                [[ $2 == -* ]] && return 0\n    \
                # Where no option begins, options and names of arguments would keep bash from completing files.\n    \
                local word words=()\n    \
                for word in \"${COMPREPLY[@]}\"; do\n        \
                [[ $word == [-[\\<]* && ! -e $word ]] || words+=(\"$word\")\n    \
                done\n    \
                if [[ -n $names ]]; then\n        \
                mapfile -t words <<<\"${names:1}\"\n        \
                while IFS= read -r word; do words+=(\"$word\"); done < <(compgen -f -- \"$2\")\n        \
                compopt -o filenames\n    \
                fi\n    \
                COMPREPLY=(\"${words[@]}\")\n\
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
                names=(\"${(@f)$(${(Q)words[1]} complete --cursor $CURRENT -- \"${(@Q)words[1,CURRENT-1]}\" \"${(Q)PREFIX}\" \"${(@Q)words[CURRENT+1,-1]}\" 2>/dev/null)}\")\n    \
                if [[ -n $names[1] ]]; then\n        \
                compadd -- $names\n        \
                return\n    \
                fi\n    \
                (( $#names > 1 )) && compadd -- $names[2,-1]\n";
            script.replacen("_kymo() {\n", ask, 1)
        }
        Shell::Fish => {
            let mut script = script.to_owned();
            script.push_str(
                "\nfunction __fish_kymo_names\n    \
                 set -l before (commandline -opc)\n    \
                 set -l word (commandline -t)\n    \
                 set -l behind (commandline -op)\n    \
                 set -e behind[1..(count $before)] 2>/dev/null\n    \
                 test -n \"$word\"; and set -e behind[1]\n    \
                 $before[1] complete --cursor (math (count $before) + 1) -- $before (commandline -ct) $behind 2>/dev/null | string match -v ''\n\
                 end\n",
            );
            for ((group, option), commands) in options_with_names(command) {
                let group = match group.as_str() {
                    "kymo" => String::new(),
                    group => format!("__fish_seen_subcommand_from {group}; and "),
                };
                script.push_str(&format!(
                    "complete -c kymo -n '{group}__fish_seen_subcommand_from {}' -l {option} -x -a '(__fish_kymo_names)'\n",
                    commands.join(" ")
                ));
            }
            script.push_str(&format!(
                "complete -c kymo -n '__fish_seen_subcommand_from {}' -a '(__fish_kymo_names)'\n",
                crate::views::COMMANDS.join(" ")
            ));
            script
        }
        _ => script.to_owned(),
    }
}

/// The options that take such names, each with the command above those that have it, and these.
fn options_with_names(above: &clap::Command) -> BTreeMap<(String, String), Vec<String>> {
    let mut options: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for command in above.get_subcommands() {
        let all = command.get_arguments();
        for option in all.filter(|option| Names::of(option).is_some()) {
            let long = option.get_long().unwrap_or_default().to_owned();
            let key = (above.get_name().to_owned(), long);
            let commands = options.entry(key).or_default();
            commands.push(command.get_name().to_owned());
        }
        options.extend(options_with_names(command));
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
