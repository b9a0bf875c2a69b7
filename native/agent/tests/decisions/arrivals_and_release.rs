//! Arrivals and in-order release: the decisions that the Python agent made (recorded at d7038cc), and what always holds.

use std::collections::BTreeSet;

use crate::support::{recorded, Words};
use agent::receiving::{Arrival, Arrivals, Release, MAX_HELD, WINDOW};
use agent::serial::NumberRange;
use agent::{Generator, Random};
use trials::trials;

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

#[test]
fn numbers_are_judged_as_recorded() {
    let mut arrivals = Arrivals::default();
    for (number, line) in recorded(include_str!("../vectors/arrivals.txt")) {
        let mut words = Words::of(line);
        let (said, recorded): (String, String) = match words.word() {
            "new" => {
                arrivals = Arrivals::default();
                continue;
            }
            "accept" => {
                let accepted = arrivals.accept(words.number(), words.number());
                (u8::from(accepted).to_string(), words.word().into())
            }
            "run" => {
                let numbers = NumberRange { first: words.number(), count: words.number() };
                let (now, recorded) = (words.number(), words.word());
                // recorded of a call that took all of them or none
                let all = (0..numbers.count).filter(|_| recorded == "1");
                let accepted = all.map(|ahead| arrivals.accept(numbers.first.wrapping_add(ahead), now));
                (
                    recorded.into(),
                    if accepted.fold(true, |all, new| all & new) {
                        recorded.into()
                    } else {
                        "refused".into()
                    },
                )
            }
            "give_up" => {
                let lost = arrivals.give_up(words.number());
                if words.word() == "sum" {
                    let sum = lost.iter().fold(0u32, |sum, range| {
                        sum.wrapping_add(range.first.wrapping_mul(31)).wrapping_add(range.count)
                    });
                    let recorded: Vec<u64> = words.rest();
                    (format!("{:?}", [lost.len() as u64, sum.into()]), format!("{recorded:?}"))
                } else {
                    let lost: Vec<String> =
                        lost.iter().map(|range| format!("{}+{}", range.first, range.count)).collect();
                    (format!("{lost:?}"), format!("{:?}", words.rest::<String>()))
                }
            }
            "oldest" => (optional(arrivals.oldest_missing()), words.word().into()),
            _ => {
                let counts = [arrivals.received, arrivals.replayed, arrivals.lost, arrivals.late];
                let said = format!("{counts:?} {}", optional(arrivals.newest()));
                let recorded: [u64; 4] = std::array::from_fn(|_| words.number());
                (said, format!("{recorded:?} {}", words.word()))
            }
        };
        let recorded =
            if recorded.ends_with(".0") { recorded[..recorded.len() - 2].into() } else { recorded };
        assert_eq!(said, recorded, "line {number}: {line}");
    }
}

/// Returns what went out as it was recorded: names, or their number and a sum.
fn summary(out: &[u64]) -> String {
    if out.len() > 30 {
        let sum = (1u64..).zip(out).fold(0, |sum, (place, name)| (sum + place * name) % (1 << 32));
        return format!("sum {} {sum}", out.len());
    }
    out.iter().fold("list".into(), |text, name| format!("{text} {name}"))
}

#[test]
fn packets_are_released_as_recorded() {
    let mut release = Release::<u64>::new(0);
    for (line_number, line) in recorded(include_str!("../vectors/release.txt")) {
        let (mut words, mut out) = (Words::of(line), Vec::new());
        let arrival = |position, packet| Arrival { position, number: position, packet };
        match words.word() {
            "new" => {
                release = Release::new(words.number());
                continue;
            }
            "arrive" => {
                let came = arrival(words.number(), words.number());
                release.arrive(came, words.number(), words.number(), &mut out);
            }
            "run" => {
                let (position, name, count): (u32, u64, u32) =
                    (words.number(), words.number(), words.number());
                let (timeout, now) = (words.number(), words.number());
                for ahead in 0..count {
                    let came = arrival(position.wrapping_add(ahead), name + u64::from(ahead));
                    release.arrive(came, timeout, now, &mut out);
                }
            }
            "many" => {
                // every second position, each packet named by its number
                let (count, timeout, now): (u64, f64, f64) = (words.number(), words.number(), words.number());
                for name in 1..=count {
                    release.arrive(arrival(2 * name as u32, name), timeout, now, &mut out);
                }
            }
            "follow" => {
                let (position, packet) = (words.number(), words.number());
                release.follow(position, packet, words.number(), words.number(), &mut out);
            }
            "expire" => release.expire(words.number(), &mut out),
            "drain" => release.drain(&mut out),
            other => panic!("{other}"),
        }
        let deadline = words.word();
        assert_eq!(
            optional(release.deadline()),
            deadline.trim_end_matches(".0"),
            "line {line_number}: {line}"
        );
        let Release { held_total, timeouts, duplicates, abandoned, .. } = release;
        let said = [release.next().into(), held_total, timeouts, duplicates, abandoned];
        let recorded: [u64; 5] = std::array::from_fn(|_| words.number());
        assert_eq!(said, recorded, "line {line_number}: {line}");
        assert_eq!(summary(&out), words.rest::<String>().join(" "), "line {line_number}: {line}");
    }
}

