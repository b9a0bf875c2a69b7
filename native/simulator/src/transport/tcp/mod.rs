//! TCP's sending end, in packets: windows by `control`, losses by `board`, time-outs by `round_trip`.
//!
//! What may be in flight is the window; what is in flight is counted (RFC 6675's pipe), with SACK by what is known of each
//! packet, without it by duplicate acknowledgements. The handshake is before it (`opening`). There is no tail loss probe.
//! Without proportional rate reduction a window that is reduced stops sending until as much has left the network.

mod board;
mod control;
mod cubic;
mod dctcp;
mod hystart;
mod patience;
mod prr;
mod recovery;
mod round_trip;
mod settings;
mod undo;

use super::{Answer, Segment};
use crate::time::{Time, NEVER};
use board::Board;
use control::Window;
use hystart::HyStart;
use patience::Patience;
use prr::Prr;
use round_trip::{Bounds, RoundTrip};
use undo::Undo;

pub use control::Control;
pub use settings::Settings;

/// Where the sender stands after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// What was lost is retransmitted, within the reduced window.
    Recovery,
    /// After a time-out: everything that is not acknowledged counts as lost, and the window grows from 1.
    TimedOut,
}

#[derive(Clone, Debug)]
pub struct Tcp {
    settings: Settings,
    packets: u32,
    board: Board,
    window: Window,
    round_trip: RoundTrip,
    state: State,
    /// Packets before this one were sent when the last loss, or the last mark, was answered.
    recover: u32,
    reduced: u32,
    timeout_at: Time,
    reorder_at: Time,
    timeouts: u32,
    beyond: u32,
    hystart: HyStart,
    /// None: recoveries stop sending until enough has left the network.
    prr: Option<Prr>,
    undo: Undo,
    patience: Patience,
    /// A lost packet that goes again at once, however many are in flight (RFC 6675, Section 5, step 4.3).
    urgent: bool,
    /// A reduction may prove undue: nothing is retransmitted until the next answer or expiry.
    held: bool,
    /// Packets from this one on are beyond the window that was advertised.
    limit: u32,
}

impl Tcp {
    pub fn new(settings: Settings, packets: u32) -> Tcp {
        Tcp {
            settings,
            packets,
            board: Board::default(),
            window: Window::new(settings.control, settings.initial_window),
            round_trip: RoundTrip::new(Bounds {
                initial: settings.initial_timeout,
                least: settings.least_timeout,
                largest: settings.largest_timeout,
                of_variation: settings.kernel_timeouts,
            }),
            state: State::Open,
            recover: 0,
            reduced: 0,
            timeout_at: NEVER,
            reorder_at: NEVER,
            timeouts: 0,
            beyond: 0,
            hystart: HyStart::default(),
            prr: settings.prr.then(Prr::default),
            undo: Undo::default(),
            patience: Patience::new(settings.reorder_quarters),
            urgent: false,
            held: false,
            limit: u32::MAX,
        }
    }

    /// Send nothing new from this packet on, until another limit comes: the window that was advertised ends there.
    pub fn set_limit(&mut self, packet: u32) {
        self.limit = packet;
    }

    pub fn answered(&mut self, now: Time, answer: &Answer) {
        let Some(advanced) = answer.missing.checked_sub(self.board.first()) else {
            return self.overtaken(now, answer);
        };
        self.beyond = answer.beyond;
        let missing = self.board.first();
        let delivered = self.board.delivered();
        self.board.begin_answer(now, answer.stamp, self.round_trip.least());
        if self.settings.sack {
            answer.blocks.iter().for_each(|block| self.board.sack(*block));
        } else if advanced == 0 {
            self.board.duplicate();
        }
        if advanced > 0 {
            self.board.advance(answer.missing);
            self.round_trip.measured(now.saturating_sub(answer.stamp));
            self.timeout_at = if self.board.is_empty() { NEVER } else { now + self.round_trip.timeout() };
        }
        self.take_report(answer, missing);
        if let Some(sent_at) = self.board.arrived_at() {
            self.patience.delivered(now, sent_at);
        }
        self.refuse_undo(answer);
        self.held = self.settings.undo && self.take_late(answer, advanced);
        let before = self.state;
        self.leave_recovery(advanced);
        let lost = !self.held && self.find_losses_by_answer(now);
        if lost || (!self.held && self.leaves_lost()) {
            self.enter_recovery();
            self.refuse_undo(answer);
        }
        // fewer than before where duplicates are forgotten
        let delivered = self.board.delivered().saturating_sub(delivered);
        if self.state == State::Recovery && delivered > 0 {
            let in_flight = self.board.in_flight();
            self.spread_reduction(delivered, in_flight, advanced > 0 && !lost);
        }
        self.take_mark(answer, advanced);
        if self.state != State::Recovery && !lost {
            self.grow(now, before, advanced, delivered);
        }
    }

