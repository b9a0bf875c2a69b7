//! Admission of a host's flows while a policy asks for it; all passes, and nothing stays, when none does.

use std::mem;

use datapath::inner::FlowKey;

use super::clamped::Clamped;
use super::counts::AdmissionCounts;
use super::flow::Backlog;
use super::host::{AdmissionPolicy, Destination, HostAdmission, Numbers, Sent};
use super::requests::{Decision, Message, RequestState};
use super::segment::Segment;
use super::{Episode, FlowState, Retransmissions};
use crate::Seconds;

/// How long after its end retransmissions are reported: a change of the scheme is not to cause them unseen.
const AFTERWARDS_S: Seconds = 5.0;

/// What TCP packets of a host pass through. `P`: a packet of a peer, whose window can be written.
#[derive(Clone, Debug)]
pub struct Gate<P> {
    policy: Option<AdmissionPolicy>,
    admission: Option<HostAdmission<P>>,
    /// Those of an admission that is over go on.
    numbers: Numbers,
    messages: Vec<Message<Destination>>,
    /// What the host is to get of an admission that is over.
    updates: Vec<P>,
    /// Of admissions that are over.
    totals: AdmissionCounts,
    latencies: Vec<Seconds>,
    retransmissions: Retransmissions,
    /// No admission is in force, but retransmissions are still watched; None: they are not.
    watched_until: Option<Seconds>,
}

impl<P> Default for Gate<P> {
    fn default() -> Gate<P> {
        Gate {
            policy: None,
            admission: None,
            numbers: Numbers::default(),
            messages: Vec::new(),
            updates: Vec::new(),
            totals: AdmissionCounts::default(),
            latencies: Vec::new(),
            retransmissions: Retransmissions::default(),
            watched_until: None,
        }
    }
}

impl<P: Clamped> Gate<P> {
    /// Returns true if packets have to pass.
    pub fn is_shut(&self) -> bool {
        self.admission.is_some()
            || self.watched_until.is_some()
            || !self.updates.is_empty()
            || !self.messages.is_empty()
    }

    /// Returns true if a policy holds flows.
    pub fn is_in_force(&self) -> bool {
        self.admission.is_some()
    }

    /// Holds flows by this from now on; lets go of what another policy held.
    pub fn set_policy(&mut self, policy: Option<AdmissionPolicy>, now: Seconds) {
        if policy == self.policy {
            return;
        }
        if self.admission.is_none() && self.watched_until.is_none() {
            self.retransmissions.end_all(); // what left since the last admission has not passed
        }
        self.policy = policy;
        let old = self.admission.take();
        self.watched_until = (old.is_some() && policy.is_none()).then_some(now + AFTERWARDS_S);
        if let Some(mut old) = old {
            old.release(now);
            self.updates.append(&mut old.take_updates());
            self.messages.append(&mut old.messages(now, |_| None));
            self.totals.add(&old.counts());
            self.latencies.append(&mut old.take_latencies());
            self.numbers = old.numbers();
        }
        self.admission = policy.map(|policy| HostAdmission::new(policy, self.numbers));
    }

    /// Processes a segment, or a super-packet of several, that the host has sent.
    pub fn sent(&mut self, sent: &Sent, now: Seconds) {
        let flow = sent.to.flow;
        let Some(admission) = &mut self.admission else {
            if self.watched_until.is_some() {
                let again = self.retransmissions.sent(flow, &sent.segment, FlowState::NoAdmission, now);
                self.totals.bytes_sent_again += again;
            }
            return;
        };
        let unknown = if self.retransmissions.knows(&flow) { FlowState::Done } else { FlowState::Unknown };
        let state = admission.state(&flow).unwrap_or(unknown);
        self.totals.bytes_sent_again += self.retransmissions.sent(flow, &sent.segment, state, now);
        admission.sent(sent, now);
    }

    /// Processes a packet of the peer of a flow of this host, and writes the window into it that the host is to get.
    pub fn arrived(&mut self, flow: &FlowKey, packet: &mut P, segment: &Segment, now: Seconds) {
        match &mut self.admission {
            Some(admission) => {
                self.retransmissions.arrived(flow, segment, now);
                admission.arrived(flow, packet, segment, now);
            }
            None if self.watched_until.is_some() => self.retransmissions.arrived(flow, segment, now),
            None => {}
        }
    }

