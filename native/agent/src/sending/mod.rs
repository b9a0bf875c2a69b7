//! The sending half: class, path, priority and coding of every packet, and what peers' feedback teaches.

mod admitted;
mod announcements;
mod coded;
mod ended;
mod feedback;
mod flow;
mod policy;
mod round_trips;
mod wrapping;

pub use announcements::{Announcements, MAX_ANNOUNCED};
pub use ended::{EndedFlow, EndedFlows, MOST_ENDED};
pub use flow::{hashed_port, Coded, SendFlow};
pub use policy::{EstimatorChoice, SendPolicy, Serving};
pub use wrapping::{Subject, Wrapping};

use std::collections::BTreeMap;

use datapath::inner::FlowKey;
use datapath::sent::{Outstanding, SentLog};

use crate::blocking::BlockingEstimator;
use crate::class::TrafficClass;
use crate::coding::{CodingRules, Margin};
use crate::counts::{Count, Counts};
use crate::departure::{Content, Sources};
use crate::flow_table::{FlowId, FlowTable};
use crate::hash::NumberMap;
use crate::packet::{Burst, Packet, Packets};
use crate::paths::Steering;
use crate::peers::{MarginId, Peer, PeerId, Peers};
use crate::priority::{FlowTypes, Typed};
use crate::random::Generator;
use crate::route::LeafId;
use crate::sending::round_trips::RoundTrips;
use crate::sending::wrapping::Leaving;
use crate::Seconds;

/// Decides what becomes of the host's packets. One for all peers; P: packets of a burst.
pub struct Sender<P> {
    /// Flows of this host.
    pub flows: FlowTable<FlowKey, SendFlow<P>>,
    /// Path policies, priorities, and the datagrams that are to leave.
    pub wrapping: Wrapping<P>,
    /// Flows that have ended, where the policy predicts.
    pub ended: EndedFlows,
    /// What this half counts.
    pub counts: Counts,
    policy: SendPolicy,
    classes: [Option<CodingRules>; 4],
    estimators: NumberMap<LeafId, Box<dyn BlockingEstimator>>,
    margins: BTreeMap<MarginId, Margin>,
    open: BTreeMap<u64, FlowId>,
    opened: u64,
    announced: Announcements,
    next_flow: u32,
    random: Generator,
}

impl<P: Packets> Sender<P> {
    /// Returns a sender without flows. Seeds of codes are drawn from `random`.
    pub fn new(policy: SendPolicy, paths: Serving, random: Generator) -> Sender<P> {
        let mut steering = Steering::default();
        steering.set_policies(paths.policies, paths.serves);
        let mut sender = Sender {
            flows: FlowTable::default(),
            wrapping: Wrapping::new(steering),
            ended: EndedFlows::default(),
            counts: Counts::default(),
            policy: policy.clone(),
            classes: [None, None, None, None],
            estimators: NumberMap::default(),
            margins: BTreeMap::new(),
            open: BTreeMap::new(),
            opened: 0,
            announced: Announcements::default(),
            next_flow: 1,
            random,
        };
        sender.use_policy(policy);
        sender
    }

    /// Uses another policy from the next packet on; units that are open are closed by the old one, and teach the new one
    /// nothing. Nor does what is on its way: an estimator that is new did not see what of it was reported.
    pub fn set_policy<Q: Packet>(
        &mut self,
        policy: SendPolicy,
        paths: Serving,
        peers: &mut Peers<Q>,
        now: Seconds,
    ) {
        self.close_all(peers, now);
        let [in_time, not_in_time] = self.unit_outcomes();
        self.counts.add(Count::UnitsInTime, in_time);
        self.counts.add(Count::UnitsNotInTime, not_in_time);
        self.margins.clear();
        self.wrapping.steering.set_policies(paths.policies, paths.serves);
        self.use_policy(policy);
        for id in peers.ids() {
            let peer = &mut peers[id];
            peer.outcomes.clear();
            peer.outstanding = Outstanding::default();
            self.adopt(peer);
        }
    }

    fn use_policy(&mut self, policy: SendPolicy) {
        self.wrapping.priorities.set(policy.priority.clone(), policy.types.clone());
        if !policy.priority.predicted {
            self.ended.waiting.clear();
        }
        self.classes = policy.coding.clone().map(|coding| coding.map(CodingRules::new));
        self.estimators.clear();
        self.policy = policy;
        for id in self.flows.ids() {
            let flow = &mut self.flows[id];
            (flow.coded, flow.window) = (None, None);
            flow.short_bytes = self.policy.short_bytes(flow);
            assign(&self.wrapping, flow, &mut self.counts);
        }
    }

    /// Uses types of flows with thresholds of their own: in force for each flow's next packet.
    pub fn set_types(&mut self, types: FlowTypes) {
        self.policy.types = types;
        self.wrapping.priorities.set(self.policy.priority.clone(), self.policy.types.clone());
        for id in self.flows.ids() {
            assign(&self.wrapping, &mut self.flows[id], &mut self.counts);
        }
    }

