//! Packets and datagrams of any kind, many of them wrong where parsers trust them: nothing panics, and what is kept of them
//! stays below a bound. `CAPSTAN_INPUTS` says how many (20,000), `CAPSTAN_SEED` which.

#![allow(unsafe_code)] // an allocator that counts

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use agent::admission::{AdmissionPolicy, Backlog, Decision, RequestTimes};
use agent::blocking::EstimatorKind;
use agent::coding::{CodingPolicy, RedundancyRule, UnitRule};
use agent::host::{Core, Datagram, FromUnderlay, HostPolicy, Identity};
use agent::paths::{LivePaths, PathSettings, PlbSettings, RepsSettings, UnblockedSettings};
use agent::peers::Known;
use agent::priority::{FlowTypes, PriorityPolicy};
use agent::receiving::{feedback_after_s, Hold, ReceivePolicy, Receiver};
use agent::sending::{EstimatorChoice, SendPolicy, Sender, Serving};
use agent::{Generator, LeafId, Random, TrafficClass};
use coding::Code;
use datapath::feedback::{Feedback, Receipt};
use datapath::header::{Header, RepairHead, FEEDBACK, REPAIR, SOURCE};
use datapath::inner::Address;
use trials::trials;

/// What the state of an agent with one hostile peer may take, whatever that peer and the host send, bytes.
const MOST_BYTES: usize = 128 << 20;
/// The largest single allocation, bytes.
const LARGEST: usize = 16 << 20;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LARGEST_SEEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all of it is the system's allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        LARGEST_SEEN.fetch_max(layout.size(), Relaxed);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        System.dealloc(pointer, layout);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const SESSIONS: [u32; 2] = [0x1111_1111, 0x2222_2222];

fn overlay(host: usize) -> [Vec<u8>; 2] {
    let number = host as u8 + 1;
    let mut six = vec![0xFD; 16];
    six[15] = number;
    [vec![10, 128, 1, number], six]
}

fn addresses(host: usize) -> Vec<Address> {
    overlay(host).iter().map(|bytes| Address::of(bytes).unwrap()).collect()
}

/// Draws a policy at random: every path policy, code, rule and estimator comes up.
fn policies(random: &mut Generator) -> (HostPolicy, Serving) {
    let reps = RepsSettings { congested_s: 0.01, explore_packets: 8, freeze_s: 0.1 };
    let plb =
        PlbSettings { congested_s: 0.01, congested_share: 0.5, rounds: 2, idle_rounds: 4, suspend_s: 0.5 };
    let paths = [
        PathSettings::Spray,
        PathSettings::FlowHash,
        PathSettings::LabelHash,
        PathSettings::RoundRobin,
        PathSettings::Granted,
        PathSettings::Flowcell { bytes: 65_536 },
        PathSettings::Flowlet { gap_s: 0.01 },
        PathSettings::Tr { packet_time_s: 0.001 },
        PathSettings::Reps(reps),
        PathSettings::Plb(plb),
        PathSettings::Unblocked(UnblockedSettings {
            congested_s: 0.01,
            avoid_s: 0.5,
            feedback_after_s: feedback_after_s(0.001),
        }),
    ];
    let kinds = [
        EstimatorKind::Paths,
        EstimatorKind::Rtt,
        EstimatorKind::RttAverage,
        EstimatorKind::RttSmoothed,
        EstimatorKind::LossRate,
        EstimatorKind::Marks,
    ];
    let coded = |random: &mut Generator| {
        (random.below(3) > 0).then(|| CodingPolicy {
            code: pick(random, &[Code::Xor, Code::Rlc, Code::Ldpc, Code::Mds]),
            redundancy: pick(
                random,
                &[RedundancyRule::Paper, RedundancyRule::Adaptive, RedundancyRule::OnePerUnit],
            ),
            target_decode_probability: 0.99,
            unit: pick(random, &[UnitRule::Optimal, UnitRule::Window]),
            max_k: 1 + random.below(64),
            max_r: 1 + random.below(32),
            max_overhead: 1.0,
            flush_s: 0.001,
        })
    };
    let send = SendPolicy {
        packet_time_s: 0.001,
        short_limit_bytes: pick(random, &[0, 100_000, 1 << 40]),
        prior_knowledge: random.below(2) == 0,
        coding: [None, coded(random), coded(random), None],
        estimator: Some(EstimatorChoice { kind: pick(random, &kinds), sampling_s: None }),
        priority: PriorityPolicy::default(),
        types: FlowTypes::default(),
    };
    let serving = Serving {
        policies: (0..4).map(|_| pick(random, &paths).policy(random.split())).collect(),
        serves: [0, 1, 2, 3],
    };
    let by_paths = Hold::ByPaths { silence_s: 0.02 };
    let hold = pick(random, &[Hold::For(0.0), Hold::For(0.02), Hold::For(1.0), by_paths]);
    let times = RequestTimes { retry_s: 0.02, refresh_s: 0.25, fail_safe_s: 0.1 };
    let admission = AdmissionPolicy { threshold_bytes: pick(random, &[0, 14_260]), times, burst_s: 0.002 };
    let admission = (random.below(2) == 0).then_some(admission);
    (HostPolicy { send, receive: ReceivePolicy::new(0.001, [hold; 4]), admission }, serving)
}

