//! Random numbers in streams by purpose: what is drawn for one purpose never moves the numbers of another, so schemes
//! that are compared share all that they do not decide themselves.

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Which of several events of one instant comes first.
    Ties = 1,
    /// Which path a packet takes.
    Paths = 2,
    /// Where the counters of hosts that use paths in turn begin.
    Starts = 3,
    /// The hash functions of switches.
    Hashes = 4,
    /// What hosts' agents draw: entropy values, seeds of codes.
    Agents = 5,
    /// Which messages of the control channel are lost.
    Control = 6,
}

/// Mix 64 bits so that each of the result depends on each of `value` (SplitMix64's finaliser).
pub fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Return the key of a purpose under a run's seed.
pub fn key(seed: u64, purpose: Purpose) -> u64 {
    mix(mix(seed) ^ (purpose as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

/// A stream of random numbers: SplitMix64 from the key of its purpose.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    pub fn new(seed: u64, purpose: Purpose) -> Stream {
        Stream(key(seed, purpose))
    }

    pub fn draw(&mut self) -> u64 {
        let value = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        value
    }

    /// Return a number below `bound` (at least 1), each equally likely to within 2^-32.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.draw() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Return a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |purpose| {
            let mut stream = Stream::new(7, purpose);
            (0..8).map(|_| stream.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(Purpose::Paths), draw(Purpose::Paths));
        assert_ne!(draw(Purpose::Paths), draw(Purpose::Ties));
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = Stream::new(1, Purpose::Paths);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        // Chi-square with 6 degrees of freedom: 22.5 at 0.1 %.
        let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 22.5, "{counts:?}");
    }
}
