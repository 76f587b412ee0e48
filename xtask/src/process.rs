//! Running other programs: kymo itself, and its peers.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Builds the program `kymo` and tells where it is.
pub(crate) fn build_kymo(release: bool) -> Outcome<PathBuf> {
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build
        .current_dir(root())
        .args(["build", "--quiet", "--package", "kymo-cli"]);
    if release {
        build.arg("--release");
    }
    if !build.status()?.success() {
        return Err("kymo does not build".into());
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let program = target
        .join(if release { "release" } else { "debug" })
        .join("kymo");
    if program.is_file() {
        Ok(program)
    } else {
        Err(format!("no program at {}", program.display()).into())
    }
}

/// Fails, naming the Debian package to install, when a program is not there.
pub(crate) fn require(program: &str, package: &str) -> Outcome {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    if found {
        Ok(())
    } else {
        Err(format!("needs `{program}` (Debian package {package})").into())
    }
}

/// What a program said.
pub(crate) struct Said {
    /// Its exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it wrote to standard output.
    pub(crate) out: Vec<u8>,
    /// What it wrote to standard error, made UTF-8.
    pub(crate) err: String,
}

/// A command whose output does not depend on the machine's settings: UTC, no colours.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .env("BABELTRACE_TERM_COLOR", "never")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn hear(command: &mut Command) -> Outcome<Said> {
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    Ok(Said {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