fn pick<T: Clone>(random: &mut Generator, some: &[T]) -> T {
    some[random.below(some.len() as u32) as usize].clone()
}

fn core(host: usize, random: &mut Generator) -> Core {
    let (HostPolicy { send, receive, admission }, serving) = policies(random);
    let sender = Sender::new(send, serving, random.split());
    let identity =
        Identity { session: SESSIONS[host], mtu: 1400, broadcasts: Vec::new().into_iter().collect() };
    let mut core = Core::new(identity, sender, Receiver::new(receive), 0.0);
    core.gate.set_policy(admission, 0.0);
    let other = 1 - host;
    let peer = Known {
        address: ADDRESSES[other],
        session: SESSIONS[other],
        leaf: LeafId(other as u16),
        overlay: addresses(other),
    };
    core.set_directory(vec![peer], Some(addresses(host).into_iter().collect()));
    let mut live = LivePaths::default();
    live.stamps.insert(LeafId(other as u16), (8192..8200).collect());
    live.by_class.insert(TrafficClass::Long, (8192..8196).collect());
    core.sender.wrapping.steering.routes.set_paths(live);
    core
}

/// Draws an inner packet that is right: IPv4 or IPv6, TCP, UDP or ICMP, of one of a few flows or of a fresh one.
fn packet(random: &mut Generator, from: usize) -> Vec<u8> {
    let protocol = pick(random, &[6, 6, 6, 17, 1, 58]);
    let payload = pick(random, &[0, 1, 100, 1300, 4000, 60_000]) as usize;
    let ports = if random.below(4) > 0 { random.below(8) } else { random.below(0xFFFF) } as u16;
    let mut transport = vec![0; if protocol == 6 { 20 } else { 8 }];
    transport[..2].copy_from_slice(&(1024u16.wrapping_add(ports)).to_be_bytes());
    transport[2..4].copy_from_slice(&80u16.to_be_bytes());
    if protocol == 6 {
        transport[4..8].copy_from_slice(&random.bits32().to_be_bytes());
        transport[12] = 0x50;
        transport[13] = random.below(64) as u8;
    }
    transport.resize(transport.len() + payload, 7);
    let place = random.below(2) as usize;
    let (source, destination) = (&overlay(from)[place], &overlay(1 - from)[place]);
    let mut packet = if place == 0 {
        let mut head = vec![0x45, pick(random, &[0, 1, 2, 3])];
        head.extend_from_slice(&((20 + transport.len()) as u16).to_be_bytes());
        head.extend_from_slice(&[0, 0, pick(random, &[0, 0x40]), 0, 64, protocol, 0, 0]);
        head
    } else {
        let mut head = vec![0x60, 0, 0, 0];
        head.extend_from_slice(&(transport.len() as u16).to_be_bytes());
        head.extend_from_slice(&[protocol, 64]);
        head
    };
    packet.extend_from_slice(source);
    packet.extend_from_slice(destination);
    packet.extend_from_slice(&transport);
    packet
}

