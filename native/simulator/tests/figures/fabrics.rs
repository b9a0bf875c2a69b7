//! Routes of both shapes, links that are down, and a run's repeatability.

use std::collections::BTreeSet;

use crate::runs::{demand, leaf_spine, run, window, Poisson, GBPS};
use simulator::config::Config;
use simulator::flow::Demand;
use simulator::paths::Balancing;
use simulator::queue::{Buffer, Discipline, Limit};
use simulator::simulation::Simulation;
use simulator::time::Rate;
use simulator::topology::{Change, FatTree, LeafSpine, Shape, Tier, Topology};
use simulator::transport::{pfabric, Transport};

fn fat_tree(k: u32) -> Shape {
    let rate = Rate::new(10 * GBPS);
    Shape::FatTree(FatTree { k, host_rate: rate, fabric_rate: rate, delay: 200_000 })
}

fn random_flows(count: u32, hosts: u32, gap_ps: f64) -> Vec<Demand> {
    let mut arrivals = Poisson::new(8, gap_ps);
    (0..count)
        .map(|_| {
            let source = arrivals.below(hosts);
            let destination = (source + 1 + arrivals.below(hosts - 1)) % hosts;
            let packets = 1 + u64::from(arrivals.below(60));
            demand(arrivals.start(), source, destination, packets)
        })
        .collect()
}

#[test]
fn routes_of_a_fat_tree_use_each_tier_once_and_differ() {
    let topology = Topology::new(fat_tree(6), &[]).unwrap();
    assert_eq!(topology.hosts(), 54);
    for (source, destination, paths, tiers) in [
        (0, 1, 0, vec![Tier::HostUp, Tier::HostDown]),
        (0, 8, 3, vec![Tier::HostUp, Tier::LeafUp, Tier::LeafDown, Tier::HostDown]),
        (
            53,
            9,
            9,
            vec![Tier::HostUp, Tier::LeafUp, Tier::CoreUp, Tier::CoreDown, Tier::LeafDown, Tier::HostDown],
        ),
    ] {
        assert_eq!(topology.paths(source, destination).len(), paths);
        let mut routes = BTreeSet::new();
        for &path in topology.paths(source, destination).iter().chain(if paths == 0 { &[0][..] } else { &[] })
        {
            let route = topology.route(source, destination, path);
            let of: Vec<Tier> = route.iter().map(|&link| topology.links[link as usize].tier).collect();
            assert_eq!(of, tiers);
            assert_eq!(route.last(), Some(&(topology.hosts() + destination)));
            routes.insert(route);
        }
        assert_eq!(routes.len(), paths.max(1));
    }
}

#[test]
fn a_link_into_a_fat_trees_switch_has_one_far_end() {
    // All routes over a link go on only to links of one switch: those who share a link share the set of next links'
    // owners. Counted: a core has k links down, one a pod; an aggregation switch k/2 down.
    let topology = Topology::new(fat_tree(4), &[]).unwrap();
    let mut next: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); topology.links.len()];
    let mut before: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); topology.links.len()];
    for source in 0..16 {
        for destination in (0..16).filter(|destination| *destination != source) {
            let paths = topology.paths(source, destination);
            for &path in if paths.is_empty() { &[0][..] } else { paths } {
                for pair in topology.route(source, destination, path).windows(2) {
                    next[pair[0] as usize].insert(pair[1]);
                    before[pair[1] as usize].insert(pair[0]);
                }
            }
        }
    }
    for (link, of) in topology.links.iter().enumerate() {
        let (after, ahead) = (next[link].len(), before[link].len());
        let expected = match of.tier {
            Tier::HostUp => (1 + 2, 0), // the other host of the edge; two aggregation switches
            Tier::LeafUp => (1 + 2, 2), // the pod's other edge, two cores; from two hosts
            Tier::CoreUp => (3, 2),     // three other pods; from two edges
            Tier::CoreDown => (2, 3),   // two edges; from three other pods
            Tier::LeafDown => (2, 1 + 2), // two hosts; from the pod's other edge and two cores
            Tier::HostDown => (0, 1 + 2), // from the other host and two aggregation switches
        };
        assert_eq!((after, ahead), expected, "{link}: {:?}", of.tier);
    }
}