#[test]
fn each_packet_is_released_once_and_not_later_than_its_time() {
    let mut draws = Generator::new(3);
    for case in 0..trials(300u32) {
        let timeout = if case % 3 == 0 { 0.0 } else { 0.02 };
        let first = draws.bits32();
        let (mut release, mut now) = (Release::new(first), 0.0);
        let (mut came, mut out) = (Vec::<(u32, f64)>::new(), Vec::new());
        let mut released = BTreeSet::new();
        for _ in 0..draws.below(80) {
            now += draws.unit() * 0.01;
            while let Some(due) = release.deadline().filter(|&due| due <= now) {
                release.expire(due, &mut out);
                for &name in &out {
                    let (_, at) = came[came.iter().position(|one| one.0 == name).expect("it came")];
                    assert!(due - at <= timeout + 1e-9);
                }
                out.drain(..).for_each(|name| assert!(released.insert(name), "twice"));
            }
            let name = draws.below(40);
            came.push((name, now));
            let position = first.wrapping_add(name);
            let arrival = Arrival { position, number: position, packet: name };
            release.arrive(arrival, timeout, now, &mut out);
            out.drain(..).for_each(|name| assert!(released.insert(name), "twice"));
        }
        release.drain(&mut out);
        out.drain(..).for_each(|name| assert!(released.insert(name), "twice"));
        assert!(came.iter().all(|(name, _)| released.contains(name)), "lost");
        assert_eq!(release.deadline(), None);
    }
}

#[test]
fn what_a_peer_sends_bounds_what_is_held() {
    let (mut release, mut out, mut came) = (Release::new(0), Vec::new(), 0usize);
    let mut draws = Generator::new(5);
    for step in 0..trials(100_000u32) {
        let position = if step % 3 == 0 { draws.bits32() } else { draws.below(50_000) };
        release.arrive(Arrival { position, number: step, packet: () }, 10.0, 0.0, &mut out);
        came += 1;
        let duplicates = release.duplicates as usize;
        assert!(came - duplicates - out.len() <= MAX_HELD);
    }
}

/// Draws until `count` different numbers below `bound` are there.
fn some(draws: &mut Generator, count: u32, bound: u32) -> BTreeSet<u32> {
    (0..count).map(|_| draws.below(bound)).collect()
}

#[test]
fn each_number_is_accepted_once() {
    let mut draws = Generator::new(7);
    for case in 0..trials(300) {
        let base = [0, 5000, u32::MAX - 29][case % 3];
        let (mut arrivals, mut accepted) = (Arrivals::default(), BTreeSet::new());
        let numbers: Vec<u32> = (0..draws.below(120)).map(|_| draws.below(61)).collect();
        for &number in &numbers {
            let new = arrivals.accept(base.wrapping_add(number), 0.0);
            assert!(!new || accepted.insert(number), "a replay passed");
        }
        // before the first number none is known to be missing where they wrap
        let all: BTreeSet<u32> = numbers.iter().copied().collect();
        assert!(accepted == all || base == u32::MAX - 29, "a new number was refused");
        let counts = [arrivals.received as usize, arrivals.replayed as usize];
        assert_eq!(counts, [accepted.len(), numbers.len() - accepted.len()]);
    }
}

#[test]
fn what_is_missing_is_given_up_once_and_may_come_late() {
    let mut draws = Generator::new(9);
    for _ in 0..trials(200) {
        let count = draws.below(99);
        let missing: BTreeSet<u32> = some(&mut draws, count, 99).iter().map(|number| number + 1).collect();
        let mut arrivals = Arrivals::default();
        for number in (0..101).filter(|number| !missing.contains(number)) {
            assert!(arrivals.accept(number, f64::from(number) / 100.0));
        }
        assert!(arrivals.give_up(-1.0).is_empty());
        let lost = arrivals.give_up(2.0);
        let lost = lost.iter().flat_map(|range| range.first..range.first + range.count);
        assert!(lost.eq(missing.iter().copied()));
        assert!(arrivals.give_up(3.0).is_empty());
        assert_eq!(arrivals.oldest_missing(), None);
        assert!(missing.iter().all(|&number| arrivals.accept(number, 4.0)));
        assert!(!missing.iter().any(|&number| arrivals.accept(number, 4.0)));
        assert_eq!(arrivals.late as usize, missing.len());
    }
}

#[test]
fn old_numbers_are_replays_and_a_jump_is_remembered_within_a_window() {
    let mut arrivals = Arrivals::default();
    assert!(arrivals.accept(0, 0.0) && arrivals.accept(10, 0.0) && arrivals.accept(2 * WINDOW, 1.0));
    assert!(!arrivals.accept(10, 1.0));
    let lost: u32 = arrivals.give_up(2.0).iter().map(|range| range.count).sum();
    assert!(lost <= WINDOW + 16);
}

