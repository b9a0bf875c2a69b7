//! Hosts whose flows ask before they send: lone flows to the picosecond, a controller that is silent, messages that are
//! lost, flows that are held.

use crate::runs::{agents, leaf_spine, GBPS, HEADER, OUTER, PAYLOAD};
use agent::admission::{AdmissionPolicy, Decision, MessageBody, RequestTimes};
use agent::paths::PathSettings;
use agent::receiving::{Hold, ReceivePolicy};
use agent::sending::SendPolicy;
use simulator::config::Config;
use simulator::flow::Demand;
use simulator::overlay::{Asking, Central, Group, Groups, Line, Settings};
use simulator::simulation::Simulation;
use simulator::time::{Time, MICROSECOND, MILLISECOND, SECOND};
use simulator::transport::Transport;

const CLOCK: f64 = 500.0;
/// Each way.
const DELAY: Time = 30 * MICROSECOND;
const RATE: u64 = 10 * GBPS;
const FAIL_SAFE: Time = 400 * MICROSECOND;
const RETRY: Time = 200 * MICROSECOND;

fn config(opening: bool) -> Config {
    agents(leaf_spine(2, 2, 4, 10, 10), 100, 64, opening)
}

fn settings(threshold_bytes: u64, flows: usize) -> Settings {
    let packet_time_s = 0.0006;
    let seconds = |time: Time| time as f64 / SECOND as f64 * CLOCK;
    let policy = AdmissionPolicy {
        threshold_bytes,
        times: RequestTimes {
            retry_s: seconds(RETRY),
            refresh_s: seconds(5 * MILLISECOND),
            fail_safe_s: seconds(FAIL_SAFE),
        },
        burst_s: 0.01,
    };
    Settings {
        send: SendPolicy { prior_knowledge: true, ..SendPolicy::plain(packet_time_s) },
        paths: [PathSettings::RoundRobin; 4],
        receive: ReceivePolicy::new(packet_time_s, [0.0, 0.045, 0.045, 0.0].map(Hold::For)),
        groups: [Groups { on: Group::Label, off: Group::Label }; 4],
        central: Central::default(),
        admission: Some(Asking { policy, delay: DELAY, loss: 0.0 }),
        clock: CLOCK,
        addresses: (0..4).map(|host| [10, 128, 0, host]).collect(),
        lines: (0..flows as u16)
            .map(|row| Line { source_port: 10_000 + row, destination_port: 5501, endless: false, twin: None })
            .collect(),
    }
}

/// Run to the end. `answer`: the rate of a request's flow, bit/s of real time; None: no answer.
fn run(
    opening: bool,
    threshold: u64,
    demands: Vec<Demand>,
    answer: impl Fn(u32) -> Option<u64>,
) -> Simulation {
    let settings = settings(threshold, demands.len());
    answered(config(opening), demands, settings, answer)
}

fn answered(
    config: Config,
    demands: Vec<Demand>,
    settings: Settings,
    answer: impl Fn(u32) -> Option<u64>,
) -> Simulation {
    let mut simulation = Simulation::with_overlay(config, demands, settings).unwrap();
    let mut sequence = 0;
    while !simulation.run(1 << 20).unwrap() {
        for (host, message) in simulation.take_asked() {
            let MessageBody::Request { .. } = message.body else { continue };
            let Some(rate) = answer(host) else { continue };
            sequence += 1;
            let (flow, answers) = (message.flow, message.sequence);
            let rate_bps = (rate as f64 / CLOCK) as u64;
            simulation.decide(host, Decision { sequence, flow, answers, rate_bps, stamp: 0 }).unwrap();
        }
    }
    simulation
}

fn demand(start: Time, source: u32, destination: u32, bytes: u64) -> Demand {
    Demand { start, source, destination, bytes, level: 0 }
}

/// Return the time of a packet of so many bytes inside, over four links of 0.2 us each.
fn way(bytes: u64) -> Time {
    4 * ((u64::from(OUTER) + bytes) * 8 * SECOND / RATE + 200_000)
}

fn completed(simulation: &Simulation, row: usize) -> Time {
    simulation.outcomes()[row].completed.expect("it has ended")
}

#[test]
fn a_lone_flow_takes_its_ideal_time_and_a_round_trip_to_the_controller() {
    let header = u64::from(HEADER);
    for bytes in [1u64, 700, u64::from(PAYLOAD)] {
        let there_and_back = way(header + bytes) + way(header);
        let simulation = run(false, 0, vec![demand(777, 0, 3, bytes)], |_| Some(RATE));
        assert_eq!(completed(&simulation, 0), 777 + 2 * DELAY + there_and_back);
        // A handshake and the request go at the same time.
        let simulation = run(true, 0, vec![demand(777, 0, 3, bytes)], |_| Some(RATE));
        assert_eq!(completed(&simulation, 0), 777 + (2 * way(header)).max(2 * DELAY) + there_and_back);
        // What is small asks not.
        let simulation = run(false, bytes, vec![demand(777, 0, 3, bytes)], |_| Some(RATE));
        assert_eq!(completed(&simulation, 0), 777 + there_and_back);
    }
}

