//! Long flows share links as max-min fairness says where their windows keep the links' queues filled.

use crate::runs::{demand, leaf_spine, run, window, GBPS};
use simulator::flow::Demand;
use simulator::paths::Balancing;
use simulator::topology::{Change, LeafSpine, Shape};

/// Return the rates in Gbit/s on the wire that flows have from their start until the first ends.
fn rates(config: simulator::config::Config, demands: &[Demand]) -> Vec<f64> {
    let simulation = run(config, demands.to_vec());
    let times = simulation.outcomes().iter().map(|of| of.delivered.unwrap() as f64);
    demands.iter().zip(times).map(|(of, time)| of.bytes as f64 / 1460.0 * 1500.0 * 8000.0 / time).collect()
}

#[test]
fn equal_flows_into_one_host_have_equal_shares() {
    for count in [2, 5, 15] {
        let demands: Vec<Demand> = (0..count).map(|source| demand(0, source, 15, 4000)).collect();
        let config = window(leaf_spine(1, 16, 1, 10, 10), Balancing::Turn);
        for rate in rates(config, &demands) {
            assert!(
                (rate * f64::from(count) / 10.0 - 1.0).abs() < 0.01,
                "{rate} of 10 Gbit/s, {count} flows"
            );
        }
    }
}

#[test]
fn what_a_slow_link_leaves_goes_to_the_others() {
    // Three flows into host 4; the first one's spine has a link of 2 Gbit/s: 2, 4 and 4 Gbit/s, for equally long.
    let shape = leaf_spine(3, 2, 2, 10, 10);
    let Shape::LeafSpine(of) = shape else { unreachable!() };
    let slow = Change { link: LeafSpine::leaf_up(&of, 0, 0), rate: 2 * GBPS, delay: None };
    // By the sum rule: flow 0 from 0 to 4 takes spine 0; flow 1, from 2 to 4, spine 1; flow 2, from 3 to 4, spine 1.
    let demands = [demand(0, 0, 4, 4_000), demand(0, 2, 4, 8_000), demand(0, 3, 4, 8_000)];
    let mut config = window(shape, Balancing::Sum);
    config.changes = vec![slow];
    for (rate, expected) in rates(config, &demands).into_iter().zip([2.0, 4.0, 4.0]) {
        assert!((rate / expected - 1.0_f64).abs() < 0.01, "{rate} Gbit/s, not {expected}");
    }
}
