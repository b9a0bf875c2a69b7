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
            self.gate.drop_episodes(now);
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

#[cfg(test)]
mod tests {
    use agent::admission::RequestTimes;
    use agent::paths::PathSettings;
    use agent::receiving::{Hold, ReceivePolicy};
    use agent::sending::SendPolicy;

    use super::*;
    use crate::flow::Demand;
    use crate::overlay::{Central, Group, Groups, Line, Settings};
    use crate::queue::{Discipline, Limit};
    use crate::simulation::tests::small_leaf_spine;
    use crate::transport::tcp;
    use crate::transport::Transport;

    #[test]
    fn what_is_sent_again_is_counted_and_not_kept_for_a_report() {
        let transport = Transport::Tcp(tcp::tests::settings(true, false));
        let config = small_leaf_spine((2, 1), Discipline::Fifo, Limit::Packets(8), transport);
        let demand = |source| Demand { start: 0, source, destination: 7, bytes: 300_000, level: 0 };
        let demands: Vec<Demand> = (0..4).map(demand).collect();
        let line =
            |row: u16| Line { source_port: 10_000 + row, destination_port: 5501, endless: false, twin: None };
        let packet_time_s = 0.0006;
        // no flow asks, so no controller is needed
        let policy = AdmissionPolicy {
            threshold_bytes: 1 << 40,
            times: RequestTimes { retry_s: 0.1, refresh_s: 1.0, fail_safe_s: 0.2 },
            burst_s: 0.01,
        };
        let settings = Settings {
            send: SendPolicy { prior_knowledge: true, ..SendPolicy::plain(packet_time_s) },
            paths: [PathSettings::RoundRobin; 4],
            receive: ReceivePolicy::new(packet_time_s, [0.0; 4].map(Hold::For)),
            groups: [Groups { on: Group::Label, off: Group::Label }; 4],
            central: Central::default(),
            admission: Some(Asking { policy, delay: 1, loss: 0.0 }),
            clock: 500.0,
            addresses: (0..8).map(|host| [10, 128, 0, host]).collect(),
            lines: (0..4).map(line).collect(),
        };
        let mut simulation = Simulation::with_overlay(config, demands, settings).unwrap();
        while !simulation.run(1 << 20).unwrap() {}
        let again: u64 = simulation.admission_counts().iter().map(|of| of.bytes_sent_again).sum();
        assert!(again > 0, "the run has losses");
        let hosts = &mut simulation.overlay.as_mut().unwrap().hosts;
        assert!(hosts.iter_mut().all(|host| host.gate.take_episodes(0.0).is_empty()));
    }
}
