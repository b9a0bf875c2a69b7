//! Decisions of leaf modes and split paths that were Python, reproduced bit for bit: recorded at commit 09c3cf0.

use std::collections::BTreeSet;
use std::str::FromStr;

use fabric::mode::{Cause, Mode, ModeChange, ModeMonitor, ModeRule};
use fabric::partition::{highest_load, PartitionRule, PathPartition};
use trials::recorded;

/// The words of an event, and those of what was recorded of it.
struct Line<'a> {
    text: &'a str,
    event: Vec<&'a str>,
    recorded: Option<Vec<&'a str>>,
}

impl<'a> Line<'a> {
    fn number<T: FromStr>(&self, place: usize) -> T {
        let word = self.event.get(place).unwrap_or_else(|| panic!("{:?} has no word {place}", self.text));
        parsed(word)
    }

    fn expect(&self, ours: &[String]) {
        let recorded = self.recorded.as_ref().unwrap_or_else(|| panic!("{:?} has no result", self.text));
        assert_eq!(ours, recorded, "{}", self.text);
    }
}

fn parsed<T: FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is no number of the kind expected here"))
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    recorded(text).map(|(_, line)| {
        let (event, recorded) = match line.split_once(" =") {
            Some((event, recorded)) => (event, Some(recorded.split_whitespace().collect())),
            None => (line, None),
        };
        Line { text: line, event: event.split_whitespace().collect(), recorded }
    })
}

fn written(value: f64) -> String {
    format!("{value:?}")
}

fn optional(value: Option<f64>) -> Vec<String> {
    vec![value.map_or_else(|| "-".to_string(), written)]
}

fn mode(mode: Mode) -> String {
    if mode == Mode::On { "on" } else { "off" }.to_string()
}

fn change(change: Option<ModeChange>) -> Vec<String> {
    let Some(change) = change else { return vec!["-".to_string()] };
    let cause = match change.cause {
        Cause::FirstPacket => "first-packet",
        Cause::Meter => "meter",
        Cause::Quiet => "quiet",
    };
    vec![mode(change.mode), written(change.at), cause.to_string()]
}

fn numbers(leaves: Vec<u64>) -> Vec<String> {
    leaves.iter().map(ToString::to_string).collect()
}

#[test]
fn leaf_modes_are_as_recorded() {
    let mut watched: Option<ModeMonitor> = None;
    let mut changes = 0;
    for line in lines(include_str!("vectors/mode.txt")) {
        if line.event[0] == "monitor" {
            let rule = ModeRule {
                sampling_packet_times: line.number(1),
                quiet_intervals: line.number(2),
                longest_hold: line.number(3),
            };
            let new = ModeMonitor::new(rule, line.number(4)).unwrap();
            line.expect(&[written(new.sampling_time_s())]);
            watched = Some(new);
            continue;
        }
        let monitor = watched.as_mut().expect("a monitor comes first");
        match line.event[0] {
            "added" => monitor.leaf_added(line.number(1), line.number(2)),
            "removed" => monitor.leaf_removed(line.number(1)),
            "first" => line.expect(&change(monitor.first_packet(line.number(1), line.number(2)))),
            "sample" => {
                let turned = monitor.sample(line.number(1), line.number(2), line.number(3));
                changes += usize::from(turned.is_some());
                line.expect(&change(turned));
            }
            "due" => line.expect(&numbers(monitor.due(line.number(1)))),
            "deadline" => line.expect(&optional(monitor.deadline())),
            "leaf" => {
                let leaf = monitor.leaf(line.number(1)).unwrap();
                line.expect(&[mode(leaf.mode), written(leaf.since), written(leaf.hold_s)]);
            }
            other => panic!("no {other}"),
        }
    }
    assert!(cfg!(miri) || changes > 100, "{changes}");
}

fn paths(word: &str) -> BTreeSet<u16> {
    if word == "-" {
        BTreeSet::new()
    } else {
        word.split(',').map(parsed).collect()
    }
}

fn shown<'a>(paths: impl IntoIterator<Item = &'a u16>) -> String {
    let words: Vec<String> = paths.into_iter().map(ToString::to_string).collect();
    if words.is_empty() {
        "-".to_string()
    } else {
        words.join(",")
    }
}

#[test]
fn splits_are_as_recorded() {
    let mut measured: Option<PathPartition> = None;
    let mut last = fabric::partition::Split::default();
    for line in lines(include_str!("vectors/partition.txt")) {
        match line.event[0] {
            "highest" => {
                // Python's exp was the C library's, which has other last digits
                let ours = highest_load(line.number(1), line.number(2));
                let recorded: f64 = line.recorded.as_ref().map_or(f64::NAN, |words| parsed(words[0]));
                assert!((ours / recorded - 1.0).abs() <= 1e-14, "{}: {ours}", line.text);
                continue;
            }
            "partition" => {
                let rule = PartitionRule {
                    deadline_packet_times: line.number(1),
                    burst_packets: line.number(2),
                    sampling_packet_times: line.number(3),
                    samples: line.number(4),
                };
                let new = PathPartition::new(rule, line.number(5));
                line.expect(&[written(new.sampling_time_s()), written(new.highest_load())]);
                measured = Some(new);
                continue;
            }
            _ => {}
        }
        let partition = measured.as_mut().expect("a partition comes first");
        match line.event[0] {
            "watch" => partition.watch(line.number(1), line.number(2), line.number(3)),
            "sample" => partition.sample(line.number(1), line.number(2), line.number(3), line.number(4)),
            "due" => line.expect(&numbers(partition.due(line.number(1)))),
            "deadline" => line.expect(&optional(partition.deadline())),
            "split" => {
                last = partition.split(line.event[1..].iter().map(|word| paths(word))).clone();
                let share = written(partition.low_latency_share());
                line.expect(&[shown(&last.low_latency), shown(&last.throughput), share]);
            }
            "class" => match last.by_class(&paths(line.event[1])) {
                Some(by) => line.expect(&[shown(&by.short), shown(&by.long), shown(&by.control)]),
                None => line.expect(&["none".to_string()]),
            },
            other => panic!("no {other}"),
        }
    }
}
