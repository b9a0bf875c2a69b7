//! What a run owes its reader when it is over: every packet accounted for, and something carried.

use crate::packets::Packets;
use crate::simulation::Simulation;
use crate::topology::Tier;
use crate::Error;

/// Return an error unless the books of links, flows and hosts agree: what was sent was delivered, dropped, or is under way.
///
/// `empty`: nothing is under way any more.
pub fn check(simulation: &Simulation, empty: bool) -> Result<(), Error> {
    let (mut held, mut dropped, mut offered, mut delivered) = (0, 0, 0, 0);
    for (number, port) in simulation.ports.iter().enumerate() {
        let (waiting, flying) = port.held();
        let (here, counters) = ((waiting + flying) as u64, &port.counters);
        equal(counters.offered, counters.delivered + counters.dropped + here, || format!("link {number}"))?;
        held += here;
        dropped += counters.dropped;
        match simulation.topology.links[number].tier {
            Tier::HostUp => offered += counters.offered,
            Tier::HostDown => delivered += counters.delivered,
            _ => {}
        }
    }
    let packets = &simulation.totals.packets;
    equal(live(&simulation.packets), held, || "packets in queues and on links".into())?;
    equal(packets.made, packets.delivered + packets.dropped + held, || "all flows".into())?;
    equal(packets.made, offered, || "hosts' own ports".into())?;
    equal(packets.delivered, delivered, || "links to hosts".into())?;
    equal(packets.dropped, dropped, || "drops at links".into())?;
    let of_flows: u64 = simulation.flows.live().map(|flow| flow.in_network()).sum();
    let feedback = &simulation.totals.feedback;
    let of_none = feedback.made - feedback.delivered - feedback.dropped;
    equal(of_flows + of_none, held, || "packets of flows under way".into())?;
    let left = simulation.flows.live().count();
    if empty && left > 0 {
        return Err(Error(format!(
            "{left} flows never ended: their packets were dropped and their transport sends nothing again; \
             use an endless buffer or a transport with a time-out"
        )));
    }
    if packets.delivered == 0 || (empty && simulation.finished() == 0) {
        return Err(Error("the run carried nothing: no flow was completed".to_string()));
    }
    Ok(())
}

fn live(packets: &Packets) -> u64 {
    packets.live() as u64
}

fn equal(sent: u64, accounted: u64, place: impl Fn() -> String) -> Result<(), Error> {
    if sent == accounted {
        return Ok(());
    }
    Err(Error(format!(
        "{}: {sent} packets were sent, {accounted} are accounted for; this is an error of the simulator",
        place()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Lengths};
    use crate::flow::Demand;
    use crate::paths::Balancing;
    use crate::queue::{Buffer, Discipline, Limit};
    use crate::time::Rate;
    use crate::topology::{LeafSpine, Shape};
    use crate::transport::{pfabric, Transport};

    /// A run with losses.
    fn over() -> Simulation {
        let rate = Rate::new(10_000_000_000);
        let shape = Shape::LeafSpine(LeafSpine {
            leaves: 1,
            hosts_per_leaf: 4,
            spines: 1,
            host_rate: rate,
            spine_rate: rate,
            delay: 200_000,
        });
        let config = Config {
            shape,
            changes: Vec::new(),
            buffer: Buffer {
                discipline: Discipline::PFabric,
                limit: Limit::Bytes(9000),
                mark_from: 0,
                drops_unmarkable: false,
            },
            lengths: Lengths { payload: 1460, header: 40, acknowledgement: 40 },
            transport: Transport::PFabric(pfabric::Settings::default()),
            balancing: Balancing::Turn,
            seed: 1,
        };
        let demand = |source| Demand { start: 0, source, destination: 3, bytes: 60_000, level: 0 };
        let mut simulation = Simulation::new(config, (0..3).map(demand).collect()).unwrap();
        while !simulation.run(1 << 20).unwrap() {}
        assert!(simulation.totals.data_dropped > 0);
        simulation
    }

    #[test]
    fn a_packet_that_is_missing_anywhere_is_an_error() {
        assert_eq!(check(&over(), true), Ok(()));
        let changes: [fn(&mut Simulation); 7] = [
            |of| of.ports[0].counters.offered += 1,
            |of| of.ports[7].counters.delivered -= 1,
            |of| of.ports[7].counters.dropped -= 1,
            |of| of.totals.packets.made += 1,
            |of| of.totals.packets.delivered -= 1,
            |of| of.totals.packets.dropped -= 1,
            |of| {
                let packet = *of.packets.get(0);
                of.packets.add(packet);
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut simulation = over();
            change(&mut simulation);
            assert!(check(&simulation, true).is_err(), "change {number} was not seen");
        }
    }
}
