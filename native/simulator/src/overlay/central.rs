//! What a controller decides while flows run: modes of leaves, the split of the paths, and what the agents of a leaf know
//! of each other. Its channels take no time.

use std::collections::{BTreeMap, BTreeSet};

use agent::paths::{of_the_others, LivePaths, Load, PathId};
use agent::{LeafId, Seconds, TrafficClass};
use fabric::mode::{Cause, Mode, ModeChange, ModeMonitor, ModeRule};
use fabric::partition::{PartitionRule, PathPartition, Split};

use super::host::Host;
use super::switching;
use crate::time::{Time, NEVER, SECOND};
use crate::topology::Topology;
use crate::Error;

/// How often agents share what they have on the paths of their leaf, seconds.
const SHARE_S: Seconds = 0.05;

/// What a scheme has a controller decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Central {
    pub mode: Option<ModeRule>,
    pub partition: Option<PartitionRule>,
    /// Whether agents share what they have on paths.
    pub shares: bool,
}

/// A leaf changed its mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeEvent {
    pub at: Time,
    pub leaf: u16,
    pub mode: Mode,
    pub cause: Cause,
}

/// The paths were split anew, by stamps; share: of all paths, how much short flows are to have.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitEvent {
    pub at: Time,
    pub low_latency: Vec<u16>,
    pub throughput: Vec<u16>,
    pub share: f64,
}

/// What a leaf's meters have counted of what it sent up.
#[derive(Clone, Copy, Debug, Default)]
struct Meters {
    short_packets: u64,
    short_bytes: u64,
    long_bytes: u64,
}

pub struct Controller {
    modes: Option<ModeMonitor>,
    partition: Option<PathPartition>,
    split: Split,
    next_share: Option<Seconds>,
    meters: Vec<Meters>,
    /// From each leaf.
    paths: Vec<LivePaths>,
    /// Its entry in the heap.
    pub timer: Time,
    pub mode_events: Vec<ModeEvent>,
    pub split_events: Vec<SplitEvent>,
}

impl Controller {
    /// Return a controller. paths: from each leaf (`live_paths`).
    pub fn new(
        central: Central,
        topology: &Topology,
        paths: Vec<LivePaths>,
        packet_time_s: Seconds,
    ) -> Result<Controller, Error> {
        let wrong = |error: fabric::mode::RuleError| Error(error.to_string());
        let mut modes =
            central.mode.map(|rule| ModeMonitor::new(rule, packet_time_s)).transpose().map_err(wrong)?;
        let mut partition = central.partition.map(|rule| PathPartition::new(rule, packet_time_s));
        for (leaf, ways) in paths.iter().enumerate() {
            let most = ways.stamps.values().map(BTreeSet::len).max().unwrap_or_default();
            if let Some(modes) = &mut modes {
                modes.leaf_added(leaf as u64, 0.0);
            }
            if let Some(partition) = &mut partition {
                partition.watch(leaf as u64, topology.uplinks(most as u32), 0.0);
            }
        }
        Ok(Controller {
            modes,
            partition,
            split: Split::default(),
            next_share: central.shares.then_some(SHARE_S),
            meters: vec![Meters::default(); paths.len()],
            paths,
            timer: NEVER,
            mode_events: Vec::new(),
            split_events: Vec::new(),
        })
    }

    /// Return whether what leaves send up changes anything: modes, or the split of paths.
    pub fn watches(&self) -> bool {
        self.modes.is_some() || self.partition.is_some()
    }

    pub fn is_on(&self, leaf: u16) -> bool {
        self.modes.as_ref().is_some_and(|modes| modes.mode_above([u64::from(leaf)]) == Mode::On)
    }

    /// Count what a leaf sends up.
    pub fn passed(&mut self, leaf: u16, class: TrafficClass, bytes: u32, (now, at): (Seconds, Time)) {
        let meters = &mut self.meters[usize::from(leaf)];
        match class {
            TrafficClass::Short => {
                meters.short_packets += 1;
                meters.short_bytes += u64::from(bytes);
                if let Some(modes) = &mut self.modes {
                    let change = modes.first_packet(u64::from(leaf), now);
                    self.mode_events.extend(change.map(|change| event(change, at)));
                }
            }
            TrafficClass::Long => meters.long_bytes += u64::from(bytes),
            _ => {}
        }
    }

    /// Run what is due.
    pub fn expired(&mut self, hosts: &mut [Host], (now, at): (Seconds, Time)) {
        if let Some(modes) = &mut self.modes {
            for leaf in modes.due(now) {
                let change = modes.sample(leaf, self.meters[leaf as usize].short_packets, now);
                self.mode_events.extend(change.map(|change| event(change, at)));
            }
        }
        self.divide(hosts, (now, at));
        if self.next_share.is_some_and(|next| next <= now) {
            self.next_share = Some(now + SHARE_S);
            share(hosts, now);
        }
    }

    /// Return when `expired` has something to do.
    pub fn deadline(&self) -> Option<Seconds> {
        let modes = self.modes.as_ref().and_then(ModeMonitor::deadline);
        let partition = self.partition.as_ref().and_then(PathPartition::deadline);
        [modes, partition, self.next_share].into_iter().flatten().min_by(f64::total_cmp)
    }

