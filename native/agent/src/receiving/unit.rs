//! A coding unit as its receiver sees it, and what a payload must know to be rebuilt.

use coding::packets::{LENGTH_BYTES, MOST_PACKET_BYTES};
use coding::Code;

use crate::Seconds;

/// Bytes of the longest symbol.
pub const MAX_SYMBOL_BYTES: usize = LENGTH_BYTES + MOST_PACKET_BYTES;

/// What all repairs of a unit say alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitShape {
    /// Which code they are of.
    pub code: Code,
    /// Sources of the unit.
    pub k: u32,
    /// Repairs of the unit.
    pub r: u32,
    /// What the code's coefficients follow from.
    pub seed: u32,
}

/// A repair that came.
#[derive(Clone, Debug)]
pub struct Repair<S> {
    /// Of its unit's first source.
    pub position: u32,
    /// Its unit.
    pub unit: UnitShape,
    /// Which of the unit's repairs it is, from 0 on.
    pub index: u32,
    /// What it carries.
    pub symbol: S,
}

/// The symbols of a unit cannot all be right: no packet of it may be rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

/// A packet that a decoder keeps and rebuilds: bytes on hosts, a name in a simulation.
pub trait Payload: Clone {
    /// What a repair carries.
    type Symbol;

    /// Returns the bytes of the packet.
    fn bytes(&self) -> usize;

    /// Returns the bytes of a symbol: of its unit's longest packet, and its length.
    fn symbol_bytes(symbol: &Self::Symbol) -> usize;

    /// Rebuilds what the symbols determine of a unit's packets (None where one has not come), by the repairs that came
    /// and their indices. Returns their places within the unit, ascending, and the packets.
    fn rebuild(
        unit: UnitShape,
        packets: &[Option<&Self>],
        repairs: &[(u32, Self::Symbol)],
    ) -> Result<Vec<(u32, Self)>, Contradiction>;
}

/// A unit that is incomplete.
#[derive(Clone, Debug)]
pub(super) struct Unit<S> {
    pub first: u32,
    pub shape: UnitShape,
    pub symbol_bytes: usize,
    pub since: Seconds,
    /// In the order in which they came.
    pub repairs: Vec<(u32, S)>,
    pub given_up: bool,
}

impl<S> Unit<S> {
    pub fn covers(&self, position: u32) -> bool {
        position.wrapping_sub(self.first) < self.shape.k
    }

    pub fn repair_bytes(&self) -> usize {
        self.symbol_bytes * self.repairs.len()
    }
}
