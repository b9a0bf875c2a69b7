//! The coding half of sending: units of each flow, their size and redundancy, and the repairs behind them.

use datapath::header::REPAIR_HEAD_BYTES;

use crate::class::TrafficClass;
use crate::coding::{
    Aim, ClosedUnit, Margin, PathTimes, Progress, RedundancyRule, Source, UnitEncoder, UnitRule, FLOW_PACKETS,
};
use crate::counts::Count;
use crate::departure::{Content, Repairs, Sources};
use crate::flow_table::FlowId;
use crate::packet::{Packet, Packets, Sizes};
use crate::peers::{MarginId, Peer, Peers};
use crate::sending::wrapping::{Leaving, Subject};
use crate::sending::{Coded, Piece, Sender};
use crate::Seconds;

/// TCP segments that leave: all of `size` bytes of payload but the last, `payload` bytes in all.
#[derive(Clone, Copy, Debug)]
struct Segments {
    start: u32,
    payload: u64,
    size: u32,
}

/// The sources of a burst that leave in one class, as units take them in.
struct Intake {
    /// Of those taken so far.
    ports: Vec<u16>,
    /// Number of the next datagram.
    number: u32,
    /// Sources taken so far.
    at: u32,
}

impl<P: Packets> Sender<P> {
    /// Wraps packets of a coded class, each unit's repairs behind its last one; all leave together.
    pub(super) fn send_coded<Q: Packet>(
        &mut self,
        id: FlowId,
        piece: Piece<'_, P>,
        peers: &mut Peers<Q>,
        now: Seconds,
    ) {
        let Piece { burst, begin, end, class, to } = piece;
        if self.flows[id].coded.as_ref().is_some_and(|coded| coded.peer != to) {
            self.close(id, peers, now); // its destination is at another agent now, which knows nothing of this unit
        }
        let peer = &mut peers[to];
        let step = burst.step.max(1);
        let payload = |packets: u32| (u64::from(begin + packets) * u64::from(step)).min(burst.payload());
        let before = payload(0);
        let segments = |from: u32, until: u32| {
            let start = burst.sequence?.wrapping_add(payload(from) as u32);
            Some(Segments { start, payload: payload(until) - payload(from), size: step })
        };
        let Some(rules) = &self.classes[class.index()] else { return };
        let flow = &mut self.flows[id];
        let coded = flow.coded.get_or_insert_with(|| Coded {
            encoder: UnitEncoder::new(rules),
            class,
            unit: None,
            peer: to,
            open: None,
        });
        coded.peer = to;
        let subject = Subject::of(flow, class);
        let sizes = burst.sizes.part(begin, end);
        let datagrams = sizes.count + sizes.count / 4 + 4; // with a common share of repairs: no growth
        let mut taken = Intake { ports: Vec::with_capacity(datagrams as usize), number: peer.number, at: 0 };
        let (mut closed, mut timed, mut blocked) = (Vec::new(), 0, None);
        while taken.at < sizes.count {
            if !self.is_open(id) && self.estimators.contains_key(&peer.known.leaf) {
                // what a unit is planned by has seen its first packet
                self.tcp_left(id, class, segments(timed, taken.at + 1), now);
                timed = taken.at + 1;
                let pb = *blocked.get_or_insert_with(|| self.blocked(peer, now));
                let sent_bytes = self.flows[id].payload + payload(taken.at) - before;
                self.plan_unit(id, peer, pb, sent_bytes);
            }
            let part = Part {
                sizes,
                subject,
                packets: burst.packets.part(begin, end),
                push: burst.seen.push && end == burst.sizes.count,
            };
            self.take_part(id, peer, &mut taken, part, &mut closed, now);
        }
        self.tcp_left(id, class, segments(timed, sizes.count), now);
        let repairs = taken.ports.len() as u64 - u64::from(sizes.count);
        let flow = &mut self.flows[id];
        flow.repairs += repairs;
        self.counts.add(Count::RepairsSent, repairs);
        let position = flow.position;
        flow.position = position.wrapping_add(sizes.count);
        let sources = Sources { position, sizes, packets: burst.packets.part(begin, end) };
        let content = Content::Packets { sources: Some(sources), repairs: closed };
        let reported = self.estimators.contains_key(&peer.known.leaf);
        let leaving = Leaving { subject, coded: true, reported, ecn: burst.ecn, ports: taken.ports, content };
        self.wrapping.leave(peer, leaving, now);
        self.note_open(id);
    }

