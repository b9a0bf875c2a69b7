//! What is found lost, the recoveries that this begins, and how they end or are undone.

use super::{Answer, State, Tcp};
use crate::time::Time;
use crate::transport::timestamps::Timestamps;

impl Tcp {
    /// Return whether anything is lost that began no recovery: an undo for duplicates leaves it so, and a recovery may end with
    /// losses behind it. Linux looks at all that is lost, not at what is new alone (tcp_time_to_recover).
    pub(super) fn leaves_lost(&self) -> bool {
        self.settings.sack && self.board.lost() > 0
    }

    /// Take in if a duplicate is reported, which SACK does (RFC 2883); `missing`: the first packet that was not acknowledged
    /// before.
    pub(super) fn take_report(&mut self, answer: &Answer, missing: u32) {
        let Some(number) = answer.repeated.filter(|_| self.settings.sack) else { return };
        self.undo.duplicate_reported(number, missing);
        // Where nothing is reordered, it was sent again for another reason than RACK's haste (Linux: tcp_dsack_seen).
        if self.settings.undo && self.board.reordered() {
            self.patience.duplicate_reported();
        }
    }

    /// Take in a mark, which makes reductions due.
    pub(super) fn refuse_undo(&mut self, answer: &Answer) {
        if self.settings.marks && answer.marked {
            self.undo.refuse();
        }
    }

    /// Undo the last reduction once it shows that nothing was lost: an original has filled the gap and no retransmission is
    /// in flight, or each was reported as a duplicate. Return true if retransmissions in flight put it off: meanwhile nothing
    /// more is found lost or retransmitted, and what is new goes out. (Linux: tcp_try_undo_partial, tcp_try_undo_recovery, tcp_try_undo_dsack.)
    pub(super) fn take_late(&mut self, answer: &Answer, advanced: u32) -> bool {
        let late = self.state != State::Open
            && advanced > 0
            && self.undo.is_original(answer.stamp, self.timestamps());
        let recovering = self.state == State::Recovery;
        let complete = recovering && self.board.first() >= self.recover;
        if late && recovering && !complete {
            self.board.see_reordering();
            if self.board.retransmitted() > 0 {
                return true;
            }
        }
        if !late && !self.undo.all_reported() {
            return false;
        }
        if let Some(before) = self.undo.take() {
            self.window.restore(before);
            self.board.look_again();
            if late && !complete {
                self.board.find_unsent();
            }
            if !late {
                self.patience.undone();
            }
            (self.state, self.recover) = (State::Open, self.board.first());
        }
        false
    }

    fn timestamps(&self) -> Timestamps {
        Timestamps { tick: self.settings.timestamp_tick }
    }

    pub(super) fn enter_recovery(&mut self) {
        if self.state == State::Open && self.board.first() >= self.recover {
            self.state = State::Recovery;
            self.recover = self.board.end();
            self.urgent = self.prr.is_none();
            self.remember_window();
            if let Some(prr) = &mut self.prr {
                prr.begin(self.window.packets());
            }
            self.window.lost();
        }
    }

    /// Remember the window before a reduction for losses; none within the round trip of a reduction for a mark (Linux: TCP_CA_CWR).
    pub(super) fn remember_window(&mut self) {
        let (first, retransmitted) = (self.board.first(), self.board.retransmitted());
        self.undo.remember(self.window.limits(), first, retransmitted, self.board.settled());
        if !self.past_reduction() {
            self.undo.refuse();
        }
    }

    /// Enter recovery where nothing has arrived that would let anything go: one packet does (Linux: tcp_rack_reo_timeout).
    pub(super) fn enter_recovery_by_itself(&mut self) {
        let (before, in_flight) = (self.state, self.board.in_flight());
        self.enter_recovery();
        if before != self.state {
            self.spread_reduction(1, in_flight, false);
        }
    }

    pub(super) fn spread_reduction(&mut self, delivered: u32, in_flight: u32, clean: bool) {
        if let Some(prr) = &mut self.prr {
            prr.delivered(delivered, in_flight, self.window.packets(), clean);
        }
    }

    pub(super) fn leave_recovery(&mut self, advanced: u32) {
        if self.state == State::Open || advanced == 0 {
            return;
        }
        if self.board.first() >= self.recover {
            self.state = State::Open;
            self.patience.recovered();
            self.board.forget_duplicates();
        } else if self.state == State::Recovery && !self.settings.sack {
            self.urgent = self.board.lose_first(); // a partial acknowledgement (RFC 6582)
        }
    }

    /// As `find_losses`; RACK looks only if something has arrived (Linux: tcp_rack_mark_lost).
    pub(super) fn find_losses_by_answer(&mut self, now: Time) -> bool {
        (!self.settings.rack || self.board.take_advanced()) && self.find_losses(now)
    }

    /// Mark what is lost by now; return whether anything new is.
    pub(super) fn find_losses(&mut self, now: Time) -> bool {
        let (of, board) = (&self.settings, &mut self.board);
        if of.rack {
            let forgiving =
                board.reordered() || (self.state == State::Open && board.beyond() < of.duplicates);
            let patience = self.patience.window(self.round_trip.least());
            let window = if forgiving { patience.min(self.round_trip.smoothed()) } else { 0 };
            let (lost, last) = board.lose_late(now, board.round_trip() + window);
            // One timer for all, of the longest wait (RFC 8985, Section 6.2, step 5): answers find the others.
            self.reorder_at = last.saturating_add(of.reorder_slack);
            return lost;
        }
        if of.sack {
            return board.lose_overtaken(of.duplicates);
        }
        self.state == State::Open
            && board.beyond() >= of.duplicates
            && board.first() >= self.recover
            && board.lose_first()
    }
}
