//! Answers to queries beside those of Prometheus, which has the same samples.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Counts;
use crate::Outcome;
use crate::process::{command, hear, root};

/// Random expressions, each at one time and over a range of times.
const EXPRESSIONS: usize = 300;
/// As many of either seed in the usual run.
const SAMPLE: usize = 100;

/// Runs `prometheus` and `promtool` of the search path, as Debian installs them: expressions of a seed, the fixed ones,
/// and requests.
pub(super) fn run(kymo: &Path, python: Option<&Path>, seed: u64) -> Outcome<Counts> {
    let mut counts = Counts::default();
    compare(kymo, python, (EXPRESSIONS, seed), true, &mut counts)?;
    Ok(counts)
}

/// The same with fewer expressions of this seed, and of one that is another each time. Where Prometheus is not
/// installed, this is said.
pub(super) fn sample(kymo: &Path, python: Option<&Path>, seed: u64) -> Outcome<Counts> {
    let mut counts = Counts::default();
    if !hear(command("prometheus").arg("--version")).is_ok_and(|said| said.code == Some(0)) {
        println!("note: queries are not compared, since `prometheus` is not installed");
        return Ok(counts);
    }
    compare(kymo, python, (SAMPLE, seed), true, &mut counts)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    compare(kymo, python, (SAMPLE, now), false, &mut counts)?;
    Ok(counts)
}

fn compare(
    kymo: &Path,
    python: Option<&Path>,
    (count, seed): (usize, u64),
    fixed: bool,
    counts: &mut Counts,
) -> Outcome {
    let python = python.unwrap_or_else(|| Path::new("python3"));
    let script = root().join("xtask/src/interop/check_promql.py");
    let mut check = command(python);
    // No files of Python's beside the sources.
    check.env("PYTHONDONTWRITEBYTECODE", "1").arg(script);
    check.arg(kymo).args(["prometheus", "promtool"]);
    check.args(["--count", &count.to_string(), "--seed", &seed.to_string()]);
    if fixed {
        check.arg("--fixed");
    }
    let said = hear(&mut check)?;
    print!("{}", String::from_utf8_lossy(&said.out));
    counts.holds(
        &format!("answers to queries are those of Prometheus (seed {seed})"),
        said.code == Some(0),
    );
    Ok(())
}
