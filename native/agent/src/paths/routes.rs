//! What path policies choose from: the live paths to each leaf, by traffic class.

use std::collections::{BTreeMap, BTreeSet};

use datapath::feedback::Receipt;

use crate::class::TrafficClass;
use crate::paths::PathId;
use crate::route::{LeafId, Route};
use crate::underlay::{is_stamp, label_of};

/// Which paths are alive, as the controller says (`protocol.control.Paths`). What is no stamp is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LivePaths {
    /// Stamps by destination leaf; a leaf that is missing is reached without names of paths.
    pub stamps: BTreeMap<LeafId, BTreeSet<u16>>,
    /// What a class is to keep to, wherever it goes; a class that is missing has all paths.
    pub by_class: BTreeMap<TrafficClass, BTreeSet<u16>>,
    /// Microseconds that a path takes more than the fastest one to the same leaf while both are idle (of TR's Eq. 1, pd_j).
    /// A path that is missing takes no more, as far as is known.
    pub idle_us: BTreeMap<PathId, u32>,
}

impl LivePaths {
    /// Returns how many microseconds a path takes more than the fastest one while both are idle.
    fn idle_us(&self, leaf: LeafId, stamp: u16) -> u32 {
        self.idle_us.get(&PathId { leaf, stamp }).copied().unwrap_or(0)
    }
}

/// The routes of an agent.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// By the number of the leaf.
    leaves: Vec<Option<[Route; 4]>>,
    paths: LivePaths,
    versions: u32,
}

impl Routes {
    /// Returns the routes to a leaf, by traffic class.
    pub fn to(&mut self, leaf: LeafId) -> &[Route; 4] {
        let (paths, versions) = (&self.paths, &mut self.versions);
        let place = usize::from(leaf.0);
        if self.leaves.len() <= place {
            self.leaves.resize(place + 1, None);
        }
        self.leaves[place].get_or_insert_with(|| {
            let mut routes = TrafficClass::ALL.map(|class| Route::unnamed(leaf, class));
            name(&mut routes, paths, versions);
            routes
        })
    }

    /// Returns the delay of a datagram to that leaf, less what its path takes more than the fastest one while both are
    /// idle, in microseconds.
    pub fn queued_us(&self, leaf: LeafId, receipt: &Receipt) -> u32 {
        receipt.delay_us.wrapping_sub(self.paths.idle_us(leaf, receipt.stamp))
    }

    /// Sets which paths are alive. The version of a route changes if its labels do, or what they take while idle.
    pub fn set_paths(&mut self, paths: LivePaths) {
        self.paths = paths;
        for routes in self.leaves.iter_mut().flatten() {
            name(routes, &self.paths, &mut self.versions);
        }
    }
}

/// Gives routes to a leaf the labels of what their class may use: all live paths, where its own would be none.
fn name(routes: &mut [Route; 4], paths: &LivePaths, versions: &mut u32) {
    let leaf = routes[0].leaf;
    let alive = paths.stamps.get(&leaf);
    let stamps: Vec<u16> = alive.into_iter().flatten().copied().filter(|&stamp| is_stamp(stamp)).collect();
    let mut named: Vec<Route> = Vec::new();
    for route in routes {
        let own: Option<Vec<u16>> = paths
            .by_class
            .get(&route.class)
            .map(|own| stamps.iter().copied().filter(|stamp| own.contains(stamp)).collect());
        let usable = own.filter(|own| !own.is_empty());
        let usable = usable.as_ref().unwrap_or(&stamps);
        let labels: Vec<u16> = usable.iter().map(|&stamp| label_of(stamp)).collect();
        let mut idle_us: Vec<u32> = usable.iter().map(|&stamp| paths.idle_us(leaf, stamp)).collect();
        if idle_us.iter().all(|&us| us == 0) {
            idle_us.clear();
        }
        if labels[..] == route.labels[..] && idle_us[..] == route.idle_us[..] {
            continue;
        }
        if let Some(other) = named.iter().find(|other| other.labels[..] == labels[..]) {
            (route.labels, route.idle_us) = (other.labels.clone(), other.idle_us.clone());
            route.version = other.version;
        } else {
            *versions += u32::from(!labels.is_empty());
            route.version = if labels.is_empty() { 0 } else { *versions };
            (route.labels, route.idle_us) = (labels.into(), idle_us.into());
        }
        named.push(route.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Random};
    use trials::trials;

    fn some(random: &mut Generator, most: u32) -> BTreeSet<u16> {
        (0..random.below(most)).map(|_| random.below(12) as u16).collect()
    }

    #[test]
    fn a_version_speaks_for_the_labels_and_a_class_keeps_to_its_paths_unless_that_leaves_none() {
        let mut random = Generator::new(3);
        let (mut routes, mut versions) = (Routes::default(), BTreeMap::new());
        for turn in 0..trials(400) {
            let mut paths = LivePaths::default();
            for leaf in 0..3 {
                paths.stamps.insert(LeafId(leaf), some(&mut random, 6));
                for stamp in some(&mut random, 3) {
                    paths.idle_us.insert(PathId { leaf: LeafId(leaf), stamp }, random.below(3));
                }
            }
            for class in [TrafficClass::Short, TrafficClass::Long] {
                if random.below(2) == 0 {
                    paths.by_class.insert(class, some(&mut random, 5));
                }
            }
            let before: Vec<Route> = (0..3).flat_map(|leaf| routes.to(LeafId(leaf)).clone()).collect();
            routes.set_paths(paths.clone());
            let after: Vec<Route> = (0..3).flat_map(|leaf| routes.to(LeafId(leaf)).clone()).collect();
            for (old, new) in before.iter().zip(&after) {
                let alive: Vec<u16> =
                    paths.stamps[&new.leaf].iter().copied().filter(|&stamp| stamp > 0).collect();
                let own: Vec<u16> = match paths.by_class.get(&new.class) {
                    Some(kept) => alive.iter().copied().filter(|stamp| kept.contains(stamp)).collect(),
                    None => alive.clone(),
                };
                let expected = if own.is_empty() { alive } else { own };
                let stamps: Vec<u16> = new.labels.iter().map(|label| label - 8192).collect();
                assert_eq!(stamps, expected, "turn {turn}");
                let known = |stamp: &u16| {
                    let id = PathId { leaf: new.leaf, stamp: *stamp };
                    paths.idle_us.get(&id).copied().unwrap_or(0)
                };
                let idle_us: Vec<u32> = stamps.iter().map(known).collect();
                let none = idle_us.iter().all(|&us| us == 0);
                assert_eq!(new.idle_us[..], if none { Vec::new() } else { idle_us }[..]);
                let same = old.labels == new.labels && old.idle_us == new.idle_us;
                assert_eq!(old.version == new.version, same);
                assert_eq!(new.version == 0, new.labels.is_empty());
                let own = (new.labels.clone(), new.idle_us.clone());
                let kept = versions.entry((new.leaf, new.version)).or_insert(own.clone());
                assert_eq!(*kept, own, "one version has one set of labels");
            }
        }
    }
}
