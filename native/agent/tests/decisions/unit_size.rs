//! The size of a unit against all sizes, and against what CAPS prints.

use agent::coding::{
    most_repairs, CodingPolicy, CodingRules, PathTimes, RedundancyRule, UnitRule, FLOW_PACKETS,
};
use agent::{Generator, Random};
use coding::Code;
use trials::trials;

fn policy(code: Code, redundancy: RedundancyRule) -> CodingPolicy {
    CodingPolicy {
        code,
        redundancy,
        target_decode_probability: 0.95,
        unit: UnitRule::Optimal,
        max_k: 32,
        max_r: 16,
        max_overhead: 8.0,
        flush_s: 0.005,
    }
}

fn times(blocking_probability: f64, rtt_s: f64, blocked_rtt_s: f64, packet_time_s: f64) -> PathTimes {
    PathTimes { blocking_probability, rtt_s, blocked_rtt_s, packet_time_s }
}

/// At points of the grid to which inputs are rounded, against all k.
#[test]
#[cfg_attr(miri, ignore = "searches all sizes of units")]
fn optimal_k_has_the_least_completion_time() {
    let mut random = Generator::new(3);
    for redundancy in [RedundancyRule::Paper, RedundancyRule::TargetDecodeProbability] {
        for code in [Code::Rlc, Code::Ldpc] {
            for _ in 0..15 {
                let mut rules = CodingRules::new(policy(code, redundancy));
                let p = f64::from(1 + random.below(38)) / 64.0;
                let grid = |steps: f64| 0.001 * libm::exp2(steps / 4.0);
                let blocked_rtt_s = grid(f64::from(random.below(25)));
                let times = times(p, 0.001, blocked_rtt_s, grid(-f64::from(random.below(41))));
                let k = rules.optimal_k(&times, FLOW_PACKETS);
                let least = (1..=32).map(|k| rules.completion_time_s(k, &times, FLOW_PACKETS));
                let least = least.fold(f64::INFINITY, f64::min);
                let chosen = rules.completion_time_s(k, &times, FLOW_PACKETS);
                assert!(chosen <= least * (1.0 + 1e-9), "{code:?} {redundancy:?} {times:?}: {k}");
            }
        }
    }
}

#[test]
fn slow_access_links_want_small_units_and_unblocked_ones_the_largest() {
    let mut rules = CodingRules::new(policy(Code::Rlc, RedundancyRule::TargetDecodeProbability));
    let mut optimal = |times| rules.optimal_k(&times, FLOW_PACKETS);
    assert!(optimal(times(0.2, 0.001, 0.1, 0.0005)) < optimal(times(0.2, 0.001, 0.1, 0.0)));
    assert_eq!(optimal(times(0.0, 0.001, 0.1, 0.0005)), 32);
    assert_eq!(optimal(times(0.2, 0.0, 0.0, 0.0)), 32);
}

/// Known contradiction (docs/coding.md): CAPS prints 29, 31, 33, 40 for pB = 0.2, 0.25, 0.3, 0.35.
#[test]
fn the_papers_printed_optima_do_not_follow() {
    let widest = CodingPolicy { max_k: 64, max_r: 64, ..policy(Code::Rlc, RedundancyRule::Paper) };
    let mut rules = CodingRules::new(widest);
    let ours = [0.2, 0.25, 0.3, 0.35].map(|p| rules.optimal_k(&times(p, 0.001, 0.01, 0.0), FLOW_PACKETS));
    assert_eq!(ours, [37, 37, 42, 37]);
}

#[test]
fn repairs_are_bounded_by_policy_share_and_code() {
    let bound = |code, k, max_r, max_overhead| {
        let policy = CodingPolicy { max_r, max_overhead, ..policy(code, RedundancyRule::Paper) };
        CodingRules::new(policy).repair_bound(k)
    };
    assert_eq!(bound(Code::Rlc, 20, 12, 8.0), 12);
    assert_eq!(bound(Code::Rlc, 20, 12, 0.25), 5);
    assert_eq!(bound(Code::Xor, 3, 12, 8.0), 3);
    for k in 1..=trials(255) {
        assert!(k + most_repairs(Code::Mds, k) <= 256);
    }
}
