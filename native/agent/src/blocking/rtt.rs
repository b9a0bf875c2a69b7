//! Ours, after CAPS's estimate: each ACK's RTT against the average of those before it.

use crate::blocking::average::Average;
use crate::blocking::period::Period;
use crate::blocking::{
    threshold_s, BlockingEstimator, MAX_BLOCKING_PROBABILITY, MIN_SAMPLES, PRIOR, SAMPLING_PACKETS,
};
use crate::time::Seconds;

/// The share of ACKs whose RTT is above twice the smoothed average of all RTTs before.
///
/// The share is taken over sampling times; one with fewer than MIN_SAMPLES ACKs is carried on into the next. Path delays
/// and losses do not enter.
#[derive(Clone, Debug)]
pub struct Rtt {
    prior: f64,
    overdue_s: Seconds,
    period: Period,
    smoothed: Average,
    normal: Average,
    blocked: Average,
    samples: u64,
    late: u64,
    share: Option<f64>,
}

impl Rtt {
    /// Returns an estimator that knows nothing; see `EstimatorKind::estimator`.
    pub fn new(packet_time_s: Seconds, sampling_s: Option<Seconds>) -> Rtt {
        Rtt {
            prior: PRIOR,
            overdue_s: threshold_s(packet_time_s),
            period: Period::new(sampling_s.unwrap_or(SAMPLING_PACKETS * packet_time_s)),
            smoothed: Average::default(),
            normal: Average::default(),
            blocked: Average::default(),
            samples: 0,
            late: 0,
            share: None,
        }
    }

    fn roll(&mut self, now: Seconds) {
        if self.period.ended(now) && self.samples >= MIN_SAMPLES {
            self.share = Some(self.late as f64 / self.samples as f64);
            (self.samples, self.late) = (0, 0);
        }
    }
}

impl BlockingEstimator for Rtt {
    fn ack_rtt(&mut self, rtt_s: Seconds, now: Seconds) {
        if rtt_s.is_nan() || rtt_s <= 0.0 {
            return;
        }
        self.roll(now);
        let late = self.smoothed.value().is_some_and(|average| rtt_s > 2.0 * average);
        self.samples += 1;
        self.late += u64::from(late);
        if late { &mut self.blocked } else { &mut self.normal }.add(rtt_s);
        self.smoothed.add(rtt_s);
    }

    fn blocking_probability(&mut self, now: Seconds) -> f64 {
        self.roll(now);
        self.share.unwrap_or(self.prior).min(MAX_BLOCKING_PROBABILITY)
    }

    fn rtt_s(&self) -> Seconds {
        self.normal.or_zero()
    }

    fn blocked_rtt_s(&self) -> Seconds {
        self.blocked.or_zero().max(self.rtt_s())
    }

    fn overdue_s(&self) -> Seconds {
        self.overdue_s
    }

    fn prior(&self) -> f64 {
        self.prior
    }

    fn set_prior(&mut self, prior: f64) {
        self.prior = prior;
    }
}
