//! Tests of the page of `kymo view` in Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::args::Args;
use crate::process::{build_kymo, command, require, root};

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
    let test = |file: &String| node("node", &["--test", file], &kymo);
    files.retain(|file| test(file).is_err());
    // A browser that crashes takes the tests that share it along, and a machine that is busy for a minute those of that
    // minute: a file that still fails when the others have ended is at fault.
    for file in &files {
        eprintln!("{file} failed, and is run again");
        test(file).or_else(|_| test(file))?;
    }
    Ok(())
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
