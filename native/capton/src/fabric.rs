//! Hosts and virtual links: the two directions of an access link, and those of all parallel links above a switch.

use crate::Error;

/// Links of the longest path: access, leaf, pod, each up and down.
pub const MOST_LINKS: usize = 6;
const MOST_LEVELS: usize = 2;
/// So that sums of rates never overflow.
pub const MOST_RATE: i64 = 1 << 53;

/// The links of a path, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    links: [u32; MOST_LINKS],
    count: u8,
}

impl Path {
    pub fn links(&self) -> &[u32] {
        &self.links[..usize::from(self.count)]
    }

    pub fn source(&self) -> usize {
        self.links[0] as usize
    }

    pub fn destination(&self) -> usize {
        self.links[1] as usize
    }

    fn push(&mut self, link: usize) {
        self.links[usize::from(self.count)] = u32::try_from(link).expect("as many links as fit");
        self.count += 1;
    }
}

/// Host h has links 2 h (up) and 2 h + 1 (down); behind all hosts come leaves, then pods, likewise.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// By host its leaf and its pod, as far as there are any.
    groups: Vec<Vec<u32>>,
    /// Link number of a level's first group.
    first: Vec<usize>,
    /// bit/s by link.
    pub capacities: Vec<i64>,
}

impl Fabric {
    /// Makes a fabric. `groups`: by host, from the leaf upwards; all hosts have as many.
    pub fn new(groups: Vec<Vec<u32>>, capacities: Vec<i64>) -> Result<Fabric, Error> {
        let levels = groups.first().map_or(0, Vec::len);
        if levels > MOST_LEVELS || groups.iter().any(|of| of.len() != levels) {
            return Err(Error(format!("every host must have the same number of groups, 0 to {MOST_LEVELS}")));
        }
        let (mut links, mut first) = (2 * groups.len(), Vec::new());
        for level in 0..levels {
            first.push(links);
            links += 2 * groups.iter().map(|of| of[level] as usize + 1).max().unwrap_or(0);
            if links > capacities.len() {
                break;
            }
        }
        if links != capacities.len() {
            return Err(Error(format!(
                "{} capacities do not fit {} hosts and their groups",
                capacities.len(),
                groups.len()
            )));
        }
        if let Some(bad) = capacities.iter().find(|rate| !(0..=MOST_RATE).contains(*rate)) {
            return Err(Error(format!("a capacity of {bad} bit/s is not in 0..{MOST_RATE}")));
        }
        Ok(Fabric { groups, first, capacities })
    }

    pub fn hosts(&self) -> usize {
        self.groups.len()
    }

    /// Returns the links of a path: access links up and down first, then up and down of every level that the two do not
    /// share.
    pub fn path(&self, source: usize, destination: usize) -> Result<Path, Error> {
        if source >= self.hosts() || destination >= self.hosts() || source == destination {
            return Err(Error(format!(
                "no flow goes from host {source} to host {destination}: there are {}",
                self.hosts()
            )));
        }
        let mut path = Path::default();
        path.push(2 * source);
        path.push(2 * destination + 1);
        for (level, first) in self.first.iter().enumerate() {
            let (from, to) = (self.groups[source][level], self.groups[destination][level]);
            if from == to {
                break;
            }
            path.push(first + 2 * from as usize);
            path.push(first + 2 * to as usize + 1);
        }
        Ok(path)
    }

    /// Returns the rate of the slowest link, bit/s.
    pub fn line(&self, path: &Path) -> i64 {
        path.links().iter().map(|&link| self.capacities[link as usize]).min().unwrap_or(0)
    }

    /// Returns, by link above the leaves' hosts, the access links of the same direction behind it; none for access
    /// links.
    pub fn behind(&self) -> Vec<Vec<u32>> {
        let mut behind = vec![Vec::new(); self.capacities.len()];
        for (host, groups) in self.groups.iter().enumerate() {
            for (group, first) in groups.iter().zip(&self.first) {
                for way in 0..2 {
                    let access = u32::try_from(2 * host + way).expect("as many links as fit");
                    behind[first + 2 * *group as usize + way].push(access);
                }
            }
        }
        behind
    }

    /// Change a link's capacity. What it was.
    pub fn set_capacity(&mut self, link: usize, rate: i64) -> Result<i64, Error> {
        if link >= self.capacities.len() || !(0..=MOST_RATE).contains(&rate) {
            return Err(Error(format!(
                "link {link} (of {}) cannot have {rate} bit/s (0..{MOST_RATE})",
                self.capacities.len()
            )));
        }
        Ok(std::mem::replace(&mut self.capacities[link], rate))
    }
}
