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
