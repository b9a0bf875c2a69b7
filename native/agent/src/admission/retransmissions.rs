//! What TCP on this host sends again, and why, as its agent sees it.
//!
//! A retransmission *episode* begins with the first byte of payload that leaves a second time and ends when all is
//! acknowledged that had left until then (the recovery point of RFC 6675). The trigger is what the agent has seen by its
//! first byte: selective acknowledgements above it, or three duplicate ones (RFC 5681), also if they were a moment ago, for
//! the host learns what fills the gap later than its agent; else a time-out where it is the oldest byte in flight and
//! nothing was acknowledged for that long; else a tail loss probe (RFC 8985, 7); unless it and its acknowledgement have
//! crossed in the host. Whether the receiver had those bytes already it says by D-SACK (RFC 2883), up to `SETTLE_S` after
//! they left.

use std::collections::VecDeque;
use std::mem;

use datapath::inner::FlowKey;

use super::episode::{Episode, FlowState, Trigger};
use super::lateness::Lateness;
use super::segment::{Segment, ACK, FIN, RST, SYN};
use crate::flow_table::IDLE_S;
use crate::in_order::InOrder;
use crate::serial::serial_difference;
use crate::Seconds;

/// How long after its last byte an episode may be judged.
pub const SETTLE_S: Seconds = 1.0;
const MAX_CONNECTIONS: usize = 65536;
/// Linux's least retransmission time-out.
const LEAST_TIMEOUT_S: Seconds = 0.2;
const MOST_RANGES: usize = 256;
const DUPLICATES: u32 = 3;

/// Sequence numbers from `begin` up to, and without, `end`.
#[derive(Clone, Copy, Debug)]
struct Range {
    begin: u32,
    end: u32,
}

impl Range {
    /// Returns how many numbers two ranges share.
    fn common(self, other: Range) -> u64 {
        let begin = if serial_difference(self.begin, other.begin) > 0 { self.begin } else { other.begin };
        let end = if serial_difference(other.end, self.end) > 0 { self.end } else { other.end };
        serial_difference(end, begin).max(0) as u64
    }

    /// Appends what of this range is outside of another one that it has numbers in common with.
    fn outside(self, other: Range, rest: &mut Vec<Range>) {
        if serial_difference(other.begin, self.begin) > 0 {
            rest.push(Range { begin: self.begin, end: other.begin });
        }
        if serial_difference(self.end, other.end) > 0 {
            rest.push(Range { begin: other.end, end: self.end });
        }
    }
}

#[derive(Clone, Debug)]
struct Unjudged {
    episode: Episode,
    /// Sequence number behind all that had left.
    recover: u32,
    ranges: Vec<Range>,
}

#[derive(Clone, Debug)]
struct Connection {
    highest: u32,
    acked: u32,
    /// When something new was acknowledged last, or the oldest byte in flight left.
    since: Seconds,
    last: Seconds,
    /// It was open before we saw it: what it skips may have left by then.
    preexisting: bool,
    /// Right end of the highest bytes that were acknowledged out of order.
    sacked: Option<u32>,
    duplicates: u32,
    /// When the receiver reported a gap last.
    gap_at: Seconds,
    window: Option<u16>,
    /// Ranges that were skipped: they have not reached the agent.
    unseen: Vec<Range>,
    /// Episodes that may still turn out needless, the oldest first.
    unjudged: VecDeque<Unjudged>,
    /// The newest of them goes on.
    ongoing: bool,
}

impl Connection {
    fn new(start: u32, preexisting: bool, now: Seconds) -> Connection {
        Connection {
            highest: start,
            acked: start,
            since: now,
            last: now,
            preexisting,
            sacked: None,
            duplicates: 0,
            gap_at: f64::NEG_INFINITY,
            window: None,
            unseen: Vec::new(),
            unjudged: VecDeque::new(),
            ongoing: false,
        }
    }

    fn trigger(&self, again: Range, now: Seconds) -> Trigger {
        if serial_difference(again.end, self.acked) <= 0 {
            return Trigger::Crossed;
        }
        if self.sacked.is_some_and(|sacked| serial_difference(sacked, again.begin) > 0) {
            return Trigger::Gap;
        }
        let quiet = now - self.since;
        if self.duplicates >= DUPLICATES || quiet.max(now - self.gap_at) < LEAST_TIMEOUT_S {
            return Trigger::Gap;
        }
        if again.begin == self.acked && quiet >= 0.9 * LEAST_TIMEOUT_S {
            Trigger::TimeOut
        } else {
            Trigger::Probe
        }
    }

