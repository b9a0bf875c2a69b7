//! Buffers that a switch's ports share: what saturated queues come to hold, and which ports share one.

use crate::runs::{leaf_spine, GBPS};
use simulator::config::{Config, Lengths};
use simulator::flow::Demand;
use simulator::paths::Balancing;
use simulator::queue::{Buffer, Discipline, Limit};
use simulator::sharing::Sharing;
use simulator::simulation::Simulation;
use simulator::time::{Rate, MILLISECOND};
use simulator::topology::{FatTree, Shape, Topology};
use simulator::transport::{pfabric, Transport};

const WIRE: u64 = 1500;

fn config(shape: Shape, discipline: Discipline) -> Config {
    Config {
        shape,
        changes: Vec::new(),
        buffer: Buffer { discipline, limit: Limit::Endless, mark_from: 0, drops_unmarkable: false },
        lengths: Lengths { payload: 1460, header: 40, acknowledgement: 40 },
        // so many packets as never stop coming, each sent again where it was dropped
        transport: Transport::PFabric(pfabric::Settings {
            initial_window: 4000,
            largest_window: 4000,
            timeout: 50 * MILLISECOND,
        }),
        balancing: Balancing::Turn,
        seed: 1,
    }
}

fn run(config: Config, sharing: Sharing, demands: Vec<Demand>) -> Simulation {
    let mut simulation = Simulation::new(config, demands).unwrap();
    simulation.share(sharing).unwrap();
    simulation.run_until(u64::MAX, 3 * MILLISECOND).unwrap();
    simulation
}

fn demand(source: u32, destination: u32, level: u32) -> Demand {
    Demand { start: 0, source, destination, bytes: 4000 * 1460, level }
}

/// Make three hosts send to each of so many others of the same leaf.
fn into(queues: u32) -> Vec<Demand> {
    (0..queues).flat_map(|queue| (0..3).map(move |sender| demand(8 + 3 * queue + sender, queue, 0))).collect()
}

#[test]
fn saturated_queues_each_hold_what_the_closed_form_says() {
    let shape = leaf_spine(1, 40, 1, 10, 10);
    for (queues, alpha, bytes) in
        [(1, 1.0, 300_000), (2, 1.0, 300_000), (4, 0.5, 600_000), (8, 2.0, 900_000), (3, 8.0, 300_000)]
    {
        let simulation = run(config(shape, Discipline::Fifo), Sharing { bytes, alpha }, into(queues));
        let share = alpha * bytes as f64 / (1.0 + f64::from(queues) * alpha);
        let mut held = 0.0;
        for queue in 0..queues {
            let port = &simulation.ports()[40 + queue as usize];
            let waiting = (port.held().0 as u64 * WIRE) as f64;
            // one packet is what did not fit, another has left and is not yet replaced
            let apart = (waiting - share).abs();
            assert!(apart <= 2.0 * WIRE as f64, "{waiting} B, not {share}: {queues} queues, alpha {alpha}");
            assert!(port.counters.dropped > 0);
            held += waiting;
        }
        assert!(held <= bytes as f64);
    }
}

#[test]
fn each_queue_of_a_port_has_the_threshold_by_itself() {
    let sharing = Sharing { bytes: 600_000, alpha: 0.5 };
    let of_one_queue = 400 / 3;
    let demands: Vec<Demand> = (0..6).map(|sender| demand(8 + sender, 0, sender % 2)).collect();
    let held = |discipline| {
        run(config(leaf_spine(1, 40, 1, 10, 10), discipline), sharing, demands.clone()).ports()[40].held().0
    };
    assert!(held(Discipline::Fifo) <= of_one_queue);
    let of_two = held(Discipline::Queues(2));
    assert!(of_two > of_one_queue + 20 && of_two <= 2 * of_one_queue, "{of_two} packets");
}

#[test]
fn a_switch_that_is_idle_leaves_all_of_its_buffer_to_one_queue_and_others_have_their_own() {
    let shape = leaf_spine(2, 20, 1, 10, 40);
    let demands =
        |first: u32| -> Vec<Demand> { (1..4).map(|sender| demand(first + sender, first, 0)).collect() };
    let sharing = Sharing { bytes: 300_000, alpha: 1.0 };
    let alone = run(config(shape, Discipline::Fifo), sharing, demands(0));
    let both = run(config(shape, Discipline::Fifo), sharing, [demands(0), demands(20)].concat());
    let waiting = |of: &Simulation, host: usize| of.ports()[40 + host].held().0;
    assert!((waiting(&alone, 0) as i64 - 100).abs() <= 2);
    assert!((waiting(&both, 0) as i64 - 100).abs() <= 2, "the other leaf's queue takes none of it");
    assert!((waiting(&both, 20) as i64 - 100).abs() <= 2);
}

#[test]
fn every_switch_has_as_many_ports_as_its_shape_says() {
    let rate = Rate::new(10 * GBPS);
    let shapes = [
        (leaf_spine(3, 4, 5, 10, 10), vec![(3, 4 + 5), (5, 3)]),
        (Shape::FatTree(FatTree { k: 4, host_rate: rate, fabric_rate: rate, delay: 0 }), vec![(20, 4)]),
    ];
    for (shape, expected) in shapes {
        let topology = Topology::new(shape, &[]).unwrap();
        let mut ports = std::collections::BTreeMap::new();
        for link in 0..topology.links.len() as u32 {
            if let Some(switch) = topology.switch_of(link) {
                *ports.entry(switch).or_insert(0) += 1;
            }
            assert_eq!(topology.switch_of(link).is_none(), link < topology.hosts());
        }
        let counts: Vec<i32> = ports.into_values().collect();
        let expected: Vec<i32> =
            expected.into_iter().flat_map(|(switches, ports)| vec![ports; switches]).collect();
        assert_eq!(counts, expected);
        // what comes to a switch leaves it at a port of the same switch: down, and up on the way back
        let (here, there) = (0, topology.hosts() - 1);
        for &path in topology.paths(here, there) {
            let (to, back) = (topology.route(here, there, path), topology.route(there, here, path));
            for (place, &link) in to.iter().enumerate().skip(1) {
                assert_eq!(topology.switch_of(link), topology.switch_of(back[to.len() - place]));
            }
        }
    }
}

#[test]
fn what_cannot_be_shared_says_so() {
    let make = |discipline, bytes, alpha| {
        let demands = vec![demand(0, 1, 0)];
        let shape = leaf_spine(1, 2, 1, 10, 10);
        Simulation::new(config(shape, discipline), demands).unwrap().share(Sharing { bytes, alpha })
    };
    assert!(make(Discipline::Fifo, 3000, 0.5).is_ok());
    for (discipline, bytes, alpha, words) in [
        (Discipline::PFabric, 3000, 1.0, "share no buffer"),
        (Discipline::Fifo, 2999, 0.5, "make it larger"),
        (Discipline::Fifo, 1499, 4.0, "make it larger"),
        (Discipline::Fifo, 3000, f64::NAN, "give more than 0"),
    ] {
        assert!(make(discipline, bytes, alpha).unwrap_err().0.contains(words));
    }
}
