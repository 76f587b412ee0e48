//! rrdtool's commands.

use kymo_rrdtool::{Defaults, Session, find, locking_named, makes_databases, run, target};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::RrdError;
use crate::forks::{Interrupted, interruptible};
use crate::truncated::Truncations;

/// Runs a command; returns what it prints, and warnings.
#[pyfunction]
pub(crate) fn rrd_run<'p>(
    py: Python<'p>,
    words: Vec<Vec<u8>>,
) -> PyResult<(Bound<'p, PyBytes>, String)> {
    let name = words.first().cloned().unwrap_or_default();
    let shown = String::from_utf8_lossy(&name).into_owned();
    if find(&name).is_none() {
        return Err(RrdError::new_err(format!("unknown function '{shown}'")));
    }
    let truncations = Truncations::watch();
    let done = interruptible(py, Interrupted::Finished, move || {
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let mut session = Session::new(&mut out, &mut warnings, defaults(&name)?);
        session.exact = true;
        if let Some(mode) = variable("RRD_LOCKING") {
            session.locking = locking_named(mode.as_bytes()).map_err(|error| error.to_string())?;
        }
        let done = run(&mut session, &words).unwrap_or(Ok(()));
        done.map_err(|error| error.to_string())?;
        Ok((out, warnings))
    })?;
    if let Some(report) = truncations.reports().into_iter().next() {
        return Err(RrdError::new_err(report));
    }
    match done {
        Ok((out, warnings)) => {
            let warnings = String::from_utf8_lossy(&warnings).into_owned();
            Ok((PyBytes::new(py, &out), warnings))
        }
        Err(message) => Err(RrdError::new_err::<String>(message)),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What the environment says.
fn defaults(name: &[u8]) -> Result<Defaults, String> {
    let mut defaults = Defaults {
        daemon: variable("RRDCACHED_ADDRESS"),
        strip_path: variable("RRDCACHED_STRIPPATH"),
        ..Defaults::default()
    };
    if makes_databases(name)
        && let Some(format) = variable("KYMO_RRD_FORMAT")
    {
        defaults.format =
            target(format.as_bytes()).map_err(|error| format!("KYMO_RRD_FORMAT: {error}"))?;
    }
    Ok(defaults)
}
