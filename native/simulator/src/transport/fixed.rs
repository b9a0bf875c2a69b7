//! A window that never changes, without timers: the sharpest look at fabric, queues and paths, for nothing adapts.

use super::received::Received;
use super::sliding::Sliding;
use super::{Answer, Segment};

#[derive(Clone, Debug)]
pub struct Fixed {
    window: u32,
    sliding: Sliding,
}

impl Fixed {
    pub fn new(window: u32, packets: u32) -> Fixed {
        Fixed { window, sliding: Sliding::new(packets) }
    }

    pub fn answered(&mut self, answer: &Answer) {
        self.sliding.answered(answer);
    }

    pub fn next(&mut self, received: &Received) -> Option<Segment> {
        self.sliding.next(self.window, received)
    }

    pub fn acknowledged(&self) -> (u32, u32) {
        self.sliding.acknowledged()
    }
}
