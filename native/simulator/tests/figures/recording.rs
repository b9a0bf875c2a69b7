//! Recordings: every hop of every packet as the ports' own counters have it, and a run that is the same without one.

use crate::runs::{demand, leaf_spine, window};
use simulator::config::Config;
use simulator::flow::Demand;
use simulator::paths::Balancing;
use simulator::queue::{Buffer, Discipline, Limit};
use simulator::recording::{Outcome, PacketKind, Window};
use simulator::simulation::Simulation;
use simulator::time::{Time, MICROSECOND, NEVER};
use simulator::transport::{pfabric, Transport};

fn lossy() -> Config {
    Config {
        buffer: Buffer {
            discipline: Discipline::PFabric,
            limit: Limit::Bytes(12_000),
            mark_from: 0,
            drops_unmarkable: false,
        },
        transport: Transport::PFabric(pfabric::Settings::default()),
        ..window(leaf_spine(3, 4, 2, 10, 10), Balancing::Random)
    }
}

fn demands() -> Vec<Demand> {
    (0..40).map(|row| demand(u64::from(row) * MICROSECOND, row % 11, 11, 60)).collect()
}

fn run(recorded: Option<Window>) -> Simulation {
    let mut simulation = Simulation::new(lossy(), demands()).unwrap();
    if let Some(window) = recorded {
        simulation.record(window).unwrap();
    }
    while !simulation.run(1 << 20).unwrap() {}
    simulation
}

#[test]
fn all_hops_of_a_run_are_those_that_ports_count() {
    let simulation = run(Some(Window { from: 0, until: NEVER, most_hops: 1_000_000 }));
    let recording = simulation.recording().unwrap();
    assert_eq!(recording.full_at, None);
    for (link, port) in simulation.ports().iter().enumerate() {
        let hops: Vec<_> = recording.hops.iter().filter(|hop| hop.link as usize == link).collect();
        let count = |outcome| hops.iter().filter(|hop| hop.outcome == outcome).count() as u64;
        assert_eq!(count(Outcome::Sent), port.counters.delivered, "link {link}");
        assert_eq!(count(Outcome::Dropped), port.counters.dropped, "link {link}");
        assert_eq!(count(Outcome::Pending), 0, "link {link}");
        let longest = hops.iter().map(|hop| u64::from(hop.queue)).max().unwrap_or(0);
        assert_eq!(longest, port.counters.longest_queue_packets, "link {link}");
        let mut sent: Vec<(Time, u32)> = hops
            .iter()
            .filter(|hop| hop.outcome == Outcome::Sent)
            .map(|hop| (hop.offered + hop.waited, recording.packets[hop.packet as usize].bytes))
            .collect();
        sent.sort_unstable();
        let delay = simulation.topology().links[link].delay;
        for pair in sent.windows(2) {
            assert!(
                pair[0].0 + port.crossing(pair[0].1) - delay <= pair[1].0,
                "one packet at a time on a wire"
            );
        }
    }
    assert!(simulation.ports().iter().any(|port| port.counters.dropped > 0));
    let data = recording.releases.iter().filter(|release| release.kind == PacketKind::Data).count() as u64;
    let sent: u64 = simulation.outcomes().iter().map(|flow| flow.sent - flow.dropped).sum();
    assert!(data > 0 && data <= sent, "hosts got {data} of {sent} data packets");
}

#[test]
fn a_recorded_run_is_the_same_run() {
    let (with, without) = (run(Some(Window { from: 0, until: NEVER, most_hops: 900 })), run(None));
    assert_eq!(with.outcomes(), without.outcomes());
    assert_eq!(with.totals(), without.totals());
    let recording = with.recording().unwrap();
    assert_eq!(recording.hops.len(), 900);
    let last = recording.hops.last().unwrap().offered;
    assert!(recording.full_at.is_some_and(|full| full >= last));
}

#[test]
fn only_the_window_is_recorded() {
    let (from, until) = (20 * MICROSECOND, 40 * MICROSECOND);
    let simulation = run(Some(Window { from, until, most_hops: 100_000 }));
    let recording = simulation.recording().unwrap();
    assert!(!recording.hops.is_empty());
    assert!(recording.hops.iter().all(|hop| (from..until).contains(&hop.offered)));
    assert!(recording.releases.iter().all(|release| (from..until).contains(&release.at)));
}

#[test]
fn a_window_that_cannot_be_is_refused() {
    let mut simulation = Simulation::new(lossy(), demands()).unwrap();
    for (from, until, most_hops) in [(5, 5, 10), (6, 5, 10), (0, 5, 0), (0, 5, 10_000_001)] {
        assert!(simulation.record(Window { from, until, most_hops }).is_err());
    }
}
