//! Flows: made at their arrival, freed when they have ended and none of their packets is in the network.

use datapath::prefetch::prefetch;

use crate::opening::Opening;
use crate::time::{Time, NEVER};
use crate::transport::receiver::Receiver;
use crate::transport::{Sender, Transport};

/// A flow of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub start: Time,
    pub source: u32,
    pub destination: u32,
    pub bytes: u64,
    /// Where queues are strict: 0 is served first.
    pub level: u32,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When the acknowledgement of its last byte arrived at the sender; None: it has not.
    pub completed: Option<Time>,
    /// When its last byte arrived at the receiver.
    pub delivered: Option<Time>,
    /// Data packets that were sent, and those of them that were sent before.
    pub sent: u64,
    pub resent: u64,
    /// Data of the latter, in bytes.
    pub resent_bytes: u64,
    pub dropped: u64,
    pub timeouts: u32,
    pub duplicates: u32,
    /// Packets that arrived before one that was to come first.
    pub early: u32,
    /// Bytes that the sender knows to have arrived, and what its round trips took, the last of them smoothed; 0: not
    /// measured.
    pub acknowledged: u64,
    pub round_trip: Time,
    pub least_round_trip: Time,
}

/// Packets of a flow, data and acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub made: u64,
    pub delivered: u64,
    pub dropped: u64,
}

impl Tally {
    /// Add another one to it.
    pub fn add(&mut self, other: Tally) {
        self.made += other.made;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
    }
}

#[derive(Clone, Debug)]
pub struct Flow {
    /// Its place in the workload.
    pub number: u32,
    pub demand: Demand,
    pub packets: u32,
    /// Until the connection is there.
    pub opening: Option<Opening>,
    pub sender: Sender,
    pub receiver: Receiver,
    pub tally: Tally,
    pub outcome: Outcome,
    /// It sends no more, for its copy was first.
    pub aborted: bool,
    /// Its entry in the heap.
    pub timer: Time,
}

impl Flow {
    pub fn new(number: u32, demand: Demand, packets: u32, transport: &Transport) -> Flow {
        Flow {
            number,
            demand,
            packets,
            opening: None,
            sender: transport.sender(packets),
            receiver: transport.receiver(),
            tally: Tally::default(),
            outcome: Outcome::default(),
            aborted: false,
            timer: NEVER,
        }
    }

    pub fn finished(&self) -> bool {
        self.outcome.completed.is_some() || self.aborted
    }

    /// Return when something of it is due.
    pub fn deadline(&self) -> Time {
        let opening = self.opening.as_ref().map_or(NEVER, Opening::deadline);
        self.sender.deadline().min(self.receiver.deadline()).min(opening)
    }

    /// Return the bytes before the first packet that is not acknowledged.
    pub fn acknowledged_bytes(&self, payload: u32) -> u64 {
        (u64::from(self.sender.acknowledged().0) * u64::from(payload)).min(self.demand.bytes)
    }

    /// Return how many of its packets should be in the network.
    pub fn in_network(&self) -> u64 {
        self.tally.made - self.tally.delivered - self.tally.dropped
    }

    /// Return the bytes that the sender does not know to have arrived.
    pub fn remaining(&self, payload: u32) -> u64 {
        let (missing, beyond) = self.sender.acknowledged();
        let arrived = (u64::from(missing) + u64::from(beyond)) * u64::from(payload);
        self.demand.bytes.saturating_sub(arrived)
    }
}

/// Flows that are under way, in places that are used again.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    places: Vec<Option<Flow>>,
    free: Vec<u32>,
}

impl Flows {
    pub fn add(&mut self, flow: Flow) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(flow);
            return place;
        }
        self.places.push(Some(flow));
        u32::try_from(self.places.len() - 1).expect("as many flows as fit")
    }

    pub fn get(&mut self, place: u32) -> Option<&mut Flow> {
        self.places.get_mut(place as usize).and_then(Option::as_mut)
    }

    /// Fetch a flow that will be looked at soon, if it is there.
    pub fn prefetch(&self, place: u32) {
        self.places.get(place as usize).map(prefetch);
    }

    /// Return the place of the flow with this row in the workload, if it is under way.
    pub fn place_of(&self, row: u32) -> Option<u32> {
        let of_row = |flow: &Option<Flow>| flow.as_ref().is_some_and(|flow| flow.number == row);
        self.places.iter().position(of_row).map(|place| place as u32)
    }

    pub fn remove(&mut self, place: u32) {
        if self.places[place as usize].take().is_some() {
            self.free.push(place);
        }
    }

    pub fn live(&self) -> impl Iterator<Item = &Flow> {
        self.places.iter().flatten()
    }

    /// Return all places, in order, and the flows in them.
    pub fn by_place(&self) -> impl Iterator<Item = Option<&Flow>> {
        self.places.iter().map(Option::as_ref)
    }

    /// Return how many flows were under way at most at one time.
    pub fn most(&self) -> usize {
        self.places.len()
    }
}
