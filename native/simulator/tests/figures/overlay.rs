//! Hosts with agents: lone flows to the picosecond, counts, order, repairs, and the same seed the same run.

use crate::runs::{agents, leaf_spine, GBPS, HEADER, OUTER, PAYLOAD};
use agent::blocking::EstimatorKind;
use agent::coding::{CodingPolicy, RedundancyRule, UnitRule};
use agent::paths::PathSettings;
use agent::receiving::{Hold, ReceivePolicy};
use agent::sending::{EstimatorChoice, SendPolicy};
use coding::Code;
use simulator::config::Config;
use simulator::flow::Demand;
use simulator::overlay::{Central, Group, Groups, Line, Settings, Twin};
use simulator::random::{Purpose, Stream};
use simulator::simulation::Simulation;
use simulator::time::{Rate, MICROSECOND, MILLISECOND, SECOND};
use simulator::topology::{FatTree, Shape};
use simulator::transport::Transport;

fn config(shape: Shape, packets: u32) -> Config {
    agents(shape, packets, 10, true)
}

/// Return settings of agents that send by one group and path policy, coded where `code` is.
pub fn settings(path: PathSettings, group: Group, code: Option<Code>, hosts: u32, flows: usize) -> Settings {
    let packet_time_s = 0.0025;
    let coding = code.map(|code| CodingPolicy {
        code,
        redundancy: RedundancyRule::OnePerUnit,
        target_decode_probability: 0.95,
        unit: UnitRule::Optimal,
        max_k: 8,
        max_r: 4,
        max_overhead: 1.0,
        flush_s: 2.0 * packet_time_s,
    });
    let timeout_s = if code.is_some() { 4.0 * packet_time_s } else { 0.0 };
    Settings {
        send: SendPolicy {
            estimator: coding
                .as_ref()
                .map(|_| EstimatorChoice { kind: EstimatorKind::Paths, sampling_s: None }),
            coding: [None, coding.clone(), coding, None],
            ..SendPolicy::plain(packet_time_s)
        },
        paths: [path; 4],
        receive: ReceivePolicy::new(packet_time_s, [0.0, timeout_s, timeout_s, 0.0].map(Hold::For)),
        groups: [Groups { on: group, off: group }; 4],
        central: Central::default(),
        admission: None,
        clock: 2000.0,
        addresses: (0..hosts).map(|host| [10, 128, (host >> 8) as u8, host as u8]).collect(),
        lines: (0..flows as u16)
            .map(|row| Line { source_port: 10_000 + row, destination_port: 5501, endless: false, twin: None })
            .collect(),
    }
}

fn run(config: Config, demands: Vec<Demand>, settings: Settings) -> Simulation {
    let mut simulation = Simulation::with_overlay(config, demands, settings).unwrap();
    while !simulation.run(1 << 20).unwrap() {}
    simulation
}

fn demand(start: u64, source: u32, destination: u32, bytes: u64) -> Demand {
    Demand { start, source, destination, bytes, level: 0 }
}

/// Draw flows at random between hosts below different leaves.
pub fn crowd(hosts: u32, per_leaf: u32, count: u32) -> Vec<Demand> {
    crowd_of(4, hosts, per_leaf, count)
}

fn crowd_of(seed: u64, hosts: u32, per_leaf: u32, count: u32) -> Vec<Demand> {
    let mut random = Stream::new(seed, Purpose::Paths);
    let one = |_| {
        let source = random.below(hosts);
        let away = 1 + random.below(hosts / per_leaf - 1);
        let destination = (source + away * per_leaf) % hosts;
        demand(
            u64::from(random.below(2000)) * MICROSECOND,
            source,
            destination,
            1 + u64::from(random.below(300_000)),
        )
    };
    (0..count).map(one).collect()
}

