//! What TR knows of one path: how long a packet waits there, at least and as expected.

use std::collections::VecDeque;

use crate::time::Seconds;

/// A packet of ours that left.
#[derive(Clone, Copy, Debug)]
struct Own {
    left: Seconds,
    /// Its time on the slowest link.
    takes: Seconds,
    /// For how long it was expected to wait, its own time included.
    expected: Seconds,
}

/// How old what is known may be.
#[derive(Clone, Copy, Debug)]
pub struct Ages {
    /// How long reports take to come.
    pub lag: Seconds,
    /// Longer nothing waits; a packet that is overdue by more is lost.
    pub full: Seconds,
    /// How long what others said is believed.
    pub shared: Seconds,
}

/// A path to one leaf.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// Delay of the newest packet reported, without `idle`, and when that packet left.
    delay: Seconds,
    sent: Seconds,
    /// By how much packets of ours were later than expected, in the mean; those that were not count as 0.
    mean_error: Seconds,
    /// Packets that left after it.
    own: VecDeque<Own>,
    /// What a packet that left at `at` had to wait for, those that left before counted.
    wait: Seconds,
    at: Seconds,
    /// Whether a report has come since `wait` was reckoned.
    stale: bool,
    /// Delay that other agents of our leaf have there, and when they said so.
    others: Seconds,
    said: Seconds,
    /// What a packet takes there more than on the fastest path to that leaf while both are idle.
    idle: Seconds,
}

impl Path {
    /// Sets what a packet takes more than on the fastest path to that leaf while both are idle (of Eq. 1, pd_j).
    pub fn set_idle(&mut self, idle: Seconds) {
        self.idle = idle;
    }

    /// Returns what a packet takes more than on the fastest path to that leaf while both are idle.
    pub fn idle(&self) -> Seconds {
        self.idle
    }

    /// Returns c_TNL: the least that a packet takes; a queue cannot shrink faster than time passes.
    pub fn at_least(&self, now: Seconds) -> Seconds {
        self.idle + (self.delay - (now - self.sent)).max(0.0)
    }

    /// Returns p_TNL of a packet that leaves now.
    pub fn expected(&mut self, now: Seconds) -> Seconds {
        self.idle + self.waits(now)
    }

    /// Returns for how long a packet that leaves now waits in queues.
    fn waits(&mut self, now: Seconds) -> Seconds {
        self.reckon();
        (self.wait - (now - self.at)).max(0.0)
    }

    /// Returns by how much packets of ours were later than expected, in the mean.
    pub fn mean_error(&self) -> Seconds {
        self.mean_error
    }

    /// Returns the newest delay in queues, until it is old, or for how long the oldest unreported packet is overdue.
    pub fn late(&mut self, now: Seconds, ages: Ages) -> Seconds {
        let late = if now - self.sent - self.delay <= ages.full { self.delay } else { 0.0 };
        while let Some(oldest) = self.own.front() {
            let overdue = now - oldest.left - ages.lag - self.idle;
            if overdue <= ages.full {
                return if overdue > late { overdue } else { late };
            }
            self.own.pop_front();
        }
        late
    }

    /// Returns whether `late` returns 0 until something is put or measured here: nothing is unreported, and the newest delay
    /// is none or too old.
    pub fn is_silent(&self, now: Seconds, ages: Ages) -> bool {
        self.own.is_empty() && (self.delay <= 0.0 || now - self.sent - self.delay > ages.full)
    }

    /// Returns the TNL to compare paths by: a queue that was long a moment ago is taken to be so still.
    pub fn rank(&mut self, now: Seconds, ages: Ages) -> Seconds {
        self.reckon();
        let mut rank = self.wait - (now - self.at);
        if !self.own.is_empty() || self.delay > 0.0 {
            rank = rank.max(self.late(now, ages));
        }
        if self.others > rank && now - self.said <= ages.shared {
            return self.idle + self.others;
        }
        self.idle + rank.max(0.0)
    }

    /// Computes the wait by Lindley's recursion, from the newest delay over what we have sent since.
    fn reckon(&mut self) {
        if !self.stale {
            return;
        }
        let (mut wait, mut time) = (self.delay, self.sent);
        for own in &self.own {
            let since = own.left - time;
            wait = if wait > since { wait - since + own.takes } else { own.takes };
            time = own.left;
        }
        (self.wait, self.at, self.stale) = (wait, time, false);
    }

    /// Notes that packets of ours, which take so long on the slowest link, leave for it.
    pub fn put(&mut self, takes: Seconds, now: Seconds) {
        self.wait = self.waits(now) + takes;
        self.at = now;
        self.own.push_back(Own { left: now, takes, expected: self.wait });
    }

    /// Notes that a packet that left at `sent` had this delay. Returns by how much it was later than expected, 0 if it was
    /// not; None: that is not known.
    pub fn measured(&mut self, delay: Seconds, sent: Seconds) -> Option<Seconds> {
        if sent < self.sent {
            return None;
        }
        let mut error = None;
        (self.delay, self.sent, self.stale) = (delay, sent, true);
        while let Some(&oldest) = self.own.front().filter(|oldest| oldest.left <= sent) {
            if oldest.left == sent {
                let later = (delay - oldest.expected).max(0.0);
                self.mean_error += (later - self.mean_error) / 8.0;
                error = Some(later);
            }
            self.own.pop_front();
        }
        error
    }

    /// Sets how long other agents of our leaf wait there.
    pub fn set_others(&mut self, delay: Seconds, now: Seconds) {
        (self.others, self.said) = (delay, now);
    }

    /// Notes that other agents of our leaf say nothing of it.
    pub fn clear_others(&mut self) {
        self.others = 0.0;
    }
}
