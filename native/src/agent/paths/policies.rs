//! A compiled path policy, of whichever kind, as a class of Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent::paths::{BoxedPolicy, Train};
use agent::Generator;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::leaves::leaf_id;
use super::values::{flow_of, PyLoad, PyReport, PyRoute};
use crate::agent::core::path_settings;

/// Returns a generator that is seeded by one draw of Python's.
pub fn generator_of(rng: &Bound<'_, PyAny>) -> PyResult<Generator> {
    let seed: [u8; 8] = rng.call_method1("bytes", (8,))?.extract()?;
    Ok(Generator::new(u64::from_le_bytes(seed)))
}

#[pyclass]
pub struct CompiledPathPolicy(Mutex<BoxedPolicy>);

impl CompiledPathPolicy {
    fn held(&self) -> MutexGuard<'_, BoxedPolicy> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl CompiledPathPolicy {
    /// Makes the policy of a `protocol.policy.PathPolicy`. ValueError: a kind that is not compiled.
    #[new]
    fn new(settings: &Bound<'_, PyAny>, packet_time_s: f64, rng: &Bound<'_, PyAny>) -> PyResult<Self> {
        let missing = || PyValueError::new_err("a path policy of the operator's own file is not compiled");
        let settings = path_settings(settings, packet_time_s)?.ok_or_else(missing)?;
        Ok(CompiledPathPolicy(Mutex::new(settings.policy(generator_of(rng)?))))
    }

    #[getter]
    fn learns(&self) -> bool {
        self.held().learns()
    }

    fn entropy(&self, flow: &Bound<'_, PyAny>, route: &PyRoute, size: u32, now: f64) -> PyResult<u16> {
        Ok(self.held().source_port(flow_of(flow)?, &route.route, size, now))
    }

    fn entropies(
        &self,
        flow: &Bound<'_, PyAny>,
        route: &PyRoute,
        size: u32,
        count: usize,
        last: u32,
        now: f64,
    ) -> PyResult<Vec<u16>> {
        let train = Train { flow: flow_of(flow)?, route: &route.route, size, last, count };
        let mut ports = Vec::with_capacity(count);
        self.held().source_ports(train, now, &mut ports);
        Ok(ports)
    }

    fn reported(&self, report: &PyReport, now: f64) -> PyResult<()> {
        self.held().reported(&report.report()?, now);
        Ok(())
    }

    fn lost(&self, flow: i64, leaf: &str, entropy: u16, now: f64) -> PyResult<()> {
        self.held().lost(flow, leaf_id(leaf)?, entropy, now);
        Ok(())
    }

    fn forget(&self, flow: i64) {
        self.held().forget(flow);
    }

    fn grant(&self, flow: i64, stamp: u16) {
        self.held().granted(flow, stamp);
    }

    fn load(&self, py: Python<'_>, now: f64) -> PyResult<Option<PyLoad>> {
        let load = self.held().load(now);
        load.map(|load| PyLoad::of(py, &load)).transpose()
    }

    fn set_load(&self, py: Python<'_>, load: &PyLoad, now: f64) -> PyResult<()> {
        self.held().set_load(&load.load(py)?, now);
        Ok(())
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CompiledPathPolicy>()
}
