//! In-order release by what paths have delivered: late packets are waited for, lost ones no longer than until it is certain.

use std::collections::BTreeSet;

use agent::receiving::{Arrival, PathProgress, Release};
use agent::{Generator, Random, TrafficClass};

const CLASS: TrafficClass = TrafficClass::Long;

/// A datagram on its way: of which path, and when it comes; `None`: it is lost.
#[derive(Clone, Copy)]
struct Sent {
    stamp: u16,
    comes: Option<f64>,
}

/// Sends `count` packets, one every millisecond, over first-in, first-out paths of very different delay.
fn sent(draws: &mut Generator, count: u32, paths: u32, lossy: bool) -> Vec<Sent> {
    let mut free = vec![0.0f64; paths as usize];
    let delays: Vec<f64> = (0..paths).map(|_| draws.unit() * 2.0).collect();
    (0..count)
        .map(|number| {
            let path = draws.below(paths) as usize;
            let at = f64::from(number) * 0.001;
            free[path] = free[path].max(at + delays[path]) + draws.unit() * 0.002;
            let comes = (!lossy || draws.below(10) > 0).then_some(free[path]);
            Sent { stamp: 1 + path as u16, comes }
        })
        .collect()
}

struct Outcome {
    released: Vec<u32>,
    timeouts: u64,
    /// Per packet given up: whether every path had delivered a later one when its successor went out.
    early: usize,
}

/// Receives them with a path's silence never reached.
fn received(sent: &[Sent], paths: u32, first: u32, silence_s: f64) -> Outcome {
    let mut order: Vec<u32> =
        (0..sent.len() as u32).filter(|&at| sent[at as usize].comes.is_some()).collect();
    order.sort_by(|&a, &b| sent[a as usize].comes.partial_cmp(&sent[b as usize].comes).unwrap());
    let (mut progress, mut release) = (PathProgress::default(), Release::new(first));
    let (mut released, mut out, mut early) = (Vec::new(), Vec::new(), 0);
    let mut newest = vec![None::<u32>; paths as usize];
    for stamp in 1..=paths as u16 {
        progress.took(CLASS, stamp, first.wrapping_sub(1), 0.0); // paths are known
    }
    for &at in &order {
        let Sent { stamp, comes } = sent[at as usize];
        let (now, number) = (comes.unwrap(), first.wrapping_add(at));
        progress.took(CLASS, stamp, number, now);
        newest[usize::from(stamp) - 1] = Some(at);
        release.arrive(Arrival { position: number, number, packet: at }, 1e9, now, &mut out);
        release.settle(progress.settled(CLASS, silence_s, now), &mut out);
        for packet in out.drain(..) {
            let skipped = (released.last().map_or(0, |last| last + 1)..packet)
                .any(|gap| !newest.iter().all(|newest| newest.is_some_and(|newest| newest > gap)));
            early += usize::from(skipped);
            released.push(packet);
        }
    }
    release.drain(&mut out);
    released.append(&mut out);
    Outcome { released, timeouts: release.timeouts, early }
}

#[test]
fn nothing_late_is_given_up_however_different_paths_are() {
    let mut draws = Generator::new(11);
    for case in 0..200 {
        let (paths, first) =
            (1 + draws.below(20), if case % 2 == 0 { u32::MAX - 100 } else { draws.bits32() });
        let sent = sent(&mut draws, 400, paths, false);
        let outcome = received(&sent, paths, first, 1e9);
        assert_eq!(outcome.timeouts, 0, "case {case}");
        assert!(outcome.released.is_sorted(), "case {case}");
        assert_eq!(outcome.released.len(), 400, "case {case}");
    }
}

#[test]
fn a_packet_is_lost_when_every_path_has_delivered_a_later_one_and_not_before() {
    let mut draws = Generator::new(12);
    for case in 0..200 {
        let paths = 1 + draws.below(8);
        let sent = sent(&mut draws, 400, paths, true);
        let outcome = received(&sent, paths, draws.bits32(), 1e9);
        assert_eq!(outcome.early, 0, "case {case}");
        assert!(outcome.released.is_sorted(), "case {case}");
        let came: BTreeSet<u32> = (0..400).filter(|&at| sent[at as usize].comes.is_some()).collect();
        assert_eq!(outcome.released.into_iter().collect::<BTreeSet<_>>(), came, "case {case}");
    }
}

#[test]
fn a_path_that_fell_silent_is_waited_for_no_longer_than_its_bound() {
    let (mut progress, mut release, mut out) = (PathProgress::default(), Release::new(0), Vec::new());
    progress.took(CLASS, 1, 0, 0.0);
    release.arrive(Arrival { position: 0, number: 0, packet: 0 }, 1e9, 0.0, &mut out);
    progress.took(CLASS, 2, 2, 0.1);
    release.arrive(Arrival { position: 2, number: 2, packet: 2 }, 1e9, 0.1, &mut out);
    release.settle(progress.settled(CLASS, 0.5, 0.1), &mut out);
    assert_eq!(out, [0], "path 1 may still deliver what is missing");
    let look = release.deadline().expect("a packet waits");
    assert_eq!(look, 0.5, "path 1 spoke last at 0");
    release.settle(progress.settled(CLASS, 0.5, look), &mut out);
    assert_eq!(out, [0, 2]);
    assert_eq!(release.deadline(), None);
}

#[test]
fn classes_have_queues_of_their_own() {
    let mut progress = PathProgress::default();
    progress.took(TrafficClass::Short, 1, 9, 0.0);
    progress.took(CLASS, 1, 4, 0.0);
    assert_eq!(progress.settled(CLASS, 1.0, 0.0).number, Some(4));
    assert!(progress.settled(TrafficClass::Short, 1.0, 0.0).has(9));
    assert!(!progress.settled(CLASS, 1.0, 0.0).has(5));
    assert!(progress.settled(CLASS, 1.0, 1.0).has(5), "all are silent: nothing is on its way");
}

#[test]
fn a_flow_that_is_no_longer_released_by_paths_is_not_asked_about_them_for_ever() {
    let (mut progress, mut release, mut out) = (PathProgress::default(), Release::new(0), Vec::new());
    progress.took(CLASS, 1, 0, 0.0);
    release.arrive(Arrival { position: 5, number: 5, packet: 5 }, 2.0, 0.0, &mut out);
    release.settle(progress.settled(CLASS, 0.5, 0.0), &mut out);
    assert_eq!(release.deadline(), Some(0.5));
    release.expire(0.5, &mut out); // its class has a timer meanwhile
    assert_eq!(release.deadline(), Some(2.0));
}

#[test]
fn a_path_that_was_silent_for_more_than_half_of_the_numbers_speaks_again() {
    let mut progress = PathProgress::default();
    progress.took(CLASS, 1, 5, 0.0);
    let number = (1 << 31) + 7;
    progress.took(CLASS, 1, number, 30_000.0);
    assert_eq!(progress.settled(CLASS, 1.0, 30_000.0).number, Some(number));
    progress.took(CLASS, 1, number - 2, 30_001.0);
    assert_eq!(progress.settled(CLASS, 1.0, 30_001.0).number, Some(number), "overtaken");
}
