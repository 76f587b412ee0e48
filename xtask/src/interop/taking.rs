//! Programs of others send metrics to `kymo serve`.

use std::path::Path;

use super::Counts;
use crate::Outcome;
use crate::process::{command, hear, root};

/// What clients there are on PyPI.
const CLIENTS: [&str; 6] = [
    "graphyte",
    "statsd",
    "influxdb-client",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "prometheus-client",
];

/// Installs clients in an environment of Python's own below `target`, and runs them, and `prometheus` of the search
/// path. What cannot be installed is left out with a note.
pub(super) fn run(kymo: &Path, python: Option<&Path>) -> Outcome<Counts> {
    let python = python.unwrap_or_else(|| Path::new("python3"));
    let environment = root().join("target/taking");
    let own = environment.join("bin/python3");
    if !own.exists() {
        hear(command(python).args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    let installed = hear(command(&own).args(pip).args(CLIENTS));
    if !installed.is_ok_and(|said| said.code == Some(0)) {
        println!(
            "note: clients cannot be installed from PyPI: those that are not there are left out"
        );
    }
    let script = root().join("xtask/src/interop/check_taking.py");
    let mut check = command(&own);
    check.arg(script).arg(kymo);
    if hear(command("prometheus").arg("--version")).is_ok_and(|said| said.code == Some(0)) {
        check.arg("prometheus");
    }
    let said = hear(&mut check)?;
    print!("{}", String::from_utf8_lossy(&said.out));
    let mut counts = Counts::default();
    counts.holds("metrics of other programs arrive", said.code == Some(0));
    Ok(counts)
}
