//! kymo's analyses beside a program that computes them from their definitions.

use std::path::Path;

use super::Counts;
use crate::Outcome;
use crate::process::{command, hear, root};

/// Rounds of made-up traces.
const ROUNDS: u64 = 10;

/// Compares numbers of made-up traces of nested, unpaired and lossy events.
pub(super) fn run(kymo: &Path, python: Option<&Path>, seed: u64) -> Outcome<Counts> {
    let python = python.unwrap_or_else(|| Path::new("python3"));
    let script = root().join("xtask/src/interop/check_analyses.py");
    let (rounds, seed) = (ROUNDS.to_string(), seed.to_string());
    let said = hear(command(python).arg(script).arg(kymo).args([&rounds, &seed]))?;
    let mut counts = Counts::default();
    if said.code == Some(0) {
        counts.passed = String::from_utf8_lossy(&said.out).trim().parse()?;
    } else {
        eprintln!("{}", said.err);
        counts.failed = 1;
    }
    Ok(counts)
}
