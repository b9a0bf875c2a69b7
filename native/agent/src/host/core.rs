//! What an agent does with packets of its host and with datagrams of its peers.

use std::collections::{HashMap, HashSet, VecDeque};

use datapath::checksum::complete;
use datapath::feedback::Feedback;
use datapath::header::{Header, FEEDBACK, HEADER_BYTES, REPAIR};
use datapath::inner::{look, Address, Seen, TCP};
use datapath::mac::PairKeys;
use datapath::tunnel;

use crate::admission::{AdmissionPolicy, Gate, TcpBytes};
use crate::counts::{Count, Counts};
use crate::departure::UnderlayAddress;
use crate::flow_record::FlowRecord;
use crate::flow_table::MAX_FINISHED;
use crate::host::bytes::{word, Bytes, Rows};
use crate::host::datagrams::{seal, Datagram};
use crate::host::icmp::IcmpBucket;
use crate::host::incoming::{incoming, repair_of, FromUnderlay};
use crate::packet::Burst;
use crate::peers::{Known, PeerId, Peers};
use crate::receiving::{ReceivePolicy, Receiver};
use crate::sending::{SendFlow, SendPolicy, Sender, Serving};
use crate::Seconds;

/// How often idle flows are looked for.
const SWEEP_S: Seconds = 1.0;

/// Who we are.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The random number of this start, as the controller knows it.
    pub session: u32,
    /// Bytes of the largest inner packet.
    pub mtu: usize,
    /// Broadcast addresses of the overlay.
    pub broadcasts: HashSet<Address>,
}

/// What a policy document says, but for the paths.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    /// How packets are sent.
    pub send: SendPolicy,
    /// Times of the receiving side.
    pub receive: ReceivePolicy,
    /// Which flows ask before they send; None: all send at once.
    pub admission: Option<AdmissionPolicy>,
}

/// One host's agent. Times are seconds of one monotonic clock.
pub struct Core {
    /// The sending half.
    pub sender: Sender<Rows>,
    /// The receiving half.
    pub receiver: Receiver<Bytes>,
    /// The other agents.
    pub peers: Peers<Bytes>,
    /// What TCP packets pass while a policy holds flows.
    pub gate: Gate<TcpBytes>,
    /// When something came last, or was due.
    pub(super) now: Seconds,
    identity: Identity,
    /// Of pairs with us, by the peer's address.
    keys: HashMap<UnderlayAddress, PairKeys>,
    counts: Counts,
    icmp: IcmpBucket,
    next_sweep: Seconds,
    /// Records of flows of peers that are gone, until the next report.
    gone: VecDeque<FlowRecord>,
}

impl Core {
    /// Returns an agent without peers.
    pub fn new(identity: Identity, sender: Sender<Rows>, receiver: Receiver<Bytes>, now: Seconds) -> Core {
        Core {
            sender,
            receiver,
            peers: Peers::default(),
            gate: Gate::default(),
            now,
            identity,
            keys: HashMap::new(),
            counts: Counts::default(),
            icmp: IcmpBucket::new(now),
            next_sweep: now + SWEEP_S,
            gone: VecDeque::new(),
        }
    }

    /// Sets the agents that there are, without ourselves, and our own overlay addresses (None: not named); what those
    /// that are gone send is dropped.
    pub fn set_directory(&mut self, directory: Vec<Known>, own: Option<HashSet<Address>>) {
        if let Some(own) = own {
            self.receiver.own = own;
        }
        let changes = self.peers.set(directory);
        for &id in &changes.dropped {
            let peer = &mut self.peers[id];
            self.receiver.drop_held(peer);
            self.gone.extend(peer.flows.report(true));
            if !self.peers.is_listed(id) {
                self.sender.wrapping.steering.forget(self.peers[id].own.id);
            }
        }
        while self.gone.len() > MAX_FINISHED {
            self.gone.pop_front();
        }
        self.peers.settle(&changes);
        for id in changes.there {
            self.sender.adopt(&mut self.peers[id]);
        }
        self.use_keys();
    }

