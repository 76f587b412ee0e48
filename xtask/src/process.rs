//! Running other programs: kymo itself, and its peers.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::Outcome;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Builds the program `kymo` and returns where it is.
pub(crate) fn build_kymo(release: bool) -> Outcome<PathBuf> {
    if !release {
        return Ok(build_all()?.join("kymo"));
    }
    Ok(build(measured_profile(), &["--bin", "kymo"])?.join("kymo"))
}

/// The profile of cargo of what is measured.
static MEASURED_PROFILE: OnceLock<String> = OnceLock::new();

/// Measures what this profile builds.
pub(crate) fn measure_profile(profile: String) {
    MEASURED_PROFILE.get_or_init(|| profile);
}

/// As the README's command builds it, unless another profile is asked for.
fn measured_profile() -> &'static str {
    MEASURED_PROFILE.get().map_or("release", String::as_str)
}

/// Builds all programs and examples, with the features that the tests are built with, so that the
/// libraries need not be built once more, and returns the folder that contains them.
pub(crate) fn build_all() -> Outcome<PathBuf> {
    build("dev", &["--workspace", "--bins", "--examples"])
}

/// Builds an example of a package as it is measured, and returns where it is.
pub(crate) fn build_example(package: &str, name: &str) -> Outcome<PathBuf> {
    let folder = build(
        measured_profile(),
        &["--package", package, "--example", name],
    )?;
    Ok(folder.join("examples").join(name))
}

fn build(profile: &str, what: &[&str]) -> Outcome<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(root())
        .args(["build", "--quiet", "--profile", profile])
        .args(what)
        .status()?;
    if !built.success() {
        return Err("kymo does not build".into());
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(match profile {
        "dev" => "debug",
        other => other,
    }))
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

/// A command whose output does not depend on the machine's settings and caches: UTC, no colours.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .env("BABELTRACE_TERM_COLOR", "never")
        .env("NO_COLOR", "1")
        .env("XDG_CACHE_HOME", root().join("target/no-cache"))
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

/// What a command wrote to standard output; its failure ends the run.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let said = hear(command)?;
    match said.code {
        Some(0) => Ok(String::from_utf8(said.out)?),
        _ => Err(format!("{command:?} failed: {}", said.err.trim()).into()),
    }
}
