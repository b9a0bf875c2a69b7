//! Estimates of the three estimators that were Python, reproduced bit for bit: recorded at commit d7038cc.

use crate::support::{recorded, Words};
use agent::blocking::{BlockingEstimator, EstimatorKind, PathState, Reported, PRIOR};
use trials::trials;

fn optional(words: &mut Words) -> Option<f64> {
    match words.word() {
        "-" => None,
        word => Some(word.parse().unwrap()),
    }
}

fn peer(kind: EstimatorKind, words: &mut Words) -> Box<dyn BlockingEstimator> {
    let estimator = kind.estimator(words.number(), optional(words));
    assert_eq!([PRIOR, estimator.overdue_s()], [words.number::<f64>(), words.number()]);
    estimator
}

/// Applies one event; returns when it was.
fn event(estimator: &mut dyn BlockingEstimator, kind: &str, words: &mut Words) -> f64 {
    // what is no path's number is none: callers take it out
    let path = |stamp: i32| u16::try_from(stamp).ok();
    match kind {
        "ack" => {
            let (rtt_s, now) = (words.number(), words.number());
            estimator.ack_rtt(rtt_s, now);
            now
        }
        "delay" => {
            let (stamp, delay_us, now) = (words.number(), words.number(), words.number());
            if let Some(stamp) = path(stamp) {
                estimator.path_delay(stamp, delay_us, now);
            }
            now
        }
        "loss" => {
            let (stamp, now) = (optional(words), words.number());
            estimator.path_loss(stamp.and_then(|stamp| path(stamp as i32)), now);
            now
        }
        "reported" => {
            let datagrams = Reported { arrived: words.number(), overdue: words.number(), marked: 0 };
            let now = words.number();
            estimator.reported(datagrams, now);
            now
        }
        "look" => words.number(),
        other => panic!("no {other}"),
    }
}

fn reproduce(kind: EstimatorKind, text: &str) {
    let mut estimator: Option<Box<dyn BlockingEstimator>> = None;
    let mut estimates = 0;
    for (_, line) in recorded(text) {
        let (event_part, recorded) = line.split_once(" = ").unwrap_or((line, ""));
        let mut words = Words::of(event_part);
        let name = words.word();
        if name == "peer" {
            estimator = Some(peer(kind, &mut words));
            continue;
        }
        let estimator = estimator.as_deref_mut().expect("a peer comes first");
        let now = event(estimator, name, &mut words);
        if recorded.is_empty() {
            continue;
        }
        let mut words = Words::of(recorded);
        let ours = [estimator.blocking_probability(now), estimator.rtt_s(), estimator.blocked_rtt_s()];
        assert_eq!(ours, [(); 3].map(|()| words.number::<f64>()), "{line}");
        let shown = |path: &PathState| (path.stamp, path.excess_s, path.blocked);
        let paths: Vec<(u16, f64, f64)> = estimator.paths(now).iter().map(shown).collect();
        let recorded: Vec<(u16, f64, f64)> = words
            .rest::<String>()
            .iter()
            .map(|path| {
                let mut parts = path.split(':');
                let mut next = || parts.next().unwrap();
                (next().parse().unwrap(), next().parse().unwrap(), next().parse().unwrap())
            })
            .collect();
        assert_eq!(paths, recorded, "{line}");
        estimates += 1;
    }
    assert!(estimates > trials(400), "{estimates}");
}

#[test]
fn paths_are_as_recorded() {
    reproduce(EstimatorKind::Paths, include_str!("../vectors/blocking-paths.txt"));
}

#[test]
fn round_trip_times_are_as_recorded() {
    reproduce(EstimatorKind::Rtt, include_str!("../vectors/blocking-rtt.txt"));
}

#[test]
fn loss_rates_are_as_recorded() {
    reproduce(EstimatorKind::LossRate, include_str!("../vectors/blocking-loss-rate.txt"));
}
