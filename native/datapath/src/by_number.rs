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
    /// Remembers the value of a number that is newer than all before it.
    pub fn put(&mut self, number: u32, value: T) {
        let mut place = self.place(number);
        if place > WINDOW.div_ceil(PAGE) as usize && number.wrapping_sub(self.newest) >= WINDOW {
            self.pages.clear();
        }
        if self.pages.is_empty() {
            (self.first, place) = (number / PAGE, 0);
        }
        while self.pages.len() <= place {
            self.pages.push_back(None);
        }
        self.newest = number;
        let fresh = || Box::new(Page { there: 0, values: [T::default(); PAGE as usize] });
        let page = self.pages[place].get_or_insert_with(fresh);
        page.there |= bit(number);
        page.values[(number % PAGE) as usize] = value;
        while self.pages.len() > WINDOW.div_ceil(PAGE) as usize + 1 {
            self.drop_first();
        }
    }

    /// Returns the value of a number; None: it is forgotten, or was never put.
    pub fn get(&self, number: u32) -> Option<T> {
        let page = self.pages.get(self.place(number))?.as_deref()?;
        let inside = page.there & bit(number) != 0 && self.newest.wrapping_sub(number) < WINDOW;
        inside.then(|| page.values[(number % PAGE) as usize])
    }

    /// Forgets a number.
    pub fn forget(&mut self, number: u32) {
        let place = self.place(number);
        let Some(slot) = self.pages.get_mut(place) else { return };
        let Some(page) = slot else { return };
        page.there &= !bit(number);
        if page.there == 0 {
            *slot = None;
            while let Some(None) = self.pages.front() {
                self.drop_first();
            }
        }
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
                for _ in 0..below(90) {
                    let value = below(65536) as u16;
                    values.put(end as u32, value);
                    model.insert(end, value);
                    while model
                        .first_key_value()
                        .is_some_and(|(&oldest, _)| oldest + u64::from(WINDOW) <= end)
                    {
                        model.pop_first();
                    }
                    end += 1;
                }
                for _ in 0..below(120) {
                    let number = end.saturating_sub(u64::from(below(1100)));
                    values.forget(number as u32);
                    model.remove(&number);
                }
                for _ in 0..50 {
                    let number = (end + 20).saturating_sub(u64::from(below(1200)));
                    assert_eq!(values.get(number as u32), model.get(&number).copied());
                }
                assert!(values.capacity() <= WINDOW as usize + 2 * PAGE as usize);
            }
            (end.saturating_sub(1200)..end).for_each(|number| values.forget(number as u32));
            assert_eq!(values.capacity(), 0);
        }
    }
}
