//! What the agents of one leaf have together, as each of them is to know it of the others.

use std::collections::BTreeMap;

use crate::paths::{Load, PathId};
use crate::time::Seconds;

/// What an agent has on its paths, each of them named by a K.
#[derive(Clone, Debug, PartialEq)]
pub struct OnPaths<K> {
    /// Active short flows, by stamp.
    pub short_flows: BTreeMap<u16, i64>,
    /// How long packets wait there.
    pub delays_s: BTreeMap<K, Seconds>,
}

/// Returns for each agent what the others of its leaf have together: flows in sum, of delays the longest.
pub fn of_the_others(loads: &[Load]) -> Vec<Load> {
    let loads: Vec<OnPaths<PathId>> = loads
        .iter()
        .map(|load| OnPaths { short_flows: load.short_flows.clone(), delays_s: load.delays_s.clone() })
        .collect();
    on_paths_of_the_others(&loads)
        .into_iter()
        .map(|OnPaths { short_flows, delays_s }| Load { short_flows, delays_s })
        .collect()
}

/// Returns the same, whatever names a path.
pub fn on_paths_of_the_others<K: Ord + Clone>(loads: &[OnPaths<K>]) -> Vec<OnPaths<K>> {
    let mut flows: BTreeMap<u16, i64> = BTreeMap::new();
    // the two longest delays of a path, the longest first, and whose they are
    let mut longest: BTreeMap<&K, Vec<(Seconds, usize)>> = BTreeMap::new();
    for (whose, load) in loads.iter().enumerate() {
        for (&stamp, &count) in &load.short_flows {
            *flows.entry(stamp).or_default() += count;
        }
        for (path, &delay_s) in &load.delays_s {
            let known = longest.entry(path).or_default();
            known.push((delay_s, whose));
            known.sort_by(|first, other| other.0.total_cmp(&first.0));
            known.truncate(2);
        }
    }
    let others = |(whose, load): (usize, &OnPaths<K>)| {
        let short_flows = flows.iter().map(|(&stamp, &count)| {
            (stamp, count - load.short_flows.get(&stamp).copied().unwrap_or_default())
        });
        let delays = longest.iter().filter_map(|(&path, known)| {
            known.iter().find(|&&(_, of)| of != whose).map(|&(delay_s, _)| (path.clone(), delay_s))
        });
        OnPaths {
            short_flows: short_flows.filter(|&(_, count)| count != 0).collect(),
            delays_s: delays.collect(),
        }
    };
    loads.iter().enumerate().map(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Random};
    use crate::route::LeafId;

    #[test]
    fn each_agent_is_sent_the_sum_of_flows_and_the_longest_delay_of_all_others() {
        let mut random = Generator::new(8);
        for agents in 0..6usize {
            let loads: Vec<Load> = (0..agents)
                .map(|_| Load {
                    short_flows: (0..random.below(5))
                        .map(|_| (1 + random.below(4) as u16, 1 + i64::from(random.below(3))))
                        .collect(),
                    delays_s: (0..random.below(6))
                        .map(|_| {
                            (
                                PathId {
                                    leaf: LeafId(random.below(2) as u16),
                                    stamp: 1 + random.below(3) as u16,
                                },
                                random.unit(),
                            )
                        })
                        .collect(),
                })
                .collect();
            let shared = of_the_others(&loads);
            assert_eq!(shared.len(), agents);
            for (whose, shared) in shared.iter().enumerate() {
                let mut expected = Load::default();
                for (_, other) in loads.iter().enumerate().filter(|(other, _)| *other != whose) {
                    for (&stamp, &count) in &other.short_flows {
                        *expected.short_flows.entry(stamp).or_default() += count;
                    }
                    for (&path, &delay_s) in &other.delays_s {
                        let known = expected.delays_s.entry(path).or_insert(delay_s);
                        *known = known.max(delay_s);
                    }
                }
                assert_eq!(*shared, expected);
            }
        }
    }
}
