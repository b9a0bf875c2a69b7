//! Decisions of the coding modules that were Python, reproduced: recorded at commit d7038cc (`tests/vectors`).

mod outcomes;
mod redundancy;
mod unit_size;
mod units;
mod window;

use std::str::FromStr;

use crate::support::{recorded, Words};
use agent::coding::{CodingPolicy, RedundancyRule, UnitRule, Weight};
use coding::Code;

/// The defaults of a policy document.
const WEIGHT: Weight = Weight { full_bytes: 100_000, none_bytes: 1_000_000, fast_retransmit: 3 };

fn code(words: &mut Words) -> Code {
    match words.word() {
        "xor" => Code::Xor,
        "rlc" => Code::Rlc,
        "ldpc" => Code::Ldpc,
        "mds" => Code::Mds,
        other => panic!("no code {other}"),
    }
}

fn rule(words: &mut Words) -> RedundancyRule {
    match words.word() {
        "paper" => RedundancyRule::Paper,
        "target-decode-probability" => RedundancyRule::TargetDecodeProbability,
        "adaptive" => RedundancyRule::Adaptive,
        "htpc" => RedundancyRule::Htpc(WEIGHT),
        "one-per-unit" => RedundancyRule::OnePerUnit,
        other => panic!("no rule {other}"),
    }
}

fn unit_rule(words: &mut Words) -> UnitRule {
    match words.word() {
        "optimal" => UnitRule::Optimal,
        "window" => UnitRule::Window,
        other => panic!("no rule {other}"),
    }
}

/// Reads a policy: CODE RULE target max_k max_r max_overhead.
fn policy(words: &mut Words) -> CodingPolicy {
    CodingPolicy {
        code: code(words),
        redundancy: rule(words),
        target_decode_probability: words.number(),
        unit: UnitRule::Optimal,
        max_k: words.number(),
        max_r: words.number(),
        max_overhead: words.number(),
        flush_s: 0.005,
    }
}

fn optional<T: FromStr>(words: &mut Words) -> Option<T> {
    match words.word() {
        "-" => None,
        word => Some(word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))),
    }
}

/// Asserts equality up to 1e-12, far below any decision: powers and logarithms are the platform's, which differ in the
/// last bit.
#[track_caller]
fn assert_about(ours: f64, recorded: f64) {
    let agrees = (ours - recorded).abs() <= 1e-12 * recorded.abs().max(1e-3);
    assert!(agrees, "{ours:e} where {recorded:e} was recorded");
}

fn lines(text: &str) -> impl Iterator<Item = (&str, Words<'_>)> {
    recorded(text).map(|(_, line)| {
        let mut words = Words::of(line);
        (words.word(), words)
    })
}
