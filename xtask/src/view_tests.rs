//! Tests of the page of `kymo view` in Chromium.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, command, hear, require, root};

/// Checks the types of the page's modules, and runs its tests.
pub(crate) fn run(args: Args) -> Outcome {
    args.finish()?;
    let kymo = build_kymo(false)?;
    install()?;
    node("npm", &["run", "types"], &kymo)?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(tests())? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if name.ends_with(".test.mjs") {
            files.push(name);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: there is no test", tests().display()).into());
    }
    let queue = Mutex::new(files.iter());
    let next = || locked(&queue).next();
    let failed = Mutex::new(Vec::new());
    // A browser waits for the server, and tests for the browser: two files at a time keep processors busy.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get().min(2)) {
            scope.spawn(|| {
                while let Some(file) = next() {
                    if let Err(error) = test(file, &kymo) {
                        eprintln!("{error}: it is run alone when the others have ended");
                        locked(&failed).push(file);
                    }
                }
            });
        }
    });
    // A browser that crashes takes the tests that share it along: a file that fails alone is at fault.
    locked(&failed)
        .iter()
        .try_for_each(|file| test(file, &kymo).or_else(|_| test(file, &kymo)))
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a file of tests, and prints what it printed in one piece.
fn test(file: &str, kymo: &Path) -> Outcome {
    let said = hear(
        command("node")
            .args(["--test", file])
            .env("KYMO", kymo)
            .current_dir(tests()),
    )?;
    let mut out = std::io::stdout().lock();
    out.write_all(&said.out)?;
    out.write_all(said.err.as_bytes())?;
    match said.code {
        Some(0) => Ok(()),
        _ => Err(format!("{file} failed").into()),
    }
}

/// Makes the pictures of the guide.
pub(crate) fn pictures(args: Args) -> Outcome {
    args.finish()?;
    let kymo = build_kymo(false)?;
    install()?;
    let pictures = root().join("docs/pictures");
    std::fs::create_dir_all(&pictures)?;
    let pictures = pictures.display().to_string();
    node("node", &["pictures.mjs", &pictures], &kymo)
}

/// Where the tests of the page are, and what else runs it in Chromium.
fn tests() -> PathBuf {
    root().join("crates/kymo-view/web-tests")
}

/// Installs what the tests depend on, if it is not there.
pub(crate) fn install() -> Outcome {
    require("npm", "npm")?;
    require("chromium", "chromium")?;
    run_in_tests(command("npm").args(["ci", "--no-audit", "--no-fund"]))
}

/// Runs a script or a task of the tests, with the program that they start.
pub(crate) fn node(program: &str, words: &[&str], kymo: &Path) -> Outcome {
    run_in_tests(command(program).args(words).env("KYMO", kymo))
}

fn run_in_tests(command: &mut Command) -> Outcome {
    match command.current_dir(tests()).status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}
