//! What a host agent decides, for Python: `native/agent`.

mod admission;
mod coding;
pub mod core;
mod decoder;
pub mod paths;
mod units;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    admission::register(module)?;
    coding::register(module)?;
    decoder::register(module)?;
    core::register(module)?;
    paths::register(module)?;
    units::register(module)
}