#[test]
fn a_lone_packet_takes_what_arithmetic_says() {
    let schemes = [
        (PathSettings::FlowHash, Group::Hash),
        (PathSettings::Spray, Group::Spray),
        (PathSettings::LabelHash, Group::Label),
        (PathSettings::RoundRobin, Group::Label),
    ];
    for (path, group) in schemes {
        for (source, destination, links) in [(0, 1, 2u64), (0, 3, 4)] {
            for bytes in [1u64, 700, u64::from(PAYLOAD)] {
                let shape = leaf_spine(2, 2, 4, 10, 10);
                let demands = vec![demand(777, source, destination, bytes)];
                let simulation = run(config(shape, 100), demands, settings(path, group, None, 4, 1));
                // There and back to begin, the packet, and its acknowledgement, each link 0.2 us long.
                let wire = 3 * u64::from(HEADER + OUTER) + u64::from(HEADER + OUTER) + bytes;
                let expected = links * (wire * 8 * SECOND / (10 * GBPS) + 4 * 200_000);
                assert_eq!(simulation.outcomes()[0].completed, Some(777 + expected), "{path:?} {bytes} B");
                let record = &simulation.records()[0];
                assert_eq!((record.packets, record.repairs), (2, 0), "its beginning and its data");
                assert_eq!(record.paths.values().sum::<u64>(), 2);
                assert_eq!(record.paths.contains_key(&0), links == 2, "no stamp below one leaf");
            }
        }
    }
}

#[test]
fn a_flow_that_is_hashed_is_never_reordered_and_takes_one_path_one_that_is_sprayed_takes_all() {
    for shape in [
        leaf_spine(3, 4, 4, 10, 10),
        Shape::FatTree(FatTree {
            k: 4,
            host_rate: Rate::new(10 * GBPS),
            fabric_rate: Rate::new(10 * GBPS),
            delay: 200_000,
        }),
    ] {
        let (hosts, per_leaf) = if matches!(shape, Shape::FatTree(_)) { (16, 2) } else { (12, 4) };
        let demands = crowd(hosts, per_leaf, 150);
        for (path, group) in [(PathSettings::FlowHash, Group::Hash), (PathSettings::LabelHash, Group::Label)]
        {
            let settings = settings(path, group, None, hosts, demands.len());
            let simulation = run(config(shape, 60), demands.clone(), settings);
            assert!(simulation.totals().data_dropped > 0, "the run has losses");
            for (outcome, record) in simulation.outcomes().iter().zip(simulation.records()) {
                assert!(record.reordered <= outcome.resent, "only what is sent again comes late");
                assert_eq!(record.reordered, 0, "positions are new even of what is sent again");
                let ways = record.paths.len();
                assert!(ways <= if group == Group::Hash { 1 } else { 2 }, "{ways} paths");
            }
        }
        let settings = settings(PathSettings::Spray, Group::Spray, None, hosts, demands.len());
        let simulation = run(config(shape, 200), demands.clone(), settings);
        let records = simulation.records();
        assert!(records.iter().any(|record| record.reordered > 0));
        let long = records.iter().filter(|record| record.packets > 100);
        assert!(long.clone().count() > 10);
        long.for_each(|record| assert!(record.paths.len() >= 2));
    }
}

