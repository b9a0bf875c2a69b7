//! Which policy a policy document asks for (protocol/policy.py), and how it is made.

use crate::paths::{
    BoxedPolicy, FlowHash, Flowcell, Flowlet, Granted, LabelHash, Plb, PlbSettings, Reps, RepsSettings,
    RoundRobin, Spray, Tr, Unblocked, UnblockedSettings,
};
use crate::random::Random;
use crate::time::Seconds;

/// A kind of policy, with what it has to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathSettings {
    /// Random packet spraying.
    Spray,
    /// One entropy value per flow.
    FlowHash,
    /// One path per flow, by hash.
    LabelHash,
    /// In turn, per packet.
    RoundRobin,
    /// The path that the controller granted.
    Granted,
    /// In turn, per flowcell.
    Flowcell {
        /// Most bytes of inner packets in a cell.
        bytes: i64,
    },
    /// A random path per flowlet.
    Flowlet {
        /// A longer pause ends a flowlet.
        gap_s: Seconds,
    },
    /// Traffic-aware rerouting.
    Tr {
        /// Of 1500 B on the slowest fabric link.
        packet_time_s: Seconds,
    },
    /// Entropy values that came back are used again.
    Reps(RepsSettings),
    /// One entropy value until its path stays congested.
    Plb(PlbSettings),
    /// At random among the paths that are not blocked.
    Unblocked(UnblockedSettings),
}

impl PathSettings {
    /// Returns a policy of this kind that draws from `random`.
    pub fn policy(self, random: impl Random + Send + Sync + 'static) -> BoxedPolicy {
        match self {
            PathSettings::Spray => Box::new(Spray::new(random)),
            PathSettings::FlowHash => Box::new(FlowHash),
            PathSettings::LabelHash => Box::new(LabelHash::default()),
            PathSettings::RoundRobin => Box::new(RoundRobin::new(random)),
            PathSettings::Granted => Box::new(Granted::default()),
            PathSettings::Flowcell { bytes } => Box::new(Flowcell::new(bytes)),
            PathSettings::Flowlet { gap_s } => Box::new(Flowlet::new(random, gap_s)),
            PathSettings::Tr { packet_time_s } => Box::new(Tr::new(packet_time_s)),
            PathSettings::Reps(settings) => Box::new(Reps::new(random, settings)),
            PathSettings::Plb(settings) => Box::new(Plb::new(random, settings)),
            PathSettings::Unblocked(settings) => Box::new(Unblocked::new(random, settings)),
        }
    }
}
