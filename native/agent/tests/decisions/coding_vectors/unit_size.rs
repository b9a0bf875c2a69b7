use agent::coding::{CodingRules, PathTimes};

use super::{assert_about, lines, policy};

#[test]
#[cfg_attr(miri, ignore = "searches all sizes of units")]
fn unit_sizes_are_as_recorded() {
    let mut seen = 0;
    for (kind, mut words) in lines(include_str!("../../vectors/unit_size.txt")) {
        let mut rules = CodingRules::new(policy(&mut words));
        let times = PathTimes {
            blocking_probability: words.number(),
            rtt_s: words.number(),
            blocked_rtt_s: words.number(),
            packet_time_s: words.number(),
        };
        let flow_packets = words.number();
        match kind {
            "size" => {
                let recorded = words.number::<u32>();
                assert_eq!(
                    [(); 2].map(|()| rules.optimal_k(&times, flow_packets)),
                    [recorded; 2],
                    "{times:?}"
                );
            }
            "time" => {
                let ours = rules.completion_time_s(words.number(), &times, flow_packets);
                assert_about(ours, words.number());
            }
            other => panic!("no {other}"),
        }
        seen += 1;
    }
    assert_eq!(seen, 630);
}
