//! What estimators have in common that see only inner ACKs: the share of a sampling time, and round-trip times.

use crate::blocking::average::Average;
use crate::blocking::period::Period;
use crate::blocking::{threshold_s, BlockingEstimator, PRIOR, SAMPLING_PACKETS};
use crate::time::Seconds;

/// What is known from ACKs.
#[derive(Clone, Debug)]
pub struct Acks {
    overdue_s: Seconds,
    /// The sampling time.
    pub(super) period: Period,
    /// pB by the last sampling time that said something.
    pub(super) share: Option<f64>,
    normal: Average,
    blocked: Average,
}

impl Acks {
    /// Returns what is known before the first ACK; see `EstimatorKind::estimator`.
    pub(super) fn new(packet_time_s: Seconds, sampling_s: Option<Seconds>) -> Acks {
        Acks {
            overdue_s: threshold_s(packet_time_s),
            period: Period::new(sampling_s.unwrap_or(SAMPLING_PACKETS * packet_time_s)),
            share: None,
            normal: Average::default(),
            blocked: Average::default(),
        }
    }

    /// Adds a round-trip time, of a blocked path or of another.
    pub(super) fn add(&mut self, rtt_s: Seconds, is_blocked: bool) {
        if is_blocked { &mut self.blocked } else { &mut self.normal }.add(rtt_s);
    }
}

/// An estimator that learns from inner ACKs alone.
pub trait AckEstimator: Send + Sync {
    /// Bound of its estimates.
    const MOST: f64;

    /// Returns what it knows.
    fn acks(&self) -> &Acks;

    /// Adds a round-trip time above 0.
    fn acked(&mut self, rtt_s: Seconds);

    /// Ends the sampling time if it is over.
    fn roll(&mut self, now: Seconds);
}

impl<E: AckEstimator> BlockingEstimator for E {
    fn ack_rtt(&mut self, rtt_s: Seconds, now: Seconds) {
        if rtt_s.is_finite() && rtt_s > 0.0 {
            self.roll(now);
            self.acked(rtt_s);
        }
    }

    fn blocking_probability(&mut self, now: Seconds) -> f64 {
        self.roll(now);
        self.acks().share.unwrap_or(PRIOR).min(E::MOST)
    }

    fn rtt_s(&self) -> Seconds {
        self.acks().normal.or_zero()
    }

    fn blocked_rtt_s(&self) -> Seconds {
        self.acks().blocked.or_zero().max(self.rtt_s())
    }

    fn overdue_s(&self) -> Seconds {
        self.acks().overdue_s
    }
}
