//! The receiving half: recovery, order, and feedback to the sender.

use std::collections::{BTreeMap, HashSet};

use datapath::inner::{Address, Malformed, Seen, TCP};
use datapath::prefetch::prefetch;
use datapath::tunnel::{decapsulate, Decapsulated, CE, NOT_ECT};

use crate::class::TrafficClass;
use crate::counts::{Count, Counts};
use crate::departure::{microseconds, Head};
use crate::flow_table::FlowId;
use crate::packet::{Packet, Packets};
use crate::peers::{Peer, PeerId, Peers};
use crate::receiving::{
    Arrival, DecoderLimits, Delivered, EarlyRepair, Hold, Incoming, PathProgress, Rebuilt, ReceiveFlow,
    ReceivePolicy, Release, Repair, Total, UnitDecoder, RECORDS_BYTES,
};
use crate::sending::Sender;
use crate::serial::serial_difference;
use crate::Seconds;

/// A flow whose first packet has a position below this lacks those before it. With another one it is older than what is
/// known of it: we or its peer were away, or it had to make room.
const FIRST_POSITIONS: u32 = 4096;

/// An idle flow is kept for so much longer than at its sender, which looks for idle flows every second: the sender is to
/// forget it first, and begin anew with positions from 0 on.
const KEPT_LONGER_S: Seconds = 2.0;

/// Unwraps datagrams. One for all peers; P: packets.
pub struct Receiver<P> {
    /// Packets for the host, in order.
    pub deliver: Vec<P>,
    /// Our overlay addresses; empty while they are not known.
    pub own: HashSet<Address>,
    /// What this half counts.
    pub counts: Counts,
    /// What all peers may make this host keep together.
    pub total: Total,
    /// What records of flows of theirs that are gone may take together.
    pub records: Total,
    pub(super) policy: ReceivePolicy,
    pub(super) holding: BTreeMap<u64, (PeerId, FlowId)>,
    held: u64,
    pub(super) next_feedback: Option<Seconds>,
    /// Peers that may be owed feedback, or whose datagrams were noticed missing: of a fabric's hosts these are few.
    pub(super) awaiting: Vec<PeerId>,
}

impl<P: Packet> Receiver<P> {
    /// Returns a receiver without flows.
    pub fn new(policy: ReceivePolicy) -> Receiver<P> {
        Receiver {
            deliver: Vec::new(),
            own: HashSet::new(),
            counts: Counts::default(),
            total: Total::default(),
            records: Total::of(RECORDS_BYTES),
            policy,
            holding: BTreeMap::new(),
            held: 0,
            next_feedback: None,
            awaiting: Vec::new(),
        }
    }

    /// Has the processor fetch what every datagram looks at.
    pub fn prefetch(&self) {
        prefetch(&self.deliver);
        prefetch(&self.holding);
        prefetch(&self.next_feedback);
        prefetch(&self.policy.feedback_after_s);
    }

    /// Uses these times from now on.
    pub fn set_policy(&mut self, policy: ReceivePolicy) {
        self.policy = policy;
    }

    /// Returns how long after the first datagram that it speaks of feedback goes out.
    pub fn feedback_after_s(&self) -> Seconds {
        self.policy.feedback_after_s
    }

    /// Notes that a source or a repair came, whatever it carries: its sender is to know.
    pub fn receipt<S: Packets>(
        &mut self,
        sender: &mut Sender<S>,
        peer: &mut Peer<P>,
        datagram: &Incoming,
        now: Seconds,
    ) {
        self.owe_feedback(peer, datagram.from);
        let delay_us = microseconds(now).wrapping_sub(datagram.head.sent_us);
        let marked = datagram.ecn == CE;
        if peer.pending.receipts(datagram.head.number, &[datagram.stamp], delay_us, marked) {
            sender.send_feedback(peer, now);
        } else {
            // feedback may be due much later already, for a datagram that is missing
            self.due_by(now + self.policy.feedback_after_s);
        }
    }

