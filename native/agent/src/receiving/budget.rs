//! How much one peer may make this host keep: of all its flows together, whatever each of them may have by itself.
//!
//! A flow is charged for what it keeps when something comes for it. Above the budget the oldest decoders go first: most
//! belong to flows that are over, and only packets that are lost later miss them. Then the flows go that were not seen for
//! longest; what they hold back goes out.

use std::collections::VecDeque;

use super::packet_buffer::RING;
use crate::flow_table::FlowTable;
use crate::packet::Packet;
use crate::receiving::ReceiveFlow;

/// What all peers of a host may make it keep together, in bytes.
pub const AGENT_BYTES: usize = 256 << 20;
/// The most that one peer has of that, however few they are.
pub const MOST_BYTES: usize = 64 << 20;
/// The least that one peer has, however many they are.
pub const LEAST_BYTES: usize = 2 << 20;
/// What a flow is charged for being there, and for each packet that it keeps besides the packet's bytes.
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
    /// Flows by the order in which their decoders came.
    decoders: VecDeque<u32>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { limit: MOST_BYTES, charged: 0, decoders: VecDeque::new() }
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

    /// Returns the bytes that all flows are charged for.
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// Charges a flow for what it keeps now.
    pub fn charge<P: Packet>(&mut self, flow: &mut ReceiveFlow<P>) {
        let bytes = cost(flow);
        self.charged = self.charged - flow.charged + bytes;
        flow.charged = bytes;
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

    /// Makes room if the peer is above its budget. Returns what had to go; None: nothing more has to.
    pub fn shed<P: Packet>(&mut self, flows: &mut FlowTable<u32, ReceiveFlow<P>>) -> Option<Shed<P>> {
        if self.charged <= self.limit {
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
