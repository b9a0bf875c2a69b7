//! What a host agent decides, for Python: `native/agent`.

mod blocking;
mod coding;
mod outcomes;
mod paths;
mod priority;
mod units;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    blocking::register(module)?;
    coding::register(module)?;
    outcomes::register(module)?;
    paths::register(module)?;
    priority::register(module)?;
    units::register(module)
}
