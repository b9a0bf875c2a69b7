//! How packets are sent: what of a policy document (protocol/policy.py) these decisions need.

use crate::blocking::EstimatorKind;
use crate::coding::CodingPolicy;
use crate::paths::BoxedPolicy;
use crate::priority::{FlowTypes, PriorityPolicy};
use crate::sending::SendFlow;
use crate::Seconds;

/// How packets are sent: what of a policy document (protocol/policy.py) these decisions need.
#[derive(Clone, Debug)]
pub struct SendPolicy {
    /// Of 1500 B on the slowest fabric link.
    pub packet_time_s: Seconds,
    /// Payload that a flow sends as a short one, bytes.
    pub short_limit_bytes: u64,
    /// Whether announced sizes are believed.
    pub prior_knowledge: bool,
    /// Coding of short and long flows.
    pub coding: [Option<CodingPolicy>; 4],
    /// What estimates pB, where anything is coded.
    pub estimator: Option<EstimatorChoice>,
    /// Priorities.
    pub priority: PriorityPolicy,
    /// Types of flows with thresholds of their own.
    pub types: FlowTypes,
}

/// Which estimator of pB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatorChoice {
    /// By name.
    pub kind: EstimatorKind,
    /// None: the estimator's own.
    pub sampling_s: Option<Seconds>,
}

/// Path policies, and which of them serves each class.
pub struct Serving {
    /// Each once.
    pub policies: Vec<BoxedPolicy>,
    /// By class, its place among them.
    pub serves: [usize; 4],
}

impl SendPolicy {
    /// Returns a policy that codes nothing and gives each class one priority; flows are short up to 100 kB, whatever was
    /// announced.
    pub fn plain(packet_time_s: Seconds) -> SendPolicy {
        SendPolicy {
            packet_time_s,
            short_limit_bytes: 100_000,
            prior_knowledge: false,
            coding: [None, None, None, None],
            estimator: None,
            priority: PriorityPolicy::default(),
            types: FlowTypes::default(),
        }
    }

    /// Returns the payload that a flow sends as a short one.
    ///
    /// Of an announced flow, all or nothing: a flow that was announced as short has twice the limit for what TCP sends
    /// again, and beyond that the announcement was wrong.
    pub(super) fn short_bytes<P>(&self, flow: &SendFlow<P>) -> u64 {
        let limit = self.short_limit_bytes;
        match flow.announced {
            Some(size) if self.prior_knowledge => {
                if size < limit as f64 {
                    2 * limit
                } else {
                    0
                }
            }
            _ => limit,
        }
    }
}
