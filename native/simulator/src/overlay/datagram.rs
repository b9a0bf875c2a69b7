//! Datagrams between agents: what their headers say, and what is inside.

use agent::departure::Head;
use agent::receiving::UnitShape;
use datapath::feedback::Feedback;

use super::inner::{Inner, Symbol};

/// What a datagram carries.
#[derive(Clone, Debug)]
pub enum Carried {
    Source(Inner),
    Repair { unit: UnitShape, index: u32, symbol: Symbol },
    Feedback(Box<Feedback>),
}

/// A datagram from one host's agent to another's.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub from: u32,
    pub to: u32,
    pub head: Head,
    /// Entropy value or path label.
    pub source_port: u16,
    /// Base port and flow key.
    pub destination_port: u16,
    /// 0 is served first.
    pub priority: u8,
    pub ecn: u8,
    /// On the wire.
    pub bytes: u32,
    pub carried: Carried,
}

impl Datagram {
    /// Return the place and row of the flow that it is counted for; None: it is feedback.
    pub fn of_flow(&self) -> Option<(u32, u32)> {
        let inner = match &self.carried {
            Carried::Source(inner) => inner,
            Carried::Repair { symbol, .. } => symbol.packets.first()?,
            Carried::Feedback(_) => return None,
        };
        Some((inner.place, inner.row))
    }

    /// Return the priority in queues that order packets by what is left of their flows; agents' own go first.
    pub fn rank(&self) -> u32 {
        match &self.carried {
            Carried::Source(inner) => inner.rank,
            Carried::Repair { symbol, .. } => symbol.packets.first().map_or(0, |first| first.rank),
            Carried::Feedback(_) => 0,
        }
    }
}
