//! What a host agent decides, for Python: `native/agent`.

mod paths;
mod priority;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    paths::register(module)?;
    priority::register(module)
}
