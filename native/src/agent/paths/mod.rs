//! Path policies for Python.

mod entropy;
mod leaves;
mod own;
mod policies;
mod sharing;
mod values;

pub use leaves::leaf_id;
pub use own::{Failure, OwnPolicy};
pub use values::PyLoad;

use pyo3::prelude::*;

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    values::register(module)?;
    policies::register(module)?;
    sharing::register(module)?;
    entropy::register(module)
}
