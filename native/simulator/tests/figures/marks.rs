//! Estimates of the blocking probability by switches' marks, in runs of hosts with agents.

use crate::overlay::{crowd, settings};
use crate::runs::{agents, leaf_spine, tcp};
use agent::blocking::{EstimatorKind, MAX_BLOCKING_PROBABILITY};
use agent::coding::RedundancyRule;
use agent::paths::PathSettings;
use agent::sending::EstimatorChoice;
use coding::Code;
use simulator::overlay::Group;
use simulator::simulation::Simulation;
use simulator::time::MICROSECOND;
use simulator::transport::tcp::Control;
use simulator::transport::Transport;

const HOSTS: u32 = 12;

/// Return the mean estimate while 150 flows run, and the repairs for each of the hosts' packets; ports that hold 400
/// packets mark from so many on (0: never).
fn estimate_and_repairs(kind: EstimatorKind, mark_from: u32) -> (f64, f64) {
    let demands = crowd(HOSTS, 4, 150);
    let mut settings = settings(PathSettings::Spray, Group::Spray, Some(Code::Mds), HOSTS, demands.len());
    settings.send.estimator = Some(EstimatorChoice { kind, sampling_s: Some(0.1) });
    for coding in settings.send.coding.iter_mut().flatten() {
        coding.redundancy = RedundancyRule::TargetDecodeProbability;
    }
    let mut config = agents(leaf_spine(3, 4, 4, 10, 10), 400, 10, true);
    config.transport = Transport::Tcp(tcp(Control::Dctcp, 10));
    config.buffer.mark_from = mark_from;
    let mut simulation = Simulation::with_overlay(config, demands, settings).unwrap();
    let (mut sum, mut count, mut until) = (0.0, 0u32, 0);
    while !simulation.is_over() {
        until += 50 * MICROSECOND;
        simulation.run_until(u64::MAX, until).unwrap();
        for pair in 0..HOSTS * HOSTS {
            let Some(estimate) = simulation.blocking_probability(pair / HOSTS, pair % HOSTS) else {
                continue;
            };
            assert!((0.0..=MAX_BLOCKING_PROBABILITY).contains(&estimate));
            (sum, count) = (sum + estimate, count + 1);
        }
    }
    let records = simulation.records();
    let packets: u64 = records.iter().map(|record| record.packets).sum();
    let repairs: u64 = records.iter().map(|record| record.repairs).sum();
    (sum / f64::from(count), repairs as f64 / packets as f64)
}

#[test]
fn the_estimate_by_marks_rises_with_them_and_repairs_with_it() {
    let by_marks = [0, 60, 20, 3].map(|mark_from| estimate_and_repairs(EstimatorKind::Marks, mark_from));
    for (fewer, more) in by_marks.iter().zip(&by_marks[1..]) {
        assert!(fewer.0 < more.0 && fewer.1 < more.1, "{by_marks:?}");
    }
    let by_losses = [0, 3].map(|mark_from| estimate_and_repairs(EstimatorKind::LossRate, mark_from));
    assert_eq!(by_marks[0], by_losses[0], "where nothing marks it is the rate of losses");
    assert!(
        by_marks[3].0 > 1.5 * by_losses[1].0 && by_marks[3].1 > 1.5 * by_losses[1].1,
        "{by_marks:?} {by_losses:?}"
    );
}
