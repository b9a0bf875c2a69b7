//! What a host agent decides, for Python: `native/agent`.

mod coding;
pub mod core;
pub mod paths;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    coding::register(module)?;
    core::register(module)?;
    paths::register(module)
}
