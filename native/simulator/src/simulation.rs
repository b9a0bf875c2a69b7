//! The run: events in order, packets from link to link, flows from their start to their end.

use crate::config::{check_demands, Config};
use crate::events::{Event, Events, Kind};
use crate::flow::{Demand, Flow, Flows, Outcome, Tally};
use crate::packets::{Cargo, Handle, Packet, Packets, NO_PATH};
use crate::paths::{PathChoice, Place, Request};
use crate::port::{Next, Port};
use crate::time::{Time, NEVER, SECOND};
use crate::topology::Topology;
use crate::transport::Answer;
use crate::{conservation, outgoing, Error};

/// A run in which nothing arrives for so long while flows are under way will not end.
const STALL: Time = 600 * SECOND;

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub events: u64,
    pub data_sent: u64,
    pub data_dropped: u64,
    pub acknowledgements_dropped: u64,
    pub timeouts: u64,
    pub duplicates: u64,
    /// All packets, at hosts.
    pub packets: Tally,
}

pub struct Simulation {
    pub(crate) config: Config,
    pub(crate) topology: Topology,
    pub(crate) ports: Vec<Port>,
    pub(crate) packets: Packets,
    pub(crate) flows: Flows,
    pub(crate) totals: Totals,
    events: Events,
    demands: Vec<Demand>,
    /// Rows of the workload in order of their starts, and how many have started.
    order: Vec<u32>,
    started: usize,
    finished: usize,
    outcomes: Vec<Outcome>,
    choice: Box<dyn PathChoice>,
    place: Place,
    now: Time,
    progress: Time,
}

impl Simulation {
    pub fn new(config: Config, demands: Vec<Demand>) -> Result<Simulation, Error> {
        let topology = Topology::new(config.shape, &config.changes)?;
        let choice = config.balancing.choice(topology.hosts(), config.seed);
        Simulation::with_choice(config, topology, demands, choice)
    }

    /// Make a run whose paths are chosen by `choice` instead of the configuration's.
    pub fn with_choice(
        config: Config,
        topology: Topology,
        demands: Vec<Demand>,
        choice: Box<dyn PathChoice>,
    ) -> Result<Simulation, Error> {
        config.check()?;
        check_demands(&demands, topology.hosts())?;
        let count =
            u32::try_from(demands.len()).map_err(|_| Error("a run has fewer than 2^32 flows".into()))?;
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_by_key(|&row| demands[row as usize].start);
        let ports =
            topology.links.iter().map(|link| Port::new(link.rate, link.delay, config.buffer)).collect();
        let mut events = Events::new(config.seed);
        events.push(demands[order[0] as usize].start, Kind::Start, 0);
        Ok(Simulation {
            ports,
            topology,
            packets: Packets::default(),
            flows: Flows::default(),
            totals: Totals::default(),
            events,
            outcomes: vec![Outcome::default(); demands.len()],
            demands,
            order,
            started: 0,
            finished: 0,
            place: choice.place(),
            choice,
            now: 0,
            progress: 0,
            config,
        })
    }

