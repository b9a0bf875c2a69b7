//! What a host's TCP does and does not do.

use super::control::Control;
use crate::time::Time;
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub control: Control,
    /// Packets.
    pub initial_window: u32,
    pub largest_window: u32,
    pub initial_timeout: Time,
    pub least_timeout: Time,
    pub largest_timeout: Time,
    /// Whether the least time-out is one of what is added for variation, and the first missing packet's retransmission restarts
    /// the timer (Linux: tcp_rtt_estimator, tcp_xmit_retransmit_queue).
    pub kernel_timeouts: bool,
    /// What timestamps count in: late data that is more than a tick older than the last in order is discarded (RFC 7323, PAWS), as
    /// Linux does within a millisecond. 0: timestamps are exact, and nothing is discarded.
    pub timestamp_tick: Time,
    /// Packets beyond one that is missing from which it counts as lost.
    pub duplicates: u32,
    /// Whether acknowledgements say what has arrived beyond what is missing.
    pub sack: bool,
    /// Whether losses are found by time (RACK, RFC 8985), forgiving reordering; needs `sack`.
    pub rack: bool,
    /// Quarters of the least round trip for which RACK waits for what is late, at first.
    pub reorder_quarters: u32,
    /// How much later than due RACK's timer is.
    pub reorder_slack: Time,
    /// Whether packets may be marked instead of dropped.
    pub marks: bool,
    /// Packets in order that an acknowledgement waits for, and for how long.
    pub delayed_packets: u32,
    pub delayed_time: Time,
    /// Whether a packet goes to and fro before any data.
    pub opening: bool,
    /// Whether reductions for what was only late are undone, and duplicates make RACK more patient (RFC 8985, 6.2.4).
    pub undo: bool,
    /// Whether a window grows by all that has arrived, where reordering is known in whatever order (Linux: tcp_cong_control), in
    /// place of two packets an acknowledgement at most (RFC 3465).
    pub count_delivered: bool,
    /// Whether growing round trips, and long trains of acknowledgements, end slow start.
    pub hystart: bool,
    /// Whether recoveries reduce the window in proportion to what arrives.
    pub prr: bool,
    /// Acknowledgements and a connection's beginning may be marked, too. Marks of these are not echoed.
    pub mark_acknowledgements: bool,
}

impl Settings {
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error(text.to_string()));
        if self.initial_window == 0
            || self.largest_window == 0
            || self.duplicates == 0
            || self.delayed_packets == 0
            || self.reorder_quarters == 0
        {
            return wrong("windows, duplicates, delayed packets and reordering's quarters are at least 1");
        }
        if self.least_timeout == 0 || self.initial_timeout == 0 || self.largest_timeout < self.least_timeout {
            return wrong("time-outs are longer than 0, the largest no shorter than the least");
        }
        if self.delayed_packets > 1 && self.delayed_time == 0 {
            return wrong("acknowledgements for several packets need a time after which they wait no longer");
        }
        if self.rack && !self.sack {
            return wrong("losses by time (RACK) need SACK");
        }
        Ok(())
    }
}
