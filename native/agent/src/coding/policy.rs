//! How the packets of one class are coded: what of a policy document (protocol/policy.py) these decisions need.

use coding::Code;

use crate::time::Seconds;

/// How the redundancy of a flow fades with the payload D that it has sent (HTPC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// T_s: up to here a flow has the weight 1.
    pub full_bytes: u64,
    /// T_w, above T_s: from here on it has the weight 0.
    pub none_bytes: u64,
    /// T_fr: duplicate ACKs that make TCP retransmit without a time-out.
    pub fast_retransmit: u32,
}

/// How many repairs a unit gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedundancyRule {
    /// CAPS, section VI-B: so many that k packets arrive on average.
    Paper,
    /// The fewest with which the unit is decoded with the target probability.
    TargetDecodeProbability,
    /// The same, with a blocking probability that outcomes have corrected (`Margin`).
    Adaptive,
    /// HTPC, Eq. 2-5.
    Htpc(Weight),
    /// Corrective: one, whatever the blocking probability.
    OnePerUnit,
}

/// How many sources fill a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitRule {
    /// The size with the least expected completion time.
    Optimal,
    /// The flow's congestion window.
    Window,
}

/// Coding of one class's packets.
#[derive(Clone, Debug, PartialEq)]
pub struct CodingPolicy {
    /// Which code the repairs are of.
    pub code: Code,
    /// How many repairs a unit gets.
    pub redundancy: RedundancyRule,
    /// What `TargetDecodeProbability` and `Adaptive` aim at, above 0 and below 1.
    pub target_decode_probability: f64,
    /// How many sources fill a unit.
    pub unit: UnitRule,
    /// Most sources of a unit.
    pub max_k: u32,
    /// Most repairs of a unit.
    pub max_r: u32,
    /// Most repairs for each source.
    pub max_overhead: f64,
    /// A unit that got no packet for this long is closed with the packets that it has.
    pub flush_s: Seconds,
}