const LENGTHS: [u16; 12] = [0, 1, 2, 7, 8, 0x7F, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF];

/// Makes bytes wrong where parsers trust them.
fn mutate(random: &mut Generator, bytes: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        let length = bytes.len() as u32;
        if length < 2 {
            bytes.push(random.bits32() as u8);
            continue;
        }
        let near = if random.below(2) == 0 { length.min(64) } else { length };
        let index = random.below(near) as usize;
        match random.below(6) {
            0 => bytes[index] ^= 1 << random.below(8),
            1 => bytes[index] = random.bits32() as u8,
            2 if index + 2 <= bytes.len() => {
                let value = pick(random, &LENGTHS);
                bytes[index..index + 2].copy_from_slice(&value.to_be_bytes());
            }
            3 => bytes.truncate(index),
            4 => drop(bytes.drain(..index)),
            _ => bytes.extend_from_within(index..),
        }
        bytes.truncate(0xFFFF);
    }
}

/// Draws a number near those that are in use, or any.
fn number(random: &mut Generator, near: u32) -> u32 {
    match random.below(8) {
        0 => random.bits32(),
        1 => near.wrapping_add(1 << random.below(32)),
        _ => near.wrapping_add(random.below(64)).wrapping_sub(32),
    }
}

/// Draws the body of a datagram of that kind, mostly right.
fn body(random: &mut Generator, kind: u8, samples: &[Datagram], near: u32) -> Vec<u8> {
    let mut body = match kind {
        SOURCE => packet(random, 1),
        REPAIR => {
            let small = |random: &mut Generator| pick(random, &[0, 1, 2, 8, 32, 64, 255]);
            let code = random.below(6) as u8;
            let (k, r, index) = (small(random), small(random), small(random));
            let mut body = RepairHead { code, k, r, index, seed: random.bits32() }.encode().to_vec();
            body.resize(body.len() + pick(random, &[0, 1, 2, 3, 60, 1402, 9000]), 3);
            body
        }
        FEEDBACK => {
            let receipts = (0..random.below(129))
                .map(|_| Receipt {
                    number: number(random, near),
                    stamp: random.bits32() as u16,
                    delay_us: random.bits32(),
                    marked: random.below(2) == 0,
                })
                .collect();
            let lost = (0..random.below(33)).map(|_| (number(random, near), random.bits32())).collect();
            Feedback { receipts, lost, recovered: random.bits32() as u16 }.encode()
        }
        _ => Vec::new(),
    };
    if random.below(8) == 0 && !samples.is_empty() {
        body = pick(random, samples).body.to_vec();
    }
    if random.below(3) == 0 {
        mutate(random, &mut body);
    }
    body
}

/// Draws a datagram of the peer: what it has sent, that with other headers, or any bytes.
fn datagram(random: &mut Generator, samples: &[Datagram], near: &mut u32) -> Vec<u8> {
    if random.below(3) == 0 && !samples.is_empty() {
        let sample = pick(random, samples);
        let mut bytes = [&sample.header[..], &sample.body].concat();
        if random.below(4) == 0 {
            mutate(random, &mut bytes);
        }
        return bytes;
    }
    *near = near.wrapping_add(1);
    let kind = pick(random, &[SOURCE, SOURCE, REPAIR, REPAIR, FEEDBACK, 0, 200]);
    let body = body(random, kind, samples, *near);
    let header = Header {
        kind,
        flags: random.below(8) as u8,
        session: SESSIONS[1],
        number: number(random, *near),
        sent_us: random.bits32(),
        flow: if random.below(4) > 0 { random.below(8) } else { random.bits32() },
        position: number(random, 100),
    };
    [&header.encode(&body)[..], &body].concat()
}

