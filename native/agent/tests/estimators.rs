//! The estimators of the blocking probability against simulated fabrics whose truth is known, and the papers' figures.

use agent::blocking::{BlockingEstimator, EstimatorKind, Paths, Reported};
use agent::blocking::{MAX_BLOCKING_PROBABILITY, MIN_SAMPLES, PRIOR};
use agent::{Generator, Random};

/// 1500 B at 10 Mbit/s, seconds.
const PACKET_TIME_S: f64 = 0.0012;

fn near(value: f64, wanted: f64, most: f64) {
    assert!((value - wanted).abs() <= most, "{value} instead of {wanted}, at most {most} off");
}

fn paths() -> Paths {
    Paths::new(PACKET_TIME_S, None)
}

/// Every second, or every `sampling_s`, if that is given.
fn estimator(kind: EstimatorKind, sampling_s: Option<f64>) -> Box<dyn BlockingEstimator> {
    kind.estimator(PACKET_TIME_S, sampling_s)
}

/// Packets of a sender, over how long and how many.
struct Span {
    since: f64,
    until: f64,
    packets_per_s: f64,
}

/// Sprayed packets over paths of which some hold 320-550 ms of queue, the others 3-6 ms (as measured).
///
/// What the sender hears comes when it comes: a receipt one delay and 3 ms after the packet left, and a loss, or that a
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
        let mut heard: Vec<(f64, Option<(u16, u32)>)> = Vec::new();
        for _ in 0..((span.until - span.since) * span.packets_per_s).round() as usize {
            let sent = self.between(span.since, span.until);
            let path = self.random.below(self.paths);
            let late = path < self.blocked;
            let delay_s = if late { self.between(0.32, 0.55) } else { self.between(0.003, 0.006) };
            let lost = late && self.random.unit() < self.drop;
            if lost || (late && self.overdue) {
                heard.push((sent + watched.overdue_s() + 0.006, None));
            }
            if !lost {
                let delay_us = ((delay_s * 1e6).round() as u32).wrapping_add(self.offset_us);
                heard.push((sent + delay_s + 0.003, Some((1 + path as u16, delay_us))));
            }
        }
        heard.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (now, receipt) in heard.into_iter().take_while(|&(now, _)| now <= span.until) {
            match receipt {
                None => watched.path_loss(None, now),
                Some((stamp, delay_us)) => watched.path_delay(stamp, delay_us, now),
            }
        }
    }
}

/// Also with clocks that differ (delays wrap at 2^32), and with a third lost on the blocked paths.
#[test]
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

/// 70 packets in 100 ms to a peer that was never heard of: only overdue packets can show it by then.
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
    watched.set_prior(0.3);
    assert_eq!(watched.blocking_probability(60.0), 0.3);
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

/// n_b / n of each sampling period (HTPC, Eq. 4; CAPS, sections VI and IX-C), in whole numbers; None: a round-trip time
/// is too close to its limit for floating-point numbers.
fn printed_shares(periods: &[Vec<i128>], smoothed: bool) -> Option<Vec<f64>> {
    let (mut top, mut bottom) = (0i128, 1i128);
    let mut shares = Vec::new();
    for (number, rtts) in periods.iter().enumerate() {
        let (sum, count) = (rtts.iter().sum::<i128>(), rtts.len() as i128);
        if number == 0 || !smoothed {
            (top, bottom) = (sum, count);
        } else {
            (top, bottom) = (7 * top * count + sum * bottom, 8 * bottom * count);
        }
        let close = |&rtt: &i128| ((rtt * bottom - 2 * top) as f64 / bottom as f64).abs() <= 1e-9;
        if smoothed && rtts.iter().any(close) {
            return None;
        }
        let blocked = rtts.iter().filter(|&rtt| rtt * bottom > 2 * top).count();
        shares.push(blocked as f64 / count as f64);
    }
    Some(shares)
}