    /// Authenticates datagrams to and from the peers at these addresses from now on, and takes none from others; no keys:
    /// no datagram is authenticated.
    pub fn set_keys(&mut self, keys: HashMap<UnderlayAddress, PairKeys>) {
        self.keys = keys;
        self.use_keys();
    }

    fn use_keys(&mut self) {
        for id in self.peers.ids() {
            let peer = &mut self.peers[id];
            let pair = self.keys.get(&peer.known.address);
            peer.keys = (!self.keys.is_empty()).then(|| pair.cloned().unwrap_or_default());
        }
    }

    /// Processes an inner IP packet that the host sends into the overlay.
    pub fn packet_from_host(&mut self, packet: &[u8], now: Seconds) {
        match look(packet) {
            Ok(seen) => self.packet_seen(packet, &seen, now),
            Err(error) => self.counts.refused("", error.reason),
        }
    }

    /// Processes a packet as `packet_from_host` does, of which the caller has seen what `look` sees.
    pub fn packet_seen(&mut self, packet: &[u8], seen: &Seen, now: Seconds) {
        self.looked_at(packet, seen, now);
        if self.gate.is_shut() && packet.len() <= self.identity.mtu {
            self.pass_sent(packet, seen, now);
        }
    }

    /// Processes a TCP packet that the host left us to cut into segments of `size` bytes of payload.
    pub fn super_packet_from_host(&mut self, packet: &[u8], size: usize, now: Seconds) {
        match look(packet) {
            Ok(seen) => self.super_packet_seen(packet, &seen, size, now),
            Err(error) => self.counts.refused("", error.reason),
        }
    }

    /// Processes a packet as `super_packet_from_host` does, of which the caller has seen what `look` sees.
    pub fn super_packet_seen(&mut self, packet: &[u8], seen: &Seen, size: usize, now: Seconds) {
        self.cut_and_sent(packet, seen, size, now);
        if self.gate.is_shut() {
            self.pass_sent(packet, seen, now);
        }
    }

    fn cut_and_sent(&mut self, packet: &[u8], seen: &Seen, size: usize, now: Seconds) {
        if seen.protocol != TCP || !seen.flow.has_ports() || seen.payload <= size || size == 0 {
            return self.looked_at(packet, seen, now);
        }
        let Some(rows) = Rows::cut(packet, seen, size) else { return self.looked_at(packet, seen, now) };
        let peer = self.peers.with(&seen.flow.destination());
        match peer {
            Some(peer) if rows.sizes().each as usize <= self.identity.mtu => {
                self.send(peer, packet, (seen, rows, size as u32), now);
            }
            _ => {
                for segment in rows.packets() {
                    if let Ok(seen) = look(&segment) {
                        self.looked_at(&segment, &seen, now);
                    }
                }
            }
        }
    }

    fn looked_at(&mut self, packet: &[u8], seen: &Seen, now: Seconds) {
        let destination = seen.flow.destination();
        let Some(peer) = self.peers.with(&destination) else {
            return self.nowhere(packet, &destination, now);
        };
        let mtu = self.identity.mtu;
        if packet.len() <= mtu {
            let step = seen.payload as u32;
            return self.send(peer, packet, (seen, Rows::alone(packet), step), now);
        }
        if tunnel::dont_fragment(packet) {
            self.counts.add(Count::DroppedTooBig, 1);
            return self.answer(tunnel::too_big(packet, mtu as u32), now);
        }
        self.counts.add(Count::Fragmented, 1);
        let mut whole = packet.to_vec();
        complete(&mut whole, seen);
        for piece in tunnel::fragment(&whole, mtu).unwrap_or_default() {
            if let Ok(seen) = look(&piece) {
                let step = seen.payload as u32;
                self.send(peer, &piece, (&seen, Rows::alone(&piece), step), now);
            }
        }
    }