    /// Processes a packet of a peer.
    ///
    /// # Errors
    ///
    /// It is malformed, or not from one of its peer's addresses to one of ours.
    pub fn source<S: Packets>(
        &mut self,
        sender: &mut Sender<S>,
        peer: &mut Peer<P>,
        datagram: &Incoming,
        packet: P,
        now: Seconds,
    ) -> Result<(), Malformed> {
        let (stamp, Head { class, coded, flow: name, position, .. }) = (datagram.stamp, datagram.head);
        let seen = packet.look()?;
        let id = self.flow_of(peer, datagram, &seen, now)?;
        let flow = &mut peer.flows[id];
        self.counts.add(Count::PacketsReceived, 1);
        flow.packets += 1;
        flow.bytes += packet.bytes() as u64;
        flow.longest = flow.longest.max(packet.bytes());
        flow.took(class, stamp, now);
        let acknowledged =
            (seen.protocol == TCP && seen.flow.has_ports() && sender.times_acknowledgements(peer.known.leaf))
                .then(|| packet.acknowledges(&seen));
        let (ecn, for_decoder) = (packet.ecn(), coded.then(|| packet.clone()));
        let marked = match decapsulate(ecn, datagram.ecn) {
            _ if datagram.ecn == NOT_ECT => packet,
            Decapsulated::AsItIs => packet,
            Decapsulated::With(ecn) => packet.with_ecn(ecn),
            Decapsulated::Dropped => {
                self.counts.add(Count::DroppedEcn, 1);
                self.keep_within_budget(peer, id);
                return Ok(());
            }
        };
        if let Some(acknowledged) = acknowledged {
            sender.acknowledged(peer.known.leaf, &flow.reverse, acknowledged, now);
        }
        self.delivered(&mut peer.progress, datagram, now);
        if class == TrafficClass::Control {
            self.control(peer, id, datagram, (marked, &seen), now);
            self.keep_within_budget(peer, id);
            return Ok(());
        }
        flow.class = class;
        if flow.newest.is_none_or(|newest| serial_difference(position, newest) > 0) {
            flow.newest = Some(position);
        } else {
            flow.reordered += 1;
        }
        let mut rebuilt = Vec::new();
        if let Some(packet) = for_decoder {
            decoder_of(peer, name, id).source(position, packet, now, &mut rebuilt);
        }
        self.release(
            peer,
            id,
            Arrival { position, number: datagram.head.number, packet: marked },
            datagram,
            now,
        );
        self.recovered(peer, id, datagram, rebuilt, now);
        self.settle(peer, datagram, now);
        self.keep_within_budget(peer, id);
        if !peer.early.is_empty() {
            let early = peer.early.take(name);
            self.keep_early_within_budget(peer);
            for EarlyRepair { datagram, repair } in early {
                self.repair(peer, datagram, repair, now);
            }
        }
        Ok(())
    }

    /// Processes a repair of a peer.
    pub fn repair(
        &mut self,
        peer: &mut Peer<P>,
        datagram: Incoming,
        repair: Repair<P::Symbol>,
        now: Seconds,
    ) {
        let Some(id) = peer.flows.see(&datagram.head.flow) else {
            let gone = peer.early.keep(datagram.head.flow, EarlyRepair { datagram, repair });
            self.counts.add(Count::RepairsWithoutFlow, gone as u64);
            self.keep_early_within_budget(peer);
            return;
        };
        self.counts.add(Count::RepairsReceived, 1);
        let flow = &mut peer.flows[id];
        flow.repairs += 1;
        flow.took(datagram.head.class, datagram.stamp, now);
        self.delivered(&mut peer.progress, &datagram, now);
        let mut rebuilt = Vec::new();
        decoder_of(peer, datagram.head.flow, id).repair(repair, now, &mut rebuilt);
        self.recovered(peer, id, &datagram, rebuilt, now);
        self.settle(peer, &datagram, now);
        self.keep_within_budget(peer, id);
    }

