//! The congestion window of a TCP flow as the agent of its sender sees it: what fills a unit of HTPC and Corrective.
//!
//! The window is inside the host's kernel. What shows outside is the data in flight: the highest sequence number that
//! was sent, less the highest acknowledgement that came back. A sender that has enough to send keeps as much in flight as
//! its window allows, so the most that was in flight over the current and the last round trip is the estimate. It is too
//! small for a flow that has little to send (which then has no more to code either), and too large while losses are
//! repaired (what was acknowledged selectively still counts as in flight).

use crate::serial::serial_difference;

/// Packets, before the first round trip is over (RFC 6928).
pub const INITIAL_WINDOW: u32 = 10;

/// What was seen of a flow since its first segment.
#[derive(Clone, Debug)]
struct Seen {
    /// Behind the highest byte sent.
    next: u32,
    acked: u32,
    /// The round trip is over when this is acknowledged.
    round: u32,
    /// Most bytes in flight in this round trip.
    most: i32,
    /// The same of the round trip before; None: there was none.
    before: Option<i32>,
    /// Bytes of the largest payload.
    largest: u32,
}

/// One TCP flow and direction. Sequence numbers are modulo 2^32.
#[derive(Clone, Debug, Default)]
pub struct WindowEstimate(Option<Seen>);

impl WindowEstimate {
    /// Notes that segments of `size` bytes each but the last, `payload` bytes in all, leave from `sequence` on, for the
    /// first time or again.
    pub fn sent(&mut self, sequence: u32, payload: u32, size: u32) {
        let end = sequence.wrapping_add(payload);
        let first = Seen { next: end, acked: sequence, round: end, most: 0, before: None, largest: 1 };
        let seen = self.0.get_or_insert(first);
        if serial_difference(end, seen.next) > 0 {
            seen.next = end;
        }
        seen.largest = seen.largest.max(size.min(payload));
        seen.most = seen.most.max(serial_difference(seen.next, seen.acked));
    }

    /// Notes that the receiver has everything before `ack`.
    pub fn acknowledged(&mut self, ack: u32) {
        let Some(seen) = &mut self.0 else { return };
        if serial_difference(ack, seen.acked) <= 0 {
            return;
        }
        // beyond what was sent is a FIN's, or of what went before we saw the flow
        let ack = if serial_difference(ack, seen.next) > 0 { seen.next } else { ack };
        seen.acked = ack;
        if serial_difference(ack, seen.round) >= 0 {
            seen.before = Some(seen.most);
            seen.most = serial_difference(seen.next, ack);
            seen.round = seen.next;
        }
    }

    /// Returns the window in packets of the flow's largest payload, at least 1.
    pub fn packets(&self) -> u32 {
        let Some(seen) = &self.0 else { return INITIAL_WINDOW };
        let packets = |bytes: i32| (bytes.max(0) as u32).div_ceil(seen.largest);
        match seen.before {
            None => packets(seen.most).max(INITIAL_WINDOW),
            Some(before) => packets(seen.most.max(before)).max(1),
        }
    }
}
