//! Fabrics: links by number, and where a packet goes next, in constant time and without tables of routes.

mod fat_tree;
mod leaf_spine;

use crate::time::{Rate, Time};
use crate::Error;

pub use fat_tree::FatTree;
pub use leaf_spine::LeafSpine;

/// Numbers of paths, of 2 B each, that are kept at most where links are down: 2 GiB.
const MOST_KEPT: u64 = 1 << 30;
/// As many of them as the list of a pair of leaves takes beside its own.
const BESIDE: u64 = 12;

/// Between which tiers a link leads, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// From a host: its own port.
    HostUp,
    /// From a leaf (edge switch) upwards.
    LeafUp,
    /// From an aggregation switch of a fat tree to a core.
    CoreUp,
    /// From a core to an aggregation switch.
    CoreDown,
    /// From a spine (or an aggregation switch) to a leaf.
    LeafDown,
    /// From a leaf to a host.
    HostDown,
}

impl Tier {
    pub fn name(self) -> &'static str {
        match self {
            Tier::HostUp => "host to leaf",
            Tier::LeafUp => "leaf to spine",
            Tier::CoreUp => "aggregation to core",
            Tier::CoreDown => "core to aggregation",
            Tier::LeafDown => "spine to leaf",
            Tier::HostDown => "leaf to host",
        }
    }
}

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub tier: Tier,
    pub rate: Rate,
    pub delay: Time,
    /// Whether it carries packets at all; a link that is down is on no path.
    pub up: bool,
}

/// The shape of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    LeafSpine(LeafSpine),
    FatTree(FatTree),
}

/// A fabric: its shape, its links, and the paths between groups of hosts that are whole.
#[derive(Clone, Debug)]
pub struct Topology {
    shape: Shape,
    pub links: Vec<Link>,
    /// By pair of leaves the paths that are up, ascending; empty where all links are.
    alive: Vec<Vec<u16>>,
    /// All paths between leaves of one pod, and between any others.
    every: Vec<u16>,
}

/// What is different about one link, in one direction, numbered as the shape numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub link: u32,
    /// bit/s; 0 takes the link down.
    pub rate: u64,
    /// None: as the tier's.
    pub delay: Option<Time>,
}

impl Topology {
    pub fn new(shape: Shape, changes: &[Change]) -> Result<Topology, Error> {
        let mut links = match &shape {
            Shape::LeafSpine(of) => of.links()?,
            Shape::FatTree(of) => of.links()?,
        };
        for change in changes {
            let count = links.len();
            let link = links.get_mut(change.link as usize).ok_or_else(|| {
                Error(format!("link {} is not among the {count} of the fabric", change.link))
            })?;
            link.up = change.rate > 0;
            if link.up {
                link.rate = Rate::new(change.rate);
            }
            link.delay = change.delay.unwrap_or(link.delay);
        }
        let paths = match &shape {
            Shape::LeafSpine(of) => of.spines,
            Shape::FatTree(of) => of.paths(),
        };
        let every = (0..paths).map(|path| u16::try_from(path).expect("checked by the shape")).collect();
        let mut topology = Topology { shape, links, alive: Vec::new(), every };
        if topology.links.iter().any(|link| !link.up) {
            topology.find_paths()?;
        }
        Ok(topology)
    }

    pub fn hosts(&self) -> u32 {
        match &self.shape {
            Shape::LeafSpine(of) => of.hosts(),
            Shape::FatTree(of) => of.hosts(),
        }
    }

    pub fn leaf_of(&self, host: u32) -> u32 {
        match &self.shape {
            Shape::LeafSpine(of) => of.leaf_of(host),
            Shape::FatTree(of) => of.edge_of(host),
        }
    }

    fn leaves(&self) -> u32 {
        match &self.shape {
            Shape::LeafSpine(of) => of.leaves,
            Shape::FatTree(of) => of.edges(),
        }
    }

    /// Return the numbers of the paths between two hosts, ascending; none below one leaf, where there is no choice.
    pub fn paths(&self, source: u32, destination: u32) -> &[u16] {
        let (from, to) = (self.leaf_of(source), self.leaf_of(destination));
        if from == to {
            return &[];
        }
        if !self.alive.is_empty() {
            return &self.alive[(from * self.leaves() + to) as usize];
        }
        match &self.shape {
            Shape::LeafSpine(_) => &self.every,
            Shape::FatTree(of) => &self.every[..of.paths_between(from, to) as usize],
        }
    }

    /// Return how many of the switches that turn paths downwards come before those of paths between two hosts: those
    /// within a pod before those between pods.
    pub fn first_turning(&self, source: u32, destination: u32) -> u16 {
        match &self.shape {
            Shape::LeafSpine(_) => 0,
            Shape::FatTree(of) => of.first_turning(self.leaf_of(source), self.leaf_of(destination)),
        }
    }

    /// Return how many ways up a leaf has, from which so many paths lead to another one at most.
    pub fn uplinks(&self, paths: u32) -> u32 {
        match &self.shape {
            Shape::LeafSpine(_) => paths,
            Shape::FatTree(of) => of.uplinks().min(paths),
        }
    }

