//! Round-trip times of a TCP flow's acknowledgements: one of every ACK that acknowledges something new.
//!
//! The papers compare the RTT of each ACK with the average (CAPS, section VI-A; HTPC, Eq. 4). An ACK's RTT is the time since
//! the first byte that it acknowledges left, as TCP's timestamps have it (RFC 7323, section 4.3): behind a hole that is
//! the late segment's, which is what makes the ACK late. What was sent again has no time (Karn), and what left after it has
//! none either, since its ACK waits for the repeated segment. ACKs that acknowledge nothing new have no time that the agent
//! could see.

use std::collections::VecDeque;

use crate::serial::serial_difference;
use crate::Seconds;

/// Bursts in flight whose ACKs are timed; later ones are not.
const MOST_TIMED: usize = 1024;
/// No window is larger (RFC 7323).
const LARGEST_WINDOW: i32 = 1 << 30;

/// Bytes of a flow that left together for the first time and are not acknowledged yet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct InFlight {
    begin: u32,
    /// Behind the last of them.
    end: u32,
    left: Seconds,
}

/// What of one TCP flow is in flight, in the order of its sequence numbers (modulo 2^32).
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    in_flight: VecDeque<InFlight>,
    /// Behind the highest byte sent; None: nothing was.
    next: Option<u32>,
}

impl RoundTrips {
    /// Notes that bytes `begin` to `end` leave, for the first time or again.
    pub fn sent(&mut self, begin: u32, end: u32, now: Seconds) {
        let ahead = self.next.map_or(0, |next| serial_difference(begin, next));
        if !(-LARGEST_WINDOW..=0).contains(&ahead) {
            // what is between was not seen: it is another connection, or was lost on the way to the agent
            *self = RoundTrips::default();
        } else if ahead < 0 {
            self.forget_from(begin);
        }
        let fresh = self.next.filter(|&next| serial_difference(begin, next) < 0).unwrap_or(begin);
        if serial_difference(end, fresh) <= 0 {
            return;
        }
        if self.in_flight.len() < MOST_TIMED {
            self.in_flight.push_back(InFlight { begin: fresh, end, left: now });
        }
        self.next = Some(end);
    }

    /// Returns the RTT of an ACK of everything before `number`; None: it acknowledges nothing that is timed.
    pub fn acknowledged(&mut self, number: u32, now: Seconds) -> Option<Seconds> {
        let reaches = |position: u32| serial_difference(number, position) > 0;
        let first = *self.in_flight.front().filter(|first| reaches(first.begin))?;
        while let Some(burst) = self.in_flight.front_mut().filter(|burst| reaches(burst.begin)) {
            if serial_difference(number, burst.end) < 0 {
                burst.begin = number;
                break;
            }
            self.in_flight.pop_front();
        }
        Some(now - first.left)
    }

    fn forget_from(&mut self, begin: u32) {
        self.in_flight.retain(|burst| serial_difference(burst.begin, begin) < 0);
        if let Some(last) = self.in_flight.back_mut().filter(|last| serial_difference(last.end, begin) > 0) {
            last.end = begin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, Random};
    use trials::trials;

    const SIZE: u32 = 1000;

    #[test]
    fn every_ack_that_acknowledges_something_new_has_a_time() {
        for start in [0, 7, u32::MAX - 2500, u32::MAX / 2] {
            let mut trips = RoundTrips::default();
            let at = |segments: u32| start.wrapping_add(segments * SIZE);
            for segment in 0..5 {
                trips.sent(at(segment), at(segment + 1), f64::from(segment));
            }
            assert_eq!(trips.acknowledged(at(0), 9.0), None);
            assert_eq!(trips.acknowledged(at(1), 10.0), Some(10.0));
            assert_eq!(trips.acknowledged(at(1), 10.5), None, "a duplicate says nothing");
            assert_eq!(trips.acknowledged(at(4), 11.0), Some(10.0), "of the first that it acknowledges");
            assert_eq!(trips.acknowledged(at(5).wrapping_add(1), 12.0), Some(8.0), "a FIN's, too");
            assert_eq!(trips.acknowledged(at(6), 13.0), None);
        }
    }

    #[test]
    fn acks_within_a_burst_are_timed_each() {
        let mut trips = RoundTrips::default();
        trips.sent(0, 10 * SIZE, 1.0);
        let times: Vec<_> =
            (1..=5).map(|ack| trips.acknowledged(2 * SIZE * ack, 1.0 + f64::from(ack))).collect();
        assert_eq!(times, [1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
    }

    #[test]
    fn what_was_sent_again_and_what_is_behind_it_has_no_time() {
        let mut trips = RoundTrips::default();
        trips.sent(0, 4 * SIZE, 0.0);
        trips.sent(2 * SIZE, 3 * SIZE, 5.0);
        trips.sent(4 * SIZE, 5 * SIZE, 6.0);
        trips.sent(4 * SIZE, 6 * SIZE, 7.0); // the fifth again, and the sixth for the first time
        assert_eq!(trips.acknowledged(SIZE, 8.0), Some(8.0));
        assert_eq!(trips.acknowledged(4 * SIZE, 8.0), Some(8.0), "two segments of it left once");
        assert_eq!(trips.acknowledged(5 * SIZE, 9.0), None);
        assert_eq!(trips.acknowledged(6 * SIZE, 9.0), Some(2.0));
    }

    #[test]
    fn another_connection_with_the_same_ports_is_timed() {
        for begin in [SIZE + 1, 1 << 30, 2 << 30, (2 << 30) + SIZE + 1] {
            let mut trips = RoundTrips::default();
            trips.sent(0, SIZE, 0.0);
            trips.sent(begin, begin + SIZE, 1.0);
            assert_eq!(trips.acknowledged(begin + SIZE, 3.0), Some(2.0), "from {begin}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_in_order() {
        let (mut trips, mut random, mut next) = (RoundTrips::default(), Generator::new(5), 0u32);
        for step in 0..trials(20_000u32) {
            let begin =
                if random.below(20) == 0 { next.saturating_sub(SIZE * random.below(50)) } else { next };
            let end = begin + SIZE * (1 + random.below(3));
            trips.sent(begin, end, f64::from(step));
            next = next.max(end);
            if random.below(40) == 0 {
                let number = next - random.below(20_000).min(next);
                let rtt = trips.acknowledged(number, f64::from(step));
                assert!(rtt.is_none_or(|rtt| (0.0..=f64::from(step)).contains(&rtt)));
            }
            assert!(trips.in_flight.len() <= MOST_TIMED);
            let kept: Vec<_> = trips.in_flight.iter().flat_map(|burst| [burst.begin, burst.end]).collect();
            assert!(kept.is_sorted());
        }
    }
}
