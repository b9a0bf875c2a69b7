//! What the sender of datagrams learns of them: receipts, losses and recoveries, gathered until feedback is due.

use std::collections::VecDeque;

use datapath::feedback::{Feedback, Receipts, MOST_LOST};

use crate::serial::NumberRange;

/// So many receipts make feedback due at once.
pub const RECEIPTS_PER_FEEDBACK: usize = 64;
/// Repairs that are kept at most until their flow is known.
pub const MAX_EARLY_REPAIRS: usize = 64;

/// What the next feedback to one peer carries.
#[derive(Default)]
pub struct PendingFeedback {
    receipts: Receipts,
    /// Feedback that is complete and waits to be sent.
    full: Vec<Feedback>,
    lost: VecDeque<NumberRange>,
    recovered: u32,
}

impl PendingFeedback {
    /// Processes datagrams that arrived with consecutive numbers from `first` on and one delay (receiver's clock less
    /// sender's, microseconds modulo 2^32), all marked on their way or none, by the stamps of their paths (0: none).
    /// Returns true if feedback is due.
    pub fn receipts(&mut self, first: u32, stamps: &[u16], delay_us: u32, marked: bool) -> bool {
        let mut number = first;
        for some in stamps.chunks(RECEIPTS_PER_FEEDBACK) {
            if !self.receipts.add(number, some.iter().copied(), delay_us, marked) {
                self.close();
                self.receipts.add(number, some.iter().copied(), delay_us, marked);
            }
            number = number.wrapping_add(some.len() as u32);
        }
        self.receipts.len() >= RECEIPTS_PER_FEEDBACK
    }

    /// Has the processor fetch where the next receipt goes.
    pub fn prefetch(&self) {
        self.receipts.prefetch();
    }

    /// Notes numbers that were given up.
    pub fn lost(&mut self, numbers: impl IntoIterator<Item = NumberRange>) {
        self.lost.extend(numbers);
    }

    /// Notes how many packets were rebuilt from repairs.
    pub fn recovered(&mut self, packets: u32) {
        self.recovered = self.recovered.saturating_add(packets);
    }

    /// Returns true if there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.is_closed()
    }

    /// Returns all that is to be sent now; then nothing waits.
    pub fn take(&mut self) -> Vec<Feedback> {
        while !self.is_closed() {
            self.close();
        }
        std::mem::take(&mut self.full)
    }

    fn is_closed(&self) -> bool {
        self.receipts.is_empty() && self.lost.is_empty() && self.recovered == 0
    }

    fn close(&mut self) {
        let lost = self.lost.drain(..self.lost.len().min(MOST_LOST));
        let recovered = self.recovered.min(u16::MAX.into());
        self.recovered -= recovered;
        self.full.push(Feedback {
            receipts: self.receipts.take(),
            lost: lost.map(|numbers| (numbers.first, numbers.count)).collect(),
            recovered: recovered as u16,
        });
    }
}

/// Repairs that overtook every source of their flow, by flow number.
#[derive(Clone, Debug)]
pub struct EarlyRepairs<R> {
    /// The flow that waits longest first.
    flows: VecDeque<(u32, Vec<R>)>,
    count: usize,
}

impl<R> Default for EarlyRepairs<R> {
    fn default() -> Self {
        EarlyRepairs { flows: VecDeque::new(), count: 0 }
    }
}

impl<R> EarlyRepairs<R> {
    /// Returns true if no repair waits.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns the repairs that wait.
    pub fn iter(&self) -> impl Iterator<Item = &R> {
        self.flows.iter().flat_map(|(_, repairs)| repairs)
    }

    /// Drops the repairs of the flow that waits longest, and returns how many they were.
    pub fn drop_oldest(&mut self) -> usize {
        let gone = self.flows.pop_front().map_or(0, |(_, repairs)| repairs.len());
        self.count -= gone;
        gone
    }

    /// Keeps a repair until its flow is known. Returns how many had to go: those of the flow that waits longest.
    pub fn keep(&mut self, flow: u32, repair: R) -> usize {
        match self.flows.iter_mut().find(|(known, _)| *known == flow) {
            Some((_, repairs)) => repairs.push(repair),
            None => self.flows.push_back((flow, vec![repair])),
        }
        self.count += 1;
        if self.count <= MAX_EARLY_REPAIRS {
            return 0;
        }
        self.drop_oldest()
    }

    /// Returns the repairs that waited for a flow, in the order in which they came.
    pub fn take(&mut self, flow: u32) -> Vec<R> {
        let Some(index) = self.flows.iter().position(|(known, _)| *known == flow) else { return Vec::new() };
        let repairs = self.flows.remove(index).map_or_else(Vec::new, |(_, repairs)| repairs);
        self.count -= repairs.len();
        repairs
    }
}
