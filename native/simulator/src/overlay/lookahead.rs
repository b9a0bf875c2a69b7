//! Fetches what agents will read when the next datagrams arrive; the simulation's `lookahead` says when.

use datapath::prefetch::prefetch;

use super::{Datagram, Overlay};
use crate::packets::{Handle, Soon};

impl Overlay {
    /// Fetch what the packets refer to, the newest last, which will arrive at `host`.
    pub fn prefetch(&self, soon: &Soon, host: u32) {
        let &[flow, peer_state, peer, place, known, _, newest] = soon;
        self.inside.get(newest as usize).map(prefetch);
        self.hosts.get(host as usize).inspect(|host| host.prefetch());
        if let Some(datagram) = self.at(known) {
            self.hosts[datagram.to as usize].prefetch_known(datagram.from);
        }
        if let Some(datagram) = self.at(place) {
            self.hosts[datagram.to as usize].prefetch_place(datagram.from);
        }
        if let Some(datagram) = self.at(peer) {
            self.hosts[datagram.to as usize].prefetch_peer(datagram.from, datagram.head.number);
        }
        if let Some(datagram) = self.at(flow) {
            self.hosts[datagram.to as usize].prefetch_newest(datagram.from);
        }
        if let Some(datagram) = self.at(peer_state) {
            self.hosts[datagram.to as usize].prefetch_state(datagram.from, datagram.head.number);
        }
    }

    fn at(&self, handle: Handle) -> Option<&Datagram> {
        self.inside.get(handle as usize)?.as_ref()
    }
}
