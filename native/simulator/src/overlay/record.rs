//! What agents counted of a flow.

use std::collections::BTreeMap;

use agent::flow_record::{FlowRecord, Side};

/// Packets of a flow from its source to its destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Of the host, wrapped; and the repairs beside them.
    pub packets: u64,
    pub repairs: u64,
    pub recovered: u64,
    /// Positions that were given up, less those whose packet came late.
    pub lost: u64,
    pub reordered: u64,
    /// Packets that waited for others, and gaps that were given up.
    pub held: u64,
    pub release_timeouts: u64,
    /// Datagrams by path stamp; 0: below one leaf.
    pub paths: BTreeMap<u16, u64>,
}

impl Record {
    pub fn add(&mut self, sent: &FlowRecord, received: Option<&FlowRecord>) {
        self.packets += sent.packets;
        self.repairs += sent.repairs;
        let Some(FlowRecord { side: Side::Receiver(arrived), .. }) = received else { return };
        self.recovered += arrived.recovered;
        self.lost += arrived.lost;
        self.reordered += arrived.reordered;
        self.held += arrived.held;
        self.release_timeouts += arrived.timeouts;
        for way in &arrived.ways {
            *self.paths.entry(way.stamp).or_default() += way.datagrams;
        }
    }
}
