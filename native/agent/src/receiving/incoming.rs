//! What the headers of datagrams say.

use crate::departure::Head;
use crate::peers::PeerId;
use crate::receiving::Repair;

/// What the headers of a datagram say that came, undamaged and of a peer's present session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Whose it is.
    pub from: PeerId,
    /// What its sender says of it.
    pub head: Head,
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