fn setting(name: &str, otherwise: u64) -> u64 {
    env::var(name).map_or(otherwise, |value| value.parse().expect(name))
}

/// Asks for what the gate has for the controller, and decides something.
fn decide(random: &mut Generator, core: &mut Core, now: f64) {
    let backlog = Backlog {
        bytes: pick(random, &[0, 1, 100_000]),
        more: random.below(2) == 0,
        scale: random.below(16),
        segment_bytes: pick(random, &[0, 1, 1400, u32::MAX]),
        most_segment_bytes: pick(random, &[0, 1400]),
    };
    let known = random.below(3) > 0;
    for message in core.gate.messages(now, |_| known.then_some(backlog)) {
        let rate_bps = pick(random, &[0, 1, 10_000_000, u64::MAX]);
        let (sequence, stamp) = (random.below(1000), random.below(4) as u16);
        let decision = Decision { sequence, flow: message.flow, answers: message.sequence, rate_bps, stamp };
        core.decided(decision, now);
    }
    core.gate.take_episodes(now);
}

#[test]
fn nothing_that_is_sent_harms_an_agent() {
    let (inputs, seed) = (setting("CAPSTAN_INPUTS", trials(20_000)), setting("CAPSTAN_SEED", 1));
    let random = &mut Generator::new(seed);
    let (mut ours, mut theirs) = (core(0, random), core(1, random));
    let (mut now, mut near) = (0.0, 0);
    let mut samples: Vec<Datagram> = Vec::new();
    let base = LIVE.load(Relaxed);
    LARGEST_SEEN.store(0, Relaxed);
    let (mut sent, mut delivered) = (0, 0);
    for _ in 0..inputs {
        match random.below(16) {
            0..4 => {
                let mut bytes = packet(random, 0);
                if random.below(2) == 0 {
                    mutate(random, &mut bytes);
                }
                if random.below(2) == 0 {
                    ours.packet_from_host(&bytes, now);
                } else {
                    ours.super_packet_from_host(&bytes, pick(random, &[0, 1, 500, 1348, 70_000]), now);
                }
            }
            4..6 => {
                let bytes = packet(random, 1);
                theirs.super_packet_from_host(&bytes, 1300, now);
                theirs.handle_timer(now);
                theirs.gate.messages(now, |_| None); // as its agent does, whether or not a controller is there
                let fresh = theirs.datagrams_to_send();
                if let Some(last) = fresh.last() {
                    let bytes = [&last.header[..], &last.body].concat();
                    near = Header::read(&bytes).unwrap().0.number;
                    samples = fresh;
                }
            }
            6..15 => {
                let data = datagram(random, &samples, &mut near);
                let source_port = pick(random, &[0, 8192, 8199, 8200, 50_000]);
                let from = FromUnderlay {
                    data: data.into(),
                    address: ADDRESSES[1],
                    source_port,
                    tos: random.bits32() as u8,
                };
                ours.receive_datagram(from, now);
            }
            _ => {
                now += pick(random, &[0.0001, 0.001, 0.01, 0.3]);
                ours.handle_timer(now);
                if random.below(500) == 0 {
                    let (policy, serving) = policies(random);
                    ours.set_policy(policy, serving, now);
                }
                decide(random, &mut ours, now);
            }
        }
        sent += ours.datagrams_to_send().len();
        delivered += ours.packets_to_deliver().len();
    }
    assert!(
        sent as u64 > inputs / 10 && delivered as u64 > inputs / 50,
        "{sent} sent, {delivered} delivered"
    );
    let (peak, largest) = (PEAK.load(Relaxed) - base, LARGEST_SEEN.load(Relaxed));
    println!("{inputs} inputs: {sent} datagrams, {delivered} packets; peak {peak} B, largest {largest} B");
    assert!(peak < MOST_BYTES, "{peak} B of state");
    assert!(largest < LARGEST, "an allocation of {largest} B");
}
