//! How much peers may make this host keep: one of them with all its flows, whatever each of them may have by itself, and
//! all of them together, however many they are.
//!
//! A flow is charged for what it keeps when something comes for it. Above its budget a peer's repairs without a flow go
//! first, then the oldest decoders: most belong to flows that are over, and only packets that are lost later miss them.
//! Then the flows go that were not seen for longest; what they hold back goes out. Where all peers together keep too much,
//! the same goes of those that keep most, until none of them keeps more than another that had to give.

use std::collections::VecDeque;

use super::packet_buffer::RING;
use crate::flow_table::FlowTable;
use crate::packet::Packet;
use crate::receiving::{EarlyRepair, EarlyRepairs, ReceiveFlow};

/// What all peers of a host may make it keep together, in bytes.
pub const AGENT_BYTES: usize = 256 << 20;
/// The most that one peer has of that, however few they are.
pub const MOST_BYTES: usize = 64 << 20;
/// The least that one peer has, however many they are.
pub const LEAST_BYTES: usize = 2 << 20;
/// What the records of flows that are gone may take, of all peers together, in bytes: 65 536 of them, over a score of paths.
pub const RECORDS_BYTES: usize = 32 << 20;
/// All peers together are brought below the bound by this much: so many bytes come before it is looked for again.
const SLACK: usize = 16;
/// What a flow is charged for being there, and for each packet and early repair that is kept besides its bytes.
const FLOW_BYTES: usize = 1024;
const PACKET_BYTES: usize = 96;

/// Returns what each of so many peers may have, in bytes.
pub fn share(peers: usize) -> usize {
    (AGENT_BYTES / peers.max(1)).clamp(LEAST_BYTES, MOST_BYTES)
}

/// What one peer's flows keep, and may keep.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Bytes that all flows may keep.
    pub limit: usize,
    charged: usize,
    early: usize,
    /// Flows by the order in which their decoders came.
    decoders: VecDeque<u32>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { limit: MOST_BYTES, charged: 0, early: 0, decoders: VecDeque::new() }
    }
}

/// What had to go.
pub enum Shed<P: Packet> {
    /// A decoder.
    Decoder,
    /// A flow.
    Flow(Box<ReceiveFlow<P>>),
}

impl Budget {
    /// Returns a budget of so many bytes, of which nothing is used.
    pub fn of(limit: usize) -> Budget {
        Budget { limit, ..Budget::default() }
    }

    /// Returns the bytes that all flows, and the repairs without one, are charged for.
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// Charges a flow for what it keeps now.
    pub fn charge<P: Packet>(&mut self, flow: &mut ReceiveFlow<P>) {
        let bytes = cost(flow);
        self.charged = self.charged - flow.charged + bytes;
        flow.charged = bytes;
    }

    /// Charges for the repairs that wait for their flows now.
    pub fn charge_early<P: Packet>(&mut self, early: &EarlyRepairs<EarlyRepair<P::Symbol>>) {
        let bytes = early.iter().map(|early| P::symbol_bytes(&early.repair.symbol) + PACKET_BYTES).sum();
        self.charged = self.charged - self.early + bytes;
        self.early = bytes;
    }

    /// Notes that a flow is gone.
    pub fn gone<P: Packet>(&mut self, flow: &ReceiveFlow<P>) {
        self.charged -= flow.charged;
    }

    /// Notes that a flow has a decoder from now on; `flows` are all of the peer's.
    pub fn decodes<P: Packet>(&mut self, number: u32, flows: &FlowTable<u32, ReceiveFlow<P>>) {
        if self.decoders.len() > 2 * flows.len() + 64 {
            self.decoders.retain(|number| has_decoder(flows, *number));
        }
        self.decoders.push_back(number);
    }

    /// Makes room among a peer's flows if it keeps more than `limit`. Returns what had to go; None: nothing more has to.
    pub fn shed<P: Packet>(
        &mut self,
        limit: usize,
        flows: &mut FlowTable<u32, ReceiveFlow<P>>,
    ) -> Option<Shed<P>> {
        if self.charged <= limit {
            return None;
        }
        while let Some(number) = self.decoders.pop_front() {
            let Some(id) = flows.find(&number).filter(|&id| flows[id].decoder.is_some()) else { continue };
            flows[id].decoder = None;
            self.charge(&mut flows[id]);
            return Some(Shed::Decoder);
        }
        let flow = flows.end_oldest()?;
        self.gone(&flow);
        Some(Shed::Flow(Box::new(flow)))
    }
}

