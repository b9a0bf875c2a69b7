//! One host's agent: the decisions of `native/agent` round packets without bytes.

use agent::admission::{Destination, Gate, Message};
use agent::departure::{Content, Departure};
use agent::flow_record::FlowRecord;
use agent::packet::{Burst, Packet as _, Sizes};
use agent::paths::{LivePaths, Load};
use agent::peers::{Known, PeerId, Peers};
use agent::priority::FlowTypes;
use agent::receiving::{Incoming, Receiver, Repair, UnitShape};
use agent::sending::{Sender, Serving};
use agent::{Generator, LeafId, Seconds};
use datapath::header::REPAIR_HEAD_BYTES;
use datapath::inner::{Address, FlowKey};
use datapath::prefetch::prefetch;

use super::connection::Connection;
use super::datagram::{Carried, Datagram};
use super::inner::{symbol, Inner};
use super::Settings;
use crate::time::{Time, NEVER};

/// Headers round a datagram's body: protocol/datagram.py's, UDP's, IPv4's; and Ethernet's, without its checksum.
const HEADERS: u32 = 32 + 8 + 20 + 14;
/// Code, k, r, index, seed: what a repair begins with.
const REPAIR_HEAD: u32 = REPAIR_HEAD_BYTES as u32;

/// Where a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: u32,
    pub leaf: u16,
    /// Of the overlay.
    pub address: [u8; 4],
}

pub struct Host {
    place: Place,
    pub(super) sender: Sender<Inner>,
    pub(super) receiver: Receiver<Inner>,
    pub(super) peers: Peers<Inner>,
    /// What its packets pass while a scheme holds flows, and messages for the controller that have not left.
    pub(super) gate: Gate<Inner>,
    pub(super) connection: Connection,
    pub(super) asked: Vec<Message<Destination>>,
    /// By host: those that it has spoken to.
    known: Vec<Option<PeerId>>,
    /// Its entry in the heap, and what of agents' time that is.
    pub timer: Time,
    pub due: Seconds,
}

impl Host {
    pub fn new(
        place: Place,
        settings: &Settings,
        connection: Connection,
        paths: LivePaths,
        random: &mut Generator,
    ) -> Host {
        let serving = settings.serving(random);
        let mut sender = Sender::new(settings.send.clone(), serving, random.split());
        sender.wrapping.steering.routes.set_paths(paths);
        let receiver = Receiver::new(settings.receive);
        let mut gate = Gate::default();
        gate.set_policy(settings.admission.map(|asking| asking.policy), 0.0);
        Host {
            place,
            sender,
            receiver,
            peers: Peers::default(),
            gate,
            connection,
            asked: Vec::new(),
            known: vec![None; settings.addresses.len()],
            timer: NEVER,
            due: Seconds::INFINITY,
        }
    }

    /// Choose paths by other policies than the scheme's.
    pub fn set_path_policies(&mut self, serving: Serving) {
        self.sender.wrapping.steering.set_policies(serving.policies, serving.serves);
    }

    pub fn leaf(&self) -> u16 {
        self.place.leaf
    }

    /// Set which paths are alive, and which of them each class is to keep to.
    pub fn set_paths(&mut self, paths: LivePaths) {
        self.sender.wrapping.steering.routes.set_paths(paths);
    }

    /// Return what the other agents of its leaf are to know of it; None: nothing.
    pub fn load(&mut self, now: Seconds) -> Option<Load> {
        self.sender.wrapping.steering.load(now)
    }

    /// Set the load of the other agents of its leaf.
    pub fn set_load(&mut self, load: &Load, now: Seconds) {
        self.sender.wrapping.steering.set_load(load, now);
    }

    /// Set which types of flows have thresholds of their own.
    pub fn set_types(&mut self, types: FlowTypes) {
        self.sender.set_types(types);
    }

    /// Note that the host will send so much on a flow.
    pub fn announce(&mut self, key: FlowKey, bytes: f64) {
        self.sender.announce(key, bytes);
    }

