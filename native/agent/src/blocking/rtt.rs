//! Ours, after CAPS's estimate: each ACK's RTT against the average of those before it.

use crate::blocking::acks::{AckEstimator, Acks};
use crate::blocking::average::Average;
use crate::blocking::{MAX_BLOCKING_PROBABILITY, MIN_SAMPLES};
use crate::time::Seconds;

/// The share of ACKs whose RTT is above twice the smoothed average of all RTTs before.
///
/// The share is taken over sampling times; one with fewer than MIN_SAMPLES ACKs is carried on into the next. Path delays
/// and losses do not enter.
#[derive(Clone, Debug)]
pub struct Rtt {
    acks: Acks,
    smoothed: Average,
    samples: u64,
    late: u64,
}

impl Rtt {
    /// Returns an estimator that knows nothing; see `EstimatorKind::estimator`.
    pub fn new(packet_time_s: Seconds, sampling_s: Option<Seconds>) -> Rtt {
        let acks = Acks::new(packet_time_s, sampling_s);
        Rtt { acks, smoothed: Average::default(), samples: 0, late: 0 }
    }
}

impl AckEstimator for Rtt {
    const MOST: f64 = MAX_BLOCKING_PROBABILITY;

    fn acks(&self) -> &Acks {
        &self.acks
    }

    fn acked(&mut self, rtt_s: Seconds) {
        let late = self.smoothed.value().is_some_and(|average| rtt_s > 2.0 * average);
        self.samples += 1;
        self.late += u64::from(late);
        self.acks.add(rtt_s, late);
        self.smoothed.add(rtt_s);
    }

    fn roll(&mut self, now: Seconds) {
        if self.acks.period.ended(now) && self.samples >= MIN_SAMPLES {
            self.acks.share = Some(self.late as f64 / self.samples as f64);
            (self.samples, self.late) = (0, 0);
        }
    }
}
