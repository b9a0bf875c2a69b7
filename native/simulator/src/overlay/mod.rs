//! Hosts whose packets go through agents and a tunnel, as those of the lab do: what `native/agent` decides, the path that
//! switches choose by ports and class, and what is counted of each flow.

mod admission;
mod central;
mod channel;
mod connection;
mod crossing;
mod datagram;
mod host;
mod inner;
mod lookahead;
mod own_paths;
mod record;
mod switching;

use std::collections::VecDeque;

use agent::paths::PathSettings;
use agent::receiving::ReceivePolicy;
use agent::sending::{hashed_port, SendPolicy, Serving};
use agent::{Generator, Seconds};
use datapath::inner::{FlowKey, Key, TCP};

use crate::packets::NO_PATH;
use crate::random::{key, Purpose};
use crate::time::{Time, NEVER, SECOND};
use crate::topology::Topology;
use crate::Error;

pub use admission::Asking;
pub use central::{Central, ModeEvent, SplitEvent};
pub use channel::HostMessage;
pub use connection::Connection;
pub use crossing::{AGENT, CHANNEL, CONTROLLER};
pub use datagram::Datagram;
pub use host::Place;
pub use inner::Inner;
pub use record::Record;
pub use switching::{Group, Groups};

use central::Controller;
use channel::Channel;
use host::Host;
use switching::Switching;

/// What agents' paths and peers may take, bytes.
const MOST_BYTES: u64 = 8 << 30;

/// Ports of a flow, and whether it goes on until the run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub source_port: u16,
    pub destination_port: u16,
    pub endless: bool,
    pub twin: Option<Twin>,
}

/// The other one of two flows that carry the same: the first that ends, or is open, makes the other give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twin {
    /// Its row.
    pub row: u32,
    /// Whether one gives way as soon as the other is open.
    pub of_opening: bool,
}

/// What a scheme asks of agents and switches.
#[derive(Clone, Debug)]
pub struct Settings {
    pub send: SendPolicy,
    /// Path policies by class.
    pub paths: [PathSettings; 4],
    pub receive: ReceivePolicy,
    /// What serves a class at a leaf.
    pub groups: [Groups; 4],
    /// What a controller decides meanwhile.
    pub central: Central,
    /// Which flows ask, and how long that takes; None: all send at once.
    pub admission: Option<Asking>,
    /// Seconds of agents' clocks a second: where packets are faster than in a lab, clocks are, too.
    pub clock: f64,
    /// Addresses of the overlay, by host.
    pub addresses: Vec<[u8; 4]>,
    /// By row of the workload.
    pub lines: Vec<Line>,
}

impl Settings {
    /// Return path policies: one for all classes that ask for the same.
    fn serving(&self, random: &mut Generator) -> Serving {
        let mut made: Vec<PathSettings> = Vec::new();
        let (mut policies, mut serves) = (Vec::new(), [0; 4]);
        for (place, settings) in serves.iter_mut().zip(self.paths) {
            let known = made.iter().position(|other| *other == settings);
            *place = known.unwrap_or(made.len());
            if known.is_none() {
                made.push(settings);
                policies.push(settings.policy(random.split()));
            }
        }
        Serving { policies, serves }
    }

    fn check(&self, hosts: u32, flows: usize) -> Result<(), Error> {
        if let Some(twin) =
            self.lines.iter().filter_map(|line| line.twin).find(|twin| twin.row as usize >= flows)
        {
            return Err(Error(format!("a flow's copy is row {}, there are {flows} flows", twin.row)));
        }
        if self.addresses.len() != hosts as usize || self.lines.len() != flows {
            return Err(Error(format!(
                "{hosts} hosts have {} addresses, {flows} flows have {} pairs of ports: give one each",
                self.addresses.len(),
                self.lines.len()
            )));
        }
        if let Some(loss) = self.admission.map(|asking| asking.loss).filter(|loss| !(0.0..1.0).contains(loss))
        {
            return Err(Error(format!("{loss} of all control messages are lost: give 0 to below 1")));
        }
        if !(self.clock > 0.0 && self.clock.is_finite()) {
            return Err(Error(format!("agents' clocks go by {} s a second: give more than 0", self.clock)));
        }
        Ok(())
    }
}

/// Return an error where the agents of so many hosts, which know so many paths together, take more than `MOST_BYTES`.
fn check_memory(hosts: u64, paths: u64) -> Result<(), Error> {
    // in a set of a leaf's a path takes some 5 B; a host that may be spoken to takes 8
    let bytes = 5 * paths + 8 * hosts * hosts;
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(Error(format!(
        "the agents of {hosts} hosts know {paths} paths together, which takes {} GiB of memory, \
         more than {} GiB: give fewer hosts, leaves or paths",
        bytes.div_ceil(1 << 30),
        MOST_BYTES >> 30
    )))
}

/// A flow that has ended, whose agents may still get some of its packets.
struct Lingering {
    until: Time,
    row: u32,
    from: Place,
    to: Place,
}

/// The agents of all hosts, and how switches serve their datagrams.
pub struct Overlay {
    settings: Settings,
    hosts: Vec<Host>,
    places: Vec<Place>,
    switching: Switching,
    controller: Controller,
    /// To a controller that is asked; None: none is.
    channel: Option<Channel>,
    connection: Connection,
    records: Vec<Record>,
    lingering: VecDeque<Lingering>,
    linger: Time,
    /// Datagrams that wait to leave, and packets that wait to be handed to hosts; empty between events.
    out: Vec<Datagram>,
    delivered: Vec<Inner>,
    /// What is inside of packets in the network, by handle.
    inside: Vec<Option<Datagram>>,
}

