//! What tests of the program share: its runs.
#![allow(dead_code, reason = "no test needs all of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A recording of the repository.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

/// The program, in UTC and without summaries of the examples that the user may have.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kymo"));
    command.args(args).env("TZ", "UTC");
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

pub(crate) fn kymo(args: &[&str]) -> Output {
    command(args).output().expect("kymo runs")
}

/// Exit code, standard output and standard error of the program, run in a directory.
pub(crate) fn kymo_in(directory: &Path, args: &[&str]) -> (i32, String, String) {
    let output = command(args).current_dir(directory).output();
    let output = output.expect("kymo runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().expect("not killed"),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Standard error of a run that must end well.
pub(crate) fn good(args: &[&str]) -> String {
    let output = kymo(args);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {reported}");
    reported
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}
