//! Which of the last numbers have come: a bit each where that differs within a page, nothing where it does not.

use datapath::prefetch::prefetch;

use crate::serial::NumberRange;

/// So many numbers are remembered.
pub const WINDOW: u32 = 65536;
const WORD_BITS: u32 = u64::BITS;
const PAGE_WORDS: usize = 64;
const PAGE_BITS: u32 = PAGE_WORDS as u32 * WORD_BITS;
const PAGES: usize = (WINDOW / PAGE_BITS) as usize;

#[derive(Clone, Debug, Default)]
enum Page {
    #[default]
    None,
    All,
    Some(Box<[u64; PAGE_WORDS]>),
}

/// Bits of the last `WINDOW` numbers, by the number's last bits. 0.5 kB for each 4096 numbers of which some came.
#[derive(Clone, Debug, Default)]
pub struct Seen([Page; PAGES]);

impl Seen {
    /// Returns the least offset from `from` on, below `count`, whose number behind `first` has come (or, by `seen`, has
    /// not); None: there is none.
    pub fn find(&self, first: u32, from: u32, count: u32, seen: bool) -> Option<u32> {
        let mut offset = from;
        while offset < count {
            let slot = first.wrapping_add(offset) % WINDOW;
            let word = match &self.0[(slot / PAGE_BITS) as usize] {
                Page::None if seen => 0,
                Page::All if !seen => u64::MAX,
                Page::None | Page::All => return Some(offset),
                Page::Some(words) => words[(slot % PAGE_BITS / WORD_BITS) as usize],
            };
            let wanted = (if seen { word } else { !word }) >> (slot % WORD_BITS);
            if wanted != 0 {
                return Some(offset + wanted.trailing_zeros()).filter(|&hit| hit < count);
            }
            offset += WORD_BITS - slot % WORD_BITS;
        }
        None
    }

    /// Has the processor fetch where it is noted what has come of numbers round this one.
    pub fn prefetch(&self, number: u32) {
        prefetch(&self.0[(number % WINDOW / PAGE_BITS) as usize]);
    }

    /// Has the processor fetch what is noted of a number.
    pub fn prefetch_page(&self, number: u32) {
        let slot = number % WINDOW;
        if let Page::Some(words) = &self.0[(slot / PAGE_BITS) as usize] {
            prefetch(&words[(slot % PAGE_BITS / WORD_BITS) as usize]);
        }
    }

    /// Notes of consecutive numbers, `WINDOW` at most, whether they have come.
    pub fn set(&mut self, numbers: NumberRange, seen: bool) {
        if numbers.count >= WINDOW {
            self.0 = std::array::from_fn(|_| if seen { Page::All } else { Page::None });
            return;
        }
        let mut done = 0;
        while done < numbers.count {
            let slot = numbers.first.wrapping_add(done) % WINDOW;
            let bits = (WORD_BITS - slot % WORD_BITS).min(numbers.count - done);
            let mask = (u64::MAX >> (WORD_BITS - bits)) << (slot % WORD_BITS);
            self.0[(slot / PAGE_BITS) as usize].set((slot % PAGE_BITS / WORD_BITS) as usize, mask, seen);
            done += bits;
        }
    }
}

impl Page {
    fn set(&mut self, place: usize, mask: u64, seen: bool) {
        match self {
            Page::All if seen => return,
            Page::None if !seen => return,
            Page::Some(_) => {}
            _ => *self = Page::Some(Box::new([if seen { 0 } else { u64::MAX }; PAGE_WORDS])),
        }
        let Page::Some(words) = self else { return };
        let word = &mut words[place];
        *word = if seen { *word | mask } else { *word & !mask };
        let same = if seen { u64::MAX } else { 0 };
        if *word == same && words.iter().all(|&word| word == same) {
            *self = if seen { Page::All } else { Page::None };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, Random};

    #[test]
    #[cfg_attr(miri, ignore = "compares whole windows of numbers, thousands of times")]
    fn seen_numbers_are_a_list_of_bits() {
        let mut draws = Generator::new(17);
        let (mut seen, mut bits) = (Seen::default(), vec![false; WINDOW as usize]);
        for _ in 0..3000 {
            let first = (u32::MAX - 100_000).wrapping_add(draws.below(200_000));
            let count = [1, 64, 700, 5000, 20_000, WINDOW][draws.below(6) as usize];
            let value = draws.below(2) == 0;
            seen.set(NumberRange { first, count }, value);
            (0..count).for_each(|ahead| bits[(first.wrapping_add(ahead) % WINDOW) as usize] = value);
            for wanted in [false, true] {
                let (first, from) = (draws.below(WINDOW), draws.below(300));
                let expected =
                    (from..9000).find(|&ahead| bits[(first.wrapping_add(ahead) % WINDOW) as usize] == wanted);
                assert_eq!(seen.find(first, from, 9000, wanted), expected);
            }
        }
    }
}
