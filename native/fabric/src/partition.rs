//! Which paths carry short flows and which long ones, by load: Freeway's low-latency and throughput paths.
//!
//! W. Wang, Y. Sun, K. Zheng, M. A. Kaafar, D. Li, Z. Li: "Freeway: Adaptively Isolating the Elephant and Mice Flows on
//! Different Transmission Paths", IEEE ICNP 2014 (extended: doi 10.1109/TNSM.2016.2517087). There, an M/G/1 model gives
//! the highest mean delay of a low-latency path with which 99 % of the short flows still meet their deadline, and paths
//! change sides so that this bound holds. That is also all that CAPS (sections II and VIII-A), whose baseline it is, says
//! of it. The equations are derived here from that:
//!
//! - A low-latency path is an M/G/1 queue of bursts (windows) of `burst_packets` packets on the average, exponentially
//!   distributed. If one takes b on an idle path, the waiting time W has P(W > d) = rho exp(-(1 - rho) d / b).
//! - The highest load rho of a low-latency path is where P(W > deadline) is 1 %: [`highest_load`].
//! - As many paths as the short flows' load takes then are low-latency paths, and those that long flows leave over: these
//!   get twice the paths that they fill, so that they have room to grow into the rest.
//! - Both kinds always have a path, where there are two. (In CAPS's appendix A all paths are the short flows' where there
//!   is no long one, so that Freeway is ECMP; here one path is kept for the next long flow.)
//!
//! **What is measured.** Bytes of the short and the long class that each leaf sent up, by meters; a leaf's load counts as
//! a share of its uplinks. All leaves have the same split, that of the busiest: a spine's ports down to a leaf are shared
//! by all other leaves, and a path would not be isolated if one leaf had it for short flows and another for long ones.
//! What a leaf receives is not measured.
//!
//! **Steadiness.** A load counts as the highest of the last `samples`, and a kind of flow gives up only paths that it could
//! do without at [`SLACK`] times its load: without that dead band, a load with 20 % of noise near a whole number of paths
//! changed the split once or twice a second. While neither load varies by more than [`SLACK`], of one set of paths none
//! turns from throughput to low latency once one has turned the other way. Loads that vary more still move paths to and fro.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::meter_read::{earliest, MeterRead};

/// Share of short flows that may miss the deadline.
pub const LATE: f64 = 0.01;
/// Of the paths that long flows need, how much they use: above it they get more.
pub const LONG_UTILISATION: f64 = 0.5;
/// How much larger a load must be for its paths not to be given up.
pub const SLACK: f64 = 1.6;
/// Least time between two reads of a leaf's meters, in seconds.
pub const SHORTEST_SAMPLING_S: f64 = 0.05;
/// A meter read that has not been answered for this long, in seconds, is asked again.
pub const READ_LOST_S: f64 = 1.0;
const PACKET_BYTES: f64 = 1500.0;

/// Returns the load rho, 0..1, at which a share of [`LATE`] waits longer than `deadline`; both in packet times.
pub fn highest_load(deadline: f64, burst: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle: f64 = (low + high) / 2.0;
        let late = middle * libm::exp(-(1.0 - middle) * deadline / burst);
        if late <= LATE {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// How paths are split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionRule {
    /// 99 % of the short flows' bursts are to wait at most this long, in packet times.
    pub deadline_packet_times: f64,
    /// Mean length of such a burst in packets: TCP's first window.
    pub burst_packets: f64,
    /// Time between two reads of a leaf's meters, in packet times.
    pub sampling_packet_times: f64,
    /// A load counts as the highest of so many.
    pub samples: usize,
}

/// Paths (stamps) of a fabric: each is one or the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// For short flows and control packets.
    pub low_latency: BTreeSet<u16>,
    /// For long flows.
    pub throughput: BTreeSet<u16>,
}

/// What of a leaf's paths each class keeps to, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPaths {
    /// Short flows.
    pub short: Vec<u16>,
    /// Long flows.
    pub long: Vec<u16>,
    /// Control packets (ACKs): the low-latency paths, for a flow's own data is often on the others.
    pub control: Vec<u16>,
}

impl Split {
    /// Returns what of a leaf's `own` paths each class keeps to; `None` where these are of one kind only.
    pub fn by_class(&self, own: &BTreeSet<u16>) -> Option<ClassPaths> {
        let low: Vec<u16> = own.intersection(&self.low_latency).copied().collect();
        let high: Vec<u16> = own.intersection(&self.throughput).copied().collect();
        let both = !low.is_empty() && !high.is_empty();
        both.then(|| ClassPaths { control: low.clone(), short: low, long: high })
    }
}

/// A load as a share of a leaf's uplinks.
#[derive(Clone, Copy, Debug)]
struct Load {
    short: f64,
    long: f64,
}

/// What the meters of a leaf had counted at a time.
#[derive(Clone, Copy, Debug)]
struct Counted {
    at: f64,
    short: u64,
    long: u64,
}

#[derive(Clone, Debug)]
struct Leaf {
    uplinks: u32,
    read: MeterRead,
    counted: Option<Counted>,
    /// The last samples.
    loads: VecDeque<Load>,
}

/// The split of one fabric under one rule.
#[derive(Clone, Debug)]
pub struct PathPartition {
    sampling_time_s: f64,
    highest_load: f64,
    samples: usize,
    bytes_per_s: f64,
    leaves: BTreeMap<u64, Leaf>,
    split: Split,
}

impl PathPartition {
    /// Measures no leaf yet. `packet_time_s`: 1500 B on the slowest fabric link, in seconds.
    pub fn new(rule: PartitionRule, packet_time_s: f64) -> PathPartition {
        PathPartition {
            sampling_time_s: (rule.sampling_packet_times * packet_time_s).max(SHORTEST_SAMPLING_S),
            highest_load: highest_load(rule.deadline_packet_times, rule.burst_packets),
            samples: rule.samples,
            bytes_per_s: PACKET_BYTES / packet_time_s,
            leaves: BTreeMap::new(),
            split: Split::default(),
        }
    }