    /// Send a packet of the host to another host, and append what leaves for it.
    pub fn send(&mut self, inner: Inner, to: Place, now: Seconds, out: &mut Vec<Datagram>) {
        let peer = self.peer(to);
        let (seen, bytes) = (inner.seen(), inner.bytes);
        let segment = self.gate.is_shut().then(|| self.connection.segment(&inner));
        let burst = Burst {
            flow: seen.flow,
            seen,
            ecn: inner.ecn(),
            sequence: Some(inner.sequence),
            step: inner.payload,
            sizes: Sizes { count: 1, each: bytes, last: bytes },
            packets: inner,
        };
        self.sender.send(&burst, peer, &mut self.peers, now);
        if let Some(segment) = segment {
            self.pass_sent(seen.flow, segment, peer, now);
        }
        self.depart(out);
    }

    /// Process a datagram of another host. Append what leaves for it, and what the host gets.
    pub fn receive(
        &mut self,
        datagram: Datagram,
        from: Place,
        (stamp, congested): (u16, bool),
        now: Seconds,
        out: &mut Vec<Datagram>,
        delivered: &mut Vec<Inner>,
    ) {
        let from = self.peer(from);
        let peer = &mut self.peers[from];
        if !self.receiver.accept(peer, from, datagram.head.number, now) {
            return;
        }
        let ecn = if congested { 0b11 } else { datagram.ecn };
        let (head, position) = (datagram.head, datagram.head.position);
        let incoming = Incoming { from, head, stamp, ecn };
        match datagram.carried {
            Carried::Feedback(feedback) => self.sender.feedback(peer, &feedback, now),
            Carried::Source(inner) => {
                self.receiver.receipt(&mut self.sender, peer, &incoming, now);
                // what is malformed cannot be here
                let _ = self.receiver.source(&mut self.sender, peer, &incoming, inner, now);
            }
            Carried::Repair { unit, index, symbol } => {
                self.receiver.receipt(&mut self.sender, peer, &incoming, now);
                let repair = Repair { position, unit, index, symbol };
                self.receiver.repair(peer, incoming, repair, now);
            }
        }
        self.receiver.keep_all_within_budget(&mut self.peers);
        self.depart(out);
        self.pass_delivered(now, delivered);
    }

    /// Run what is due. No flow is forgotten for its silence: agents' clocks are fast, TCP's time-outs are not, and a
    /// flow's end is known (`Overlay::end`).
    pub fn expired(&mut self, now: Seconds, out: &mut Vec<Datagram>, delivered: &mut Vec<Inner>) {
        self.gate.handle_timer(now);
        self.gate.drop_episodes(now);
        self.sender.handle_timer(&mut self.peers, now);
        self.receiver.handle_timer(&mut self.sender, &mut self.peers, now);
        self.depart(out);
        self.pass_delivered(now, delivered);
    }

    /// Return when `expired` has something to do.
    pub fn deadline(&self) -> Option<Seconds> {
        let at_once = self.gate.has_messages().then_some(0.0);
        let others =
            [self.sender.deadline(), self.receiver.deadline(&self.peers, 0.0), self.gate.deadline(), at_once];
        others.into_iter().flatten().min_by(f64::total_cmp)
    }

    /// End a flow of this host; return what was counted of it, and its number at its receiver.
    pub fn end_sent(&mut self, key: FlowKey, now: Seconds) -> Option<(FlowRecord, u32)> {
        self.closed(key, now);
        self.sender.end(&key).map(|flow| (flow.entry(), flow.id))
    }

    /// End a flow of another host; return what was counted of it.
    pub fn end_received(&mut self, from: Place, flow: u32) -> Option<FlowRecord> {
        let peer = self.known[from.host as usize]?;
        self.receiver.end(&mut self.peers[peer], flow).map(|flow| flow.entry())
    }

    /// Return the peer of a place: peers are known when they are first spoken of.
    pub(super) fn peer(&mut self, place: Place) -> PeerId {
        if let Some(peer) = self.known[place.host as usize] {
            return peer;
        }
        let (address, overlay) = (underlay(place.host), vec![Address::V4(place.address)]);
        let peer = self.peers.add(Known { address, session: 1, leaf: LeafId(place.leaf), overlay });
        self.sender.adopt(&mut self.peers[peer]);
        self.known[place.host as usize] = Some(peer);
        peer
    }

