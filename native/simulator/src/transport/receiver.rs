//! The receiving end of a flow: what has arrived, and when it is acknowledged.

use super::received::Received;
use super::timestamps::Timestamps;
use super::{Answer, Arrived};
use crate::packets::{Block, BLOCKS};
use crate::time::{Time, NEVER};

/// How acknowledgements are put off: one for so many packets in order, at the latest after so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    pub packets: u32,
    pub time: Time,
}

impl Delay {
    pub const NONE: Delay = Delay { packets: 1, time: 0 };
}

#[derive(Clone, Debug)]
pub struct Receiver {
    pub received: Received,
    delay: Delay,
    timestamps: Timestamps,
    /// When the packet was sent by whose timestamp late data is discarded (RFC 7323, Section 4.3, TS.Recent).
    recent: Time,
    /// What the last answer said to be missing (RFC 7323, Last.ACK.sent).
    acknowledged: u32,
    /// Packets that are not answered yet, the time at which the first of them was sent, and until when they wait.
    unanswered: u32,
    stamp: Time,
    deadline: Time,
    /// Whether the last packet was marked.
    marked: bool,
    /// The last packet, if it had arrived before.
    repeated: Option<u32>,
    /// Blocks of earlier answers, the latest first.
    blocks: [Block; BLOCKS],
    pub duplicates: u32,
    /// Packets that came before one that was to come first.
    pub early: u32,
}

/// Answers to one packet: a change of marks answers first what waited (RFC 8257, Section 3.2).
pub type Answers = [Option<Answer>; 2];

impl Receiver {
    pub fn new(delay: Delay, timestamps: Timestamps) -> Receiver {
        Receiver {
            received: Received::default(),
            delay,
            timestamps,
            recent: 0,
            acknowledged: 0,
            unanswered: 0,
            stamp: 0,
            deadline: NEVER,
            marked: false,
            repeated: None,
            blocks: [Block::default(); BLOCKS],
            duplicates: 0,
            early: 0,
        }
    }

    /// Take data; `last` is the number of packets in the flow.
    pub fn arrived(&mut self, now: Time, packet: Arrived, last: u32) -> Answers {
        if self.timestamps.discards(packet.stamp, self.recent) {
            return [None, Some(self.discard(packet.number))];
        }
        // Neither an old duplicate's timestamp counts nor that of a packet behind one that waits to be acknowledged (Linux:
        // tcp_sequence, tcp_replace_ts_recent).
        if packet.number <= self.acknowledged && packet.number + 1 >= self.acknowledged {
            self.recent = self.recent.max(packet.stamp);
        }
        let marked = packet.marked;
        let before = if marked != self.marked && self.unanswered > 0 { Some(self.answer()) } else { None };
        self.marked = marked;
        let in_order = packet.number == self.received.missing() && self.received.beyond() == 0;
        self.repeated = (!self.received.add(packet.number)).then_some(packet.number);
        if self.repeated.is_some() {
            self.duplicates += 1;
        } else if !in_order {
            self.early += u32::from(self.received.missing() <= packet.number);
            self.remember(packet.number);
        }
        if self.unanswered == 0 {
            self.stamp = packet.stamp;
        }
        self.unanswered += 1;
        let complete = self.received.missing() == last;
        if in_order && !complete && self.unanswered < self.delay.packets {
            self.deadline = self.deadline.min(now + self.delay.time);
            return [before, None];
        }
        [before, Some(self.answer())]
    }

    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Answer what has waited long enough.
    pub fn expired(&mut self) -> Answer {
        self.answer()
    }

    /// Answer data that is too old to be looked at, reporting it as a duplicate if it is not missing (Linux: tcp_send_dupack).
    fn discard(&mut self, number: u32) -> Answer {
        // If it is missing, its retransmission is the second copy that the host gets.
        self.duplicates += 1;
        self.repeated = (number < self.received.missing()).then_some(number);
        if self.unanswered == 0 {
            self.stamp = self.recent;
        }
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        self.unanswered = 0;
        self.deadline = NEVER;
        let missing = self.received.missing();
        self.acknowledged = missing;
        let beyond = self.received.beyond();
        let mut blocks = if beyond > 0 { self.blocks } else { [Block::default(); BLOCKS] };
        if self.repeated.is_some() {
            blocks[BLOCKS - 1] = Block::default(); // its place is that of the duplicate
        }
        Answer { missing, beyond, blocks, stamp: self.stamp, marked: self.marked, repeated: self.repeated }
    }

