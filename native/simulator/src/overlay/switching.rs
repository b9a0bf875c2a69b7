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
            let named = path_of(topology, from, to, stamp).filter(|&path| is_among(path, paths));
            if let Some(path) = named.filter(|_| is_stamp(stamp)) {
                return path;
            }
        }
        let entropy = if group == Group::Hash { 0 } else { source_port };
        self.hashed((from, to), entropy, destination_port, paths)
    }

    /// Return the path that a hash of two hosts, entropy and destination port gives; entropy: 0 for one path a flow.
    pub fn hashed(&self, (from, to): (u32, u32), entropy: u16, destination_port: u16, paths: &[u16]) -> u16 {
        let ends = u64::from(from) << 32 | u64::from(to);
        let ports = u64::from(entropy) << 16 | u64::from(destination_port);
        let hash = mix(mix(self.hashes ^ ends) ^ ports);
        paths[(((hash >> 32) * paths.len() as u64) >> 32) as usize]
    }
}

/// Return the stamp of a path between two hosts of different leaves: that of the switch that turns it downwards.
pub fn stamp(topology: &Topology, from: u32, to: u32, path: u16) -> u16 {
    1 + path + topology.first_turning(from, to)
}

/// Return the path with a stamp between two hosts of different leaves, dead or alive; None: there cannot be one.
fn path_of(topology: &Topology, from: u32, to: u32, stamp: u16) -> Option<u16> {
    stamp.checked_sub(1)?.checked_sub(topology.first_turning(from, to))
}

/// Return whether a path is among those that are alive: these ascend, so where none is dead each is at its own place.
fn is_among(path: u16, paths: &[u16]) -> bool {
    paths.get(usize::from(path)) == Some(&path) || paths.binary_search(&path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Rate;
    use crate::topology::{Change, FatTree, LeafSpine, Shape, Tier};

    /// Return fabrics of both shapes, whole and with links down.
    fn fabrics() -> Vec<Topology> {
        let rate = Rate::new(10_000_000_000);
        let leaf_spine = LeafSpine {
            leaves: 3,
            hosts_per_leaf: 2,
            spines: 9,
            host_rate: rate,
            spine_rate: rate,
            delay: 1,
        };
        let fat_tree = FatTree { k: 4, host_rate: rate, fabric_rate: rate, delay: 1 };
        let shapes = [Shape::LeafSpine(leaf_spine), Shape::FatTree(fat_tree)];
        let damaged = |shape: &Shape, whole: &Topology| {
            let first = |tier| whole.links.iter().position(|link| link.tier == tier);
            let dead = [Tier::LeafUp, Tier::CoreDown, Tier::LeafDown].into_iter().filter_map(first);
            let changes: Vec<Change> =
                dead.map(|link| Change { link: link as u32, rate: 0, delay: None }).collect();
            Topology::new(*shape, &changes).unwrap()
        };
        let both = |shape: &Shape| {
            let whole = Topology::new(*shape, &[]).unwrap();
            let damaged = damaged(shape, &whole);
            [whole, damaged]
        };
        shapes.iter().flat_map(both).collect()
    }

    #[test]
    fn a_label_names_the_path_that_a_search_for_its_stamp_finds() {
        for topology in fabrics() {
            for (from, to) in
                (0..topology.hosts()).flat_map(|from| (0..topology.hosts()).map(move |to| (from, to)))
            {
                let paths = topology.paths(from, to);
                if paths.is_empty() {
                    continue;
                }
                for stamp in 0..64 {
                    let searched =
                        paths.iter().find(|&&path| self::stamp(&topology, from, to, path) == stamp);
                    let named = path_of(&topology, from, to, stamp).filter(|&path| is_among(path, paths));
                    assert_eq!(named, searched.copied(), "from {from} to {to}, stamp {stamp}");
                }
            }
        }
    }
}
