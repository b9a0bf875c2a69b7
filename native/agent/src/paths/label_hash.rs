//! One path per flow, by hash over the paths that its class may use: Freeway's two kinds of flow, each in its part.
//!
//! W. Wang, Y. Sun, K. Zheng, M. A. Kaafar, D. Li, Z. Li: "Freeway: Adaptively Isolating the Elephant and Mice Flows on
//! Different Transmission Paths", IEEE ICNP 2014: low-latency paths carry the short flows, high-throughput paths the
//! long ones. The controller says which are which (`protocol.control.Paths.by_class`).

use crate::hash::{mixed, NumberMap};
use crate::paths::{flow_entropy, PathPolicy, Train};
use crate::route::{FlowRef, Route};
use crate::time::Seconds;

#[derive(Clone, Copy, Debug)]
struct Chosen {
    /// Of the labels that were to choose from.
    version: u32,
    label: u16,
}

/// Rendezvous hashing (Thaler and Ravishankar, 1998): when a path comes or goes, only its own flows move.
#[derive(Clone, Debug, Default)]
pub struct LabelHash {
    chosen: NumberMap<i64, Chosen>,
}

impl PathPolicy for LabelHash {
    fn source_port(&mut self, flow: FlowRef, route: &Route, _size: u32, _now: Seconds) -> u16 {
        if let Some(chosen) = self.chosen.get(&flow.id).filter(|chosen| chosen.version == route.version) {
            return chosen.label;
        }
        let mut weighed = route.labels.iter().map(|&label| (weight(flow.hash, label), label));
        let Some(first) = weighed.next() else { return flow_entropy(flow, 0) };
        let (_, label) = weighed.fold(first, |best, other| if other.0 > best.0 { other } else { best });
        self.chosen.insert(flow.id, Chosen { version: route.version, label });
        label
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        self.repeat(train, now, ports);
    }

    fn forget(&mut self, flow: i64) {
        self.chosen.remove(&flow);
    }
}

/// Returns the weight of a label to a flow.
fn weight(flow_hash: u32, label: u16) -> u32 {
    mixed(flow_hash ^ u32::from(label).wrapping_mul(0x9E37_79B1))
}
