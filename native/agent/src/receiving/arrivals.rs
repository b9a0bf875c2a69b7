//! Numbers of one peer's datagrams as they arrive: which are new, which are replays, which are lost for good.

use std::collections::VecDeque;

use datapath::prefetch::prefetch;

use super::seen::{Seen, WINDOW};
use crate::serial::{serial_difference, NumberRange};
use crate::Seconds;

/// A first number below this was not the first that was sent: those before it count as missing.
const BEFORE_FIRST: u32 = 1024;

/// Numbers that were skipped.
#[derive(Clone, Copy, Debug)]
struct Gap {
    noticed: Seconds,
    numbers: NumberRange,
}

/// The arrivals of one peer and session. Numbers that came take 8 kB at most, 1 kB where all came; gaps, of which a window
/// has 32 768 at most, 16 B each until they are given up.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    newest: Option<u32>,
    /// Numbers that are not among its last are replays, whatever they are.
    seen: Seen,
    /// In the order in which they were noticed.
    gaps: VecDeque<Gap>,
    /// Numbers up to this one were given up if they are missing; None: none in the window was.
    given_up: Option<u32>,
    /// Numbers up to this one are replays, whether they came or not: they were sent before the peer was away. None: all of
    /// them are outside the window, or it was not away.
    before: Option<u32>,
    /// Datagrams that were new.
    pub received: u64,
    /// Datagrams that were not.
    pub replayed: u64,
    /// Numbers given up.
    pub lost: u64,
    /// Numbers that came after they were given up.
    pub late: u64,
}

impl Arrivals {
    /// Returns the arrivals of a peer that was away and comes back in its session, of whose numbers none up to `last` may
    /// come again; None: none had come.
    pub fn after(last: Option<u32>) -> Arrivals {
        Arrivals { before: last, ..Arrivals::default() }
    }

    /// Returns what `after` takes once the peer comes back.
    pub fn last(&self) -> Option<u32> {
        self.newest.or(self.before)
    }

    /// Returns the newest number that came; None if none did.
    pub fn newest(&self) -> Option<u32> {
        self.newest
    }

    /// Returns true if numbers were noticed missing that are not given up; some of them may have come since.
    pub fn has_gaps(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Has the processor fetch what `accept` looks at first.
    pub fn prefetch(&self, number: u32) {
        prefetch(&self.newest);
        prefetch(&self.gaps);
        prefetch(&self.received);
        self.seen.prefetch(number);
    }

    /// Has the processor fetch what `accept` looks at then.
    pub fn prefetch_page(&self, number: u32) {
        self.seen.prefetch_page(number);
    }

    /// Returns true if this number is seen for the first time; false if it is a replay, to be dropped.
    pub fn accept(&mut self, number: u32, now: Seconds) -> bool {
        if self.before.is_some_and(|last| serial_difference(number, last) <= 0) {
            self.replayed += 1;
            return false;
        }
        let newest = self.newest.unwrap_or_else(|| {
            if number < BEFORE_FIRST && self.before.is_none() {
                self.notice(NumberRange { first: 0, count: number }, now);
            }
            number.wrapping_sub(1)
        });
        let ahead = serial_difference(number, newest);
        if ahead > 0 {
            self.go_on(newest, number, now);
        } else if i64::from(ahead) <= -i64::from(WINDOW) || self.seen.find(number, 0, 1, true).is_some() {
            self.replayed += 1;
            return false;
        } else if self.is_given_up(number) {
            self.late += 1;
        }
        self.seen.set(NumberRange { first: number, count: 1 }, true);
        self.received += 1;
        true
    }

    /// Gives up what was noticed missing at `noticed_before` or earlier. Returns those numbers: lost, unless they come
    /// late.
    pub fn give_up(&mut self, noticed_before: Seconds) -> Vec<NumberRange> {
        let mut lost = Vec::new();
        while let Some(gap) = self.gaps.front().filter(|gap| gap.noticed <= noticed_before).copied() {
            self.gaps.pop_front();
            self.missing(gap.numbers, &mut lost);
            let NumberRange { first, count } = gap.numbers;
            self.given_up = Some(first.wrapping_add(count - 1));
        }
        self.lost += lost.iter().map(|numbers| u64::from(numbers.count)).sum::<u64>();
        lost
    }

    /// Returns when the gap that is open for longest was noticed; None if there is none. Forgets those that are filled.
    pub fn oldest_missing(&mut self) -> Option<Seconds> {
        while let Some(gap) = self.gaps.front() {
            let open = self.remembered(gap.numbers);
            if self.seen.find(open.first, 0, open.count, false).is_some() {
                return Some(gap.noticed);
            }
            self.gaps.pop_front();
        }
        None
    }

    fn is_given_up(&self, number: u32) -> bool {
        self.given_up.is_some_and(|last| serial_difference(number, last) <= 0)
    }

    /// Advances to a number that is newer than the newest: those between are missing.
    fn go_on(&mut self, newest: u32, number: u32, now: Seconds) {
        let skipped = number.wrapping_sub(newest) - 1;
        if skipped > 0 {
            // what lies a window before these numbers
            self.seen.set(NumberRange { first: newest.wrapping_add(1), count: skipped + 1 }, false);
            let count = skipped.min(WINDOW - 1);
            self.notice(NumberRange { first: number.wrapping_sub(count), count }, now);
        }
        self.newest = Some(number);
        while self.gaps.front().is_some_and(|gap| self.remembered(gap.numbers).count == 0) {
            self.gaps.pop_front();
        }
        let inside = |&last: &u32| i64::from(serial_difference(number, last)) < i64::from(WINDOW);
        self.given_up = self.given_up.filter(inside);
        self.before = self.before.filter(inside);
    }

    fn notice(&mut self, numbers: NumberRange, now: Seconds) {
        if numbers.count > 0 {
            self.gaps.push_back(Gap { noticed: now, numbers });
        }
    }

    /// Returns the part of a range that is within the window.
    fn remembered(&self, numbers: NumberRange) -> NumberRange {
        let NumberRange { first, count } = numbers;
        let behind = self.newest.map_or(0, |newest| i64::from(newest.wrapping_sub(first)));
        let outside = (behind - i64::from(WINDOW) + 1).clamp(0, count.into()) as u32;
        NumberRange { first: first.wrapping_add(outside), count: count - outside }
    }

    /// Appends the parts of a range that have not come and are within the window.
    fn missing(&self, numbers: NumberRange, out: &mut Vec<NumberRange>) {
        let NumberRange { first, count } = self.remembered(numbers);
        let mut index = 0;
        while let Some(start) = self.seen.find(first, index, count, false) {
            index = self.seen.find(first, start, count, true).unwrap_or(count);
            out.push(NumberRange { first: first.wrapping_add(start), count: index - start });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "takes more numbers than Miri can process in minutes")]
    fn gaps_are_no_more_than_a_window_has() {
        for first in [0, u32::MAX - 100_000] {
            let mut arrivals = Arrivals::default();
            for turn in 0..4 * WINDOW {
                assert!(arrivals.accept(first.wrapping_add(1 + 2 * turn), 0.0));
                assert!(arrivals.gaps.len() <= WINDOW as usize / 2);
            }
            assert!(arrivals.accept(first.wrapping_add((1 << 31) + 8 * WINDOW - 2), 0.0));
            assert_eq!(arrivals.gaps.len(), 1, "the numbers just before it");
            let lost = arrivals.give_up(1.0);
            assert_eq!(lost.iter().map(|numbers| numbers.count).sum::<u32>(), WINDOW - 1);
        }
    }
}
