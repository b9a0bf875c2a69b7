//! When datagrams left, and of which flow and class: what policies that learn are to know of them.

use datapath::by_number::ByNumber;
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

/// The last datagrams to one peer that it has not reported. In step with `SentLog`, which knows their source ports.
#[derive(Clone, Debug, Default)]
pub struct Departures(ByNumber<Departed, { RING as u32 }>);

impl Default for Departed {
    fn default() -> Departed {
        Departed { flow: 0, class: TrafficClass::None, at: 0.0 }
    }
}

impl Departures {
    /// Notes that `count` datagrams from `number` on leave alike.
    pub fn sent(&mut self, number: u32, count: u32, departed: Departed) {
        self.0.put_same(number, count, departed);
    }

    /// Returns what was said of a datagram; one of no flow if nothing was, or it is forgotten.
    pub fn of(&self, number: u32) -> Departed {
        self.0.get(number).unwrap_or_default()
    }

    /// Forgets a datagram that the peer has reported.
    pub fn forget(&mut self, number: u32) {
        self.0.take(number);
    }
}
