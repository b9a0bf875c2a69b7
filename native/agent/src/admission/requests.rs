//! Which flows of a host have asked, and what was decided of them.
//!
//! A flow that has asked waits until it is granted a rate. Requests are sent again until they are answered, and now and
//! then afterwards, which makes good whatever was lost. A controller that leaves requests unanswered is not waited for:
//! after the fail-safe time their flows go on unscheduled, until it answers again.

use std::collections::{BTreeMap, HashMap};

use crate::serial::serial_difference;
use crate::Seconds;

/// When requests are repeated (protocol/admission.py, `AdmissionPolicy`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestTimes {
    /// How soon a request is sent again that was not answered.
    pub retry_s: Seconds,
    /// How often an answered one is, with what is left by then.
    pub refresh_s: Seconds,
    /// How long the controller may leave a request unanswered before the flow goes on unscheduled.
    pub fail_safe_s: Seconds,
}

/// A message for the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<D> {
    /// Its number, modulo 2^32.
    pub sequence: u32,
    /// Number of the flow.
    pub flow: u32,
    /// What it says.
    pub body: MessageBody<D>,
}

/// What a message says of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageBody<D> {
    /// The flow has so much left to send.
    Request {
        /// Where it goes.
        destination: D,
        /// On the link.
        bytes_left: u64,
    },
    /// The flow has nothing left, or is gone.
    Finished,
}

/// What the controller has decided about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Number of the decision, modulo 2^32.
    pub sequence: u32,
    /// Number of the flow.
    pub flow: u32,
    /// Number of the newest request that it knows of.
    pub answers: u32,
    /// Rate on the link; 0: the flow has to wait.
    pub rate_bps: u64,
    /// Of the granted path; 0: all of them.
    pub stamp: u16,
}

/// The state of a flow that has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// Held, until it is granted.
    Waiting,
    /// Sends at its granted rate.
    Granted,
    /// Goes on because the controller did not answer.
    Unscheduled,
}

/// What was decided so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounters {
    /// Decisions that were not newer than the one in force.
    pub decisions_late: u64,
    /// Rates granted.
    pub grants: u64,
    /// Flows stopped.
    pub stops: u64,
    /// Flows that went on because the controller did not answer.
    pub flows_unscheduled_by_fail_safe: u64,
}

impl RequestCounters {
    /// Adds those of others.
    pub fn add(&mut self, other: &RequestCounters) {
        self.decisions_late += other.decisions_late;
        self.grants += other.grants;
        self.stops += other.stops;
        self.flows_unscheduled_by_fail_safe += other.flows_unscheduled_by_fail_safe;
    }
}

/// A request without an answer, and those that repeat it.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    since: Seconds,
    /// Sequence number of the first of them: to answer one that has been repeated meanwhile is to answer them all.
    first: u32,
}

#[derive(Clone, Debug)]
struct FlowRequest<D> {
    flow: u32,
    destination: D,
    bytes_left: u64,
    /// None: the controller has answered what was asked last.
    unanswered: Option<Unanswered>,
    again: Seconds,
    /// Sequence number of the newest decision.
    decided: Option<u32>,
    rate_bps: u64,
    stamp: u16,
    unscheduled: bool,
}

impl<D: Clone> FlowRequest<D> {
    fn state(&self) -> RequestState {
        match self {
            FlowRequest { unscheduled: true, .. } => RequestState::Unscheduled,
            FlowRequest { rate_bps: 0, .. } => RequestState::Waiting,
            _ => RequestState::Granted,
        }
    }

    fn due(&self, times: &RequestTimes) -> Seconds {
        let waits = self.unanswered.filter(|_| !self.unscheduled);
        waits.map_or(self.again, |asked| self.again.min(asked.since + times.fail_safe_s))
    }
}

/// Messages on their way out.
#[derive(Clone, Debug)]
struct Outbox<D> {
    sequence: u32,
    messages: Vec<Message<D>>,
}

