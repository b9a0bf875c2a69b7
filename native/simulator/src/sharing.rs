//! A buffer that the ports of a switch share by a dynamic threshold: a queue may hold alpha times what is free of it
//! (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). With n saturated queues each holds
//! alpha B / (1 + n alpha) of B.

use crate::port::Port;
use crate::queue::{Discipline, Room};
use crate::time::Time;
use crate::topology::Topology;
use crate::Error;

/// Of every switch. Hosts' own ports have buffers of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    pub bytes: u64,
    pub alpha: f64,
}

impl Sharing {
    /// Return an error unless ports of this discipline can share it, and a packet of `bytes` finds room in an empty one.
    pub fn check(&self, discipline: Discipline, bytes: u32) -> Result<(), Error> {
        if discipline == Discipline::PFabric {
            return Err(Error("pFabric's ports share no buffer: leave the shared buffer out".to_string()));
        }
        if !(self.alpha > 0.0 && self.alpha.is_finite()) {
            return Err(Error(format!("alpha is {}: give more than 0", self.alpha)));
        }
        let room = self.room(0);
        if room.queue.min(room.packet) < u64::from(bytes) {
            return Err(Error(format!(
                "a shared buffer of {} B with alpha {} holds no packet of {bytes} B: make it larger",
                self.bytes, self.alpha
            )));
        }
        Ok(())
    }

    /// Return what is left where so many bytes wait in all queues of the switch.
    fn room(&self, waiting: u64) -> Room {
        let free = self.bytes.saturating_sub(waiting);
        Room { queue: (self.alpha * free as f64) as u64, packet: free }
    }
}

/// The buffers of all switches.
#[derive(Clone, Debug)]
pub struct SharedBuffers {
    sharing: Sharing,
    /// By link, the switch that sends on it; None: a host.
    switches: Vec<Option<u32>>,
    /// By switch, the links on which it sends.
    links: Vec<Vec<u32>>,
}

impl SharedBuffers {
    pub fn new(sharing: Sharing, topology: &Topology) -> SharedBuffers {
        let switches: Vec<Option<u32>> =
            (0..topology.links.len()).map(|link| topology.switch_of(link as u32)).collect();
        let count = switches.iter().flatten().max().map_or(0, |&last| last as usize + 1);
        let mut links = vec![Vec::new(); count];
        for (link, switch) in switches.iter().enumerate() {
            if let Some(switch) = switch {
                links[*switch as usize].push(link as u32);
            }
        }
        SharedBuffers { sharing, switches, links }
    }

    /// Return what is left for a packet that comes to a link's port at `now`.
    pub fn room(&self, link: u32, now: Time, ports: &mut [Port]) -> Room {
        let Some(switch) = self.switches[link as usize] else { return Room::ENDLESS };
        let waiting = self.links[switch as usize].iter();
        self.sharing.room(waiting.map(|&link| ports[link as usize].waiting_bytes(now)).sum())
    }
}
