//! Round-trip times and the retransmission time-out (RFC 6298), from timestamps, so that every answer counts.

use crate::time::{Time, NEVER};

#[derive(Clone, Debug)]
pub struct RoundTrip {
    smoothed: Time,
    variation: Time,
    latest: Time,
    least: Time,
    timeout: Time,
    bounds: (Time, Time),
    doublings: u32,
}

impl RoundTrip {
    pub fn new(initial: Time, least: Time, largest: Time) -> RoundTrip {
        RoundTrip {
            smoothed: 0,
            variation: 0,
            latest: 0,
            least: NEVER,
            timeout: initial,
            bounds: (least, largest),
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
        self.timeout = (self.smoothed + 4 * self.variation).clamp(self.bounds.0, self.bounds.1);
    }

    pub fn back_off(&mut self) {
        self.doublings += 1;
    }

    pub fn timeout(&self) -> Time {
        let doubled = self.timeout.saturating_mul(1 << self.doublings.min(20));
        doubled.min(self.bounds.1.max(self.timeout))
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