    /// Returns when feedback or a release is due, if feedback waits `patience_s` longer than it has to.
    pub fn deadline(&self, peers: &Peers<P>, patience_s: Seconds) -> Option<Seconds> {
        let held = self.holding.values().filter_map(|&(peer, id)| peers[peer].flows[id].release.deadline());
        held.chain(self.next_feedback.map(|due| due + patience_s)).min_by(f64::total_cmp)
    }

    /// Gives up gaps whose time is over, losses that are certain, and sends the feedback that is due.
    pub fn handle_timer<S: Packets>(&mut self, sender: &mut Sender<S>, peers: &mut Peers<P>, now: Seconds) {
        let held: Vec<(PeerId, FlowId)> = self.holding.values().copied().collect();
        for (from, id) in held {
            let peer = &mut peers[from];
            let (flow, progress) = (&mut peer.flows[id], &peer.progress);
            flow.release.expire(now, &mut self.deliver);
            if let Hold::ByPaths { silence_s } = self.policy.holds[flow.class.index()] {
                flow.release.settle(progress.settled(flow.class, silence_s, now), &mut self.deliver);
            }
            peer.budget.charge(&mut peer.flows[id]);
            self.note_holding(peer, from, id);
        }
        if self.next_feedback.is_none_or(|due| now < due) {
            return;
        }
        self.next_feedback = None;
        self.send_feedback_due(sender, peers, now);
    }

    /// Releases what is held for a peer that is gone or began anew.
    pub fn drop_held(&mut self, peer: &mut Peer<P>) {
        for id in peer.flows.ids() {
            let flow = &mut peer.flows[id];
            if let Some(place) = flow.holding.take() {
                self.holding.remove(&place);
                flow.release.drain(&mut self.deliver);
            }
        }
    }

    /// Forgets a peer's flow that is over, with what is held of it, and returns it: it is in no report.
    pub fn end(&mut self, peer: &mut Peer<P>, name: u32) -> Option<ReceiveFlow<P>> {
        let flow = peer.flows.take(&name)?;
        peer.budget.gone(&flow);
        if let Some(place) = flow.holding {
            self.holding.remove(&place);
        }
        Some(flow)
    }

    /// Forgets flows that were idle for so long that nothing can be held for them any more.
    pub fn sweep(&mut self, peers: &mut Peers<P>, now: Seconds) {
        for id in peers.ids() {
            let peer = &mut peers[id];
            for flow in peer.flows.expire(now - KEPT_LONGER_S) {
                peer.budget.gone(&flow);
                flow.holding.map(|place| self.holding.remove(&place));
            }
        }
        self.keep_records_within_bound(peers);
    }

    /// Returns the flow of a packet, which the first packet of a flow creates.
    fn flow_of(
        &mut self,
        peer: &mut Peer<P>,
        datagram: &Incoming,
        seen: &Seen,
        now: Seconds,
    ) -> Result<FlowId, Malformed> {
        if let Some(id) = peer.flows.see(&datagram.head.flow) {
            if peer.flows[id].key == seen.flow {
                return Ok(id);
            }
        }
        let from_peer = peer.known.overlay.contains(&seen.flow.source());
        if !from_peer || !(self.own.is_empty() || self.own.contains(&seen.flow.destination())) {
            let text = "addresses that are not this peer's and ours".to_owned();
            return Err(Malformed { reason: "inner_not_for_us", text });
        }
        let position = datagram.head.position;
        let release = if position < FIRST_POSITIONS { Release::new(0) } else { Release::amid(position) };
        let (id, gone) = peer.flows.put(datagram.head.flow, ReceiveFlow::new(seen.flow, release, now));
        if let Some(gone) = gone {
            peer.budget.gone(&gone);
            self.displaced(gone);
        }
        Ok(id)
    }

