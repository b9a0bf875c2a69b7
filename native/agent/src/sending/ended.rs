//! Flows of this host that have ended, until the controller is informed.

use std::collections::VecDeque;

use datapath::inner::FlowKey;

use crate::Seconds;

/// A flow of ours that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedFlow {
    /// Whose packets they were.
    pub key: FlowKey,
    /// What it has sent, bytes.
    pub payload: u64,
    /// When its first packet left.
    pub first: Seconds,
    /// When it ended.
    pub end: Seconds,
}

/// Those that wait, the oldest first.
#[derive(Debug, Default)]
pub struct EndedFlows {
    /// Of which the controller is to be informed.
    pub waiting: VecDeque<EndedFlow>,
    /// How many more ended.
    pub dropped: u64,
}

impl EndedFlows {
    /// Notes a flow that has ended.
    pub fn add(&mut self, flow: EndedFlow) {
        if self.waiting.len() >= MOST_ENDED {
            self.dropped += 1;
        } else {
            self.waiting.push_back(flow);
        }
    }
}

/// Ended flows that wait until the controller is informed; of more it is not.
pub const MOST_ENDED: usize = 4096;
