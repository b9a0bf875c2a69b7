//! Blocking probability pB: how likely the next sprayed packet of a peer is blocked (queued for long, or lost).
//!
//! One estimator per (sending agent, leaf), fed from the peers' feedback and, for RTTs, from the inner ACKs. `AckShare`
//! is what CAPS and HTPC print, `Rtt` and `LossRate` (also of switches' marks) are ours, and `Paths` is the default, because
//! the share of late ACKs is nearly blind behind a recovering code and cumulative ACKs (docs/traps.md).

mod ack_share;
mod acks;
mod average;
mod loss_rate;
mod paths;
mod period;
mod rtt;

pub use ack_share::{AckShare, Reference};
pub use loss_rate::LossRate;
pub use paths::{threshold_s, PathState, Paths};
pub use rtt::Rtt;

use crate::time::Seconds;

/// Bound of the estimates that are ours: beyond it coding more than doubles the load, and feeds what it fights.
pub const MAX_BLOCKING_PROBABILITY: f64 = 0.6;
/// pB while nothing is known yet.
pub const PRIOR: f64 = 0.1;
/// Sampling time in packet times, where none is given: a full buffer of the papers' switches.
pub const SAMPLING_PACKETS: f64 = 256.0;
/// Samples below which `Rtt` and `LossRate` carry a sampling time on into the next.
pub const MIN_SAMPLES: u64 = 8;

/// Coded datagrams that one feedback decides. Each is counted once, on whatever path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// How many had arrived.
    pub arrived: u64,
    /// How many of those came with a mark of congestion (CE of RFC 3168).
    pub marked: u64,
    /// How many were overdue or lost.
    pub overdue: u64,
}

/// Estimates pB. Times must not run backwards.
pub trait BlockingEstimator: Send + Sync {
    /// Adds the round-trip time that an inner ACK showed.
    fn ack_rtt(&mut self, rtt_s: Seconds, now: Seconds);

    /// Notes that a datagram over path `stamp` took `delay_us` one way (arbitrary offset).
    fn path_delay(&mut self, _stamp: u16, _delay_us: u32, _now: Seconds) {}

    /// Notes, once for each datagram, that one is lost or overdue; `stamp` is its path if that is known.
    ///
    /// It is overdue when the peer has reported one that was sent more than `overdue_s` later. To call this then, rather
    /// than when it is lost for good, is what shows blocked paths in time: their own reports are late by as much as they
    /// are blocked, so those that come first all speak of the others.
    fn path_loss(&mut self, _stamp: Option<u16>, _now: Seconds) {}

    /// Notes what one feedback decides.
    fn reported(&mut self, _datagrams: Reported, _now: Seconds) {}

    /// Returns pB.
    fn blocking_probability(&mut self, now: Seconds) -> f64;

    /// Returns the round-trip time over paths that are not blocked; 0 while nothing is known.
    fn rtt_s(&self) -> Seconds;

    /// Returns the round-trip time over blocked paths, at least `rtt_s`.
    fn blocked_rtt_s(&self) -> Seconds;

    /// Returns how much later than the first ones a datagram of a burst counts as overdue.
    fn overdue_s(&self) -> Seconds;

    /// Returns what is known of single paths, in the order of their first datagrams.
    fn paths(&self, _now: Seconds) -> Vec<PathState> {
        Vec::new()
    }
}

/// Which estimator a policy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EstimatorKind {
    /// `paths`
    Paths,
    /// `rtt`
    Rtt,
    /// `rtt-average`
    RttAverage,
    /// `rtt-smoothed`
    RttSmoothed,
    /// `loss-rate`
    LossRate,
    /// `marks`
    Marks,
}

impl EstimatorKind {
    /// Returns an estimator of this kind. `packet_time_s`: of 1500 B on the slowest fabric link; `sampling_s`: of all
    /// but `Paths`, None for SAMPLING_PACKETS.
    pub fn estimator(
        self,
        packet_time_s: Seconds,
        sampling_s: Option<Seconds>,
    ) -> Box<dyn BlockingEstimator> {
        match self {
            EstimatorKind::Paths => Box::new(Paths::new(packet_time_s, None)),
            EstimatorKind::Rtt => Box::new(Rtt::new(packet_time_s, sampling_s)),
            EstimatorKind::RttAverage => {
                Box::new(AckShare::new(Reference::Average, packet_time_s, sampling_s))
            }
            EstimatorKind::RttSmoothed => {
                Box::new(AckShare::new(Reference::Smoothed, packet_time_s, sampling_s))
            }
            EstimatorKind::LossRate => Box::new(LossRate::new(packet_time_s, sampling_s)),
            EstimatorKind::Marks => Box::new(LossRate::with_marks(packet_time_s, sampling_s)),
        }
    }
}
