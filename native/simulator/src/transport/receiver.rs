//! The receiving end of a flow: what has arrived, and when it is acknowledged.

use super::received::Received;
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
    /// Packets that are not answered yet, the time at which the first of them was sent, and until when they wait.
    unanswered: u32,
    stamp: Time,
    deadline: Time,
    /// Whether the last packet was marked.
    marked: bool,
    /// Whether the last packet had arrived before.
    repeated: bool,
    /// Blocks of earlier answers, the latest first.
    blocks: [Block; BLOCKS],
    pub duplicates: u32,
    /// Packets that came before one that was to come first.
    pub early: u32,
}

/// Answers to one packet: a change of marks answers first what waited (RFC 8257, Section 3.2).
pub type Answers = [Option<Answer>; 2];

impl Receiver {
    pub fn new(delay: Delay) -> Receiver {
        Receiver {
            received: Received::default(),
            delay,
            unanswered: 0,
            stamp: 0,
            deadline: NEVER,
            marked: false,
            repeated: false,
            blocks: [Block::default(); BLOCKS],
            duplicates: 0,
            early: 0,
        }
    }

    /// Take data; `last` is the number of packets in the flow.
    pub fn arrived(&mut self, now: Time, packet: Arrived, last: u32) -> Answers {
        let marked = packet.marked;
        let before = if marked != self.marked && self.unanswered > 0 { Some(self.answer()) } else { None };
        self.marked = marked;
        let in_order = packet.number == self.received.missing() && self.received.beyond() == 0;
        self.repeated = !self.received.add(packet.number);
        if self.repeated {
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

    fn answer(&mut self) -> Answer {
        self.unanswered = 0;
        self.deadline = NEVER;
        let missing = self.received.missing();
        let beyond = self.received.beyond();
        let blocks = if beyond > 0 { self.blocks } else { [Block::default(); BLOCKS] };
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