    /// Notes that a range leaves again. `begin`: an episode in which nothing has been counted, but for its trigger.
    fn again(&mut self, again: Range, begin: impl FnOnce() -> Episode, now: Seconds) {
        let trigger = self.trigger(again, now);
        let ongoing = self.unjudged.back().filter(|_| self.ongoing);
        let timed_out = ongoing.is_some_and(|ongoing| {
            let quiet = now - ongoing.episode.last.max(self.since);
            trigger == Trigger::TimeOut
                && ongoing.episode.trigger != Trigger::TimeOut
                && quiet >= LEAST_TIMEOUT_S
        });
        if ongoing.is_none() || timed_out {
            let in_flight = serial_difference(self.highest, self.acked).max(0);
            let episode = Episode {
                trigger,
                quiet_s: (now - self.since).max(0.0),
                in_flight_bytes: in_flight as u32,
                ..begin()
            };
            self.unjudged.push_back(Unjudged { episode, recover: self.highest, ranges: Vec::new() });
            self.ongoing = true;
        }
        let Some(Unjudged { episode, recover, ranges }) = self.unjudged.back_mut() else { return };
        (episode.last, *recover) = (now, self.highest);
        episode.bytes += serial_difference(again.end, again.begin) as u64;
        let mut unseen = Vec::new();
        for &range in &self.unseen {
            match range.common(again) {
                0 => unseen.push(range),
                common => {
                    episode.queue_bytes += common;
                    range.outside(again, &mut unseen);
                }
            }
        }
        self.unseen = unseen;
        if ranges.len() < MOST_RANGES {
            ranges.push(again);
        }
    }

    /// Processes selective acknowledgements.
    fn selective(&mut self, segment: &Segment, now: Seconds) {
        let mut blocks = segment.sack.blocks().iter().map(|&(begin, end)| Range { begin, end }).peekable();
        let Some(&first) = blocks.peek() else { return };
        let second = segment.sack.blocks().get(1).map(|&(begin, end)| Range { begin, end });
        let length = i64::from(serial_difference(first.end, first.begin));
        let inside = second.is_some_and(|second| first.common(second) as i64 == length);
        if serial_difference(first.end, segment.ack) <= 0 || inside {
            for Unjudged { episode, ranges, .. } in &mut self.unjudged {
                let doubled: u64 = ranges.iter().map(|range| first.common(*range)).sum();
                let room = episode.bytes.saturating_sub(episode.queue_bytes + episode.needless_bytes);
                episode.needless_bytes += doubled.min(room);
            }
            blocks.next();
        }
        if blocks.peek().is_some() {
            self.gap_at = now;
        }
        for Range { end, .. } in blocks {
            let further = self.sacked.is_none_or(|sacked| serial_difference(end, sacked) > 0);
            if serial_difference(end, segment.ack) > 0 && further {
                self.sacked = Some(end);
            }
        }
    }

    fn acknowledged(&mut self, segment: &Segment, now: Seconds) {
        let ack = segment.ack;
        let ahead = serial_difference(ack, self.acked);
        if ahead > 0 {
            (self.acked, self.since, self.duplicates) = (ack, now, 0);
            if serial_difference(ack, self.highest) > 0 {
                self.highest = ack;
            }
            self.sacked = self.sacked.filter(|&sacked| serial_difference(ack, sacked) < 0);
            self.unseen.retain(|range| serial_difference(range.end, ack) > 0);
            let recover = self.unjudged.back().map(|newest| newest.recover);
            self.ongoing &= recover.is_some_and(|recover| serial_difference(ack, recover) < 0);
        } else if ahead == 0
            && segment.payload == 0
            && !segment.has(SYN | FIN)
            && self.window == Some(segment.window)
        {
            self.duplicates += u32::from(self.highest != ack);
            if self.duplicates >= DUPLICATES {
                self.gap_at = now;
            }
        }
        self.window = Some(segment.window);
        self.selective(segment, now);
    }
}

/// All TCP connections of a host.
#[derive(Clone, Debug, Default)]
pub struct Retransmissions {
    connections: InOrder<Connection>,
    /// Those with an episode that is not judged yet.
    open: InOrder<()>,
    over: Vec<Episode>,
    lateness: Lateness,
}

impl Retransmissions {
    /// Notes that the agent's loop woke so much later than it wanted.
    pub fn late(&mut self, late_s: Seconds, now: Seconds) {
        self.lateness.add(late_s, now);
    }

