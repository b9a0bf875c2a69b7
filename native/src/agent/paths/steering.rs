//! All path policies of an agent, for Python: `agent::paths::Steering`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use agent::paths::{
    digit_reversed, flow_entropy, BoxedPolicy, Departed, Departures, LivePaths, Sent, Steering,
};
use agent::{LeafId, TrafficClass};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::leaves::leaf_id;
use super::own::{Failure, OwnPolicy};
use super::policies::CompiledPathPolicy;
use super::values::{class_of, flow_of, PyLoad, PyRoute};
use crate::feedback::{PyFeedback, PySentLog};

#[pyclass(name = "Departures")]
#[derive(Default)]
struct PyDepartures(Departures);

#[pymethods]
impl PyDepartures {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn sent(&mut self, number: u32, count: u32, flow: u32, traffic_class: u8, now: f64) -> PyResult<()> {
        self.0.sent(number, count, Departed { flow, class: class_of(traffic_class)?, at: now });
        Ok(())
    }
}

#[pyclass(name = "Steering", subclass)]
#[derive(Default)]
struct PySteering {
    steering: Steering,
    /// What Python has of `steering.routes`.
    routes: HashMap<LeafId, Py<PyTuple>>,
    failure: Failure,
}

#[pymethods]
impl PySteering {
    #[new]
    #[pyo3(signature = (*_given, **_named))] // of a class derived from it
    fn new(_given: &Bound<'_, PyAny>, _named: Option<&Bound<'_, PyAny>>) -> Self {
        Self::default()
    }

    fn set_policies(&mut self, policies: Vec<Bound<'_, PyAny>>, serves: [usize; 4]) -> PyResult<()> {
        if serves.iter().any(|&place| place >= policies.len()) {
            return Err(PyValueError::new_err(format!("serves {serves:?} names a policy that is not there")));
        }
        let boxed = |policy: &Bound<'_, PyAny>| -> PyResult<BoxedPolicy> {
            match policy.cast::<CompiledPathPolicy>() {
                Ok(compiled) => Ok(Box::new(compiled.borrow().shared.clone())),
                Err(_) => Ok(Box::new(OwnPolicy::new(policy, self.failure.clone())?)),
            }
        };
        let policies = policies.iter().map(boxed).collect::<PyResult<_>>()?;
        self.steering.set_policies(policies, serves);
        Ok(())
    }

    #[getter]
    fn learning(&self) -> bool {
        self.steering.learns()
    }

    fn routes<'py>(&mut self, py: Python<'py>, leaf: &str) -> PyResult<Bound<'py, PyTuple>> {
        let leaf = leaf_id(leaf)?;
        if let Some(known) = self.routes.get(&leaf) {
            return Ok(known.bind(py).clone());
        }
        let made: Vec<PyRoute> = self
            .steering
            .routes
            .to(leaf)
            .iter()
            .map(|route| PyRoute::of(py, route))
            .collect::<PyResult<_>>()?;
        let routes = PyTuple::new(py, made)?;
        self.routes.insert(leaf, routes.clone().unbind());
        Ok(routes)
    }

    fn set_paths(
        &mut self,
        py: Python<'_>,
        paths: HashMap<String, Vec<Bound<'_, PyAny>>>,
        by_class: HashMap<String, Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<()> {
        let mut alive = LivePaths::default();
        for (leaf, stamps) in paths {
            alive.stamps.insert(leaf_id(&leaf)?, stamps_of(&stamps));
        }
        let names = [
            ("short", TrafficClass::Short),
            ("long", TrafficClass::Long),
            ("control", TrafficClass::Control),
        ];
        let only: BTreeMap<_, _> = names
            .into_iter()
            .filter_map(|(name, class)| Some((class, stamps_of(by_class.get(name)?))))
            .collect();
        alive.by_class = only;
        self.steering.routes.set_paths(alive);
        for (&leaf, known) in &self.routes {
            let routes = self.steering.routes.to(leaf);
            for (known, route) in known.bind(py).iter().zip(routes) {
                known.cast::<PyRoute>()?.borrow_mut().follow(py, route)?;
            }
        }
        Ok(())
    }

    fn learn(
        &mut self,
        leaf: &str,
        log: &PySentLog,
        departures: &PyDepartures,
        feedback: &PyFeedback,
        above_least_us: &Bound<'_, PyAny>,
        now: f64,
    ) -> PyResult<()> {
        let sent = Sent { leaf: leaf_id(leaf)?, log: &log.0, departures: &departures.0 };
        let mut failed = None;
        let above_least = |delay_us: u32| {
            let above = above_least_us.call1((delay_us,)).and_then(|above| above.extract());
            above.unwrap_or_else(|error| {
                failed.get_or_insert(error);
                0
            })
        };
        self.steering.learn(sent, &feedback.0, above_least, now);
        failed.map_or(Ok(()), Err)?;
        self.failure.raised()
    }

    fn forget(&mut self, flow: i64) -> PyResult<()> {
        self.steering.forget(flow);
        self.failure.raised()
    }

    fn grant(&mut self, flow: i64, stamp: &Bound<'_, PyAny>) -> PyResult<()> {
        self.steering.granted(flow, stamp.extract().unwrap_or(0));
        self.failure.raised()
    }

    fn load(&mut self, py: Python<'_>, now: f64) -> PyResult<Option<PyLoad>> {
        let load = self.steering.load(now);
        self.failure.raised()?;
        load.map(|load| PyLoad::of(py, &load)).transpose()
    }

    fn set_load(&mut self, py: Python<'_>, load: &PyLoad, now: f64) -> PyResult<()> {
        self.steering.set_load(&load.load(py)?, now);
        self.failure.raised()
    }
}

/// Returns the numbers that can be stamps; others are left out.
fn stamps_of(numbers: &[Bound<'_, PyAny>]) -> BTreeSet<u16> {
    numbers.iter().filter_map(|number| number.extract().ok()).collect()
}

#[pyfunction]
#[pyo3(name = "flow_entropy", signature = (flow, turn=0))]
fn py_flow_entropy(flow: &Bound<'_, PyAny>, turn: u64) -> PyResult<u16> {
    Ok(flow_entropy(flow_of(flow)?, turn))
}

#[pyfunction]
#[pyo3(name = "digit_reversed")]
fn py_digit_reversed(labels: Vec<u16>) -> Vec<u16> {
    digit_reversed(&labels)
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDepartures>()?;
    module.add_class::<PySteering>()?;
    module.add_function(wrap_pyfunction!(py_flow_entropy, module)?)?;
    module.add_function(wrap_pyfunction!(py_digit_reversed, module)?)
}