#[test]
fn a_granted_flow_keeps_to_its_rate() {
    let bytes = 2_000_000u64;
    let share = |part: u64| {
        let simulation = run(false, 0, vec![demand(0, 0, 3, bytes)], |_| Some(RATE / part));
        assert_eq!(simulation.outcomes()[0].resent, 0);
        completed(&simulation, 0) as f64
    };
    let on_link = bytes as f64 * (PAYLOAD as f64 + 189.0) / PAYLOAD as f64 * 8.0;
    for part in [1, 2, 5] {
        let ideal = on_link / (RATE / part) as f64 * SECOND as f64;
        let longer = share(part) / ideal;
        assert!((0.97..1.06).contains(&longer), "1/{part} of the rate: {longer} of the ideal time");
    }
}

#[test]
fn without_an_answer_a_flow_goes_on_after_the_fail_safe_time() {
    let simulation = run(false, 0, vec![demand(0, 0, 3, 1000)], |_| None);
    assert_eq!(completed(&simulation, 0), FAIL_SAFE + way(u64::from(HEADER) + 1000) + way(u64::from(HEADER)));
    let counted: u64 =
        simulation.admission_counts().iter().map(|of| of.requests.flows_unscheduled_by_fail_safe).sum();
    assert_eq!(counted, 1);
}

#[test]
fn what_is_lost_is_asked_for_again_until_it_and_its_answer_arrive() {
    const SEEDS: u64 = 400;
    let ideal = 2 * DELAY + way(u64::from(HEADER) + 1000) + way(u64::from(HEADER));
    let repeats = |loss: f64, seed: u64| {
        let mut settings = settings(0, 1);
        let Some(asking) = &mut settings.admission else { unreachable!() };
        asking.loss = loss;
        asking.policy.times.fail_safe_s = 1e6;
        let config = Config { seed, ..config(false) };
        let of = answered(config, vec![demand(0, 0, 3, 1000)], settings, |_| Some(RATE));
        let more = completed(&of, 0) - ideal;
        // Agents' clocks are floats: a time of theirs is off by less than a nanosecond.
        let number = (more + RETRY / 2) / RETRY;
        assert!(more.abs_diff(number * RETRY) < 1000 * (number + 1), "{more} ps more than without losses");
        number
    };
    assert!((0..20).all(|seed| repeats(0.0, seed) == 0));
    for loss in [0.2f64, 0.5] {
        // Request and answer both have to arrive: the number of repeats is geometric.
        let arrives = (1.0 - loss).powi(2);
        let (mean, deviation) = ((1.0 - arrives) / arrives, (1.0 - arrives).sqrt() / arrives);
        let found = (0..SEEDS).map(|seed| repeats(loss, seed)).sum::<u64>() as f64 / SEEDS as f64;
        let within = 4.0 * deviation / (SEEDS as f64).sqrt();
        assert!((found - mean).abs() < within, "{found} repeats at a loss of {loss}, expected {mean}");
    }
}

#[test]
fn all_or_less_than_no_messages_cannot_be_lost() {
    for loss in [1.0, -0.1, f64::NAN] {
        let mut settings = settings(0, 1);
        settings.admission = settings.admission.map(|asking| Asking { loss, ..asking });
        let run = Simulation::with_overlay(config(false), vec![demand(0, 0, 3, 1)], settings);
        assert!(run.is_err_and(|error| error.to_string().contains("control messages")), "{loss}");
    }
}

#[test]
fn a_flow_that_waits_sends_nothing_and_small_ones_pass_it() {
    let demands = vec![demand(0, 0, 3, 500_000), demand(0, 1, 2, 5_000)];
    let settings = settings(10_000, demands.len());
    let mut simulation = Simulation::with_overlay(config(false), demands, settings).unwrap();
    let mut sequence = 0;
    while !simulation.run_until(1 << 20, 20 * MILLISECOND).unwrap() {
        for (host, message) in simulation.take_asked() {
            sequence += 1;
            let (flow, answers) = (message.flow, message.sequence);
            simulation.decide(host, Decision { sequence, flow, answers, rate_bps: 0, stamp: 0 }).unwrap();
        }
    }
    assert_eq!(simulation.finished(), 1);
    assert_eq!(simulation.acknowledged(0), 0);
    assert_eq!(simulation.totals().data_sent, 4, "the other one's");
    simulation.stop().unwrap();
    assert!(simulation.outcomes()[0].completed.is_none() && simulation.outcomes()[1].completed.is_some());
}

#[test]
fn a_decision_for_no_host_is_an_error() {
    let mut simulation =
        Simulation::with_overlay(config(false), vec![demand(0, 0, 3, 1)], settings(0, 1)).unwrap();
    let decision = Decision { sequence: 1, flow: 1, answers: 1, rate_bps: 1, stamp: 0 };
    assert!(simulation.decide(4, decision).unwrap_err().to_string().contains("host 4"));
    let fixed = Config { transport: Transport::Fixed { window: 12 }, ..config(false) };
    assert!(Simulation::with_overlay(fixed, vec![demand(0, 0, 3, 1)], settings(0, 1)).is_err());
}
