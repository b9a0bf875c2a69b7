//! Packets in an arena: they are named by handles of 4 bytes and their places are used again.

use datapath::prefetch::prefetch;

use crate::time::Time;

pub type Handle = u32;

/// The packet is of no flow.
pub const NO_FLOW: u32 = u32::MAX;

/// Packets that will arrive at hosts soon, the newest last.
pub type Soon = [Handle; STEPS];

/// Loads, one after the other, by which all is found that a packet refers to.
pub const STEPS: usize = 7;

/// No path has been chosen yet.
pub const NO_PATH: u16 = u16::MAX;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// `number` is the packet's place in its flow.
    Data,
    /// `number` is that of the first packet that is missing.
    Acknowledgement,
    /// The first packet of a flow's sender, and its answer.
    Opening,
    Opened,
    /// An agent's, whatever is inside.
    Datagram,
}

/// Marks of congestion that a packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// A switch may mark the packet instead of dropping it later.
    pub capable: bool,
    /// A switch has marked it.
    pub congested: bool,
    /// An acknowledgement's report that what it answers was marked.
    pub echo: bool,
    /// An acknowledgement's report that what it answers had arrived before: it is the first block (RFC 2883).
    pub repeated: bool,
}

/// Packets from `first` to before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub first: u32,
    pub end: u32,
}

/// Blocks that an acknowledgement has room for beside a timestamp (RFC 2018).
pub const BLOCKS: usize = 3;

/// Aligned to a line of the processor's caches. What links and ports have to know goes with its frame.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    pub flow: u32,
    pub number: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Smaller is better, in queues that look at it.
    pub priority: u32,
    pub destination: u32,
    pub cargo: Cargo,
    pub marks: Marks,
    /// An acknowledgement's number of packets beyond the first that is missing.
    pub beyond: u32,
    /// When data was sent; in an acknowledgement, when the data that caused it was sent.
    pub stamp: Time,
    pub blocks: [Block; BLOCKS],
}

/// A packet as links and ports see it: it goes from one to the next by value, for the packet itself is in no cache by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub handle: Handle,
    /// Bytes on the wire.
    pub bytes: u32,
    pub destination: u32,
    pub path: u16,
    /// The packet's priority, 255 at most.
    pub level: u8,
    /// A switch may mark it.
    pub capable: bool,
}

impl Frame {
    pub fn new(handle: Handle, packet: &Packet) -> Frame {
        Frame {
            handle,
            bytes: packet.bytes,
            destination: packet.destination,
            path: NO_PATH,
            level: packet.priority.min(u32::from(u8::MAX)) as u8,
            capable: packet.marks.capable,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Packets {
    places: Vec<Packet>,
    free: Vec<Handle>,
}

impl Packets {
    pub fn add(&mut self, packet: Packet) -> Handle {
        if let Some(handle) = self.free.pop() {
            self.places[handle as usize] = packet;
            return handle;
        }
        self.places.push(packet);
        u32::try_from(self.places.len() - 1).expect("fewer than 2^32 packets are in the network at a time")
    }

    pub fn remove(&mut self, handle: Handle) -> Packet {
        self.free.push(handle);
        self.places[handle as usize]
    }

    pub fn get(&self, handle: Handle) -> &Packet {
        &self.places[handle as usize]
    }

    /// Return a packet, or what was last in its place; None: nothing ever was.
    pub fn at(&self, handle: Handle) -> Option<&Packet> {
        self.places.get(handle as usize)
    }

    /// Fetch a packet that will be looked at soon, if it is there.
    pub fn prefetch(&self, handle: Handle) {
        self.places.get(handle as usize).map(prefetch);
    }

    pub fn get_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.places[handle as usize]
    }

    /// Return all packets that there are now, which looks at every place.
    pub fn all(&self) -> impl Iterator<Item = &Packet> {
        let mut used = vec![true; self.places.len()];
        self.free.iter().for_each(|&handle| used[handle as usize] = false);
        self.places.iter().zip(used).filter_map(|(packet, used)| used.then_some(packet))
    }

    /// Return how many packets there are now.
    pub fn live(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Return how many packets there were at most at one time.
    pub fn most(&self) -> usize {
        self.places.len()
    }
}
