//! What a host agent decides, for Python: `native/agent`.

mod admission;
mod decoder;
mod feedback;
mod receiving;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    admission::register(module)?;
    decoder::register(module)?;
    feedback::register(module)?;
    receiving::register(module)
}
