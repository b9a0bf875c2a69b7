//! What is known of each packet that is not acknowledged yet.

use std::collections::VecDeque;

use crate::packets::Block;
use crate::time::{Time, NEVER};

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    arrived: bool,
    lost: bool,
    /// Retransmitted after it was found lost.
    again: bool,
    /// Retransmitted at any time.
    ever: bool,
    /// RACK looks at it: not from when it finds it lost until it is retransmitted, even if it is taken as not lost meanwhile.
    watched: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Board {
    first: u32,
    sent: VecDeque<Sent>,
    arrived: u32,
    lost: u32,
    again: u32,
    /// Duplicate acknowledgements, where nothing says what has arrived.
    duplicates: u32,
    /// When the answer came whose packets are looked at, the time that it echoes, and the least round trip before it.
    now: Time,
    stamp: Time,
    least: Time,
    /// The latest to be sent of all that have arrived, the round trip of the last that arrived, and the end of what has.
    latest: (Time, u32),
    round_trip: Time,
    /// Whether anything has arrived by which RACK could find more lost than when it last looked.
    advanced: bool,
    /// When the latest to be sent of those was sent that the answer says have arrived; None: it says that of none.
    arrived_at: Option<Time>,
    highest: u32,
    /// The end of what had arrived before the answer that is looked at.
    highest_before: u32,
    reordered: bool,
    reorders_far: bool,
    /// No packet before it waits to be retransmitted.
    search: u32,
    /// Packets before `highest` that have not arrived, ascending: an acknowledgement looks at them, not at the whole window.
    holes: VecDeque<u32>,
}

impl Board {
    /// Return the first packet that is not acknowledged.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Return the packet after the last that was sent.
    pub fn end(&self) -> u32 {
        self.first + self.sent.len() as u32
    }

