//! CAPTON on a host: which TCP flows are large, what is asked for them, and how far they may send.
//!
//! Small flows leave at once. A flow is large if it was announced with more than the threshold, and then asks when it
//! opens; or as soon as it has sent more. A flow that was not announced asks for what its socket holds unsent; if that is
//! full, or cannot be asked, for as much again as it has sent besides, which for heavy-tailed sizes is about right. Every
//! refresh corrects that. Of a flow that was open before the scheme, or the agent, the kernel says what its SYNs agreed;
//! then it is as any other, with what it has left of its announcement.

use std::mem;

use datapath::inner::FlowKey;

use super::clamped::Clamped;
use super::counts::AdmissionCounts;
use super::flow::{Backlog, Flow};
use super::requests::{Decision, Message, MessageBody, RequestState, RequestTimes, Requests};
use super::segment::{Segment, FIN, RST, SYN};
use super::window::WindowClamp;
use super::FlowState;
use crate::departure::UnderlayAddress;
use crate::flow_table::IDLE_S;
use crate::in_order::InOrder;
use crate::Seconds;

const MAX_FLOWS: usize = 65536;

/// How a host's flows are admitted (protocol/admission.py, `AdmissionPolicy`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionPolicy {
    /// Flows of up to so much payload leave at once, unscheduled.
    pub threshold_bytes: u64,
    /// When requests are repeated.
    pub times: RequestTimes,
    /// How far ahead of its rate a sender may run.
    pub burst_s: Seconds,
}

/// Whose request it is, and where its flow goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The flow.
    pub flow: FlowKey,
    /// The agent of the other host.
    pub peer: UnderlayAddress,
}

/// A TCP segment, or a super-packet of several, that the host has sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Whose it is, and where it goes.
    pub to: Destination,
    /// What its header says.
    pub segment: Segment,
    /// Payload that its flow was announced with, bytes (infinite: without end); None: it was not.
    pub announced: Option<f64>,
    /// Payload that its flow had sent before, bytes.
    pub before: u64,
}

/// Numbers that go on when another policy comes.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Of the newest message.
    pub sequence: u32,
    /// Of the next flow.
    pub next_flow: u32,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers { sequence: 0, next_flow: 1 }
    }
}

/// The TCP flows of a host, while a policy holds them. Times are seconds of one monotonic clock.
#[derive(Clone, Debug)]
pub struct HostAdmission<P> {
    policy: AdmissionPolicy,
    requests: Requests<Destination>,
    flows: InOrder<Flow<P>>,
    /// Open flows of which the kernel has not been asked yet.
    untracked: InOrder<()>,
    updates: Vec<P>,
    next_flow: u32,
    counts: AdmissionCounts,
}

impl<P: Clamped> HostAdmission<P> {
    pub fn new(policy: AdmissionPolicy, numbers: Numbers) -> HostAdmission<P> {
        HostAdmission {
            policy,
            requests: Requests::new(policy.times, numbers.sequence),
            flows: InOrder::default(),
            untracked: InOrder::default(),
            updates: Vec::new(),
            next_flow: numbers.next_flow,
            counts: AdmissionCounts::default(),
        }
    }

    pub fn numbers(&self) -> Numbers {
        Numbers { sequence: self.requests.sequence(), next_flow: self.next_flow }
    }

    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns what was decided of a flow; None if it is not known.
    pub fn state(&self, flow: &FlowKey) -> Option<FlowState> {
        let flow = self.flows.get(flow)?;
        Some(match self.requests.state(flow.number) {
            Some(RequestState::Waiting) => FlowState::Waiting,
            Some(RequestState::Granted) => FlowState::Granted,
            Some(RequestState::Unscheduled) => FlowState::Unscheduled,
            None if flow.asked => FlowState::Done,
            None if flow.preexisting => FlowState::Unknown,
            None => FlowState::Small,
        })
    }

    /// Notes that the host has sent something.
    pub fn sent(&mut self, sent: &Sent, now: Seconds) {
        let (key, segment) = (sent.to.flow, &sent.segment);
        let known = self.flows.get(&key).map(|flow| flow.clamp.sent_bytes());
        if segment.has(SYN) && known.is_none_or(|done| done > 0) {
            self.begin(sent, sent.announced, now);
        } else if known.is_none() {
            if segment.payload == 0 || segment.has(FIN | RST) {
                return;
            }
            self.adopt(sent, now);
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.last = now;
        let before = flow.clamp.sent_bytes();
        flow.clamp.left(segment);
        let done = flow.clamp.sent_bytes();
        if done > before {
            flow.moved = now;
        }
        if segment.has(RST | FIN) {
            self.forget(&key);
        } else if self.requests.state(flow.number).is_some() {
            if flow.size.is_some_and(|size| done as f64 >= size) {
                self.end(&key, now);
            } else {
                self.requests.left(flow.number, flow.bytes_left());
            }
        } else if !self.untracked.contains(&key)
            && (done > flow.free_bytes || done == 0 && flow.is_announced_large())
        {
            self.ask(&key, now);
        }
    }

    /// Processes a packet of the peer of a flow of this host, and writes the window into it that the host is to get.
    pub fn arrived(&mut self, key: &FlowKey, packet: &mut P, segment: &Segment, now: Seconds) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        if segment.has(RST) {
            self.forget(key);
        } else {
            flow.clamp.arrived(packet, segment, now);
        }
    }

