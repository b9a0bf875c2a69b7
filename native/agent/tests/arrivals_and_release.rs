//! Arrivals and in-order release: the decisions that the Python agent made (recorded at d7038cc), and what always holds.

mod support;

use agent::receiving::{Arrival, Arrivals, Release, MAX_HELD};
use agent::serial::NumberRange;
use agent::{Generator, Random};
use support::Words;

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

fn events(vector: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    vector.lines().enumerate().filter(|(_, line)| !line.starts_with('#'))
}

#[test]
fn numbers_are_judged_as_recorded() {
    let mut arrivals = Arrivals::default();
    for (at, line) in events(include_str!("vectors/arrivals.txt")) {
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
                let accepted = arrivals.accept_run(numbers, words.number());
                (u8::from(accepted).to_string(), words.word().into())
            }
            "give_up" => {
                let lost = arrivals.give_up(words.number());
                if words.word() == "sum" {
                    let sum = lost.iter().fold(0u32, |sum, one| {
                        sum.wrapping_add(one.first.wrapping_mul(31)).wrapping_add(one.count)
                    });
                    let recorded: Vec<u64> = words.rest();
                    (format!("{:?}", [lost.len() as u64, sum.into()]), format!("{recorded:?}"))
                } else {
                    let lost: Vec<String> =
                        lost.iter().map(|one| format!("{}+{}", one.first, one.count)).collect();
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
        assert_eq!(said, recorded, "line {}: {line}", at + 1);
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
    for (at, line) in events(include_str!("vectors/release.txt")) {
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
        assert_eq!(optional(release.deadline()), deadline.trim_end_matches(".0"), "line {}: {line}", at + 1);
        let Release { held_total, timeouts, duplicates, abandoned, .. } = release;
        let said = [release.next().into(), held_total, timeouts, duplicates, abandoned];
        let recorded: [u64; 5] = std::array::from_fn(|_| words.number());
        assert_eq!(said, recorded, "line {}: {line}", at + 1);
        assert_eq!(summary(&out), words.rest::<String>().join(" "), "line {}: {line}", at + 1);
    }
}

#[test]
fn each_packet_is_released_once_and_not_later_than_its_time() {
    let mut draws = Generator::new(3);
    for case in 0..300u32 {
        let timeout = if case % 3 == 0 { 0.0 } else { 0.02 };
        let first = draws.bits32();
        let (mut release, mut now) = (Release::new(first), 0.0);
        let (mut came, mut out) = (Vec::<(u32, f64)>::new(), Vec::new());
        let mut released = std::collections::BTreeSet::new();
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
    for step in 0..100_000u32 {
        let position = if step % 3 == 0 { draws.bits32() } else { draws.below(50_000) };
        release.arrive(Arrival { position, number: step, packet: () }, 10.0, 0.0, &mut out);
        came += 1;
        let duplicates = release.duplicates as usize;
        assert!(came - duplicates - out.len() <= MAX_HELD);
    }
}