#[test]
fn rerouting_in_order_overtakes_nothing_but_what_other_hosts_delay() {
    let share = |path, shape: Shape, demands: &[Demand]| {
        let settings = settings(path, Group::Label, None, 12, demands.len());
        let simulation = run(config(shape, 200), demands.to_vec(), settings);
        let records = simulation.records();
        let packets: u64 = records.iter().map(|record| record.packets).sum();
        let ways = records.iter().map(|record| record.paths.len()).max();
        (records.iter().map(|record| record.reordered).sum::<u64>() as f64 / packets as f64, ways)
    };
    let alone: Vec<Demand> = (0..8).map(|row| demand(row * 50 * MICROSECOND, 0, 8, 400_000)).collect();
    let tr_at_4_gbps = PathSettings::Tr { packet_time_s: 0.00625 };
    let (reordered, ways) = share(tr_at_4_gbps, leaf_spine(3, 4, 4, 10, 4), &alone);
    assert_eq!(reordered, 0.0, "a host alone knows all that waits");
    assert!(ways > Some(1), "it has rerouted");
    let (tr, shape) = (PathSettings::Tr { packet_time_s: 0.0025 }, leaf_spine(3, 4, 4, 10, 10));
    // Seeds 4 to 19 of the crowd: TR 1.6 to 3.6 %, packets in turn 5.7 to 14.4 %, all of them together 0.24 of that.
    let (mut all_by_tr, mut all_by_turns) = (0.0, 0.0);
    for seed in 4..8 {
        let crowd = crowd_of(seed, 12, 4, 150);
        let (by_tr, by_turns) =
            (share(tr, shape, &crowd).0, share(PathSettings::RoundRobin, shape, &crowd).0);
        assert!(by_tr < 0.05 && by_turns > 0.05, "seed {seed}: TR {by_tr}, packets in turn {by_turns}");
        (all_by_tr, all_by_turns) = (all_by_tr + by_tr, all_by_turns + by_turns);
    }
    assert!(all_by_tr < 0.35 * all_by_turns, "TR {all_by_tr}, packets in turn {all_by_turns}");
}

#[test]
fn what_is_dropped_is_rebuilt_from_repairs() {
    let demands = crowd(12, 4, 150);
    let shape = leaf_spine(3, 4, 4, 10, 10);
    let of = |code| {
        let settings = settings(PathSettings::Spray, Group::Spray, code, 12, demands.len());
        run(config(shape, 40), demands.clone(), settings)
    };
    let sum = |simulation: &Simulation, of: fn(&simulator::overlay::Record) -> u64| {
        simulation.records().iter().map(of).sum::<u64>()
    };
    assert_eq!(sum(&of(None), |record| record.repairs), 0);
    for code in [Code::Xor, Code::Rlc, Code::Ldpc, Code::Mds] {
        let simulation = of(Some(code));
        let (repairs, packets) =
            (sum(&simulation, |record| record.repairs), sum(&simulation, |record| record.packets));
        assert!(repairs * 16 > packets, "{code:?}: one repair for 8 packets or fewer");
        assert!(sum(&simulation, |record| record.recovered) > 0, "{code:?}");
        assert!(simulation.totals().data_dropped > 0);
    }
}

#[test]
fn acknowledgements_time_the_flow_that_they_acknowledge() {
    let demands = crowd(12, 4, 150);
    let repairs = |sampling_s| {
        let mut settings = settings(PathSettings::Spray, Group::Spray, Some(Code::Mds), 12, demands.len());
        let estimator = EstimatorChoice { kind: EstimatorKind::RttAverage, sampling_s: Some(sampling_s) };
        settings.send.estimator = Some(estimator);
        for coding in settings.send.coding.iter_mut().flatten() {
            coding.redundancy = RedundancyRule::TargetDecodeProbability;
        }
        let simulation = run(config(leaf_spine(3, 4, 4, 10, 10), 40), demands.clone(), settings);
        simulation.records().iter().map(|record| record.repairs).sum::<u64>()
    };
    // Without a round trip both have the estimate that they began with, and as many repairs.
    assert_ne!(repairs(0.05), repairs(0.5));
}

#[test]
fn agents_forget_no_flow_that_waits_for_its_time_out() {
    let mut config = agents(leaf_spine(2, 2, 1, 10, 1), 2, 10, false);
    let Transport::Tcp(tcp) = &mut config.transport else { unreachable!() };
    tcp.least_timeout = 200 * MILLISECOND; // 100 s of agents' clocks
    let window = demand(0, 0, 2, 10 * u64::from(PAYLOAD));
    let beside = (1..40).map(|row| demand(row * 10 * MILLISECOND, 0, 2, 1000)); // their feedback keeps agents awake
    let demands: Vec<Demand> = std::iter::once(window).chain(beside).collect();
    let mut settings = settings(PathSettings::FlowHash, Group::Hash, None, 4, demands.len());
    settings.clock = 500.0;
    let simulation = run(config, demands, settings);
    assert!(simulation.outcomes()[0].timeouts > 0, "the end of its window is lost, and nothing shows that");
    for (outcome, record) in simulation.outcomes().iter().zip(simulation.records()) {
        assert_eq!(record.packets, outcome.sent);
    }
}

