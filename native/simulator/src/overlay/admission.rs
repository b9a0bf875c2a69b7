//! Flows that ask before they send (CAPTON): what `native/agent` decides at a host, round packets without bytes.

use agent::admission::{
    AdmissionCounts, AdmissionPolicy, Decision, Destination, Message, SackBlocks, Segment, Sent, RST,
};
use agent::peers::PeerId;
use agent::Seconds;
use datapath::inner::FlowKey;

use super::host::{Host, Place};
use super::inner::{back, Inner};
use crate::packets::Cargo;
use crate::simulation::Simulation;
use crate::time::Time;

/// How flows are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asking {
    pub policy: AdmissionPolicy,
    /// Of the control channel, each way.
    pub delay: Time,
    /// Which part of its messages is lost, each way: 0 to below 1.
    pub loss: f64,
}

impl Host {
    /// Note that a packet of the host is on its way to a peer.
    pub(super) fn pass_sent(&mut self, key: FlowKey, segment: Segment, to: PeerId, now: Seconds) {
        let to = Destination { flow: key, peer: self.peers[to].known.address };
        self.gate.sent(&self.sender.segment_sent(to, segment), now);
    }

    /// Append what the host is to get by now, and keep what its agent says to the controller.
    pub(super) fn pass_delivered(&mut self, now: Seconds, delivered: &mut Vec<Inner>) {
        if !self.gate.is_shut() {
            return delivered.append(&mut self.receiver.deliver);
        }
        delivered.append(&mut self.gate.take_released());
        for mut inner in self.receiver.deliver.drain(..) {
            let segment = self.connection.segment(&inner);
            self.gate.arrived(&FlowKey::V4(back(inner.key)), &mut inner, &segment, now);
            delivered.push(inner);
        }
        // Sizes are announced, so no socket is asked.
        self.asked.append(&mut self.gate.messages(now, |_| None));
        delivered.append(&mut self.gate.take_updates());
    }

    /// Process what the controller has decided of a flow; append what the host is to get.
    pub fn decided(&mut self, decision: Decision, now: Seconds, delivered: &mut Vec<Inner>) {
        if let Some((flow, stamp)) = self.gate.decided(decision, now) {
            self.sender.granted(&flow, stamp);
        }
        self.pass_delivered(now, delivered);
    }

    /// Note that a connection is there without a packet to and fro; `answer` is what the peer would have said.
    pub fn connected(&mut self, key: FlowKey, to: Place, answer: &mut Inner, now: Seconds) {
        if !self.gate.is_in_force() {
            return;
        }
        let peer = self.peer(to);
        self.sender.begin(key, now);
        let opening = Inner { cargo: Cargo::Opening, ..answer.clone() };
        self.pass_sent(key, self.connection.segment(&opening), peer, now);
        let segment = self.connection.segment(answer);
        self.gate.arrived(&key, answer, &segment, now);
    }

    /// Note that the host has closed a flow.
    pub(super) fn closed(&mut self, key: FlowKey, now: Seconds) {
        if self.gate.is_shut() {
            let segment = Segment {
                sequence: 0,
                payload: 0,
                flags: RST,
                ack: 0,
                window: 0,
                scale: None,
                largest_segment: None,
                timestamps: None,
                sack: SackBlocks::default(),
            };
            self.gate.sent(
                &Sent { to: Destination { flow: key, peer: [0; 4] }, segment, announced: None, before: 0 },
                now,
            );
        }
    }

    /// Return what the agent says to the controller; each is given once.
    pub fn take_asked(&mut self) -> Vec<Message<Destination>> {
        std::mem::take(&mut self.asked)
    }

    /// Return what was counted of flows that ask.
    pub fn admission_counts(&self) -> AdmissionCounts {
        self.gate.counts()
    }

    /// Return how long decisions took since the last call, seconds of agents' clocks.
    pub fn take_latencies(&mut self) -> Vec<Seconds> {
        self.gate.take_latencies()
    }
}

impl Simulation {
    /// Make the connection of a flow known to the agent of its host: it opens without a packet to and fro.
    pub(crate) fn connect(&mut self, place: u32) {
        if self.overlay.as_ref().is_none_or(|overlay| overlay.channel.is_none()) {
            return;
        }
        let Some(flow) = self.flows.get(place) else { return };
        let (source, destination) = (flow.demand.source, flow.demand.destination);
        let answer = crate::outgoing::opened(flow, place, self.now, &self.config);
        let Some(mut answer) = self.inside_of(destination, &answer) else { return };
        let Some(overlay) = &mut self.overlay else { return };
        let (to, now) = (overlay.places[destination as usize], overlay.seconds(self.now));
        let key = FlowKey::V4(back(answer.key));
        overlay.hosts[source as usize].connected(key, to, &mut answer, now);
        self.take_window(&answer);
        self.arm_agent(source);
    }

    /// Set how far a flow's sender may send, by a packet of its peer.
    pub(super) fn take_window(&mut self, inner: &Inner) {
        if inner.window.is_none() {
            return;
        }
        let Some(connection) = self.overlay.as_ref().map(|overlay| overlay.connection) else { return };
        let Some(flow) = self.flows.get(inner.place).filter(|flow| flow.number == inner.row) else { return };
        if let Some(limit) = connection.limit(inner, flow.demand.bytes) {
            flow.sender.set_limit(limit);
        }
    }
}
