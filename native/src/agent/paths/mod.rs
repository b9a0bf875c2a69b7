//! Path policies for Python.

mod leaves;
mod own;
mod policies;
mod steering;
mod values;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    values::register(module)?;
    policies::register(module)?;
    steering::register(module)
}