    /// Put the block of `number` before the others, which it may have swallowed (RFC 2018, Section 4).
    fn remember(&mut self, number: u32) {
        let missing = self.received.missing();
        let mut blocks = [Block::default(); BLOCKS];
        let mut count = 0;
        if number >= missing {
            blocks[0] = self.received.block(number);
            count = 1;
        }
        for old in self.blocks {
            let swallowed = count > 0 && old.first >= blocks[0].first && old.end <= blocks[0].end;
            if count < BLOCKS && old.end > missing && old.end > old.first && !swallowed {
                blocks[count] = old;
                count += 1;
            }
        }
        self.blocks = blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    const PAIRS: Delay = Delay { packets: 2, time: 40 * MILLISECOND };

    fn receiver(tick: Time) -> Receiver {
        Receiver::new(PAIRS, Timestamps { tick })
    }

    fn arrive(receiver: &mut Receiver, number: u32, stamp: Time) -> Option<Answer> {
        receiver.arrived(0, Arrived { number, stamp: stamp * MILLISECOND, marked: false }, 1000)[1]
    }

    #[test]
    fn late_originals_behind_a_retransmission_in_order_are_discarded_where_timestamps_count() {
        for (tick, missing) in [(0, 4), (MILLISECOND, 2), (20 * MILLISECOND, 4)] {
            let mut receiver = receiver(tick);
            arrive(&mut receiver, 0, 1);
            arrive(&mut receiver, 3, 4);
            // 1 was retransmitted 10 ms after 2 was sent, and overtakes it.
            arrive(&mut receiver, 1, 13);
            assert_eq!(
                arrive(&mut receiver, 2, 3).map(|answer| answer.missing),
                Some(missing),
                "ticks of {tick} ps"
            );
            assert_eq!(arrive(&mut receiver, 2, 14).map(|answer| answer.missing), Some(4));
        }
    }

    #[test]
    fn what_is_discarded_is_a_duplicate_if_it_came_in_order_before() {
        let mut receiver = receiver(MILLISECOND);
        arrive(&mut receiver, 0, 1);
        arrive(&mut receiver, 3, 4);
        arrive(&mut receiver, 1, 13);
        let again = arrive(&mut receiver, 1, 2).expect("answered at once");
        assert_eq!((again.missing, again.repeated, again.stamp), (2, Some(1), 13 * MILLISECOND));
        let late = arrive(&mut receiver, 2, 3).expect("answered at once");
        assert_eq!((late.missing, late.repeated, late.blocks[0]), (2, None, Block { first: 3, end: 4 }));
        assert_eq!(receiver.duplicates, 2);
    }

    #[test]
    fn a_timestamp_counts_if_nothing_before_its_packet_waits_for_an_answer() {
        let mut receiver = receiver(MILLISECOND);
        assert_eq!(arrive(&mut receiver, 0, 1), None);
        // The second of a pair: what the answer echoes, and what is discarded, is by the first.
        assert_eq!(arrive(&mut receiver, 1, 9).map(|answer| answer.stamp), Some(MILLISECOND));
        assert_eq!(arrive(&mut receiver, 3, 20).map(|answer| answer.missing), Some(2));
        assert_eq!(arrive(&mut receiver, 2, 1).map(|answer| answer.missing), Some(4));
    }

    #[test]
    fn an_old_duplicates_timestamp_does_not_count() {
        let mut receiver = receiver(MILLISECOND);
        for number in 0..4 {
            arrive(&mut receiver, number, 1);
        }
        assert_eq!(arrive(&mut receiver, 1, 30).and_then(|answer| answer.repeated), Some(1));
        arrive(&mut receiver, 4, 2);
        assert_eq!(arrive(&mut receiver, 5, 2).map(|answer| answer.missing), Some(6));
    }

    #[test]
    fn a_duplicate_takes_the_place_of_the_last_block() {
        let mut receiver = receiver(0);
        for number in [2, 4, 6, 8] {
            arrive(&mut receiver, number, 1);
        }
        let blocks = |answer: Option<Answer>| answer.map(|answer| answer.blocks.map(|block| block.first));
        assert_eq!(blocks(arrive(&mut receiver, 10, 1)), Some([10, 8, 6]));
        assert_eq!(blocks(arrive(&mut receiver, 4, 1)), Some([10, 8, 0]));
        assert_eq!(blocks(arrive(&mut receiver, 12, 1)), Some([12, 10, 8]));
    }
}