#[test]
fn ack_share_is_the_papers_whatever_the_scale() {
    let mut random = Generator::new(4);
    let mut checked = 0;
    for case in 0..300 {
        let smoothed = case % 2 == 0;
        let scale = [2f64.powi(-12), 2f64.powi(-10), 1.0][case % 3];
        let periods: Vec<Vec<i128>> = (0..=random.below(6))
            .map(|_| (0..=random.below(12)).map(|_| i128::from(1 + random.below(40))).collect())
            .collect();
        let Some(expected) = printed_shares(&periods, smoothed) else { continue };
        checked += 1;
        let kind = if smoothed { EstimatorKind::RttSmoothed } else { EstimatorKind::RttAverage };
        let mut watched = estimator(kind, Some(1.0));
        for (second, (rtts, share)) in periods.iter().zip(expected).enumerate() {
            let second = second as f64;
            let before = watched.blocking_probability(second);
            for &rtt in rtts {
                watched.ack_rtt(rtt as f64 * scale, second + 0.5);
                let meanwhile = watched.blocking_probability(second + 0.99);
                assert_eq!(meanwhile, before, "it counts when the period is over");
            }
            near(watched.blocking_probability(second + 1.0), share, 1e-9);
            assert!(smoothed || share < 0.5);
        }
    }
    assert!(checked > 150, "most cases are checked");
}

/// The figure of CAPS, Fig. 4: 4 of 40 paths have large RTTs, so pB is 0.1.
#[test]
fn ack_share_by_hand() {
    let mut watched = estimator(EstimatorKind::RttAverage, Some(1.0));
    for path in 0..40 {
        watched.ack_rtt(if path < 4 { 0.003 } else { 0.0003 }, 0.01 * f64::from(path));
    }
    near(watched.blocking_probability(1.0), 0.1, 1e-7);
    near(watched.rtt_s(), 0.0003, 1e-9);
    near(watched.blocked_rtt_s(), 0.003, 1e-8);
    // a period in which all RTTs are large: above twice what was usual, not above twice their own average
    let mut smoothed = estimator(EstimatorKind::RttSmoothed, Some(1.0));
    for (second, rtt_s) in [(2.0, 0.0003), (3.0, 0.03)] {
        watched.ack_rtt(rtt_s, second);
        smoothed.ack_rtt(rtt_s, second);
    }
    assert_eq!(watched.blocking_probability(9.0), 0.0);
    assert_eq!(smoothed.blocking_probability(9.0), 1.0);
}

/// Why repairs that count overdue packets feed on themselves, and the printed share does not (docs/coding.md).
#[test]
fn ack_share_does_not_grow_where_all_queues_grow_alike() {
    for (queue_s, overdue) in [(0.0, 0.0), (0.05, MAX_BLOCKING_PROBABILITY), (0.5, MAX_BLOCKING_PROBABILITY)]
    {
        let (mut relative, mut absolute) = (estimator(EstimatorKind::RttAverage, Some(1.0)), paths());
        absolute.path_delay(9, 0, 0.0); // the best that it has seen
        for step in 0..400u16 {
            let now = 0.002 * f64::from(step);
            relative.ack_rtt((0.01 + queue_s) * if step % 8 == 0 { 4.0 } else { 1.0 }, now);
            absolute.path_delay(1 + step % 8, (1e6 * queue_s).round() as u32, now);
        }
        assert_eq!(relative.blocking_probability(1.0), 0.125);
        assert_eq!(absolute.blocking_probability(1.0), overdue);
    }
}

/// By hand: average 10 ms; 25 ms is above twice of it; the share counts from the next interval on.
#[test]
fn rtt_estimator_is_our_reading_of_the_papers() {
    let mut watched = estimator(EstimatorKind::Rtt, Some(1.0));
    assert_eq!(watched.blocking_probability(0.0), PRIOR);
    for step in 0..10 {
        watched.ack_rtt(if [5, 9].contains(&step) { 0.025 } else { 0.010 }, 0.1 * f64::from(step));
    }
    assert_eq!(watched.blocking_probability(0.99), PRIOR);
    near(watched.blocking_probability(1.0), 0.2, 1e-7);
    near(watched.rtt_s(), 0.010, 1e-8);
    near(watched.blocked_rtt_s(), 0.025, 1e-8);
    // an interval without enough ACKs says nothing new
    watched.ack_rtt(0.010, 1.5);
    near(watched.blocking_probability(2.1), 0.2, 1e-7);
}