#[test]
fn the_same_seed_is_the_same_run_in_any_steps() {
    let demands = crowd(12, 4, 100);
    let of = |seed: u64, step: u64| {
        let config = Config { seed, ..config(leaf_spine(3, 4, 4, 10, 10), 40) };
        let settings = settings(PathSettings::Spray, Group::Spray, Some(Code::Rlc), 12, demands.len());
        let mut simulation = Simulation::with_overlay(config, demands.clone(), settings).unwrap();
        while !simulation.run(step).unwrap() {}
        (simulation.outcomes().to_vec(), simulation.records().to_vec(), *simulation.totals())
    };
    assert_eq!(of(3, 1 << 20), of(3, 777));
    assert_ne!(of(3, 1 << 20).0, of(4, 1 << 20).0);
}

#[test]
fn flows_without_an_end_go_on_until_the_others_have_ended() {
    let demands =
        vec![demand(0, 0, 3, u64::from(u32::MAX) * u64::from(PAYLOAD)), demand(MILLISECOND, 1, 2, 100_000)];
    let mut settings = settings(PathSettings::FlowHash, Group::Hash, None, 4, 2);
    settings.lines[0].endless = true;
    let mut simulation =
        Simulation::with_overlay(config(leaf_spine(2, 2, 1, 10, 10), 100), demands, settings).unwrap();
    assert!(simulation.run_until(u64::MAX, MILLISECOND / 2).unwrap());
    assert!(!simulation.is_over() && simulation.now() == MILLISECOND / 2);
    let before = simulation.acknowledged(0);
    assert!(simulation.run_until(u64::MAX, SECOND).unwrap());
    assert!(simulation.is_over() && simulation.now() < SECOND);
    assert!(simulation.acknowledged(0) > before && before > 0);
    let outcomes = simulation.outcomes();
    assert!(outcomes[0].completed.is_none() && outcomes[1].completed.is_some());
    assert_eq!(outcomes[0].acknowledged, simulation.acknowledged(0));
}

#[test]
fn a_flow_without_an_end_that_ends_all_the_same_keeps_no_other_from_ending() {
    let demands = vec![demand(0, 0, 3, 100_000), demand(MILLISECOND, 1, 2, 100_000)];
    let mut settings = settings(PathSettings::FlowHash, Group::Hash, None, 4, 2);
    settings.lines[0].endless = true;
    let mut simulation =
        Simulation::with_overlay(config(leaf_spine(2, 2, 1, 10, 10), 100), demands, settings).unwrap();
    assert!(simulation.run_until(u64::MAX, SECOND).unwrap());
    assert!(simulation.outcomes().iter().all(|outcome| outcome.completed.is_some()));
}

#[test]
fn of_two_copies_the_first_counts_and_the_other_sends_no_more() {
    for of_opening in [false, true] {
        let demands = vec![demand(0, 0, 3, 200_000), demand(0, 0, 3, 200_000)];
        let mut settings = settings(PathSettings::FlowHash, Group::Hash, None, 4, 2);
        for (line, row) in settings.lines.iter_mut().zip([1, 0]) {
            line.twin = Some(Twin { row, of_opening });
        }
        let simulation = run(config(leaf_spine(2, 2, 4, 10, 10), 100), demands, settings);
        let outcomes = simulation.outcomes();
        let ended: Vec<bool> = outcomes.iter().map(|outcome| outcome.completed.is_some()).collect();
        assert!(ended == [true, false] || ended == [false, true]);
        assert_eq!(simulation.finished(), 1, "two copies are one flow");
        let other = &outcomes[usize::from(ended[0])];
        assert_eq!(other.sent == 0, of_opening, "one that gave way to an open one has sent no data");
    }
}
