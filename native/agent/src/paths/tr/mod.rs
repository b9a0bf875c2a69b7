//! Traffic-aware rerouting in order: TR.
//!
//! "Fine-grained load balancing with traffic-aware rerouting in datacenter networks", Journal of Cloud Computing 10,
//! 2021, doi:10.1186/s13677-021-00252-8, Algorithm 1. TNL is the *time to next leaf*. A packet may take the paths S
//! whose TNL is not below what the flow's previous packet still needs (c_TNL >= p_TNL), so it cannot overtake. Of S a
//! short flow takes the path with the smallest TNL, a long flow that with the fewest active short flows, ties by
//! TNL. A flow without a packet for a round-trip time is inactive.
//!
//! The paper runs on the leaf switch, which sees all its queues, and reads the others' lengths off the ACKs' TTL field.
//! An agent has the one-way delays of its own packets instead, and they are old when they come. Hence:
//!
//! - *at least* (for c_TNL): the newest delay less the time since; a queue cannot shrink faster than time passes.
//! - *expected* (for p_TNL): Lindley's recursion from the newest delay over what this agent has sent there since, and
//!   a margin for what others send meanwhile: four times by how much packets there are later than that in the mean (as
//!   TCP's time-out has four deviations), and not less than by how much one on any path was of late, for an agent has sent
//!   little on most. Not less than for how long the flow's previous packet is overdue; 0 once it is reported.
//! - To compare paths: the largest of what is expected, the newest delay (a long queue mostly lasts), for how long a
//!   packet there is overdue (what waits reports nothing), and what other agents of the leaf say that they wait there.
//!
//! Delays are above the least to the same peer, so what all paths take cancels out. What a path takes more than the fastest
//! while it is idle (of Eq. 1, pd_j) is added to each of these, where it is known (`LivePaths::idle_us`: in simulations).
//! Elsewhere it is part of the measured delay, and is taken to drain as a queue does.

mod path;
mod short;

use std::collections::BTreeMap;

use crate::class::TrafficClass;
use crate::hash::NumberMap;
use crate::paths::{flow_entropy, Load, PathId, PathPolicy, Report, Train};
use crate::route::{FlowRef, LeafId, Route, RouteId};
use crate::time::Seconds;
use crate::underlay::{is_stamp, label_of, stamp_of_label};
use path::{Ages, Path};
use short::ShortFlows;

/// Bytes of the packet that a packet time is the time of.
pub const PACKET_BYTES: f64 = 1500.0;
/// Round-trip time while none is measured, in packet times.
pub const FIRST_RTT_PACKET_TIMES: f64 = 32.0;
/// Packet times of a full buffer: longer nothing waits, and for so long a queue is taken to stay as it was.
pub const FULL_PACKET_TIMES: f64 = 256.0;
/// Packet times for which what others said is believed, if they say nothing more: they speak when it changes.
pub const SHARED_PACKET_TIMES: f64 = 2048.0;
/// What is left of the worst error after another report: half of it after 44.
pub const WORST_DECAY: f64 = 1.0 - 1.0 / 64.0;
/// Packet times of the steps in which delays are shared: less is not worth a message.
pub const STEP_PACKET_TIMES: f64 = 8.0;

/// Where a flow's packets went.
#[derive(Clone, Copy, Debug)]
struct Sent {
    way: Way,
    /// When all its packets so far have arrived, as far as is known.
    arrives: Seconds,
    /// When the last of them left, and how many of those were not reported.
    last: Seconds,
    pending: i64,
}

/// A label of a route, and where in `Tr::paths` its path is.
#[derive(Clone, Copy, Debug)]
struct Way {
    label: u16,
    path: usize,
}

/// The ways of a route, while its labels have this version.
#[derive(Clone, Debug)]
struct Ways {
    version: u32,
    ways: Vec<Way>,
}

/// Reroutes packets where they overtake nothing. Without names of paths, a flow keeps one entropy value.
#[derive(Clone, Debug)]
pub struct Tr {
    byte_s: Seconds,
    packet_time_s: Seconds,
    rtt: Seconds,
    measured: bool,
    lag: Seconds,
    lag_deviation: Seconds,
    /// By how much a packet was later than expected at most, on any path and of late.
    worst_error: Seconds,
    full_s: Seconds,
    shared_s: Seconds,
    step_s: Seconds,
    paths: Vec<Path>,
    places: NumberMap<PathId, usize>,
    /// By place: which path it is, and whether it is among `speaking`.
    ids: Vec<(PathId, bool)>,
    /// Places of paths whose delay may be above 0: all others have none to share.
    speaking: Vec<usize>,
    /// Places of paths of which other agents said something.
    reported_places: Vec<usize>,
    ways: NumberMap<RouteId, Ways>,
    flows: NumberMap<i64, Sent>,
    short: ShortFlows,
    /// Active short flows of other agents, by label.
    others: NumberMap<u16, i64>,
}