    /// Grow the window for what has arrived. `before`: where the sender stood before.
    fn grow(&mut self, now: Time, before: State, advanced: u32, delivered: u32) {
        if !self.past_reduction() {
            return;
        }
        if self.settings.count_delivered {
            if advanced > 0 || self.board.reorders_far() {
                self.window.grow_exactly(now, delivered, self.round_trip.smoothed());
            }
        } else if advanced > 0 && before != State::Recovery {
            // Appropriate byte counting (RFC 3465): one packet an answer after a time-out, else two at most.
            let most = if before == State::TimedOut { 1 } else { 2 };
            self.window.grow(now, advanced.min(most), self.round_trip.smoothed());
        }
        let unacknowledged = (self.board.first(), self.board.end());
        if advanced > 0
            && before != State::Recovery
            && self.settings.hystart
            && self.window.in_slow_start()
            && self.hystart.ends(now, self.window.packets(), unacknowledged, &self.round_trip)
        {
            self.window.end_slow_start();
        }
    }

    /// Take an answer that a later one overtook: what it says has arrived, once or twice, counts, but neither as a sign that the
    /// network carries more, nor as a measurement (Linux: old_ack in tcp_ack).
    fn overtaken(&mut self, now: Time, answer: &Answer) {
        if !self.settings.sack {
            return;
        }
        self.board.begin_answer(now, answer.stamp, self.round_trip.least());
        answer.blocks.iter().for_each(|block| self.board.sack(*block));
        self.take_report(answer, self.board.first());
        self.held = self.settings.undo && self.take_late(answer, 0);
        if self.find_losses_by_answer(now) || self.leaves_lost() {
            self.enter_recovery_by_itself();
        }
    }

    pub fn next(&mut self, now: Time) -> Option<Segment> {
        if std::mem::take(&mut self.urgent) {
            if let Some(segment) = self.send_again(now) {
                self.prr.iter_mut().for_each(Prr::sent);
                return Some(segment);
            }
        }
        let window = match &self.prr {
            Some(prr) if self.state == State::Recovery => prr.window(),
            _ => self.window.packets(),
        };
        if self.board.in_flight() >= window.min(self.settings.largest_window) {
            return None;
        }
        let segment = match self.send_again(now) {
            Some(segment) => segment,
            None if self.board.end() < self.packets.min(self.limit)
                && self.board.len() < self.settings.largest_window =>
            {
                Segment { number: self.board.send(now), again: false }
            }
            None => return None,
        };
        if self.timeout_at == NEVER {
            self.timeout_at = now + self.round_trip.timeout();
        }
        if let Some(prr) = &mut self.prr {
            prr.sent();
        }
        Some(segment)
    }

    fn send_again(&mut self, now: Time) -> Option<Segment> {
        if self.held {
            return None;
        }
        let number = self.board.send_again(now)?;
        self.undo.retransmitted(now);
        if self.settings.kernel_timeouts && number == self.board.first() {
            self.timeout_at = now + self.round_trip.timeout();
        }
        Some(Segment { number, again: true })
    }

    pub fn measured(&mut self, time: Time) {
        self.round_trip.measured(time);
    }

    pub fn round_trips(&self) -> (Time, Time) {
        (self.round_trip.smoothed(), self.round_trip.least())
    }

    pub fn deadline(&self) -> Time {
        self.timeout_at.min(self.reorder_at)
    }

    pub fn expired(&mut self, now: Time) {
        self.held = false;
        if self.reorder_at <= now && self.find_losses(now) {
            self.enter_recovery_by_itself();
        }
        if self.timeout_at > now {
            return;
        }
        self.timeouts += 1;
        if self.state == State::Open {
            self.remember_window();
        }
        // The threshold is reduced once for all time-outs of one packet (RFC 5681, equation 4).
        self.window.timed_out(self.state != State::TimedOut, self.board.in_flight());
        self.state = State::TimedOut;
        self.recover = self.board.end();
        self.board.lose_all();
        self.round_trip.back_off();
        self.reorder_at = NEVER;
        self.timeout_at = now + self.round_trip.timeout();
    }

    pub fn acknowledged(&self) -> (u32, u32) {
        (self.board.first(), self.beyond)
    }

    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Return whether the last answer is of a packet that was sent after the window was last reduced for a mark.
    fn past_reduction(&self) -> bool {
        self.reduced == 0 || self.board.first() > self.reduced
    }

    fn take_mark(&mut self, answer: &Answer, advanced: u32) {
        if !self.settings.marks {
            return;
        }
        self.window.answered(advanced, answer.marked, self.board.first(), self.board.end());
        if answer.marked && self.state == State::Open && self.past_reduction() {
            self.reduced = self.board.end();
            self.window.marked();
            self.undo.take(); // (Linux: tcp_enter_cwr clears undo_marker)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