    /// Returns packets that say to the host how far it may send; each is given once.
    pub fn take_updates(&mut self) -> Vec<P> {
        mem::take(&mut self.updates)
    }

    /// Processes a decision of the controller. Returns the flow and the stamp of its path (0: none of its own), if that or
    /// its rate changed.
    pub fn decided(&mut self, decision: Decision, now: Seconds) -> Option<(FlowKey, u16)> {
        if !self.requests.decided(decision, now) {
            return None;
        }
        self.apply(decision.flow, now);
        let flow = self.requests.destination(decision.flow)?.flow;
        Some((flow, self.requests.stamp(decision.flow)))
    }

    /// Returns the flows that have been granted a path of their own, with its stamp.
    pub fn paths(&self) -> Vec<(FlowKey, u16)> {
        let granted =
            |to: &Destination| Some((to.flow, self.requests.stamp(self.flows.get(&to.flow)?.number)));
        self.requests.destinations().filter_map(granted).filter(|&(_, stamp)| stamp > 0).collect()
    }

    /// Notes that the controller listens again: it is asked for all flows.
    pub fn connected(&mut self, now: Seconds) {
        self.requests.connected(now);
    }

    /// Releases all that is held: the scheme has changed.
    pub fn release(&mut self, now: Seconds) {
        for key in self.flows.keys_where(|_| true) {
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            flow.set_free();
            if self.requests.state(flow.number).is_some() {
                self.end(&key, now);
            }
        }
    }

    /// Returns true if `messages` has something to do.
    pub fn has_messages(&self) -> bool {
        self.requests.has_messages() || !self.untracked.is_empty()
    }

    /// Returns messages for the controller, in order; each is given once. There may be updates then.
    ///
    /// `backlog`: what the socket of a flow holds; asked for flows that were not announced, or are not known. None: it is
    /// no socket of this host, or cannot be asked.
    pub fn messages(
        &mut self,
        now: Seconds,
        mut backlog: impl FnMut(&FlowKey) -> Option<Backlog>,
    ) -> Vec<Message<Destination>> {
        for key in self.untracked.keys_where(|()| true) {
            let backlog = backlog(&key);
            self.learn(&key, backlog, now);
        }
        let mut messages = Vec::new();
        for mut message in self.requests.take_messages() {
            let key = self.requests.destination(message.flow).map(|destination| destination.flow);
            let flow = key.and_then(|key| Some((key, self.flows.get_mut(&key)?)));
            match (&mut message.body, flow) {
                (MessageBody::Request { bytes_left, .. }, Some((key, flow))) => {
                    let granted = self.requests.state(flow.number) == Some(RequestState::Granted);
                    if granted && now - flow.moved >= flow.stalled_s() {
                        self.pause(&key, now);
                        continue;
                    }
                    if flow.size.is_none() {
                        let backlog = backlog(&key);
                        if backlog.is_some_and(|backlog| backlog.is_empty()) {
                            self.end(&key, now);
                            continue;
                        }
                        flow.backlog = backlog;
                        *bytes_left = flow.bytes_left();
                    }
                }
                (MessageBody::Request { .. } | MessageBody::Finished, _) => {}
            }
            messages.push(message);
        }
        messages.extend(self.requests.take_messages());
        messages
    }

    /// Returns when `handle_timer` has something to do.
    pub fn deadline(&self) -> Option<Seconds> {
        let clamps = self.requests.destinations().filter_map(|to| self.flows.get(&to.flow)?.clamp.deadline());
        clamps.chain(self.requests.deadline()).min_by(f64::total_cmp)
    }

    /// Asks again what is due, and gives windows to senders that have used up theirs.
    pub fn handle_timer(&mut self, now: Seconds) {
        for number in self.requests.handle_timer(now) {
            self.apply(number, now);
        }
        for to in self.requests.destinations() {
            let Some(flow) = self.flows.get_mut(&to.flow) else { continue };
            if flow.clamp.deadline().is_some_and(|due| now >= due) {
                self.updates.extend(flow.clamp.update(now));
            }
        }
    }

    /// Forgets flows that have been idle for long; those that wait are silent, for their windows are closed.
    pub fn sweep(&mut self, now: Seconds) {
        let requests = &self.requests;
        let waits = |flow: &Flow<P>| requests.state(flow.number) == Some(RequestState::Waiting);
        for key in self.flows.keys_where(|flow| now - flow.last > IDLE_S && !waits(flow)) {
            self.forget(&key);
        }
    }

