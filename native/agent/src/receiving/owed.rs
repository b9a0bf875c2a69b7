//! Which peers feedback is owed to: when it is due, the receiver looks at those alone, for a fabric has many.

use crate::packet::{Packet, Packets};
use crate::peers::{Peer, PeerId, Peers};
use crate::receiving::Receiver;
use crate::sending::Sender;
use crate::Seconds;

impl<P: Packet> Receiver<P> {
    /// Returns true if this number of a peer's datagrams is seen for the first time; false if it is a replay, to be dropped.
    pub fn accept(&mut self, peer: &mut Peer<P>, from: PeerId, number: u32, now: Seconds) -> bool {
        let is_new = peer.arrivals.accept(number, now);
        if peer.arrivals.has_gaps() {
            self.owe_feedback(peer, from);
            if self.next_feedback.is_none() {
                // it was feedback that showed what is missing: nothing else has feedback leave for that
                self.due_by(now + self.policy.loss_after_s);
            }
        }
        is_new
    }

    /// Notes that a peer is to be looked at when feedback is due.
    pub(super) fn owe_feedback(&mut self, peer: &mut Peer<P>, from: PeerId) {
        if !peer.awaits_feedback {
            peer.awaits_feedback = true;
            self.awaiting.push(from);
        }
    }

    /// Has feedback leave at `due`, unless it leaves before that anyway.
    pub(super) fn due_by(&mut self, due: Seconds) {
        self.next_feedback = Some(self.next_feedback.map_or(due, |next| next.min(due)));
    }

    /// Gives up what is lost for certain and sends what is owed, in the directory's order; those that have sent what is
    /// still missing are looked at again.
    pub(super) fn send_feedback_due<S: Packets>(
        &mut self,
        sender: &mut Sender<S>,
        peers: &mut Peers<P>,
        now: Seconds,
    ) {
        let mut awaiting = std::mem::take(&mut self.awaiting);
        peers.sort(&mut awaiting);
        awaiting.retain(|&id| {
            let peer = &mut peers[id];
            let lost = peer.arrivals.give_up(now - self.policy.loss_after_s);
            peer.pending.lost(lost);
            if !peer.pending.is_empty() {
                sender.send_feedback(peer, now);
            }
            let oldest = peer.arrivals.oldest_missing();
            if let Some(oldest) = oldest {
                self.due_by((oldest + self.policy.loss_after_s).max(now + self.policy.feedback_after_s));
            }
            peer.awaits_feedback = oldest.is_some();
            peer.awaits_feedback
        });
        self.awaiting = awaiting;
    }
}
