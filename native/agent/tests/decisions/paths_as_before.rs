//! Each path policy decides as the Python of commit d7038cc did, on recorded situations; TR as since its margin is by how
//! much packets were later than expected (149 of 1721 events were recorded again).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::support::{recorded, Replay, Words};
use agent::paths::{BoxedPolicy, Load, PathId, PathSettings, PlbSettings, Report, RepsSettings, Train};
use agent::{FlowRef, LeafId, Route, TrafficClass};
use trials::trials;

fn settings(words: &mut Words) -> PathSettings {
    match words.word() {
        "spray" => PathSettings::Spray,
        "flow-hash" => PathSettings::FlowHash,
        "label-hash" => PathSettings::LabelHash,
        "round-robin" => PathSettings::RoundRobin,
        "granted" => PathSettings::Granted,
        "flowcell" => PathSettings::Flowcell { bytes: words.number() },
        "flowlet" => PathSettings::Flowlet { gap_s: words.number() },
        "tr" => PathSettings::Tr { packet_time_s: words.number() },
        "reps" => PathSettings::Reps(RepsSettings {
            congested_s: words.number(),
            explore_packets: words.number(),
            freeze_s: words.number(),
        }),
        "plb" => PathSettings::Plb(PlbSettings {
            congested_s: words.number(),
            congested_share: words.number(),
            rounds: words.number(),
            idle_rounds: words.number(),
            suspend_s: words.number(),
        }),
        other => panic!("no kind of policy is called {other}"),
    }
}

fn load(words: &mut Words) -> Load {
    let mut load = Load::default();
    for _ in 0..words.number::<usize>() {
        let stamp = words.number();
        load.short_flows.insert(stamp, words.number());
    }
    let mut delays_s = BTreeMap::new();
    for _ in 0..words.number::<usize>() {
        let id = PathId { leaf: LeafId(words.number()), stamp: words.number() };
        delays_s.insert(id, words.number());
    }
    load.delays_s = delays_s;
    load
}

/// Reads ports as recorded: `port`, or `port*count` for so many.
fn ports(words: &mut Words) -> Vec<u16> {
    let mut ports = Vec::new();
    for word in words.rest::<String>() {
        let (port, count) = word.split_once('*').unwrap_or((&word, "1"));
        let port: u16 = port.parse().expect("a port");
        ports.extend(std::iter::repeat_n(port, count.parse().expect("a count")));
    }
    ports
}

/// Plays a recording; returns how many packets it had.
fn replay(recording: &str) -> usize {
    let draws = Replay::default();
    let mut policy: BoxedPolicy = PathSettings::FlowHash.policy(draws.clone());
    let (mut routes, mut packets) = (HashMap::new(), 0);
    for (number, line) in recorded(recording) {
        let (event, drawn) = line.split_once(" / ").unwrap_or((line, ""));
        draws.add(Words::of(drawn).rest());
        let mut words = Words::of(event);
        match words.word() {
            "policy" => policy = settings(&mut words).policy(draws.clone()),
            "route" => {
                let leaf = LeafId(words.number());
                let class = TrafficClass::of(words.number()).expect("a class");
                let version = words.number();
                let labels = Arc::from(words.rest());
                routes.insert((leaf, class), Route { labels, version, ..Route::unnamed(leaf, class) });
            }
            "send" => {
                let flow = FlowRef { id: words.number(), hash: words.number() };
                let leaf = LeafId(words.number());
                let class = TrafficClass::of(words.number()).expect("a class");
                let route = &routes[&(leaf, class)];
                let (size, last, count) = (words.number(), words.number(), words.number());
                let now = words.number();
                let mut given = Vec::new();
                if count == 1 {
                    given.push(policy.source_port(flow, route, last, now));
                } else {
                    policy.source_ports(Train { flow, route, size, last, count }, now, &mut given);
                }
                assert_eq!(given, ports(&mut words), "line {number}: {line}");
                packets += count;
            }
            "reported" => {
                let report = Report {
                    flow: words.number(),
                    leaf: LeafId(words.number()),
                    port: words.number(),
                    stamp: words.number(),
                    delay_s: words.number(),
                    sent: words.number(),
                    marked: false,
                };
                policy.reported(&report, words.number());
            }
            "lost" => {
                let (flow, leaf, port) = (words.number(), LeafId(words.number()), words.number());
                policy.lost(flow, leaf, port, words.number());
            }
            "forget" => policy.forget(words.number()),
            "granted" => policy.granted(words.number(), words.number()),
            "load" => {
                let said = policy.load(words.number());
                let recorded = (!event.ends_with("none")).then(|| load(&mut words));
                assert_eq!(said, recorded, "line {number}: {line}");
            }
            "set_load" => {
                let now = words.number();
                policy.set_load(&load(&mut words), now);
            }
            other => panic!("no event is called {other}"),
        }
        assert_eq!(draws.left(), 0, "line {number}: fewer were drawn than recorded: {line}");
    }
    packets
}

macro_rules! recordings {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[test]
            fn $name() {
                assert!(replay(include_str!(concat!("../vectors/paths/", $file, ".txt"))) > trials(500));
            }
        )*
    };
}

recordings! {
    spray: "spray",
    flow_hash: "flow-hash",
    label_hash: "label-hash",
    round_robin: "round-robin",
    flowcell: "flowcell",
    flowlet: "flowlet",
    granted: "granted",
    reps: "reps",
    plb: "plb",
    tr: "tr",
}