impl<D: Clone> Outbox<D> {
    fn put(&mut self, flow: u32, body: MessageBody<D>) {
        self.sequence = self.sequence.wrapping_add(1);
        self.messages.push(Message { sequence: self.sequence, flow, body });
    }

    fn ask(&mut self, request: &mut FlowRequest<D>, times: &RequestTimes, now: Seconds) {
        let (destination, bytes_left) = (request.destination.clone(), request.bytes_left);
        self.put(request.flow, MessageBody::Request { destination, bytes_left });
        request.unanswered.get_or_insert(Unanswered { since: now, first: self.sequence });
        request.again = now + if request.unscheduled { times.refresh_s } else { times.retry_s };
    }
}

/// The flows of a host that have asked, by number. `D`: where a flow goes.
#[derive(Clone, Debug)]
pub struct Requests<D> {
    times: RequestTimes,
    /// In the order in which they asked.
    flows: BTreeMap<u64, FlowRequest<D>>,
    /// Where each is.
    places: HashMap<u32, u64>,
    requests_so_far: u64,
    outbox: Outbox<D>,
    counters: RequestCounters,
    latencies: Vec<Seconds>,
}

impl<D: Clone> Requests<D> {
    /// Returns those of a host without large flows, whose newest message had number `sequence`.
    pub fn new(times: RequestTimes, sequence: u32) -> Requests<D> {
        Requests {
            times,
            flows: BTreeMap::new(),
            places: HashMap::new(),
            requests_so_far: 0,
            outbox: Outbox { sequence, messages: Vec::new() },
            counters: RequestCounters::default(),
            latencies: Vec::new(),
        }
    }

    /// Returns how many flows have asked.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if none has.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns the number of the newest message.
    pub fn sequence(&self) -> u32 {
        self.outbox.sequence
    }

    /// Returns what was decided so far.
    pub fn counters(&self) -> RequestCounters {
        self.counters
    }

    /// Returns how long decisions took since the last call, each from the first of the requests that it answers.
    pub fn take_latencies(&mut self) -> Vec<Seconds> {
        std::mem::take(&mut self.latencies)
    }

    /// Returns the state of a flow; None if it has not asked.
    pub fn state(&self, flow: u32) -> Option<RequestState> {
        self.request(flow).map(FlowRequest::state)
    }

    /// Returns the rate on the link that a flow may send at: 0 while it waits; None where it does not have to ask.
    pub fn rate_bps(&self, flow: u32) -> Option<u64> {
        self.request(flow).filter(|request| !request.unscheduled).map(|request| request.rate_bps)
    }

    /// Returns the path that a flow was granted; 0: none of its own.
    pub fn stamp(&self, flow: u32) -> u16 {
        self.request(flow).filter(|request| !request.unscheduled).map_or(0, |request| request.stamp)
    }

    /// Returns how many flows are in a state.
    pub fn standing(&self, state: RequestState) -> usize {
        self.flows.values().filter(|request| request.state() == state).count()
    }

    /// Returns where a flow goes that has asked.
    pub fn destination(&self, flow: u32) -> Option<&D> {
        self.request(flow).map(|request| &request.destination)
    }

    /// Returns where the flows go that have asked, in the order in which they did.
    pub fn destinations(&self) -> impl Iterator<Item = &D> {
        self.flows.values().map(|request| &request.destination)
    }

    /// Returns true if there are messages for the controller.
    pub fn has_messages(&self) -> bool {
        !self.outbox.messages.is_empty()
    }

    /// Notes that a large flow begins: it waits from now on.
    pub fn ask(&mut self, flow: u32, destination: D, bytes_left: u64, now: Seconds) {
        let mut request = FlowRequest {
            flow,
            destination,
            bytes_left,
            unanswered: None,
            again: 0.0,
            decided: None,
            rate_bps: 0,
            stamp: 0,
            unscheduled: false,
        };
        let place = *self.places.entry(flow).or_insert_with(|| {
            self.requests_so_far += 1;
            self.requests_so_far
        });
        self.outbox.ask(&mut request, &self.times, now);
        self.flows.insert(place, request);
    }

