//! A lone flow takes exactly as long as arithmetic says.

use crate::runs::{demand, leaf_spine, outcomes, window};
use simulator::paths::Balancing;
use simulator::queue::{Buffer, Discipline, Limit};
use simulator::transport::{pfabric, Transport};

/// Return the time of a lone flow: bytes at the host's rate (all data once, the last packet's second host link, and an
/// ACK on both); two links of the fabric carry the last packet and its ACK where there are four; and every link's delay
/// both ways.
fn expected_ps(packets: u64, links: u64, host_byte_ps: u64, spine_byte_ps: u64) -> u64 {
    let host = (1500 * packets + 1500 + 2 * 40) * host_byte_ps;
    let fabric = if links == 4 { 2 * (1500 + 40) * spine_byte_ps } else { 0 };
    2 * links * 200_000 + host + fabric
}

#[test]
fn a_lone_flow_is_exact() {
    for (spines, spine_gbps, spine_byte_ps) in [(16, 10, 800), (4, 40, 200), (2, 100, 80)] {
        for (destination, links) in [(1, 2), (17, 4), (143, 4)] {
            for packets in [1, 2, 6, 12, 13, 100, 5000] {
                for balancing in [Balancing::Turn, Balancing::Random, Balancing::Hash, Balancing::Sum] {
                    let config = window(leaf_spine(9, 16, spines, 10, spine_gbps), balancing);
                    let of = outcomes(config, vec![demand(777, 0, destination, packets)])[0];
                    let expected = expected_ps(packets, links, 800, spine_byte_ps);
                    assert_eq!(of.completed.unwrap() - 777, expected, "{packets} packets over {links} links");
                    assert_eq!((of.sent, of.resent, of.early), (packets, 0, 0));
                }
            }
        }
    }
}

#[test]
fn pfabric_gives_a_lone_flow_the_same() {
    for packets in [1, 6, 100] {
        let mut config = window(leaf_spine(9, 16, 16, 10, 10), Balancing::Turn);
        config.transport = Transport::PFabric(pfabric::Settings::default());
        config.buffer = Buffer {
            discipline: Discipline::PFabric,
            limit: Limit::Bytes(36_864),
            mark_from: 0,
            drops_unmarkable: false,
        };
        let of = outcomes(config, vec![demand(0, 0, 17, packets)])[0];
        assert_eq!(of.completed, Some(expected_ps(packets, 4, 800, 800)));
    }
}

#[test]
fn a_short_last_packet_counts_as_long_as_it_is() {
    let config = window(leaf_spine(2, 2, 1, 10, 10), Balancing::Turn);
    let mut short = demand(0, 0, 1, 1);
    short.bytes = 1461;
    let of = outcomes(config, vec![short])[0];
    // 1500 B and 41 B leave; the short packet waits at the leaf until the long one has left there.
    let data = (1500 + 1500 + 41) * 800 + 2 * 200_000;
    assert_eq!(of.delivered, Some(data));
    assert_eq!(of.completed, Some(data + 2 * 40 * 800 + 2 * 200_000));
}
