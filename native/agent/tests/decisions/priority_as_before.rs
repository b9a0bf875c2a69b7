//! Priorities are those that the Python of commit d7038cc gave, on recorded flows.

use std::sync::Arc;

use crate::support::{recorded, Words};
use agent::priority::{
    Feature, FlowPriority, FlowTypes, Priorities, PriorityPolicy, PriorityRule, Subject, Typed, NEVER,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit") as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn check(flow: &FlowPriority, words: &mut Words, line: &str) {
    let demote_at = match words.word() {
        "never" => NEVER,
        at => at.parse().expect("bytes"),
    };
    assert_eq!(flow.demote_at, demote_at, "{line}");
    assert_eq!(flow.tos.to_vec(), words.rest::<u8>(), "{line}");
}

#[test]
fn priorities_are_as_recorded() {
    let (mut policy, mut types) = (PriorityPolicy::default(), FlowTypes::default());
    let (mut priorities, mut flow, mut checked) = (Priorities::default(), FlowPriority::default(), [0; 3]);
    for (_, line) in recorded(include_str!("../vectors/priority.txt")) {
        let mut words = Words::of(line);
        match words.word() {
            "policy" => {
                let rule = match words.word() {
                    "class" => PriorityRule::Class,
                    "bytes-sent" => PriorityRule::Sent,
                    "size" => PriorityRule::Size,
                    other => panic!("no rule is called {other}"),
                };
                let of_class = [0, words.number(), words.number(), words.number()];
                let predicted = words.number::<u8>() == 1;
                policy = PriorityPolicy { rule, of_class, predicted, thresholds: Arc::from(words.rest()) };
                types = FlowTypes::default();
                priorities.set(policy.clone(), types.clone());
            }
            "features" => {
                types.features = words.rest::<String>().iter().map(|name| feature(name)).collect();
            }
            "type" => {
                types.of_value.insert(bytes(words.word()), Arc::from(words.rest()));
                priorities.set(policy.clone(), types.clone());
            }
            "assign" => {
                let key = bytes(words.word());
                let payload = words.number();
                let announced = match words.word() {
                    "None" => None,
                    size => Some(size.parse().expect("bytes")),
                };
                if payload == 0 {
                    flow = FlowPriority::default();
                }
                let typed = priorities.assign(Subject { key: &key, payload, announced }, &mut flow);
                let expected = match words.word() {
                    "known" => Typed::Known,
                    "unknown" => Typed::Unknown,
                    _ => Typed::NotAsked,
                };
                assert_eq!(typed, expected, "{line}");
                check(&flow, &mut words, line);
                checked[typed as usize] += 1;
            }
            "demote" => {
                priorities.demote(words.number(), &mut flow);
                check(&flow, &mut words, line);
            }
            other => panic!("no event is called {other}"),
        }
    }
    assert!(cfg!(miri) || checked.iter().all(|&count| count > 30), "{checked:?}");
}

fn feature(name: &str) -> Feature {
    match name {
        "source" => Feature::Source,
        "destination" => Feature::Destination,
        "source_port" => Feature::SourcePort,
        "destination_port" => Feature::DestinationPort,
        other => panic!("no feature is called {other}"),
    }
}
