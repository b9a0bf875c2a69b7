//! The sending half: class, path, priority and coding of every packet, and what peers' feedback teaches.

mod coded;
mod flow;
mod wrapping;

pub use coded::REPAIR_HEAD_BYTES;
pub use flow::{Announced, Coded, SendFlow, Timed};
pub use wrapping::{Subject, Wrapping};

use std::collections::{BTreeMap, HashMap, VecDeque};

use datapath::feedback::Feedback;
use datapath::inner::FlowKey;

use crate::blocking::{BlockingEstimator, EstimatorKind, Reported};
use crate::class::TrafficClass;
use crate::coding::{CodingPolicy, CodingRules, Margin, Verdict};
use crate::counts::{Count, Counts};
use crate::departure::{Content, Sources};
use crate::flow_table::{FlowId, FlowTable};
use crate::packet::{Burst, Packet, Packets, Sizes};
use crate::peers::{MarginId, Peer, PeerId, Peers};
use crate::sending::wrapping::Leaving;
use crate::priority::{FlowTypes, PriorityPolicy, Typed};
use crate::paths::{BoxedPolicy, Sent, Steering};
use crate::random::Generator;
use crate::route::LeafId;
use crate::serial::serial_difference;
use crate::Seconds;

/// Flows that were announced and have not begun.
pub const MAX_ANNOUNCED: usize = 65536;
/// Losses that one feedback adds to a counter at most.
const MOST_LOST: u32 = 65536;

/// How packets are sent: what of a policy document (protocol/policy.py) these decisions need.
#[derive(Clone, Debug)]
pub struct SendPolicy {
    /// Of 1500 B on the slowest fabric link.
    pub packet_time_s: Seconds,
    /// Payload that a flow sends as a short one, bytes.
    pub short_limit_bytes: u64,
    /// Whether announced sizes are believed.
    pub prior_knowledge: bool,
    /// Coding of short and long flows.
    pub coding: [Option<CodingPolicy>; 4],
    /// What estimates pB, where anything is coded.
    pub estimator: Option<EstimatorChoice>,
    /// Priorities.
    pub priority: PriorityPolicy,
    /// Types of flows with thresholds of their own.
    pub types: FlowTypes,
}

/// Which estimator of pB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatorChoice {
    /// By name.
    pub kind: EstimatorKind,
    /// None: the estimator's own.
    pub sampling_s: Option<Seconds>,
}

/// A flow of ours that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedFlow {
    /// Whose packets they were.
    pub key: FlowKey,
    /// What it has sent, bytes.
    pub payload: u64,
    /// When its first packet left.
    pub first: Seconds,
    /// When it ended.
    pub end: Seconds,
}

/// Ended flows that wait until the controller is informed; of more it is not.
pub const MOST_ENDED: usize = 4096;

/// Decides what becomes of the host's packets. One for all peers; P: packets of a burst.
pub struct Sender<P> {
    /// Flows of this host.
    pub flows: FlowTable<FlowKey, SendFlow<P>>,
    /// Path policies, priorities, and the datagrams that are to leave.
    pub wrapping: Wrapping<P>,
    /// Flows that have ended, where the policy predicts.
    pub ended: VecDeque<EndedFlow>,
    /// How many more ended.
    pub ended_dropped: u64,
    /// What this half counts.
    pub counts: Counts,
    policy: SendPolicy,
    classes: [Option<CodingRules>; 4],
    estimators: HashMap<LeafId, Box<dyn BlockingEstimator>>,
    margins: BTreeMap<MarginId, Margin>,
    open: BTreeMap<u64, FlowId>,
    opened: u64,
    announced: Announcements,
    next_flow: u32,
    random: Generator,
}

/// Path policies, and which of them serves each class.
pub struct Serving {
    /// Each once.
    pub policies: Vec<BoxedPolicy>,
    /// By class, its place among them.
    pub serves: [usize; 4],
}

