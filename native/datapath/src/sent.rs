//! What the sender remembers of its datagrams to one peer until the peer's feedback, which names them by number, speaks of
//! them: source ports, and which datagrams are overdue. Memory goes with what is outstanding, up to `RING` datagrams.

use crate::by_number::ByNumber;

/// Datagrams remembered for each peer, at most.
pub const RING: usize = 1 << 15;

/// Entropy values of the last datagrams that the peer has not reported.
#[derive(Default)]
pub struct SentLog {
    entropies: ByNumber<u16, { RING as u32 }>,
}

impl SentLog {
    /// Notes that datagrams from `number` on leave with these entropy values.
    pub fn sent(&mut self, number: u32, entropies: &[u16]) {
        self.entropies.put_all(number, entropies);
    }

    /// Returns the entropy value of a datagram; None: it is forgotten, or was never sent.
    pub fn entropy_of(&self, number: u32) -> Option<u16> {
        self.entropies.get(number)
    }

    /// Forgets `number`, which the peer has got. Returns false if it is not known to have been sent.
    pub fn arrived(&mut self, number: u32) -> bool {
        self.entropies.take(number).is_some()
    }
}

/// Datagrams that the peer has not reported, so that blocked paths are noticed before they deliver.
///
/// Numbers are given in the order in which they leave, and times do not run backwards; the last RING numbers count.
#[derive(Default)]
pub struct Outstanding {
    /// When each left that is waited for.
    left: ByNumber<f64, { RING as u32 }>,
    /// Nothing before this one is waited for, and nothing from `end` on.
    first: u32,
    end: u32,
}

impl Outstanding {
    /// Notes that datagrams from `number` on leave now, RING at most.
    pub fn sent(&mut self, number: u32, count: u32, now: f64) {
        if self.first == self.end {
            self.first = number;
        }
        self.left.put_same(number, count, now);
        self.end = number.wrapping_add(count);
        if self.end.wrapping_sub(self.first) as usize > RING {
            self.first = self.end.wrapping_sub(RING as u32);
        }
    }

    /// Notes datagrams that the peer reports. Returns how many of them were waited for (neither reported nor overdue
    /// before), and when the last of those left.
    pub fn arrived(&mut self, numbers: impl IntoIterator<Item = u32>) -> (usize, Option<f64>) {
        let (mut count, mut newest) = (0, None);
        for number in numbers {
            if !self.is_within(number) {
                continue;
            }
            let Some(sent_at) = self.left.take(number) else { continue };
            newest = Some(newest.map_or(sent_at, |newest: f64| newest.max(sent_at)));
            count += 1;
        }
        (count, newest)
    }

    /// Returns true if a datagram is waited for: it has left, and is neither reported nor overdue.
    pub fn awaits(&self, number: u32) -> bool {
        self.is_within(number) && self.left.get(number).is_some()
    }

    fn is_within(&self, number: u32) -> bool {
        number.wrapping_sub(self.first) < self.end.wrapping_sub(self.first)
    }

    /// Returns how many left before that time and were not reported; calls `late` with the number of each, once.
    pub fn overdue(&mut self, sent_before: f64, mut late: impl FnMut(u32)) -> usize {
        let mut count = 0;
        while self.first != self.end {
            if let Some(sent_at) = self.left.get(self.first) {
                if sent_at >= sent_before {
                    break;
                }
                self.left.take(self.first);
                late(self.first);
                count += 1;
            }
            self.first = self.first.wrapping_add(1);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trials::trials;

    #[test]
    fn entropy_values_are_remembered_for_a_ring_of_numbers() {
        let mut log = SentLog::default();
        let first = u32::MAX - 1;
        log.sent(first, &[16384, 16385, 16386]);
        assert_eq!(log.entropy_of(0), Some(16386));
        assert_eq!(log.entropy_of(1), None);
        assert_eq!(log.entropy_of(0u32.wrapping_sub(RING as u32)), None);
        assert!(log.arrived(first) && !log.arrived(5));
        assert_eq!(
            (log.entropy_of(first), log.arrived(first)),
            (None, false),
            "what was reported is forgotten"
        );
    }

    #[test]
    fn what_is_overdue_is_counted_once() {
        let mut log = Outstanding::default();
        assert_eq!((log.arrived([3]), log.overdue(9.0, drop)), ((0, None), 0), "nothing has left");
        log.sent(u32::MAX - 1, 4, 1.0);
        log.sent(5, 1, 2.0); // 2, 3 and 4 are not waited for
        assert!(log.awaits(0) && !log.awaits(2) && !log.awaits(9));
        assert_eq!(log.arrived([3, 0, 0, 9]), (1, Some(1.0)));
        assert!(!log.awaits(0) && log.awaits(1));
        assert_eq!(log.overdue(1.5, drop), 3);
        assert_eq!(log.overdue(1.5, drop), 0);
        assert_eq!(log.arrived([u32::MAX, 5]), (1, Some(2.0)));
        assert_eq!(log.overdue(9.0, drop), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
    fn no_more_are_waited_for_than_are_remembered() {
        let mut log = Outstanding::default();
        let most = RING as u32;
        log.sent(1, most, 1.0);
        log.sent(1 + most, 10, 2.0);
        assert_eq!(log.arrived(1..=10), (0, None));
        assert_eq!(log.overdue(3.0, drop), RING);
    }

    #[test]
    fn datagrams_that_are_waited_for_are_a_map_of_when_they_left() {
        let mut state = 7u64;
        let mut below = |bound: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % u64::from(bound)) as u32
        };
        for first in [0u32, 5, u32::MAX - 40].repeat(trials(40)) {
            let (mut log, mut model) = (Outstanding::default(), std::collections::BTreeMap::new());
            let (mut number, mut now) = (first, 0.0);
            for _ in 0..trials(80) {
                now += f64::from(below(1000)) / 1000.0;
                number = number.wrapping_add(below(3)); // datagrams that are not waited for
                let count = 1 + below(60);
                log.sent(number, count, now);
                model.extend((0..count).map(|ahead| (number.wrapping_add(ahead), now)));
                number = number.wrapping_add(count);
                let from = number.wrapping_add(5).wrapping_sub(below(200));
                let reported: Vec<u32> = (0..below(50))
                    .map(|index| {
                        if count % 2 == 0 {
                            from.wrapping_add(index)
                        } else {
                            number.wrapping_sub(below(200))
                        }
                    })
                    .collect();
                let left: Vec<f64> =
                    reported.iter().filter_map(|left_over| model.remove(left_over)).collect();
                let newest = left.iter().copied().reduce(f64::max);
                assert_eq!(log.arrived(reported), (left.len(), newest));
                let before = now - f64::from(below(5000)) / 1000.0;
                let mut late = Vec::new();
                assert_eq!(log.overdue(before, |number| late.push(number)), late.len());
                late.sort_unstable();
                let is_late = |&(_, &when): &(&u32, &f64)| when < before;
                assert!(model.iter().filter(is_late).map(|(&number, _)| number).eq(late));
                model.retain(|_, &mut when| when >= before);
            }
        }
    }
}
