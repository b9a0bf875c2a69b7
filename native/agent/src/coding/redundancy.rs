//! How many repairs r a unit of k sources gets, from the blocking probability pB of one packet (docs/coding.md).
//!
//! pB = 0 gives r = 0 by all rules but `OnePerUnit` and, for small k, `Htpc`: there is nothing to repair, and an
//! estimator that knows nothing does not say 0.

use coding::Code;

use crate::coding::decode_probability::decode_probability;
use crate::coding::policy::{CodingPolicy, RedundancyRule, Weight};

/// pB is cut here: k / (1 - pB) has a pole at 1.
const MAX_BLOCKING: f64 = 0.95;
/// `target_rule` is asked for pB rounded to multiples of 1 / BLOCKING_STEPS.
pub(super) const BLOCKING_STEPS: f64 = 256.0;
/// A repair's index is one byte on the wire.
const MOST_REPAIRS: u32 = 255;
/// The ceilings below forgive so much of rounding: k = 9, pB = 0.1 gives 1 repair.
const ROUNDING: f64 = 1e-9;

/// What HTPC knows of a unit's flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// D: payload that the flow had sent before the unit, bytes.
    pub sent_bytes: u64,
    /// Its congestion window in packets; None: the unit's k.
    pub window: Option<u32>,
}

/// A unit of k sources that is to be decoded with a probability, by one code, at one blocking probability.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Which code its repairs are of.
    pub code: Code,
    /// Its sources.
    pub k: u32,
    /// pB of each of its packets.
    pub blocking_probability: f64,
    /// Probability of decoding to reach.
    pub probability: f64,
}

impl Target {
    fn reached(&self, r: u32) -> bool {
        decode_probability(self.code, self.k, r, self.blocking_probability) >= self.probability
    }
}

/// Returns how many repairs a code has use for with k sources; more would be of no use, or cannot be.
pub fn most_repairs(code: Code, k: u32) -> u32 {
    match code {
        Code::Xor => k,
        Code::Mds => MOST_REPAIRS.min((coding::code::MOST_MDS as u32).saturating_sub(k)),
        Code::Rlc | Code::Ldpc => MOST_REPAIRS,
    }
}

/// Returns what bounds r of a unit of k sources: max_r, k max_overhead, and what the code has use for.
pub(super) fn repair_bound(policy: &CodingPolicy, k: u32) -> u32 {
    let share = (f64::from(k) * policy.max_overhead).ceil() as u32;
    policy.max_r.min(share).min(most_repairs(policy.code, k))
}

/// Returns r = ceil(k / (1 - pB) - k) (CAPS, section VI-B).
pub fn paper_rule(k: u32, blocking_probability: f64) -> u32 {
    let p = blocking_probability.clamp(0.0, MAX_BLOCKING);
    (f64::from(k) * p / (1.0 - p) - ROUNDING).ceil() as u32
}

/// Returns w of a flow that has sent D bytes (HTPC, Eq. 2): 1 up to T_s, 0 from T_w on, a straight line between.
pub fn flow_weight(weight: &Weight, sent_bytes: u64) -> f64 {
    if sent_bytes <= weight.full_bytes {
        return 1.0;
    }
    if sent_bytes >= weight.none_bytes {
        return 0.0;
    }
    (weight.none_bytes - sent_bytes) as f64 / (weight.none_bytes - weight.full_bytes) as f64
}

/// Returns r of k sources, out of r_c = x / (1 - p) - c for a congestion window of c packets (HTPC, Eq. 3-5).
///
/// p is `loss_rate`: n_b / n in Eq. 4 and 5 (scheme `htpc`), P_L of Eq. 1 by choice of ours (`htpc-overdue`).
///
/// x = w c + (1 - w) T_fr packets of a window arrive on average: all c of a short flow's; of a long flow's, those that
/// let TCP retransmit fast, so that only windows of about T_fr packets or less get repairs. A unit that is a part of a
/// window (closed early, or cut to max_k) has that part of its repairs: r = r_c k / c, rounded up, 0 if r_c is negative.
pub fn htpc_rule(k: u32, loss_rate: f64, weight: &Weight, flow: Progress) -> u32 {
    let c = f64::from(k.max(flow.window.unwrap_or(k)));
    let w = flow_weight(weight, flow.sent_bytes);
    let p = loss_rate.clamp(0.0, MAX_BLOCKING);
    let x = w * c + (1.0 - w) * f64::from(weight.fast_retransmit);
    ((x / (1.0 - p) - c) * f64::from(k) / c - ROUNDING).ceil() as u32
}