#[test]
fn nothing_is_sent_over_a_link_that_is_down() {
    let shape = leaf_spine(3, 4, 4, 10, 10);
    let Shape::LeafSpine(of) = shape else { unreachable!() };
    let down = LeafSpine::leaf_down(&of, 2, 1);
    for balancing in [Balancing::Turn, Balancing::Random, Balancing::Hash, Balancing::Sum] {
        let mut config = window(shape, balancing);
        config.changes = vec![Change { link: down, rate: 0, delay: None }];
        let simulation = run(config, random_flows(300, 12, 1e6));
        assert_eq!(simulation.ports()[down as usize].counters.offered, 0);
        assert_eq!(simulation.finished(), 300);
        // Other leaves still use that spine.
        assert!(simulation.ports()[LeafSpine::leaf_down(&of, 2, 0) as usize].counters.offered > 0);
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_an_error() {
    let shape = leaf_spine(2, 2, 1, 10, 10);
    let Shape::LeafSpine(of) = shape else { unreachable!() };
    for link in [LeafSpine::leaf_up(&of, 0, 0), 0] {
        let mut config = window(shape, Balancing::Turn);
        config.changes = vec![Change { link, rate: 0, delay: None }];
        assert!(Simulation::new(config, vec![demand(0, 0, 2, 1)]).is_err());
    }
}

#[test]
fn a_run_that_would_carry_nothing_is_an_error() {
    let config = window(leaf_spine(2, 2, 1, 10, 10), Balancing::Turn);
    for demands in [vec![], vec![demand(0, 1, 1, 1)], vec![demand(0, 0, 4, 1)], vec![demand(0, 0, 1, 0)]] {
        assert!(Simulation::new(config.clone(), demands).is_err());
    }
    let mut small = config.clone();
    small.buffer.limit = Limit::Bytes(1499);
    assert!(Simulation::new(small, vec![demand(0, 0, 1, 1)]).is_err());
    // Without a timer a lost packet is lost for good.
    let mut lossy = config;
    lossy.buffer.limit = Limit::Packets(1);
    let demands = (0..3).map(|source| demand(0, source, 3, 20)).collect();
    assert!(Simulation::new(lossy, demands).unwrap().run(1 << 30).is_err());
}

fn pfabric(shape: Shape, seed: u64) -> Config {
    let mut config = window(shape, Balancing::Random);
    config.transport = Transport::PFabric(pfabric::Settings::default());
    config.buffer = Buffer {
        discipline: Discipline::PFabric,
        limit: Limit::Bytes(36_864),
        mark_from: 0,
        drops_unmarkable: false,
    };
    config.seed = seed;
    config
}

#[test]
fn a_seed_gives_the_same_run_whatever_its_steps() {
    let shape = leaf_spine(3, 8, 4, 10, 10);
    let demands = random_flows(400, 24, 1e5);
    let whole = run(pfabric(shape, 4), demands.clone());
    let mut steps = Simulation::new(pfabric(shape, 4), demands.clone()).unwrap();
    while !steps.run(997).unwrap() {}
    assert_eq!(whole.outcomes(), steps.outcomes());
    assert_eq!(whole.totals(), steps.totals());
    assert!(whole.totals().data_dropped > 0, "the load was meant to drop packets");
    assert_ne!(whole.outcomes(), run(pfabric(shape, 5), demands).outcomes());
}

#[test]
fn a_fat_tree_carries_flows_with_and_without_loss() {
    let lossless = run(window(fat_tree(4), Balancing::Hash), random_flows(500, 16, 5e5));
    assert_eq!((lossless.totals().data_dropped, lossless.finished()), (0, 500));
    assert!(lossless.outcomes().iter().all(|of| of.early == 0), "a path per flow keeps its order");
    let lossy = run(pfabric(fat_tree(4), 1), random_flows(500, 16, 5e4));
    assert!(lossy.totals().data_dropped > 0);
    assert_eq!(lossy.finished(), 500);
}
