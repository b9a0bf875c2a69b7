//! Datagrams that leave together, as the decisions made them: what their headers say, without any bytes.

use datapath::feedback::Feedback;

use crate::class::TrafficClass;
use crate::coding::ClosedUnit;
use crate::packet::Sizes;

/// An IPv4 address of the underlay.
pub type UnderlayAddress = [u8; 4];

/// Where datagrams go and how they are to be treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Of the peer.
    pub address: UnderlayAddress,
    /// UDP destination port: base port and flow key.
    pub port: u16,
    /// Type of service without congestion marks.
    pub tos: u8,
    /// Congestion marks of the packets inside; repairs have none.
    pub ecn: u8,
}

/// Sources that leave together.
#[derive(Clone, Debug)]
pub struct Sources<P> {
    /// Of the first, modulo 2^32; each further one has the next.
    pub position: u32,
    /// Of the inner packets.
    pub sizes: Sizes,
    /// The inner packets.
    pub packets: P,
}

/// Repairs of one unit.
#[derive(Clone, Debug)]
pub struct Repairs<P> {
    /// So many of the sources leave before them.
    pub behind: u32,
    /// What they are made of.
    pub unit: ClosedUnit<P>,
}

/// What datagrams carry.
#[derive(Clone, Debug)]
pub enum Content<P> {
    /// Packets of a flow, the repairs of units that they complete behind the last packet of each.
    Packets {
        /// None: repairs alone.
        sources: Option<Sources<P>>,
        /// In the order in which they leave.
        repairs: Vec<Repairs<P>>,
    },
    /// What came of the peer's own datagrams: one datagram.
    Feedback(Feedback),
}

/// Datagrams to one peer that leave at once: one alone, or all that a super-packet gives.
#[derive(Clone, Debug)]
pub struct Departure<P> {
    /// Where they go.
    pub outer: Outer,
    /// Of the inner packets; control for feedback.
    pub class: TrafficClass,
    /// Whether the sources belong to coding units.
    pub coded: bool,
    /// The flow's number on the wire; 0: of no flow.
    pub flow: u32,
    /// Number of the first datagram; each further one has the next, modulo 2^32.
    pub number: u32,
    /// When they leave: microseconds of the sender's clock, modulo 2^32.
    pub sent_us: u32,
    /// Source ports, one for each datagram.
    pub ports: Vec<u16>,
    /// What they carry.
    pub content: Content<P>,
}

/// What the headers of a datagram say of what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number.
    pub number: u32,
    /// When it left: microseconds of its sender's clock, modulo 2^32.
    pub sent_us: u32,
    /// Of what it carries.
    pub class: TrafficClass,
    /// Whether it is a source of a coding unit, or a repair.
    pub coded: bool,
    /// The flow's number; 0: of no flow.
    pub flow: u32,
    /// Of the packet, or of the first packet of the unit.
    pub position: u32,
}

impl<P> Departure<P> {
    /// Returns what the headers of one datagram say, the first being number 0.
    pub fn head(&self, index: u32, is_repair: bool, position: u32) -> Head {
        Head {
            number: self.number.wrapping_add(index),
            sent_us: self.sent_us,
            class: self.class,
            coded: self.coded || is_repair,
            flow: self.flow,
            position,
        }
    }
}

/// Returns a time as datagrams carry it: microseconds, modulo 2^32.
pub fn microseconds(now: f64) -> u32 {
    (now * 1e6) as i64 as u32
}
