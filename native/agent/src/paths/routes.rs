//! What path policies choose from: the live paths to each leaf, by traffic class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::class::TrafficClass;
use crate::route::{LeafId, Route};
use crate::underlay::{is_stamp, label_of};

/// Which paths are alive, as the controller says (`protocol.control.Paths`). What is no stamp is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LivePaths {
    /// Stamps by destination leaf; a leaf that is missing is reached without names of paths.
    pub stamps: BTreeMap<LeafId, BTreeSet<u16>>,
    /// What a class is to keep to, wherever it goes; a class that is missing has all paths.
    pub by_class: BTreeMap<TrafficClass, BTreeSet<u16>>,
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

    /// Sets which paths are alive. The version of a route changes if its labels do.
    pub fn set_paths(&mut self, paths: LivePaths) {
        self.paths = paths;
        for routes in self.leaves.iter_mut().flatten() {
            name(routes, &self.paths, &mut self.versions);
        }
    }
}

/// Gives routes to a leaf the labels of what their class may use: all live paths, where its own would be none.
fn name(routes: &mut [Route; 4], paths: &LivePaths, versions: &mut u32) {
    let alive = paths.stamps.get(&routes[0].leaf);
    let stamps: Vec<u16> = alive.into_iter().flatten().copied().filter(|&stamp| is_stamp(stamp)).collect();
    let mut named: Vec<(Arc<[u16]>, u32)> = Vec::new();
    for route in routes {
        let own: Option<Vec<u16>> = paths
            .by_class
            .get(&route.class)
            .map(|own| stamps.iter().copied().filter(|stamp| own.contains(stamp)).collect());
        let usable = own.filter(|own| !own.is_empty());
        let labels: Vec<u16> =
            usable.as_ref().unwrap_or(&stamps).iter().map(|&stamp| label_of(stamp)).collect();
        if labels[..] == route.labels[..] {
            continue;
        }
        let known = named.iter().find(|(other, _)| other[..] == labels[..]).cloned();
        let (labels, version) = known.unwrap_or_else(|| {
            *versions += u32::from(!labels.is_empty());
            let fresh = (Arc::from(labels), *versions);
            named.push(fresh.clone());
            fresh
        });
        route.version = if labels.is_empty() { 0 } else { version };
        route.labels = labels;
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
                assert_eq!(old.version == new.version, old.labels == new.labels);
                assert_eq!(new.version == 0, new.labels.is_empty());
                let kept = versions.entry((new.leaf, new.version)).or_insert(new.labels.clone());
                assert_eq!(*kept, new.labels, "one version has one set of labels");
            }
        }
    }
}
