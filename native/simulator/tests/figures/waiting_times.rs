//! Mean waits at a port against queueing theory. Packets come as a Poisson process from 64 hosts with links of 100 Gbit/s,
//! and meet at the one link of 10 Gbit/s of their leaf to the spine.

use crate::runs::{leaf_spine, run, window, Poisson, GBPS};
use simulator::flow::Demand;
use simulator::paths::Balancing;
use simulator::queue::Discipline;
use simulator::topology::{Change, Shape};

const HOSTS: u32 = 64;
const PACKETS: u64 = 200_000;
/// Of the wire at the slow and the fast links.
const SLOW: f64 = 800.0;
const FAST: f64 = 80.0;

struct Class {
    level: u32,
    bytes: u64,
}

impl Class {
    fn service(&self) -> f64 {
        (self.bytes + 40) as f64 * SLOW
    }

    /// Return the time from start to delivery where nothing waits.
    fn alone(&self) -> f64 {
        (self.bytes + 40) as f64 * (SLOW + 3.0 * FAST) + 4.0 * 200_000.0
    }
}

/// Return each class's mean wait in ps; classes have equal shares of the packets, which load the link to `load`.
fn mean_waits(discipline: Discipline, classes: &[Class], load: f64) -> Vec<f64> {
    let mean: f64 = classes.iter().map(Class::service).sum::<f64>() / classes.len() as f64;
    let mut arrivals = Poisson::new(3, mean / load);
    let mut demands = Vec::new();
    let mut of = Vec::new();
    for _ in 0..PACKETS {
        let class = arrivals.below(classes.len() as u32) as usize;
        let (source, destination) = (arrivals.below(HOSTS), HOSTS + arrivals.below(HOSTS));
        let Class { level, bytes } = classes[class];
        demands.push(Demand { start: arrivals.start(), source, destination, bytes, level });
        of.push(class);
    }
    let shape = leaf_spine(2, HOSTS, 1, 100, 100);
    let Shape::LeafSpine(leaf_spine) = shape else { unreachable!() };
    let mut config = window(shape, Balancing::Turn);
    config.changes = vec![Change { link: leaf_spine.leaf_up(0, 0), rate: 10 * GBPS, delay: None }];
    config.buffer.discipline = discipline;
    let simulation = run(config, demands.clone());
    let mut sums = vec![(0.0, 0.0); classes.len()];
    for ((outcome, demand), class) in simulation.outcomes().iter().zip(&demands).zip(of) {
        let wait = (outcome.delivered.unwrap() - demand.start) as f64 - classes[class].alone();
        sums[class].0 += wait;
        sums[class].1 += 1.0;
    }
    sums.into_iter().map(|(sum, count)| sum / count).collect()
}

fn close(measured: f64, expected: f64, share: f64) {
    assert!(
        (measured / expected - 1.0).abs() < share,
        "{measured:.0} ps measured, {expected:.0} ps expected"
    );
}

#[test]
fn packets_of_one_length_wait_as_in_md1() {
    for load in [0.3, 0.6, 0.8] {
        let class = Class { level: 0, bytes: 1460 };
        let expected = class.service() * load / (2.0 * (1.0 - load));
        // The hosts' own links, a tenth as long and loaded by 1/640, add less than 0.1 %.
        close(mean_waits(Discipline::Fifo, &[class], load)[0], expected, 0.03);
    }
}

#[test]
fn packets_of_two_lengths_wait_as_in_mg1() {
    let (short, long) = (Class { level: 0, bytes: 60 }, Class { level: 0, bytes: 1460 });
    let (s, l) = (short.service(), long.service());
    let load = 0.7;
    // Pollaczek and Khinchine: arrival rate times mean squared service, over 2 (1 - load).
    let expected = load / ((s + l) / 2.0) * ((s * s + l * l) / 2.0) / (2.0 * (1.0 - load));
    let waits = mean_waits(Discipline::Fifo, &[short, long], load);
    // With one queue for both, both wait as long.
    for wait in waits {
        close(wait, expected, 0.03);
    }
}

#[test]
fn strict_levels_wait_as_cobham_says() {
    let load: f64 = 0.8;
    let classes: Vec<Class> = (0..3).map(|level| Class { level, bytes: 1460 }).collect();
    let residual = load * classes[0].service() / 2.0;
    let waits = mean_waits(Discipline::Strict, &classes, load);
    for (level, wait) in waits.into_iter().enumerate() {
        let (before, with) = (load * level as f64 / 3.0, load * (level + 1) as f64 / 3.0);
        close(wait, residual / ((1.0 - before) * (1.0 - with)), 0.04);
    }
}
