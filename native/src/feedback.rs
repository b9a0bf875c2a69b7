//! Feedback for Python: what it says, what is remembered for it, and what waits to be told of.

use std::ops::RangeInclusive;

use datapath::feedback::Feedback;
use datapath::sent::{Outstanding, SentLog, RING};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What a peer says of our datagrams: columns are made where Python asks for them.
#[pyclass(name = "Feedback", frozen)]
pub struct PyFeedback(pub Feedback);

#[pymethods]
impl PyFeedback {
    #[new]
    fn new(body: &[u8]) -> PyResult<Self> {
        Feedback::decode(body).map(PyFeedback).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn numbers(&self) -> Vec<u32> {
        self.0.receipts.iter().map(|one| one.number).collect()
    }

    #[getter]
    fn stamps(&self) -> Vec<u16> {
        self.0.receipts.iter().map(|one| one.stamp).collect()
    }

    #[getter]
    fn delays_us(&self) -> Vec<u32> {
        self.0.receipts.iter().map(|one| one.delay_us).collect()
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

#[pyclass(name = "SentLog")]
#[derive(Default)]
pub struct PySentLog(pub SentLog);

#[pymethods]
impl PySentLog {
    #[classattr]
    const RING: usize = RING;

    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn sent(&mut self, number: u32, entropy: u16) {
        self.0.sent(number, &[entropy]);
    }

    fn sent_many(&mut self, number: u32, entropies: Vec<u16>) {
        self.0.sent(number, &entropies);
    }

    fn entropy_of(&self, number: u32) -> Option<u16> {
        self.0.entropy_of(number)
    }

    fn arrived(&mut self, number: u32, stamp: u16) -> bool {
        self.0.arrived(number, stamp)
    }

    fn told(&mut self, feedback: &PyFeedback) -> Vec<(u16, u32)> {
        let receipts = feedback.0.receipts.iter();
        receipts
            .filter(|one| self.0.arrived(one.number, one.stamp) && one.stamp != 0)
            .map(|one| (one.stamp, one.delay_us))
            .collect()
    }

    fn stamp_of(&self, entropy: u16) -> Option<u16> {
        self.0.stamp_of(entropy)
    }
}

#[pyclass(name = "Outstanding")]
#[derive(Default)]
struct PyOutstanding(Outstanding);

#[pymethods]
impl PyOutstanding {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn sent(&mut self, number: u32, now: f64) {
        self.0.sent(number, 1, now);
    }

    fn sent_many(&mut self, number: u32, count: u32, now: f64) -> PyResult<()> {
        if count as usize > RING {
            return Err(PyValueError::new_err(format!("{count} datagrams at once, {RING} are remembered")));
        }
        self.0.sent(number, count, now);
        Ok(())
    }

    fn arrived_many(&mut self, numbers: Vec<u32>) -> (usize, Option<f64>) {
        self.0.arrived(numbers)
    }

    fn told(&mut self, feedback: &PyFeedback) -> (usize, Option<f64>) {
        self.0.arrived(feedback.0.receipts.iter().map(|one| one.number))
    }

    fn overdue(&mut self, sent_before: f64) -> usize {
        self.0.overdue(sent_before)
    }
}

/// The path of a datagram by the source port that it came from; 0: none is told.
fn stamp_of(stamps: &RangeInclusive<u16>, port: u16) -> u16 {
    if stamps.contains(&port) {
        port
    } else {
        0
    }
}

#[pyfunction]
fn stamps_of(source_ports: Vec<u16>, first_stamp: u16, last_stamp: u16) -> Vec<(u16, usize)> {
    let stamps = first_stamp..=last_stamp;
    let mut counts: Vec<(u16, usize)> = Vec::new();
    for stamp in source_ports.into_iter().map(|port| stamp_of(&stamps, port)) {
        match counts.iter_mut().find(|(known, _)| *known == stamp) {
            Some((_, count)) => *count += 1,
            None => counts.push((stamp, 1)),
        }
    }
    counts
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFeedback>()?;
    module.add_class::<PySentLog>()?;
    module.add_class::<PyOutstanding>()?;
    module.add_function(wrap_pyfunction!(stamps_of, module)?)
}
