//! Packets of a host that pass the gate: what TCP sends, and what it is to get.

use datapath::inner::{look, Seen, TCP};

use crate::admission::{Decision, Destination, RequestState, Segment, TcpBytes};
use crate::host::bytes::Bytes;
use crate::host::core::Core;
use crate::Seconds;

fn segment_of(packet: &[u8], seen: &Seen) -> Option<Segment> {
    let tcp = seen.protocol == TCP && seen.flow.has_ports();
    tcp.then(|| Segment::read(packet, seen.transport, seen.payload as u32)).flatten()
}

impl Core {
    /// Notes that a packet or super-packet of the host is on its way.
    pub(super) fn pass_sent(&mut self, packet: &[u8], seen: &Seen, now: Seconds) {
        let Some(segment) = segment_of(packet, seen) else { return };
        let Some(peer) = self.peers.with(&seen.flow.destination()) else { return };
        let to = Destination { flow: seen.flow, peer: self.peers[peer].known.address };
        self.gate.sent(&self.sender.segment_sent(to, segment), now);
    }

    /// Returns what the host is to get in place of these packets.
    pub(super) fn pass_delivered(&mut self, packets: Vec<Bytes>) -> Vec<Bytes> {
        let mut out: Vec<Bytes> = self.gate.take_released().into_iter().map(|packet| packet.data).collect();
        out.extend(packets.into_iter().map(|packet| self.limited(packet)));
        out.extend(self.gate.take_updates().into_iter().map(|packet| packet.data));
        out
    }

    fn limited(&mut self, packet: Bytes) -> Bytes {
        let Ok(seen) = look(&packet) else { return packet };
        let Some(segment) = segment_of(&packet, &seen) else { return packet };
        let mut limited = TcpBytes { data: packet, transport: seen.transport, payload: seen.payload as u32 };
        self.gate.arrived(&seen.flow.reverse(), &mut limited, &segment, self.now);
        limited.data
    }

    /// Processes what the controller has decided of a flow: how fast it may send, and over which path.
    pub fn decided(&mut self, decision: Decision, now: Seconds) {
        if let Some((flow, stamp)) = self.gate.decided(decision, now) {
            self.sender.granted(&flow, stamp);
        }
    }

    /// Notes again which paths flows were granted, for path policies that are new: what is decided anew may be the same.
    pub(super) fn grant_paths_again(&mut self) {
        for (flow, stamp) in self.gate.paths() {
            self.sender.granted(&flow, stamp);
        }
    }

    /// Returns what admission has counted, and how many flows are in which state, by name.
    pub(super) fn admission_totals(&self) -> Vec<(&'static str, u64)> {
        let mut totals: Vec<_> =
            self.gate.counts().totals().into_iter().filter(|&(_, total)| total > 0).collect();
        if self.gate.is_in_force() {
            let standing = |state| self.gate.standing(state) as u64;
            totals.extend([
                ("admission_flows", self.gate.flows() as u64),
                ("flows_granted", standing(RequestState::Granted)),
                ("flows_waiting", standing(RequestState::Waiting)),
                ("flows_unscheduled", standing(RequestState::Unscheduled)),
            ]);
        }
        totals
    }
}
