//! What the agents of a run and a controller in Python say to each other.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ::simulator::overlay::HostMessage;
use ::simulator::simulation::Simulation;
use agent::admission::MessageBody;

/// Host, sequence number, flow, and of a request its destination and the bytes left.
pub(super) type PyHostMessage = (u32, u32, u32, Option<(String, u64)>);

pub(super) fn asked((host, message): HostMessage) -> PyHostMessage {
    let request = match message.body {
        MessageBody::Request { destination, bytes_left } => {
            Some((Ipv4Addr::from(destination.peer).to_string(), bytes_left))
        }
        MessageBody::Finished => None,
    };
    (host, message.sequence, message.flow, request)
}

/// Return what all agents together have counted, by name.
pub(super) fn totals(simulation: &Simulation) -> BTreeMap<&'static str, u64> {
    let mut totals = BTreeMap::new();
    for (name, total) in simulation.admission_counts().iter().flat_map(|counts| counts.totals()) {
        *totals.entry(name).or_default() += total;
    }
    totals
}