    /// Delivers a packet without position at once, but a FIN not before the data that it ends.
    fn control(
        &mut self,
        peer: &mut Peer<P>,
        id: FlowId,
        datagram: &Incoming,
        (packet, seen): (P, &Seen),
        now: Seconds,
    ) {
        let flow = &mut peer.flows[id];
        if !seen.finishing || flow.release.next() == datagram.head.position {
            self.deliver.push(packet);
            return;
        }
        let timeout_s = self.policy.longest_hold_s(flow.class);
        flow.release.follow(datagram.head.position, packet, timeout_s, now, &mut self.deliver);
        if flow.release.deadline().is_some() {
            self.note_holding(peer, datagram.from, id);
        }
    }

    fn recovered(
        &mut self,
        peer: &mut Peer<P>,
        id: FlowId,
        datagram: &Incoming,
        rebuilt: Vec<Rebuilt<P>>,
        now: Seconds,
    ) {
        for Rebuilt { position, packet } in rebuilt {
            let flow = &mut peer.flows[id];
            if packet.look().map(|seen| seen.flow) != Ok(flow.key) {
                // a repair may hold anything: its sender is not trusted
                self.counts.add(Count::DroppedRecoveredMalformed, 1);
                continue;
            }
            flow.recovered += 1;
            peer.pending.recovered(1);
            self.counts.add(Count::PacketsRecovered, 1);
            self.release(peer, id, Arrival { position, number: datagram.head.number, packet }, datagram, now);
        }
    }

    fn release(
        &mut self,
        peer: &mut Peer<P>,
        id: FlowId,
        arrival: Arrival<P>,
        datagram: &Incoming,
        now: Seconds,
    ) {
        let flow = &mut peer.flows[id];
        let timeout_s = self.policy.longest_hold_s(flow.class);
        flow.release.arrive(arrival, timeout_s, now, &mut self.deliver);
        self.note_holding(peer, datagram.from, id);
    }

    /// Notes how far a path of a peer has come.
    fn delivered(&self, progress: &mut PathProgress, datagram: &Incoming, now: Seconds) {
        let Head { class, number, .. } = datagram.head;
        let delivered = Delivered { class, stamp: datagram.stamp, number };
        progress.took(delivered, self.policy.silence_s(class), now);
    }

    /// Releases what waited for datagrams that are lost, now that a path of a peer has come further.
    fn settle(&mut self, peer: &mut Peer<P>, datagram: &Incoming, now: Seconds) {
        let (from, class) = (datagram.from, datagram.head.class);
        let Hold::ByPaths { silence_s } = self.policy.holds[class.index()] else { return };
        let held = self.holding.values().filter(|&&(of, id)| of == from && peer.flows[id].class == class);
        let held: Vec<FlowId> = held.map(|&(_, id)| id).collect();
        if held.is_empty() {
            return;
        }
        let settled = peer.progress.settled(class, silence_s, now);
        for id in held {
            peer.flows[id].release.settle(settled, &mut self.deliver);
            peer.budget.charge(&mut peer.flows[id]);
            self.note_holding(peer, from, id);
        }
    }

    /// Notes whether a flow holds packets back.
    fn note_holding(&mut self, peer: &mut Peer<P>, from: PeerId, id: FlowId) {
        let flow = &mut peer.flows[id];
        match (flow.holding, flow.release.deadline()) {
            (None, Some(_)) => {
                self.held += 1;
                flow.holding = Some(self.held);
                self.holding.insert(self.held, (from, id));
            }
            (Some(place), None) => {
                flow.holding = None;
                self.holding.remove(&place);
            }
            _ => {}
        }
    }
}

fn decoder_of<P: Packet>(peer: &mut Peer<P>, number: u32, id: FlowId) -> &mut UnitDecoder<P> {
    if peer.flows[id].decoder.is_none() {
        peer.budget.decodes(number, &peer.flows);
    }
    peer.flows[id].decoder.get_or_insert_with(|| UnitDecoder::new(DecoderLimits::default()))
}
