//! The run: events in order, packets from link to link, flows from their start to their end.

use crate::config::{check_demands, Config};
use crate::events::{Event, Events, Kind};
use crate::flow::{Demand, Flow, Flows, Outcome, Tally};
use crate::overlay::{Overlay, AGENT};
use crate::packets::{Frame, Handle, Packets, Soon, NO_PATH};
use crate::paths::{Choice, Request};
use crate::port::{Next, Port};
use crate::queue::{Buffer, Limit, Room};
use crate::recording::{Recording, Window};
use crate::sharing::{SharedBuffers, Sharing};
use crate::time::{Time, NEVER};
use crate::topology::Topology;
use crate::Error;

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub events: u64,
    pub data_sent: u64,
    pub data_dropped: u64,
    pub acknowledgements_dropped: u64,
    pub timeouts: u64,
    pub duplicates: u64,
    /// All packets, at hosts; and those of them that are of no flow: what agents say to each other.
    pub packets: Tally,
    pub feedback: Tally,
}

pub struct Simulation {
    pub(crate) config: Config,
    pub(crate) topology: Topology,
    pub(crate) ports: Vec<Port>,
    pub(crate) packets: Packets,
    pub(crate) flows: Flows,
    pub(crate) totals: Totals,
    /// Packets of flows that are freed.
    pub(crate) ended: Tally,
    pub(crate) overlay: Option<Box<Overlay>>,
    pub(crate) recording: Option<Box<Recording>>,
    shared: Option<SharedBuffers>,
    pub(crate) soon: Soon,
    /// Flows that go on until the run is over.
    pub(crate) endless: usize,
    pub(crate) events: Events,
    pub(crate) demands: Vec<Demand>,
    /// Rows of the workload in order of their starts, and how many have started.
    order: Vec<u32>,
    started: usize,
    pub(crate) finished: usize,
    /// How many of these gave way to their copies.
    pub(crate) gave_way: usize,
    pub(crate) outcomes: Vec<Outcome>,
    choice: Choice,
    pub(crate) now: Time,
    pub(crate) progress: Time,
    /// A controller that is outside has something to do now.
    pub(crate) paused: bool,
    over: bool,
}

