//! The path that the controller has granted a flow (CAPTON's grants with a stamp): HyLine's routing of whole flows.
//!
//! S. Abbasloo, Y. Xu, H. J. Chao: "HyLine: a Simple and Practical Flow Scheduling for Commodity Datacenters", IFIP
//! Networking 2018: flows above a threshold get a time and a path from a central entity, the others go by themselves.

use crate::hash::NumberMap;
use crate::paths::label_hash::LabelHash;
use crate::paths::{PathPolicy, Train};
use crate::route::{FlowRef, Route};
use crate::time::Seconds;
use crate::underlay::{is_stamp, label_of};

/// One path for each flow: the granted one while it lives, else one by hash, as for flows that do not ask.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    hashed: LabelHash,
    labels: NumberMap<i64, u16>,
}

impl PathPolicy for Granted {
    fn source_port(&mut self, flow: FlowRef, route: &Route, size: u32, now: Seconds) -> u16 {
        match self.labels.get(&flow.id) {
            Some(&label) if route.names(label) => label,
            _ => self.hashed.source_port(flow, route, size, now),
        }
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        self.repeat(train, now, ports);
    }

    fn forget(&mut self, flow: i64) {
        self.labels.remove(&flow);
        self.hashed.forget(flow);
    }

    fn granted(&mut self, flow: i64, stamp: u16) {
        if is_stamp(stamp) {
            self.labels.insert(flow, label_of(stamp));
        } else {
            self.labels.remove(&flow);
        }
    }
}
