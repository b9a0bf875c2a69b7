use super::*;
use crate::random::{Generator, Random};
use trials::trials;

fn route(leaf: u16) -> Route {
    let labels: Vec<u16> = (1..=4).map(label_of).collect();
    Route { labels: labels.into(), version: 1, ..Route::unnamed(LeafId(leaf), TrafficClass::Long) }
}

#[test]
fn an_agent_shares_the_delays_of_all_its_paths_though_it_looks_at_few() {
    let (mut random, mut tr) = (Generator::new(5), Tr::new(0.001));
    let (mut now, mut looked_at, mut shared, mut left) = (0.0, 0, 0, Vec::new());
    let turns = trials(20_000);
    for turn in 0..turns {
        now += if random.below(100) == 0 { 0.4 } else { 0.002 * random.unit() };
        let flow = i64::from(random.below(9));
        if random.below(3) == 0 {
            let flow = FlowRef { id: flow, hash: flow as u32 };
            let leaf = random.below(6) as u16;
            let port = tr.source_port(flow, &route(leaf), 1500, now);
            left.push((flow.id, LeafId(leaf), port, now));
        } else if let Some((flow, leaf, port, sent)) = left.pop().filter(|_| random.below(2) == 0) {
            let delay_s = 0.02 * random.unit() * f64::from(random.below(3));
            let stamp = stamp_of_label(port);
            tr.reported(&Report { flow, leaf, port, stamp, delay_s, sent, marked: false }, now);
        }
        if turn % 7 == 0 {
            let mut all = tr.clone();
            let (ages, places) = (all.ages(), all.places.clone());
            let steps = places.into_iter().map(|(id, place)| (id, all.paths[place].late(now, ages)));
            let steps = steps.map(|(id, late)| (id, (late / tr.step_s).trunc()));
            let expected: BTreeMap<PathId, Seconds> =
                steps.filter(|&(_, steps)| steps != 0.0).map(|(id, steps)| (id, steps * tr.step_s)).collect();
            looked_at += tr.speaking.len();
            shared += expected.len();
            assert_eq!(tr.load(now).map(|load| load.delays_s), Some(expected), "turn {turn}");
        }
    }
    assert!(shared > turns / 20 && looked_at < tr.paths.len() * turns / 7 * 9 / 10, "{shared}, {looked_at}");
}

#[test]
fn only_what_others_said_last_holds() {
    let (mut random, mut tr) = (Generator::new(6), Tr::new(0.001));
    let ids: Vec<PathId> = (1..6).map(|stamp| PathId { leaf: LeafId(1), stamp }).collect();
    for turn in 0..trials(200) {
        let named = ids.iter().filter(|_| random.below(2) == 0);
        let delays_s: BTreeMap<PathId, Seconds> = named.map(|&id| (id, 0.01 + f64::from(turn))).collect();
        tr.set_load(&Load { delays_s: delays_s.clone(), ..Load::default() }, 1.0);
        let ages = tr.ages();
        for &id in &ids {
            let place = tr.place(id.leaf, label_of(id.stamp));
            let expected = delays_s.get(&id).copied().unwrap_or(0.0);
            assert_eq!(tr.paths[place].rank(1.0, ages), expected);
        }
    }
}

#[test]
fn a_queue_drains_and_what_a_path_takes_while_idle_does_not() {
    let (mut path, ages) = (Path::default(), Ages { lag: 0.01, full: 0.256, shared: 2.048 });
    path.set_idle(0.05);
    path.measured(0.01, 1.0);
    for later in [0.0, 0.004, 0.02, 10.0] {
        let (now, queue) = (1.0 + later, f64::max(0.01 - later, 0.0));
        assert!((path.at_least(now) - 0.05 - queue).abs() < 1e-9, "{later} s later");
        assert!((path.expected(now) - 0.05 - queue).abs() < 1e-9, "{later} s later");
        assert!(path.rank(now, ages) >= 0.05, "{later} s later");
    }
    path.put(0.001, 20.0);
    assert!((path.expected(20.0) - 0.051).abs() < 1e-9, "a packet waits in queues alone");
    assert_eq!(path.late(20.06, ages), 0.0, "none is overdue before it can have arrived");
    assert!((path.late(20.07, ages) - 0.01).abs() < 1e-9);
}

#[test]
fn a_flow_leaves_a_longer_path_once_its_packet_has_arrived_and_a_new_flow_takes_none() {
    let mut tr = Tr::new(0.001);
    let all = Route { idle_us: [0, 0, 0, 50_000].into(), version: 2, ..route(1) };
    let longer = all.labels[3];
    let alone = Route { labels: [longer].into(), idle_us: [50_000].into(), version: 1, ..route(1) };
    let flow = FlowRef { id: 1, hash: 1 };
    assert_eq!(tr.source_port(flow, &alone, 1500, 0.0), longer);
    for (now, stays) in [(0.001, true), (0.04, true), (0.5, false)] {
        assert_eq!(tr.source_port(flow, &all, 1500, now) == longer, stays, "at {now} s");
    }
    let fresh = (2..100).map(|id| FlowRef { id, hash: id as u32 * 977 });
    let taken: Vec<u16> = fresh.map(|flow| tr.source_port(flow, &all, 1500, 1.0)).collect();
    assert!(!taken.contains(&longer) && taken.iter().any(|&port| port != taken[0]), "{taken:?}");
}
