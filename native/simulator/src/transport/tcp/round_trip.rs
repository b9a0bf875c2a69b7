//! Round-trip times and the retransmission time-out (RFC 6298), from timestamps, so that every answer counts.

use crate::time::{Time, NEVER};

/// Between which a time-out lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub initial: Time,
    pub least: Time,
    pub largest: Time,
    /// The least is one of what is added for variation, so a time-out is longer by the smoothed round trip.
    pub of_variation: bool,
}

#[derive(Clone, Debug)]
pub struct RoundTrip {
    smoothed: Time,
    variation: Time,
    latest: Time,
    least: Time,
    timeout: Time,
    bounds: Bounds,
    doublings: u32,
}

impl RoundTrip {
    pub fn new(bounds: Bounds) -> RoundTrip {
        RoundTrip {
            smoothed: 0,
            variation: 0,
            latest: 0,
            least: NEVER,
            timeout: bounds.initial,
            bounds,
            doublings: 0,
        }
    }

    pub fn measured(&mut self, time: Time) {
        self.latest = time;
        self.least = self.least.min(time);
        if self.smoothed == 0 {
            (self.smoothed, self.variation) = (time, time / 2);
        } else {
            self.variation = self.variation - self.variation / 4 + self.smoothed.abs_diff(time) / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + time / 8;
        }
        self.doublings = 0;
        let Bounds { least, largest, of_variation, .. } = self.bounds;
        let variation = if of_variation { least.max(4 * self.variation) } else { 4 * self.variation };
        self.timeout = (self.smoothed + variation).clamp(least, largest);
    }

    pub fn back_off(&mut self) {
        self.doublings += 1;
    }

    pub fn timeout(&self) -> Time {
        let doubled = self.timeout.saturating_mul(1 << self.doublings.min(20));
        doubled.min(self.bounds.largest.max(self.timeout))
    }

    pub fn smoothed(&self) -> Time {
        self.smoothed
    }

    pub fn latest(&self) -> Time {
        self.latest
    }

    pub fn least(&self) -> Time {
        if self.least == NEVER {
            0
        } else {
            self.least
        }
    }
}
