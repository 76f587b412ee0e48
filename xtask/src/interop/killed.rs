//! `kymo serve` is killed again and again while all protocols bring samples.

use std::path::Path;

use super::Counts;
use crate::Outcome;
use crate::process::{command, hear, root};

/// Kills the daemon so often, and looks whether what it has acknowledged is there.
pub(super) fn run(kymo: &Path, python: Option<&Path>, kills: u64, seed: u64) -> Outcome<Counts> {
    let python = python.unwrap_or_else(|| Path::new("python3"));
    let script = root().join("xtask/src/interop/check_kills.py");
    let folder = tempfile::tempdir()?;
    let said = hear(
        command(python)
            .arg(script)
            .arg(kymo.canonicalize()?)
            .arg(folder.path())
            .args([kills.to_string(), seed.to_string()]),
    )?;
    print!("{}", String::from_utf8_lossy(&said.out));
    let mut counts = Counts::default();
    let what = "samples that were acknowledged survive that the daemon is killed";
    counts.holds(what, said.code == Some(0));
    Ok(counts)
}
