//! The heap of what comes next: keys of 16 bytes in a 4-ary heap, one for each busy link and each flow with a timer.
//!
//! **Ties.** Of several events at one instant, flows start first, then packets arrive, then timers fire, then ports that
//! became free take their next packet. Within a kind the order is a hash of seed, instant and link (or flow): fresh at
//! each instant, so no link is favoured for a whole run, and the same for a seed whatever else happens.

use std::cmp::Ordering;

use crate::random::{key, mix, Purpose};
use crate::time::Time;

/// Kinds of events, in their order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum Kind {
    Start = 0,
    Arrival = 1,
    Timer = 2,
    Release = 3,
}

/// An event as it is ordered: instant; kind, tie and the link's or flow's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub time: Time,
    order: u64,
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Event {
    /// Return instant and order as one number: comparing it needs no branch, and which child is least is not foreseen.
    fn key(self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.order)
    }

    pub fn kind(self) -> Kind {
        match self.order >> 62 {
            0 => Kind::Start,
            1 => Kind::Arrival,
            2 => Kind::Timer,
            _ => Kind::Release,
        }
    }

    /// Return the number of the link or flow that the event is about.
    pub fn subject(self) -> u32 {
        self.order as u32
    }
}

#[derive(Clone, Debug)]
pub struct Events {
    heap: Vec<Event>,
    ties: u64,
}

const ARITY: usize = 4;

/// Return the first of some events and its place among them; None: there are none.
fn least(events: &[Event]) -> Option<(usize, Event)> {
    let earlier = |a: (usize, Event), b: (usize, Event)| if b.1.key() < a.1.key() { b } else { a };
    match *events {
        [] => None,
        [a, b, c, d] => Some(earlier(earlier((0, a), (1, b)), earlier((2, c), (3, d)))),
        _ => events.iter().copied().enumerate().reduce(earlier),
    }
}

impl Events {
    pub fn new(seed: u64) -> Events {
        Events { heap: Vec::new(), ties: key(seed, Purpose::Ties) }
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub fn first(&self) -> Option<Event> {
        self.heap.first().copied()
    }

    /// Return some of those that may come after the first, the next among them.
    pub fn following(&self) -> &[Event] {
        self.heap.get(1..self.heap.len().min(1 + ARITY)).unwrap_or_default()
    }

    pub fn push(&mut self, time: Time, kind: Kind, subject: u32) {
        let event = self.event(time, kind, subject);
        self.heap.push(event);
        self.rise(self.heap.len() - 1, event);
    }

    /// Remove the first event.
    pub fn pop(&mut self) {
        if let Some(last) = self.heap.pop() {
            if !self.heap.is_empty() {
                self.sink(last);
            }
        }
    }

    /// Replace the first event by one of the same subject.
    pub fn replace(&mut self, time: Time, kind: Kind, subject: u32) {
        let event = self.event(time, kind, subject);
        self.sink(event);
    }

    fn event(&self, time: Time, kind: Kind, subject: u32) -> Event {
        let tie = mix(self.ties ^ time ^ u64::from(subject).rotate_left(40)) >> 34;
        Event { time, order: (kind as u64) << 62 | tie << 32 | u64::from(subject) }
    }

    fn rise(&mut self, mut place: usize, event: Event) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = event;
    }

    fn sink(&mut self, event: Event) {
        let (mut place, heap) = (0, &mut self.heap[..]);
        loop {
            let first = place * ARITY + 1;
            let Some(children) = heap.get(first..heap.len().min(first + ARITY)) else { break };
            let Some((offset, least)) = least(children) else { break };
            if event <= least {
                break;
            }
            heap[place] = least;
            place = first + offset;
        }
        heap[place] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn events_come_in_order_of_time_and_kind() {
        let (mut events, mut random) = (Events::new(3), Stream::new(5, Purpose::Paths));
        let kinds = [Kind::Start, Kind::Arrival, Kind::Timer, Kind::Release];
        let mut left: Vec<Event> = Vec::new();
        for round in 0..5000 {
            let kind = kinds[random.below(4) as usize];
            events.push(u64::from(random.below(500)), kind, round);
            left.push(events.event(0, kind, round));
            if round % 3 == 0 {
                let first = events.first().unwrap();
                assert!(events.heap.iter().all(|event| first <= *event));
                if round % 2 == 0 {
                    events.pop();
                } else {
                    events.replace(first.time + 7, first.kind(), first.subject());
                }
            }
        }
        let mut last = (0, Kind::Start);
        while let Some(event) = events.first() {
            assert!(last <= (event.time, event.kind()));
            last = (event.time, event.kind());
            events.pop();
        }
    }

    #[test]
    fn what_comes_next_is_among_those_that_follow_the_first() {
        let (mut events, mut random) = (Events::new(3), Stream::new(5, Purpose::Paths));
        assert!(events.following().is_empty());
        (0..2000).for_each(|subject| events.push(u64::from(random.below(500)), Kind::Arrival, subject));
        for left in (0..2000).rev() {
            let following = events.following().to_vec();
            assert_eq!(following.len(), left.min(ARITY));
            events.pop();
            assert_eq!(following.iter().min().copied(), events.first());
        }
    }

    #[test]
    fn a_key_has_16_bytes() {
        assert_eq!(std::mem::size_of::<Event>(), 16);
    }

    #[test]
    fn no_subject_wins_every_tie() {
        let mut first = [0; 3];
        for time in 0..3000 {
            let mut events = Events::new(11);
            (0..3).for_each(|subject| events.push(time, Kind::Arrival, subject));
            first[events.first().unwrap().subject() as usize] += 1;
        }
        assert!(first.iter().all(|wins| (900..1100).contains(wins)), "{first:?}");
    }
}
