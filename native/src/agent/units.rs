//! Units of flows for Python: a unit keeps the packets' objects.

use ::agent::coding::{Aim, ClosedUnit, Progress, Source, UnitEncoder};
use ::agent::Generator;
use ::coding::packets::MOST_PACKET_BYTES;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use super::coding::PyCodingRules;

#[pyclass(name = "UnitEncoder", subclass)]
pub struct PyUnitEncoder {
    encoder: UnitEncoder<Py<PyAny>>,
    rules: Py<PyCodingRules>,
    random: Generator,
    /// Makes Python's object of a unit.
    closed: Py<PyAny>,
}

impl PyUnitEncoder {
    fn units_of(
        &self,
        py: Python<'_>,
        units: impl IntoIterator<Item = ClosedUnit<Py<PyAny>>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let unit_of = |unit: ClosedUnit<_>| {
            let fields = (unit.position, unit.k, unit.r, unit.seed, unit.symbol_bytes, unit.payloads);
            self.closed.call1(py, fields)
        };
        units.into_iter().map(unit_of).collect()
    }

    fn taken(&mut self, py: Python<'_>, source: Source<Py<PyAny>>, now: f64) -> PyResult<Vec<Py<PyAny>>> {
        let closed = self.encoder.take(source, now, &mut self.rules.borrow_mut(py).0, &mut self.random);
        self.units_of(py, closed)
    }
}

#[pymethods]
impl PyUnitEncoder {
    #[new]
    fn new(py: Python<'_>, rules: Py<PyCodingRules>, seed: u64, closed: Py<PyAny>) -> Self {
        let encoder = UnitEncoder::new(&rules.borrow(py).0);
        PyUnitEncoder { encoder, rules, random: Generator::new(seed), closed }
    }

    /// For annotations: `UnitEncoder[ClosedUnit]`.
    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, _closed: Py<PyAny>) -> Bound<'py, PyType> {
        class.clone()
    }

    #[getter]
    fn units(&self) -> u64 {
        self.encoder.units()
    }

    #[getter(repairs)]
    fn repairs_made(&self) -> u64 {
        self.encoder.repairs()
    }

    #[getter]
    fn open_packets(&self) -> u32 {
        self.encoder.open_packets()
    }

    #[getter]
    fn room(&self) -> u32 {
        self.encoder.room()
    }

    #[pyo3(signature = (blocking_probability, k, sent_bytes=0, window=None))]
    fn set_redundancy(
        &mut self,
        py: Python<'_>,
        blocking_probability: f64,
        k: u32,
        sent_bytes: u64,
        window: Option<u32>,
    ) {
        let aim = Aim { blocking_probability, k, flow: Progress { sent_bytes, window } };
        self.encoder.set_aim(aim, &self.rules.borrow(py).0);
    }

    fn take(
        &mut self,
        position: u64,
        packet: Bound<'_, PyBytes>,
        now: f64,
        push: bool,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let (py, bytes) = (packet.py(), packet.as_bytes().len());
        if bytes == 0 || bytes > MOST_PACKET_BYTES {
            return Err(PyValueError::new_err(format!(
                "cannot code a packet of {bytes} B: it must be 1..{MOST_PACKET_BYTES} B"
            )));
        }
        let payload = packet.into_any().unbind();
        self.taken(
            py,
            Source { position: position as u32, count: 1, longest: bytes as u32, push, payload },
            now,
        )
    }

    fn deadline(&self) -> Option<f64> {
        self.encoder.deadline()
    }

    fn end(&mut self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let closed = self.encoder.end(&mut self.rules.borrow_mut(py).0, &mut self.random);
        self.units_of(py, closed)
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyUnitEncoder>()
}