impl Overlay {
    pub fn new(
        settings: Settings,
        topology: &Topology,
        connection: Option<Connection>,
        seed: u64,
        flows: usize,
    ) -> Result<Overlay, Error> {
        settings.check(topology.hosts(), flows)?;
        let mut random = Generator::new(key(seed, Purpose::Agents));
        let place = |host: u32| Place {
            host,
            leaf: topology.leaf_of(host) as u16,
            address: settings.addresses[host as usize],
        };
        let places: Vec<Place> = (0..topology.hosts()).map(place).collect();
        let paths = central::live_paths(topology, settings.clock);
        let known = |place: &Place| -> u64 {
            paths[usize::from(place.leaf)].stamps.values().map(|stamps| stamps.len() as u64).sum()
        };
        check_memory(places.len() as u64, places.iter().map(known).sum())?;
        let connection = connection.unwrap_or_default();
        let hosts = places.iter().map(|&place| {
            let paths = paths[usize::from(place.leaf)].clone();
            Host::new(place, &settings, connection, paths, &mut random)
        });
        Ok(Overlay {
            hosts: hosts.collect(),
            places,
            switching: Switching::new(settings.groups, seed),
            controller: Controller::new(settings.central, topology, paths, settings.send.packet_time_s)?,
            channel: settings.admission.map(|asking| Channel::new(&asking, seed)),
            connection,
            records: vec![Record::default(); flows],
            lingering: VecDeque::new(),
            linger: (settings.receive.loss_after_s / settings.clock * SECOND as f64) as Time,
            settings,
            out: Vec::new(),
            delivered: Vec::new(),
            inside: Vec::new(),
        })
    }

    /// Return what agents counted of each flow, by row of the workload.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Return how leaves changed their modes, and how paths were split.
    pub fn events(&self) -> (&[ModeEvent], &[SplitEvent]) {
        (&self.controller.mode_events, &self.controller.split_events)
    }

    fn seconds(&self, now: Time) -> Seconds {
        now as f64 / SECOND as f64 * self.settings.clock
    }

    /// Return the first instant at which agents' clocks have come to `seconds`; later than every event where that does
    /// not fit.
    fn instant(&self, seconds: Seconds, now: Time) -> Time {
        if seconds / self.settings.clock * SECOND as f64 >= (NEVER / 2) as f64 {
            return NEVER;
        }
        let mut instant = ((seconds / self.settings.clock * SECOND as f64) as Time).max(now);
        while self.seconds(instant) < seconds {
            instant += 1 + instant / (1 << 52);
        }
        instant
    }

    /// Return the key of a flow's data.
    fn key(&self, row: u32, from: u32, to: u32) -> Key {
        let line = &self.settings.lines[row as usize];
        let mut key = [TCP; 13];
        key[1..5].copy_from_slice(&self.settings.addresses[from as usize]);
        key[5..9].copy_from_slice(&self.settings.addresses[to as usize]);
        key[9..11].copy_from_slice(&line.source_port.to_be_bytes());
        key[11..].copy_from_slice(&line.destination_port.to_be_bytes());
        key
    }

    /// Return the path that its leaf gives a datagram now; none if there is no choice.
    fn path(&self, datagram: &Datagram, topology: &Topology) -> u16 {
        let paths = topology.paths(datagram.from, datagram.to);
        if paths.is_empty() {
            return NO_PATH;
        }
        let on = self.controller.is_on(topology.leaf_of(datagram.from) as u16);
        self.switching.path(datagram, on, paths, topology)
    }

    /// Return the path that a flow's data takes where leaves hash its class by flow; None if there is no choice.
    fn hashed_path(&self, row: u32, (from, to): (u32, u32), topology: &Topology) -> Option<u16> {
        let paths = topology.paths(from, to);
        let port = hashed_port(&FlowKey::V4(self.key(row, from, to)));
        (!paths.is_empty()).then(|| self.switching.hashed((from, to), 0, port, paths))
    }

    /// Take what agents counted of the flows that have lingered, or of all.
    fn settle(&mut self, now: Time, all: bool) {
        while let Some(flow) = self.lingering.front().filter(|flow| all || flow.until <= now) {
            let &Lingering { row, from, to, .. } = flow;
            self.lingering.pop_front();
            self.end(row, from, to, now);
        }
    }

    fn end(&mut self, row: u32, from: Place, to: Place, now: Time) {
        let now = self.seconds(now);
        let key = self.key(row, from.host, to.host);
        if let Some((sent, flow)) = self.hosts[from.host as usize].end_sent(FlowKey::V4(key), now) {
            let received = self.hosts[to.host as usize].end_received(from, flow);
            self.records[row as usize].add(&sent, received.as_ref());
        }
        if let Some((_, flow)) = self.hosts[to.host as usize].end_sent(FlowKey::V4(inner::back(key)), now) {
            self.hosts[from.host as usize].end_received(to, flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_no_memory_holds_are_refused() {
        for (hosts, leaves, paths) in [(4, 1, 2), (144, 8, 16), (2662, 241, 121)] {
            assert_eq!(check_memory(hosts, hosts * leaves * paths), Ok(()));
        }
        for (hosts, leaves, paths) in [(30_000, 254, 255), (64_770, 1, 1)] {
            let error = check_memory(hosts, hosts * leaves * paths).unwrap_err();
            assert!(error.0.contains(&format!("of {hosts} hosts know")), "{error}");
            assert!(error.0.contains("more than 8 GiB: give fewer hosts"), "{error}");
        }
    }
}
