//! A connection's beginning: a packet to and fro before any data.

use crate::time::{Time, NEVER};

/// The sender's side, until the answer is there.
#[derive(Clone, Debug)]
pub struct Opening {
    deadline: Time,
    timeout: Time,
    largest: Time,
    pub timeouts: u32,
}

impl Opening {
    /// Return an opening whose first packet leaves at `now`; time-outs double up to `largest`.
    pub fn new(now: Time, timeout: Time, largest: Time) -> Opening {
        Opening { deadline: now.saturating_add(timeout), timeout, largest, timeouts: 0 }
    }

    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Return whether the packet is to be sent again at `now`.
    pub fn expired(&mut self, now: Time) -> bool {
        if self.deadline > now {
            return false;
        }
        self.timeouts += 1;
        self.timeout = self.timeout.saturating_mul(2).min(self.largest.max(self.timeout));
        self.deadline = now.checked_add(self.timeout).unwrap_or(NEVER);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_outs_double_up_to_the_largest() {
        let mut opening = Opening::new(5, 10, 35);
        let mut sent = Vec::new();
        for now in 0..200 {
            if opening.expired(now) {
                sent.push(now);
            }
        }
        assert_eq!(sent, [15, 35, 70, 105, 140, 175]);
        assert_eq!(opening.timeouts, 6);
    }
}
