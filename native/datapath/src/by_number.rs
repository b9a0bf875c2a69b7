//! Values of datagrams by their numbers: those that were forgotten, or never said, take no room.

use std::collections::VecDeque;

const PAGE: u32 = u64::BITS;
/// Numbers of pages wrap with those of datagrams.
const PAGES: u32 = u32::MAX / PAGE + 1;

#[derive(Clone, Debug)]
struct Page<T> {
    /// Which values are there, by the number's last bits.
    there: u64,
    values: [T; PAGE as usize],
}

/// Values of the last `WINDOW` numbers. Numbers are put in the order in which they are given, and wrap at 2^32.
///
/// Memory goes by pages of 64 numbers: one is freed when all of it is forgotten.
#[derive(Clone, Debug)]
pub struct ByNumber<T, const WINDOW: u32> {
    pages: VecDeque<Option<Box<Page<T>>>>,
    /// Number of the first page.
    first: u32,
    newest: u32,
}

impl<T, const WINDOW: u32> Default for ByNumber<T, WINDOW> {
    fn default() -> ByNumber<T, WINDOW> {
        ByNumber { pages: VecDeque::new(), first: 0, newest: 0 }
    }
}

impl<T: Copy + Default, const WINDOW: u32> ByNumber<T, WINDOW> {
    /// Remembers one value of `count` numbers from `first` on, newer than all before them.
    pub fn put_same(&mut self, first: u32, count: u32, value: T) {
        let mut done = 0;
        while done < count {
            let some = self.places(first.wrapping_add(done), count - done);
            some.fill(value);
            done += some.len() as u32;
        }
    }

    /// Remembers values of numbers from `first` on, newer than all before them.
    pub fn put_all(&mut self, first: u32, values: &[T]) {
        let (mut number, mut rest) = (first, values);
        while !rest.is_empty() {
            let some = self.places(number, rest.len() as u32);
            let (these, behind) = rest.split_at(some.len());
            some.copy_from_slice(these);
            (number, rest) = (number.wrapping_add(these.len() as u32), behind);
        }
    }

    /// Returns the places of the first of `count` numbers from `number` on: as many as are of one page. They count as put.
    fn places(&mut self, number: u32, count: u32) -> &mut [T] {
        let most = WINDOW.div_ceil(PAGE) as usize + 1;
        if self.place(number) >= most && number.wrapping_sub(self.newest) >= WINDOW {
            self.pages.clear();
        }
        if self.pages.is_empty() {
            self.first = number / PAGE;
        }
        while self.pages.len() <= self.place(number) {
            self.pages.push_back(None);
        }
        while self.pages.len() > most {
            self.drop_first();
        }
        let (place, begin) = (self.place(number), number % PAGE);
        let count = count.min(PAGE - begin);
        self.newest = number.wrapping_add(count - 1);
        let fresh = || Box::new(Page { there: 0, values: [T::default(); PAGE as usize] });
        let page = self.pages[place].get_or_insert_with(fresh);
        page.there |= u64::MAX >> (PAGE - count) << begin;
        &mut page.values[begin as usize..(begin + count) as usize]
    }

    /// Returns the value of a number; None: it is forgotten, or was never put.
    pub fn get(&self, number: u32) -> Option<T> {
        let page = self.pages.get(self.place(number))?.as_deref()?;
        let inside = page.there & bit(number) != 0 && self.newest.wrapping_sub(number) < WINDOW;
        inside.then(|| page.values[(number % PAGE) as usize])
    }

    /// Forgets a number. Returns its value; None: it was forgotten before, or never put.
    pub fn take(&mut self, number: u32) -> Option<T> {
        let (place, inside) = (self.place(number), self.newest.wrapping_sub(number) < WINDOW);
        let slot = self.pages.get_mut(place)?;
        let page = slot.as_deref_mut()?;
        let there = page.there & bit(number) != 0;
        let value = page.values[(number % PAGE) as usize];
        page.there &= !bit(number);
        if page.there == 0 {
            *slot = None;
            while let Some(None) = self.pages.front() {
                self.drop_first();
            }
        }
        (there && inside).then_some(value)
    }

    /// Returns for how many numbers there is room in memory.
    pub fn capacity(&self) -> usize {
        self.pages.iter().flatten().count() * PAGE as usize
    }

    fn drop_first(&mut self) {
        self.pages.pop_front();
        self.first = (self.first + 1) % PAGES;
    }

    fn place(&self, number: u32) -> usize {
        ((number / PAGE).wrapping_sub(self.first) % PAGES) as usize
    }
}

fn bit(number: u32) -> u64 {
    1 << (number % PAGE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use trials::trials;

    use super::*;

    const WINDOW: u32 = 1000;

    #[test]
    fn values_are_a_map_of_the_last_numbers() {
        let mut state = 11u64;
        let mut below = |bound: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % u64::from(bound)) as u32
        };
        for first in [0u32, 63, u32::MAX - 700, u32::MAX / 2].repeat(trials(10)) {
            let (mut values, mut model) = (ByNumber::<u16, WINDOW>::default(), BTreeMap::<u64, u16>::new());
            let mut end = u64::from(first);
            for _ in 0..trials(400) {
                end += u64::from([0u32, 0, 0, 3, 80, 999, 1000, 40_000][below(8) as usize]);
                let (first, alike) = (end as u32, below(2) == 0);
                let some: Vec<u16> =
                    (0..below(90)).map(|ahead| if alike { 7 } else { ahead as u16 }).collect();
                if alike {
                    values.put_same(first, some.len() as u32, 7);
                } else {
                    values.put_all(first, &some);
                }
                model.extend((end..).zip(some.iter().copied()));
                end += some.len() as u64;
                let newest = end.saturating_sub(1); // of what was put, if anything was
                if !some.is_empty() {
                    model.retain(|&number, _| number + u64::from(WINDOW) > newest);
                }
                for _ in 0..below(120) {
                    let number = end.saturating_sub(u64::from(below(1100)));
                    assert_eq!(values.take(number as u32), model.remove(&number));
                }
                for _ in 0..50 {
                    let number = (end + 20).saturating_sub(u64::from(below(1200)));
                    assert_eq!(values.get(number as u32), model.get(&number).copied());
                }
                assert!(values.capacity() <= WINDOW as usize + 2 * PAGE as usize);
            }
            for number in end.saturating_sub(100_000)..end {
                values.take(number as u32);
            }
            assert_eq!(values.capacity(), 0);
        }
    }
}
