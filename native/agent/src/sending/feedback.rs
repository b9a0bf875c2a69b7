//! What peers' feedback and acknowledgements teach the sending half, and our feedback to them.

use datapath::feedback::Feedback;
use datapath::inner::FlowKey;

use crate::blocking::Reported;
use crate::coding::Verdict;
use crate::counts::Count;
use crate::departure::Content;
use crate::packet::{Packet, Packets, Sizes};
use crate::paths::Sent;
use crate::peers::{MarginId, Peer};
use crate::route::LeafId;
use crate::sending::wrapping::Leaving;
use crate::sending::Sender;
use crate::underlay::stamp_of;
use crate::Seconds;

/// Losses that one feedback adds to a counter at most.
const MOST_LOST: u32 = 65536;

impl<P: Packets> Sender<P> {
    /// Processes what a peer says of our datagrams.
    pub fn feedback<Q: Packet>(&mut self, peer: &mut Peer<Q>, feedback: &Feedback, now: Seconds) {
        let (leaf, lost) = (peer.known.leaf, &feedback.lost);
        if let Some(departures) = &peer.departures {
            let sent = Sent { leaf, log: &peer.sent, departures };
            let above_least = |delay_us| peer.least_delay.above(delay_us, now) as u32;
            self.wrapping.steering.learn(sent, feedback, above_least, now);
        }
        let routes = &self.wrapping.steering.routes;
        let mut known = self.estimators.get_mut(&leaf);
        for receipt in &feedback.receipts {
            let sent = peer.sent.arrived(receipt.number);
            if let Some(departures) = &mut peer.departures {
                departures.forget(receipt.number);
            }
            if let Some(known) = known.as_mut().filter(|_| sent && receipt.stamp != 0) {
                peer.stamps.insert(receipt.stamp);
                let above_us = peer.least_delay.above(routes.queued_us(leaf, receipt), now) as u32;
                known.path_delay(receipt.stamp, above_us, now);
            }
        }
        if let Some(known) = known {
            let outstanding = &peer.outstanding;
            let marked = feedback.receipts.iter().filter(|receipt| receipt.marked);
            let marked = marked.filter(|receipt| outstanding.awaits(receipt.number)).count();
            let numbers = feedback.receipts.iter().map(|receipt| receipt.number);
            let (arrived, newest) = peer.outstanding.arrived(numbers);
            if let Some(newest) = newest {
                let sent = &peer.sent;
                let path_of = |number| sent.entropy_of(number).and_then(stamp_of);
                let left_before = newest - known.overdue_s();
                let overdue =
                    peer.outstanding.overdue(left_before, |number| known.path_loss(path_of(number), now));
                let marked = marked.min(arrived); // a peer may report a number twice
                let datagrams =
                    Reported { arrived: arrived as u64, marked: marked as u64, overdue: overdue as u64 };
                known.reported(datagrams, now);
            }
            if peer.outcomes.waiting() > 0 {
                let arrived = feedback.receipts.iter();
                let mut verdicts: Vec<_> = arrived
                    .filter_map(|arrival| peer.outcomes.arrived(arrival.number, arrival.delay_us))
                    .collect();
                verdicts.extend(lost.iter().flat_map(|&(first, count)| peer.outcomes.lost(first, count)));
                verdicts.into_iter().for_each(|verdict| self.learn(verdict));
            }
        }
        self.counts.add(Count::RecoveredAtPeers, feedback.recovered.into());
        let lost = lost.iter().map(|&(_, count)| u64::from(count.min(MOST_LOST)));
        self.counts.add(Count::LostAtPeers, lost.sum());
    }

    pub(super) fn learn(&mut self, verdict: Verdict<MarginId>) {
        if let Some(margin) = self.margins.get_mut(&verdict.margin) {
            margin.learn(verdict.success, verdict.most);
        }
    }

    /// Notes that a TCP packet of a peer acknowledges what is before `number` of our flow `key`: its RTT says how long
    /// coded packets are on their way.
    pub fn acknowledged(&mut self, leaf: LeafId, key: &FlowKey, number: u32, now: Seconds) {
        let Some(known) = self.estimators.get_mut(&leaf) else { return };
        let Some(id) = self.flows.find(key) else { return };
        let flow = &mut self.flows[id];
        if let Some(window) = &mut flow.window {
            window.acknowledged(number);
        }
        if let Some(rtt_s) = flow.round_trips.acknowledged(number, now) {
            known.ack_rtt(rtt_s, now);
        }
    }

    /// Returns true if acknowledgements of peers at a leaf are of use.
    pub fn times_acknowledgements(&self, leaf: LeafId) -> bool {
        self.estimators.contains_key(&leaf)
    }

    /// Sends a peer what came of its datagrams.
    pub fn send_feedback<Q: Packet>(&mut self, peer: &mut Peer<Q>, now: Seconds) {
        for feedback in peer.pending.take() {
            self.counts.add(Count::FeedbacksSent, 1);
            let (subject, bytes) = (self.wrapping.own(peer), feedback.encoded_bytes());
            let mut ports = Vec::with_capacity(1);
            let sizes = Sizes { count: 1, each: bytes, last: bytes };
            self.wrapping.draw(subject, peer, sizes, now, &mut ports);
            let content = Content::Feedback(feedback);
            let leaving = Leaving { subject, coded: false, reported: false, ecn: 0, ports, content };
            self.wrapping.leave(peer, leaving, now);
        }
    }
}