/// Gives positions as packets to a release, with their own names.
struct Line(Release<u32>);

impl Line {
    fn arrive(&mut self, position: u32, now: f64) -> Vec<u32> {
        let mut out = Vec::new();
        self.0.arrive(Arrival { position, number: 0, packet: position }, 0.02, now, &mut out);
        out
    }

    fn expire(&mut self, now: f64) -> Vec<u32> {
        let mut out = Vec::new();
        self.0.expire(now, &mut out);
        out
    }
}

#[test]
fn with_time_enough_all_come_once_and_in_order() {
    let mut draws = Generator::new(11);
    for case in 0..trials(200u32) {
        let first = if case % 2 == 0 { 0 } else { u32::MAX - 4 };
        let mut order: Vec<u32> = (0..12).collect();
        (1..12).rev().for_each(|last| order.swap(last, draws.below(last as u32 + 1) as usize));
        let again = draws.below(6);
        order.extend((0..again).map(|_| draws.below(12)));
        let mut line = Line(Release::new(first));
        let out: Vec<u32> =
            order.iter().flat_map(|position| line.arrive(first.wrapping_add(*position), 0.0)).collect();
        assert!(out.into_iter().eq((0..12).map(|position| first.wrapping_add(position))));
        assert_eq!((line.0.duplicates, line.0.deadline()), (again.into(), None));
    }
}

#[test]
fn a_gap_is_given_up_and_its_packet_still_comes() {
    let mut line = Line(Release::new(0));
    assert_eq!(line.arrive(0, 0.0), [0]);
    assert!(line.arrive(2, 0.001).is_empty() && line.arrive(3, 0.002).is_empty());
    assert_eq!(line.0.deadline(), Some(0.001 + 0.02));
    assert!(line.expire(0.02).is_empty());
    assert_eq!(line.expire(0.021), [2, 3]);
    assert_eq!((line.0.timeouts, line.0.abandoned, line.0.held_total), (1, 1, 2));
    assert_eq!(line.arrive(1, 0.03), [1]);
    assert!(line.arrive(1, 0.03).is_empty());
    assert_eq!((line.0.abandoned, line.0.duplicates), (0, 1));
}

#[test]
fn a_second_gap_has_its_own_time() {
    let mut line = Line(Release::new(0));
    assert!(line.arrive(1, 0.0).is_empty() && line.arrive(3, 0.015).is_empty());
    assert_eq!(line.expire(0.02), [1]);
    assert_eq!(line.0.deadline(), Some(0.015 + 0.02));
    assert_eq!(line.arrive(2, 0.021), [2, 3]);
    assert_eq!(line.0.deadline(), None);
}

#[test]
fn what_comes_late_is_taken_off_only_where_it_was_given_up_since_counting_began_anew() {
    let mut line = Line(Release::new(0));
    assert!(line.arrive(2, 0.0).is_empty());
    assert_eq!(line.expire(0.02), [2]);
    assert_eq!(line.0.abandoned, 2);
    line.0.count_anew();
    assert!(line.arrive(5, 0.03).is_empty());
    assert_eq!(line.expire(0.05), [5]);
    assert_eq!((line.arrive(0, 0.06), line.arrive(1, 0.06)), (vec![0], vec![1]));
    assert_eq!(line.0.abandoned, 2);
    assert_eq!(line.arrive(3, 0.07), [3]);
    assert_eq!(line.0.abandoned, 1);
}

#[test]
fn a_number_is_late_only_after_one_that_was_given_up_a_moment_ago() {
    let mut arrivals = Arrivals::default();
    assert!(arrivals.accept(0, 0.0) && arrivals.accept(2, 0.0));
    assert_eq!(arrivals.give_up(1.0), [NumberRange { first: 1, count: 1 }]);
    for number in [1 << 30, (1 << 31) + 9, (1 << 31) + 5] {
        assert!(arrivals.accept(number, 2.0));
    }
    assert_eq!(arrivals.late, 0, "2^31 numbers later it is only overtaken");
}

#[test]
fn what_came_before_a_peer_was_away_is_a_replay() {
    for last in [5, 5000, u32::MAX - 2] {
        let mut before = Arrivals::default();
        assert!(before.accept(last, 0.0));
        let mut arrivals = Arrivals::after(Arrivals::after(before.last()).last());
        assert!(!arrivals.accept(last, 1.0) && !arrivals.accept(last.wrapping_sub(9), 1.0));
        for ahead in [2, 1, 2 * WINDOW] {
            assert!(arrivals.accept(last.wrapping_add(ahead), 1.0));
            assert!(!arrivals.accept(last, 1.0));
        }
        assert_eq!((arrivals.received, arrivals.replayed), (3, 5));
    }
}
