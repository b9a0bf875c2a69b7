//! What thousands of peers make a host keep together is bounded, whatever each of them may have.

use std::collections::{BTreeMap, BTreeSet};

use agent::flow_record::FlowRecord;
use agent::host::{Bytes, Core, FromUnderlay, Identity};
use agent::paths::PathSettings;
use agent::peers::{Known, PeerId};
use agent::receiving::{Hold, ReceivePolicy, Receiver, Total};
use agent::sending::{SendPolicy, Sender, Serving};
use agent::{Generator, LeafId};
use datapath::header::{Header, RepairHead, REPAIR, SOURCE};
use datapath::inner::Address;

const PEERS: u32 = 4000;
const LIMIT: usize = 16 << 20;
const CODED: u8 = 4;
const OWN: [u8; 4] = [10, 200, 0, 1];

fn underlay(peer: u32) -> [u8; 4] {
    (0x0A00_0000 + peer + 1).to_be_bytes()
}

fn overlay(peer: u32) -> [u8; 4] {
    (0x0A80_0000 + peer + 1).to_be_bytes()
}

fn known(peer: u32, session: u32) -> Known {
    let overlay = vec![Address::of(&overlay(peer)).unwrap()];
    Known { address: underlay(peer), session, leaf: LeafId(1), overlay }
}

fn core() -> Core {
    let mut random = Generator::new(1);
    let serving =
        Serving { policies: vec![PathSettings::Spray.policy(random.split())], serves: [0, 0, 0, 0] };
    let sender = Sender::new(SendPolicy::plain(0.001), serving, random.split());
    let receiver = Receiver::new(ReceivePolicy::new(0.001, [Hold::For(0.0); 4]));
    let identity = Identity { session: 7, mtu: 1400, broadcasts: Vec::new().into_iter().collect() };
    let mut core = Core::new(identity, sender, receiver, 0.0);
    let peers = (0..PEERS).map(|peer| known(peer, peer));
    core.set_directory(peers.collect(), Some([Address::of(&OWN).unwrap()].into_iter().collect()));
    core
}

/// Return a UDP packet of a peer for our host.
fn packet(peer: u32, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&(bytes as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&overlay(peer));
    packet.extend_from_slice(&OWN);
    packet.extend_from_slice(&[0x10, 0, 0, 80]);
    packet.resize(bytes, 7);
    packet
}

fn send(core: &mut Core, peer: u32, kind: u8, (number, flow, position): (u32, u32, u32), body: &[u8]) {
    let (flags, sent_us) = (CODED | 1, 0);
    let header = Header { kind, flags, session: peer, number, sent_us, flow, position };
    let data = Bytes::from([&header.encode(body)[..], body].concat());
    core.receive_datagram(FromUnderlay { data, address: underlay(peer), source_port: 9000, tos: 0 }, 1.0);
}

fn kept(core: &Core) -> Vec<usize> {
    core.peers.iter().map(|peer| peer.budget.charged()).collect()
}

fn totals(core: &Core) -> BTreeMap<&'static str, u64> {
    core.totals().into_iter().collect()
}

