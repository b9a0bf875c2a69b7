use agent::coding::{
    binomial, decode_probability, flow_weight, htpc_rule, ldpc_failure, most_repairs, paper_rule,
    target_rule, CodingRules, Progress, Target, Weight,
};

use super::{assert_about, code, lines, optional, policy};
use crate::support::tried;

#[test]
fn redundancy_is_as_recorded() {
    let mut seen = 0;
    for (kind, mut words) in lines(include_str!("../../vectors/redundancy.txt")) {
        let words = &mut words;
        match kind {
            "decode" => {
                let ours = decode_probability(code(words), words.number(), words.number(), words.number());
                assert_about(ours, words.number());
            }
            "binomial" => {
                let ours = binomial(words.number(), words.number(), words.number());
                assert_about(ours, words.number());
            }
            "ldpc" => {
                let ours = ldpc_failure(words.number(), words.number(), words.number());
                assert_eq!(ours, words.number::<f64>());
            }
            "most" => assert_eq!(most_repairs(code(words), words.number()), words.number::<u32>()),
            "paper" => assert_eq!(paper_rule(words.number(), words.number()), words.number::<u32>()),
            "htpc" => {
                let (k, p) = (words.number(), words.number());
                let (full_bytes, none_bytes) = (words.number(), words.number());
                let weight = Weight { full_bytes, none_bytes, fast_retransmit: words.number() };
                let flow = Progress { sent_bytes: words.number(), window: optional(words) };
                assert_eq!(flow_weight(&weight, flow.sent_bytes), words.number::<f64>());
                assert_eq!(htpc_rule(k, p, &weight, flow), words.number::<u32>());
            }
            "target" => {
                let (code, k) = (code(words), words.number());
                let (blocking_probability, probability) = (words.number(), words.number());
                let unit = Target { code, k, blocking_probability, probability };
                assert_eq!(target_rule(unit, words.number()), words.number::<u32>());
            }
            "repairs" => {
                let mut rules = CodingRules::new(policy(words));
                let (k, p) = (words.number(), words.number());
                let flow = Progress { sent_bytes: words.number(), window: optional(words) };
                assert_eq!(rules.repair_bound(k), words.number::<u32>());
                let recorded = words.number::<u32>();
                assert_eq!([(); 2].map(|()| rules.repairs(p, k, flow)), [recorded; 2], "twice the same");
            }
            other => panic!("no {other}"),
        }
        seen += 1;
    }
    assert_eq!(seen, tried(1588));
}
