//! A path policy in Python, called per packet (host_agent/paths/own.py).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent::paths::{flow_entropy, Load, PathPolicy, Report};
use agent::{FlowRef, LeafId, Route, RouteId, Seconds};
use pyo3::intern;
use pyo3::prelude::*;

use super::leaves::leaf_name;
use super::values::{PyFlowRef, PyLoad, PyReport, PyRoute};

/// The first exception of policies in Python that was not raised yet.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Raises the exception, if there is any.
    pub fn raised(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Passes everything on to an object of Python. What it raises is kept in `failure`, to be raised behind the call.
pub struct OwnPolicy {
    policy: Py<PyAny>,
    learns: bool,
    routes: HashMap<RouteId, Py<PyRoute>>,
    failure: Failure,
}

impl OwnPolicy {
    /// Returns a policy that is `policy`, a `host_agent.paths.PathPolicy`.
    pub fn new(policy: &Bound<'_, PyAny>, failure: Failure) -> PyResult<Self> {
        let learns = policy.getattr("learns")?.is_truthy()?;
        Ok(OwnPolicy { policy: policy.clone().unbind(), learns, routes: HashMap::new(), failure })
    }

    fn ask<T>(&self, question: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        Python::attach(|py| {
            let answer = question(py, self.policy.bind(py));
            answer.map_err(|error| self.failure.keep(error)).ok()
        })
    }

    fn entropy(&mut self, flow: FlowRef, route: &Route, size: u32, now: Seconds) -> Option<u16> {
        let routes = &mut self.routes;
        let failure = self.failure.clone();
        let known = Python::attach(|py| {
            let known = match routes.get(&route.id()) {
                Some(known) => known.clone_ref(py),
                None => {
                    let made = Py::new(py, PyRoute::of(py, route)?)?;
                    routes.insert(route.id(), made.clone_ref(py));
                    made
                }
            };
            known.borrow_mut(py).follow(py, route)?;
            PyResult::Ok(known)
        });
        let known = known.map_err(|error| failure.keep(error)).ok()?;
        self.ask(|py, policy| {
            let flow = Py::new(py, PyFlowRef::from(flow))?;
            policy.call_method1(intern!(py, "entropy"), (flow, known, size, now))?.extract()
        })
    }
}

impl PathPolicy for OwnPolicy {
    fn learns(&self) -> bool {
        self.learns
    }

    fn source_port(&mut self, flow: FlowRef, route: &Route, size: u32, now: Seconds) -> u16 {
        self.entropy(flow, route, size, now).unwrap_or_else(|| flow_entropy(flow, 0))
    }

    fn reported(&mut self, report: &Report, now: Seconds) {
        self.ask(|py, policy| {
            policy.call_method1(intern!(py, "reported"), (PyReport::from(report), now)).map(drop)
        });
    }

    fn lost(&mut self, flow: i64, leaf: LeafId, port: u16, now: Seconds) {
        let leaf = leaf_name(leaf);
        self.ask(|py, policy| policy.call_method1(intern!(py, "lost"), (flow, leaf, port, now)).map(drop));
    }

    fn forget(&mut self, flow: i64) {
        self.ask(|py, policy| policy.call_method1(intern!(py, "forget"), (flow,)).map(drop));
    }

    fn load(&mut self, now: Seconds) -> Option<Load> {
        self.ask(|py, policy| {
            let load = policy.call_method1(intern!(py, "load"), (now,))?;
            if load.is_none() {
                return Ok(None);
            }
            load.cast::<PyLoad>()?.get().load(py).map(Some)
        })?
    }

    fn set_load(&mut self, load: &Load, now: Seconds) {
        self.ask(|py, policy| {
            policy.call_method1(intern!(py, "set_load"), (PyLoad::of(py, load)?, now)).map(drop)
        });
    }
}