    /// Adds to the open unit as many packets as it has room for.
    fn take_part<Q: Packet>(
        &mut self,
        id: FlowId,
        peer: &mut Peer<Q>,
        taken: &mut Intake,
        part: Part<P>,
        out: &mut Vec<Repairs<P>>,
        now: Seconds,
    ) {
        let Part { sizes, subject, packets, push } = part;
        let flow = &mut self.flows[id];
        let Some(coded) = &mut flow.coded else { return };
        let Some(rules) = &mut self.classes[subject.class.index()] else { return };
        let begin = taken.at;
        let end = sizes.count.min(begin + coded.encoder.room());
        let cut = sizes.part(begin, end);
        if let Some(unit) = coded.unit {
            peer.outcomes.sent(taken.number, end - begin, unit);
        }
        taken.at = end;
        taken.number = taken.number.wrapping_add(end - begin);
        self.wrapping.draw(subject, peer, cut, now, &mut taken.ports);
        let source = Source {
            position: flow.position.wrapping_add(begin),
            count: end - begin,
            longest: cut.longest(),
            push: push && end == sizes.count,
            payload: packets.part(begin, end),
        };
        let mut repairs = 0;
        for unit in coded.encoder.take(source, now, rules, &mut self.random) {
            if let Some(open) = coded.unit {
                peer.outcomes.sent(taken.number, unit.r, open);
            }
            taken.number = taken.number.wrapping_add(unit.r);
            repairs += unit.r;
            self.wrapping.draw(subject, peer, repair_sizes(&unit), now, &mut taken.ports);
            out.push(Repairs { behind: end, unit });
        }
        if coded.encoder.open_packets() == 0 {
            self.end_unit(id, peer, repairs);
        }
    }

    /// Returns when a unit has to be closed; None while none is open.
    pub fn deadline(&self) -> Option<Seconds> {
        let deadlines =
            self.open.values().filter_map(|&id| self.flows[id].coded.as_ref()?.encoder.deadline());
        deadlines.min_by(f64::total_cmp)
    }

    /// Closes the units that got no packet for too long.
    pub fn handle_timer<Q: Packet>(&mut self, peers: &mut Peers<Q>, now: Seconds) {
        let due = |id: &FlowId| {
            let deadline = self.flows[*id].coded.as_ref().and_then(|coded| coded.encoder.deadline());
            deadline.is_some_and(|deadline| now >= deadline)
        };
        let due: Vec<FlowId> = self.open.values().copied().filter(due).collect();
        due.into_iter().for_each(|id| self.close(id, peers, now));
    }

    pub(super) fn close_all<Q: Packet>(&mut self, peers: &mut Peers<Q>, now: Seconds) {
        let open: Vec<FlowId> = self.open.values().copied().collect();
        open.into_iter().for_each(|id| self.close(id, peers, now));
    }

    /// Closes the flow's unit if one is open, and sends its repairs.
    pub(super) fn close<Q: Packet>(&mut self, id: FlowId, peers: &mut Peers<Q>, now: Seconds) {
        let flow = &mut self.flows[id];
        let Some(coded) = &mut flow.coded else { return };
        if let Some(open) = coded.open.take() {
            self.open.remove(&open);
        }
        let Some(rules) = &mut self.classes[coded.class.index()] else { return };
        if coded.encoder.open_packets() == 0 {
            return;
        }
        let (class, open) = (coded.class, coded.unit);
        let unit = coded.encoder.end(rules, &mut self.random);
        let Some(peer) = peers.get_mut(coded.peer) else {
            coded.unit = None;
            self.counts.add(Count::UnitsSent, 1);
            return;
        };
        let repairs = unit.as_ref().map_or(0, |unit| unit.r);
        if let Some(unit) = unit {
            if let Some(open) = open {
                peer.outcomes.sent(peer.number, unit.r, open);
            }
            let subject = Subject::of(flow, class);
            flow.repairs += u64::from(repairs);
            self.counts.add(Count::RepairsSent, repairs.into());
            let mut ports = Vec::with_capacity(repairs as usize);
            self.wrapping.draw(subject, peer, repair_sizes(&unit), now, &mut ports);
            let content = Content::Packets { sources: None, repairs: vec![Repairs { behind: 0, unit }] };
            let reported = self.estimators.contains_key(&peer.known.leaf);
            let leaving = Leaving { subject, coded: true, reported, ecn: 0, ports, content };
            self.wrapping.leave(peer, leaving, now);
        }
        self.end_unit(id, peer, repairs);
    }

