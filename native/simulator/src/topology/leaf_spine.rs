//! Leaves with hosts, each leaf with a link to every spine. A path is its spine.
//!
//! Links, H hosts, L leaves, S spines: h is host h's own port; H + h leads to host h; 2H + l S + s from leaf l to
//! spine s; 2H + L S + s L + l from spine s to leaf l.

use super::{Link, Tier};
use crate::time::{Rate, Time};
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    pub leaves: u32,
    pub hosts_per_leaf: u32,
    pub spines: u32,
    pub host_rate: Rate,
    pub spine_rate: Rate,
    pub delay: Time,
}

impl LeafSpine {
    pub fn hosts(&self) -> u32 {
        self.leaves * self.hosts_per_leaf
    }

    pub fn leaf_of(&self, host: u32) -> u32 {
        host / self.hosts_per_leaf
    }

    /// Return all links, or an error for a fabric that cannot be.
    pub fn links(&self) -> Result<Vec<Link>, Error> {
        let of =
            format!("{} leaves, {} hosts a leaf, {} spines", self.leaves, self.hosts_per_leaf, self.spines);
        let hosts = u64::from(self.leaves) * u64::from(self.hosts_per_leaf);
        let inner = u64::from(self.leaves) * u64::from(self.spines);
        if self.leaves == 0 || self.hosts_per_leaf == 0 || (self.spines == 0 && self.leaves > 1) {
            return Err(Error(format!("{of}: each must be at least 1")));
        }
        if hosts > 100_000 || self.spines > 10_000 || inner > 10_000_000 {
            return Err(Error(format!(
                "{of}: at most 100000 hosts, 10000 spines and 10000000 links between them"
            )));
        }
        if self.host_rate.bits_per_second() == 0 || self.spine_rate.bits_per_second() == 0 {
            return Err(Error("links carry nothing at 0 bit/s: give a rate".to_string()));
        }
        let tier = |tier, count, rate| {
            std::iter::repeat_n(Link { tier, rate, delay: self.delay, up: true }, count as usize)
        };
        Ok(tier(Tier::HostUp, hosts, self.host_rate)
            .chain(tier(Tier::HostDown, hosts, self.host_rate))
            .chain(tier(Tier::LeafUp, inner, self.spine_rate))
            .chain(tier(Tier::LeafDown, inner, self.spine_rate))
            .collect())
    }

    pub fn leaf_up(&self, leaf: u32, spine: u32) -> u32 {
        2 * self.hosts() + leaf * self.spines + spine
    }

    pub fn leaf_down(&self, spine: u32, leaf: u32) -> u32 {
        2 * self.hosts() + self.leaves * self.spines + spine * self.leaves + leaf
    }

    /// Return the number of the switch that sends on a link, leaves before spines.
    pub fn switch_of(&self, link: u32) -> u32 {
        let (hosts, inner) = (self.hosts(), self.leaves * self.spines);
        let place = link - hosts;
        match place.checked_sub(hosts) {
            None => self.leaf_of(place),
            Some(up) if up < inner => up / self.spines,
            Some(down) => self.leaves + (down - inner) / self.leaves,
        }
    }

    pub fn next(&self, link: u32, destination: u32, path: u16) -> Option<u32> {
        let hosts = self.hosts();
        if link < hosts {
            let leaf = self.leaf_of(link);
            if leaf == self.leaf_of(destination) {
                return Some(hosts + destination);
            }
            return Some(self.leaf_up(leaf, u32::from(path)));
        }
        if link < 2 * hosts {
            return None;
        }
        let inner = link - 2 * hosts;
        if inner < self.leaves * self.spines {
            return Some(self.leaf_down(inner % self.spines, self.leaf_of(destination)));
        }
        Some(hosts + destination)
    }
}
