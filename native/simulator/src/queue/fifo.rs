//! First come, first served.

use std::collections::VecDeque;

use super::Entry;
use crate::packets::Handle;

#[derive(Clone, Debug, Default)]
pub struct Fifo(VecDeque<Entry>);

impl Fifo {
    pub fn add(&mut self, handle: Handle, bytes: u32) {
        self.0.push_back(Entry { handle, bytes });
    }

    pub fn take(&mut self) -> Option<Entry> {
        self.0.pop_front()
    }
}