    pub fn len(&self) -> u32 {
        self.sent.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub fn in_flight(&self) -> u32 {
        (self.len() + self.again).saturating_sub(self.arrived + self.lost + self.duplicates)
    }

    /// Return how many packets are known to have arrived, of all that were sent: one for each duplicate acknowledgement,
    /// where nothing says which.
    pub fn delivered(&self) -> u32 {
        self.first + self.arrived + self.duplicates
    }

    /// Return how many are lost, retransmitted since or not.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Return how many retransmissions are in flight.
    pub fn retransmitted(&self) -> u32 {
        self.again
    }

    /// Return whether no retransmission is in flight, and the first packet that is not acknowledged was sent once.
    pub fn settled(&self) -> bool {
        self.again == 0 && self.sent.front().is_none_or(|packet| !packet.ever)
    }

    /// Return how many packets have arrived beyond the first that is missing, as far as is known.
    pub fn beyond(&self) -> u32 {
        self.arrived + self.duplicates
    }

    /// Return whether anything has arrived by which RACK could find more lost than when that was last asked.
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Let RACK look though nothing arrives.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Return the time from the last packet's sending, as far as is known, to its answer (RFC 8985, RACK.rtt).
    pub fn round_trip(&self) -> Time {
        self.round_trip
    }

    /// Begin to look at what an answer says that comes at `now` and echoes `stamp`; `least`: the least round trip so far.
    pub fn begin_answer(&mut self, now: Time, stamp: Time, least: Time) {
        (self.now, self.stamp, self.least) = (now, stamp, least);
        (self.highest_before, self.arrived_at) = (self.highest, None);
    }

    /// Return when the latest to be sent of those was sent that the answer says have arrived; None: it says that of none.
    pub fn arrived_at(&self) -> Option<Time> {
        self.arrived_at
    }

    /// Return whether a packet ever arrived after one that was sent later.
    pub fn reordered(&self) -> bool {
        self.reordered
    }

    /// Return whether a packet ever arrived after one that was sent more than three later (Linux: tcp_sock.reordering).
    pub fn reorders_far(&self) -> bool {
        self.reorders_far
    }

    /// Take that the network reorders.
    pub fn see_reordering(&mut self) {
        self.reordered = true;
    }

    pub fn send(&mut self, now: Time) -> u32 {
        self.sent.push_back(Sent {
            at: now,
            arrived: false,
            lost: false,
            again: false,
            ever: false,
            watched: true,
        });
        self.end() - 1
    }

    /// Retransmit the first packet that is lost and was not retransmitted since.
    pub fn send_again(&mut self, now: Time) -> Option<u32> {
        if self.lost == self.again {
            return None;
        }
        let begin = self.search.max(self.first);
        for number in begin..self.end() {
            let packet = &mut self.sent[(number - self.first) as usize];
            if packet.lost && !packet.again {
                (packet.at, packet.again, packet.ever) = (now, true, true);
                packet.watched = true;
                self.again += 1;
                self.search = number + 1;
                return Some(number);
            }
        }
        None
    }

    pub fn sack(&mut self, block: Block) {
        let (first, end) = (block.first.max(self.first), block.end.min(self.end()));
        if first >= end {
            return;
        }
        let place = |number: u32| self.holes.partition_point(|&hole| hole < number);
        let filled: Vec<u32> = self.holes.drain(place(first)..place(end)).collect();
        filled.into_iter().for_each(|number| self.arrive(number));
        let fresh = self.highest.max(self.first);
        self.holes.extend(fresh..first);
        (fresh.max(first)..end).for_each(|number| self.arrive(number));
    }

    fn arrive(&mut self, number: u32) {
        let packet = &mut self.sent[(number - self.first) as usize];
        packet.arrived = true;
        self.arrived += 1;
        self.lost -= u32::from(packet.lost);
        self.again -= u32::from(packet.again);
        (packet.lost, packet.again) = (false, false);
        let (sent_at, ever) = (packet.at, packet.ever);
        self.came(number, sent_at, ever);
    }

    /// Note a duplicate acknowledgement: a packet has left the network.
    pub fn duplicate(&mut self) {
        self.duplicates = (self.duplicates + 1).min(self.len().saturating_sub(1));
    }

    pub fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    /// Take all packets before `missing` as arrived.
    pub fn advance(&mut self, missing: u32) {
        let mut unknown = 0;
        while self.first < missing {
            let Some(packet) = self.sent.pop_front() else {
                self.first = missing;
                break;
            };
            self.arrived -= u32::from(packet.arrived);
            self.lost -= u32::from(packet.lost);
            self.again -= u32::from(packet.again);
            unknown += u32::from(!packet.arrived);
            let number = self.first;
            self.first += 1;
            if !packet.arrived {
                self.came(number, packet.at, packet.ever);
            }
        }
        let filled = self.holes.partition_point(|&hole| hole < self.first);
        self.holes.drain(..filled);
        // One of them was missing; the others had caused duplicates.
        self.duplicates =
            self.duplicates.saturating_sub(unknown.saturating_sub(1)).min(self.len().saturating_sub(1));
    }

    /// Mark what at least `threshold` packets have overtaken; return whether anything new is lost.
    pub fn lose_overtaken(&mut self, threshold: u32) -> bool {
        let before = self.lost;
        let (mut overtaken_by, mut first) = (self.arrived, u32::MAX);
        for (place, packet) in self.sent.iter_mut().enumerate() {
            if overtaken_by < threshold {
                break;
            }
            if packet.arrived {
                overtaken_by -= 1;
            } else if !packet.lost {
                packet.lost = true;
                self.lost += 1;
                first = first.min(self.first + place as u32);
            }
        }
        self.search = self.search.min(first);
        self.lost > before
    }

    /// Mark what was sent `patience` ago and before something that has arrived. Return whether anything new is lost, and
    /// when all that was sent before something that has arrived will be; NEVER: it is.
    pub fn lose_late(&mut self, now: Time, patience: Time) -> (bool, Time) {
        let (mut any, mut last) = (false, 0);
        let unknown = self.highest.max(self.first)..self.first + self.sent.len() as u32;
        for number in self.holes.iter().copied().chain(unknown) {
            let packet = &mut self.sent[(number - self.first) as usize];
            let later = (packet.at, number) >= self.latest;
            if later && !packet.ever {
                break; // so was all behind it, whether sent once or again
            }
            if later || !packet.watched || (packet.lost && !packet.again) {
                continue;
            }
            if packet.at + patience > now {
                last = last.max(packet.at + patience);
                continue;
            }
            if packet.lost {
                packet.again = false;
                self.again -= 1;
            } else {
                packet.lost = true;
                self.lost += 1;
            }
            // Linux takes it off the list that it looks through (tcp_rack_detect_loss), and an undo does not put it back.
            packet.watched = false;
            self.search = self.search.min(number);
            any = true;
        }
        (any, if last == 0 { NEVER } else { last })
    }

    /// Mark the first packet; return whether that is new.
    pub fn lose_first(&mut self) -> bool {
        let Some(packet) = self.sent.front_mut().filter(|packet| !packet.lost) else { return false };
        packet.lost = true;
        self.lost += 1;
        self.search = self.first;
        true
    }

    /// Take what was lost and not retransmitted as not lost: it may only be late. If RACK had found it, and it was lost indeed,
    /// it waits for the time-out.
    pub fn find_unsent(&mut self) {
        for packet in self.sent.iter_mut().filter(|packet| packet.lost && !packet.again) {
            packet.lost = false;
            self.lost -= 1;
        }
    }

    /// Mark everything that is not known to have arrived.
    pub fn lose_all(&mut self) {
        for packet in self.sent.iter_mut().filter(|packet| !packet.arrived) {
            (packet.lost, packet.again) = (true, false);
        }
        self.lost = self.len() - self.arrived;
        (self.again, self.duplicates, self.search) = (0, 0, self.first);
    }

    fn came(&mut self, number: u32, sent_at: Time, ever: bool) {
        if number < self.highest_before && !ever {
            self.reordered = true;
            self.reorders_far |= number.saturating_add(4) < self.highest;
        }
        self.highest = self.highest.max(number + 1);
        self.arrived_at = self.arrived_at.max(Some(sent_at));
        let round_trip = self.now.saturating_sub(sent_at);
        // Of what was sent twice, the original may have arrived. Its timestamp shows it where it fills a gap; elsewhere
        // Linux takes it for the retransmission, unless that came sooner than anything can (tcp_rack_advance).
        let original = number < self.first && self.stamp < sent_at;
        if !ever || (round_trip >= self.least && !original) {
            (self.advanced, self.round_trip) = (true, round_trip);
            self.latest = self.latest.max((sent_at, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn holes_are_what_has_not_arrived_before_the_highest() {
        let (mut board, mut random) = (Board::default(), Stream::new(9, Purpose::Paths));
        for step in 0..20_000 {
            let sent = board.end();
            match random.below(4) {
                0 => board.advance(board.first() + random.below(board.len() + 1) / 4),
                1 => {
                    let first = (board.first() + random.below(board.len() + 9)).saturating_sub(4);
                    board.sack(Block { first, end: first + random.below(20) });
                }
                _ if board.len() < 300 => assert_eq!(board.send(step), sent),
                _ => {}
            }
            let arrived = |number: u32| board.sent[(number - board.first) as usize].arrived;
            let highest = board.highest.max(board.first);
            let holes: Vec<u32> = (board.first..highest).filter(|&number| !arrived(number)).collect();
            assert_eq!(board.holes, holes);
            assert!((highest..board.end()).all(|number| !arrived(number)));
            assert_eq!(board.arrived as usize, (highest - board.first) as usize - holes.len());
        }
    }

    #[test]
    fn an_original_that_comes_after_its_retransmission_is_known_by_its_timestamp_where_it_fills_a_gap() {
        let retransmitted = || {
            let mut board = Board::default();
            (0..8).for_each(|number| assert_eq!(board.send(0), number));
            board.begin_answer(20, 0, 10);
            board.sack(Block { first: 4, end: 8 });
            assert!(board.lose_overtaken(3));
            (0..4).for_each(|number| assert_eq!(board.send_again(20), Some(number)));
            assert_eq!((board.round_trip(), board.retransmitted()), (20, 4));
            board
        };
        let after = |now, stamp, look: fn(&mut Board)| {
            let mut board = retransmitted();
            board.begin_answer(now, stamp, 10);
            look(&mut board);
            board.round_trip()
        };
        assert_eq!(
            after(29, 0, |board| board.sack(Block { first: 2, end: 3 })),
            20,
            "sooner than anything can"
        );
        assert_eq!(
            after(31, 0, |board| board.sack(Block { first: 2, end: 3 })),
            11,
            "taken for the retransmission"
        );
        assert_eq!(after(31, 0, |board| board.advance(1)), 20, "the original, by its timestamp");
        assert_eq!(after(31, 20, |board| board.advance(1)), 11);
    }
}
