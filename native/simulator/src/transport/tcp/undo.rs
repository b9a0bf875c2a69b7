//! Which reduction may still be undone: the window before it, and whether anything shows that nothing was lost.
//!
//! An original that fills the gap shows it (Eifel, RFC 3522), or a duplicate reported for each retransmission (RFC 3708).

use super::control::Limits;
use crate::time::{Time, NEVER};
use crate::transport::timestamps::Timestamps;

#[derive(Clone, Debug, PartialEq)]
pub struct Undo {
    /// The window before the last reduction for losses, until that is undone.
    before: Option<Limits>,
    /// When anything was first retransmitted since, or before it, if retransmissions were in flight then.
    again_at: Time,
    /// Retransmissions for which no duplicate was reported; None: nothing was retransmitted.
    unreported: Option<u32>,
    /// The first packet that was not acknowledged at the reduction: duplicates of earlier ones are of earlier recoveries.
    first: u32,
}

impl Default for Undo {
    fn default() -> Undo {
        Undo { before: None, again_at: NEVER, unreported: None, first: 0 }
    }
}

impl Undo {
    /// Remember the window that is about to be reduced, and that so many retransmissions are in flight of the packets from
    /// `first` on; `settled`: none is, nor was the first missing packet ever retransmitted, so what fills a gap from here
    /// on is no earlier retransmission. (Linux: tcp_init_undo, tcp_any_retrans_done.)
    pub fn remember(&mut self, window: Limits, first: u32, retransmitted: u32, settled: bool) {
        *self = Undo {
            before: Some(window),
            again_at: if settled { NEVER } else { self.again_at },
            unreported: (retransmitted > 0).then_some(retransmitted),
            first,
        };
    }

    /// Take that packets are marked: the last reduction is due, whatever else shows that nothing was lost. A recovery ends as
    /// before, but restores no window. (Linux: tcp_fastretrans_alert and tcp_enter_recovery clear prior_ssthresh.)
    pub fn refuse(&mut self) {
        self.before = self.before.map(|_| Limits::NONE);
    }

    pub fn retransmitted(&mut self, now: Time) {
        self.again_at = self.again_at.min(now);
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// Notes that `number` arrived twice: by the last recovery, if it was not acknowledged before but is now. `missing`: the
    /// first that was not acknowledged before the report. (Linux: tcp_check_dsack.)
    pub fn duplicate_reported(&mut self, number: u32, missing: u32) {
        if number < self.first || number >= missing {
            return;
        }
        self.unreported = self.unreported.map(|number| number.saturating_sub(1));
    }

    /// Return whether every retransmission was reported as a duplicate.
    pub fn all_reported(&self) -> bool {
        self.unreported == Some(0)
    }

    /// Return whether what was sent at `stamp` is an original that arrived after its retransmission was sent.
    pub fn is_original(&self, stamp: Time, timestamps: Timestamps) -> bool {
        self.again_at != NEVER && timestamps.before(stamp, self.again_at)
    }

    /// Return the window before the reduction, once; None: there is nothing to undo.
    pub fn take(&mut self) -> Option<Limits> {
        let before = self.before.take()?;
        self.unreported = None;
        Some(before)
    }
}
