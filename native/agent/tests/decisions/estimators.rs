//! The estimator of the blocking probability by paths against simulated fabrics whose truth is known.

use agent::blocking::{BlockingEstimator, Paths, MAX_BLOCKING_PROBABILITY, PRIOR};
use agent::{Generator, Random};

/// 1500 B at 10 Mbit/s, seconds.
const PACKET_TIME_S: f64 = 0.0012;

fn near(value: f64, wanted: f64, most: f64) {
    assert!((value - wanted).abs() <= most, "{value} instead of {wanted}, at most {most} off");
}

fn paths() -> Paths {
    Paths::new(PACKET_TIME_S, None)
}

/// Packets of a sender, over how long and how many.
struct Span {
    since: f64,
    until: f64,
    packets_per_s: f64,
}

/// Sprayed packets over paths of which some hold 320-550 ms of queue, the others 3-6 ms (as measured).
///
/// Feedback reaches the sender when it comes: a receipt one delay and 3 ms after the packet left, and a loss, or that a
/// packet is overdue, one best delay and `overdue_s` after it.
struct Fabric {
    random: Generator,
    paths: u32,
    blocked: u32,
    drop: f64,
    offset_us: u32,
    overdue: bool,
}

impl Fabric {
    fn new(paths: u32, blocked: u32, seed: u64) -> Fabric {
        let random = Generator::new(seed);
        Fabric { random, paths, blocked, drop: 0.0, offset_us: 0, overdue: false }
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random.unit()
    }

    fn feed(&mut self, watched: &mut dyn BlockingEstimator, span: &Span) {
        let mut feedback: Vec<(f64, Option<(u16, u32)>)> = Vec::new();
        for _ in 0..((span.until - span.since) * span.packets_per_s).round() as usize {
            let sent = self.between(span.since, span.until);
            let path = self.random.below(self.paths);
            let late = path < self.blocked;
            let delay_s = if late { self.between(0.32, 0.55) } else { self.between(0.003, 0.006) };
            let lost = late && self.random.unit() < self.drop;
            if lost || (late && self.overdue) {
                feedback.push((sent + watched.overdue_s() + 0.006, None));
            }
            if !lost {
                let delay_us = ((delay_s * 1e6).round() as u32).wrapping_add(self.offset_us);
                feedback.push((sent + delay_s + 0.003, Some((1 + path as u16, delay_us))));
            }
        }
        feedback.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (now, receipt) in feedback.into_iter().take_while(|&(now, _)| now <= span.until) {
            match receipt {
                None => watched.path_loss(None, now),
                Some((stamp, delay_us)) => watched.path_delay(stamp, delay_us, now),
            }
        }
    }
}

/// Also with clocks that differ (delays wrap at 2^32), and with a third lost on the blocked paths.
#[test]
#[cfg_attr(miri, ignore = "judges shares of thousands")]
fn paths_estimator_is_right() {
    for case in 0..2 * 4 * 2 * 2 * 2 {
        let count = [8, 16][case % 2];
        let share = [0.0, 0.125, 0.25, 0.5][case / 2 % 4];
        let mut fabric = Fabric::new(count, (share * f64::from(count)) as u32, u64::from(count));
        fabric.offset_us = [0, 4500u32.wrapping_neg()][case / 8 % 2];
        fabric.drop = [0.0, 0.3][case / 16 % 2];
        fabric.overdue = case / 32 == 1;
        let mut watched = paths();
        let mut readings = Vec::new();
        for step in 0..8 {
            let since = 2.0 * f64::from(step);
            fabric.feed(&mut watched, &Span { since, until: since + 2.0, packets_per_s: 400.0 });
            readings.push(watched.blocking_probability(since + 2.0));
        }
        near(readings[1..].iter().sum::<f64>() / 7.0, share, 0.06);
    }
}

/// 70 packets in 100 ms to a peer that never reported anything: only overdue packets can show it by then.
#[test]
fn paths_estimator_sees_blocked_paths_within_the_first_flow() {
    for share in [0.0, 0.25, 0.5] {
        let reading = |seed: u64| {
            let (mut watched, mut fabric) = (paths(), Fabric::new(16, (16.0 * share) as u32, seed));
            fabric.overdue = true;
            fabric.feed(&mut watched, &Span { since: 0.0, until: 0.1, packets_per_s: 700.0 });
            watched.blocking_probability(0.1)
        };
        near((0..20).map(reading).sum::<f64>() / 20.0, share, 0.08);
    }
}

/// Short flows come seldom, long flows stay: 1.5 s of silence change nothing.
#[test]
fn paths_estimator_remembers_between_flows() {
    let mut watched = paths();
    Fabric::new(16, 4, 1).feed(&mut watched, &Span { since: 0.0, until: 2.0, packets_per_s: 400.0 });
    near(watched.blocking_probability(3.5), 0.25, 0.06);
}

