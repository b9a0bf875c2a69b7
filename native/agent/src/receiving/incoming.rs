//! What the headers of datagrams say.

use crate::class::TrafficClass;
use crate::peers::PeerId;
use crate::receiving::Repair;

/// What the headers of a datagram say that came, undamaged and of a peer's present session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Whose it is.
    pub from: PeerId,
    /// Its number.
    pub number: u32,
    /// When it left: microseconds of its sender's clock, modulo 2^32.
    pub sent_us: u32,
    /// Of what it carries.
    pub class: TrafficClass,
    /// Whether it is a source of a coding unit.
    pub coded: bool,
    /// The flow's number.
    pub flow: u32,
    /// Of the packet, or of the first packet of the unit.
    pub position: u32,
    /// Stamp of the path that it took; 0: it crossed no top tier.
    pub stamp: u16,
    /// Congestion marks of its outer header.
    pub ecn: u8,
}

/// A repair that overtook every source of its flow.
#[derive(Clone, Debug)]
pub struct EarlyRepair<S> {
    /// Its headers.
    pub datagram: Incoming,
    /// The repair.
    pub repair: Repair<S>,
}
