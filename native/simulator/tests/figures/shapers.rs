//! Links that are token buckets instead of wires: a packet is at the far end at once, the next one waits.

use crate::runs::{demand, leaf_spine, window};
use simulator::flow::{Demand, Outcome};
use simulator::paths::Balancing;
use simulator::simulation::Simulation;
use simulator::topology::Shape;

const PACKET: u64 = 1500 * 800; // of 1500 B at 10 Gbit/s, in ps
const DELAY: u64 = 200_000;
const START: u64 = 1_000_000_000;

fn shaped(shape: Shape, burst: u32, demands: Vec<Demand>) -> Vec<Outcome> {
    let mut simulation = Simulation::new(window(shape, Balancing::Turn), demands).unwrap();
    let bursts: Vec<(u32, u32)> = (0..simulation.ports().len() as u32).map(|link| (link, burst)).collect();
    simulation.set_bursts(&bursts).unwrap();
    while !simulation.run(1 << 20).unwrap() {}
    simulation.outcomes().to_vec()
}

#[test]
fn a_lone_packet_takes_the_links_delays_alone() {
    let of = shaped(leaf_spine(2, 1, 1, 10, 10), 1600, vec![demand(START, 0, 1, 1)]);
    assert_eq!(of[0].delivered, Some(START + 4 * DELAY));
}

#[test]
fn a_burst_goes_at_once_and_the_rest_at_the_links_rate() {
    for burst in [0, 1600, 3000, 6000] {
        for packets in 1..=12 {
            let of = shaped(leaf_spine(1, 2, 1, 10, 10), burst, vec![demand(START, 0, 1, packets)]);
            let waited = ((packets - 1) * PACKET).saturating_sub(u64::from(burst) * 800);
            assert_eq!(of[0].delivered, Some(START + waited + 2 * DELAY), "{packets} packets, burst {burst}");
        }
    }
}

#[test]
fn a_bucket_fills_no_further_than_to_its_burst() {
    // Three packets at once, a pause after which the debt of 2900 B is paid and the bucket is full, and three again.
    let pause = START + 100 * PACKET;
    let of = shaped(leaf_spine(1, 2, 1, 10, 10), 1600, vec![demand(START, 0, 1, 3), demand(pause, 0, 1, 3)]);
    let waited = 2 * PACKET - 1600 * 800;
    assert_eq!(of[0].delivered, Some(START + waited + 2 * DELAY));
    assert_eq!(of[1].delivered, Some(pause + waited + 2 * DELAY));
}

#[test]
fn a_packet_behind_another_waits_once_where_wires_make_it_wait_at_every_hop() {
    // Both links of the way have the same rate. Behind a full packet, one of 100 B would wait on wires for it at both; of
    // shapers the second has already been paid for when the first lets it go.
    let small = Demand { bytes: 60, ..demand(START + 1, 0, 1, 1) };
    let of = shaped(leaf_spine(1, 2, 1, 10, 10), 0, vec![demand(START, 0, 1, 1), small]);
    assert_eq!(of[1].delivered, Some(START + PACKET + 2 * DELAY));
}

#[test]
fn a_link_that_is_not_there_is_refused() {
    let mut simulation =
        Simulation::new(window(leaf_spine(1, 2, 1, 10, 10), Balancing::Turn), vec![demand(0, 0, 1, 1)])
            .unwrap();
    let error = simulation.set_bursts(&[(99, 1600)]).unwrap_err();
    assert!(error.0.contains("no link 99"));
}
