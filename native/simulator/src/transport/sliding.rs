//! A sliding window over a flow's packets as YAPS has it: what the receiver holds beyond the first missing packet widens
//! it, and what the receiver holds is not retransmitted (but where no acknowledgement would come otherwise).

use super::received::Received;
use super::{Answer, Segment};

#[derive(Clone, Debug)]
pub struct Sliding {
    packets: u32,
    /// The first packet that is not acknowledged, and the one that is looked at next.
    missing: u32,
    next: u32,
    /// Packets before this one were sent at least once.
    sent: u32,
    beyond: u32,
    /// Whether something has happened since the window was last used up: only what is new sends.
    open: bool,
    /// Whether the first packet that is not acknowledged goes though the receiver has it, if no other can.
    anyway: bool,
}

impl Sliding {
    pub fn new(packets: u32) -> Sliding {
        Sliding { packets, missing: 0, next: 0, sent: 0, beyond: 0, open: true, anyway: false }
    }

    /// Take an acknowledgement; return whether it is of anything new.
    pub fn answered(&mut self, answer: &Answer) -> bool {
        self.beyond = answer.beyond;
        self.next = self.next.max(answer.missing);
        if answer.missing <= self.missing {
            return false;
        }
        self.missing = answer.missing;
        self.open = true;
        true
    }

    /// Begin again with the first packet that is not acknowledged. `anyway`: that goes though the receiver has it, if no
    /// other can go, so that the receiver answers.
    pub fn again(&mut self, anyway: bool) {
        (self.next, self.anyway) = (self.missing, anyway);
        self.open = true;
    }

    pub fn next(&mut self, window: u32, received: &Received) -> Option<Segment> {
        if !self.open {
            return None;
        }
        let end = self.missing.saturating_add(window).saturating_add(self.beyond).min(self.packets);
        while self.next < end {
            let number = self.next;
            self.next += 1;
            if !received.has(number) {
                self.anyway = false;
                let again = number < self.sent;
                self.sent = self.sent.max(self.next);
                return Some(Segment { number, again });
            }
        }
        self.open = false;
        if std::mem::take(&mut self.anyway) {
            return Some(Segment { number: self.missing, again: true });
        }
        None
    }

    pub fn acknowledged(&self) -> (u32, u32) {
        (self.missing, self.beyond)
    }

    pub fn finished(&self) -> bool {
        self.missing >= self.packets
    }
}
