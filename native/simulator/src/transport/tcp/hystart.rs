//! HyStart's delay rule (Ha and Rhee, 2011, as Linux has it): slow start ends when round trips have grown, before a buffer
//! overflows. Its other rule, by trains of acknowledgements, is not here.

use crate::time::{Time, MILLISECOND, NEVER};

/// Samples of a round that are looked at.
const SAMPLES: u32 = 8;
/// A window below so many packets is left alone.
const LEAST_WINDOW: u32 = 16;
/// By how much round trips may have grown: an eighth of the least, within these.
const GROWTH: (Time, Time) = (4 * MILLISECOND, 16 * MILLISECOND);

#[derive(Clone, Debug)]
pub struct HyStart {
    /// The round is over when this packet is acknowledged.
    end: u32,
    samples: u32,
    /// Of the round.
    least: Time,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart { end: 0, samples: 0, least: NEVER }
    }
}

impl HyStart {
    /// Take an answer in slow start; return whether that is to end. `first` and `end`: of what is not acknowledged.
    pub fn ends(&mut self, window: u32, (first, end): (u32, u32), round_trip: Time, least: Time) -> bool {
        if first > self.end || self.samples == 0 {
            *self = HyStart { end, samples: 0, least: NEVER };
        }
        self.least = self.least.min(round_trip);
        self.samples += 1;
        let most = least.saturating_add((least / 8).clamp(GROWTH.0, GROWTH.1));
        self.samples > SAMPLES && window >= LEAST_WINDOW && self.least > most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return after how many answers of one round slow start ends.
    fn ends_after(window: u32, round_trips: impl Iterator<Item = Time>) -> Option<usize> {
        let mut hystart = HyStart::default();
        let mut answers = round_trips.map(|time| hystart.ends(window, (1, 100), time, 20 * MILLISECOND));
        answers.position(|ends| ends)
    }

    #[test]
    fn slow_start_ends_when_all_of_eight_round_trips_have_grown() {
        let grown = 25 * MILLISECOND;
        assert_eq!(ends_after(20, std::iter::repeat_n(grown, 20)), Some(8));
        assert_eq!(ends_after(20, std::iter::repeat_n(grown - MILLISECOND, 20)), None);
        assert_eq!(ends_after(15, std::iter::repeat_n(grown, 20)), None);
        let one_fast = [grown, 20 * MILLISECOND].into_iter().chain(std::iter::repeat_n(grown, 20));
        assert_eq!(ends_after(20, one_fast), None);
    }
}
