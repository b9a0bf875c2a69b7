//! The receiving side for Python: which datagrams are new, and in which order packets go out.

use agent::receiving::{Arrival, Arrivals, Release, WINDOW};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pyclass(name = "Arrivals")]
#[derive(Default)]
struct PyArrivals(Arrivals);

#[pymethods]
impl PyArrivals {
    #[classattr]
    const WINDOW: u32 = WINDOW;

    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn newest(&self) -> Option<u32> {
        self.0.newest()
    }

    #[getter]
    fn received(&self) -> u64 {
        self.0.received
    }

    #[getter]
    fn replayed(&self) -> u64 {
        self.0.replayed
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    #[getter]
    fn late(&self) -> u64 {
        self.0.late
    }

    fn accept(&mut self, number: u32, now: f64) -> bool {
        self.0.accept(number, now)
    }

    fn give_up(&mut self, noticed_before: f64) -> Vec<(u32, u32)> {
        self.0.give_up(noticed_before).into_iter().map(|numbers| (numbers.first, numbers.count)).collect()
    }

    fn oldest_missing(&mut self) -> Option<f64> {
        self.0.oldest_missing()
    }
}

type Packet = Py<PyBytes>;

#[pyclass(name = "Release")]
struct PyRelease(Release<Packet>);

#[pymethods]
impl PyRelease {
    #[new]
    fn new(first: u32) -> Self {
        PyRelease(Release::new(first))
    }

    #[getter]
    fn next(&self) -> u32 {
        self.0.next()
    }

    #[getter]
    fn deadline(&self) -> Option<f64> {
        self.0.deadline()
    }

    #[getter]
    fn held_total(&self) -> u64 {
        self.0.held_total
    }

    #[getter]
    fn timeouts(&self) -> u64 {
        self.0.timeouts
    }

    #[getter]
    fn duplicates(&self) -> u64 {
        self.0.duplicates
    }

    #[getter]
    fn abandoned(&self) -> u64 {
        self.0.abandoned
    }

    #[pyo3(signature = (position, packet, timeout_s, now, number=0))]
    fn arrive(
        &mut self,
        position: u32,
        packet: Packet,
        timeout_s: f64,
        now: f64,
        number: u32,
    ) -> Vec<Packet> {
        let mut out = Vec::new();
        self.0.arrive(Arrival { position, number, packet }, timeout_s, now, &mut out);
        out
    }

    fn expire(&mut self, now: f64) -> Vec<Packet> {
        let mut out = Vec::new();
        self.0.expire(now, &mut out);
        out
    }

    fn drain(&mut self) -> Vec<Packet> {
        let mut out = Vec::new();
        self.0.drain(&mut out);
        out
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyArrivals>()?;
    module.add_class::<PyRelease>()
}