    /// Read the meters that are due, and split the paths by what they say.
    fn divide(&mut self, hosts: &mut [Host], (now, at): (Seconds, Time)) {
        let Some(partition) = &mut self.partition else { return };
        let due = partition.due(now);
        if due.is_empty() {
            return;
        }
        for leaf in due {
            let Meters { short_bytes, long_bytes, .. } = self.meters[leaf as usize];
            partition.sample(leaf, short_bytes, long_bytes, now);
        }
        let ways = self.paths.iter().flat_map(|paths| paths.stamps.values());
        let sets = ways.filter(|ways| !ways.is_empty()).cloned();
        let split = partition.split(sets).clone();
        if split == self.split {
            return;
        }
        self.split_events.push(SplitEvent {
            at,
            low_latency: split.low_latency.iter().copied().collect(),
            throughput: split.throughput.iter().copied().collect(),
            share: partition.low_latency_share(),
        });
        self.split = split;
        for host in hosts {
            let paths = &self.paths[usize::from(host.leaf())];
            host.set_paths(divided(paths, &self.split));
        }
    }
}

/// Return the paths from a leaf with what of them each class is to keep to.
fn divided(paths: &LivePaths, split: &Split) -> LivePaths {
    let own: BTreeSet<u16> = paths.stamps.values().flatten().copied().collect();
    let mut by_class = BTreeMap::new();
    if let Some(of) = split.by_class(&own) {
        let classes = [TrafficClass::Short, TrafficClass::Long, TrafficClass::Control];
        for (class, paths) in classes.into_iter().zip([of.short, of.long, of.control]) {
            by_class.insert(class, paths.into_iter().collect());
        }
    }
    LivePaths { by_class, ..paths.clone() }
}

/// Give the agents of each leaf the load of the others on its paths.
fn share(hosts: &mut [Host], now: Seconds) {
    let mut begin = 0;
    while begin < hosts.len() {
        let leaf = hosts[begin].leaf();
        let count = hosts[begin..].iter().take_while(|host| host.leaf() == leaf).count();
        let neighbours = &mut hosts[begin..begin + count];
        let loads: Option<Vec<Load>> = neighbours.iter_mut().map(|host| host.load(now)).collect();
        for (host, load) in neighbours.iter_mut().zip(of_the_others(&loads.unwrap_or_default())) {
            host.set_load(&load, now);
        }
        begin += count;
    }
}

/// Return the paths from each leaf to every other; to itself there are none. clock: seconds of agents' clocks a second.
pub fn live_paths(topology: &Topology, clock: f64) -> Vec<LivePaths> {
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for host in (0..topology.hosts()).rev() {
        first.insert(topology.leaf_of(host), host);
    }
    let alike = topology.delays_are_alike();
    let from = |&from: &u32| {
        let mut live = LivePaths::default();
        for (&leaf, &to) in &first {
            let leaf = LeafId(leaf as u16);
            let paths = topology.paths(from, to);
            let stamps = paths.iter().map(|&path| switching::stamp(topology, from, to, path));
            live.stamps.insert(leaf, stamps.clone().collect());
            if alike {
                continue;
            }
            let idle = paths.iter().map(|&path| topology.idle(from, to, path));
            let least = idle.clone().min().unwrap_or_default();
            for (stamp, idle) in stamps.zip(idle).filter(|&(_, idle)| idle > least) {
                let more_s = (idle - least) as f64 / SECOND as f64 * clock;
                live.idle_us.insert(PathId { leaf, stamp }, (more_s * 1e6).round() as u32);
            }
        }
        live
    };
    first.values().map(from).collect()
}

fn event(change: ModeChange, at: Time) -> ModeEvent {
    ModeEvent { at, leaf: change.leaf as u16, mode: change.mode, cause: change.cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Rate, MICROSECOND};
    use crate::topology::{Change, LeafSpine, Shape};

    #[test]
    fn agents_know_what_each_path_takes_more_than_the_fastest() {
        let rate = Rate::new(1_000_000_000);
        let delay = 25 * MICROSECOND;
        let shape =
            LeafSpine { leaves: 2, hosts_per_leaf: 2, spines: 3, host_rate: rate, spine_rate: rate, delay };
        let whole = Topology::new(Shape::LeafSpine(shape), &[]).unwrap();
        assert!(live_paths(&whole, 50.0).iter().all(|paths| paths.idle_us.is_empty()));
        let longer = Some(delay + 40 * MICROSECOND);
        let change = Change { link: shape.leaf_up(0, 1), rate: 1_000_000_000, delay: longer };
        let paths = live_paths(&Topology::new(Shape::LeafSpine(shape), &[change]).unwrap(), 50.0);
        let id = PathId { leaf: LeafId(1), stamp: 2 };
        assert_eq!(
            paths[0].idle_us,
            BTreeMap::from([(id, 2000)]),
            "40 us are 2 ms of clocks that are 50 times as fast"
        );
        assert_eq!(paths[0].stamps[&LeafId(1)], BTreeSet::from([1, 2, 3]));
        assert!(paths[1].idle_us.is_empty(), "the other way is as short as all");
    }
}
