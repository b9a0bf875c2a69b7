//! Ours, after HTPC's loss rate (Eq. 1): what is overdue counts as lost; where asked, what a switch has marked as well.

use crate::blocking::period::Period;
use crate::blocking::{
    BlockingEstimator, Paths, Reported, MAX_BLOCKING_PROBABILITY, MIN_SAMPLES, PRIOR, SAMPLING_PACKETS,
};
use crate::time::Seconds;

/// P_L = n_d / n_t (HTPC, Eq. 1), n_d of the n_t packets of a sampling time T being overdue or lost, or marked if marks
/// count.
///
/// A sampling time with fewer than MIN_SAMPLES datagrams is carried on into the next. Round-trip times are those of
/// `Paths`, for units of CAPS's optimal size.
#[derive(Clone, Debug)]
pub struct LossRate {
    delays: Paths,
    period: Period,
    counted: Reported,
    counts_marks: bool,
    rate: Option<f64>,
}

impl LossRate {
    /// Returns an estimator that knows nothing; see `EstimatorKind::estimator`.
    pub fn new(packet_time_s: Seconds, sampling_s: Option<Seconds>) -> LossRate {
        LossRate {
            delays: Paths::new(packet_time_s, None),
            period: Period::new(sampling_s.unwrap_or(SAMPLING_PACKETS * packet_time_s)),
            counted: Reported::default(),
            counts_marks: false,
            rate: None,
        }
    }

    /// Returns an estimator to which a marked datagram counts as a lost one; see `EstimatorKind::estimator`.
    pub fn with_marks(packet_time_s: Seconds, sampling_s: Option<Seconds>) -> LossRate {
        LossRate { counts_marks: true, ..LossRate::new(packet_time_s, sampling_s) }
    }

    fn roll(&mut self, now: Seconds) {
        let n = self.counted.arrived + self.counted.overdue;
        if self.period.ended(now) && n >= MIN_SAMPLES {
            let marked = if self.counts_marks { self.counted.marked } else { 0 };
            self.rate = Some((self.counted.overdue + marked) as f64 / n as f64);
            self.counted = Reported::default();
        }
    }
}

impl BlockingEstimator for LossRate {
    fn ack_rtt(&mut self, rtt_s: Seconds, now: Seconds) {
        self.delays.ack_rtt(rtt_s, now);
    }

    fn path_delay(&mut self, stamp: u16, delay_us: u32, now: Seconds) {
        self.delays.path_delay(stamp, delay_us, now);
    }

    fn reported(&mut self, datagrams: Reported, now: Seconds) {
        self.roll(now);
        self.counted.arrived += datagrams.arrived;
        self.counted.marked += datagrams.marked;
        self.counted.overdue += datagrams.overdue;
    }

    fn blocking_probability(&mut self, now: Seconds) -> f64 {
        self.roll(now);
        self.rate.unwrap_or(PRIOR).min(MAX_BLOCKING_PROBABILITY)
    }

    fn rtt_s(&self) -> Seconds {
        self.delays.rtt_s()
    }

    fn blocked_rtt_s(&self) -> Seconds {
        self.delays.blocked_rtt_s()
    }

    fn overdue_s(&self) -> Seconds {
        self.delays.overdue_s()
    }
}
