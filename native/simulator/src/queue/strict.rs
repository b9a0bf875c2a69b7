//! Strict priority: the lowest level that has a packet goes first.

use super::fifo::Fifo;
use super::Entry;
use crate::packets::Handle;

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
    pub fn held(&self, level: u32) -> (u64, usize) {
        self.levels[(level as usize).min(LEVELS - 1)].held()
    }

    pub fn add(&mut self, handle: Handle, level: u32, bytes: u32) {
        let level = (level as usize).min(LEVELS - 1);
        self.levels[level].add(handle, bytes);
        self.used |= 1 << level;
    }

    pub fn take(&mut self) -> Option<Entry> {
        while self.used != 0 {
            let level = self.used.trailing_zeros() as usize;
            if let Some(entry) = self.levels[level].take() {
                return Some(entry);
            }
            self.used &= self.used - 1;
        }
        None
    }
}
