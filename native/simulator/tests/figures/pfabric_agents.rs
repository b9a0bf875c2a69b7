//! pFabric's hosts behind agents: what agents wrap keeps the rank of its flow, at every port.

use crate::runs::{leaf_spine, HEADER, PAYLOAD};
use agent::paths::PathSettings;
use agent::receiving::{Hold, ReceivePolicy};
use agent::sending::SendPolicy;
use simulator::config::{Config, Lengths};
use simulator::flow::Demand;
use simulator::overlay::{Central, Group, Groups, Line, Settings};
use simulator::paths::Balancing;
use simulator::queue::{Buffer, Discipline, Limit};
use simulator::simulation::Simulation;
use simulator::time::{Time, MICROSECOND};
use simulator::transport::{pfabric, Transport};

const LONG: u64 = 3_000_000;
const SHORT: u64 = 20_000;
/// Of a full packet at 10 Gbit/s.
const PACKET: Time = 1_200_000;

fn settings(flows: usize) -> Settings {
    Settings {
        admission: None,
        send: SendPolicy::plain(0.0024),
        paths: [PathSettings::Spray; 4],
        receive: ReceivePolicy::new(0.0024, [0.0; 4].map(Hold::For)),
        groups: [Groups { on: Group::Spray, off: Group::Spray }; 4],
        central: Central::default(),
        clock: 2000.0,
        addresses: (0..4).map(|host| [10, 128, 0, host]).collect(),
        lines: (0..flows as u16)
            .map(|row| Line { source_port: 10_000 + row, destination_port: 5501, endless: false, twin: None })
            .collect(),
    }
}

/// Return when each flow ended after its start, and packets dropped.
fn run(discipline: Discipline, demands: &[Demand]) -> (Vec<Time>, u64) {
    let config = Config {
        shape: leaf_spine(2, 2, 4, 10, 10),
        changes: Vec::new(),
        buffer: Buffer { discipline, limit: Limit::Bytes(36_864), mark_from: 0, drops_unmarkable: false },
        lengths: Lengths { payload: PAYLOAD, header: HEADER, acknowledgement: HEADER },
        transport: Transport::PFabric(pfabric::Settings::default()),
        balancing: Balancing::Hash,
        seed: 1,
    };
    let mut simulation = Simulation::with_overlay(config, demands.to_vec(), settings(demands.len())).unwrap();
    while !simulation.run(1 << 20).unwrap() {}
    let ended = simulation.outcomes().iter().zip(demands);
    let times = ended.map(|(flow, demand)| flow.completed.unwrap() - demand.start).collect();
    (times, simulation.totals().packets.dropped)
}

#[test]
fn a_short_flow_passes_long_ones_at_every_port() {
    let demand = |start, source, bytes| Demand { start, source, destination: 3, bytes, level: 0 };
    let short = demand(500 * MICROSECOND, 2, SHORT);
    let all = [demand(0, 0, LONG), demand(0, 1, LONG), short];
    let alone = run(Discipline::PFabric, &[short]).0[0];
    let (beside, dropped) = run(Discipline::PFabric, &all);
    assert!(dropped > 0, "the buffer of the last port is never full");
    // what is on the wire is not interrupted: at the last port, and where an acknowledgement waits for one
    assert!(beside[2] <= alone + 4 * PACKET, "{} ps beside long flows, {alone} ps alone", beside[2]);
    let (fifo, _) = run(Discipline::Fifo, &all);
    assert!(fifo[2] > alone + 10 * PACKET, "{} ps in order of arrival, {alone} ps alone", fifo[2]);
}
