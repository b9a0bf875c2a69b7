//! What the host has said of flows that have not begun.

use datapath::inner::FlowKey;

use crate::in_order::InOrder;

/// Flows that were announced and have not begun.
pub const MAX_ANNOUNCED: usize = 65536;

/// Payload of flows that have not begun; of too many, those announced last.
#[derive(Debug, Default)]
pub struct Announcements(InOrder<f64>);

impl Announcements {
    /// Notes that the next connection of a flow will send `size` bytes of payload.
    pub fn add(&mut self, key: FlowKey, size: f64) {
        self.0.remove(&key);
        if self.0.len() >= MAX_ANNOUNCED {
            if let Some(oldest) = self.0.oldest() {
                self.0.remove(&oldest);
            }
        }
        self.0.put(key, size);
    }

    /// Returns what a flow that begins was announced with, once.
    pub fn take(&mut self, key: &FlowKey) -> Option<f64> {
        self.0.remove(key)
    }
}
