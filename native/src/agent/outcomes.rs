//! Outcomes of units for Python: a verdict goes to the margin that the unit was made with.

use ::agent::coding::{Margin, Outcomes, UnitId, Verdict, MOST_LOGITS};
use pyo3::prelude::*;

#[pyclass(name = "Margin")]
pub struct PyMargin {
    margin: Margin,
    #[pyo3(get)]
    target: f64,
}

#[pymethods]
impl PyMargin {
    /// Bound of `logits`.
    #[classattr]
    const MOST: f64 = MOST_LOGITS;

    #[new]
    fn new(target: f64) -> Self {
        PyMargin { margin: Margin::new(target), target }
    }

    #[getter]
    fn logits(&self) -> f64 {
        self.margin.logits()
    }

    #[getter]
    fn successes(&self) -> u64 {
        self.margin.successes()
    }

    #[getter]
    fn failures(&self) -> u64 {
        self.margin.failures()
    }

    fn corrected(&self, blocking_probability: f64) -> f64 {
        self.margin.corrected(blocking_probability)
    }

    #[pyo3(signature = (success, most=false))]
    fn learn(&mut self, success: bool, most: bool) {
        self.margin.learn(success, most);
    }
}

/// One unit: which, once a peer's outcomes know it.
#[pyclass(name = "SentUnit")]
pub struct PySentUnit {
    margin: Py<PyMargin>,
    id: Option<UnitId>,
    #[pyo3(get)]
    symbols: u32,
}

#[pymethods]
impl PySentUnit {
    #[new]
    fn new(margin: Py<PyMargin>) -> Self {
        PySentUnit { margin, id: None, symbols: 0 }
    }
}

#[pyclass(name = "Outcomes")]
pub struct PyOutcomes(Outcomes<Py<PyMargin>>);

impl PyOutcomes {
    fn id_of(&mut self, py: Python<'_>, unit: &mut PySentUnit) -> UnitId {
        *unit.id.get_or_insert_with(|| self.0.open(unit.margin.clone_ref(py)))
    }
}

fn learn(py: Python<'_>, verdicts: impl IntoIterator<Item = Verdict<Py<PyMargin>>>) {
    for verdict in verdicts {
        verdict.margin.borrow_mut(py).margin.learn(verdict.success, verdict.most);
    }
}

#[pymethods]
impl PyOutcomes {
    #[new]
    #[pyo3(signature = (in_time_s=0.008))]
    fn new(in_time_s: f64) -> Self {
        PyOutcomes(Outcomes::new(in_time_s))
    }

    #[getter]
    fn in_time_s(&self) -> f64 {
        self.0.in_time_s()
    }

    #[setter]
    fn set_in_time_s(&mut self, in_time_s: f64) {
        self.0.set_in_time(in_time_s);
    }

    fn __len__(&self) -> usize {
        self.0.waiting()
    }

    fn sent(&mut self, py: Python<'_>, number: u32, unit: &mut PySentUnit) {
        self.sent_many(py, number, 1, unit);
    }

    fn sent_many(&mut self, py: Python<'_>, number: u32, count: u32, unit: &mut PySentUnit) {
        let id = self.id_of(py, unit);
        self.0.sent(number, count, id);
        unit.symbols += count;
    }

    #[pyo3(signature = (unit, k, most=false))]
    fn closed(&mut self, py: Python<'_>, unit: &mut PySentUnit, k: u32, most: bool) {
        let id = self.id_of(py, unit);
        learn(py, self.0.closed(id, k, most));
    }

    fn arrived(&mut self, py: Python<'_>, number: u32, delay_us: u32) {
        learn(py, self.0.arrived(number, delay_us));
    }

    fn lost(&mut self, py: Python<'_>, first: u32, count: u32) {
        learn(py, self.0.lost(first, count));
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMargin>()?;
    module.add_class::<PySentUnit>()?;
    module.add_class::<PyOutcomes>()
}