impl Simulation {
    pub fn new(config: Config, demands: Vec<Demand>) -> Result<Simulation, Error> {
        let topology = Topology::new(config.shape, &config.changes)?;
        config.check()?;
        let hosts = topology.hosts();
        check_demands(&demands, hosts, config.lengths.largest_flow())?;
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
            ended: Tally::default(),
            overlay: None,
            recording: None,
            shared: None,
            soon: Soon::default(),
            endless: 0,
            events,
            outcomes: vec![Outcome::default(); demands.len()],
            demands,
            order,
            started: 0,
            finished: 0,
            gave_way: 0,
            choice: config.balancing.choice(hosts, config.seed),
            now: 0,
            progress: 0,
            paused: false,
            over: false,
            config,
        })
    }

    /// Run until all is over, but for at most so many events; return whether all is over.
    ///
    /// # Errors
    /// Nothing arrives any more though flows are under way; a packet is missing from the counts.
    pub fn run(&mut self, most: u64) -> Result<bool, Error> {
        self.run_until(most, NEVER)?;
        Ok(self.over)
    }

    /// Run until all is over or the next event is behind `until`, but for at most so many events; return whether either is.
    /// A run of hosts with agents is over when all flows have ended that do.
    ///
    /// It pauses, and returns false, where a controller has to be asked: what it says before the next call comes at once.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_until(&mut self, most: u64, until: Time) -> Result<bool, Error> {
        for _ in 0..most {
            let done = self.overlay.is_some() && self.finished + self.endless == self.demands.len();
            let next = self.events.first().filter(|_| !done);
            let Some(event) = next else {
                if !self.over {
                    self.close(!done)?;
                }
                return Ok(true);
            };
            if event.time > until {
                self.now = self.now.max(until);
                return Ok(true);
            }
            self.totals.events += 1;
            self.step(event)?;
            if std::mem::take(&mut self.paused) {
                return Ok(false);
            }
        }
        Ok(self.over)
    }

    /// End the run now, whatever is under way.
    ///
    /// # Errors
    /// A packet is missing from the counts, or nothing was carried.
    pub fn stop(&mut self) -> Result<(), Error> {
        if self.over {
            return Ok(());
        }
        self.close(false)
    }

    fn close(&mut self, empty: bool) -> Result<(), Error> {
        self.over = true;
        self.check_counts(empty)?;
        self.account_all();
        self.settle_all();
        Ok(())
    }

    /// Give some links' ports a buffer of their own instead of the configuration's, before anything runs.
    pub fn set_rooms(&mut self, rooms: &[(u32, Limit)]) -> Result<(), Error> {
        let lengths = &self.config.lengths;
        let packet = lengths.payload + lengths.header;
        for &(link, limit) in rooms {
            let buffer = Buffer { limit, ..self.config.buffer };
            buffer.check(packet)?;
            let port = self.ports.get_mut(link as usize);
            let port = port.ok_or_else(|| Error(format!("there is no link {link} to give a buffer")))?;
            port.set_buffer(buffer);
        }
        Ok(())
    }

    /// Make some links shapers with buckets of so many bytes, before anything runs.
    pub fn set_bursts(&mut self, bursts: &[(u32, u32)]) -> Result<(), Error> {
        for &(link, bytes) in bursts {
            let port = self.ports.get_mut(link as usize);
            port.ok_or_else(|| Error(format!("there is no link {link} to shape")))?.set_burst(bytes);
        }
        Ok(())
    }

    /// Have the ports of each switch share a buffer, beside the limits that each has, before anything runs.
    pub fn share(&mut self, sharing: Sharing) -> Result<(), Error> {
        let lengths = &self.config.lengths;
        sharing.check(self.config.buffer.discipline, lengths.payload + lengths.header)?;
        self.shared = Some(SharedBuffers::new(sharing, &self.topology));
        Ok(())
    }

    /// Record a window of the run, packet by packet, before anything runs.
    pub fn record(&mut self, window: Window) -> Result<(), Error> {
        self.recording = Some(Box::new(Recording::new(window)?));
        Ok(())
    }

    /// Return what was recorded; None: nothing was to be.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_deref()
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Return the bytes that a flow's sender knows to have arrived, by row.
    pub fn acknowledged(&self, row: usize) -> u64 {
        let payload = self.config.lengths.payload;
        let live = self.flows.live().find(|flow| flow.number as usize == row);
        live.map_or(self.outcomes[row].acknowledged, |flow| flow.acknowledged_bytes(payload))
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Return how many flows have ended, one of two copies.
    pub fn finished(&self) -> usize {
        self.finished - self.gave_way
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
            Kind::Timer if event.subject() & AGENT != 0 => {
                self.events.pop();
                self.agent_timer(event.subject() & !AGENT, event.time);
            }
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
        self.announce(row, &demand);
        self.open(place);
    }

    fn link(&mut self, event: Event) {
        let link = event.subject();
        let port = &mut self.ports[link as usize];
        let arrived = if event.kind() == Kind::Release {
            port.release(self.now);
            None
        } else {
            port.arrived(self.now)
        };
        let next = port.next();
        port.scheduled = next != Next::Idle;
        if let Some(frame) = &arrived {
            self.prefetch_hop(link, frame);
        }
        match next {
            Next::Arrival(time) => {
                self.events.replace(time, Kind::Arrival, link);
                self.look_ahead(link);
            }
            Next::Release(time) => self.events.replace(time, Kind::Release, link),
            Next::Idle => self.events.pop(),
        }
        self.prefetch_ports();
        if let Some(frame) = arrived {
            if let Some(recording) = &mut self.recording {
                recording.arrived(frame.handle, self.now - self.ports[link as usize].crossing(frame.bytes));
            }
            self.forward(link, frame);
        }
    }

    fn forward(&mut self, link: u32, mut frame: Frame) {
        if frame.path == NO_PATH && link < self.topology.hosts() {
            // with agents, hosts send nothing but datagrams
            frame.path = if self.overlay.is_some() {
                self.switch(frame.handle)
            } else {
                self.choose(link, frame.handle)
            };
        }
        match self.topology.next(link, frame.destination, frame.path) {
            Some(next) => self.offer(next, frame),
            None => self.deliver(frame),
        }
    }

    /// Choose the path of a packet of `host`; none if there is no choice.
    fn choose(&mut self, host: u32, handle: Handle) -> u16 {
        let packet = self.packets.get(handle);
        let paths = self.topology.paths(host, packet.destination);
        if paths.is_empty() {
            return NO_PATH;
        }
        let flow = self.flows.get(packet.flow).map_or(0, |flow| flow.number);
        self.choice.choose(&Request { flow, source: host, destination: packet.destination, paths })
    }

    pub(crate) fn offer(&mut self, link: u32, frame: Frame) {
        let room = match &self.shared {
            Some(shared) => shared.room(link, self.now, &mut self.ports),
            None => Room::ENDLESS,
        };
        let port = &mut self.ports[link as usize];
        let dropped = port.offer(self.now, frame, &mut self.packets, room);
        let queue = port.held().0;
        if !port.scheduled {
            port.scheduled = true;
            match port.next() {
                Next::Arrival(time) => {
                    self.events.push(time, Kind::Arrival, link);
                    self.look_ahead(link);
                }
                Next::Release(time) => self.events.push(time, Kind::Release, link),
                Next::Idle => port.scheduled = false,
            }
        }
        if self.recording.as_ref().is_some_and(|recording| recording.covers(self.now)) {
            self.note(link, frame.handle, queue);
        }
        if let Some(handle) = dropped {
            self.lose(handle);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
