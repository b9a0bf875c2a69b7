//! What a port does with packets that wait: which goes next, and which is dropped. The packet on the wire does not wait.

mod fifo;
mod pfabric;
mod strict;

use datapath::prefetch::prefetch;

use crate::packets::{Frame, Handle, Packets};
use crate::Error;

pub use strict::LEVELS;

/// How much may wait at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Endless,
    Bytes(u64),
    Packets(u32),
}

impl Limit {
    fn exceeded(self, bytes: u64, packets: usize) -> bool {
        match self {
            Limit::Endless => false,
            Limit::Bytes(limit) => bytes > limit,
            Limit::Packets(limit) => packets > limit as usize,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::Endless => write!(to, "any size"),
            Limit::Bytes(bytes) => write!(to, "{bytes} B"),
            Limit::Packets(packets) => write!(to, "{packets} packets"),
        }
    }
}

/// What a buffer that is shared with other queues leaves, in bytes: to the queue that a packet joins, with the packet, and
/// to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub queue: u64,
    pub packet: u64,
}

impl Room {
    pub const ENDLESS: Room = Room { queue: u64::MAX, packet: u64::MAX };

    fn exceeded(self, queue: u64, packet: u32) -> bool {
        queue > self.queue || u64::from(packet) > self.packet
    }
}

/// In which order packets leave, and which are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// First come, first served; what finds the buffer full is dropped.
    Fifo,
    /// The lowest of eight levels first, each first come, first served; what finds the buffer full is dropped.
    Strict,
    /// As strict, but so many queues, the last of which takes all lower priorities, and each has a buffer of its own.
    Queues(u8),
    /// The flow with the packet of best priority first, its earliest packet; the worst priority is dropped.
    PFabric,
}

/// A port's buffer: discipline, limit, and the number of waiting packets from which it marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub discipline: Discipline,
    pub limit: Limit,
    /// An arriving packet is marked if so many wait then, itself counted; 0: never.
    pub mark_from: u32,
    /// Whether an arriving packet that cannot be marked is dropped where it would be (RFC 3168, Section 5).
    pub drops_unmarkable: bool,
}

impl Buffer {
    /// Return an error unless a packet of `bytes` can wait here at all.
    pub fn check(&self, bytes: u32) -> Result<(), Error> {
        let room = match self.limit {
            Limit::Endless => true,
            Limit::Bytes(limit) => limit >= u64::from(bytes),
            Limit::Packets(limit) => limit >= 1,
        };
        if room {
            return Ok(());
        }
        Err(Error(format!("a port's buffer of {} holds no packet of {bytes} B: make it larger", self.limit)))
    }
}

#[derive(Clone, Debug)]
enum Waiting {
    Fifo(fifo::Fifo),
    Strict(Box<strict::Strict>),
    PFabric(pfabric::PFabric),
}

/// Packets that wait at a port.
#[derive(Clone, Debug)]
pub struct Queue {
    waiting: Waiting,
    bytes: u64,
    count: usize,
    buffer: Buffer,
}

/// What became of a packet that came to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Kept,
    /// Kept, and this other packet dropped for it.
    Displaced(Handle),
    Refused,
}

impl Queue {
    pub fn new(buffer: Buffer) -> Queue {
        let waiting = match buffer.discipline {
            Discipline::Fifo => Waiting::Fifo(fifo::Fifo::default()),
            Discipline::Strict | Discipline::Queues(_) => Waiting::Strict(Box::default()),
            Discipline::PFabric => Waiting::PFabric(pfabric::PFabric::default()),
        };
        Queue { waiting, bytes: 0, count: 0, buffer }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Return whether a packet that came now would be marked.
    pub fn marks(&self) -> bool {
        let from = self.buffer.mark_from as usize;
        from > 0 && self.count + 1 >= from
    }

    /// Return whether a packet that cannot be marked is dropped where it would be.
    pub fn drops_unmarkable(&self) -> bool {
        self.buffer.drops_unmarkable
    }

    /// Add a packet. A packet that is dropped, this or another, no longer counts here.
    pub fn add(&mut self, frame: Frame, packets: &Packets, room: Room) -> Admission {
        let (bytes, count) = (self.bytes + u64::from(frame.bytes), self.count + 1);
        let level = match self.buffer.discipline {
            Discipline::Queues(number) => frame.level.min(number.max(1) - 1),
            _ => frame.level,
        };
        let full = match (&self.waiting, self.buffer.discipline) {
            (Waiting::Strict(strict), Discipline::Queues(_)) => {
                let (bytes, count) = strict.held(level);
                let bytes = bytes + u64::from(frame.bytes);
                self.buffer.limit.exceeded(bytes, count + 1) || room.exceeded(bytes, frame.bytes)
            }
            _ => self.buffer.limit.exceeded(bytes, count) || room.exceeded(bytes, frame.bytes),
        };
        match &mut self.waiting {
            Waiting::Fifo(_) | Waiting::Strict(_) if full => return Admission::Refused,
            Waiting::Fifo(fifo) => fifo.add(frame),
            Waiting::Strict(strict) => strict.add(frame, level),
            Waiting::PFabric(pfabric) => pfabric.add(frame, packets.get(frame.handle)),
        }
        (self.bytes, self.count) = (bytes, count);
        match &mut self.waiting {
            Waiting::PFabric(pfabric) if full => {
                let dropped = pfabric.drop_worst();
                self.bytes -= u64::from(dropped.bytes);
                self.count -= 1;
                if dropped.handle == frame.handle {
                    Admission::Refused
                } else {
                    Admission::Displaced(dropped.handle)
                }
            }
            _ => Admission::Kept,
        }
    }

    /// Fetch the packet that goes next, where that is known without a search.
    pub fn prefetch_first(&self) {
        if let Waiting::Fifo(fifo) = &self.waiting {
            fifo.first().map(prefetch);
        }
    }

    /// Remove the packet that goes next.
    pub fn take(&mut self) -> Option<Frame> {
        let taken = match &mut self.waiting {
            Waiting::Fifo(fifo) => fifo.take(),
            Waiting::Strict(strict) => strict.take(),
            Waiting::PFabric(pfabric) => pfabric.take(),
        }?;
        self.bytes -= u64::from(taken.bytes);
        self.count -= 1;
        Some(taken)
    }
}

#[cfg(test)]
mod tests;
