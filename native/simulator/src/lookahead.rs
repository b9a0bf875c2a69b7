//! Fetches what will be read soon into the processor's caches: in a large run most of the time is waiting for memory.
//! Nothing here changes a result.
//!
//! Between the moment when a packet is the next to arrive at its host and its arrival there are dozens of other events.
//! What it refers to is found by several loads, each of which needs the one before it. So each packet that becomes the
//! next at its host has those before it looked at one load further.

use datapath::prefetch::prefetch;

use crate::packets::{Frame, NO_PATH, STEPS};
use crate::simulation::Simulation;

impl Simulation {
    /// Fetch what the next arrival on a link will look at, if the link leads to a host.
    pub(crate) fn look_ahead(&mut self, link: u32) {
        if !self.topology.leads_to_host(link) {
            return;
        }
        let Some(frame) = self.ports[link as usize].arriving() else { return };
        self.soon.rotate_left(1);
        self.soon[STEPS - 1] = frame.handle;
        self.packets.prefetch(frame.handle);
        if let Some(overlay) = &self.overlay {
            overlay.prefetch(&self.soon, frame.destination);
        }
        let of = self.soon[STEPS - 2];
        if let Some(packet) = self.packets.at(of) {
            self.flows.prefetch(packet.flow);
        }
    }

    /// Fetch the port that a packet goes to next.
    pub(crate) fn prefetch_hop(&self, link: u32, frame: &Frame) {
        if frame.path == NO_PATH && link < self.topology.hosts() {
            return; // a path is still to be chosen
        }
        let next = self.topology.next(link, frame.destination, frame.path);
        next.and_then(|next| self.ports.get(next as usize)).map(prefetch);
    }

    /// Fetch the ports of events that come soon.
    pub(crate) fn prefetch_ports(&self) {
        if let Some(port) = self.events.first().and_then(|event| self.ports.get(event.subject() as usize)) {
            port.prefetch_ends();
        }
        for event in self.events.following() {
            self.ports.get(event.subject() as usize).map(prefetch);
        }
    }
}
