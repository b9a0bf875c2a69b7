//! What a host agent decides, for Python: `native/agent`.

mod core;
mod feedback;
mod receiving;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    core::register(module)?;
    feedback::register(module)?;
    receiving::register(module)
}
