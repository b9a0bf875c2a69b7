//! What admission is to know of flows, and the paths that it grants them.

use datapath::inner::FlowKey;

use crate::admission::{Destination, Segment, Sent};
use crate::packet::Packets;
use crate::sending::Sender;

impl<P: Packets> Sender<P> {
    /// Returns what admission is to know of a segment of the host that has just left.
    pub fn segment_sent(&self, to: Destination, segment: Segment) -> Sent {
        let flow = self.flows.find(&to.flow).map(|id| &self.flows[id]);
        let before = flow.map_or(0, |flow| flow.payload.saturating_sub(segment.payload.into()));
        Sent { to, segment, announced: flow.and_then(|flow| flow.announced), before }
    }

    /// Notes which path the controller has granted a flow; what is no stamp: none of its own.
    pub fn granted(&mut self, key: &FlowKey, stamp: u16) {
        if let Some(id) = self.flows.find(key) {
            self.wrapping.steering.granted(self.flows[id].id.into(), stamp);
        }
    }
}
