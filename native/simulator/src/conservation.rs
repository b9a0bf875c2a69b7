//! What a run owes its reader when it is over: every packet accounted for, and something carried.

use crate::flow::Tally;
use crate::packets::{Packets, NO_FLOW};
use crate::simulation::Simulation;
use crate::topology::Tier;
use crate::Error;

impl Simulation {
    /// Return an error unless the counts of links, flows and hosts agree: what was sent was delivered, dropped, or is under way.
    ///
    /// `empty`: nothing is under way any more.
    pub(crate) fn check_counts(&self, empty: bool) -> Result<(), Error> {
        let (mut held, mut dropped, mut offered, mut delivered) = (0, 0, 0, 0);
        for (number, port) in self.ports.iter().enumerate() {
            let (waiting, flying) = port.held();
            let (here, counters) = ((waiting + flying) as u64, &port.counters);
            equal(counters.offered, counters.delivered + counters.dropped + here, || {
                format!("link {number}")
            })?;
            held += here;
            dropped += counters.dropped;
            match self.topology.links[number].tier {
                Tier::HostUp => offered += counters.offered,
                Tier::HostDown => delivered += counters.delivered,
                _ => {}
            }
        }
        let packets = &self.totals.packets;
        equal(live(&self.packets), held, || "packets in queues and on links".into())?;
        equal(packets.made, packets.delivered + packets.dropped + held, || "all flows".into())?;
        equal(packets.made, offered, || "hosts' own ports".into())?;
        equal(packets.delivered, delivered, || "links to hosts".into())?;
        equal(packets.dropped, dropped, || "drops at links".into())?;
        self.check_flows()?;
        let unfinished = self.flows.live().count();
        if empty && unfinished > 0 {
            return Err(Error(format!(
            "{unfinished} flows never ended: their packets were dropped and their transport sends nothing again; \
             use an endless buffer or a transport with a time-out"
        )));
        }
        if packets.delivered == 0 || (empty && self.finished() == 0) {
            return Err(Error("the run carried nothing: no flow was completed".to_string()));
        }
        Ok(())
    }

    /// Return an error unless each flow's counts, and those of packets of no flow, say how many of its packets are under way,
    /// and all of them together, with those of flows that have ended, are the counts of all hosts.
    fn check_flows(&self) -> Result<(), Error> {
        let mut of_flow = vec![0; self.flows.most()];
        let mut of_none = 0;
        for packet in self.packets.all() {
            match of_flow.get_mut(packet.flow as usize).filter(|_| packet.flow != NO_FLOW) {
                Some(count) => *count += 1,
                None => of_none += 1,
            }
        }
        let feedback = self.totals.feedback;
        balanced(feedback, of_none, || "packets of no flow".into())?;
        let mut all = feedback;
        all.add(self.ended);
        for (flow, under_way) in self.flows.by_place().zip(of_flow) {
            let tally = flow.map_or(Tally::default(), |flow| flow.tally);
            balanced(tally, under_way, || match flow {
                Some(flow) => format!("flow {}", flow.number),
                None => "a flow that has ended".into(),
            })?;
            all.add(tally);
        }
        let packets = self.totals.packets;
        equal(packets.made, all.made, || "flows one by one".into())?;
        equal(packets.delivered, all.delivered, || "arrivals, flow by flow".into())?;
        equal(packets.dropped, all.dropped, || "drops, flow by flow".into())
    }
}

fn balanced(tally: Tally, under_way: u64, place: impl Fn() -> String) -> Result<(), Error> {
    equal(tally.made, tally.delivered + tally.dropped + under_way, place)
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
    use crate::flow::{Demand, Flow};
    use crate::queue::{Discipline, Limit};
    use crate::simulation::tests::small_leaf_spine;
    use crate::transport::{pfabric, Transport};

    /// Returns a run with losses, after so many events.
    fn run(events: u64) -> Simulation {
        let transport = Transport::PFabric(pfabric::Settings::default());
        let config = small_leaf_spine((1, 1), Discipline::PFabric, Limit::Bytes(9000), transport);
        let demand = |source| Demand { start: 0, source, destination: 3, bytes: 60_000, level: 0 };
        let mut simulation = Simulation::new(config, (0..3).map(demand).collect()).unwrap();
        simulation.run(events).unwrap();
        simulation
    }

    /// Returns the run when it is over.
    fn over() -> Simulation {
        let simulation = run(1 << 20);
        assert!(simulation.is_over() && simulation.totals.data_dropped > 0);
        simulation
    }

    /// Returns the same run, while packets of all flows are under way.
    fn under_way() -> Simulation {
        let mut simulation = run(1);
        let there = |flow: &Flow| flow.tally.delivered > 0 && flow.in_network() > 0;
        while simulation.flows.live().filter(|flow| there(flow)).count() < 3 {
            assert!(!simulation.run(1).unwrap());
        }
        simulation
    }

    fn flow(of: &mut Simulation, place: u32) -> &mut Tally {
        &mut of.flows.get(place).unwrap().tally
    }

    #[test]
    fn a_packet_that_is_counted_for_another_flow_is_an_error() {
        assert_eq!(under_way().check_counts(false), Ok(()));
        let changes: [fn(&mut Simulation); 6] = [
            |of| flow(of, 0).made += 1,
            |of| flow(of, 1).delivered -= 1,
            |of| flow(of, 2).dropped += 1 << 40, // what is under way would be below 0
            |of| {
                flow(of, 0).made += 1;
                flow(of, 1).made -= 1;
            },
            |of| {
                flow(of, 0).delivered += 1;
                flow(of, 1).dropped += 1;
                flow(of, 2).made += 2;
            },
            |of| {
                // of a flow that has ended
                of.ended.made += 1;
                of.ended.delivered += 1;
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut simulation = under_way();
            change(&mut simulation);
            assert!(simulation.check_counts(false).is_err(), "change {number} was not seen");
        }
    }

    #[test]
    fn a_packet_that_is_missing_anywhere_is_an_error() {
        assert_eq!(over().check_counts(true), Ok(()));
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
            assert!(simulation.check_counts(true).is_err(), "change {number} was not seen");
        }
    }
}
