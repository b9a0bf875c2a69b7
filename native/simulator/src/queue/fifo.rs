//! First come, first served.

use std::collections::VecDeque;

use super::Entry;
use crate::packets::Handle;

#[derive(Clone, Debug, Default)]
pub struct Fifo {
    waiting: VecDeque<Entry>,
    bytes: u64,
}

impl Fifo {
    pub fn add(&mut self, handle: Handle, bytes: u32) {
        self.bytes += u64::from(bytes);
        self.waiting.push_back(Entry { handle, bytes });
    }

    pub fn take(&mut self) -> Option<Entry> {
        let entry = self.waiting.pop_front()?;
        self.bytes -= u64::from(entry.bytes);
        Some(entry)
    }

    /// Return the bytes and packets that wait.
    pub fn held(&self) -> (u64, usize) {
        (self.bytes, self.waiting.len())
    }
}
