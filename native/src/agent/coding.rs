//! Redundancy and unit size for Python. Codes, rules and policies are named as in protocol/policy.py.

use ::agent::coding::{
    self, CodingPolicy, CodingRules, PathTimes, Progress, RedundancyRule, UnitRule, Weight,
};
use ::coding::Code;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns the error of a name that is not known.
pub fn unknown<T>(kind: &str, name: &str) -> PyResult<T> {
    Err(PyValueError::new_err(format!("{kind} {name:?} is not known")))
}

/// A code by its name.
struct NamedCode(Code);

impl<'py> FromPyObject<'_, 'py> for NamedCode {
    type Error = PyErr;

    fn extract(name: Borrowed<'_, 'py, PyAny>) -> PyResult<NamedCode> {
        match name.extract::<&str>()? {
            "xor" => Ok(NamedCode(Code::Xor)),
            "rlc" => Ok(NamedCode(Code::Rlc)),
            "ldpc" => Ok(NamedCode(Code::Ldpc)),
            "mds" => Ok(NamedCode(Code::Mds)),
            other => unknown("code", other),
        }
    }
}

/// A `protocol.policy.Weight`.
#[derive(FromPyObject)]
struct PyWeight {
    full_bytes: u64,
    none_bytes: u64,
    fast_retransmit: u32,
}

impl From<PyWeight> for Weight {
    fn from(weight: PyWeight) -> Weight {
        let PyWeight { full_bytes, none_bytes, fast_retransmit } = weight;
        Weight { full_bytes, none_bytes, fast_retransmit }
    }
}

/// A `protocol.policy.CodingPolicy`.
#[derive(FromPyObject)]
pub struct PyCodingPolicy {
    code: NamedCode,
    redundancy: String,
    target_decode_probability: f64,
    unit: String,
    weight: Option<PyWeight>,
    max_k: u32,
    max_r: u32,
    max_overhead: f64,
    flush_s: f64,
}

impl PyCodingPolicy {
    /// Returns what it says. ValueError: a name that is not known.
    pub fn policy(self) -> PyResult<CodingPolicy> {
        let redundancy = match (self.redundancy.as_str(), self.weight) {
            ("paper", _) => RedundancyRule::Paper,
            ("target-decode-probability", _) => RedundancyRule::TargetDecodeProbability,
            ("adaptive", _) => RedundancyRule::Adaptive,
            ("htpc", Some(weight)) => RedundancyRule::Htpc(weight.into()),
            ("htpc", None) => return Err(PyValueError::new_err("redundancy htpc needs a weight")),
            ("one-per-unit", _) => RedundancyRule::OnePerUnit,
            (other, _) => return unknown("redundancy", other),
        };
        let unit = match self.unit.as_str() {
            "optimal" => UnitRule::Optimal,
            "window" => UnitRule::Window,
            other => return unknown("unit", other),
        };
        Ok(CodingPolicy {
            code: self.code.0,
            redundancy,
            target_decode_probability: self.target_decode_probability,
            unit,
            max_k: self.max_k,
            max_r: self.max_r,
            max_overhead: self.max_overhead,
            flush_s: self.flush_s,
        })
    }
}

#[pyclass(name = "CodingRules")]
struct PyCodingRules(CodingRules);

#[pymethods]
impl PyCodingRules {
    #[new]
    fn new(coding: PyCodingPolicy) -> PyResult<Self> {
        Ok(PyCodingRules(CodingRules::new(coding.policy()?)))
    }

    #[pyo3(signature = (blocking_probability, k, sent_bytes=0, window=None))]
    fn repairs(&mut self, blocking_probability: f64, k: u32, sent_bytes: u64, window: Option<u32>) -> u32 {
        self.0.repairs(blocking_probability, k, Progress { sent_bytes, window })
    }

    #[allow(clippy::too_many_arguments)] // Python's callers name them
    fn completion_time_s(
        &mut self,
        k: u32,
        blocking_probability: f64,
        rtt_s: f64,
        blocked_rtt_s: f64,
        packet_time_s: f64,
        flow_packets: u32,
    ) -> PyResult<f64> {
        if k == 0 || flow_packets == 0 {
            return Err(PyValueError::new_err("units and flows have at least one packet"));
        }
        let times = PathTimes { blocking_probability, rtt_s, blocked_rtt_s, packet_time_s };
        Ok(self.0.completion_time_s(k, &times, flow_packets))
    }
}

#[pyfunction]
fn decode_probability(code: NamedCode, k: u32, r: u32, blocking_probability: f64) -> f64 {
    coding::decode_probability(code.0, k, r, blocking_probability)
}

#[pyfunction]
fn binomial(n: u32, x: u32, p: f64) -> f64 {
    coding::binomial(n, x, p)
}

#[pyfunction]
fn paper_rule(k: u32, blocking_probability: f64) -> u32 {
    coding::paper_rule(k, blocking_probability)
}

#[pyfunction]
fn flow_weight(weight: PyWeight, sent_bytes: u64) -> f64 {
    coding::flow_weight(&weight.into(), sent_bytes)
}

#[pyfunction]
#[pyo3(signature = (k, loss_rate, weight, sent_bytes, window=None))]
fn htpc_rule(k: u32, loss_rate: f64, weight: PyWeight, sent_bytes: u64, window: Option<u32>) -> u32 {
    coding::htpc_rule(k, loss_rate, &weight.into(), Progress { sent_bytes, window })
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCodingRules>()?;
    module.add_function(wrap_pyfunction!(decode_probability, module)?)?;
    module.add_function(wrap_pyfunction!(binomial, module)?)?;
    module.add_function(wrap_pyfunction!(paper_rule, module)?)?;
    module.add_function(wrap_pyfunction!(flow_weight, module)?)?;
    module.add_function(wrap_pyfunction!(htpc_rule, module)?)
}
