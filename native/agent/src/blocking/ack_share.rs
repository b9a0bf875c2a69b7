//! The papers' estimate, as printed: the share of ACKs whose RTT is above twice the average RTT.
//!
//! HTPC, Eq. 4 and 9 (and Table 1): n_b / n, where n is the number of ACKs of a sampling period T, and n_b that of those
//! with an RTT above 2x the average RTT; CAPS, sections VI-A and B: p_B = n_L / n, "the empirical threshold for the large RTT is
//! set as 2x average RTT of all packets". CAPS, section IX-C, smooths the average from period to period: RTT_smooth =
//! 7/8 RTT_smooth + 1/8 RTT_avg, RTT_avg being the average of all RTTs in a sampling period (200 us there, two
//! propagation delays; HTPC: 500 us).
//!
//! Fewer than half of all RTTs can be above twice their average, so `Reference::Average` is always below 1/2. And it is
//! relative: where all RTTs grow alike, the share stays.

use crate::blocking::acks::{AckEstimator, Acks};
use crate::blocking::average::Average;
use crate::time::Seconds;

/// ACKs that are kept; more end the sampling period early.
const MOST_ACKS: usize = 1 << 16;

/// What an ACK's RTT is compared with twice of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// RTT_avg: the average of all RTTs of the same sampling period.
    Average,
    /// RTT_smooth: that average, smoothed over sampling periods, this one included.
    Smoothed,
}

/// The estimator. A sampling period without ACKs says nothing: what was known before stays.
#[derive(Clone, Debug)]
pub struct AckShare {
    reference: Reference,
    acks: Acks,
    rtts_s: Vec<Seconds>,
    smoothed: Average,
}

impl AckShare {
    /// Returns an estimator that knows nothing; see `EstimatorKind::estimator`.
    pub fn new(reference: Reference, packet_time_s: Seconds, sampling_s: Option<Seconds>) -> AckShare {
        let acks = Acks::new(packet_time_s, sampling_s);
        AckShare { reference, acks, rtts_s: Vec::new(), smoothed: Average::default() }
    }

    /// Ends a sampling period.
    fn sample(&mut self) {
        let n = self.rtts_s.len() as f64;
        if self.rtts_s.is_empty() {
            return;
        }
        let average = self.rtts_s.iter().sum::<f64>() / n;
        self.smoothed.add(average);
        let reference = match self.reference {
            Reference::Average => average,
            Reference::Smoothed => self.smoothed.or_zero(),
        };
        let mut large = 0u32;
        for &rtt_s in &self.rtts_s {
            let is_large = rtt_s > 2.0 * reference;
            large += u32::from(is_large);
            self.acks.add(rtt_s, is_large);
        }
        self.acks.share = Some(f64::from(large) / n);
        self.rtts_s.clear();
    }
}

impl AckEstimator for AckShare {
    const MOST: f64 = 1.0;

    fn acks(&self) -> &Acks {
        &self.acks
    }

    fn acked(&mut self, rtt_s: Seconds) {
        self.rtts_s.push(rtt_s);
    }

    fn roll(&mut self, now: Seconds) {
        if self.acks.period.ended(now) || self.rtts_s.len() >= MOST_ACKS {
            self.sample();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::{BlockingEstimator, PRIOR};
    use crate::random::{Generator, Random};
    use trials::trials;

    fn fed(reference: Reference, periods: &[Vec<f64>]) -> Vec<f64> {
        let mut estimator = AckShare::new(reference, 0.001, Some(1.0));
        let mut shares = Vec::new();
        for (period, rtts) in periods.iter().enumerate() {
            for &rtt_s in rtts {
                estimator.ack_rtt(rtt_s, period as f64);
            }
            shares.push(estimator.blocking_probability(period as f64 + 1.0));
        }
        shares
    }

    #[test]
    fn the_share_above_twice_the_average_is_always_below_one_half_and_does_not_depend_on_scale() {
        let mut random = Generator::new(3);
        for _ in 0..trials(300) {
            let rtts: Vec<f64> = (0..=random.below(60)).map(|_| 0.001 + random.unit().powi(6)).collect();
            let larger: Vec<f64> = rtts.iter().map(|rtt| rtt * 1024.0).collect();
            let share = fed(Reference::Average, &[rtts, larger]);
            assert!((0.0..0.5).contains(&share[0]));
            assert_eq!(share[0], share[1]);
        }
    }

    #[test]
    fn equal_averages_are_smoothed_to_themselves() {
        let rtts = vec![1.0, 1.0, 1.0, 5.0];
        let periods = vec![rtts; 9];
        assert_eq!(fed(Reference::Smoothed, &periods), fed(Reference::Average, &periods));
    }

    #[test]
    fn the_smoothed_average_remembers_faster_times() {
        // averages 1 and 9: RTT_smooth = 7/8 + 9/8 = 2, and both RTTs of 9 are above 4
        let periods = [vec![1.0, 1.0], vec![9.0, 9.0]];
        assert_eq!(fed(Reference::Smoothed, &periods), [0.0, 1.0]);
        assert_eq!(fed(Reference::Average, &periods), [0.0, 0.0]);
    }

    #[test]
    fn a_period_without_acks_says_nothing() {
        let shares = fed(Reference::Average, &[vec![], vec![1.0, 1.0, 9.0], vec![]]);
        assert_eq!(shares, [PRIOR, 1.0 / 3.0, 1.0 / 3.0]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes more ACKs than Miri can process in minutes")]
    fn a_period_with_too_many_acks_ends() {
        let mut estimator = AckShare::new(Reference::Average, 0.001, Some(1.0));
        for _ in 0..3 * MOST_ACKS {
            estimator.ack_rtt(0.001, 0.0);
            assert!(estimator.rtts_s.len() <= MOST_ACKS);
        }
    }
}
