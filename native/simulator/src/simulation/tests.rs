//! The clock, and how many events and entries of the heap a run has.

use super::*;
use crate::config::Lengths;
use crate::paths::Balancing;
use crate::queue::Discipline;
use crate::time::{Rate, MICROSECOND, MILLISECOND, SECOND};
use crate::topology::{LeafSpine, Shape};
use crate::transport::pfabric;
use crate::transport::tcp::tests::settings;
use crate::transport::tcp::Settings;
use crate::transport::Transport;

const HOSTS: u32 = 12;

/// Leaves with four hosts each, all links of 10 Gbit/s, packets of 1500 B in turn over the spines.
pub(crate) fn small_leaf_spine(
    (leaves, spines): (u32, u32),
    discipline: Discipline,
    limit: Limit,
    transport: Transport,
) -> Config {
    let rate = Rate::new(10_000_000_000);
    let shape = Shape::LeafSpine(LeafSpine {
        leaves,
        hosts_per_leaf: 4,
        spines,
        host_rate: rate,
        spine_rate: rate,
        delay: 200_000,
    });
    Config {
        shape,
        changes: Vec::new(),
        buffer: Buffer { discipline, limit, mark_from: 0, drops_unmarkable: false },
        lengths: Lengths { payload: 1460, header: 40, acknowledgement: 40 },
        transport,
        balancing: Balancing::Turn,
        seed: 1,
    }
}

/// Return flows of 1 to 60 packets among 12 hosts below three leaves, four spines between them.
fn crowd(transport: Transport, room: u32) -> Simulation {
    let config = small_leaf_spine((3, 4), Discipline::Fifo, Limit::Packets(room), transport);
    let demand = |row: u32| Demand {
        start: u64::from(row * 7919 % 500) * MICROSECOND,
        source: row % HOSTS,
        destination: (row % HOSTS + 1 + row * 31 % (HOSTS - 1)) % HOSTS,
        bytes: u64::from(1 + row * 37 % 60) * 1460,
        level: 0,
    };
    Simulation::new(config, (0..200).map(demand).collect()).unwrap()
}

/// Return the number of packets that have crossed links.
fn hops(simulation: &Simulation) -> u64 {
    simulation.ports.iter().map(|port| port.counters.delivered).sum()
}

fn tcp() -> Transport {
    Transport::Tcp(Settings {
        largest_window: 100,
        initial_timeout: MILLISECOND,
        least_timeout: MILLISECOND,
        largest_timeout: SECOND,
        ..settings(true, false)
    })
}

#[test]
fn a_clock_that_goes_back_is_an_error_and_never_goes_back_by_itself() {
    let mut simulation = crowd(tcp(), 8);
    let mut last = 0;
    while !simulation.run(1).unwrap() {
        assert!(simulation.now() >= last);
        last = simulation.now();
        if simulation.totals.events == 5000 {
            break;
        }
    }
    assert!(simulation.totals.data_dropped > 0 && last > 0);
    simulation.events.push(last - 1, Kind::Timer, 0);
    let error = simulation.run(1).unwrap_err();
    assert!(error.0.contains("the clock went back"), "{error:?}");
}

#[test]
fn a_hop_is_one_event_and_a_flows_beginning_one() {
    let mut simulation = crowd(Transport::Fixed { window: 12 }, 100_000);
    assert!(simulation.run(u64::MAX).unwrap());
    assert_eq!(simulation.totals.events, hops(&simulation) + simulation.demands.len() as u64);
    // Data and its acknowledgement cross four links at most.
    assert!(simulation.totals.events <= 8 * simulation.totals.data_sent + simulation.demands.len() as u64);
}

#[test]
fn with_timers_and_losses_there_is_at_most_one_event_more_for_a_packet_that_its_host_got() {
    let mut simulation = crowd(tcp(), 8);
    assert!(simulation.run(u64::MAX).unwrap());
    assert!(simulation.totals.data_dropped > 0 && simulation.totals.timeouts > 0);
    let others = simulation.totals.events - hops(&simulation) - simulation.demands.len() as u64;
    assert!(others <= simulation.totals.packets.delivered, "{others} events of timers");
}

#[test]
fn the_heap_has_one_entry_for_each_busy_link_and_one_for_the_next_flow() {
    let mut simulation = crowd(Transport::Fixed { window: 12 }, 100_000);
    let mut most = 0;
    while !simulation.run(1).unwrap() {
        let busy = simulation.ports.iter().filter(|port| port.held() != (0, 0)).count();
        let next = usize::from(simulation.started < simulation.demands.len());
        assert_eq!(simulation.events.len(), busy + next);
        most = most.max(busy);
    }
    assert!(most > 20, "{most} busy links");
}

#[test]
fn an_acknowledgement_that_is_lost_does_not_strand_a_flow_of_pfabrics_hosts() {
    let transport = Transport::PFabric(pfabric::Settings::default());
    let config = small_leaf_spine((2, 1), Discipline::Fifo, Limit::Packets(1), transport);
    let demand = |start, source, destination, bytes| Demand { start, source, destination, bytes, level: 0 };
    // A packet of host 4 is on its wire and one waits when the acknowledgement of what has come to it finds no room.
    let demands = vec![demand(0, 0, 4, 500), demand(2_500_000, 4, 0, 2 * 1460)];
    let mut simulation = Simulation::new(config, demands).unwrap();
    assert!(simulation.run(u64::MAX).unwrap());
    let totals = simulation.totals();
    assert_eq!((totals.acknowledgements_dropped, totals.data_dropped), (1, 0));
    assert_eq!((totals.timeouts, totals.duplicates), (1, 1));
    // The time-out, the packet over four links once more, and its acknowledgement.
    let expected = 45 * MICROSECOND + 4 * (432_000 + 200_000) + 4 * (32_000 + 200_000);
    let of = &simulation.outcomes()[0];
    assert_eq!(of.completed, Some(expected));
    assert_eq!((of.resent, of.resent_bytes), (1, 500), "its data, not a full packet's");
}
