//! A link's sending end: what waits, what is on its way, and when the wire is free.
//!
//! **Lazy release.** That a wire becomes free is no event. Before a port is looked at, it sends what it would have sent
//! since: each waiting packet begins when the one before it has left. A decision at an instant depends only on what
//! arrived up to it, and every arrival looks at the port first. So a packet costs one event a hop, and a busy link has
//! one entry in the heap, for the packet that is next to arrive at its far end.
//!
//! **Shapers.** A token bucket in place of a wire, as Linux's HTB on a link without a rate of its own: a packet is at the
//! far end, but for the delay, as soon as it may be sent, and the next one waits for as long as it would have taken. What
//! was not sent before lets up to `burst` bytes more follow at once.

use std::collections::VecDeque;

use datapath::prefetch::prefetch;

use crate::packets::{Frame, Handle, Packets};
use crate::queue::{Admission, Buffer, Queue, Room};
use crate::time::{Rate, Time};

/// What a link has done with packets; bytes are those on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came to the port.
    pub offered: u64,
    pub dropped: u64,
    pub marked: u64,
    /// Packets that arrived at the far end.
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub longest_queue_packets: u64,
    pub longest_queue_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Port {
    queue: Queue,
    /// Packets on their way, with the time of their arrival.
    flying: VecDeque<(Time, Frame)>,
    /// When the next packet may begin to leave; of a shaper, when its bucket is no longer in debt.
    free_at: Time,
    rate: Rate,
    delay: Time,
    /// Of a shaper: what its full bucket is worth, in time at the rate.
    credit: Option<Time>,
    pub counters: Counters,
    /// Whether the heap has this link's entry.
    pub scheduled: bool,
}

/// When a port's link is to be looked at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Arrival(Time),
    /// Packets wait though none is on its way: the wire is free from then on.
    Release(Time),
    Idle,
}

impl Port {
    pub fn new(rate: Rate, delay: Time, buffer: Buffer) -> Port {
        Port {
            queue: Queue::new(buffer),
            flying: VecDeque::new(),
            free_at: 0,
            rate,
            delay,
            credit: None,
            counters: Counters::default(),
            scheduled: false,
        }
    }

    /// Give it another buffer, before anything came.
    pub fn set_buffer(&mut self, buffer: Buffer) {
        self.queue = Queue::new(buffer);
    }

    /// Make it a shaper with a bucket of so many bytes, before anything came.
    pub fn set_burst(&mut self, bytes: u32) {
        self.credit = Some(self.rate.transmission(bytes));
    }

    /// Return how many packets wait, and how many are on their way.
    pub fn held(&self) -> (usize, usize) {
        (self.queue.len(), self.flying.len())
    }

    /// Return how many bytes wait at `now`.
    pub fn waiting_bytes(&mut self, now: Time) -> u64 {
        if !self.queue.is_empty() {
            self.catch_up(now);
        }
        self.queue.bytes()
    }

    /// Take a packet that came at `now`: onto a free wire at once, else into the queue. Return what is dropped for it.
    ///
    /// room: what a buffer that it shares with other ports leaves.
    pub fn offer(&mut self, now: Time, frame: Frame, packets: &mut Packets, room: Room) -> Option<Handle> {
        self.counters.offered += 1;
        self.catch_up(now);
        if self.queue.is_empty() && self.free_at <= now {
            self.send(now, frame);
            return None;
        }
        if self.queue.marks() {
            if frame.capable {
                packets.get_mut(frame.handle).marks.congested = true;
                self.counters.marked += 1;
            } else if self.queue.drops_unmarkable() {
                self.counters.dropped += 1;
                return Some(frame.handle);
            }
        }
        let dropped = match self.queue.add(frame, packets, room) {
            Admission::Kept => None,
            Admission::Displaced(other) => Some(other),
            Admission::Refused => Some(frame.handle),
        };
        self.counters.dropped += u64::from(dropped.is_some());
        let counters = &mut self.counters;
        counters.longest_queue_packets = counters.longest_queue_packets.max(self.queue.len() as u64);
        counters.longest_queue_bytes = counters.longest_queue_bytes.max(self.queue.bytes());
        dropped
    }

    /// Remove the packet that arrives at the far end at `now`, if one does.
    pub fn arrived(&mut self, now: Time) -> Option<Frame> {
        self.catch_up(now);
        let &(_, frame) = self.flying.front().filter(|(time, _)| *time <= now)?;
        self.flying.pop_front();
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(frame.bytes);
        Some(frame)
    }

    /// Return how long a packet of so many bytes takes from when it begins to leave until it is at the far end.
    pub fn crossing(&self, bytes: u32) -> Time {
        match self.credit {
            None => self.rate.transmission(bytes) + self.delay,
            Some(_) => self.delay,
        }
    }

    /// Let the wire, free since `now`, take the next packet: everything that arrived at `now` is here.
    pub fn release(&mut self, now: Time) {
        self.catch_up(now + 1);
    }

    pub fn next(&self) -> Next {
        match self.flying.front() {
            Some(&(time, _)) => Next::Arrival(time),
            None if self.queue.is_empty() => Next::Idle,
            None => Next::Release(self.free_at),
        }
    }

    /// Return the packet that is next to arrive at the far end.
    pub fn arriving(&self) -> Option<&Frame> {
        self.flying.front().map(|(_, frame)| frame)
    }

    /// Fetch what the next packet's arrival looks at, beside the port itself.
    pub fn prefetch_ends(&self) {
        self.flying.front().map(prefetch);
        self.flying.back().map(prefetch);
        self.queue.prefetch_first();
    }

    /// Send what began to leave before `now`; what arrives at an instant comes before what leaves at it.
    fn catch_up(&mut self, now: Time) {
        while self.free_at < now {
            let Some(frame) = self.queue.take() else { break };
            self.send(self.free_at, frame);
        }
    }

    fn send(&mut self, begin: Time, frame: Frame) {
        // of a shaper, the bucket fills from when it was no longer in debt on, and no further than to its credit
        let paid = self.credit.map_or(begin, |credit| self.free_at.max(begin.saturating_sub(credit)));
        self.free_at = paid + self.rate.transmission(frame.bytes);
        self.flying.push_back((begin + self.crossing(frame.bytes), frame));
    }
}
