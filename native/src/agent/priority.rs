//! Priorities of flows, for Python.

use std::collections::HashMap;
use std::sync::Arc;

use agent::priority::{
    Feature, FlowPriority, FlowTypes, Priorities, PriorityPolicy, PriorityRule, Subject, Typed,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyclass(name = "FlowPriority")]
#[derive(Default)]
struct PyFlowPriority(FlowPriority);

#[pymethods]
impl PyFlowPriority {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn demote_at(&self) -> u64 {
        self.0.demote_at
    }

    #[getter]
    fn tos(&self) -> (u8, u8, u8, u8) {
        self.0.tos.into()
    }
}

#[pyclass(name = "Priorities", subclass)]
#[derive(Default)]
struct PyPriorities {
    priorities: Priorities,
    policy: PriorityPolicy,
}

#[pymethods]
impl PyPriorities {
    #[new]
    #[pyo3(signature = (*_given))] // of a class derived from it
    fn new(_given: &Bound<'_, PyAny>) -> Self {
        Self::default()
    }

    fn use_policy(
        &mut self,
        kind: &str,
        of_class: [u8; 4],
        thresholds: Vec<u64>,
        predicted: bool,
    ) -> PyResult<()> {
        let rule = match kind {
            "class" => PriorityRule::Class,
            "bytes-sent" => PriorityRule::Sent,
            "size" => PriorityRule::Size,
            _ => return Err(PyValueError::new_err(format!("priority.kind: there is no {kind}"))),
        };
        self.policy = PriorityPolicy { rule, of_class, thresholds: Arc::from(thresholds), predicted };
        self.priorities.set(self.policy.clone(), FlowTypes::default());
        Ok(())
    }

    fn use_types(&mut self, features: Vec<String>, of_value: HashMap<Vec<u8>, Vec<u64>>) -> PyResult<()> {
        let feature = |name: &String| match name.as_str() {
            "source" => Ok(Feature::Source),
            "destination" => Ok(Feature::Destination),
            "source_port" => Ok(Feature::SourcePort),
            "destination_port" => Ok(Feature::DestinationPort),
            _ => Err(PyValueError::new_err(format!("features: there is no {name}"))),
        };
        let features = features.iter().map(feature).collect::<PyResult<_>>()?;
        let of_value =
            of_value.into_iter().map(|(value, thresholds)| (value, Arc::from(thresholds))).collect();
        self.priorities.set(self.policy.clone(), FlowTypes { features, of_value });
        Ok(())
    }

    #[getter]
    fn predicted(&self) -> bool {
        self.priorities.predicted()
    }

    #[getter]
    fn control_tos(&self) -> u8 {
        self.priorities.control_tos()
    }

    fn give(
        &self,
        flow: &mut PyFlowPriority,
        key: &[u8],
        payload: u64,
        announced: Option<f64>,
    ) -> Option<bool> {
        match self.priorities.assign(Subject { key, payload, announced }, &mut flow.0) {
            Typed::NotAsked => None,
            Typed::Known => Some(true),
            Typed::Unknown => Some(false),
        }
    }

    fn give_for(&self, flow: &mut PyFlowPriority, payload: u64) {
        self.priorities.demote(payload, &mut flow.0);
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyFlowPriority>()?;
    module.add_class::<PyPriorities>()
}
