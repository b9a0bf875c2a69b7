//! Ports whose links' buffers are in bytes: what a burst leaves in one, and what it drops.

use crate::runs::leaf_spine;
use simulator::config::{Config, Lengths};
use simulator::flow::Demand;
use simulator::paths::Balancing;
use simulator::queue::{Buffer, Discipline, Limit};
use simulator::simulation::Simulation;
use simulator::time::MILLISECOND;
use simulator::transport::{pfabric, Transport};

const WIRE: u64 = 1500;
const WINDOW: u32 = 60;

/// Return the run of a host that sends a window at once into its own port, where the first packet takes the wire.
fn burst(bytes: u64, limit: Limit) -> Result<Simulation, simulator::Error> {
    let config = Config {
        shape: leaf_spine(1, 2, 1, 10, 10),
        changes: Vec::new(),
        buffer: Buffer {
            discipline: Discipline::Fifo,
            limit: Limit::Packets(7),
            mark_from: 0,
            drops_unmarkable: false,
        },
        lengths: Lengths { payload: 1460, header: 40, acknowledgement: 40 },
        transport: Transport::PFabric(pfabric::Settings {
            initial_window: WINDOW,
            largest_window: WINDOW,
            timeout: 50 * MILLISECOND,
        }),
        balancing: Balancing::Turn,
        seed: 1,
    };
    let demand = Demand { start: 0, source: 0, destination: 1, bytes, level: 0 };
    let mut simulation = Simulation::new(config, vec![demand]).unwrap();
    simulation.set_rooms(&[(0, limit)])?;
    // before the second packet has left
    simulation.run_until(u64::MAX, 1000)?;
    Ok(simulation)
}

#[test]
fn a_burst_leaves_as_many_whole_packets_as_the_bytes_hold() {
    for bytes in [1500, 2999, 3000, 3001, 44_999, 45_000, 87_000, 88_500] {
        let simulation = burst(100 * 1460, Limit::Bytes(bytes)).unwrap();
        let port = &simulation.ports()[0];
        let kept = (bytes / WIRE).min(u64::from(WINDOW) - 1);
        assert_eq!(port.held().0 as u64, kept, "{bytes} B");
        assert_eq!(port.counters.dropped, u64::from(WINDOW) - 1 - kept, "{bytes} B");
    }
}

#[test]
fn a_short_packet_takes_the_bytes_that_a_full_one_leaves() {
    // ten packets, the last of 140 B; the first takes the wire
    for (bytes, kept, dropped) in
        [(12_000, 8, 1), (12_139, 8, 1), (12_140, 9, 0), (10_640, 8, 1), (10_639, 7, 2)]
    {
        let simulation = burst(9 * 1460 + 100, Limit::Bytes(bytes)).unwrap();
        let port = &simulation.ports()[0];
        assert_eq!((port.held().0, port.counters.dropped), (kept, dropped), "{bytes} B");
    }
}

#[test]
fn so_many_full_packets_are_so_many_bytes() {
    for packets in [1, 5, 30] {
        let (in_packets, in_bytes) = (
            burst(100 * 1460, Limit::Packets(packets)).unwrap(),
            burst(100 * 1460, Limit::Bytes(u64::from(packets) * WIRE)).unwrap(),
        );
        assert_eq!(in_packets.ports()[0].held(), in_bytes.ports()[0].held());
        assert_eq!(in_packets.ports()[0].counters.dropped, in_bytes.ports()[0].counters.dropped);
    }
}

#[test]
fn a_buffer_below_a_full_packet_says_so() {
    assert!(burst(1460, Limit::Bytes(1499)).err().unwrap().0.contains("1499 B holds no packet of 1500 B"));
}
