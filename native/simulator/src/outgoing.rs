//! Packets as hosts make them: lengths, priorities and marks by the run's configuration.

use crate::config::Config;
use crate::flow::Flow;
use crate::packets::{Block, Cargo, Marks, Packet};
use crate::queue::Discipline;
use crate::time::Time;
use crate::transport::{Answer, Segment};

/// Return a flow's data packet; `place` is the flow's among those under way.
pub fn data(flow: &Flow, place: u32, segment: Segment, config: &Config, now: Time) -> Packet {
    let priority = match config.buffer.discipline {
        Discipline::Fifo => 0,
        Discipline::Strict | Discipline::Queues(_) => flow.demand.level,
        // Flows with more left than 32 bits hold are equals.
        Discipline::PFabric => u32::try_from(flow.remaining(config.lengths.payload)).unwrap_or(u32::MAX),
    };
    Packet {
        flow: place,
        number: segment.number,
        bytes: config.lengths.wire(flow.demand.bytes, segment.number),
        priority,
        destination: flow.demand.destination,
        cargo: Cargo::Data,
        marks: Marks { capable: config.transport.takes_marks(), ..Marks::default() },
        beyond: 0,
        stamp: now,
        blocks: Default::default(),
    }
}

/// Return the packet by which a flow begins.
pub fn opening(flow: &Flow, place: u32, now: Time, config: &Config) -> Packet {
    control(place, Cargo::Opening, flow.demand.destination, now, config)
}

/// Return the answer to the packet by which a flow begins, which was sent at `stamp`.
pub fn opened(flow: &Flow, place: u32, stamp: Time, config: &Config) -> Packet {
    control(place, Cargo::Opened, flow.demand.source, stamp, config)
}

fn control(place: u32, cargo: Cargo, destination: u32, stamp: Time, config: &Config) -> Packet {
    Packet {
        flow: place,
        number: 0,
        bytes: config.lengths.acknowledgement,
        priority: 0,
        destination,
        cargo,
        marks: Marks { capable: config.transport.marks_acknowledgements(), ..Marks::default() },
        beyond: 0,
        stamp,
        blocks: Default::default(),
    }
}

/// Return an acknowledgement: of the best priority.
pub fn acknowledgement(flow: &Flow, place: u32, answer: &Answer, config: &Config) -> Packet {
    let packet = control(place, Cargo::Acknowledgement, flow.demand.source, answer.stamp, config);
    let mut blocks = answer.blocks;
    if let Some(number) = answer.repeated {
        blocks.rotate_right(1);
        blocks[0] = Block { first: number, end: number + 1 };
    }
    Packet {
        number: answer.missing,
        marks: Marks { echo: answer.marked, repeated: answer.repeated.is_some(), ..packet.marks },
        beyond: answer.beyond,
        blocks,
        ..packet
    }
}
