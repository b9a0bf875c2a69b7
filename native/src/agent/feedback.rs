//! For Python, what gathers until feedback is due, and repairs that wait for their flow.

use agent::receiving::{EarlyRepairs, LeastDelay, PendingFeedback, MAX_EARLY_REPAIRS, RECEIPTS_PER_FEEDBACK};
use agent::serial::NumberRange;
use agent::underlay::is_stamp;
use datapath::feedback::Feedback;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pyclass(name = "PendingFeedback")]
#[derive(Default)]
struct PyPendingFeedback(PendingFeedback);

#[pymethods]
impl PyPendingFeedback {
    #[classattr]
    const DUE: usize = RECEIPTS_PER_FEEDBACK;

    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn waiting(&self) -> usize {
        self.0.waiting()
    }

    #[getter]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn receipts(&mut self, first: u32, source_ports: Vec<u16>, delay_us: u32) -> bool {
        let stamps: Vec<u16> =
            source_ports.into_iter().map(|port| if is_stamp(port) { port } else { 0 }).collect();
        self.0.receipts(first, &stamps, delay_us)
    }

    fn lost(&mut self, numbers: Vec<(u32, u32)>) {
        self.0.lost(numbers.into_iter().map(|(first, count)| NumberRange { first, count }));
    }

    fn recovered(&mut self, packets: u32) {
        self.0.recovered(packets);
    }

    fn take<'py>(&mut self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.0.take().iter().map(Feedback::encode).map(|body| PyBytes::new(py, &body)).collect()
    }
}

#[pyclass(name = "LeastDelay")]
#[derive(Default)]
struct PyLeastDelay(LeastDelay);

#[pymethods]
impl PyLeastDelay {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn above(&mut self, delay_us: u32) -> i32 {
        self.0.above(delay_us)
    }
}

#[pyclass(name = "EarlyRepairs")]
#[derive(Default)]
struct PyEarlyRepairs(EarlyRepairs<Py<PyAny>>);

#[pymethods]
impl PyEarlyRepairs {
    #[classattr]
    const MAX: usize = MAX_EARLY_REPAIRS;

    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __contains__(&self, flow: u32) -> bool {
        self.0.wait_for(flow)
    }

    fn __bool__(&self) -> bool {
        !self.0.is_empty()
    }

    fn keep(&mut self, flow: u32, repair: Py<PyAny>) -> usize {
        self.0.keep(flow, repair)
    }

    fn take(&mut self, flow: u32) -> Vec<Py<PyAny>> {
        self.0.take(flow)
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPendingFeedback>()?;
    module.add_class::<PyLeastDelay>()?;
    module.add_class::<PyEarlyRepairs>()
}
