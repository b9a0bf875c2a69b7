//! Round robin per packet over named paths: DRB.
//!
//! J. Cao, R. Xia, P. Yang, C. Guo, G. Lu, L. Yuan, Y. Zheng, H. Wu, Y. Xiong, D. Maltz: "Per-packet Load-balanced,
//! Low-Latency Routing for Clos-based Data Center Networks", ACM CoNEXT 2013, section 4: a sender names the switch at
//! which a packet turns ("bounces"), in turn over all of them in digit-reversed order, from a random first one.

use crate::hash::NumberMap;
use crate::paths::spray::entropy_value;
use crate::paths::PathPolicy;
use crate::random::Random;
use crate::route::{FlowRef, Route, RouteId};
use crate::time::Seconds;

#[derive(Clone, Debug)]
struct Turn {
    /// Of the labels that `order` has.
    version: u32,
    order: Vec<u16>,
    at: usize,
}

/// In turn for each destination leaf and class, so that shares differ by one packet; sprays unnamed paths.
///
/// The paper turns per pair of hosts; all hosts of a leaf are reached over the same paths, so one turn serves them all.
#[derive(Clone, Debug)]
pub struct RoundRobin<R> {
    random: R,
    turns: NumberMap<RouteId, Turn>,
}

impl<R: Random> RoundRobin<R> {
    /// Returns a policy that draws where each turn begins from `random`.
    pub fn new(random: R) -> RoundRobin<R> {
        RoundRobin { random, turns: NumberMap::default() }
    }
}

impl<R: Random> PathPolicy for RoundRobin<R> {
    fn source_port(&mut self, _flow: FlowRef, route: &Route, _size: u32, _now: Seconds) -> u16 {
        let turn = self.turns.entry(route.id()).or_insert_with(|| Turn {
            version: route.version.wrapping_sub(1),
            order: Vec::new(),
            at: 0,
        });
        if turn.version != route.version {
            turn.version = route.version;
            turn.order = digit_reversed(&route.labels);
            let paths = turn.order.len();
            turn.at = if paths > 0 { self.random.below(paths as u32) as usize } else { 0 };
        }
        let Some(&label) = turn.order.get(turn.at) else { return entropy_value(&mut self.random) };
        turn.at += 1;
        if turn.at == turn.order.len() {
            turn.at = 0;
        }
        label
    }
}

/// Returns `labels` in the order of their places' reversed binary digits.
///
/// Neighbours in the numbering share an aggregation switch; this way packets that follow each other do not.
pub fn digit_reversed(labels: &[u16]) -> Vec<u16> {
    let digits = usize::BITS - labels.len().saturating_sub(1).leading_zeros();
    let mut places: Vec<usize> = (0..labels.len()).collect();
    places.sort_by_key(|place| place.reverse_bits() >> (usize::BITS - digits.max(1)));
    places.into_iter().map(|place| labels[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_time_share_no_aggregation_switch() {
        assert_eq!(digit_reversed(&[0, 1, 2, 3, 4, 5, 6, 7]), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(digit_reversed(&[5, 6, 7]), [5, 7, 6]);
        assert_eq!(digit_reversed(&[9]), [9]);
        assert!(digit_reversed(&[]).is_empty());
    }
}
