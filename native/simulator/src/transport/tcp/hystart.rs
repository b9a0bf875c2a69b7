//! HyStart (Ha and Rhee, 2011, as Linux has it): slow start ends before a buffer overflows, when all round trips of a round
//! have grown (its rule of delays), or when a round's acknowledgements follow each other for half of the least round trip (its
//! rule of trains: the path is full then).

use super::round_trip::RoundTrip;
use crate::time::{Time, MILLISECOND, NEVER};

/// Samples of a round that are looked at.
const SAMPLES: u32 = 8;
/// A window below so many packets is left alone.
const LEAST_WINDOW: u32 = 16;
/// By how much round trips may have grown: an eighth of the least, within these.
const GROWTH: (Time, Time) = (4 * MILLISECOND, 16 * MILLISECOND);
/// Acknowledgements of a train follow each other within this time.
const TRAIN_GAP: Time = 2 * MILLISECOND;
/// A train may last longer by what hosts hold back: four bursts of 64 KiB (180 packets) at two windows a round trip, and at
/// most this.
const MOST_HELD: Time = MILLISECOND;
const HELD_WINDOWS: Time = 180 / 2;

#[derive(Clone, Debug)]
pub struct HyStart {
    /// The round is over when this packet is acknowledged.
    end: u32,
    began_at: Time,
    /// The last acknowledgement of the round's train.
    last_at: Time,
    samples: u32,
    /// Of the round.
    least: Time,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart { end: 0, began_at: 0, last_at: 0, samples: 0, least: NEVER }
    }
}

impl HyStart {
    /// Take an answer in slow start; return whether that is to end. `first` and `end`: of what is not acknowledged.
    pub fn ends(&mut self, now: Time, window: u32, (first, end): (u32, u32), round_trip: &RoundTrip) -> bool {
        if first > self.end {
            *self = HyStart { end, began_at: now, last_at: now, samples: 0, least: NEVER };
        }
        if window < LEAST_WINDOW {
            return false;
        }
        let full = self.train_is_long(now, window, round_trip);
        self.least = self.least.min(round_trip.latest());
        self.samples += 1;
        let least = round_trip.least();
        let most = least.saturating_add((least / 8).clamp(GROWTH.0, GROWTH.1));
        full || (self.samples > SAMPLES && self.least > most)
    }

    fn train_is_long(&mut self, now: Time, window: u32, round_trip: &RoundTrip) -> bool {
        if now - self.last_at > TRAIN_GAP {
            return false;
        }
        self.last_at = now;
        let held = (round_trip.smoothed() * HELD_WINDOWS / Time::from(window)).min(MOST_HELD);
        now - self.began_at > (round_trip.least() + held) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::super::round_trip::Bounds;
    use super::*;

    const LEAST: Time = 20 * MILLISECOND;

    /// Return after how many answers of one round slow start ends. `answers`: when each came, and its round trip.
    fn ends_after(window: u32, answers: impl Iterator<Item = (Time, Time)>) -> Option<usize> {
        let mut hystart = HyStart::default();
        let mut round_trip = RoundTrip::new(Bounds::default());
        round_trip.measured(LEAST);
        let mut ended = answers.map(|(now, time)| {
            round_trip.measured(time);
            hystart.ends(now, window, (1, 100), &round_trip)
        });
        ended.position(|ends| ends)
    }

    /// Answers that are too far from each other for a train.
    fn apart(round_trips: impl Iterator<Item = Time>) -> impl Iterator<Item = (Time, Time)> {
        round_trips.enumerate().map(|(number, time)| (3 * MILLISECOND * number as Time, time))
    }

    #[test]
    fn slow_start_ends_when_all_of_eight_round_trips_have_grown() {
        let grown = 25 * MILLISECOND;
        assert_eq!(ends_after(20, apart(std::iter::repeat_n(grown, 20))), Some(8));
        assert_eq!(ends_after(20, apart(std::iter::repeat_n(grown - MILLISECOND, 20))), None);
        assert_eq!(ends_after(15, apart(std::iter::repeat_n(grown, 20))), None);
        let one_fast = [grown, LEAST].into_iter().chain(std::iter::repeat_n(grown, 20));
        assert_eq!(ends_after(20, apart(one_fast)), None);
    }

    #[test]
    fn slow_start_ends_when_a_train_lasts_for_half_of_the_least_round_trip() {
        let every = |gap: Time| (0..20).map(move |number| (gap * number, LEAST));
        // (20 ms + 1 ms that hosts may hold back) / 2 = 10.5 ms.
        assert_eq!(ends_after(20, every(MILLISECOND)), Some(11));
        assert_eq!(ends_after(20, every(2 * MILLISECOND)), Some(6));
        assert_eq!(ends_after(15, every(MILLISECOND)), None);
        assert_eq!(ends_after(20, every(2 * MILLISECOND + 1)), None, "no train");
        let broken = every(MILLISECOND)
            .enumerate()
            .map(|(number, (now, time))| (now + if number > 5 { 2 * MILLISECOND } else { 0 }, time));
        assert_eq!(ends_after(20, broken), None, "a gap ends it until the next round");
    }
}