#[test]
fn paths_estimator_follows_within_a_second() {
    let mut watched = paths();
    let mut feed = |blocked: u32, since: f64, until: f64| {
        let span = Span { since, until, packets_per_s: 400.0 };
        Fabric::new(16, blocked, 1 + since as u64).feed(&mut watched, &span);
        watched.blocking_probability(until)
    };
    assert_eq!(feed(0, 0.0, 2.0), 0.0);
    near(feed(8, 2.0, 4.0), 0.5, 0.06);
    assert!(feed(0, 4.0, 5.0) < 0.03);
    assert_eq!(watched.blocking_probability(60.0), PRIOR);
}

#[test]
fn paths_estimator_knows_the_best_even_while_all_are_blocked() {
    let mut watched = paths();
    Fabric::new(4, 0, 1).feed(&mut watched, &Span { since: 0.0, until: 1.0, packets_per_s: 400.0 });
    Fabric::new(4, 4, 2).feed(&mut watched, &Span { since: 1.0, until: 4.0, packets_per_s: 400.0 });
    assert_eq!(watched.blocking_probability(4.0), MAX_BLOCKING_PROBABILITY);
}

/// A longer way (or a clock that was set) is the new normal after at most two periods of the best delay.
#[test]
fn paths_estimator_follows_a_slower_best_path_after_a_while() {
    let mut watched = paths();
    for step in 0..5000u16 {
        let now = f64::from(step) * 0.01;
        watched.path_delay(1 + step % 4, if now < 5.0 { 3000 } else { 90_000 }, now);
        if step == 600 {
            assert_eq!(watched.blocking_probability(now), MAX_BLOCKING_PROBABILITY);
        }
    }
    near(watched.blocking_probability(49.99), 0.0, 1e-6);
}

#[test]
fn paths_estimator_counts_random_loss_without_a_known_path() {
    let (mut watched, mut random) = (paths(), Generator::new(5));
    let mut sum = 0.0;
    for step in 0..4000 {
        let now = f64::from(step) * 0.002;
        if random.unit() < 0.1 {
            watched.path_loss(None, now);
        } else {
            watched.path_delay(1 + random.below(8) as u16, 4000, now);
        }
        sum += if step < 500 { 0.0 } else { watched.blocking_probability(now) };
    }
    near(sum / 3500.0, 0.1, 0.03);
}

#[test]
fn paths_estimator_counts_loss_on_a_known_path_as_blocked() {
    let mut watched = paths();
    for step in 0..200u16 {
        let (stamp, now) = (1 + step % 4, f64::from(step) * 0.002);
        match stamp {
            1 => watched.path_loss(Some(stamp), now),
            _ => watched.path_delay(stamp, 4000, now),
        }
    }
    near(watched.blocking_probability(0.4), 0.25, 0.01);
}

#[test]
fn paths_estimator_forgets_paths_that_are_silent() {
    let mut watched = Paths::new(PACKET_TIME_S, Some(0.5));
    for step in 0..20u16 {
        let delay_us = if step % 2 == 1 { 4000 } else { 900_000 };
        watched.path_delay(1 + step % 2, delay_us, 0.01 * f64::from(step));
    }
    near(watched.blocking_probability(0.2), 0.5, 0.002);
    for step in 0..20 {
        watched.path_delay(2, 4000, 1.0 + 0.01 * f64::from(step));
    }
    assert_eq!(watched.blocking_probability(1.2), 0.0);
    assert_eq!(watched.blocking_probability(9.0), PRIOR);
}

#[test]
fn first_samples_only_pull_at_the_prior() {
    let mut watched = paths();
    assert_eq!(watched.blocking_probability(0.0), PRIOR);
    watched.path_delay(1, 4000, 0.0);
    let reading = watched.blocking_probability(0.0);
    assert!(0.0 < reading && reading < PRIOR);
}

#[test]
fn threshold_is_given_in_packet_times_with_a_floor_for_jitter() {
    for (packet_time_s, fine_us, blocked_us) in [(0.0012, 9500, 9700), (0.000_012, 1900, 2100)] {
        for (extra_us, share) in [(fine_us, 0.0), (blocked_us, 0.5)] {
            let mut watched = Paths::new(packet_time_s, None);
            for step in 0..40u16 {
                let late = u32::from(step % 2);
                watched.path_delay(1 + step % 2, 1000 + extra_us * late, 0.001 * f64::from(step));
            }
            near(watched.blocking_probability(0.04), share, 1e-6 * share);
        }
    }
}

#[test]
fn paths_estimator_has_both_round_trip_times() {
    let mut watched = paths();
    assert_eq!((watched.rtt_s(), watched.blocked_rtt_s()), (0.0, 0.0));
    for step in 0..100u16 {
        let now = 0.01 * f64::from(step);
        watched.ack_rtt(if step % 5 == 4 { 0.4 } else { 0.006 }, now);
        watched.path_delay(1 + step % 4, if step % 4 == 3 { 303_000 } else { 3000 }, now);
    }
    near(watched.rtt_s(), 0.006, 1e-8);
    near(watched.blocked_rtt_s(), 0.306, 1e-6);
    let fourth = watched.paths(1.0).into_iter().find(|path| path.stamp == 4).unwrap();
    near(fourth.excess_s, 0.3, 1e-6);
    near(fourth.blocked, 1.0, 0.01);
}