impl Tr {
    /// Returns a policy; `packet_time_s`: of 1500 B on the slowest fabric link.
    pub fn new(packet_time_s: Seconds) -> Tr {
        let rtt = FIRST_RTT_PACKET_TIMES * packet_time_s;
        Tr {
            byte_s: packet_time_s / PACKET_BYTES,
            packet_time_s,
            rtt,
            measured: false,
            lag: rtt,
            lag_deviation: 0.0,
            worst_error: 0.0,
            full_s: FULL_PACKET_TIMES * packet_time_s,
            shared_s: SHARED_PACKET_TIMES * packet_time_s,
            step_s: STEP_PACKET_TIMES * packet_time_s,
            paths: Vec::new(),
            places: NumberMap::default(),
            ids: Vec::new(),
            speaking: Vec::new(),
            reported_places: Vec::new(),
            ways: NumberMap::default(),
            flows: NumberMap::default(),
            short: ShortFlows::default(),
            others: NumberMap::default(),
        }
    }

    /// Returns the path by Algorithm 1. Of paths that are equal a flow keeps its own, and a new flow draws by hash.
    fn choose(&mut self, flow: FlowRef, route: &Route, now: Seconds) -> Way {
        let own = self.flows.get(&flow.id).copied().filter(|sent| route.names(sent.way.label));
        let left = own.map_or(0.0, |sent| self.still_needs(&sent, now));
        let here = own.map_or(0, |sent| sent.way.label);
        let ages = self.ages();
        let long = route.class == TrafficClass::Long;
        if long {
            self.short.expire(now, self.rtt);
        } else if here != 0 {
            let path = self.place(route.leaf, here);
            if self.paths[path].rank(now, ages) <= 0.0 {
                return Way { label: here, path };
            }
        }
        self.know(route);
        let ways = &self.ways[&route.id()].ways;
        let mut best: Option<(Way, i64, Seconds)> = None;
        for &way in ways {
            let path = &mut self.paths[way.path];
            if left > 0.0 && way.label != here && path.at_least(now) < left {
                continue; // c_TNL is below p_TNL
            }
            let crowd = if long {
                self.short.on(way.label).saturating_add(self.others.get(&way.label).copied().unwrap_or(0))
            } else {
                0
            };
            let expected = path.rank(now, ages);
            let better = best.is_none_or(|(other, fewest, least)| {
                if crowd == fewest && expected == least {
                    sooner(flow, way.label, other.label, here)
                } else {
                    crowd < fewest || (crowd == fewest && expected < least)
                }
            });
            if better {
                best = Some((way, crowd, expected));
            }
        }
        best.map_or(Way { label: 0, path: 0 }, |(way, ..)| way)
    }

    /// Returns p_TNL: for how long the flow's previous packets are on their way still.
    fn still_needs(&self, sent: &Sent, now: Seconds) -> Seconds {
        let remaining_s = sent.arrives - now;
        if sent.pending > 0 {
            let overdue =
                now - sent.last - self.lag - 4.0 * self.lag_deviation - self.paths[sent.way.path].idle();
            if remaining_s < overdue && overdue <= self.full_s {
                return overdue;
            }
        }
        remaining_s
    }

    fn ages(&self) -> Ages {
        Ages { lag: self.lag + 4.0 * self.lag_deviation, full: self.full_s, shared: self.shared_s }
    }

    /// Prepares the paths of a route.
    fn know(&mut self, route: &Route) {
        let id = route.id();
        if self.ways.get(&id).is_some_and(|known| known.version == route.version) {
            return;
        }
        let mut ways = Vec::with_capacity(route.labels.len());
        for (number, &label) in route.labels.iter().enumerate() {
            let path = self.place(route.leaf, label);
            let idle_us = route.idle_us.get(number).copied().unwrap_or(0);
            self.paths[path].set_idle(f64::from(idle_us) * 1e-6);
            ways.push(Way { label, path });
        }
        self.ways.insert(id, Ways { version: route.version, ways });
    }

    fn place(&mut self, leaf: LeafId, label: u16) -> usize {
        let id = PathId { leaf, stamp: stamp_of_label(label) };
        *self.places.entry(id).or_insert_with(|| {
            self.paths.push(Path::default());
            self.ids.push((id, false));
            self.paths.len() - 1
        })
    }

    /// Notes that a path's delay may be above 0 from now on.
    fn speaks(&mut self, place: usize) {
        if !std::mem::replace(&mut self.ids[place].1, true) {
            self.speaking.push(place);
        }
    }

