//! When an agent has something to do without a packet.

use crate::host::core::{Core, SWEEP_S};
use crate::Seconds;

/// How long feedback may wait that no decision depends on, but for counters that are read each second.
const UNUSED_FEEDBACK_S: Seconds = 0.1;

impl Core {
    /// Runs what is due: to be called when `timer` has come, harmless at any other time.
    pub fn handle_timer(&mut self, now: Seconds) {
        self.now = now;
        self.gate.handle_timer(now);
        self.sender.handle_timer(&mut self.peers, now);
        self.receiver.handle_timer(&mut self.sender, &mut self.peers, now);
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_S;
            self.gate.sweep(now);
            self.sender.sweep(|flow| self.gate.holds(flow), now);
            self.receiver.sweep(&mut self.peers, now);
        }
    }

    /// Returns when `handle_timer` has something to do.
    pub fn timer(&self) -> Seconds {
        self.due(0.0)
    }

    /// Returns when `handle_timer` has something to do that cannot wait. Feedback that is due by `timer` can wait as long
    /// again for datagrams to leave with: one that leaves alone wakes two agents up. What no decision depends on can wait
    /// longer.
    pub fn latest_timer(&self) -> Seconds {
        self.due(self.patience_s())
    }

    /// Returns when `handle_timer` has something to do that is worth a datagram beside others that leave.
    pub fn riding_timer(&self) -> Seconds {
        self.due(self.patience_s() - self.receiver.feedback_after_s())
    }

    /// Returns how long feedback that is due can wait. All agents have one policy: peers read our feedback if we read
    /// theirs.
    fn patience_s(&self) -> Seconds {
        let after_s = self.receiver.feedback_after_s();
        if self.sender.uses_feedback() {
            after_s
        } else {
            after_s.max(UNUSED_FEEDBACK_S)
        }
    }

    fn due(&self, patience_s: Seconds) -> Seconds {
        let receiver = self.receiver.deadline(&self.peers, patience_s);
        let others = [self.sender.deadline(), receiver, self.gate.deadline()];
        others.into_iter().flatten().fold(self.next_sweep, f64::min)
    }
}