    /// Returns the time between two reads of a leaf's meters, in seconds.
    pub fn sampling_time_s(&self) -> f64 {
        self.sampling_time_s
    }

    /// Returns the highest load of a low-latency path, 0..1.
    pub fn highest_load(&self) -> f64 {
        self.highest_load
    }

    /// Measures `leaf`, which has so many ways up; 0: does so no more.
    pub fn watch(&mut self, leaf: u64, uplinks: u32, now: f64) {
        if uplinks == 0 {
            self.leaves.remove(&leaf);
            return;
        }
        let read = MeterRead { next: Some(now), asked: None };
        let new = || Leaf { uplinks, read, counted: None, loads: VecDeque::new() };
        self.leaves.entry(leaf).or_insert_with(new).uplinks = uplinks;
    }

    /// Returns the leaves whose meters are to be read now, ascending; each is named once per read.
    pub fn due(&mut self, now: f64) -> Vec<u64> {
        let reads = self.leaves.iter_mut().map(|(&leaf, state)| (leaf, &mut state.read));
        reads.filter_map(|(leaf, read)| read.ask(READ_LOST_S, now).then_some(leaf)).collect()
    }

    /// Returns when [`due`](Self::due) next names a leaf, in seconds.
    pub fn deadline(&self) -> Option<f64> {
        earliest(self.leaves.values().filter_map(|state| state.read.when(READ_LOST_S)))
    }

    /// Takes what the meters of `leaf` have counted since they were made; less than before: they were made anew.
    pub fn sample(&mut self, leaf: u64, short_bytes: u64, long_bytes: u64, now: f64) {
        let Some(state) = self.leaves.get_mut(&leaf) else { return };
        state.read = MeterRead { next: Some(now + self.sampling_time_s), asked: None };
        let counted = Counted { at: now, short: short_bytes, long: long_bytes };
        let Some(before) = state.counted.replace(counted).filter(|before| now > before.at) else { return };
        let capacity = f64::from(state.uplinks) * self.bytes_per_s * (now - before.at);
        let risen = (short_bytes.checked_sub(before.short), long_bytes.checked_sub(before.long));
        if let (Some(short), Some(long)) = risen {
            state.loads.push_back(Load { short: short as f64 / capacity, long: long as f64 / capacity });
            while state.loads.len() > self.samples {
                state.loads.pop_front();
            }
        }
    }

    /// Returns how much of all paths is for short flows, 0..1, before rounding to whole paths.
    pub fn low_latency_share(&self) -> f64 {
        let needs = self.needs();
        needs.short.max(1.0 - needs.long).min(1.0)
    }

    /// Returns how much of all paths short and long flows need; each may be above 1.
    fn needs(&self) -> Load {
        let highest = |load: fn(&Load) -> f64| {
            self.leaves.values().flat_map(|state| state.loads.iter().map(load)).fold(0.0, f64::max)
        };
        Load {
            short: highest(|load| load.short) / self.highest_load,
            long: highest(|load| load.long) / LONG_UTILISATION,
        }
    }

    /// Returns how many of `paths` are to be low-latency ones.
    fn count(&self, paths: &[u16]) -> i64 {
        let needs = self.needs();
        let all = paths.len() as f64;
        let total = paths.len() as i64;
        let (short_need, long_need) = (whole(needs.short * all), whole(needs.long * all));
        let mut wanted = short_need.max(total - long_need);
        let is_low = |path: &u16| self.split.low_latency.contains(path);
        let now = paths.iter().filter(|path| is_low(path)).count() as i64;
        if paths.iter().all(|path| is_low(path) || self.split.throughput.contains(path)) {
            if wanted < now {
                // long flows need more; short ones give what they have too much
                wanted = wanted.max(now.min(whole(SLACK * needs.short * all)));
            } else if short_need <= now && now < wanted {
                // long flows leave some over
                wanted = wanted.min(now.max(total - whole(SLACK * needs.long * all)));
            }
        }
        wanted.min(total - 1).max(1)
    }

    /// Splits these sets of paths, each that of a pair of leaves, by the present loads; returns the split.
    ///
    /// Each set with two paths or more gets some of both kinds, if sets do not overlap otherwise than by containing
    /// each other; as few paths as possible change sides.
    pub fn split(&mut self, path_sets: impl IntoIterator<Item = BTreeSet<u16>>) -> &Split {
        let mut sets: Vec<Vec<u16>> =
            path_sets.into_iter().map(|paths| paths.into_iter().collect()).collect();
        sets.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        sets.dedup();
        let (mut low, mut high) = (BTreeSet::new(), BTreeSet::new());
        for paths in &sets {
            let missing = self.count(paths) - paths.iter().filter(|path| low.contains(*path)).count() as i64;
            let is_free = |path: &u16| !low.contains(path) && !high.contains(path);
            let mut free: Vec<u16> = paths.iter().copied().filter(is_free).collect();
            free.sort_by_key(|path| !self.split.low_latency.contains(path));
            let mut chosen = missing.clamp(0, free.len() as i64) as usize;
            let all_free = chosen == free.len() && chosen > 0;
            if all_free && paths.len() > 1 && !paths.iter().any(|path| high.contains(path)) {
                chosen -= 1;
            }
            high.extend(free.split_off(chosen));
            low.extend(free);
        }
        self.split = Split { low_latency: low, throughput: high };
        &self.split
    }
}

fn whole(paths: f64) -> i64 {
    (paths - 1e-9).ceil() as i64
}
