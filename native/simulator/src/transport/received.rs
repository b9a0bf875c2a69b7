//! Which packets of a flow have arrived: a bit each from the first that is missing to the last that came.

use std::collections::VecDeque;

use crate::packets::Block;

#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The first packet that is missing.
    missing: u32,
    beyond: u32,
    /// Bits of packets from `base` on.
    words: VecDeque<u64>,
    base: u32,
}

impl Received {
    pub fn missing(&self) -> u32 {
        self.missing
    }

    /// Return how many packets have arrived beyond the first that is missing.
    pub fn beyond(&self) -> u32 {
        self.beyond
    }

    pub fn has(&self, number: u32) -> bool {
        if number < self.missing {
            return true;
        }
        let word = ((number - self.base) / 64) as usize;
        self.words.get(word).is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    /// Note a packet; return whether it is the first of its number.
    pub fn add(&mut self, number: u32) -> bool {
        if number == self.missing && self.beyond == 0 {
            self.missing += 1;
            self.forget();
            return true;
        }
        if self.has(number) {
            return false;
        }
        let word = ((number - self.base) / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
        self.beyond += 1;
        while self.beyond > 0 && self.has(self.missing) {
            self.missing += 1;
            self.beyond -= 1;
        }
        self.forget();
        true
    }

    /// Return the packets in a row around `number`, which has arrived.
    pub fn block(&self, number: u32) -> Block {
        let (mut first, mut end) = (number, number + 1);
        while first > self.missing && self.has(first - 1) {
            first -= 1;
        }
        while self.has(end) {
            end += 1;
        }
        Block { first, end }
    }

    /// Drop the words of packets before the first that is missing.
    fn forget(&mut self) {
        while self.missing >= self.base + 64 {
            self.words.pop_front();
            self.base += 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn it_knows_what_a_set_knows() {
        let mut random = Stream::new(2, Purpose::Paths);
        for spread in [1, 3, 70, 400] {
            let (mut received, mut set) = (Received::default(), BTreeSet::new());
            for step in 0..3000 {
                let number = (step / 2 + random.below(spread)).min(1000);
                assert_eq!(received.add(number), set.insert(number));
                let missing = (0..).find(|number| !set.contains(number)).unwrap();
                assert_eq!(received.missing(), missing);
                assert_eq!(received.beyond() as usize, set.range(missing..).count());
                let probe = random.below(1100);
                assert_eq!(received.has(probe), set.contains(&probe));
            }
        }
    }

    #[test]
    fn blocks_end_at_gaps() {
        let mut received = Received::default();
        for number in [0, 2, 3, 4, 70, 64, 65] {
            received.add(number);
        }
        assert_eq!(received.block(3), Block { first: 2, end: 5 });
        assert_eq!(received.block(64), Block { first: 64, end: 66 });
        assert_eq!(received.block(70), Block { first: 70, end: 71 });
    }
}
