//! Time in whole picoseconds: a byte takes a whole number of them on links of 1, 10, 25, 40, 100 and 400 Gbit/s (8000,
//! 800, 320, 200, 80, 20 ps), where nanoseconds would round at 25 Gbit/s and above. 64 bits hold 213 days.

/// Picoseconds since the run's start.
pub type Time = u64;

pub const MICROSECOND: Time = 1_000_000;
pub const MILLISECOND: Time = 1_000_000_000;
pub const SECOND: Time = 1_000_000_000_000;
/// Later than every event.
pub const NEVER: Time = Time::MAX;

/// The time that a link needs to send a byte: exact where it is a whole number, else rounded up for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    bits_per_second: u64,
    /// Picoseconds a byte where that is a whole number, else 0.
    exact: u64,
}

impl Rate {
    pub fn new(bits_per_second: u64) -> Rate {
        let whole = bits_per_second > 0 && (8 * SECOND) % bits_per_second == 0;
        Rate { bits_per_second, exact: if whole { 8 * SECOND / bits_per_second } else { 0 } }
    }

    pub fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// Return the picoseconds that `bytes` occupy the link.
    pub fn transmission(self, bytes: u32) -> Time {
        if self.exact > 0 {
            return u64::from(bytes) * self.exact;
        }
        let bits = u128::from(bytes) * 8 * u128::from(SECOND);
        u64::try_from(bits.div_ceil(u128::from(self.bits_per_second))).unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_rates_are_exact() {
        for (gbps, ps) in [(1, 8000), (10, 800), (25, 320), (40, 200), (100, 80), (400, 20)] {
            assert_eq!(Rate::new(gbps * 1_000_000_000).transmission(1), ps);
            assert_eq!(Rate::new(gbps * 1_000_000_000).transmission(1500), 1500 * ps);
        }
    }

    #[test]
    fn other_rates_round_up_once_a_packet() {
        assert_eq!(Rate::new(3_000_000_000).transmission(1), 2667);
        assert_eq!(Rate::new(3_000_000_000).transmission(3), 8000);
    }
}