/// What all peers keep together.
#[derive(Clone, Debug)]
pub struct Total {
    limit: usize,
    /// No less than what they keep: what they kept when it was summed up, and all that came since.
    bound: usize,
}

impl Default for Total {
    fn default() -> Total {
        Total::of(AGENT_BYTES)
    }
}

impl Total {
    /// Returns a total that may be so many bytes, of which nothing is used.
    pub fn of(limit: usize) -> Total {
        Total { limit, bound: 0 }
    }

    /// Notes that a peer keeps so much more.
    pub fn grew(&mut self, bytes: usize) {
        self.bound += bytes;
    }

    /// Returns whether all may keep too much, so that it is to be summed up.
    pub fn may_be_above(&self) -> bool {
        self.bound > self.limit
    }

    /// Takes in what each peer keeps, the most first. Returns the bytes that each may keep where those that keep more
    /// give until all fits; None: all of it may stay.
    pub fn level(
        &mut self,
        peer_bytes: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone,
    ) -> Option<usize> {
        self.bound = peer_bytes.clone().sum();
        if !self.is_above_aim() {
            return None;
        }
        let (mut remaining, mut peers) = (self.aim(), peer_bytes.len());
        for bytes in peer_bytes.rev() {
            if bytes > remaining / peers {
                break;
            }
            remaining -= bytes;
            peers -= 1;
        }
        Some(remaining / peers.max(1))
    }

    /// Notes that a peer keeps so much less.
    pub fn shrank(&mut self, bytes: usize) {
        self.bound -= bytes;
    }

    /// Returns whether more is to go, once something has to.
    pub fn is_above_aim(&self) -> bool {
        self.bound > self.aim()
    }

    fn aim(&self) -> usize {
        self.limit - self.limit / SLACK
    }
}

fn has_decoder<P: Packet>(flows: &FlowTable<u32, ReceiveFlow<P>>, number: u32) -> bool {
    flows.find(&number).is_some_and(|id| flows[id].decoder.is_some())
}

fn cost<P: Packet>(flow: &ReceiveFlow<P>) -> usize {
    let decoder = flow
        .decoder
        .as_ref()
        .map_or(0, |unit_decoder| unit_decoder.kept_bytes() + RING * size_of::<Option<P>>());
    let held = flow.release.kept_packets() * (flow.longest + PACKET_BYTES);
    FLOW_BYTES + flow.ways_bytes() + decoder + held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Random};
    use trials::trials;

    #[test]
    fn those_that_keep_most_give_until_all_fits_and_no_other_does() {
        let mut random = Generator::new(3);
        for _ in 0..trials(500) {
            let peers = 1 + random.below(300) as usize;
            let kept: Vec<usize> = (0..peers)
                .map(|_| {
                    let bits = 1 + random.below(20);
                    random.below(1 << bits) as usize
                })
                .collect();
            let (sum, limit) = (kept.iter().sum::<usize>(), 1 + random.below(1 << 20) as usize);
            let mut total = Total::of(limit);
            total.grew(sum);
            assert_eq!(total.may_be_above(), sum > limit);
            let mut sorted = kept.clone();
            sorted.sort_unstable_by(|first, other| other.cmp(first));
            let level = total.level(sorted.into_iter());
            let after: usize = kept.iter().map(|&bytes| bytes.min(level.unwrap_or(usize::MAX))).sum();
            let aim = limit - limit / SLACK;
            assert!(after <= aim, "{after} of {sum} stay, {aim} may");
            assert_eq!(level.is_none(), sum <= aim);
            if let Some(level) = level {
                // one byte more for each that gives would be too much
                let more: usize = kept.iter().map(|&bytes| bytes.min(level + 1)).sum();
                assert!(more > aim);
            }
            total.shrank(sum - after);
            assert!(!total.is_above_aim() && !total.may_be_above());
        }
    }
}