#[test]
fn a_directory_drops_those_of_many_peers_that_are_gone_or_began_anew() {
    let mut peers = core().peers;
    let before = peers.ids();
    let there = (0..PEERS).rev().filter(|peer| peer % 3 > 0);
    let directory = there.map(|peer| known(peer, peer + u32::from(peer % 5 == 0)));
    let changes = peers.set(directory.collect());
    let dropped: BTreeSet<PeerId> = changes.dropped.iter().copied().collect();
    let expected = (0..PEERS).filter(|peer| peer % 3 == 0 || peer % 5 == 0);
    assert!(dropped.iter().copied().eq(expected.map(|peer| before[peer as usize])));
    assert_eq!(changes.dropped.len(), dropped.len());
    peers.settle(&changes);
    for (peer, &id) in (0..).zip(&before) {
        let is_there = peer % 3 > 0;
        assert_eq!(peers.at(underlay(peer)), is_there.then_some(id));
        assert_eq!(peers.get_mut(id).is_some(), is_there);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
fn decoders_of_thousands_of_peers_have_a_bound_together() {
    let mut core = core();
    core.receiver.total = Total::of(LIMIT);
    let mut sent = 0;
    for position in 0..12 {
        for peer in 0..PEERS {
            let packet = packet(peer, 1200);
            sent += packet.len();
            send(&mut core, peer, SOURCE, (position, 5, position), &packet);
        }
        let all: usize = kept(&core).iter().sum();
        assert!(all <= LIMIT, "{all} B are kept, {LIMIT} B may be");
    }
    assert!(sent > 3 * LIMIT);
    assert_eq!(core.packets_to_deliver().len() as u32, 12 * PEERS);
    let counts = totals(&core);
    assert!(counts["decoders_over_budget"] > 0);
    assert_eq!(counts.get("packets_received").copied(), Some(u64::from(12 * PEERS)));
}

#[test]
#[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
fn those_that_keep_most_give_and_one_that_keeps_little_does_not() {
    let mut core = core();
    core.receiver.total = Total::of(LIMIT);
    let little = packet(0, 600);
    send(&mut core, 0, SOURCE, (0, 5, 0), &little);
    let own = kept(&core)[0];
    assert!(own > little.len());
    for position in 0..200 {
        for peer in 1..200 {
            send(&mut core, peer, SOURCE, (position, 5, position), &packet(peer, 1200));
        }
    }
    let kept = kept(&core);
    assert!(kept.iter().sum::<usize>() <= LIMIT);
    assert_eq!(kept[0], own);
}

#[test]
#[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
fn repairs_that_wait_for_their_flows_count_too() {
    let mut core = core();
    core.receiver.total = Total::of(LIMIT);
    let head = RepairHead { code: 1, k: 8, r: 2, index: 0, seed: 0 }.encode();
    let body = [&head[..], &[3; 1400]].concat();
    for number in 0..20 {
        for peer in 0..PEERS {
            send(&mut core, peer, REPAIR, (number, number, 0), &body);
        }
        assert!(kept(&core).iter().sum::<usize>() <= LIMIT);
    }
    assert!(20 * PEERS as usize * 1400 > 6 * LIMIT);
    let all: usize = kept(&core).iter().sum();
    assert!(all > LIMIT / 2, "{all}, {:?}", totals(&core));
    assert!(totals(&core)["repairs_without_flow"] > 0);
}

#[test]
#[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
fn records_of_flows_that_are_gone_have_a_bound_together_and_the_newest_stay() {
    let mut core = core();
    core.receiver.records = Total::of(64 << 10);
    for (peer, flows) in (0..).zip([10, 500, 500]) {
        for flow in 0..flows {
            // each packet is longer than the one before, by which its record is known
            send(&mut core, peer, SOURCE, (flow, flow, 0), &packet(peer, 100 + flow as usize));
        }
    }
    core.handle_timer(70.0);
    assert!(core.peers.iter().all(|peer| peer.flows.is_empty()), "all were idle for too long");
    let records = core.flow_report(false);
    let kept_of = |peer: u32| -> Vec<u64> {
        let source = Address::of(&overlay(peer)).unwrap();
        records.iter().filter(|record| record.key.source() == source).map(|record| record.bytes).collect()
    };
    assert!(kept_of(0).into_iter().eq(100..110), "who has few gives none");
    for peer in [1, 2] {
        let kept = kept_of(peer);
        assert!((50..450).contains(&kept.len()), "{} are kept", kept.len());
        assert!(kept.iter().copied().eq(600 - kept.len() as u64..600), "the newest");
    }
    assert!(records.len() * size_of::<FlowRecord>() <= 64 << 10);
}
