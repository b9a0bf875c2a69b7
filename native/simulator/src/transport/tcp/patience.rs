//! How long RACK waits for what is late (RFC 8985, 6.2.4): a quarter of the least round trip or some, and a quarter more for each round
//! trip in which a duplicate was reported, until so many recoveries went without.

use crate::time::Time;

/// In steps of a quarter of the least round trip.
const MOST: u32 = 255;
const RECOVERIES: u32 = 16;

#[derive(Clone, Debug)]
pub struct Patience {
    /// What it begins with and comes back to.
    least: u32,
    steps: u32,
    /// Recoveries for which it lasts.
    recoveries: u32,
    /// Whether a duplicate was reported that does not count yet.
    reported: bool,
    grown_at: Time,
}

impl Patience {
    /// Make one that begins with so many quarters of the least round trip.
    pub fn new(least: u32) -> Patience {
        Patience { least, steps: least, recoveries: 0, reported: false, grown_at: 0 }
    }

    pub fn window(&self, least_round_trip: Time) -> Time {
        least_round_trip / 4 * Time::from(self.steps)
    }

    /// Take that a duplicate was reported, where the network is known to reorder.
    pub fn duplicate_reported(&mut self) {
        self.reported = true;
    }

    /// Take that packets have arrived of which the latest was sent at `sent_at`. A duplicate counts once a round trip: if that
    /// was sent since the last that counted (Linux: tcp_rack_update_reo_wnd, which compares what was delivered by then).
    pub fn delivered(&mut self, now: Time, sent_at: Time) {
        if std::mem::take(&mut self.reported) && sent_at >= self.grown_at {
            self.grown_at = now;
            (self.steps, self.recoveries) = ((self.steps + 1).min(MOST.max(self.least)), RECOVERIES);
        } else if self.recoveries == 0 {
            self.steps = self.least;
        }
    }

    pub fn recovered(&mut self) {
        self.recoveries = self.recoveries.saturating_sub(1);
    }

    /// Take that duplicates undid a recovery, which does not count as one without.
    pub fn undone(&mut self) {
        self.recoveries = (self.recoveries + 1).min(RECOVERIES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_counts_if_what_arrives_next_was_sent_since_the_last_that_counted() {
        let mut patience = Patience::new(1);
        let mut after = |now, sent_at| {
            patience.duplicate_reported();
            patience.delivered(now, sent_at);
            patience.window(4)
        };
        assert_eq!(after(10, 0), 2);
        assert_eq!(after(12, 5), 2, "sent before 10");
        assert_eq!(after(20, 10), 3);
        patience.delivered(40, 30);
        assert_eq!(patience.window(4), 3, "nothing was reported");
    }

    #[test]
    fn it_comes_back_to_what_it_began_with() {
        let mut patience = Patience::new(3);
        assert_eq!(patience.window(4), 3);
        patience.duplicate_reported();
        patience.delivered(10, 0);
        assert_eq!(patience.window(4), 4);
        for recovery in 1..=16 {
            patience.recovered();
            patience.delivered(10 + recovery, 10);
        }
        assert_eq!(patience.window(4), 3);
    }

    #[test]
    fn it_lasts_for_sixteen_recoveries_without_a_duplicate() {
        let mut patience = Patience::new(1);
        patience.duplicate_reported();
        patience.delivered(10, 0);
        for recovery in 1..=16 {
            patience.recovered();
            patience.delivered(10 + recovery, 10);
            assert_eq!(patience.window(4), if recovery < 16 { 2 } else { 1 });
        }
    }
}