/// Returns the smallest r below `max_r` with which the unit reaches its target; `max_r` if there is none.
pub fn target_rule(unit: Target, max_r: u32) -> u32 {
    if unit.code == Code::Ldpc {
        // its measured figures need not be monotonic in r, but no code beats one that almost never fails
        let least = target_rule(Target { code: Code::Rlc, ..unit }, max_r).saturating_sub(1);
        return (least..max_r).find(|&r| unit.reached(r)).unwrap_or(max_r);
    }
    let (mut low, mut high) = (0, max_r);
    while low < high {
        let middle = (low + high) / 2;
        if unit.reached(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// r of one policy: `target_rule`'s answers are cached, for each takes microseconds.
#[derive(Clone, Debug)]
pub(super) struct RepairTable {
    /// By k, then by step of pB; NOT_ASKED where it is not known.
    known: Vec<Vec<u16>>,
}

const NOT_ASKED: u16 = u16::MAX;
/// A unit with more sources cannot be; such are answered, not cached.
const MOST_CACHED_K: u32 = 255;

impl RepairTable {
    pub fn new() -> RepairTable {
        RepairTable { known: Vec::new() }
    }

    /// Returns r for a unit of k sources under `policy`, always the same one: 0 to `repair_bound`.
    pub fn repairs(
        &mut self,
        policy: &CodingPolicy,
        blocking_probability: f64,
        k: u32,
        flow: Progress,
    ) -> u32 {
        let bound = repair_bound(policy, k);
        match &policy.redundancy {
            RedundancyRule::OnePerUnit => bound.min(1),
            RedundancyRule::Paper => bound.min(paper_rule(k, blocking_probability)),
            RedundancyRule::Htpc(weight) => bound.min(htpc_rule(k, blocking_probability, weight, flow)),
            RedundancyRule::TargetDecodeProbability | RedundancyRule::Adaptive => {
                let step = (blocking_probability.clamp(0.0, MAX_BLOCKING) * BLOCKING_STEPS).round_ties_even();
                let unit = Target {
                    code: policy.code,
                    k,
                    blocking_probability: step / BLOCKING_STEPS,
                    probability: policy.target_decode_probability,
                };
                if k > MOST_CACHED_K {
                    return target_rule(unit, bound);
                }
                self.cached(unit, step as usize, bound)
            }
        }
    }

    fn cached(&mut self, unit: Target, step: usize, bound: u32) -> u32 {
        let k = unit.k as usize;
        if self.known.len() <= k {
            self.known.resize(k + 1, Vec::new());
        }
        let row = &mut self.known[k];
        if row.is_empty() {
            row.resize((MAX_BLOCKING * BLOCKING_STEPS) as usize + 2, NOT_ASKED);
        }
        if row[step] == NOT_ASKED {
            row[step] = target_rule(unit, bound) as u16; // at most MOST_REPAIRS
        }
        u32::from(row[step])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trials::trials;

    #[test]
    fn the_papers_rule_lets_k_packets_arrive_on_average_with_no_repair_to_spare() {
        for k in 1..=trials(128) {
            for percent in 0..=90 {
                let p = f64::from(percent) / 100.0;
                let r = paper_rule(k, p);
                let arrive = |r: u32| f64::from(k + r) * (1.0 - p);
                assert!(arrive(r) >= f64::from(k) - 1e-6);
                assert!(r == 0 || arrive(r - 1) < f64::from(k) + 1e-6);
            }
        }
    }

    #[test]
    fn a_window_below_fast_retransmit_gets_repairs_even_of_a_long_flow() {
        let weight = Weight { full_bytes: 100_000, none_bytes: 1_000_000, fast_retransmit: 3 };
        let long = |window| Progress { sent_bytes: 2_000_000, window };
        assert_eq!(htpc_rule(2, 0.0, &weight, long(None)), 1);
        assert_eq!(htpc_rule(3, 0.2, &weight, long(None)), 1);
        assert_eq!(htpc_rule(4, 0.2, &weight, long(None)), 0);
        assert_eq!(htpc_rule(2, 0.2, &weight, long(Some(20))), 0);
        assert_eq!(htpc_rule(10, 0.2, &weight, Progress::default()), 3);
    }
}