impl<P: Packets> Sender<P> {
    /// Returns a sender without flows. Seeds of codes are drawn from `random`.
    pub fn new(policy: SendPolicy, paths: Serving, random: Generator) -> Sender<P> {
        let mut steering = Steering::default();
        steering.set_policies(paths.policies, paths.serves);
        let mut sender = Sender {
            flows: FlowTable::default(),
            wrapping: Wrapping::new(steering),
            ended: VecDeque::new(),
            ended_dropped: 0,
            counts: Counts::default(),
            policy: policy.clone(),
            classes: [None, None, None, None],
            estimators: HashMap::new(),
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

    /// Uses another policy from the next packet on; units that are open are closed by the old one.
    pub fn set_policy<Q: Packet>(&mut self, policy: SendPolicy, paths: Serving, peers: &mut Peers<Q>, now: Seconds) {
        self.close_all(peers, now);
        let [in_time, not_in_time] = self.unit_outcomes();
        self.counts.add(Count::UnitsInTime, in_time);
        self.counts.add(Count::UnitsNotInTime, not_in_time);
        self.margins.clear();
        self.wrapping.steering.set_policies(paths.policies, paths.serves);
        self.use_policy(policy);
        peers.ids().into_iter().for_each(|id| self.adopt(&mut peers[id]));
    }

    fn use_policy(&mut self, policy: SendPolicy) {
        self.wrapping.priorities.set(policy.priority.clone(), policy.types.clone());
        if !policy.priority.predicted {
            self.ended.clear();
        }
        self.classes = policy.coding.clone().map(|coding| coding.map(CodingRules::new));
        self.estimators.clear();
        self.policy = policy;
        for id in self.flows.ids() {
            let flow = &mut self.flows[id];
            (flow.coded, flow.window) = (None, None);
            flow.short_bytes = short_bytes(flow, &self.policy);
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
        if self.wrapping.steering.learns() {
            peer.departures.get_or_insert_default();
        } else {
            peer.departures = None;
        }
        let Some(EstimatorChoice { kind, sampling_s }) = self.policy.estimator else { return };
        let packet_time_s = self.policy.packet_time_s;
        let estimator = self.estimators.entry(leaf).or_insert_with(|| kind.estimator(packet_time_s, sampling_s));
        peer.outcomes.set_in_time(estimator.overdue_s());
    }

    /// Takes in that the host will send `size` bytes of payload on a flow, without end if that is infinite.
    pub fn announce(&mut self, key: FlowKey, size: f64) {
        if let Some(id) = self.flows.see(&key) {
            let flow = &mut self.flows[id];
            flow.announced = Some(Announced(size));
            flow.short_bytes = short_bytes(flow, &self.policy);
            assign(&self.wrapping, flow, &mut self.counts);
            if flow.payload == 0 {
                return;
            }
        }
        self.announced.add(key, size);
    }

    /// Returns how many flows were announced and have not begun.
    pub fn announced(&self) -> usize {
        self.announced.len()
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
    fn send_data<Q: Packet>(&mut self, id: FlowId, burst: &Burst<P>, to: PeerId, peers: &mut Peers<Q>, now: Seconds) {
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

    /// Takes in what a peer says of our datagrams.
    pub fn feedback<Q: Packet>(&mut self, peer: &mut Peer<Q>, feedback: &Feedback, now: Seconds) {
        let (leaf, lost) = (peer.known.leaf, &feedback.lost);
        if let Some(departures) = &peer.departures {
            let sent = Sent { leaf, log: &peer.sent, departures };
            let above_least = |delay_us| peer.least_delay.above(delay_us) as u32;
            self.wrapping.steering.learn(sent, feedback, above_least, now);
        }
        let mut known = self.estimators.get_mut(&leaf);
        for receipt in &feedback.receipts {
            let sent = peer.sent.arrived(receipt.number, receipt.stamp);
            if let Some(known) = known.as_mut().filter(|_| sent && receipt.stamp != 0) {
                peer.stamps.insert(receipt.stamp);
                known.path_delay(receipt.stamp, peer.least_delay.above(receipt.delay_us) as u32, now);
            }
        }
        if let Some(known) = known {
            let numbers = feedback.receipts.iter().map(|receipt| receipt.number);
            let (arrived, newest) = peer.outstanding.arrived(numbers);
            if let Some(newest) = newest {
                let overdue = peer.outstanding.overdue(newest - known.overdue_s());
                (0..overdue).for_each(|_| known.path_loss(None, now));
                known.reported(Reported { arrived: arrived as u64, overdue: overdue as u64 }, now);
            }
            if peer.outcomes.waiting() > 0 {
                let arrived = feedback.receipts.iter();
                let mut verdicts: Vec<_> =
                    arrived.filter_map(|one| peer.outcomes.arrived(one.number, one.delay_us)).collect();
                verdicts.extend(lost.iter().flat_map(|&(first, count)| peer.outcomes.lost(first, count)));
                verdicts.into_iter().for_each(|verdict| self.learn(verdict));
            }
        }
        self.counts.add(Count::RecoveredAtPeers, feedback.recovered.into());
        let lost = lost.iter().map(|&(_, count)| u64::from(count.min(MOST_LOST)));
        self.counts.add(Count::LostAtPeers, lost.sum());
    }

    fn learn(&mut self, verdict: Verdict<MarginId>) {
        if let Some(margin) = self.margins.get_mut(&verdict.margin) {
            margin.learn(verdict.success, verdict.most);
        }
    }

    /// Takes in that a TCP packet of a peer acknowledges what is before `number` of our flow `key`: it may time a segment
    /// (Karn: not a repeated one).
    pub fn acknowledged(&mut self, leaf: LeafId, key: &FlowKey, number: u32, now: Seconds) {
        let Some(known) = self.estimators.get_mut(&leaf) else { return };
        let Some(id) = self.flows.see(key) else { return };
        let flow = &mut self.flows[id];
        if let Some(window) = &mut flow.window {
            window.acknowledged(number);
        }
        if let Some(timed) = flow.timed.filter(|timed| serial_difference(number, timed.end) >= 0) {
            known.ack_rtt(now - timed.left, now);
            flow.timed = None;
        }
    }

    /// Returns true if acknowledgements of peers at a leaf are of use.
    pub fn times_acknowledgements(&self, leaf: LeafId) -> bool {
        self.estimators.contains_key(&leaf)
    }

    /// Sends a peer what came of its datagrams.
    pub fn send_feedback<Q: Packet>(&mut self, peer: &mut Peer<Q>, now: Seconds) {
        for feedback in peer.pending.take() {
            self.counts.add(Count::FeedbacksSent, 1);
            let (subject, bytes) = (self.wrapping.own(peer), feedback.encoded_bytes());
            let mut ports = Vec::with_capacity(1);
            let sizes = Sizes { count: 1, each: bytes, last: bytes };
            self.wrapping.draw(subject, peer, sizes, now, &mut ports);
            let content = Content::Feedback(feedback);
            let leaving = Leaving { subject, coded: false, reported: false, ecn: 0, ports, content };
            self.wrapping.leave(peer, leaving, now);
        }
    }

    /// Forgets idle flows.
    pub fn sweep(&mut self, now: Seconds) {
        for flow in self.flows.expire(now) {
            if let Some(open) = flow.coded.as_ref().and_then(|coded| coded.open) {
                self.open.remove(&open);
            }
            self.over(flow);
        }
    }

    /// Returns the estimate of pB towards a leaf, where coding needs one.
    pub fn blocking_probability(&mut self, leaf: LeafId, now: Seconds) -> Option<f64> {
        Some(self.estimators.get_mut(&leaf)?.blocking_probability(now))
    }

    /// Returns the estimator of pB towards a leaf, where coding needs one.
    pub fn estimator(&mut self, leaf: LeafId) -> Option<&mut (dyn BlockingEstimator + 'static)> {
        self.estimators.get_mut(&leaf).map(|known| &mut **known)
    }

    /// Returns how many units came to k symbols in time and how many did not, under this policy's adaptive redundancy.
    pub fn unit_outcomes(&self) -> [u64; 2] {
        let sum = |what: fn(&Margin) -> u64| self.margins.values().map(what).sum();
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
        if self.ended.len() >= MOST_ENDED {
            self.ended_dropped += 1;
        } else {
            self.ended.push_back(flow);
        }
    }

    /// A flow is gone.
    fn over(&mut self, flow: SendFlow<P>) {
        let ended = EndedFlow { key: flow.key, payload: flow.payload, first: flow.first, end: flow.last };
        self.ended(ended, flow.reported);
        self.wrapping.steering.forget(flow.id.into());
    }

    /// The flow of a burst. One that is not known, or a new connection on the ports of an old one, is short again, with
    /// positions of its own.
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
        let mut flow = SendFlow::new(key, self.next_flow, now);
        flow.last = now;
        flow.announced = self.announced.take(&key).map(Announced);
        flow.short_bytes = short_bytes(&flow, &self.policy);
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

/// Payload of flows that have not begun; of too many, those announced last.
#[derive(Debug, Default)]
struct Announcements {
    sizes: HashMap<FlowKey, (u64, f64)>,
    order: BTreeMap<u64, FlowKey>,
    next: u64,
}

impl Announcements {
    fn len(&self) -> usize {
        self.sizes.len()
    }

    fn add(&mut self, key: FlowKey, size: f64) {
        self.take(&key);
        if self.sizes.len() >= MAX_ANNOUNCED {
            if let Some((_, oldest)) = self.order.pop_first() {
                self.sizes.remove(&oldest);
            }
        }
        self.sizes.insert(key, (self.next, size));
        self.order.insert(self.next, key);
        self.next += 1;
    }

    fn take(&mut self, key: &FlowKey) -> Option<f64> {
        let (order, size) = self.sizes.remove(key)?;
        self.order.remove(&order);
        Some(size)
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
    /// The piece as sources at the flow's next positions; control packets take none.
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
    let announced = flow.announced.map(|Announced(size)| size);
    let subject = crate::priority::Subject { key: &flow.key, payload: flow.payload, announced };
    match wrapping.priorities.assign(subject, &mut flow.priority) {
        Typed::NotAsked => {}
        Typed::Known => counts.add(Count::FlowsOfKnownType, 1),
        Typed::Unknown => counts.add(Count::FlowsOfUnknownType, 1),
    }
}

/// Payload that a flow sends as a short one.
///
/// Of an announced flow, all or nothing: one that was announced as short has twice the limit for what TCP sends again,
/// and beyond that the announcement was wrong.
fn short_bytes<P>(flow: &SendFlow<P>, policy: &SendPolicy) -> u64 {
    let limit = policy.short_limit_bytes;
    match flow.announced {
        Some(Announced(size)) if policy.prior_knowledge => {
            if size < limit as f64 {
                2 * limit
            } else {
                0
            }
        }
        _ => limit,
    }
}
