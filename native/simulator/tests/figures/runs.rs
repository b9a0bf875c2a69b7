//! Runs of the tests: fabrics of the usual rates, and Poisson arrivals.

use simulator::config::{Config, Lengths};
use simulator::flow::{Demand, Outcome};
use simulator::paths::Balancing;
use simulator::queue::{Buffer, Discipline, Limit};
use simulator::random::{Purpose, Stream};
use simulator::simulation::Simulation;
use simulator::time::{Rate, MILLISECOND, SECOND};
use simulator::topology::{LeafSpine, Shape};
use simulator::transport::tcp::{self, Control};
use simulator::transport::Transport;

pub const GBPS: u64 = 1_000_000_000;
/// Of a packet of a host with an agent: data, and headers before it.
pub const PAYLOAD: u32 = 1374;
pub const HEADER: u32 = 52;
/// Round an inner packet: the agent's header, UDP, IPv4, Ethernet.
pub const OUTER: u32 = 32 + 8 + 20 + 14;

pub fn leaf_spine(leaves: u32, hosts_per_leaf: u32, spines: u32, host_gbps: u64, spine_gbps: u64) -> Shape {
    Shape::LeafSpine(LeafSpine {
        leaves,
        hosts_per_leaf,
        spines,
        host_rate: Rate::new(host_gbps * GBPS),
        spine_rate: Rate::new(spine_gbps * GBPS),
        delay: 200_000,
    })
}

/// Configure endless FIFO queues and a fixed window of 12 packets of 1500 B.
pub fn window(shape: Shape, balancing: Balancing) -> Config {
    Config {
        shape,
        changes: Vec::new(),
        buffer: Buffer {
            discipline: Discipline::Fifo,
            limit: Limit::Endless,
            mark_from: 0,
            drops_unmarkable: false,
        },
        lengths: Lengths { payload: 1460, header: 40, acknowledgement: 40 },
        transport: Transport::Fixed { window: 12 },
        balancing,
        seed: 1,
    }
}

/// Configure TCP with SACK, and without a handshake, RACK and undoing.
pub fn tcp(control: Control, initial_window: u32) -> tcp::Settings {
    tcp::Settings {
        control,
        initial_window,
        largest_window: 10_000,
        initial_timeout: SECOND,
        least_timeout: 10 * MILLISECOND,
        largest_timeout: 60 * SECOND,
        kernel_timeouts: false,
        timestamp_tick: 0,
        duplicates: 3,
        sack: true,
        rack: false,
        reorder_quarters: 1,
        reorder_slack: 0,
        marks: control == Control::Dctcp,
        delayed_packets: 1,
        delayed_time: 0,
        opening: false,
        undo: false,
        count_delivered: false,
        hystart: false,
        prr: false,
        mark_acknowledgements: false,
    }
}

/// Configure hosts with agents, TCP with RACK and undoing, and FIFO queues of so many packets.
pub fn agents(shape: Shape, packets: u32, initial_window: u32, opening: bool) -> Config {
    let tcp = tcp::Settings { rack: true, undo: true, opening, ..tcp(Control::NewReno, initial_window) };
    let mut config = window(shape, Balancing::Hash);
    config.buffer.limit = Limit::Packets(packets);
    config.lengths = Lengths { payload: PAYLOAD, header: HEADER, acknowledgement: HEADER };
    config.transport = Transport::Tcp(tcp);
    config
}

pub fn demand(start: u64, source: u32, destination: u32, packets: u64) -> Demand {
    Demand { start, source, destination, bytes: packets * 1460, level: 0 }
}

pub fn run(config: Config, demands: Vec<Demand>) -> Simulation {
    let mut simulation = Simulation::new(config, demands).unwrap();
    while !simulation.run(1 << 20).unwrap() {}
    simulation
}

pub fn outcomes(config: Config, demands: Vec<Demand>) -> Vec<Outcome> {
    run(config, demands).outcomes().to_vec()
}

/// Starts of a Poisson process, in ps.
pub struct Poisson {
    random: Stream,
    now: f64,
    gap: f64,
}

impl Poisson {
    pub fn new(seed: u64, mean_gap_ps: f64) -> Poisson {
        Poisson { random: Stream::new(seed, Purpose::Paths), now: 0.0, gap: mean_gap_ps }
    }

    pub fn start(&mut self) -> u64 {
        self.now -= libm::log(1.0 - self.random.unit()) * self.gap;
        self.now as u64
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        self.random.below(bound)
    }
}
