//! Which path a leaf gives a datagram: by its class's group, its ports and addresses.

use agent::underlay::{is_stamp, stamp_of_label, LABEL_FIRST};

use super::datagram::Datagram;
use crate::random::{key, mix, Purpose};
use crate::topology::Topology;

/// What serves a class at a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A hash of addresses and both ports.
    Spray,
    /// A hash of addresses and destination port: the flow key.
    Hash,
    /// The path that the source port names; what names none, or a dead one, is sprayed.
    Label,
}

/// What serves a class while short flows are present at its leaf, and while not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    pub on: Group,
    pub off: Group,
}

pub struct Switching {
    groups: [Groups; 4],
    hashes: u64,
}

impl Switching {
    pub fn new(groups: [Groups; 4], seed: u64) -> Switching {
        Switching { groups, hashes: key(seed, Purpose::Hashes) }
    }

    /// Return the path of a datagram among those that are alive, of which there is one at least.
    pub fn path(&self, datagram: &Datagram, on: bool, paths: &[u16], topology: &Topology) -> u16 {
        let groups = self.groups[datagram.head.class.index()];
        let group = if on { groups.on } else { groups.off };
        let Datagram { from, to, source_port, destination_port, .. } = *datagram;
        if group == Group::Label && source_port > LABEL_FIRST {
            let stamp = stamp_of_label(source_port);
            let named = |&&path: &&u16| self::stamp(topology, from, to, path) == stamp;
            if let Some(&path) = paths.iter().find(named).filter(|_| is_stamp(stamp)) {
                return path;
            }
        }
        let ends = u64::from(from) << 32 | u64::from(to);
        let entropy = if group == Group::Hash { 0 } else { u64::from(source_port) };
        let hash = mix(mix(self.hashes ^ ends) ^ (entropy << 16 | u64::from(destination_port)));
        paths[(((hash >> 32) * paths.len() as u64) >> 32) as usize]
    }
}

/// Return the stamp of a path between two hosts of different leaves: that of the switch that turns it downwards.
pub fn stamp(topology: &Topology, from: u32, to: u32, path: u16) -> u16 {
    1 + path + topology.first_turning(from, to)
}
