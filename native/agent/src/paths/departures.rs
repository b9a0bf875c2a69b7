//! When datagrams left, and of which flow and class: what policies that learn are to know of them.

use datapath::sent::RING;

use crate::class::TrafficClass;
use crate::time::Seconds;

/// A datagram that left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departed {
    /// The flow's number on the wire; 0: none that a policy wants to know of.
    pub flow: u32,
    /// Of the packet in it.
    pub class: TrafficClass,
    /// When it left.
    pub at: Seconds,
}

const NONE: Departed = Departed { flow: 0, class: TrafficClass::None, at: 0.0 };

/// The last datagrams to one peer. In step with `SentLog`, which knows whether a number is still remembered.
#[derive(Clone, Debug)]
pub struct Departures(Vec<Departed>);

impl Default for Departures {
    fn default() -> Departures {
        Departures(vec![NONE; RING])
    }
}

impl Departures {
    /// Takes in that `count` datagrams from `number` on leave alike.
    pub fn sent(&mut self, number: u32, count: u32, departed: Departed) {
        for ahead in 0..count {
            self.0[slot(number.wrapping_add(ahead))] = departed;
        }
    }

    /// Returns what was said of a datagram.
    pub fn of(&self, number: u32) -> Departed {
        self.0[slot(number)]
    }
}

fn slot(number: u32) -> usize {
    number as usize % RING
}
