//! Answers to queries beside those of Prometheus, which has the same samples.

use std::path::Path;

use super::Counts;
use crate::Outcome;
use crate::process::{command, hear, root};

/// Random expressions, each at one time and over a range of times.
const EXPRESSIONS: usize = 300;

/// Runs `prometheus` and `promtool` of the search path, as Debian installs them.
pub(super) fn run(kymo: &Path, python: Option<&Path>, seed: u64) -> Outcome<Counts> {
    let python = python.unwrap_or_else(|| Path::new("python3"));
    let script = root().join("xtask/src/interop/check_promql.py");
    let (count, seed) = (EXPRESSIONS.to_string(), seed.to_string());
    let said = hear(command(python).arg(script).arg(kymo).args([
        "prometheus",
        "promtool",
        "--count",
        &count,
        "--seed",
        &seed,
    ]))?;
    let mut counts = Counts::default();
    print!("{}", String::from_utf8_lossy(&said.out));
    counts.holds(
        "answers to queries are those of Prometheus",
        said.code == Some(0),
    );
    Ok(counts)
}