    /// Returns what the host is to get of an admission that is over, before anything else; each is given once.
    pub fn take_released(&mut self) -> Vec<P> {
        mem::take(&mut self.updates)
    }

    /// Returns packets that say to the host how far it may send, after all others; each is given once.
    pub fn take_updates(&mut self) -> Vec<P> {
        self.admission.as_mut().map(HostAdmission::take_updates).unwrap_or_default()
    }

    /// Processes a decision of the controller. Returns the flow and the stamp of its path (0: none of its own), if that or
    /// its rate changed.
    pub fn decided(&mut self, decision: Decision, now: Seconds) -> Option<(FlowKey, u16)> {
        self.admission.as_mut()?.decided(decision, now)
    }

    /// Returns the flows that have been granted a path of their own, with its stamp.
    pub fn paths(&self) -> Vec<(FlowKey, u16)> {
        self.admission.as_ref().map(HostAdmission::paths).unwrap_or_default()
    }

    /// Notes that the controller listens again, perhaps another one.
    pub fn connected(&mut self, now: Seconds) {
        if let Some(admission) = &mut self.admission {
            admission.connected(now);
        }
    }

    /// Returns true if `messages` has something to do.
    pub fn has_messages(&self) -> bool {
        !self.messages.is_empty() || self.admission.as_ref().is_some_and(HostAdmission::has_messages)
    }

    /// Returns messages for the controller, in order; each is given once. There may be updates then.
    ///
    /// `backlog`: what the socket of a flow holds; None: it is no socket of this host, or cannot be asked.
    pub fn messages(
        &mut self,
        now: Seconds,
        backlog: impl FnMut(&FlowKey) -> Option<Backlog>,
    ) -> Vec<Message<Destination>> {
        let mut messages = mem::take(&mut self.messages);
        if let Some(admission) = &mut self.admission {
            messages.append(&mut admission.messages(now, backlog));
        }
        messages
    }

    /// Returns when `handle_timer` has something to do.
    pub fn deadline(&self) -> Option<Seconds> {
        self.admission.as_ref()?.deadline()
    }

    /// Asks again what is due, and gives windows to senders that have used up theirs.
    pub fn handle_timer(&mut self, now: Seconds) {
        if let Some(admission) = &mut self.admission {
            admission.handle_timer(now);
        }
    }

    /// Notes that the agent's loop woke so much later than it wanted.
    pub fn late(&mut self, late_s: Seconds, now: Seconds) {
        if self.is_shut() {
            self.retransmissions.late(late_s, now);
        }
    }

    /// Returns the retransmission episodes that are over; each is given once.
    pub fn take_episodes(&mut self, now: Seconds) -> Vec<Episode> {
        self.retransmissions.settle(now);
        self.retransmissions.take_episodes()
    }

    /// Drops the retransmission episodes that are over, where nothing takes them; no flow is forgotten for its silence.
    pub fn drop_episodes(&mut self, now: Seconds) {
        self.retransmissions.drop_episodes(now);
    }

    /// Forgets flows that have been idle for long.
    pub fn sweep(&mut self, now: Seconds) {
        self.watched_until = self.watched_until.filter(|&until| now < until);
        if let Some(admission) = &mut self.admission {
            admission.sweep(now);
        }
    }

    /// Returns what was counted since the start.
    pub fn counts(&self) -> AdmissionCounts {
        let mut counts = self.totals;
        if let Some(admission) = &self.admission {
            counts.add(&admission.counts());
        }
        counts
    }

    /// Returns true if a flow is silent because it is held.
    pub fn holds(&self, flow: &FlowKey) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.state(flow) == Some(FlowState::Waiting))
    }

    /// Returns how many flows are known.
    pub fn flows(&self) -> usize {
        self.admission.as_ref().map_or(0, HostAdmission::len)
    }

    /// Returns how many flows are in a state.
    pub fn standing(&self, state: RequestState) -> usize {
        self.admission.as_ref().map_or(0, |admission| admission.standing(state))
    }

    /// Returns how long decisions took since the last call, each from the first of the requests that it answers.
    pub fn take_latencies(&mut self) -> Vec<Seconds> {
        let mut latencies = mem::take(&mut self.latencies);
        if let Some(admission) = &mut self.admission {
            latencies.append(&mut admission.take_latencies());
        }
        latencies
    }
}
