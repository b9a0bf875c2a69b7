//! The least of what delays were of late: what a delay is compared with, since the two clocks that it is of have any offset.

use crate::serial::serial_difference;
use crate::Seconds;

/// The least is that of the last one to two periods: so it holds while all paths are blocked for a while, and clocks that
/// drift apart by 1e-4 stay within 2 ms.
const PERIOD_S: Seconds = 10.0;

/// The least delay of the last 10 to 20 s. Delays are microseconds modulo 2^32, and only differences count.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastDelay(Option<Least>);

#[derive(Clone, Copy, Debug)]
struct Least {
    now_us: u32,
    /// Of the period before; None: there was none.
    before_us: Option<u32>,
    since: Seconds,
}

impl Least {
    fn us(&self) -> u32 {
        self.before_us.map_or(self.now_us, |before_us| less(before_us, self.now_us))
    }
}

impl LeastDelay {
    /// Adds a delay. Returns it as microseconds above the least.
    pub fn above(&mut self, delay_us: u32, now: Seconds) -> i32 {
        let fresh = Least { now_us: delay_us, before_us: None, since: now };
        let least = self.0.get_or_insert(fresh);
        let age = now - least.since;
        if age >= PERIOD_S {
            let before_us = (age < 2.0 * PERIOD_S).then_some(least.now_us);
            *least = Least { before_us, ..fresh };
        }
        least.now_us = less(least.now_us, delay_us);
        serial_difference(delay_us, least.us())
    }

    /// Returns the least; None before the first delay.
    pub fn us(&self) -> Option<u32> {
        self.0.as_ref().map(Least::us)
    }
}

fn less(a_us: u32, b_us: u32) -> u32 {
    if serial_difference(b_us, a_us) >= 0 {
        a_us
    } else {
        b_us
    }
}

#[cfg(test)]
mod tests {
    use super::LeastDelay;
    use trials::trials;

    #[test]
    fn the_least_is_that_of_this_period_and_of_the_one_before() {
        let mut least = LeastDelay::default();
        assert_eq!(least.us(), None);
        let delays = [(0.0, 500, 0), (9.0, 400, 0), (11.0, 700, 300), (19.0, 600, 200), (22.0, 900, 300)];
        for (now, delay_us, above_us) in delays {
            assert_eq!(least.above(delay_us, now), above_us, "at {now} s");
        }
        assert_eq!(least.us(), Some(600));
        assert_eq!(least.above(5000, 60.0), 0, "after a silence nothing is known");
    }

    #[test]
    fn clocks_that_drift_apart_stay_within_two_milliseconds() {
        for drift in [-1e-4, -2e-5, 1e-4] {
            let (mut least, offset_us) = (LeastDelay::default(), u32::MAX - 3000);
            for step in 0..trials(20_000) {
                let now = 0.05 * f64::from(step);
                let drifted_us = (drift * now * 1e6).round() as i32;
                let above_us = least.above(offset_us.wrapping_add_signed(drifted_us), now);
                assert!((0..=2000).contains(&above_us), "{above_us} us at {now} s");
            }
        }
    }
}
