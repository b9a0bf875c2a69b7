//! What a host agent decides, for Python: `native/agent`.

mod paths;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    paths::register(module)
}
