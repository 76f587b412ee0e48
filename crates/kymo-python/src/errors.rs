//! Exceptions, and what they say.

use kymo::filter::FilterError;
use kymo::timeline::QueryError as RowsError;
use kymo_model::FaultReport;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(kymo, Error, PyException, "What kymo could not do, and why.");
create_exception!(kymo, OpenError, Error, "A path that cannot be opened.");
create_exception!(
    kymo,
    QueryError,
    Error,
    "A condition, a name or a time that is wrong: the message shows the place."
);
create_exception!(
    kymo,
    RrdError,
    Error,
    "What a command of rrdtool could not do."
);
create_exception!(
    kymo,
    DamageWarning,
    PyUserWarning,
    "Damage in a recording, which was skipped."
);

/// Adds the exceptions to the module.
pub(crate) fn add(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", py.get_type::<Error>())?;
    module.add("OpenError", py.get_type::<OpenError>())?;
    module.add("QueryError", py.get_type::<QueryError>())?;
    module.add("RrdError", py.get_type::<RrdError>())?;
    module.add("DamageWarning", py.get_type::<DamageWarning>())
}

/// Warns of damage.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = std::ffi::CString::new(text.replace('\0', " "))?;
    PyErr::warn(py, &py.get_type::<DamageWarning>(), &text, 1)
}

/// A condition or a name that is wrong, with a picture of the place.
pub(crate) fn filter(error: &FilterError, name: &str) -> PyErr {
    QueryError::new_err(error.render(name, false))
}

/// Why a timeline has no answer.
pub(crate) fn rows(error: &RowsError) -> PyErr {
    match error {
        RowsError::Filter(error) => filter(error, "where"),
        error => Error::new_err(error.to_string()),
    }
}

/// Where damage is, and what is wrong.
pub(crate) fn fault(py: Python<'_>, fault: &FaultReport) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("path", fault.file.as_os_str())?;
    dict.set_item("offset", fault.offset)?;
    dict.set_item("packet", fault.packet)?;
    dict.set_item("event", fault.event)?;
    dict.set_item("field", fault.field.as_deref())?;
    dict.set_item("message", &fault.message)?;
    dict.set_item("text", fault.to_string())?;
    Ok(dict.unbind())
}