    /// Fetch what every datagram looks at.
    pub fn prefetch(&self) {
        prefetch(&self.known);
        prefetch(&self.peers);
        prefetch(&self.due);
        prefetch(&self.sender.flows);
        self.receiver.prefetch();
    }

    /// Fetch the number of the peer at a host.
    pub fn prefetch_known(&self, host: u32) {
        prefetch(&self.known[host as usize]);
    }

    /// Fetch where the peer at a host is, its number being known.
    pub fn prefetch_place(&self, host: u32) {
        self.known[host as usize].inspect(|&peer| self.peers.prefetch_place(peer));
    }

    /// Fetch what a datagram of that number from a host looks at in its peer.
    pub fn prefetch_peer(&self, host: u32, number: u32) {
        self.known[host as usize].inspect(|&peer| self.peers[peer].prefetch(number));
    }

    /// Fetch what the peer at a host refers to, which a datagram of that number will look at.
    pub fn prefetch_state(&self, host: u32, number: u32) {
        self.known[host as usize].inspect(|&peer| self.peers[peer].prefetch_state(number));
    }

    /// Fetch what the flow that came last from a host refers to.
    pub fn prefetch_newest(&self, host: u32) {
        self.known[host as usize].inspect(|&peer| self.peers[peer].prefetch_newest());
    }

    fn depart(&mut self, out: &mut Vec<Datagram>) {
        for mut departure in self.sender.wrapping.out.drain(..) {
            let content = std::mem::replace(&mut departure.content, NOTHING);
            Leaving { departure: &departure, from: self.place.host, sealed: 0, out }.all(content);
        }
    }
}

const NOTHING: Content<Inner> = Content::Packets { sources: None, repairs: Vec::new() };

/// A departure on its way to be datagrams, without what they carry.
struct Leaving<'a> {
    departure: &'a Departure<Inner>,
    from: u32,
    sealed: u32,
    out: &'a mut Vec<Datagram>,
}

impl Leaving<'_> {
    fn all(mut self, content: Content<Inner>) {
        match content {
            Content::Feedback(feedback) => {
                let bytes = feedback.encoded_bytes();
                self.push(Carried::Feedback(Box::new(feedback)), bytes, 0);
            }
            Content::Packets { sources, repairs } => {
                if let Some(sources) = sources {
                    let bytes = sources.packets.bytes;
                    self.push(Carried::Source(sources.packets), bytes, sources.position);
                }
                for repair in repairs {
                    let unit = &repair.unit;
                    let shape = UnitShape { code: unit.code, k: unit.k, r: unit.r, seed: unit.seed };
                    let symbol = symbol(&unit.payloads, unit.symbol_bytes);
                    for index in 0..unit.r {
                        let carried = Carried::Repair { unit: shape, index, symbol: symbol.clone() };
                        self.push(carried, REPAIR_HEAD + unit.symbol_bytes, unit.position);
                    }
                }
            }
        }
    }

    fn push(&mut self, carried: Carried, body: u32, position: u32) {
        let departure = self.departure;
        let source = matches!(carried, Carried::Source(_));
        let repair = matches!(carried, Carried::Repair { .. });
        self.out.push(Datagram {
            from: self.from,
            to: u32::from_be_bytes(departure.outer.address),
            head: departure.head(self.sealed, repair, position),
            source_port: departure.ports.get(self.sealed as usize).copied().unwrap_or_default(),
            destination_port: departure.outer.port,
            priority: departure.outer.tos >> 2 & 7,
            ecn: if source { departure.outer.ecn } else { 0 },
            bytes: HEADERS + body,
            carried,
        });
        self.sealed += 1;
    }
}

/// Return a host's address of the underlay: its number.
fn underlay(host: u32) -> [u8; 4] {
    host.to_be_bytes()
}
