//! Times of the receiving side: how long packets wait for others, when a number is lost, when feedback goes out.

use crate::class::TrafficClass;
use crate::Seconds;

/// How long packets of a class wait for those before them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hold {
    /// So many seconds; 0: they are not held back.
    For(Seconds),
    /// Until what is missing is lost for certain: every path has delivered something later. A path that was silent for
    /// `silence_s` counts no more.
    ByPaths {
        /// Seconds.
        silence_s: Seconds,
    },
}

/// Times of the receiving side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceivePolicy {
    /// Feedback goes out so long after the first datagram that it speaks of.
    pub feedback_after_s: Seconds,
    /// A number that was missing for so long is lost.
    pub loss_after_s: Seconds,
    /// How long packets wait for others, by class.
    pub holds: [Hold; 4],
}

/// Returns how long after the first datagram that it speaks of feedback goes out, for packets of 1500 B that take so long
/// on the slowest fabric link: two of these packet times, at least 5 ms.
pub fn feedback_after_s(packet_time_s: Seconds) -> Seconds {
    (2.0 * packet_time_s).max(0.005)
}

impl ReceivePolicy {
    /// Returns the times for packets of 1500 B that take so long on the slowest fabric link.
    ///
    /// A number is lost when it was missing for 300 packet times: longer than a full buffer of 256 packets delays it (at
    /// least 0.25 s).
    pub fn new(packet_time_s: Seconds, holds: [Hold; 4]) -> ReceivePolicy {
        ReceivePolicy {
            feedback_after_s: feedback_after_s(packet_time_s),
            loss_after_s: (300.0 * packet_time_s).max(0.25),
            holds,
        }
    }

    /// Returns after how long, in seconds, a path of a class that delivers nothing counts as silent; infinity where order
    /// does not follow from paths.
    pub(super) fn silence_s(&self, class: TrafficClass) -> Seconds {
        match self.holds[class.index()] {
            Hold::For(_) => f64::INFINITY,
            Hold::ByPaths { silence_s } => silence_s,
        }
    }

    /// Returns how long, in seconds, a packet of a class waits at most.
    pub(super) fn longest_hold_s(&self, class: TrafficClass) -> Seconds {
        match self.holds[class.index()] {
            Hold::For(timeout_s) => timeout_s,
            Hold::ByPaths { .. } => self.loss_after_s,
        }
    }
}
