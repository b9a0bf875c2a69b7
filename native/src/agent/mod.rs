//! What a host agent decides, for Python: `native/agent`.

mod blocking;
mod coding;
mod outcomes;
mod units;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    blocking::register(module)?;
    coding::register(module)?;
    outcomes::register(module)?;
    units::register(module)
}
