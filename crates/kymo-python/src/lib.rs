//! The extension module of the Python package `kymo`.
//!
//! `recordings` is what `kymo.open` returns; `tables` gives rows as Arrow's streams and NumPy's buffers; `messages`
//! iterates over events, which a run writes as `frames`; `events` are the objects, and `values` makes those of their
//! fields; `analyses` answers with JSON, which the Python side reads; `rrd` runs rrdtool's commands. What needs no
//! speed is in Python, in `python/kymo`.

mod analyses;
mod errors;
mod events;
mod forks;
mod frames;
mod messages;
mod recordings;
mod rrd;
mod selection;
mod tables;
mod truncated;
mod values;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line of the program `kymo`, of which the first word is the name of the program.
///
/// The process should end with what it returns.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    let code = py.detach(|| kymo_cli::run(words));
    // The type does not reveal its number.
    (0..=u8::MAX)
        .find(|&number| std::process::ExitCode::from(number) == code)
        .unwrap_or(1)
}

/// The extension module.
#[pymodule]
fn _kymo(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(recordings::open, module)?)?;
    module.add_function(wrap_pyfunction!(rrd::rrd_run, module)?)?;
    module.add_class::<recordings::Recordings>()?;
    module.add_class::<tables::Table>()?;
    module.add_class::<messages::Messages>()?;
    module.add_class::<events::Message>()?;
    forks::watch(py)?;
    errors::add(py, module)
}
