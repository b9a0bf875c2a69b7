//! What hosts send and when: senders and receivers take acknowledgements, data and the time, and give packets' numbers,
//! answers and the time of their next timer.

pub mod fixed;
pub mod pfabric;
pub mod received;
pub mod receiver;
mod sliding;
pub mod tcp;
pub mod timestamps;

use crate::packets::{Block, Packet, BLOCKS};
use crate::time::{Time, NEVER};
use crate::Error;
use fixed::Fixed;
use pfabric::PFabric;
use received::Received;
use receiver::{Delay, Receiver};
use tcp::Tcp;
use timestamps::Timestamps;

/// How hosts send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// A window that never changes and no timer: for networks that lose nothing.
    Fixed {
        window: u32,
    },
    PFabric(pfabric::Settings),
    Tcp(tcp::Settings),
}

impl Transport {
    pub fn sender(&self, packets: u32) -> Sender {
        match self {
            Transport::Fixed { window } => Sender::Fixed(Fixed::new(*window, packets)),
            Transport::PFabric(settings) => Sender::PFabric(PFabric::new(*settings, packets)),
            Transport::Tcp(settings) => Sender::Tcp(Box::new(Tcp::new(*settings, packets))),
        }
    }

    /// Return an error unless it can send.
    pub fn check(&self) -> Result<(), Error> {
        let (window, timeout) = match self {
            Transport::Fixed { window } => (*window, 1),
            Transport::PFabric(of) => (of.initial_window.min(of.largest_window), of.timeout),
            Transport::Tcp(of) => return of.check(),
        };
        if window == 0 || timeout == 0 {
            return Err(Error("windows have at least 1 packet, time-outs are longer than 0".to_string()));
        }
        Ok(())
    }

    /// Return what acknowledges a flow's packets.
    pub fn receiver(&self) -> Receiver {
        match self {
            Transport::Tcp(of) => Receiver::new(
                Delay { packets: of.delayed_packets, time: of.delayed_time },
                Timestamps { tick: of.timestamp_tick },
            ),
            _ => Receiver::new(Delay::NONE, Timestamps::EXACT),
        }
    }

    /// Return the first and the largest time-out of a connection's beginning; None: there is none.
    pub fn opening(&self) -> Option<(Time, Time)> {
        match self {
            Transport::Tcp(of) if of.opening => Some((of.initial_timeout, of.largest_timeout)),
            _ => None,
        }
    }

    /// Return whether its packets may be marked.
    pub fn takes_marks(&self) -> bool {
        matches!(self, Transport::Tcp(of) if of.marks)
    }

    /// Return whether its packets without data may be marked.
    pub fn marks_acknowledgements(&self) -> bool {
        matches!(self, Transport::Tcp(of) if of.marks && of.mark_acknowledgements)
    }
}

/// Data, or a beginning, as its receiver gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub number: u32,
    /// When it was sent.
    pub stamp: Time,
    /// Whether it was marked.
    pub marked: bool,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The first packet that is missing.
    pub missing: u32,
    /// Packets that have arrived beyond it.
    pub beyond: u32,
    pub blocks: [Block; BLOCKS],
    /// When the packet that it answers was sent.
    pub stamp: Time,
    /// Whether that was marked.
    pub marked: bool,
    /// That packet, if it had arrived before (RFC 2883).
    pub repeated: Option<u32>,
}

impl Answer {
    /// Return what an acknowledgement carries, as `outgoing::acknowledgement` writes it.
    pub fn of(packet: &Packet) -> Answer {
        let mut blocks = packet.blocks;
        let repeated = packet.marks.repeated.then(|| std::mem::take(&mut blocks[0]).first);
        blocks.rotate_left(usize::from(packet.marks.repeated));
        Answer {
            missing: packet.number,
            beyond: packet.beyond,
            blocks,
            stamp: packet.stamp,
            marked: packet.marks.echo,
            repeated,
        }
    }
}

/// A packet that a sender wants to leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub number: u32,
    /// Whether it was sent before.
    pub again: bool,
}

/// A flow's sender.
#[derive(Clone, Debug)]
pub enum Sender {
    Fixed(Fixed),
    PFabric(PFabric),
    Tcp(Box<Tcp>),
}

impl Sender {
    pub fn answered(&mut self, now: Time, answer: &Answer) {
        match self {
            Sender::Fixed(sender) => sender.answered(answer),
            Sender::PFabric(sender) => sender.answered(now, answer),
            Sender::Tcp(sender) => sender.answered(now, answer),
        }
    }

    /// Return the next packet to send now; `received` is the receiver's, for rules that look at it.
    pub fn next(&mut self, now: Time, received: &Received) -> Option<Segment> {
        match self {
            Sender::Fixed(sender) => sender.next(received),
            Sender::PFabric(sender) => sender.next(now, received),
            Sender::Tcp(sender) => sender.next(now),
        }
    }

    /// Send nothing new from this packet on, until another limit comes; senders other than TCP's heed none.
    pub fn set_limit(&mut self, packet: u32) {
        if let Sender::Tcp(sender) = self {
            sender.set_limit(packet);
        }
    }

    /// Return when `expired` is to be called, unless something comes before.
    pub fn deadline(&self) -> Time {
        match self {
            Sender::Fixed(_) => NEVER,
            Sender::PFabric(sender) => sender.deadline(),
            Sender::Tcp(sender) => sender.deadline(),
        }
    }

    /// Run what is due. `stranded`: nothing of the flow is in the network.
    pub fn expired(&mut self, now: Time, stranded: bool) {
        match self {
            Sender::Fixed(_) => {}
            Sender::PFabric(sender) => sender.expired(now, stranded),
            Sender::Tcp(sender) => sender.expired(now),
        }
    }

    /// Return the first packet that is not acknowledged, and how many beyond it are known to have arrived.
    pub fn acknowledged(&self) -> (u32, u32) {
        match self {
            Sender::Fixed(sender) => sender.acknowledged(),
            Sender::PFabric(sender) => sender.acknowledged(),
            Sender::Tcp(sender) => sender.acknowledged(),
        }
    }

    /// Take a round trip that was measured before any data.
    pub fn measured(&mut self, time: Time) {
        if let Sender::Tcp(sender) = self {
            sender.measured(time);
        }
    }

    /// Return what round trips take, smoothed, and the least that one took; 0: not measured.
    pub fn round_trips(&self) -> (Time, Time) {
        match self {
            Sender::Tcp(sender) => sender.round_trips(),
            _ => (0, 0),
        }
    }

    pub fn timeouts(&self) -> u32 {
        match self {
            Sender::Fixed(_) => 0,
            Sender::PFabric(sender) => sender.timeouts(),
            Sender::Tcp(sender) => sender.timeouts(),
        }
    }
}