    /// Gives a peer what belongs to its leaf: the ways there, and the estimator that the policy's coding wants.
    ///
    /// Hosts of one leaf are reached over the same paths, so what one of them reports holds for all; a pair of hosts
    /// alone sends too little to know.
    pub fn adopt<Q: Packet>(&mut self, peer: &mut Peer<Q>) {
        let leaf = peer.known.leaf;
        self.wrapping.steering.routes.to(leaf);
        peer.logged = self.wrapping.steering.learns() || self.policy.estimator.is_some();
        if !peer.logged {
            peer.sent = SentLog::default();
        }
        if self.wrapping.steering.learns() {
            peer.departures.get_or_insert_default();
        } else {
            peer.departures = None;
        }
        let Some(EstimatorChoice { kind, sampling_s }) = self.policy.estimator else { return };
        let packet_time_s = self.policy.packet_time_s;
        let estimator =
            self.estimators.entry(leaf).or_insert_with(|| kind.estimator(packet_time_s, sampling_s));
        peer.outcomes.set_in_time(estimator.overdue_s());
    }

    /// Notes that the host will send `size` bytes of payload on a flow, without end if that is infinite.
    pub fn announce(&mut self, key: FlowKey, size: f64) {
        if let Some(id) = self.flows.find(&key) {
            let flow = &mut self.flows[id];
            flow.announced = Some(size);
            flow.short_bytes = self.policy.short_bytes(flow);
            assign(&self.wrapping, flow, &mut self.counts);
            if flow.payload == 0 {
                return;
            }
        }
        self.announced.add(key, size);
    }

    /// Wraps packets of the host for a peer, and adds the repairs of the units that they complete.
    pub fn send<Q: Packet>(&mut self, burst: &Burst<P>, to: PeerId, peers: &mut Peers<Q>, now: Seconds) {
        let id = self.flow(burst, peers, now);
        let count = burst.sizes.count;
        let flow = &mut self.flows[id];
        flow.packets += u64::from(count);
        flow.bytes += burst.sizes.total();
        self.counts.add(Count::PacketsSent, count.into());
        if burst.seen.control {
            let piece = Piece { burst, begin: 0, end: count, class: TrafficClass::Control, to };
            self.send_plain(id, piece, &mut peers[to], now);
        } else {
            self.send_data(id, burst, to, peers, now);
        }
        if burst.seen.ending {
            self.note_end(id, now);
        }
    }

    /// Sends as many packets together as have one class and one priority.
    fn send_data<Q: Packet>(
        &mut self,
        id: FlowId,
        burst: &Burst<P>,
        to: PeerId,
        peers: &mut Peers<Q>,
        now: Seconds,
    ) {
        let (count, step) = (burst.sizes.count, u64::from(burst.step.max(1)));
        let mut begin = 0;
        while begin < count {
            let flow = &mut self.flows[id];
            if flow.payload >= flow.priority.demote_at {
                self.wrapping.priorities.demote(flow.payload, &mut flow.priority);
            }
            let (mut class, mut until) = (TrafficClass::Long, flow.priority.demote_at);
            if flow.payload < flow.short_bytes {
                (class, until) = (TrafficClass::Short, until.min(flow.short_bytes));
            }
            let room = until.saturating_sub(flow.payload).div_ceil(step).clamp(1, count.into());
            let end = count.min(begin + room as u32);
            flow.class = class;
            if flow.coded.as_ref().is_some_and(|coded| coded.class != class) {
                self.close(id, peers, now);
                self.flows[id].coded = None;
            }
            let piece = Piece { burst, begin, end, class, to };
            if self.classes[class.index()].is_some() {
                self.send_coded(id, piece, peers, now);
            } else {
                self.send_plain(id, piece, &mut peers[to], now);
            }
            let sent = |packets: u32| (u64::from(packets) * step).min(burst.payload());
            self.flows[id].payload += sent(end) - sent(begin);
            begin = end;
        }
    }

    fn send_plain<Q: Packet>(&mut self, id: FlowId, piece: Piece<'_, P>, peer: &mut Peer<Q>, now: Seconds) {
        let flow = &mut self.flows[id];
        let subject = Subject::of(flow, piece.class);
        let sources = piece.sources(flow);
        let mut ports = Vec::with_capacity(sources.sizes.count as usize);
        self.wrapping.draw(subject, peer, sources.sizes, now, &mut ports);
        let content = Content::Packets { sources: Some(sources), repairs: Vec::new() };
        let ecn = piece.burst.ecn;
        let leaving = Leaving { subject, coded: false, reported: false, ecn, ports, content };
        self.wrapping.leave(peer, leaving, now);
    }

    /// Forgets a flow that is over, and returns it: it is in no report.
    pub fn end(&mut self, key: &FlowKey) -> Option<SendFlow<P>> {
        let flow = self.flows.take(key)?;
        if let Some(open) = flow.coded.as_ref().and_then(|coded| coded.open) {
            self.open.remove(&open);
        }
        self.wrapping.steering.forget(flow.id.into());
        Some(flow)
    }

