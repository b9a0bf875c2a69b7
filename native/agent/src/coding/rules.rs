//! A coding policy with the answers that it has given already: one for all flows of a class.

use crate::coding::policy::CodingPolicy;
use crate::coding::redundancy::{repair_bound, Progress, RepairTable};
use crate::coding::unit_size::{completion_time_s, PathTimes, UnitSizes};
use crate::time::Seconds;

/// Size and redundancy of units under one policy. Answers depend on nothing but their arguments.
#[derive(Clone, Debug)]
pub struct CodingRules {
    policy: CodingPolicy,
    repairs: RepairTable,
    sizes: UnitSizes,
}

impl CodingRules {
    /// Returns the rules of a policy, with nothing answered yet.
    pub fn new(policy: CodingPolicy) -> CodingRules {
        CodingRules { policy, repairs: RepairTable::new(), sizes: UnitSizes::default() }
    }

    /// Returns the policy.
    pub fn policy(&self) -> &CodingPolicy {
        &self.policy
    }

    /// Returns the most repairs that a unit of k sources may have: max_r, k max_overhead, and what the code has use for.
    pub fn repair_bound(&self, k: u32) -> u32 {
        repair_bound(&self.policy, k)
    }

    /// Returns r for a unit of k sources: 0 to `repair_bound`. `flow` counts for HTPC's rule.
    pub fn repairs(&mut self, blocking_probability: f64, k: u32, flow: Progress) -> u32 {
        self.repairs.repairs(&self.policy, blocking_probability, k, flow)
    }

    /// Returns k in 1 to max_k with the least expected completion time of a flow of `flow_packets`; max_k while the
    /// round-trip time is not known, or nothing is blocked.
    pub fn optimal_k(&mut self, times: &PathTimes, flow_packets: u32) -> u32 {
        self.sizes.optimal_k(&self.policy, &mut self.repairs, times, flow_packets)
    }

    /// Returns the expected completion time of a flow of `flow_packets` in units of k.
    pub fn completion_time_s(&mut self, k: u32, times: &PathTimes, flow_packets: u32) -> Seconds {
        completion_time_s(&self.policy, &mut self.repairs, k, times, flow_packets)
    }
}