    /// Returns true if this flow has sent something, and goes on.
    pub fn knows(&self, flow: &FlowKey) -> bool {
        self.connections.contains(flow)
    }

    /// Processes a segment, or a super-packet of several, that the host has sent. Returns the bytes that left again.
    pub fn sent(&mut self, flow: FlowKey, segment: &Segment, state: FlowState, now: Seconds) -> u64 {
        let start = segment.sequence;
        if segment.has(SYN) {
            self.end(&flow);
            self.begin(flow, Connection::new(start.wrapping_add(1), false, now));
            return 0;
        }
        if segment.payload == 0 {
            if segment.has(RST) {
                self.end(&flow);
            }
            return 0;
        }
        if !self.connections.contains(&flow) {
            self.begin(flow, Connection::new(start, true, now));
        }
        let Some(connection) = self.connections.get_mut(&flow) else { return 0 };
        connection.last = now;
        if connection.highest == connection.acked {
            connection.since = now;
        }
        let (end, highest) = (start.wrapping_add(segment.payload), connection.highest);
        if serial_difference(start, highest) > 0 && !connection.preexisting {
            connection.unseen.push(Range { begin: highest, end: start });
            let surplus = connection.unseen.len().saturating_sub(MOST_RANGES);
            connection.unseen.drain(..surplus);
        }
        let again =
            Range { begin: start, end: if serial_difference(end, highest) > 0 { highest } else { end } };
        let repeated = serial_difference(again.end, start).max(0);
        if repeated > 0 {
            let begin = || Episode {
                flow,
                state,
                trigger: Trigger::Gap,
                begun: now,
                last: 0.0,
                quiet_s: 0.0,
                late_s: self.lateness.most(now),
                in_flight_bytes: 0,
                bytes: 0,
                needless_bytes: 0,
                queue_bytes: 0,
            };
            connection.again(again, begin, now);
            if !self.open.contains(&flow) {
                self.open.put(flow, ());
            }
        }
        if serial_difference(end, highest) > 0 {
            connection.highest = end;
        }
        repeated as u64
    }

    /// Processes a segment of the peer of a flow of this host.
    pub fn arrived(&mut self, flow: &FlowKey, segment: &Segment, now: Seconds) {
        let Some(connection) = self.connections.get_mut(flow).filter(|_| segment.has(ACK)) else { return };
        if segment.has(RST) {
            self.end(flow);
        } else {
            connection.acknowledged(segment, now);
        }
    }

    /// Ends what nothing will change any more, and forgets connections that have been idle for long.
    pub fn settle(&mut self, now: Seconds) {
        self.judge(now);
        for flow in self.connections.keys_where(|connection| now - connection.last > IDLE_S) {
            self.end(&flow);
        }
    }

    /// Drops the episodes that nothing will change any more, where nothing takes them. All connections stay known.
    pub fn drop_episodes(&mut self, now: Seconds) {
        self.judge(now);
        self.over.clear();
    }

    /// Ends all connections, and with them their episodes: what they sent meanwhile was not seen.
    pub fn end_all(&mut self) {
        self.connections.keys_where(|_| true).iter().for_each(|flow| self.end(flow));
    }

    /// Returns the episodes that are over; each is given once.
    pub fn take_episodes(&mut self) -> Vec<Episode> {
        mem::take(&mut self.over)
    }

    /// Ends the episodes that nothing will change any more.
    fn judge(&mut self, now: Seconds) {
        for flow in self.open.keys_where(|()| true) {
            let Some(connection) = self.connections.get_mut(&flow) else { continue };
            while connection.unjudged.front().is_some_and(|oldest| now - oldest.episode.last >= SETTLE_S) {
                self.over.extend(connection.unjudged.pop_front().map(|oldest| oldest.episode));
            }
            if connection.unjudged.is_empty() {
                connection.ongoing = false;
                self.open.remove(&flow);
            }
        }
    }

    fn begin(&mut self, flow: FlowKey, connection: Connection) {
        if self.connections.len() >= MAX_CONNECTIONS {
            self.connections.oldest().into_iter().for_each(|oldest| self.end(&oldest));
        }
        self.connections.put(flow, connection);
    }

    fn end(&mut self, flow: &FlowKey) {
        let unjudged = self.connections.remove(flow).map(|connection| connection.unjudged);
        self.over.extend(unjudged.into_iter().flatten().map(|unjudged| unjudged.episode));
        self.open.remove(flow);
    }
}