    /// Return the link of a host's own port.
    pub fn first(&self, host: u32) -> u32 {
        host
    }

    /// Return whether a link leads to a host.
    pub fn leads_to_host(&self, link: u32) -> bool {
        (self.hosts()..2 * self.hosts()).contains(&link)
    }

    /// Return the number of the switch that sends on a link; None: a host does.
    pub fn switch_of(&self, link: u32) -> Option<u32> {
        if link < self.hosts() {
            return None;
        }
        Some(match &self.shape {
            Shape::LeafSpine(of) => of.switch_of(link),
            Shape::FatTree(of) => of.switch_of(link),
        })
    }

    /// Return the link that follows `link` on the way to `destination` by `path`; None at the destination.
    pub fn next(&self, link: u32, destination: u32, path: u16) -> Option<u32> {
        match &self.shape {
            Shape::LeafSpine(of) => of.next(link, destination, path),
            Shape::FatTree(of) => of.next(link, destination, path),
        }
    }

    /// Return the links from host to host by `path`.
    pub fn route(&self, source: u32, destination: u32, path: u16) -> Vec<u32> {
        std::iter::successors(Some(self.first(source)), |&link| self.next(link, destination, path)).collect()
    }

    /// Return how long a packet without length is on its way from host to host by `path`, where nothing else is.
    pub fn idle(&self, source: u32, destination: u32, path: u16) -> Time {
        self.route(source, destination, path).iter().map(|&link| self.links[link as usize].delay).sum()
    }

    /// Return whether all links of a tier have one delay: then no path is longer than another one between the same hosts.
    pub fn delays_are_alike(&self) -> bool {
        self.links
            .chunk_by(|one, next| one.tier == next.tier)
            .all(|links| links.iter().all(|link| link.delay == links[0].delay))
    }

    fn find_paths(&mut self) -> Result<(), Error> {
        let hosts_down =
            self.links.iter().position(|link| !link.up && matches!(link.tier, Tier::HostUp | Tier::HostDown));
        if let Some(link) = hosts_down {
            return Err(Error(format!("link {link} is a host's only one: it may be slow but not down")));
        }
        let (leaves, paths) = (self.leaves(), self.every.len());
        if u64::from(leaves).pow(2) * (paths as u64 + BESIDE) > MOST_KEPT {
            return Err(Error(format!(
                "links are down, so the paths between {leaves} leaves, up to {paths} for each pair, are \
                 kept one by one, which takes more than 2 GiB: take no link down, or simulate a smaller fabric"
            )));
        }
        let mut host_of = vec![0; leaves as usize];
        (0..self.hosts()).for_each(|host| host_of[self.leaf_of(host) as usize] = host);
        let mut alive = Vec::with_capacity((leaves * leaves) as usize);
        for &source in &host_of {
            for &destination in &host_of {
                let paths = self.paths(source, destination).iter().copied();
                let whole = |path: &u16| {
                    let route = self.route(source, destination, *path);
                    route.iter().all(|&link| self.links[link as usize].up)
                };
                let paths: Vec<u16> = paths.filter(whole).collect();
                if source != destination && paths.is_empty() {
                    return Err(Error(format!(
                        "no path is left from host {source} to host {destination}: too many links are down"
                    )));
                }
                alive.push(paths);
            }
        }
        self.alive = alive;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_to_hosts_are_those_of_the_last_tier() {
        let rate = Rate::new(10_000_000_000);
        let (host_rate, delay) = (rate, 1);
        let leaf_spine =
            LeafSpine { leaves: 3, hosts_per_leaf: 2, spines: 9, host_rate, spine_rate: rate, delay };
        let fat_tree = FatTree { k: 4, host_rate, fabric_rate: rate, delay };
        for shape in [Shape::LeafSpine(leaf_spine), Shape::FatTree(fat_tree)] {
            let topology = Topology::new(shape, &[]).unwrap();
            for (number, link) in (0..).zip(&topology.links) {
                assert_eq!(topology.leads_to_host(number), link.tier == Tier::HostDown, "link {number}");
            }
        }
    }

    #[test]
    fn paths_that_no_memory_holds_are_refused_where_a_link_is_down() {
        let (host_rate, spine_rate) = (Rate::new(10_000_000_000), Rate::new(10_000_000_000));
        let of = |leaves| LeafSpine { leaves, hosts_per_leaf: 1, spines: 2, host_rate, spine_rate, delay: 1 };
        let damaged = |leaves| {
            let down = Change { link: of(leaves).leaf_up(0, 1), rate: 0, delay: None };
            Topology::new(Shape::LeafSpine(of(leaves)), &[down])
        };
        assert_eq!(damaged(200).unwrap().paths(0, 199), [0]);
        assert!(Topology::new(Shape::LeafSpine(of(20_000)), &[]).is_ok());
        let error = damaged(20_000).unwrap_err();
        assert!(error.0.contains("between 20000 leaves, up to 2 for each pair"), "{error}");
    }
}
