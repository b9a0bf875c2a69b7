//! How late an agent's loop was at most in the last second or two.

use crate::Seconds;

const INTERVAL_S: Seconds = 1.0;

#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    since: Seconds,
    current: Seconds,
    previous: Seconds,
}

impl Lateness {
    /// Notes that it woke so much later than it wanted.
    pub fn add(&mut self, late_s: Seconds, now: Seconds) {
        self.turn(now);
        self.current = self.current.max(late_s);
    }

    /// Returns the most.
    pub fn most(&mut self, now: Seconds) -> Seconds {
        self.turn(now);
        self.current.max(self.previous)
    }

    fn turn(&mut self, now: Seconds) {
        let passed = now - self.since;
        if passed >= INTERVAL_S {
            self.previous = if passed < 2.0 * INTERVAL_S { self.current } else { 0.0 };
            (self.current, self.since) = (0.0, now);
        }
    }
}