    /// Returns what was counted since the policy came.
    pub fn counts(&self) -> AdmissionCounts {
        AdmissionCounts { requests: self.requests.counters(), ..self.counts }
    }

    /// Returns how many flows are in a state.
    pub fn standing(&self, state: RequestState) -> usize {
        self.requests.standing(state)
    }

    /// Returns how long decisions took since the last call.
    pub fn take_latencies(&mut self) -> Vec<Seconds> {
        self.requests.take_latencies()
    }

    fn begin(&mut self, sent: &Sent, size: Option<f64>, now: Seconds) {
        let key = sent.to.flow;
        if self.flows.contains(&key) {
            self.forget(&key);
        } else if self.flows.len() >= MAX_FLOWS {
            self.flows.oldest().into_iter().for_each(|oldest| self.forget(&oldest));
        }
        let clamp = WindowClamp::new(self.policy.burst_s);
        self.flows.put(
            key,
            Flow {
                number: self.next_flow,
                peer: sent.to.peer,
                clamp,
                size,
                last: now,
                free_bytes: self.policy.threshold_bytes,
                moved: 0.0,
                asked: false,
                preexisting: false,
                backlog: None,
            },
        );
        self.next_flow = self.next_flow % u32::MAX + 1;
    }

    /// Begins with a flow that is open already.
    fn adopt(&mut self, sent: &Sent, now: Seconds) {
        let before = sent.before as f64;
        let remaining = sent.announced.filter(|&size| size > before).map(|size| size - before);
        self.begin(sent, remaining, now);
        if let Some(flow) = self.flows.get_mut(&sent.to.flow) {
            flow.preexisting = true;
            flow.free_bytes = self.policy.threshold_bytes.saturating_sub(sent.before);
            self.untracked.put(sent.to.flow, ());
        }
    }

    /// Notes what the kernel says of a flow that was open already; None: it is none of its sockets.
    fn learn(&mut self, key: &FlowKey, backlog: Option<Backlog>, now: Seconds) {
        self.untracked.remove(key);
        let Some(flow) = self.flows.get_mut(key) else { return };
        let Some(backlog) = backlog.filter(|backlog| backlog.segment_bytes > 0) else {
            return flow.set_free();
        };
        flow.clamp.join(backlog.scale, backlog.segment_bytes, backlog.most_segment_bytes);
        let done = flow.clamp.sent_bytes();
        if backlog.is_empty() {
            flow.free_bytes = done + self.policy.threshold_bytes;
        } else if done > flow.free_bytes || flow.is_announced_large() {
            self.ask(key, now);
        }
    }

    fn ask(&mut self, key: &FlowKey, now: Seconds) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        if flow.clamp.is_answering() {
            return self.untracked.put(*key, ()); // the kernel knows what the SYN of its peer agreed
        }
        // what has sent more than was announced has no known size
        flow.size = flow.size.filter(|&size| size > flow.clamp.sent_bytes() as f64);
        self.counts.flows_scheduled += u64::from(!flow.asked);
        flow.asked = true;
        let destination = Destination { flow: *key, peer: flow.peer };
        self.requests.ask(flow.number, destination, flow.bytes_left(), now);
        flow.clamp.set_rate(0.0, now);
    }

    /// Ends what it has asked for: it has sent that, and what follows is small, or asks anew.
    fn end(&mut self, key: &FlowKey, now: Seconds) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        self.requests.end(flow.number);
        flow.free_bytes = flow.free_bytes.max(flow.clamp.sent_bytes() + self.policy.threshold_bytes);
        flow.clamp.set_rate(f64::INFINITY, now);
        self.updates.extend(flow.clamp.update(now));
    }

    /// Returns the grant of a flow; it asks again with the first segment that leaves, which its window allows already.
    fn pause(&mut self, key: &FlowKey, now: Seconds) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        self.counts.flows_stalled += 1;
        self.requests.end(flow.number);
        flow.free_bytes = flow.clamp.sent_bytes();
        flow.clamp.set_rate(0.0, now);
    }

    fn forget(&mut self, key: &FlowKey) {
        let Some(flow) = self.flows.remove(key) else { return };
        self.untracked.remove(key);
        let small = !flow.asked && !flow.preexisting && flow.clamp.sent_bytes() > 0;
        self.counts.flows_small += u64::from(small);
        self.requests.end(flow.number);
    }

    fn apply(&mut self, number: u32, now: Seconds) {
        let Some(to) = self.requests.destination(number) else { return };
        let Some(flow) = self.flows.get_mut(&to.flow) else { return };
        flow.moved = now;
        let bytes_per_s = self.requests.rate_bps(number).map_or(f64::INFINITY, |rate| rate as f64 / 8.0);
        flow.clamp.set_rate(bytes_per_s / flow.on_the_link(), now);
        self.updates.extend(flow.clamp.update(now));
    }
}
