//! The host's end of admission's messages, for tests of both ends: `agent::admission::Requests`.

use std::collections::BTreeMap;

use agent::admission::{AskedState, Decision, MessageBody, RequestCounters, RequestTimes, Requests};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

/// Sequence number, flow, and of a request its destination and the bytes left.
type PyMessage = (u32, u32, Option<(String, u64)>);

#[pyclass(name = "AdmissionRequests", subclass)]
struct PyRequests(Requests<String>);

#[pymethods]
impl PyRequests {
    #[new]
    fn new(retry_s: f64, refresh_s: f64, fail_safe_s: f64, sequence: u32) -> Self {
        PyRequests(Requests::new(RequestTimes { retry_s, refresh_s, fail_safe_s }, sequence))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __contains__(&self, flow: u32) -> bool {
        self.0.state(flow).is_some()
    }

    #[getter]
    fn sequence(&self) -> u32 {
        self.0.sequence()
    }

    #[getter]
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let RequestCounters { decisions_late, grants, stops, flows_unscheduled_by_fail_safe } =
            self.0.counters();
        let counts = [
            ("decisions_late", decisions_late),
            ("grants", grants),
            ("stops", stops),
            ("flows_unscheduled_by_fail_safe", flows_unscheduled_by_fail_safe),
        ];
        counts.into_iter().filter(|&(_, count)| count > 0).collect()
    }

    fn take_latencies(&mut self) -> Vec<f64> {
        self.0.take_latencies()
    }

    fn rate_bps(&self, flow: u32) -> f64 {
        self.0.rate_bps(flow).map_or(f64::INFINITY, |rate| rate as f64)
    }

    fn state(&self, flow: u32) -> PyResult<&'static str> {
        match self.0.state(flow) {
            Some(AskedState::Waiting) => Ok("waiting"),
            Some(AskedState::Granted) => Ok("granted"),
            Some(AskedState::Unscheduled) => Ok("unscheduled"),
            None => Err(PyKeyError::new_err(flow)),
        }
    }

    fn stamp(&self, flow: u32) -> u16 {
        self.0.stamp(flow)
    }

    fn standing(&self) -> (usize, usize, usize) {
        let count = |state| self.0.standing(state);
        (count(AskedState::Granted), count(AskedState::Waiting), count(AskedState::Unscheduled))
    }

    fn ask(&mut self, flow: u32, destination: String, bytes_left: u64, now: f64) {
        self.0.ask(flow, destination, bytes_left, now);
    }

    fn left(&mut self, flow: u32, bytes_left: i64) {
        self.0.left(flow, bytes_left.max(0) as u64);
    }

    fn end(&mut self, flow: u32) {
        self.0.end(flow);
    }

    fn connected(&mut self, now: f64) {
        self.0.connected(now);
    }

    fn decide(
        &mut self,
        sequence: u32,
        flow: u32,
        answers: u32,
        rate_bps: u64,
        stamp: u16,
        now: f64,
    ) -> bool {
        self.0.decided(Decision { sequence, flow, answers, rate_bps, stamp }, now)
    }

    fn get_timer(&self) -> Option<f64> {
        self.0.deadline()
    }

    fn handle_timer(&mut self, now: f64) -> Vec<u32> {
        self.0.handle_timer(now)
    }

    fn take_messages(&mut self) -> Vec<PyMessage> {
        let request = |body| match body {
            MessageBody::Request { destination, bytes_left } => Some((destination, bytes_left)),
            MessageBody::Finished => None,
        };
        let messages = self.0.take_messages().into_iter();
        messages.map(|message| (message.sequence, message.flow, request(message.body))).collect()
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRequests>()
}
