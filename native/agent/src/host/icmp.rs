//! How many ICMP errors the host gets.

use crate::Seconds;

/// ICMP errors per second at most, and in one burst (RFC 1812, 4.3.2.8).
const ICMP_PER_S: f64 = 100.0;

/// A token bucket of ICMP errors, full at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct IcmpBucket {
    tokens: f64,
    filled: Seconds,
}

impl IcmpBucket {
    /// Returns a full bucket.
    pub(super) fn new(now: Seconds) -> IcmpBucket {
        IcmpBucket { tokens: ICMP_PER_S, filled: now }
    }

    /// Returns whether an error may be sent now, and takes its token if there is one.
    pub(super) fn take(&mut self, now: Seconds) -> bool {
        self.tokens = ICMP_PER_S.min(self.tokens + (now - self.filled) * ICMP_PER_S);
        self.filled = now;
        let may_send = self.tokens >= 1.0;
        if may_send {
            self.tokens -= 1.0;
        }
        may_send
    }
}
