//! Receipts, losses and recoveries as the Python agent gathered them (recorded at d7038cc), and early repairs.

use std::collections::BTreeMap;

use crate::support::{recorded, Words};
use agent::receiving::{EarlyRepairs, PendingFeedback, MAX_EARLY_REPAIRS};
use agent::serial::NumberRange;
use agent::underlay::is_stamp;
use agent::{Generator, LeastDelay, Random};
use trials::trials;

fn stamps(ports: &str) -> Vec<u16> {
    let ports = ports.split(',').map(|port| port.parse().expect("a port"));
    ports.map(|port: u16| if is_stamp(port) { port } else { 0 }).collect()
}

#[test]
fn feedback_is_gathered_as_recorded() {
    let (mut pending, mut least) = (PendingFeedback::default(), LeastDelay::default());
    for (line_number, line) in recorded(include_str!("../vectors/receipts.txt")) {
        let mut words = Words::of(line);
        let (said, recorded) = match words.word() {
            "new" => {
                (pending, least) = (PendingFeedback::default(), LeastDelay::default());
                continue;
            }
            "one" => {
                let (number, stamp) = (words.number(), words.number());
                let due = pending.receipts(number, &[stamp], words.number(), false);
                (u8::from(due).to_string(), words.word().into())
            }
            "run" => {
                let (first, delay_us) = (words.number(), words.number());
                let due = pending.receipts(first, &stamps(words.word()), delay_us, false);
                (u8::from(due).to_string(), words.word().into())
            }
            "lost" => {
                pending.recovered(words.number());
                pending.lost(words.word().split(',').map(|range| {
                    let (first, count) = range.split_once('+').expect("first and count");
                    NumberRange { first: first.parse().expect("first"), count: count.parse().expect("count") }
                }));
                continue;
            }
            "above" => (least.above(words.number(), 0.0).to_string(), words.word().into()),
            _ => {
                assert_eq!(u8::from(!pending.is_empty()).to_string(), words.word(), "line {line_number}");
                let bodies = pending.take();
                assert!(pending.is_empty());
                let hex = |body: &[u8]| body.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let bodies: Vec<String> = bodies.iter().map(|feedback| hex(&feedback.encode())).collect();
                (bodies.join(" "), words.rest::<String>().join(" "))
            }
        };
        assert_eq!(said, recorded, "line {line_number}: {line}");
    }
}

#[test]
fn early_repairs_are_bounded_and_the_flow_that_waits_longest_goes_first() {
    let (mut early, mut draws) = (EarlyRepairs::default(), Generator::new(1));
    let mut model = BTreeMap::<u32, (u32, Vec<u32>)>::new();
    for step in 0..trials(5000) {
        let flow = draws.below(9);
        if draws.below(20) == 0 {
            let kept = model.remove(&flow).map_or_else(Vec::new, |(_, repairs)| repairs);
            assert_eq!(early.take(flow), kept);
            continue;
        }
        model.entry(flow).or_insert((step, Vec::new())).1.push(step);
        let mut gone = 0;
        if model.values().map(|(_, repairs)| repairs.len()).sum::<usize>() > MAX_EARLY_REPAIRS {
            let oldest = *model.iter().min_by_key(|(_, (since, _))| since).expect("one").0;
            gone = model.remove(&oldest).map_or(0, |(_, repairs)| repairs.len());
        }
        assert_eq!(early.keep(flow, step), gone);
        assert_eq!(early.is_empty(), model.is_empty());
    }
}