    /// Forgets idle flows; what is known of those that `waits` is true of stays.
    pub fn sweep(&mut self, waits: impl Fn(&FlowKey) -> bool, now: Seconds) {
        for flow in self.flows.expire(now) {
            if let Some(open) = flow.coded.as_ref().and_then(|coded| coded.open) {
                self.open.remove(&open);
            }
            if waits(&flow.key) {
                self.renew(flow, now);
            } else {
                self.over(flow);
            }
        }
    }

    /// Gives a flow that goes on later another number, and positions from 0 on: its receiver has forgotten it by then, and
    /// would miss what came before.
    fn renew(&mut self, flow: SendFlow<P>, now: Seconds) {
        self.wrapping.steering.forget(flow.id.into());
        let renewed = SendFlow {
            id: self.next_flow,
            position: 0,
            last: now,
            coded: None,
            window: None,
            round_trips: RoundTrips::default(),
            packets: 0,
            bytes: 0,
            repairs: 0,
            ..flow
        };
        self.next_flow = self.next_flow % u32::MAX + 1;
        self.flows.put(renewed.key, renewed);
    }

    /// Returns the estimate of pB towards a leaf, where coding needs one.
    pub fn blocking_probability(&mut self, leaf: LeafId, now: Seconds) -> Option<f64> {
        Some(self.estimators.get_mut(&leaf)?.blocking_probability(now))
    }

    /// Returns how many units came to k symbols in time and how many did not, under this policy's adaptive redundancy.
    pub fn unit_outcomes(&self) -> [u64; 2] {
        let sum = |count: fn(&Margin) -> u64| self.margins.values().map(count).sum();
        [sum(Margin::successes), sum(Margin::failures)]
    }

    fn note_end(&mut self, id: FlowId, end: Seconds) {
        if !self.wrapping.priorities.predicted() {
            return;
        }
        let flow = &mut self.flows[id];
        let ended = EndedFlow { key: flow.key, payload: flow.payload, first: flow.first, end };
        let reported = flow.reported;
        flow.reported |= flow.payload > 0;
        self.ended(ended, reported);
    }

    fn ended(&mut self, flow: EndedFlow, reported: bool) {
        if !self.wrapping.priorities.predicted() || reported || flow.payload == 0 {
            return;
        }
        self.ended.add(flow);
    }

    /// Records a flow that has ended, and makes its paths forget it.
    fn over(&mut self, flow: SendFlow<P>) {
        let ended = EndedFlow { key: flow.key, payload: flow.payload, first: flow.first, end: flow.last };
        self.ended(ended, flow.reported);
        self.wrapping.steering.forget(flow.id.into());
    }

    /// Returns the flow of a burst. An unknown flow, or a new connection on the ports of an old one, is short again,
    /// with positions of its own.
    fn flow<Q: Packet>(&mut self, burst: &Burst<P>, peers: &mut Peers<Q>, now: Seconds) -> FlowId {
        let key = burst.flow;
        if let Some(id) = self.flows.see(&key) {
            if !(burst.seen.opening && self.flows[id].payload > 0) {
                self.flows[id].last = now;
                return id;
            }
            self.close(id, peers, now);
            if let Some(gone) = self.flows.end(&key) {
                self.over(gone);
            }
        }
        self.begin(key, now)
    }

    /// Begins a flow of which nothing has left yet, and returns it.
    pub fn begin(&mut self, key: FlowKey, now: Seconds) -> FlowId {
        let mut flow = SendFlow::new(key, self.next_flow, now);
        flow.last = now;
        flow.announced = self.announced.take(&key);
        flow.short_bytes = self.policy.short_bytes(&flow);
        assign(&self.wrapping, &mut flow, &mut self.counts);
        self.next_flow = self.next_flow % u32::MAX + 1;
        let (id, gone) = self.flows.put(key, flow);
        if let Some(gone) = gone {
            if let Some(open) = gone.coded.as_ref().and_then(|coded| coded.open) {
                self.open.remove(&open);
            }
            self.over(gone);
        }
        id
    }
}

/// Some packets of a burst that leave in one class.
#[derive(Clone, Copy, Debug)]
struct Piece<'a, P> {
    burst: &'a Burst<P>,
    begin: u32,
    end: u32,
    class: TrafficClass,
    to: PeerId,
}

impl<P: Packets> Piece<'_, P> {
    /// Returns the piece as sources at the flow's next positions; control packets take none.
    fn sources(&self, flow: &mut SendFlow<P>) -> Sources<P> {
        let position = flow.position;
        if self.class != TrafficClass::Control {
            flow.position = position.wrapping_add(self.end - self.begin);
        }
        let Piece { burst, begin, end, .. } = *self;
        Sources { position, sizes: burst.sizes.part(begin, end), packets: burst.packets.part(begin, end) }
    }
}

fn assign<P>(wrapping: &Wrapping<P>, flow: &mut SendFlow<P>, counts: &mut Counts) {
    let SendFlow { payload, announced, .. } = *flow;
    let subject = crate::priority::Subject { key: flow.key.bytes(), payload, announced };
    match wrapping.priorities.assign(subject, &mut flow.priority) {
        Typed::NotAsked => {}
        Typed::Known => counts.add(Count::FlowsOfKnownType, 1),
        Typed::Unknown => counts.add(Count::FlowsOfUnknownType, 1),
    }
}
