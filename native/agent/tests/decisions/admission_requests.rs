//! Requests and what was decided of them, as the Python agent had it (recorded at d7038cc), but that a decision which
//! answers a request answers those that had repeated it, too.

use std::collections::VecDeque;

use crate::support::{recorded, Words};
use agent::admission::{Decision, Message, MessageBody, RequestState, RequestTimes, Requests};

fn text(message: &Message<String>) -> String {
    let Message { sequence, flow, body } = message;
    match body {
        MessageBody::Request { destination, bytes_left } => {
            format!("R{sequence},{flow},{destination},{bytes_left}")
        }
        MessageBody::Finished => format!("F{sequence},{flow}"),
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:?}"))
}

#[test]
fn flows_ask_and_are_decided_as_recorded() {
    let times = RequestTimes { retry_s: 0.0, refresh_s: 0.0, fail_safe_s: 0.0 };
    let mut requests = Requests::<String>::new(times, 0);
    let mut latencies = 0;
    for (number, line) in recorded(include_str!("../vectors/admission_requests.txt")) {
        let mut words = Words::of(line);
        let kind = words.word();
        let mut flow = 0;
        let said = match kind {
            "new" => {
                let times = RequestTimes {
                    retry_s: words.number(),
                    refresh_s: words.number(),
                    fail_safe_s: words.number(),
                };
                (requests, latencies) = (Requests::new(times, words.number()), 0);
                continue;
            }
            "latencies" => continue,
            "ask" => {
                flow = words.number();
                requests.ask(flow, words.word().into(), words.number(), words.number());
                ".".into()
            }
            "left" => {
                flow = words.number();
                requests.left(flow, words.number::<i64>().max(0) as u64);
                ".".into()
            }
            "end" => {
                flow = words.number();
                requests.end(flow);
                ".".into()
            }
            "grant" | "stop" => {
                let sequence = words.number();
                flow = words.number();
                let answers = words.number();
                let (rate_bps, stamp) =
                    if kind == "grant" { (words.number(), words.number()) } else { (0, 0) };
                let decision = Decision { sequence, flow, answers, rate_bps, stamp };
                u8::from(requests.decided(decision, words.number())).to_string()
            }
            "timer" => {
                let freed: Vec<String> =
                    requests.handle_timer(words.number()).iter().map(u32::to_string).collect();
                format!("f{}", freed.join(","))
            }
            "connected" => {
                requests.connected(words.number());
                ".".into()
            }
            _ => format!("m{}", requests.take_messages().iter().map(text).collect::<Vec<_>>().join(" ")),
        };
        let rest = words.rest::<String>().join(" ");
        let (recorded, standing) = rest.split_once(" | ").expect("two parts");
        assert_eq!(said, recorded, "line {number}: {line}");
        latencies += requests.take_latencies().len();
        let states = [RequestState::Granted, RequestState::Waiting, RequestState::Unscheduled];
        let counts = requests.counters();
        let counts = [
            ("decisions_late", counts.decisions_late),
            ("flows_unscheduled_by_fail_safe", counts.flows_unscheduled_by_fail_safe),
            ("grants", counts.grants),
            ("stops", counts.stops),
        ];
        let counts = counts.iter().filter(|total| total.1 > 0).map(|(name, count)| format!("{name}={count}"));
        let recorded: Vec<&str> = standing.split(' ').collect();
        let [granted, waiting, unscheduled] = states.map(|state| requests.standing(state).to_string());
        let said = [optional(requests.deadline()), granted, waiting, unscheduled];
        assert_eq!(recorded[..4], said, "line {number}: {line}");
        if flow > 0 {
            let rate = requests.rate_bps(flow).map_or("inf".into(), |rate| format!("{:?}", rate as f64));
            let state = requests.state(flow).map_or("-".into(), |state| format!("{state:?}").to_lowercase());
            let said = [rate, requests.stamp(flow).to_string(), state];
            assert_eq!(recorded[4..7], said, "line {number}: {line}");
        }
        let said = [
            requests.len().to_string(),
            requests.sequence().to_string(),
            latencies.to_string(),
            counts.collect::<Vec<_>>().join("+"),
        ];
        assert_eq!(recorded[7..].join(" "), said.join(" ").trim_end(), "line {number}: {line}");
    }
}

/// A decision that takes longer than `retry_s` answers a request that has been repeated meanwhile.
#[test]
fn a_controller_that_takes_as_long_as_two_repeats_is_no_silent_one() {
    let times = RequestTimes { retry_s: 0.02, refresh_s: 0.25, fail_safe_s: 0.1 };
    let mut requests = Requests::<u8>::new(times, 0);
    let mut on_their_way = VecDeque::new();
    let mut asked = 0;
    requests.ask(1, 2, 1_000_000, 0.0);
    for step in 0..=300 {
        let now = 0.01 * f64::from(step);
        requests.handle_timer(now);
        for message in requests.take_messages() {
            asked += 1;
            on_their_way.push_back((step + 5, message.sequence));
        }
        while let Some(&(due, answers)) = on_their_way.front() {
            if due > step {
                break;
            }
            on_their_way.pop_front();
            requests
                .decided(Decision { sequence: answers, flow: 1, answers, rate_bps: 8_000, stamp: 0 }, now);
        }
        let expected = if step < 5 { RequestState::Waiting } else { RequestState::Granted };
        assert_eq!(requests.state(1), Some(expected), "at {now} s");
    }
    assert_eq!(requests.counters().flows_unscheduled_by_fail_safe, 0);
    assert!((24..=31).contains(&asked), "a request and two repeats of it each refresh_s: {asked}");
    assert!(requests.take_latencies().iter().all(|latency| (latency - 0.05).abs() < 1e-9));
}

/// What an earlier controller was asked is no question to the next one.
#[test]
fn a_decision_about_requests_of_before_a_reconnection_answers_none() {
    let times = RequestTimes { retry_s: 0.02, refresh_s: 0.25, fail_safe_s: 0.1 };
    let mut requests = Requests::<u8>::new(times, 0);
    requests.ask(1, 2, 1_000_000, 0.0);
    requests.connected(0.05);
    requests.decided(Decision { sequence: 1, flow: 1, answers: 1, rate_bps: 8_000, stamp: 0 }, 0.06);
    assert_eq!(requests.handle_timer(0.1), [1], "unanswered since it asked at first");
    requests.decided(Decision { sequence: 2, flow: 1, answers: 2, rate_bps: 8_000, stamp: 0 }, 0.11);
    assert!(requests.handle_timer(0.3).is_empty());
    assert_eq!(requests.state(1), Some(RequestState::Granted));
}