    fn is_open(&self, id: FlowId) -> bool {
        self.flows[id].coded.as_ref().is_some_and(|coded| coded.encoder.open_packets() > 0)
    }

    fn blocked<Q: Packet>(&mut self, peer: &Peer<Q>, now: Seconds) -> f64 {
        self.blocking_probability(peer.known.leaf, now).unwrap_or(0.0)
    }

    /// Notes whether the flow's unit has to be closed in time.
    fn note_open(&mut self, id: FlowId) {
        let Some(coded) = &mut self.flows[id].coded else { return };
        let is_open = coded.encoder.open_packets() > 0;
        match coded.open {
            None if is_open => {
                self.opened += 1;
                coded.open = Some(self.opened);
                self.open.insert(self.opened, id);
            }
            Some(open) if !is_open => {
                coded.open = None;
                self.open.remove(&open);
            }
            _ => {}
        }
    }

    /// Notes that TCP segments of a flow leave: times a round trip, and extends the window.
    fn tcp_left(&mut self, id: FlowId, class: TrafficClass, segments: Option<Segments>, now: Seconds) {
        let Some(Segments { start, payload, size }) = segments.filter(|segments| segments.payload > 0) else {
            return;
        };
        let flow = &mut self.flows[id];
        flow.round_trips.sent(start, start.wrapping_add(payload as u32), now);
        let rules = self.classes[class.index()].as_ref();
        if rules.is_some_and(|rules| rules.policy().unit == UnitRule::Window) {
            flow.window.get_or_insert_default().sent(start, payload as u32, size);
        }
    }

    /// Chooses the size and redundancy of a unit that begins. `pb`: of one packet; `sent_bytes`: payload of the flow
    /// before it.
    fn plan_unit<Q: Packet>(&mut self, id: FlowId, peer: &mut Peer<Q>, pb: f64, sent_bytes: u64) {
        let flow = &mut self.flows[id];
        let Some(coded) = &mut flow.coded else { return };
        let Some(rules) = &mut self.classes[coded.class.index()] else { return };
        let leaf = peer.known.leaf;
        let Some(known) = self.estimators.get(&leaf) else { return };
        let mut blocked = pb;
        if rules.policy().redundancy == RedundancyRule::Adaptive {
            let margin_id = MarginId { leaf, class: coded.class };
            let target = rules.policy().target_decode_probability;
            let margin = self.margins.entry(margin_id).or_insert_with(|| Margin::new(target));
            coded.unit = (pb > 0.0).then(|| peer.outcomes.open(margin_id));
            blocked = margin.corrected(pb);
        }
        let window = flow.window.as_ref().map(|window| window.packets());
        let k = if rules.policy().unit == UnitRule::Window {
            window.filter(|&packets| packets > 0).unwrap_or(rules.policy().max_k)
        } else {
            let times = PathTimes {
                blocking_probability: blocked,
                rtt_s: known.rtt_s(),
                blocked_rtt_s: known.blocked_rtt_s(),
                // when all known paths carry one packet at a time
                packet_time_s: self.policy.packet_time_s / peer.stamps.len().max(1) as f64,
            };
            rules.optimal_k(&times, FLOW_PACKETS)
        };
        let aim = Aim { blocking_probability: blocked, k, flow: Progress { sent_bytes, window } };
        coded.encoder.set_aim(aim, rules);
    }

    /// Notes that the flow's unit is closed and its repairs have left.
    fn end_unit<Q: Packet>(&mut self, id: FlowId, peer: &mut Peer<Q>, repairs: u32) {
        self.counts.add(Count::UnitsSent, 1);
        let Some(coded) = &mut self.flows[id].coded else { return };
        let Some(unit) = coded.unit.take() else { return };
        let k = peer.outcomes.symbols(unit).saturating_sub(repairs);
        let rules = self.classes[coded.class.index()].as_ref();
        let most = rules.is_some_and(|rules| repairs >= rules.repair_bound(k));
        let verdict = peer.outcomes.closed(unit, k, most);
        verdict.into_iter().for_each(|verdict| self.learn(verdict));
    }
}

/// Packets of a coded class that leave together.
struct Part<P> {
    sizes: Sizes,
    subject: Subject,
    packets: P,
    push: bool,
}

/// Returns the sizes of a unit's repairs, as path policies see them.
fn repair_sizes<P>(unit: &ClosedUnit<P>) -> Sizes {
    let bytes = REPAIR_HEAD_BYTES as u32 + unit.symbol_bytes;
    Sizes { count: unit.r, each: bytes, last: bytes }
}