    /// Notes how much a flow that has asked has left by now: it goes with its next request.
    pub fn left(&mut self, flow: u32, bytes_left: u64) {
        if let Some(request) = self.request_mut(flow) {
            request.bytes_left = bytes_left.max(1);
        }
    }

    /// Notes that a flow has nothing left, or is gone; of a flow that has not asked nothing is sent.
    pub fn end(&mut self, flow: u32) {
        if let Some(place) = self.places.remove(&flow) {
            self.flows.remove(&place);
            self.outbox.put(flow, MessageBody::Finished);
        }
    }

    /// Notes that the controller listens, perhaps another one, which knows nothing of our flows: asks again for all.
    pub fn connected(&mut self, now: Seconds) {
        self.outbox.messages.clear();
        for request in self.flows.values_mut() {
            request.decided = None;
            let before = request.unanswered.take();
            self.outbox.ask(request, &self.times, now);
            if let (Some(before), Some(unanswered)) = (before, &mut request.unanswered) {
                unanswered.since = before.since;
            }
        }
    }

    /// Processes a decision. Returns true if the rate or the path of its flow is another one by it.
    pub fn decided(&mut self, decision: Decision, now: Seconds) -> bool {
        let Decision { sequence, flow, answers, rate_bps, stamp } = decision;
        let Some(request) = self.places.get(&flow).and_then(|place| self.flows.get_mut(place)) else {
            self.outbox.put(flow, MessageBody::Finished); // the controller does not know yet that the flow is over
            return false;
        };
        if request.decided.is_some_and(|newest| serial_difference(sequence, newest) <= 0) {
            self.counters.decisions_late += 1;
            return false;
        }
        let before = (Some(request.rate_bps).filter(|_| !request.unscheduled), request.stamp);
        request.decided = Some(sequence);
        (request.rate_bps, request.stamp, request.unscheduled) = (rate_bps, stamp, false);
        if request.unanswered.is_none_or(|asked| serial_difference(asked.first, answers) <= 0) {
            self.latencies.extend(request.unanswered.take().map(|asked| now - asked.since));
            request.again = now + self.times.refresh_s;
        }
        let count = if rate_bps > 0 { &mut self.counters.grants } else { &mut self.counters.stops };
        *count += 1;
        before != (Some(rate_bps), stamp)
    }

    /// Returns when `handle_timer` has something to do.
    pub fn deadline(&self) -> Option<Seconds> {
        self.flows.values().map(|request| request.due(&self.times)).min_by(f64::total_cmp)
    }

    /// Asks again what is due. Returns the flows that wait no longer for a controller that does not answer.
    pub fn handle_timer(&mut self, now: Seconds) -> Vec<u32> {
        let mut freed = Vec::new();
        for request in self.flows.values_mut() {
            let late = request.unanswered.is_some_and(|asked| now >= asked.since + self.times.fail_safe_s);
            if late && !request.unscheduled {
                request.unscheduled = true;
                self.counters.flows_unscheduled_by_fail_safe += 1;
                freed.push(request.flow);
            }
            if now >= request.again {
                self.outbox.ask(request, &self.times, now);
            }
        }
        freed
    }

    /// Returns messages for the controller, in order; each is given once.
    pub fn take_messages(&mut self) -> Vec<Message<D>> {
        std::mem::take(&mut self.outbox.messages)
    }

    fn request(&self, flow: u32) -> Option<&FlowRequest<D>> {
        self.flows.get(self.places.get(&flow)?)
    }

    fn request_mut(&mut self, flow: u32) -> Option<&mut FlowRequest<D>> {
        self.flows.get_mut(self.places.get(&flow)?)
    }
}