    /// Drops a packet for an address that no peer has, and answers with an ICMP error where the directory is known.
    fn nowhere(&mut self, packet: &[u8], destination: &Address, now: Seconds) {
        if destination.is_group() || self.identity.broadcasts.contains(destination) {
            self.counts.add(Count::DroppedGroupAddress, 1);
        } else if !self.peers.known {
            // an error would end connections that only wait for an agent that was started again
            self.counts.add(Count::DroppedNoDirectory, 1);
        } else {
            self.counts.add(Count::DroppedNoSuchHost, 1);
            self.answer(tunnel::unreachable(packet), now);
        }
    }

    fn send(&mut self, to: PeerId, packet: &[u8], (seen, rows, step): (&Seen, Rows, u32), now: Seconds) {
        let tcp = seen.protocol == TCP && seen.flow.has_ports();
        let burst = Burst {
            flow: seen.flow,
            seen: *seen,
            ecn: tunnel::ecn_of(packet),
            sequence: tcp.then(|| word(packet, seen.transport + 4)),
            step,
            sizes: rows.sizes(),
            packets: rows,
        };
        self.sender.send(&burst, to, &mut self.peers, now);
    }

    /// Processes a datagram that came from the underlay, from any sender.
    pub fn receive_datagram(&mut self, datagram: FromUnderlay, now: Seconds) {
        self.now = now;
        let Some(from) = self.peers.at(datagram.address) else {
            return self.counts.add(Count::DroppedUnknownPeer, 1);
        };
        let read = match &self.peers[from].keys {
            Some(keys) => Header::read_authenticated(&datagram.data, keys),
            None => Header::read(&datagram.data),
        };
        let (header, body) = match read {
            Ok(read) => read,
            Err(reason) => return self.counts.refused("dropped_", reason),
        };
        let peer = &mut self.peers[from];
        if header.session != peer.known.session {
            return self.counts.add(Count::DroppedOtherSession, 1);
        }
        if !self.receiver.accept(peer, from, header.number, now) {
            return self.counts.add(Count::DroppedReplayed, 1);
        }
        if header.kind == FEEDBACK {
            return match Feedback::decode(body) {
                Ok(feedback) => self.sender.feedback(peer, &feedback, now),
                Err(_) => self.counts.add(Count::DroppedBody, 1),
            };
        }
        let incoming = incoming(from, &header, &datagram);
        let body = datagram.data.behind(HEADER_BYTES);
        self.receiver.receipt(&mut self.sender, peer, &incoming, now);
        if header.kind == REPAIR {
            let Some(repair) = repair_of(header.position, body) else {
                return self.counts.add(Count::DroppedBody, 1);
            };
            self.receiver.repair(peer, incoming, repair, now);
        } else if let Err(error) = self.receiver.source(&mut self.sender, peer, &incoming, body, now) {
            self.counts.refused("dropped_", error.reason);
        }
        self.receiver.keep_all_within_budget(&mut self.peers);
    }

