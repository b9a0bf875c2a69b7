//! A fat tree of switches with k ports (Al-Fares et al., SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches,
//! (k/2)^2 cores. A path between pods is a core, numbered j + a k/2: the j-th core of aggregation switch a; a path
//! within a pod is an aggregation switch.
//!
//! Links, H hosts and h = k/2: as many in each tier; first host to edge and edge to host (as in a leaf-spine), then edge
//! to aggregation (edge h + a), aggregation to edge (pod h h + a h + e), aggregation to core (pod h h + a h + j), and
//! core to aggregation (core k + pod).

use super::{Link, Tier};
use crate::time::{Rate, Time};
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    pub k: u32,
    pub host_rate: Rate,
    pub fabric_rate: Rate,
    pub delay: Time,
}

impl FatTree {
    fn half(&self) -> u32 {
        self.k / 2
    }

    pub fn hosts(&self) -> u32 {
        self.k * self.half() * self.half()
    }

    pub fn edges(&self) -> u32 {
        self.k * self.half()
    }

    pub fn edge_of(&self, host: u32) -> u32 {
        host / self.half()
    }

    fn pod_of(&self, edge: u32) -> u32 {
        edge / self.half()
    }

    /// Return how many ways up an edge switch has.
    pub fn uplinks(&self) -> u32 {
        self.half()
    }

    /// Return the number of paths between pods.
    pub fn paths(&self) -> u32 {
        self.half() * self.half()
    }

    /// Return how many aggregation switches come before the cores that turn paths between two edges.
    pub fn first_turning(&self, from: u32, to: u32) -> u16 {
        if self.pod_of(from) == self.pod_of(to) {
            0
        } else {
            self.half() as u16
        }
    }

    pub fn paths_between(&self, from: u32, to: u32) -> u32 {
        if self.pod_of(from) == self.pod_of(to) {
            self.half()
        } else {
            self.paths()
        }
    }

    pub fn links(&self) -> Result<Vec<Link>, Error> {
        if self.k < 2 || self.k % 2 > 0 || self.k > 72 {
            return Err(Error(format!("a fat tree of k = {}: k is even, 2 to 72", self.k)));
        }
        if self.host_rate.bits_per_second() == 0 || self.fabric_rate.bits_per_second() == 0 {
            return Err(Error("links carry nothing at 0 bit/s: give a rate".to_string()));
        }
        let tiers =
            [Tier::HostUp, Tier::HostDown, Tier::LeafUp, Tier::LeafDown, Tier::CoreUp, Tier::CoreDown];
        let of = |tier| {
            let host = matches!(tier, Tier::HostUp | Tier::HostDown);
            let rate = if host { self.host_rate } else { self.fabric_rate };
            std::iter::repeat_n(Link { tier, rate, delay: self.delay, up: true }, self.hosts() as usize)
        };
        Ok(tiers.into_iter().flat_map(of).collect())
    }

    /// Return the number of the switch that sends on a link: edges, then aggregation switches, then cores.
    pub fn switch_of(&self, link: u32) -> u32 {
        let (hosts, half) = (self.hosts(), self.half());
        let place = link % hosts;
        match link / hosts {
            1 | 2 => place / half,
            3 | 4 => self.edges() + place / half,
            _ => 2 * self.edges() + place / self.k,
        }
    }

    pub fn next(&self, link: u32, destination: u32, path: u16) -> Option<u32> {
        let (hosts, half, path) = (self.hosts(), self.half(), u32::from(path));
        let target = self.edge_of(destination);
        let (tier, place) = (link / hosts, link % hosts);
        let down =
            |pod: u32, aggregation: u32| 3 * hosts + pod * half * half + aggregation * half + target % half;
        match tier {
            0 => {
                let edge = self.edge_of(place);
                if edge == target {
                    return Some(hosts + destination);
                }
                let within = self.pod_of(edge) == self.pod_of(target);
                let aggregation = if within { path } else { path / half };
                Some(2 * hosts + edge * half + aggregation)
            }
            1 => None,
            2 => {
                let (pod, aggregation) = (self.pod_of(place / half), place % half);
                if pod == self.pod_of(target) {
                    return Some(down(pod, aggregation));
                }
                Some(4 * hosts + pod * half * half + aggregation * half + path % half)
            }
            3 => Some(hosts + destination),
            4 => Some(5 * hosts + (place % (half * half)) * self.k + self.pod_of(target)),
            _ => Some(down(place % self.k, place / self.k / half)),
        }
    }
}
