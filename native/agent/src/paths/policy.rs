//! What every path policy is, and what it learns of its packets.

use std::collections::BTreeMap;

use crate::route::{FlowRef, LeafId, Route};
use crate::time::Seconds;
use crate::underlay::{EVS, EV_FIRST};

/// Packets of one flow that leave at once: all of `size` bytes but the last, of `last`.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    /// Whose packets they are.
    pub flow: FlowRef,
    /// Where they may go.
    pub route: &'a Route,
    /// Bytes of each inner packet but the last.
    pub size: u32,
    /// Bytes of the last inner packet.
    pub last: u32,
    /// How many they are.
    pub count: usize,
}

/// A peer got one of our datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The datagram's flow.
    pub flow: i64,
    /// The peer's leaf.
    pub leaf: LeafId,
    /// Source port that it left with.
    pub port: u16,
    /// Path that it took; 0: it crossed no top tier.
    pub stamp: u16,
    /// Its one-way delay above the least to that peer, what their paths take while idle apart.
    pub delay_s: Seconds,
    /// When it left.
    pub sent: Seconds,
    /// Whether a switch marked it (ECN).
    pub marked: bool,
}

impl Report {
    /// Returns true if its path was congested: a switch marked it, or, since not all mark, it was late by more than
    /// `congested_s`.
    pub fn is_congested(&self, congested_s: Seconds) -> bool {
        self.marked || self.delay_s > congested_s
    }
}

/// A path: a destination leaf, and the stamp of the switch that turns it downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId {
    /// Where it leads.
    pub leaf: LeafId,
    /// Which of the ways there.
    pub stamp: u16,
}

/// What agents of a leaf say to each other of its paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Active short flows, by path stamp.
    pub short_flows: BTreeMap<u16, i64>,
    /// What packets wait there, above the least; a path that is missing is free, or not known.
    pub delays_s: BTreeMap<PathId, Seconds>,
}

/// Chooses the source port of each packet: an entropy value, or one of the route's labels.
///
/// One policy serves all classes of a scheme that name the same kind with the same parameters, so a flow that grows long
/// keeps its state. What is kept of a flow is kept by its id, until `forget`.
pub trait PathPolicy {
    /// Returns true if `reported` and `lost` are of any use.
    fn learns(&self) -> bool {
        false
    }

    /// Returns the source port of the next packet of a flow; `size`: bytes of the inner packet.
    fn source_port(&mut self, flow: FlowRef, route: &Route, size: u32, now: Seconds) -> u16;

    /// Appends the source ports of the next packets of a flow: those that `source_port` gives one by one.
    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        for remaining in (0..train.count).rev() {
            let size = if remaining == 0 { train.last } else { train.size };
            ports.push(self.source_port(train.flow, train.route, size, now));
        }
    }

    /// Appends the source port of the first packet of a train for each of them: one decision, where `source_port` would
    /// give the others the same.
    fn repeat(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        if train.count > 0 {
            let size = if train.count == 1 { train.last } else { train.size };
            let port = self.source_port(train.flow, train.route, size, now);
            ports.extend(std::iter::repeat_n(port, train.count));
        }
    }

    /// Notes that a datagram of this policy has arrived. Reports come in any order, and may not come at all.
    fn reported(&mut self, _report: &Report, _now: Seconds) {}

    /// Notes that the peer at `leaf` has given up a datagram of that flow, which left with that source port.
    fn lost(&mut self, _flow: i64, _leaf: LeafId, _port: u16, _now: Seconds) {}

    /// Drops what is kept of a flow that is over.
    fn forget(&mut self, _flow: i64) {}

    /// Sets which path the controller has granted a flow; what is no stamp: none of its own.
    fn granted(&mut self, _flow: i64, _stamp: u16) {}

    /// Returns what the other agents of our leaf are to know of us; None: nothing.
    fn load(&mut self, _now: Seconds) -> Option<Load> {
        None
    }

    /// Sets the load that the other agents of our leaf have together, from now on.
    fn set_load(&mut self, _load: &Load, _now: Seconds) {}
}

/// Returns the entropy value that stands for a flow wherever no path can be named; each `turn` has its own.
pub fn flow_entropy(flow: FlowRef, turn: u64) -> u16 {
    let place = u64::from(flow.hash >> 6).wrapping_add(turn.wrapping_mul(40503)) % u64::from(EVS);
    EV_FIRST + place as u16
}