    /// Runs what is due: to be called when `timer` has come, harmless at any other time.
    pub fn handle_timer(&mut self, now: Seconds) {
        self.now = now;
        self.gate.handle_timer(now);
        self.sender.handle_timer(&mut self.peers, now);
        self.receiver.handle_timer(&mut self.sender, &mut self.peers, now);
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_S;
            self.gate.sweep(now);
            self.sender.sweep(|flow| self.gate.holds(flow), now);
            self.receiver.sweep(&mut self.peers, now);
        }
    }

    /// Returns when `handle_timer` has something to do.
    pub fn timer(&self) -> Seconds {
        self.due(0.0)
    }

    /// Returns when `handle_timer` has something to do that cannot wait. Feedback that is due by `timer` can wait as long
    /// again for datagrams to leave with: one that leaves alone wakes two agents up.
    pub fn latest_timer(&self) -> Seconds {
        self.due(self.receiver.feedback_after_s())
    }

    fn due(&self, patience_s: Seconds) -> Seconds {
        let receiver = self.receiver.deadline(&self.peers, patience_s);
        let others = [self.sender.deadline(), receiver, self.gate.deadline()];
        others.into_iter().flatten().fold(self.next_sweep, f64::min)
    }

    /// Returns true if datagrams wait for `datagrams_to_send`.
    pub fn sends(&self) -> bool {
        !self.sender.wrapping.out.is_empty()
    }

    /// Returns the datagrams for the underlay, in order; each is given once.
    pub fn datagrams_to_send(&mut self) -> Vec<Datagram> {
        let departures = &mut self.sender.wrapping.out;
        let count = departures.iter().map(|departure| departure.ports.len()).sum();
        let mut datagrams = Vec::with_capacity(count);
        for departure in departures.drain(..) {
            let peer = self.peers.at(departure.outer.address).map(|id| &self.peers[id]);
            let key = peer.and_then(|peer| peer.keys.as_ref()?.sending);
            seal(&departure, self.identity.session, key, &mut datagrams);
        }
        datagrams
    }

    /// Returns the inner packets for the host, in order; each is given once.
    pub fn packets_to_deliver(&mut self) -> Vec<Bytes> {
        let packets = std::mem::take(&mut self.receiver.deliver);
        if self.gate.is_shut() {
            return self.pass_delivered(packets);
        }
        packets
    }

    /// Returns totals since the start, by name; what is 0 may be missing.
    pub fn totals(&self) -> Vec<(&'static str, u64)> {
        let halves = [&self.counts, &self.sender.counts, &self.receiver.counts];
        let mut totals: Vec<(&'static str, u64)> = halves.into_iter().flat_map(Counts::totals).collect();
        let [in_time, not_in_time] = self.sender.unit_outcomes();
        let [lost, late] = self.peers.lost_and_late();
        totals.extend([
            ("units_in_time", in_time),
            ("units_not_in_time", not_in_time),
            ("datagrams_lost", lost),
            ("datagrams_late", late),
            ("finished_flows_dropped", self.sender.ended.dropped),
            ("send_flows", self.sender.flows.len() as u64),
            ("receive_flows", self.peers.iter().map(|peer| peer.flows.len() as u64).sum()),
        ]);
        totals.extend(self.admission_totals());
        totals
    }

    /// Counts a flow that was announced.
    pub fn announce(&mut self, key: datapath::inner::FlowKey, size: f64) {
        self.counts.add(Count::FlowsAnnounced, 1);
        self.sender.announce(key, size);
    }

    /// Returns what was counted of each flow since the last report that forgot.
    pub fn flow_report(&mut self, forget: bool) -> Vec<FlowRecord> {
        let mut records = self.sender.flows.report(forget);
        records.extend(self.gone.iter().cloned());
        for id in self.peers.ids() {
            records.extend(self.peers[id].flows.report(forget));
        }
        if forget {
            self.gone.clear();
        }
        records
    }

    /// Returns the flows with a packet since then, at most `most`, those that have carried the most first; and how many
    /// more there are.
    pub fn active_flows(&self, since: Seconds, most: usize) -> (Vec<FlowRecord>, usize) {
        let sent = self.sender.flows.recent(since).into_iter().map(SendFlow::entry);
        let received = self.peers.iter().flat_map(|peer| peer.flows.recent(since)).map(|flow| flow.entry());
        let mut flows: Vec<FlowRecord> = sent.chain(received).collect();
        let more = flows.len().saturating_sub(most);
        if more > 0 {
            flows.sort_by_key(|flow| std::cmp::Reverse(flow.bytes));
            flows.truncate(most);
        }
        (flows, more)
    }

    /// Uses other policies from the next packet on; flows, positions and numbers go on.
    pub fn set_policy(&mut self, policies: HostPolicy, paths: Serving, now: Seconds) {
        self.sender.set_policy(policies.send, paths, &mut self.peers, now);
        self.receiver.set_policy(policies.receive);
        self.gate.set_policy(policies.admission, now);
        self.grant_paths_again();
    }

    fn answer(&mut self, packet: Option<Vec<u8>>, now: Seconds) {
        let Some(packet) = packet.filter(|_| self.icmp.take(now)) else { return };
        self.counts.add(Count::IcmpErrorsSent, 1);
        self.receiver.deliver.push(packet.into());
    }
}
