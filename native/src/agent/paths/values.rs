//! What path policies take and give, as Python sees it: flows, routes, reports, loads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use agent::paths::{Load, PathId, Report};
use agent::{FlowRef, Route, TrafficClass};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::leaves::{known_leaf, leaf_id, leaf_name};

/// Versions of labels that Python gives a route; those of `Routes` are below.
static VERSION: AtomicU32 = AtomicU32::new(1 << 31);

/// Returns what a policy knows of a flow: `id` and `hash` of whatever Python has for it.
pub fn flow_of(flow: &Bound<'_, PyAny>) -> PyResult<FlowRef> {
    let py = flow.py();
    Ok(FlowRef {
        id: flow.getattr(intern!(py, "id"))?.extract()?,
        hash: flow.getattr(intern!(py, "hash"))?.extract()?,
    })
}

/// Returns the class with this value. ValueError: there is none.
pub fn class_of(value: u8) -> PyResult<TrafficClass> {
    TrafficClass::of(value)
        .ok_or_else(|| PyValueError::new_err(format!("traffic class must be 0..3, not {value}")))
}

#[pyclass(name = "FlowRef", frozen, get_all)]
pub struct PyFlowRef {
    id: i64,
    hash: u32,
}

#[pymethods]
impl PyFlowRef {
    #[new]
    fn new(id: i64, hash: u32) -> Self {
        PyFlowRef { id, hash }
    }
}

impl From<FlowRef> for PyFlowRef {
    fn from(flow: FlowRef) -> Self {
        PyFlowRef { id: flow.id, hash: flow.hash }
    }
}

#[pyclass(name = "Route")]
pub struct PyRoute {
    pub route: Route,
    /// The same tuple as long as the labels do not change.
    labels: Py<PyTuple>,
}

#[pymethods]
impl PyRoute {
    #[new]
    #[pyo3(signature = (leaf, traffic_class, labels=None))]
    fn new(
        py: Python<'_>,
        leaf: &str,
        traffic_class: u8,
        labels: Option<Bound<'_, PyTuple>>,
    ) -> PyResult<Self> {
        let route = Route::unnamed(leaf_id(leaf)?, class_of(traffic_class)?);
        let mut made = PyRoute { route, labels: PyTuple::empty(py).unbind() };
        if let Some(labels) = labels {
            made.set_labels(labels)?;
        }
        Ok(made)
    }

    #[getter]
    fn leaf(&self) -> String {
        leaf_name(self.route.leaf)
    }

    #[getter]
    fn traffic_class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        CLASS.import(py, "protocol.underlay", "TrafficClass")?.call1((self.route.class as u8,))
    }

    #[getter]
    fn labels(&self, py: Python<'_>) -> Py<PyTuple> {
        self.labels.clone_ref(py)
    }

    #[setter]
    fn set_labels(&mut self, labels: Bound<'_, PyTuple>) -> PyResult<()> {
        let ports: Vec<u16> = labels.extract()?;
        self.route.version = if ports.is_empty() { 0 } else { VERSION.fetch_add(1, Ordering::Relaxed) };
        (self.route.labels, self.route.idle_us) = (ports.into(), [].into());
        self.labels = labels.unbind();
        Ok(())
    }
}

impl PyRoute {
    /// Returns a route for Python.
    pub fn of(py: Python<'_>, route: &Route) -> PyResult<Self> {
        let labels = PyTuple::new(py, route.labels.iter())?.unbind();
        Ok(PyRoute { route: route.clone(), labels })
    }

    /// Takes over the labels of a route to the same leaf.
    pub fn follow(&mut self, py: Python<'_>, route: &Route) -> PyResult<()> {
        if self.route.version != route.version {
            *self = PyRoute::of(py, route)?;
        }
        Ok(())
    }
}

#[pyclass(name = "Report", frozen, get_all, eq)]
#[derive(PartialEq)]
pub struct PyReport {
    flow: i64,
    leaf: String,
    entropy: u16,
    stamp: u16,
    delay_s: f64,
    sent: f64,
    marked: bool,
}

#[pymethods]
impl PyReport {
    #[new]
    #[pyo3(signature = (flow, leaf, entropy, stamp, delay_s, sent, marked = false))]
    fn new(flow: i64, leaf: String, entropy: u16, stamp: u16, delay_s: f64, sent: f64, marked: bool) -> Self {
        PyReport { flow, leaf, entropy, stamp, delay_s, sent, marked }
    }
}

impl PyReport {
    /// Returns the report as policies take it.
    pub fn report(&self) -> PyResult<Report> {
        Ok(Report {
            flow: self.flow,
            leaf: leaf_id(&self.leaf)?,
            port: self.entropy,
            stamp: self.stamp,
            delay_s: self.delay_s,
            sent: self.sent,
            marked: self.marked,
        })
    }
}

impl From<&Report> for PyReport {
    fn from(report: &Report) -> Self {
        PyReport {
            flow: report.flow,
            leaf: leaf_name(report.leaf),
            entropy: report.port,
            stamp: report.stamp,
            delay_s: report.delay_s,
            sent: report.sent,
            marked: report.marked,
        }
    }
}

#[pyclass(name = "Load", frozen, get_all)]
pub struct PyLoad {
    short_flows: Py<PyDict>,
    delays_s: Py<PyDict>,
}

#[pymethods]
impl PyLoad {
    #[new]
    fn new(short_flows: Py<PyDict>, delays_s: Py<PyDict>) -> Self {
        PyLoad { short_flows, delays_s }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<PyLoad>() else { return Ok(false) };
        let other = other.get();
        Ok(self.short_flows.bind(py).eq(&other.short_flows)? && self.delays_s.bind(py).eq(&other.delays_s)?)
    }
}

impl PyLoad {
    /// Returns a load for Python.
    pub fn of(py: Python<'_>, load: &Load) -> PyResult<Self> {
        let (short_flows, delays_s) = (PyDict::new(py), PyDict::new(py));
        for (stamp, count) in &load.short_flows {
            short_flows.set_item(stamp, count)?;
        }
        let mut by_leaf: BTreeMap<_, Bound<'_, PyDict>> = BTreeMap::new();
        for (id, delay) in &load.delays_s {
            by_leaf.entry(id.leaf).or_insert_with(|| PyDict::new(py)).set_item(id.stamp, delay)?;
        }
        for (leaf, known) in by_leaf {
            delays_s.set_item(leaf_name(leaf), known)?;
        }
        Ok(PyLoad { short_flows: short_flows.unbind(), delays_s: delays_s.unbind() })
    }

    /// Returns the load as policies take it, without leaves that no directory has named: nothing is sent there.
    pub fn load(&self, py: Python<'_>) -> PyResult<Load> {
        let mut delays_s = BTreeMap::new();
        for (leaf, known) in self.delays_s.bind(py) {
            let Some(leaf) = known_leaf(leaf.extract()?) else { continue };
            for (stamp, delay) in known.cast::<PyDict>()? {
                delays_s.insert(PathId { leaf, stamp: stamp.extract()? }, delay.extract()?);
            }
        }
        Ok(Load { short_flows: self.short_flows.bind(py).extract()?, delays_s })
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFlowRef>()?;
    module.add_class::<PyRoute>()?;
    module.add_class::<PyReport>()?;
    module.add_class::<PyLoad>()
}
