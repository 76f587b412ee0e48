//! The usage texts that are printed on request.

use std::fmt::Write;

use crate::COMMANDS;
use crate::options::Command;

/// The version of rrdtool whose commands these are. Programs look for it at the beginning of the usage.
const RRDTOOL: &str = "1.7.2";

/// All commands, or one with its options.
pub fn usage(command: Option<&Command>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("RRDtool {RRDTOOL} as kymo {version} does it\n\n");
    let done = match command {
        Some(command) => one(command, &mut text),
        None => all(&mut text),
    };
    // Strings take everything.
    debug_assert!(done.is_ok());
    text
}

fn all(text: &mut String) -> std::fmt::Result {
    text.push_str("Usage: rrdtool COMMAND [WORD...]\n       rrdtool - [DIRECTORY]\n\n");
    for command in COMMANDS {
        writeln!(text, "  {:<12} {}", command.name, command.about)?;
    }
    text.push_str(
        "  -            Read command lines from standard input; cd, mkdir, pwd, ls and quit \
         are commands there too\n\n`rrdtool COMMAND` alone prints the options of a command.\n",
    );
    Ok(())
}

fn one(command: &Command, text: &mut String) -> std::fmt::Result {
    writeln!(text, "{}\n", command.about)?;
    writeln!(
        text,
        "Usage: rrdtool {} [OPTION...] {}",
        command.name, command.operands
    )?;
    if !command.details.is_empty() {
        writeln!(text, "\n{}", command.details)?;
    }
    if !command.options.is_empty() {
        text.push('\n');
    }
    for option in command.options {
        let short = option
            .short
            .map_or(String::from("   "), |short| format!("-{short},"));
        let value = option.value.map(|value| format!(" {value}"));
        let name = format!("--{}{}", option.long, value.unwrap_or_default());
        writeln!(text, "  {short} {name}\n          {}", option.help)?;
    }
    Ok(())
}
