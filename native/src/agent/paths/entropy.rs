//! What path policies have in common, for Python.

use agent::paths::flow_entropy;
use pyo3::prelude::*;

use super::values::flow_of;

#[pyfunction]
#[pyo3(name = "flow_entropy", signature = (flow, turn=0))]
fn py_flow_entropy(flow: &Bound<'_, PyAny>, turn: u64) -> PyResult<u16> {
    Ok(flow_entropy(flow_of(flow)?, turn))
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(py_flow_entropy, module)?)
}
