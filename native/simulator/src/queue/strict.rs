//! Strict priority: the lowest level that has a packet goes first.

use super::fifo::Fifo;
use crate::packets::Frame;

/// Levels of a port; a packet of a higher priority number counts as the last level.
pub const LEVELS: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct Strict {
    levels: [Fifo; LEVELS],
    /// A bit for each level that may have a packet.
    used: u8,
}

impl Strict {
    /// Return the bytes and packets that wait at a level.
    pub fn held(&self, level: u8) -> (u64, usize) {
        self.levels[usize::from(level).min(LEVELS - 1)].held()
    }

    pub fn add(&mut self, frame: Frame, level: u8) {
        let level = usize::from(level).min(LEVELS - 1);
        self.levels[level].add(frame);
        self.used |= 1 << level;
    }

    pub fn take(&mut self) -> Option<Frame> {
        while self.used != 0 {
            let level = self.used.trailing_zeros() as usize;
            if let Some(frame) = self.levels[level].take() {
                return Some(frame);
            }
            self.used &= self.used - 1;
        }
        None
    }
}
