//! Entropy values that came back unharmed are used again: REPS.
//!
//! T. Bonato, A. Kabbani, A. Ghalayini, M. Papamichael, M. Dohadwala, L. Gianinazzi, M. Khalilov, E. Achermann, D. De
//! Sensi, T. Hoefler: "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation",
//! arXiv 2407.21625, section 3, Algorithms 1 and 2. Read as: each flow has a ring of eight entropy values. One that a
//! receiver reports without a congestion mark is cached; a packet takes the oldest of these and thereby uses it up; with
//! none cached, or while the flow explores, it draws at random. On a loss the flow freezes: for a while nothing is drawn,
//! and what the ring holds is used in turn even when it was used up, for it is known to get through. Then it explores
//! once more.
//!
//! The paper's mark is ECN, which feedback carries, and its loss is a time-out. A one-way delay of more than `congested_s`
//! above the least is a mark, too, for few fabrics mark; a loss is a peer's report that a datagram was given up.

use std::collections::VecDeque;

use crate::hash::NumberMap;
use crate::paths::spray::entropy_value;
use crate::paths::{PathPolicy, Report};
use crate::random::Random;
use crate::route::{FlowRef, LeafId, Route};
use crate::time::Seconds;

/// Entropy values that a flow keeps (the paper's choice, section 3.2).
pub const RING: usize = 8;

/// What the paper leaves to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepsSettings {
    /// A packet that was delayed by more is no proof of a good path.
    pub congested_s: Seconds,
    /// Packets sent at random when a flow begins and when it thaws (the paper: one bandwidth-delay product).
    pub explore_packets: u32,
    /// How long a loss freezes a flow.
    pub freeze_s: Seconds,
}

/// What a flow knows.
#[derive(Clone, Debug)]
struct Ring {
    /// Packets that it still sends at random.
    explore: u32,
    /// Values not used up, the oldest first.
    cached: VecDeque<u16>,
    /// The last values cached, used up or not.
    seen: VecDeque<u16>,
    turn: usize,
    frozen_until: Option<Seconds>,
}

/// Draws entropy values, and uses those again that came back unharmed.
#[derive(Clone, Debug)]
pub struct Reps<R> {
    random: R,
    settings: RepsSettings,
    rings: NumberMap<i64, Ring>,
}

impl<R: Random> Reps<R> {
    /// Returns a policy that draws from `random`.
    pub fn new(random: R, settings: RepsSettings) -> Reps<R> {
        Reps { random, settings, rings: NumberMap::default() }
    }
}

impl<R: Random> PathPolicy for Reps<R> {
    fn learns(&self) -> bool {
        true
    }

    fn source_port(&mut self, flow: FlowRef, _route: &Route, _size: u32, _now: Seconds) -> u16 {
        let explore = self.settings.explore_packets;
        let ring = self.rings.entry(flow.id).or_insert_with(|| Ring {
            explore,
            cached: VecDeque::new(),
            seen: VecDeque::new(),
            turn: 0,
            frozen_until: None,
        });
        if ring.explore > 0 {
            ring.explore -= 1;
        } else if let Some(oldest) = ring.cached.pop_front() {
            return oldest;
        } else if ring.frozen_until.is_some() && !ring.seen.is_empty() {
            ring.turn = (ring.turn + 1) % ring.seen.len();
            return ring.seen[ring.turn];
        }
        entropy_value(&mut self.random)
    }

    fn reported(&mut self, report: &Report, now: Seconds) {
        let Some(ring) = self.rings.get_mut(&report.flow) else { return };
        if report.is_congested(self.settings.congested_s) {
            return;
        }
        for values in [&mut ring.cached, &mut ring.seen] {
            if values.len() == RING {
                values.pop_front();
            }
            values.push_back(report.port);
        }
        if ring.frozen_until.is_some_and(|until| now >= until) {
            ring.frozen_until = None;
            ring.explore = self.settings.explore_packets;
        }
    }

    fn lost(&mut self, flow: i64, _leaf: LeafId, _port: u16, now: Seconds) {
        let Some(ring) = self.rings.get_mut(&flow) else { return };
        if ring.frozen_until.is_none() && ring.explore == 0 {
            ring.frozen_until = Some(now + self.settings.freeze_s);
        }
    }

    fn forget(&mut self, flow: i64) {
        self.rings.remove(&flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use crate::TrafficClass;

    #[test]
    fn a_value_that_came_back_marked_is_not_used_again() {
        let settings = RepsSettings { explore_packets: 1, congested_s: 0.01, freeze_s: 1.0 };
        let route = Route::unnamed(LeafId(2), TrafficClass::Short);
        let flow = FlowRef { id: 1, hash: 7 };
        for marked in [false, true] {
            let mut reps = Reps::new(Generator::new(5), settings);
            let port = reps.source_port(flow, &route, 1400, 0.0);
            let leaf = LeafId(2);
            reps.reported(&Report { flow: 1, leaf, port, stamp: 3, delay_s: 0.0, sent: 0.0, marked }, 0.1);
            assert_eq!(reps.source_port(flow, &route, 1400, 0.1) == port, !marked);
        }
    }
}