    /// Run until all is over, but for at most so many events; return whether all is over.
    ///
    /// # Errors
    /// Nothing arrives any more though flows are under way; a packet was lost from the books.
    pub fn run(&mut self, most: u64) -> Result<bool, Error> {
        for _ in 0..most {
            let Some(event) = self.events.first() else {
                conservation::check(self)?;
                return Ok(true);
            };
            self.totals.events += 1;
            self.step(event)?;
        }
        Ok(self.events.is_empty())
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn finished(&self) -> usize {
        self.finished
    }

    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Return how many packets, and flows, there were at most at one time.
    pub fn most(&self) -> (usize, usize) {
        (self.packets.most(), self.flows.most())
    }

    fn step(&mut self, event: Event) -> Result<(), Error> {
        if event.time < self.now {
            return Err(Error(format!("the clock went back from {} to {} ps", self.now, event.time)));
        }
        self.now = event.time;
        match event.kind() {
            Kind::Start => self.start(),
            Kind::Arrival | Kind::Release => self.link(event),
            Kind::Timer => self.timer(event)?,
        }
        Ok(())
    }

    fn start(&mut self) {
        let row = self.order[self.started];
        self.started += 1;
        match self.order.get(self.started) {
            Some(&next) => self.events.replace(self.demands[next as usize].start, Kind::Start, 0),
            None => self.events.pop(),
        }
        let demand = self.demands[row as usize];
        let packets = self.config.lengths.packets(demand.bytes);
        let place = self.flows.add(Flow::new(row, demand, packets, &self.config.transport));
        self.progress = self.now;
        self.send(place);
    }

    fn link(&mut self, event: Event) {
        let link = event.subject();
        let port = &mut self.ports[link as usize];
        let arrived = if event.kind() == Kind::Release {
            port.release(self.now, &self.packets);
            None
        } else {
            port.arrived(self.now, &self.packets)
        };
        match port.next() {
            Next::Arrival(time) => self.events.replace(time, Kind::Arrival, link),
            Next::Release(time) => self.events.replace(time, Kind::Release, link),
            Next::Idle => {
                port.scheduled = false;
                self.events.pop();
            }
        }
        if let Some(handle) = arrived {
            self.forward(link, handle);
        }
    }

    fn forward(&mut self, link: u32, handle: Handle) {
        let packet = self.packets.get(handle);
        let (destination, mut path) = (packet.destination, packet.path);
        if path == NO_PATH && link < self.topology.hosts() {
            path = self.choose(link, handle);
        }
        match self.topology.next(link, destination, path) {
            Some(next) => self.offer(next, handle),
            None => self.deliver(handle),
        }
    }

    /// Choose the path of a packet of `host`; none if there is no choice.
    fn choose(&mut self, host: u32, handle: Handle) -> u16 {
        let packet = self.packets.get_mut(handle);
        let paths = self.topology.paths(host, packet.destination);
        if paths.is_empty() {
            return NO_PATH;
        }
        let flow = self.flows.get(packet.flow).map_or(0, |flow| flow.number);
        packet.path = self.choice.choose(&Request {
            now: self.now,
            flow,
            number: packet.number,
            source: host,
            destination: packet.destination,
            acknowledgement: packet.cargo == Cargo::Acknowledgement,
            paths,
        });
        packet.path
    }

    fn offer(&mut self, link: u32, handle: Handle) {
        let port = &mut self.ports[link as usize];
        let dropped = port.offer(self.now, handle, &mut self.packets);
        if !port.scheduled {
            port.scheduled = true;
            match port.next() {
                Next::Arrival(time) => self.events.push(time, Kind::Arrival, link),
                Next::Release(time) => self.events.push(time, Kind::Release, link),
                Next::Idle => port.scheduled = false,
            }
        }
        if let Some(handle) = dropped {
            self.lose(handle);
        }
    }

    fn lose(&mut self, handle: Handle) {
        let packet = self.packets.remove(handle);
        self.totals.packets.dropped += 1;
        let data = packet.cargo == Cargo::Data;
        if data {
            self.totals.data_dropped += 1;
        } else {
            self.totals.acknowledgements_dropped += 1;
        }
        if let Some(flow) = self.flows.get(packet.flow) {
            flow.tally.dropped += 1;
            flow.outcome.dropped += u64::from(data);
        }
        self.retire(packet.flow);
    }

    fn deliver(&mut self, handle: Handle) {
        let packet = self.packets.remove(handle);
        self.totals.packets.delivered += 1;
        let Some(flow) = self.flows.get(packet.flow) else { return };
        flow.tally.delivered += 1;
        if flow.finished() {
            self.retire(packet.flow);
            return;
        }
        match packet.cargo {
            Cargo::Data => {
                let answers = flow.receiver.arrived(self.now, &packet, flow.packets);
                if flow.outcome.delivered.is_none() && flow.receiver.received.missing() == flow.packets {
                    flow.outcome.delivered = Some(self.now);
                }
                self.progress = self.now;
                for answer in answers.into_iter().flatten() {
                    self.acknowledge(packet.flow, &answer);
                }
                self.arm(packet.flow);
            }
            Cargo::Acknowledgement => {
                let answer = Answer {
                    missing: packet.number,
                    beyond: packet.beyond,
                    blocks: packet.blocks,
                    stamp: packet.stamp,
                    marked: packet.marks.echo,
                };
                flow.sender.answered(self.now, &answer);
                if flow.sender.acknowledged().0 >= flow.packets {
                    flow.outcome.completed = Some(self.now);
                    self.finished += 1;
                    self.retire(packet.flow);
                } else {
                    self.send(packet.flow);
                }
            }
        }
    }

    /// Send what the flow's sender wants to send now, and set its timer.
    fn send(&mut self, place: u32) {
        while let Some(flow) = self.flows.get(place) {
            let Some(segment) = flow.sender.next(self.now, &flow.receiver.received) else { break };
            let packet = outgoing::data(flow, place, segment, &self.config, self.now);
            flow.outcome.sent += 1;
            flow.outcome.resent += u64::from(segment.again);
            let source = flow.demand.source;
            self.totals.data_sent += 1;
            self.inject(source, packet);
        }
        self.arm(place);
    }

    fn acknowledge(&mut self, place: u32, answer: &Answer) {
        let Some(flow) = self.flows.get(place) else { return };
        let host = flow.demand.destination;
        let packet = outgoing::acknowledgement(flow, place, answer, &self.config.lengths);
        self.inject(host, packet);
    }

    fn inject(&mut self, host: u32, packet: Packet) {
        self.totals.packets.made += 1;
        if let Some(flow) = self.flows.get(packet.flow) {
            flow.tally.made += 1;
        }
        let handle = self.packets.add(packet);
        if self.place == Place::Host {
            self.choose(host, handle);
        }
        self.offer(self.topology.first(host), handle);
    }

    /// Put the flow's next timer into the heap, unless an earlier entry is there: it will find that it came too early.
    fn arm(&mut self, place: u32) {
        let Some(flow) = self.flows.get(place) else { return };
        let deadline = flow.sender.deadline().min(flow.receiver.deadline());
        if deadline < flow.timer {
            flow.timer = deadline;
            self.events.push(deadline, Kind::Timer, place);
        }
    }

    fn timer(&mut self, event: Event) -> Result<(), Error> {
        self.events.pop();
        let place = event.subject();
        let Some(flow) = self.flows.get(place).filter(|flow| flow.timer == event.time) else { return Ok(()) };
        flow.timer = NEVER;
        if flow.finished() {
            return Ok(());
        }
        if self.now - self.progress > STALL {
            return Err(Error(format!(
                "nothing has arrived for {} s though flow {} is under way: look at buffers and links",
                STALL / SECOND,
                flow.number
            )));
        }
        let answer = (flow.receiver.deadline() <= self.now).then(|| flow.receiver.expired());
        if flow.sender.deadline() <= self.now {
            flow.sender.expired(self.now);
        }
        if let Some(answer) = answer {
            self.acknowledge(place, &answer);
        }
        self.send(place);
        Ok(())
    }

    /// Free a flow that has ended and has no packet in the network.
    fn retire(&mut self, place: u32) {
        let Some(flow) = self.flows.get(place) else { return };
        if !flow.finished() || flow.in_network() > 0 {
            return;
        }
        flow.outcome.timeouts = flow.sender.timeouts();
        flow.outcome.duplicates = flow.receiver.duplicates;
        flow.outcome.early = flow.receiver.early;
        self.totals.timeouts += u64::from(flow.outcome.timeouts);
        self.totals.duplicates += u64::from(flow.outcome.duplicates);
        self.outcomes[flow.number as usize] = flow.outcome;
        self.flows.remove(place);
    }
}
