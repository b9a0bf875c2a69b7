//! What feedback says, for Python.

use datapath::feedback::Feedback;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What a peer says of our datagrams: columns are made where Python asks for them.
#[pyclass(name = "Feedback", frozen)]
struct PyFeedback(Feedback);

#[pymethods]
impl PyFeedback {
    #[new]
    fn new(body: &[u8]) -> PyResult<Self> {
        Feedback::decode(body).map(PyFeedback).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn numbers(&self) -> Vec<u32> {
        self.0.receipts.iter().map(|receipt| receipt.number).collect()
    }

    #[getter]
    fn stamps(&self) -> Vec<u16> {
        self.0.receipts.iter().map(|receipt| receipt.stamp).collect()
    }

    #[getter]
    fn delays_us(&self) -> Vec<u32> {
        self.0.receipts.iter().map(|receipt| receipt.delay_us).collect()
    }

    #[getter]
    fn lost(&self) -> Vec<(u32, u32)> {
        self.0.lost.clone()
    }

    #[getter]
    fn recovered(&self) -> u16 {
        self.0.recovered
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFeedback>()
}
