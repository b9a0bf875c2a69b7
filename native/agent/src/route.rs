//! What a path policy knows of a packet's flow, and where it may go.

use std::sync::Arc;

use crate::class::TrafficClass;

/// What a policy knows of a flow: an inner 5-tuple and direction, or the agent's own feedback to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowRef {
    /// The same for all packets of a flow, and of no two that are alive. Below 0: our feedback, not reported.
    pub id: i64,
    /// A function of the 5-tuple.
    pub hash: u32,
}

/// A leaf switch, by the number that this agent (or simulation) gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafId(pub u16);

/// Number of a route within an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId {
    /// The destination.
    pub leaf: LeafId,
    /// Of the packets.
    pub class: TrafficClass,
}

/// A destination leaf as packets of one traffic class may reach it.
#[derive(Clone, Debug)]
pub struct Route {
    /// The destination.
    pub leaf: LeafId,
    /// Of the packets.
    pub class: TrafficClass,
    /// Source ports that name the live paths, ascending. Empty while they are not known, and towards our own leaf.
    pub labels: Arc<[u16]>,
    /// By label, the microseconds that its path takes more than the fastest one while both are idle. Empty: none is known.
    pub idle_us: Arc<[u32]>,
    /// The same for two routes only if their labels are the same; fresh whenever they change. 0: no labels.
    pub version: u32,
}

impl Route {
    /// Returns a route without labels.
    pub fn unnamed(leaf: LeafId, class: TrafficClass) -> Route {
        Route { leaf, class, labels: Arc::from([]), idle_us: Arc::from([]), version: 0 }
    }

    /// Returns the number of this route.
    pub fn id(&self) -> RouteId {
        RouteId { leaf: self.leaf, class: self.class }
    }

    /// Returns true if `port` names one of the live paths.
    pub fn names(&self, port: u16) -> bool {
        self.labels.contains(&port)
    }
}