/// Why it is not the default: if most ACKs are late, the average is late as well.
#[test]
fn rtt_estimator_cannot_see_more_than_half() {
    let (mut watched, mut random) = (estimator(EstimatorKind::Rtt, Some(0.5)), Generator::new(1));
    for step in 0..2000 {
        watched.ack_rtt(if random.unit() < 0.6 { 0.4 } else { 0.005 }, 0.01 * f64::from(step));
    }
    assert!(watched.blocking_probability(20.0) < 0.2);
}

#[test]
fn rtt_estimator_ignores_paths() {
    let mut watched = estimator(EstimatorKind::Rtt, None);
    for step in 0..50 {
        watched.path_delay(1, step * 1000, 0.1 * f64::from(step));
        watched.path_loss(None, 0.1 * f64::from(step));
    }
    assert_eq!(watched.blocking_probability(5.0), PRIOR);
}

#[test]
fn loss_rate_is_the_share_of_the_last_sampling_time_that_had_enough() {
    let mut random = Generator::new(6);
    for _ in 0..100 {
        let mut rate = estimator(EstimatorKind::LossRate, Some(1.0));
        let (mut expected, mut arrived, mut overdue) = (PRIOR, 0, 0);
        for second in 0..1 + random.below(12) {
            let more = Reported { arrived: random.below(51).into(), overdue: random.below(51).into() };
            rate.reported(more, f64::from(second) + 0.25);
            (arrived, overdue) = (arrived + more.arrived, overdue + more.overdue);
            if arrived + overdue >= MIN_SAMPLES {
                expected = overdue as f64 / (arrived + overdue) as f64;
                (arrived, overdue) = (0, 0);
            }
            let reading = rate.blocking_probability(f64::from(second) + 1.25);
            assert_eq!(reading, expected.min(MAX_BLOCKING_PROBABILITY));
        }
    }
}

#[test]
fn the_sampling_time_is_256_packet_times_unless_it_is_given() {
    for (given_s, real_s) in [(None, 0.256), (Some(0.05), 0.05)] {
        let mut rate = EstimatorKind::LossRate.estimator(0.001, given_s);
        rate.reported(Reported { arrived: 5, overdue: 5 }, 1.0);
        assert_eq!(rate.blocking_probability(1.0 + 0.99 * real_s), PRIOR);
        assert_eq!(rate.blocking_probability(1.0 + 1.01 * real_s), 0.5);
    }
}

#[test]
fn estimates_stay_in_bounds_whatever_is_fed() {
    let kinds = [
        EstimatorKind::Paths,
        EstimatorKind::Rtt,
        EstimatorKind::LossRate,
        EstimatorKind::RttAverage,
        EstimatorKind::RttSmoothed,
    ];
    let mut random = Generator::new(7);
    for case in 0..500 {
        let kind = kinds[case % kinds.len()];
        let mut watched = estimator(kind, None);
        let mut now = 0.0;
        for _ in 0..random.below(60) {
            now += [0.0, 1e-6, 0.01, 1.0, 30.0][random.below(5) as usize] * random.unit();
            let stamp = random.bits32() as u16;
            match random.below(4) {
                0 => watched.ack_rtt(11.0 * random.unit() - 1.0, now),
                1 => watched.path_delay(stamp, random.bits32(), now),
                2 => watched.path_loss(Some(stamp), now),
                _ => watched.path_loss(None, now),
            }
            let most = if kind == EstimatorKind::RttSmoothed { 1.0 } else { MAX_BLOCKING_PROBABILITY };
            assert!((0.0..=most).contains(&watched.blocking_probability(now)));
            assert!(0.0 <= watched.rtt_s() && watched.rtt_s() <= watched.blocked_rtt_s());
        }
    }
}
