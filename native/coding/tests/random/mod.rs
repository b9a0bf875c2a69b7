//! Repeatable randomness for the tests: splitmix64.

#![allow(dead_code)] // each test program uses a part of it

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number in low..=high.
    pub fn within(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Returns `count` different numbers below `limit`, in random order.
    pub fn sample(&mut self, limit: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..limit).collect();
        for place in 0..count {
            let other = self.within(place, limit - 1);
            all.swap(place, other);
        }
        all.truncate(count);
        all
    }
}