    /// Notes that so many packets of a flow, of so many bytes together, leave.
    fn note(&mut self, train: &Train, bytes: u64, way: Way, now: Seconds) {
        let flow = train.flow.id;
        if flow < 0 {
            return; // our feedback is not reported, and needs no order
        }
        self.speaks(way.path);
        let path = &mut self.paths[way.path];
        path.put(bytes as f64 * self.byte_s, now);
        let margin = (4.0 * path.mean_error()).max(self.worst_error);
        let arrives = now + path.expected(now) + margin + self.packet_time_s;
        let begun = Sent { way, arrives: 0.0, last: -1.0, pending: 0 };
        let sent = self.flows.entry(flow).or_insert(begun);
        sent.way = way;
        if sent.last == now {
            sent.pending += train.count as i64;
        } else {
            (sent.last, sent.pending) = (now, train.count as i64);
        }
        sent.arrives = sent.arrives.max(arrives);
        match train.route.class {
            TrafficClass::Short => self.short.sent(flow, way.label, now),
            TrafficClass::Long => self.short.silence(flow), // it has grown long
            _ => (),
        }
    }

    /// Returns the port of all packets of a train: one decision, for at one time the next packet's S is the path of the
    /// one before and those that are worse.
    fn port(&mut self, train: &Train, now: Seconds) -> u16 {
        if train.route.labels.is_empty() {
            return flow_entropy(train.flow, 0);
        }
        let way = self.choose(train.flow, train.route, now);
        let others = train.count.saturating_sub(1) as u64;
        self.note(train, others * u64::from(train.size) + u64::from(train.last), way, now);
        way.label
    }

    fn measure(&mut self, rtt: Seconds, lag: Seconds) {
        if self.measured {
            self.rtt += (rtt - self.rtt) / 8.0;
        } else {
            (self.rtt, self.measured) = (rtt, true);
        }
        self.lag_deviation += ((lag - self.lag).abs() - self.lag_deviation) / 4.0;
        self.lag += (lag - self.lag) / 8.0;
    }
}

impl PathPolicy for Tr {
    fn learns(&self) -> bool {
        true
    }

    fn source_port(&mut self, flow: FlowRef, route: &Route, size: u32, now: Seconds) -> u16 {
        self.port(&Train { flow, route, size, last: size, count: 1 }, now)
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        if train.count > 0 {
            let port = self.port(&train, now);
            ports.extend(std::iter::repeat_n(port, train.count));
        }
    }

    fn reported(&mut self, report: &Report, now: Seconds) {
        if !is_stamp(report.stamp) {
            return;
        }
        let path = self.place(report.leaf, label_of(report.stamp));
        let idle = self.paths[path].idle();
        self.measure(now - report.sent, now - report.sent - report.delay_s - idle);
        if let Some(later) = self.paths[path].measured(report.delay_s, report.sent) {
            self.worst_error = later.max(self.worst_error * WORST_DECAY);
        }
        self.speaks(path);
        let Some(sent) = self.flows.get_mut(&report.flow) else { return };
        if report.sent == sent.last {
            sent.pending -= 1;
            if sent.pending <= 0 {
                sent.arrives = 0.0; // and so have those before it, by the order that is kept
            }
        }
    }

    fn forget(&mut self, flow: i64) {
        self.flows.remove(&flow);
        self.short.silence(flow);
    }

    fn load(&mut self, now: Seconds) -> Option<Load> {
        self.short.expire(now, self.rtt);
        let ages = self.ages();
        let mut delays_s = BTreeMap::new();
        let (paths, ids, step_s) = (&mut self.paths, &mut self.ids, self.step_s);
        self.speaking.retain(|&place| {
            let late = paths[place].late(now, ages);
            if late >= step_s {
                delays_s.insert(ids[place].0, (late / step_s).trunc() * step_s);
                return true;
            }
            ids[place].1 = !paths[place].is_silent(now, ages);
            ids[place].1
        });
        let short_flows =
            self.short.by_label().map(|(label, count)| (stamp_of_label(label), count)).collect();
        Some(Load { short_flows, delays_s })
    }

    fn set_load(&mut self, load: &Load, now: Seconds) {
        self.others = load.short_flows.iter().map(|(&stamp, &count)| (label_of(stamp), count)).collect();
        for place in self.reported_places.drain(..) {
            self.paths[place].clear_others();
        }
        for (id, &delay) in &load.delays_s {
            let place = self.place(id.leaf, label_of(id.stamp));
            self.paths[place].set_others(delay, now);
            self.reported_places.push(place);
        }
    }
}

/// Returns true if `label` comes before an equal one. Flows that know nothing of paths spread over all of them.
fn sooner(flow: FlowRef, label: u16, other: u16, here: u16) -> bool {
    if label == here || other == here {
        return label == here;
    }
    mixed(flow.hash, label) < mixed(flow.hash, other)
}

fn mixed(flow_hash: u32, label: u16) -> u64 {
    let spread = u64::from(flow_hash) ^ (u64::from(label) * 0x9E37_79B1);
    spread.wrapping_mul(0x85EB_CA6B) >> 7 & 0xFFFF
}

#[cfg(test)]
mod tests;
