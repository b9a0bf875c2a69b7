//! In-order release by what paths have delivered: late packets are waited for, lost ones no longer than until it is certain.

use std::collections::BTreeSet;

use agent::receiving::{Arrival, Delivered, PathProgress, Release, SettledUpTo};
use agent::{Generator, Random, TrafficClass};
use trials::trials;

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

/// A silence that no path reaches.
const NEVER_S: f64 = 1e9;

fn long(stamp: u16, number: u32) -> Delivered {
    Delivered { class: CLASS, stamp, number }
}

struct Outcome {
    released: Vec<u32>,
    timeouts: u64,
    /// Per packet given up: whether every path had delivered a later one when its successor went out.
    early: usize,
}

/// Receives them; all paths have delivered for long, and none falls silent.
fn received(sent: &[Sent], paths: u32, first: u32) -> Outcome {
    let mut order: Vec<u32> =
        (0..sent.len() as u32).filter(|&at| sent[at as usize].comes.is_some()).collect();
    order.sort_by(|&a, &b| sent[a as usize].comes.partial_cmp(&sent[b as usize].comes).unwrap());
    let (mut progress, mut release) = (PathProgress::default(), Release::new(first));
    let (mut released, mut out, mut early) = (Vec::new(), Vec::new(), 0);
    let mut newest = vec![None::<u32>; paths as usize];
    for at in [-NEVER_S, -1.0] {
        for stamp in 1..=paths as u16 {
            progress.took(long(stamp, first.wrapping_sub(1)), NEVER_S, at);
        }
    }
    for &at in &order {
        let Sent { stamp, comes } = sent[at as usize];
        let (now, number) = (comes.unwrap(), first.wrapping_add(at));
        progress.took(long(stamp, number), NEVER_S, now);
        newest[usize::from(stamp) - 1] = Some(at);
        release.arrive(Arrival { position: number, number, packet: at }, 1e9, now, &mut out);
        release.settle(progress.settled(CLASS, NEVER_S, now), &mut out);
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
    for case in 0..trials(200) {
        let (paths, first) =
            (1 + draws.below(20), if case % 2 == 0 { u32::MAX - 100 } else { draws.bits32() });
        let sent = sent(&mut draws, 400, paths, false);
        let outcome = received(&sent, paths, first);
        assert_eq!(outcome.timeouts, 0, "case {case}");
        assert!(outcome.released.is_sorted(), "case {case}");
        assert_eq!(outcome.released.len(), 400, "case {case}");
    }
}

#[test]
fn a_packet_is_lost_when_every_path_has_delivered_a_later_one_and_not_before() {
    let mut draws = Generator::new(12);
    for case in 0..trials(200) {
        let paths = 1 + draws.below(8);
        let sent = sent(&mut draws, 400, paths, true);
        let outcome = received(&sent, paths, draws.bits32());
        assert_eq!(outcome.early, 0, "case {case}");
        assert!(outcome.released.is_sorted(), "case {case}");
        let came: BTreeSet<u32> = (0..400).filter(|&at| sent[at as usize].comes.is_some()).collect();
        assert_eq!(outcome.released.into_iter().collect::<BTreeSet<_>>(), came, "case {case}");
    }
}

#[test]
fn a_path_that_fell_silent_is_waited_for_no_longer_than_its_bound() {
    let (mut progress, mut release, mut out) = (PathProgress::default(), Release::new(0), Vec::new());
    progress.took(long(1, 0), 0.5, 0.0);
    release.arrive(Arrival { position: 0, number: 0, packet: 0 }, 1e9, 0.0, &mut out);
    progress.took(long(2, 2), 0.5, 0.1);
    progress.took(long(1, 1), 0.5, 0.4);
    progress.took(long(2, 4), 0.5, 0.6);
    release.arrive(Arrival { position: 4, number: 4, packet: 4 }, 1e9, 0.6, &mut out);
    release.settle(progress.settled(CLASS, 0.5, 0.6), &mut out);
    assert_eq!(out, [0], "path 1 may still deliver what is missing");
    let look = release.deadline().expect("a packet waits");
    assert_eq!(look, 0.9, "path 1 spoke last at 0.4");
    release.settle(progress.settled(CLASS, 0.5, look), &mut out);
    assert_eq!(out, [0, 4]);
    assert_eq!(release.deadline(), None);
}

#[test]
fn a_class_that_begins_waits_for_paths_that_have_delivered_nothing_of_it_yet() {
    let (mut progress, mut release, mut out) = (PathProgress::default(), Release::new(0), Vec::new());
    progress.took(long(1, 3), 0.5, 10.0);
    release.arrive(Arrival { position: 3, number: 3, packet: 3 }, 1e9, 10.0, &mut out);
    progress.took(long(1, 5), 0.5, 10.2);
    release.settle(progress.settled(CLASS, 0.5, 10.2), &mut out);
    assert!(out.is_empty(), "0, 1 and 2 may come over a slower path");
    assert_eq!(release.deadline(), Some(10.5));
    for position in 0..3 {
        progress.took(long(2, position), 0.5, 10.3);
        release.arrive(Arrival { position, number: position, packet: position }, 1e9, 10.3, &mut out);
    }
    assert_eq!(out, [0, 1, 2, 3]);
    assert_eq!(release.timeouts, 0);
}

#[test]
fn what_is_missing_is_given_up_once_a_class_that_begins_has_been_active_for_long_enough() {
    let (mut progress, mut release, mut out) = (PathProgress::default(), Release::new(0), Vec::new());
    progress.took(long(1, 3), 0.5, 10.0);
    release.arrive(Arrival { position: 3, number: 3, packet: 3 }, 1e9, 10.0, &mut out);
    progress.took(long(1, 5), 0.5, 10.4);
    release.settle(progress.settled(CLASS, 0.5, 10.4), &mut out);
    release.settle(progress.settled(CLASS, 0.5, 10.5), &mut out);
    assert_eq!(out, [3], "path 1, the only one that speaks, has delivered 5");
}

#[test]
fn a_class_that_comes_after_silence_begins_anew() {
    let mut progress = PathProgress::default();
    let up_to = |progress: &PathProgress, now| progress.settled(CLASS, 0.5, now).up_to;
    progress.took(long(1, 1), 0.5, 0.0);
    progress.took(long(1, 2), 0.5, 0.4);
    progress.took(long(1, 3), 0.5, 0.8);
    assert_eq!(up_to(&progress, 0.8), SettledUpTo::Number(3), "active since 0, without silence");
    assert_eq!(up_to(&progress, 1.3), SettledUpTo::All, "nothing is on its way");
    progress.took(long(1, 9), 0.5, 1.3);
    assert_eq!(up_to(&progress, 1.3), SettledUpTo::Nothing, "silent for 0.5 s");
    assert_eq!(up_to(&progress, 1.7), SettledUpTo::Nothing);
    progress.took(long(1, 10), 0.5, 1.7);
    assert_eq!(up_to(&progress, 1.8), SettledUpTo::Number(10));
}

#[test]
fn classes_have_queues_of_their_own() {
    let mut progress = PathProgress::default();
    progress.took(Delivered { class: TrafficClass::Short, stamp: 1, number: 9 }, 1.0, 0.0);
    progress.took(long(1, 4), 1.0, 0.5);
    progress.took(long(1, 4), 1.0, 1.4);
    assert_eq!(progress.settled(CLASS, 1.0, 1.5).up_to, SettledUpTo::Number(4));
    assert_eq!(progress.settled(TrafficClass::Short, 1.0, 1.5).up_to, SettledUpTo::All);
    assert!(!progress.settled(CLASS, 1.0, 1.5).has(5));
    assert!(progress.settled(CLASS, 1.0, 2.4).has(5), "all are silent: nothing is on its way");
}

#[test]
fn a_flow_that_is_no_longer_released_by_paths_is_not_asked_about_them_for_ever() {
    let (mut progress, mut release, mut out) = (PathProgress::default(), Release::new(0), Vec::new());
    progress.took(long(1, 0), 0.5, 0.0);
    release.arrive(Arrival { position: 5, number: 5, packet: 5 }, 2.0, 0.0, &mut out);
    release.settle(progress.settled(CLASS, 0.5, 0.0), &mut out);
    assert_eq!(release.deadline(), Some(0.5));
    release.expire(0.5, &mut out); // its class has a timer meanwhile
    assert_eq!(release.deadline(), Some(2.0));
}

#[test]
fn a_path_that_was_silent_for_more_than_half_of_the_numbers_speaks_again() {
    let mut progress = PathProgress::default();
    progress.took(long(1, 5), 1e6, 0.0);
    let number = (1 << 31) + 7;
    progress.took(long(1, number), 1e6, 999_980.0);
    assert_eq!(progress.settled(CLASS, 1e6, 1e6).up_to, SettledUpTo::Number(number));
    progress.took(long(1, number - 2), 1e6, 1_000_001.0);
    assert_eq!(progress.settled(CLASS, 1e6, 1_000_001.0).up_to, SettledUpTo::Number(number), "overtaken");
}
