//! What is discarded where a peer, or all of them together, keep too much (`budget`).

use crate::counts::Count;
use crate::flow_table::FlowId;
use crate::packet::Packet;
use crate::peers::{Peer, PeerId, Peers};
use crate::receiving::{ReceiveFlow, Receiver, Shed};

impl<P: Packet> Receiver<P> {
    /// Discards what the peers keep that keep most, where all of them together keep too much. To be called when something
    /// came of a peer.
    pub fn keep_all_within_budget(&mut self, peers: &mut Peers<P>) {
        if !self.total.may_be_above() {
            return;
        }
        let sizes = peers.ids().into_iter().map(|id| (peers[id].budget.charged(), id));
        let mut largest_first: Vec<(usize, PeerId)> = sizes.collect();
        largest_first.sort_unstable_by(|first, other| other.cmp(first));
        let Some(level) = self.total.level(largest_first.iter().map(|&(bytes, _)| bytes)) else { return };
        for (before, id) in largest_first {
            if !self.total.is_above_aim() {
                break;
            }
            self.shed(&mut peers[id], level);
            self.total.shrank(before - peers[id].budget.charged());
        }
    }

    /// Discards the oldest records of flows that are gone, of the peers that have most of them, where all of them together
    /// take too much: where no experiment asks for them, they would be kept for ever.
    pub(super) fn keep_records_within_bound(&mut self, peers: &mut Peers<P>) {
        let mut sizes: Vec<usize> = peers.iter().map(|peer| peer.flows.finished_bytes()).collect();
        sizes.sort_unstable_by(|first, other| other.cmp(first));
        let Some(level) = self.records.level(sizes.into_iter()) else { return };
        for id in peers.ids() {
            peers[id].flows.keep_finished(level);
        }
    }

    /// Charges a peer for what a flow keeps now, and discards what is beyond its budget.
    pub(super) fn keep_within_budget(&mut self, peer: &mut Peer<P>, id: FlowId) {
        let before = peer.budget.charged();
        peer.budget.charge(&mut peer.flows[id]);
        self.grown(peer, before);
    }

    /// Charges a peer for the repairs that wait for their flows now, and discards what is beyond its budget.
    pub(super) fn keep_early_within_budget(&mut self, peer: &mut Peer<P>) {
        let before = peer.budget.charged();
        peer.budget.charge_early::<P>(&peer.early);
        self.grown(peer, before);
    }

    /// Delivers what a flow that was evicted holds back.
    pub(super) fn displaced(&mut self, mut gone: ReceiveFlow<P>) {
        if let Some(place) = gone.holding {
            self.holding.remove(&place);
            gone.release.drain(&mut self.deliver);
        }
    }

    fn grown(&mut self, peer: &mut Peer<P>, before: usize) {
        self.shed(peer, peer.budget.limit);
        self.total.grew(peer.budget.charged().saturating_sub(before));
    }

    /// Discards what a peer keeps beyond `limit` bytes.
    fn shed(&mut self, peer: &mut Peer<P>, limit: usize) {
        while peer.budget.charged() > limit && !peer.early.is_empty() {
            self.counts.add(Count::RepairsWithoutFlow, peer.early.drop_oldest() as u64);
            peer.budget.charge_early::<P>(&peer.early);
        }
        while let Some(shed) = peer.budget.shed(limit, &mut peer.flows) {
            match shed {
                Shed::Decoder => self.counts.add(Count::DecodersOverBudget, 1),
                Shed::Flow(flow) => {
                    self.counts.add(Count::FlowsOverBudget, 1);
                    self.displaced(*flow);
                }
            }
        }
    }
}
