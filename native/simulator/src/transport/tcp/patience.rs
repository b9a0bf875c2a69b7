//! How long RACK waits for what is late (RFC 8985, 6.2.4): a quarter of the least round trip, and a quarter more for each round
//! trip in which a duplicate was reported, until so many recoveries went without.

use crate::time::Time;

/// In steps of a quarter of the least round trip.
const MOST: u32 = 255;
const RECOVERIES: u32 = 16;

#[derive(Clone, Debug)]
pub struct Patience {
    steps: u32,
    /// Recoveries for which it lasts.
    recoveries: u32,
    /// Packets before this one were sent when it last grew.
    grown: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { steps: 1, recoveries: 0, grown: 0 }
    }
}

impl Patience {
    pub fn window(&self, least_round_trip: Time) -> Time {
        least_round_trip / 4 * Time::from(self.steps)
    }

    /// Take that a duplicate was reported, while packets from `first` to `end` are not acknowledged: once a round trip it counts.
    pub fn duplicate_reported(&mut self, first: u32, end: u32) {
        if first >= self.grown {
            self.grown = end;
            (self.steps, self.recoveries) = ((self.steps + 1).min(MOST), RECOVERIES);
        }
    }

    pub fn recovered(&mut self) {
        self.recoveries = self.recoveries.saturating_sub(1);
        if self.recoveries == 0 {
            self.steps = 1;
        }
    }
}
