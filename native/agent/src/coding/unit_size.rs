//! Size k of a coding unit with the least expected completion time: what CAPS's Eq. 4 is for, by a cost of ours.
//!
//! What is optimised (all symbols: docs/coding.md). A short flow of X packets is cut into u = ceil(X / k) units; a unit
//! of k' sources gets r(k') repairs by the policy's rule. All X + sum r packets leave in slow start from a window of
//! w0 = 10 (RFC 6928), hence in R = max(1, log2((X + sum r) / w0 + 1)) rounds (not rounded: a real flow's size is not
//! known here, and steps of rounds would drown the effect). A round lasts one RTT if all of its u / R units decode from
//! unblocked packets, and the blocked RTT otherwise; and where any source of a unit is blocked, it is healed only when
//! the unit's repairs have left, (k + r) packet times after its start:
//!
//! ```text
//! F(k)    = 1 - P(unit of k decodes)                          (`decode_probability`)
//! T_R(k)  = RTT + (RTT_b - RTT) * (1 - (1 - F)^(u/R)) + (1 - (1 - pB)^k) * (k + r) * t_p
//! E[T](k) = R(k) * T_R(k) + (X + sum r) * t_p
//! ```
//!
//! and k is the argument of the minimum; of equal ones, the largest. Small units pay by redundancy rounded up and by
//! many chances to fail, large ones by waiting for their repairs. The last term is the time the flow's packets take to
//! leave.
//!
//! This is ours. Eq. 4 as printed (`models/printed/caps.py`) is least at k = w, or nearly, and does not give the optima
//! that the paper prints (k = 29, 31, 33, 40 at pB = 0.2 .. 0.35), which do not follow from this either.

use std::collections::HashMap;

use libm::{exp2, log2, pow};

use crate::coding::decode_probability::decode_probability;
use crate::coding::policy::CodingPolicy;
use crate::coding::redundancy::{Progress, RepairTable, BLOCKING_STEPS};
use crate::time::Seconds;

/// X: packets of a flow at the default limit of short flows, 100 kB in packets of 1426 B.
pub const FLOW_PACKETS: u32 = 71;
/// w0, packets.
pub const INITIAL_WINDOW: u32 = 10;
/// Ratios of times are rounded to powers of 2^(1/RATIO_STEPS) before the search, whose answers are kept.
const RATIO_STEPS: f64 = 4.0;
/// Answers kept; then all are forgotten.
const MOST_KEPT: usize = 1 << 14;

/// What the size of a unit depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathTimes {
    /// pB of one packet.
    pub blocking_probability: f64,
    /// Round-trip time over paths that are not blocked; 0: not known.
    pub rtt_s: Seconds,
    /// Round-trip time over blocked paths.
    pub blocked_rtt_s: Seconds,
    /// t_p: time between two packets of a flow at the sender.
    pub packet_time_s: Seconds,
}

/// Inputs as they are rounded: step of pB, exponents of RTT_b / RTT and of t_p / RTT (None: 0), X.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rounded {
    step: u16,
    blocked: Option<i32>,
    packet_time: Option<i32>,
    flow_packets: u32,
}

impl Rounded {
    /// Returns the rounded inputs, with the RTT as the unit of time.
    fn times(&self) -> PathTimes {
        let ratio =
            |exponent: Option<i32>| exponent.map_or(0.0, |steps| exp2(f64::from(steps) / RATIO_STEPS));
        PathTimes {
            blocking_probability: f64::from(self.step) / BLOCKING_STEPS,
            rtt_s: 1.0,
            blocked_rtt_s: ratio(self.blocked).max(1.0),
            packet_time_s: ratio(self.packet_time),
        }
    }
}

fn exponent(ratio: f64) -> Option<i32> {
    (ratio > 1e-6).then(|| (log2(ratio) * RATIO_STEPS).round_ties_even() as i32)
}

/// Unit sizes that were asked for under one policy.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitSizes {
    known: HashMap<Rounded, u32>,
}

impl UnitSizes {
    /// Returns k in 1 to max_k with the least expected completion time of flows of X packets.
    ///
    /// pB is rounded as r's is: r jumps with pB, and k has to fit it.
    pub fn optimal_k(
        &mut self,
        policy: &CodingPolicy,
        repairs: &mut RepairTable,
        times: &PathTimes,
        flow_packets: u32,
    ) -> u32 {
        let step = (times.blocking_probability.clamp(0.0, 1.0) * BLOCKING_STEPS).round_ties_even() as u16;
        if times.rtt_s.is_nan() || times.rtt_s <= 0.0 || step == 0 {
            return policy.max_k;
        }
        let rounded = Rounded {
            step,
            blocked: exponent((times.blocked_rtt_s / times.rtt_s).max(1.0)),
            packet_time: exponent(times.packet_time_s / times.rtt_s),
            flow_packets: flow_packets.max(1),
        };
        if let Some(&k) = self.known.get(&rounded) {
            return k;
        }
        let best = search(policy, repairs, &rounded);
        if self.known.len() >= MOST_KEPT {
            self.known.clear();
        }
        self.known.insert(rounded, best);
        best
    }
}

fn search(policy: &CodingPolicy, repairs: &mut RepairTable, rounded: &Rounded) -> u32 {
    let (times, mut best, mut least) = (rounded.times(), 1, f64::INFINITY);
    for k in 1..=policy.max_k {
        let cost = completion_time_s(policy, repairs, k, &times, rounded.flow_packets);
        if cost <= least {
            (best, least) = (k, cost);
        }
    }
    best
}

/// Returns E[T](k), the expected completion time of a flow of X packets in units of k.
pub(super) fn completion_time_s(
    policy: &CodingPolicy,
    repairs: &mut RepairTable,
    k: u32,
    times: &PathTimes,
    flow_packets: u32,
) -> Seconds {
    let p = times.blocking_probability;
    let k = k.min(flow_packets);
    let units = flow_packets.div_ceil(k);
    let rest = flow_packets - (units - 1) * k;
    let r = repairs.repairs(policy, p, k, Progress::default());
    let packets = flow_packets + (units - 1) * r + repairs.repairs(policy, p, rest, Progress::default());
    let rounds = log2(f64::from(packets) / f64::from(INITIAL_WINDOW) + 1.0).max(1.0);
    let decodes = decode_probability(policy.code, k, r, p);
    let fails = 1.0 - pow(decodes, f64::from(units) / rounds);
    let waits = 1.0 - pow(1.0 - p, f64::from(k));
    let round_s = times.rtt_s
        + (times.blocked_rtt_s - times.rtt_s) * fails
        + waits * f64::from(k + r) * times.packet_time_s;
    rounds * round_s + f64::from(packets) * times.packet_time_s
}
