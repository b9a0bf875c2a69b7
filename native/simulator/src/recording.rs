//! A window of a run, packet by packet: hops over links, what agents hand to their hosts, and how leaves change modes.
//!
//! A hop has its time in the queue; when it arrived follows from the link's rate and delay and the packet's length.

use agent::TrafficClass;

use crate::packets::{Handle, Packet};
use crate::time::Time;
use crate::Error;

/// No packet, or no hop.
const NONE: u32 = u32::MAX;
/// A hop of which more than this is asked for would need over a gigabyte of memory.
pub const MOST_HOPS: usize = 10_000_000;

/// What to record: hops that begin from `from` on and before `until`, `most_hops` of them at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Time,
    pub until: Time,
    pub most_hops: usize,
}

impl Window {
    fn check(&self) -> Result<(), Error> {
        if self.from >= self.until {
            return Err(Error("the window to record ends before it begins: give it a length above 0".into()));
        }
        if !(1..=MOST_HOPS).contains(&self.most_hops) {
            return Err(Error(format!("a recording has 1 to {MOST_HOPS} hops, not {}", self.most_hops)));
        }
        Ok(())
    }
}

/// What a recorded packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketKind {
    Data,
    Acknowledgement,
    /// Of a handshake.
    Opening,
    Repair,
    /// What agents say to each other.
    Feedback,
}

/// A packet that was seen in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Row of its flow in the workload; None: of no flow.
    pub flow: Option<u32>,
    /// Of a repair: of the first packet of its unit.
    pub number: u32,
    pub kind: PacketKind,
    pub class: TrafficClass,
    pub bytes: u32,
    pub source: u32,
    pub destination: u32,
}

/// What became of a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Sent,
    Dropped,
    /// It waited, or was on the wire, when the recording ended.
    Pending,
}

/// A packet at a port and on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number among the recorded packets.
    pub packet: u32,
    pub link: u32,
    /// When it came to the port.
    pub offered: Time,
    /// How long it waited there, until it began to leave or was dropped; 0 while it is pending.
    pub waited: Time,
    pub outcome: Outcome,
    /// Packets that waited behind it and before it when it had come, itself counted where it waits.
    pub queue: u32,
}

/// A packet that a host got: in order, where its agent restores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub at: Time,
    pub flow: u32,
    pub number: u32,
    pub kind: PacketKind,
}

/// The recording of a window.
#[derive(Clone, Debug)]
pub struct Recording {
    pub window: Window,
    pub packets: Vec<Recorded>,
    pub hops: Vec<Hop>,
    pub releases: Vec<Release>,
    /// When the next hop would have been one too many.
    pub full_at: Option<Time>,
    /// By handle: the number of its packet, and of its hop that is not over.
    open: Vec<(u32, u32)>,
}

impl Recording {
    pub fn new(window: Window) -> Result<Recording, Error> {
        window.check()?;
        Ok(Recording {
            window,
            packets: Vec::new(),
            hops: Vec::new(),
            releases: Vec::new(),
            full_at: None,
            open: Vec::new(),
        })
    }

    /// Return whether what happens now is to be recorded.
    pub fn covers(&self, now: Time) -> bool {
        self.full_at.is_none() && (self.window.from..self.window.until).contains(&now)
    }

    /// Return whether a packet is known.
    pub fn knows(&self, handle: Handle) -> bool {
        self.open.get(handle as usize).is_some_and(|open| open.0 != NONE)
    }

    /// Process a packet's first hop within the window.
    pub fn meet(&mut self, handle: Handle, packet: Recorded) {
        let place = handle as usize;
        if self.open.len() <= place {
            self.open.resize(place + 1, (NONE, NONE));
        }
        self.open[place] = (self.packets.len() as u32, NONE);
        self.packets.push(packet);
    }

    /// Note that a known packet came to a link's port, where so many wait now.
    pub fn offered(&mut self, handle: Handle, link: u32, queue: usize, now: Time) {
        if self.hops.len() >= self.window.most_hops {
            self.full_at = Some(now);
            return;
        }
        let Some(open) = self.open.get_mut(handle as usize) else { return };
        open.1 = self.hops.len() as u32;
        self.hops.push(Hop {
            packet: open.0,
            link,
            offered: now,
            waited: 0,
            outcome: Outcome::Pending,
            queue: queue as u32,
        });
    }

    /// Note that a packet is at the far end of its link, which it began to cross at `begun`.
    pub fn arrived(&mut self, handle: Handle, begun: Time) {
        self.close(handle, begun, Outcome::Sent);
    }

    /// Note that a packet is dropped; its handle will be another's.
    pub fn dropped(&mut self, handle: Handle, now: Time) {
        self.close(handle, now, Outcome::Dropped);
        self.forget(handle);
    }

    /// Note that a packet's handle will be another's.
    pub fn forget(&mut self, handle: Handle) {
        if let Some(open) = self.open.get_mut(handle as usize) {
            *open = (NONE, NONE);
        }
    }

    fn close(&mut self, handle: Handle, until: Time, outcome: Outcome) {
        let Some((_, hop)) = self.open.get_mut(handle as usize) else { return };
        if let Some(hop) = self.hops.get_mut(*hop as usize) {
            hop.waited = until.saturating_sub(hop.offered);
            hop.outcome = outcome;
        }
        *hop = NONE;
    }

    /// Note that a host got a packet.
    pub fn released(&mut self, release: Release) {
        self.releases.push(release);
    }
}

impl Recorded {
    /// Return a packet of a run without agents.
    pub fn plain(packet: &Packet, flow: u32, source: u32) -> Recorded {
        Recorded {
            flow: Some(flow),
            number: packet.number,
            kind: PacketKind::of(packet.cargo),
            class: TrafficClass::None,
            bytes: packet.bytes,
            source,
            destination: packet.destination,
        }
    }
}

impl PacketKind {
    pub fn of(cargo: crate::packets::Cargo) -> PacketKind {
        use crate::packets::Cargo;
        match cargo {
            Cargo::Data => PacketKind::Data,
            Cargo::Acknowledgement => PacketKind::Acknowledgement,
            Cargo::Opening | Cargo::Opened => PacketKind::Opening,
            Cargo::Datagram => PacketKind::Feedback,
        }
    }
}
