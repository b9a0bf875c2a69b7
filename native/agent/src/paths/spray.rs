//! Random packet spraying: a fresh entropy value per packet (Dixit et al.: "On the Impact of Packet Spraying in Data
//! Center Networks", IEEE INFOCOM 2013).

use crate::paths::PathPolicy;
use crate::random::Random;
use crate::route::{FlowRef, Route};
use crate::time::Seconds;
use crate::underlay::{EVS, EV_FIRST};

/// Uniform over all entropy values; switches hash them evenly over the paths.
#[derive(Clone, Debug)]
pub struct Spray<R>(R);

impl<R: Random> Spray<R> {
    /// Returns a policy that draws from `random`.
    pub fn new(random: R) -> Spray<R> {
        Spray(random)
    }
}

impl<R: Random> PathPolicy for Spray<R> {
    fn source_port(&mut self, _flow: FlowRef, _route: &Route, _size: u32, _now: Seconds) -> u16 {
        entropy_value(&mut self.0)
    }
}

/// Returns an entropy value, each with the same probability.
pub fn entropy_value(random: &mut impl Random) -> u16 {
    EV_FIRST + random.below(EVS) as u16
}
