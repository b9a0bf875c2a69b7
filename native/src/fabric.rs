//! What is decided for a whole fabric, for Python: leaf modes and split paths. Each answer takes microseconds, so the
//! interpreter is held throughout.

use std::collections::BTreeSet;

use fabric::mode::{self, Cause, Mode, ModeChange, ModeMonitor, ModeRule};
use fabric::partition::{self, PartitionRule, PathPartition, Split};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::On => "on",
        Mode::Off => "off",
    }
}

/// Leaf, mode, time, cause.
type Change = (u64, &'static str, f64, &'static str);

pub fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::FirstPacket => "first-packet",
        Cause::Meter => "meter",
        Cause::Quiet => "quiet",
    }
}

fn change_of(change: ModeChange) -> Change {
    (change.leaf, mode_name(change.mode), change.at, cause_name(change.cause))
}

#[pyclass(name = "LeafModeMonitor")]
struct PyModeMonitor(ModeMonitor);

impl PyModeMonitor {
    fn known(&self, leaf: u64) -> PyResult<&mode::LeafMode> {
        self.0.leaf(leaf).ok_or_else(|| PyKeyError::new_err(leaf))
    }
}

#[pymethods]
impl PyModeMonitor {
    #[classattr]
    const SHORTEST_SAMPLING_S: f64 = mode::SHORTEST_SAMPLING_S;
    #[classattr]
    const RESOLUTION_S: f64 = mode::RESOLUTION_S;
    #[classattr]
    const READ_LOST_S: f64 = mode::READ_LOST_S;

    #[new]
    fn new(
        sampling_packet_times: f64,
        quiet_intervals: u32,
        longest_hold: u32,
        packet_time_s: f64,
    ) -> PyResult<Self> {
        let rule = ModeRule { sampling_packet_times, quiet_intervals, longest_hold };
        let monitor = ModeMonitor::new(rule, packet_time_s);
        monitor.map(PyModeMonitor).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn sampling_time_s(&self) -> f64 {
        self.0.sampling_time_s()
    }

    fn leaf_added(&mut self, leaf: u64, now: f64) {
        self.0.leaf_added(leaf, now);
    }

    fn leaf_removed(&mut self, leaf: u64) {
        self.0.leaf_removed(leaf);
    }

    fn leaves(&self) -> Vec<u64> {
        self.0.leaves().collect()
    }

    fn mode(&self, leaf: u64) -> PyResult<&'static str> {
        Ok(mode_name(self.known(leaf)?.mode))
    }

    fn since(&self, leaf: u64) -> PyResult<f64> {
        Ok(self.known(leaf)?.since)
    }

    fn mode_above(&self, leaves: Vec<u64>) -> &'static str {
        mode_name(self.0.mode_above(leaves))
    }

    fn first_packet(&mut self, leaf: u64, now: f64) -> Option<Change> {
        self.0.first_packet(leaf, now).map(change_of)
    }

    fn sample(&mut self, leaf: u64, packets: u64, now: f64) -> Option<Change> {
        self.0.sample(leaf, packets, now).map(change_of)
    }

    fn due<'py>(&mut self, py: Python<'py>, now: f64) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.due(now))
    }

    fn deadline(&self) -> Option<f64> {
        self.0.deadline()
    }
}

/// Sets of paths in an iterable of tuples.
fn sets_of(path_sets: &Bound<'_, PyAny>) -> PyResult<Vec<BTreeSet<u16>>> {
    path_sets.try_iter()?.map(|paths| Ok(paths?.extract::<Vec<u16>>()?.into_iter().collect())).collect()
}

#[pyclass(name = "PathSplit", eq, frozen)]
#[derive(Clone, PartialEq)]
struct PySplit(Split);

#[pymethods]
impl PySplit {
    #[new]
    fn new() -> Self {
        PySplit(Split::default())
    }

    #[getter]
    fn low_latency(&self) -> BTreeSet<u16> {
        self.0.low_latency.clone()
    }

    #[getter]
    fn throughput(&self) -> BTreeSet<u16> {
        self.0.throughput.clone()
    }

    fn by_class<'py>(&self, py: Python<'py>, path_sets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let classes = PyDict::new(py);
        let own = sets_of(path_sets)?.into_iter().flatten().collect();
        if let Some(by) = self.0.by_class(&own) {
            for (class, paths) in [("short", by.short), ("long", by.long), ("control", by.control)] {
                classes.set_item(class, PyTuple::new(py, paths)?)?;
            }
        }
        Ok(classes)
    }
}

#[pyclass(name = "LoadPartition", subclass)]
struct PyPartition(PathPartition);

#[pymethods]
impl PyPartition {
    #[classattr]
    const LATE: f64 = partition::LATE;
    #[classattr]
    const LONG_UTILISATION: f64 = partition::LONG_UTILISATION;
    #[classattr]
    const SLACK: f64 = partition::SLACK;

    #[staticmethod]
    fn highest_load_of(deadline: f64, burst: f64) -> f64 {
        partition::highest_load(deadline, burst)
    }

    #[new]
    fn new(
        deadline_packet_times: f64,
        burst_packets: f64,
        sampling_packet_times: f64,
        samples: usize,
        packet_time_s: f64,
    ) -> Self {
        let rule = PartitionRule { deadline_packet_times, burst_packets, sampling_packet_times, samples };
        PyPartition(PathPartition::new(rule, packet_time_s))
    }

    #[getter]
    fn sampling_time_s(&self) -> f64 {
        self.0.sampling_time_s()
    }

    #[getter]
    fn highest_load(&self) -> f64 {
        self.0.highest_load()
    }

    fn watch(&mut self, leaf: u64, uplinks: u32, now: f64) {
        self.0.watch(leaf, uplinks, now);
    }

    fn due<'py>(&mut self, py: Python<'py>, now: f64) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.due(now))
    }

    fn deadline(&self) -> Option<f64> {
        self.0.deadline()
    }

    fn sample(&mut self, leaf: u64, short_bytes: u64, long_bytes: u64, now: f64) {
        self.0.sample(leaf, short_bytes, long_bytes, now);
    }

    fn low_latency_share(&self) -> f64 {
        self.0.low_latency_share()
    }

    fn split(&mut self, path_sets: &Bound<'_, PyAny>) -> PyResult<PySplit> {
        Ok(PySplit(self.0.split(sets_of(path_sets)?).clone()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyModeMonitor>()?;
    module.add_class::<PySplit>()?;
    module.add_class::<PyPartition>()
}
