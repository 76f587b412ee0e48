//! `kymo query`: runs the program that answers SQL.

use std::path::PathBuf;
use std::process::Command;

use crate::args::query::Query;
use crate::terminal::{Failure, Outcome};

/// The name of the program.
const PROGRAM: &str = "kymo-query";

/// Becomes `kymo-query`, or runs it.
pub(crate) fn run(args: &Query) -> Result<Outcome, Failure> {
    let program = program();
    let mut command = Command::new(&program);
    command.args(&args.words);
    let error = match replace(command) {
        Ok(code) => return Ok(outcome(code)),
        Err(error) => error,
    };
    Err(Failure::Usage(match error.kind() {
        std::io::ErrorKind::NotFound => format!("error: {}", missing()),
        _ => format!(
            "error: cannot run `{}`: {}",
            program.display(),
            kymo_io::reason(&error)
        ),
    }))
}

/// Where the program is: beside this one, or else in PATH.
pub(crate) fn program() -> PathBuf {
    beside().unwrap_or_else(|| PathBuf::from(PROGRAM))
}

/// Why nothing is answered without it, and what to do.
pub(crate) fn missing() -> String {
    format!(
        "`{PROGRAM}` is not installed: it is neither beside `kymo` nor in PATH\n\
         hint: `cargo install --path query` in the source of kymo installs it"
    )
}

/// The program in the directory of this one.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let path = own.parent()?.join(name);
    path.is_file().then_some(path)
}

/// Becomes a program; returns only if that fails.
#[cfg(unix)]
fn replace(mut command: Command) -> std::io::Result<i32> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Runs a program, and returns its exit status.
#[cfg(not(unix))]
fn replace(mut command: Command) -> std::io::Result<i32> {
    command.status().map(|status| status.code().unwrap_or(1))
}

fn outcome(code: i32) -> Outcome {
    match code {
        0 => Outcome::Good,
        2 => Outcome::Usage,
        3 => Outcome::Unreadable,
        _ => Outcome::Damage,
    }
}
