//! Packets as decisions see them: what their headers say, and what is done to them. Those of a host have bytes, those of a
//! simulation need none.

use datapath::inner::{FlowKey, Malformed, Seen};

use crate::receiving::Payload;

/// An inner packet that came from a peer, or was rebuilt.
pub trait Packet: Payload {
    /// Reads its headers.
    ///
    /// # Errors
    ///
    /// It is no IP packet, or its lengths do not fit it.
    fn look(&self) -> Result<Seen, Malformed>;

    /// Returns its ECN field.
    fn ecn(&self) -> u8;

    /// Returns the packet with another ECN field.
    fn with_ecn(&self, ecn: u8) -> Self;

    /// Returns what a TCP segment acknowledges: the number in its header, wherever `Seen` says that this lies.
    fn acknowledges(&self, seen: &Seen) -> u32;
}

/// Packets that a host sends together, in order.
pub trait Packets: Clone {
    /// Returns those from `begin` on and before `end`.
    fn part(&self, begin: u32, end: u32) -> Self;
}

impl Packets for () {
    fn part(&self, _begin: u32, _end: u32) {}
}

/// How large the packets of a burst are: all alike but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// How many they are.
    pub count: u32,
    /// Bytes of each inner packet but the last.
    pub each: u32,
    /// Bytes of the last one.
    pub last: u32,
}

impl Sizes {
    /// Returns the sizes of the packets from `begin` on and before `end`.
    pub fn part(&self, begin: u32, end: u32) -> Sizes {
        let last = if end == self.count { self.last } else { self.each };
        let each = if end - begin == 1 { last } else { self.each };
        Sizes { count: end - begin, each, last }
    }

    /// Returns the bytes of the longest packet.
    pub fn longest(&self) -> u32 {
        if self.count > 1 {
            self.each.max(self.last)
        } else {
            self.last
        }
    }

    /// Returns the bytes of all.
    pub fn total(&self) -> u64 {
        u64::from(self.count.saturating_sub(1)) * u64::from(self.each) + u64::from(self.last)
    }
}

/// Packets of one flow that the host sends at once: one alone, or the segments of a TCP super-packet.
#[derive(Clone, Debug)]
pub struct Burst<P> {
    /// Whose they are.
    pub flow: FlowKey,
    /// What the packet that the host handed over says; its payload is that of all.
    pub seen: Seen,
    /// Its ECN field.
    pub ecn: u8,
    /// TCP: sequence number of the first byte of payload.
    pub sequence: Option<u32>,
    /// Bytes of payload of each packet but the last.
    pub step: u32,
    /// Of the inner packets.
    pub sizes: Sizes,
    /// The packets.
    pub packets: P,
}

impl<P> Burst<P> {
    /// Returns the payload of all, bytes.
    pub fn payload(&self) -> u64 {
        self.seen.payload as u64
    }
}
