//! First come, first served.

use std::collections::VecDeque;

use crate::packets::Frame;

#[derive(Clone, Debug, Default)]
pub struct Fifo {
    waiting: VecDeque<Frame>,
    bytes: u64,
}

impl Fifo {
    pub fn add(&mut self, frame: Frame) {
        self.bytes += u64::from(frame.bytes);
        self.waiting.push_back(frame);
    }

    pub fn take(&mut self) -> Option<Frame> {
        let frame = self.waiting.pop_front()?;
        self.bytes -= u64::from(frame.bytes);
        Some(frame)
    }

    /// Return the packet that goes next.
    pub fn first(&self) -> Option<&Frame> {
        self.waiting.front()
    }

    /// Return the bytes and packets that wait.
    pub fn held(&self) -> (u64, usize) {
        (self.bytes, self.waiting.len())
    }
}
