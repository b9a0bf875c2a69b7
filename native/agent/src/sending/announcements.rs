//! What the host has said of flows that have not begun.

use std::collections::{BTreeMap, HashMap};

use datapath::inner::FlowKey;

/// Flows that were announced and have not begun.
pub const MAX_ANNOUNCED: usize = 65536;

/// Payload of flows that have not begun; of too many, those announced last.
#[derive(Debug, Default)]
pub struct Announcements {
    sizes: HashMap<FlowKey, (u64, f64)>,
    order: BTreeMap<u64, FlowKey>,
    next: u64,
}

impl Announcements {
    /// Notes that the next connection of a flow will send `size` bytes of payload.
    pub fn add(&mut self, key: FlowKey, size: f64) {
        self.take(&key);
        if self.sizes.len() >= MAX_ANNOUNCED {
            if let Some((_, oldest)) = self.order.pop_first() {
                self.sizes.remove(&oldest);
            }
        }
        self.sizes.insert(key, (self.next, size));
        self.order.insert(self.next, key);
        self.next += 1;
    }

    /// Returns what a flow that begins was announced with, once.
    pub fn take(&mut self, key: &FlowKey) -> Option<f64> {
        let (order, size) = self.sizes.remove(key)?;
        self.order.remove(&order);
        Some(size)
    }
}
