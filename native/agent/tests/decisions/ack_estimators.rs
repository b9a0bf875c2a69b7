//! The estimators of the blocking probability by ACKs and by losses: the papers' figures, and bounds of all estimators.

use agent::blocking::{BlockingEstimator, EstimatorKind, Paths, Reported};
use agent::blocking::{MAX_BLOCKING_PROBABILITY, MIN_SAMPLES, PRIOR};
use agent::{Generator, Random};
use trials::trials;

/// 1500 B at 10 Mbit/s, seconds.
const PACKET_TIME_S: f64 = 0.0012;

fn near(value: f64, wanted: f64, most: f64) {
    assert!((value - wanted).abs() <= most, "{value} instead of {wanted}, at most {most} off");
}

/// Makes an estimator with this sampling time, seconds; None: the default.
fn estimator(kind: EstimatorKind, sampling_s: Option<f64>) -> Box<dyn BlockingEstimator> {
    kind.estimator(PACKET_TIME_S, sampling_s)
}

/// Returns n_b / n of each sampling period (HTPC, Eq. 4; CAPS, sections VI and IX-C), in whole numbers; None: a
/// round-trip time is too close to its limit for floating-point numbers.
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
    let cases = trials(300);
    for case in 0..cases {
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
    assert!(2 * checked > cases, "most cases are checked");
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
        let (mut relative, mut absolute) =
            (estimator(EstimatorKind::RttAverage, Some(1.0)), Paths::new(PACKET_TIME_S, None));
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

/// Draws up to 50 datagrams that came, some of them with a mark, and up to 50 that are overdue.
fn reported(random: &mut Generator) -> Reported {
    let (arrived, overdue) = (random.below(51), random.below(51));
    let marked = random.below(arrived + 1);
    Reported { arrived: arrived.into(), marked: marked.into(), overdue: overdue.into() }
}

/// A mark is no loss to the one, and as much as a loss to the other.
#[test]
fn marks_count_for_the_estimator_of_that_name_alone() {
    let mut random = Generator::new(8);
    for _ in 0..trials(100) {
        let [mut marks, mut losses, mut overdue] =
            [EstimatorKind::Marks, EstimatorKind::LossRate, EstimatorKind::LossRate]
                .map(|kind| estimator(kind, Some(1.0)));
        for second in (0..8).map(f64::from) {
            let Reported { arrived, marked, overdue: late } = reported(&mut random);
            marks.reported(Reported { arrived, marked, overdue: late }, second + 0.25);
            losses.reported(Reported { arrived, marked, overdue: late }, second + 0.25);
            // the same datagrams, those with a mark being lost
            let lost = Reported { arrived: arrived - marked, marked: 0, overdue: late + marked };
            overdue.reported(lost, second + 0.25);
            let [of_marks, of_losses, of_lost] = [&mut marks, &mut losses, &mut overdue]
                .map(|watched| watched.blocking_probability(second + 1.25));
            assert_eq!(of_marks, of_lost);
            assert!((0.0..=MAX_BLOCKING_PROBABILITY).contains(&of_marks) && of_losses <= of_marks);
        }
    }
}

/// By hand: 3 of 20 with a mark and one overdue are 4 of 21; nothing but marks is the most that coding is to carry.
#[test]
fn marks_drive_the_estimate() {
    let mut marks = estimator(EstimatorKind::Marks, Some(1.0));
    assert_eq!(marks.blocking_probability(0.0), PRIOR);
    marks.reported(Reported { arrived: 20, marked: 3, overdue: 1 }, 0.5);
    assert_eq!(marks.blocking_probability(0.9), PRIOR, "it counts when the sampling time is over");
    near(marks.blocking_probability(1.1), 4.0 / 21.0, 1e-12);
    marks.reported(Reported { arrived: 20, marked: 20, overdue: 0 }, 1.5);
    assert_eq!(marks.blocking_probability(2.2), MAX_BLOCKING_PROBABILITY);
    marks.reported(Reported { arrived: 20, ..Reported::default() }, 2.5);
    assert_eq!(marks.blocking_probability(3.3), 0.0);
}

#[test]
fn loss_rate_is_the_share_of_the_last_sampling_time_that_had_enough() {
    let mut random = Generator::new(6);
    for _ in 0..trials(100) {
        let mut rate = estimator(EstimatorKind::LossRate, Some(1.0));
        let (mut expected, mut arrived, mut overdue) = (PRIOR, 0, 0);
        for second in 0..1 + random.below(12) {
            let more = reported(&mut random);
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
        rate.reported(Reported { arrived: 5, overdue: 5, marked: 0 }, 1.0);
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
        EstimatorKind::Marks,
    ];
    let mut random = Generator::new(7);
    for case in 0..trials(500) {
        let kind = kinds[case % kinds.len()];
        let mut watched = estimator(kind, None);
        let mut now = 0.0;
        for _ in 0..random.below(60) {
            now += [0.0, 1e-6, 0.01, 1.0, 30.0][random.below(5) as usize] * random.unit();
            let stamp = random.bits32() as u16;
            match random.below(5) {
                0 => watched.ack_rtt(11.0 * random.unit() - 1.0, now),
                4 => watched.reported(reported(&mut random), now),
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
