//! Congestion windows: slow start and its end are common, growth and reductions are each control's.

use super::cubic::Cubic;
use super::dctcp::Dctcp;
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    NewReno,
    Cubic,
    Dctcp,
}

#[derive(Clone, Debug)]
enum Rule {
    NewReno,
    Cubic(Cubic),
    Dctcp(Dctcp),
}

/// A window never falls below so many packets but after a time-out.
const LEAST: f64 = 2.0;

/// What a reduction takes away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    size: f64,
    threshold: f64,
}

impl Limits {
    /// Less than any window has: restoring it changes none.
    pub const NONE: Limits = Limits { size: 0.0, threshold: 0.0 };
}

#[derive(Clone, Debug)]
pub struct Window {
    rule: Rule,
    size: f64,
    threshold: f64,
}

impl Window {
    pub fn new(control: Control, initial: u32) -> Window {
        let rule = match control {
            Control::NewReno => Rule::NewReno,
            Control::Cubic => Rule::Cubic(Cubic::default()),
            Control::Dctcp => Rule::Dctcp(Dctcp::default()),
        };
        Window { rule, size: f64::from(initial), threshold: f64::INFINITY }
    }

    /// Return the whole packets that may be in flight.
    pub fn packets(&self) -> u32 {
        (self.size as u32).max(1)
    }

    pub fn grow(&mut self, now: Time, advanced: u32, round_trip: Time) {
        let advanced = f64::from(advanced);
        if self.size < self.threshold {
            self.size += advanced;
            return;
        }
        self.size += match &mut self.rule {
            Rule::NewReno | Rule::Dctcp(_) => advanced / self.size,
            Rule::Cubic(cubic) => cubic.growth(self.size, advanced, now, round_trip),
        };
    }

    /// Grow by all of it in slow start, and beyond by what is left (Linux: tcp_slow_start, tcp_cong_avoid_ai).
    pub fn grow_exactly(&mut self, now: Time, delivered: u32, round_trip: Time) {
        let slow = (self.threshold - self.size).ceil().clamp(0.0, f64::from(delivered));
        if slow > 0.0 {
            self.size = (self.size + slow).min(self.threshold);
        }
        let remaining = delivered - slow as u32;
        if remaining > 0 {
            self.grow(now, remaining, round_trip);
        }
    }

    pub fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    pub fn end_slow_start(&mut self) {
        self.threshold = self.size;
    }

    pub fn limits(&self) -> Limits {
        Limits { size: self.size, threshold: self.threshold }
    }

    /// Be as large as before a reduction that was not due, but no smaller than now, under every control (Linux:
    /// tcp_reno_undo_cwnd, and dctcp_cwnd_undo, whose loss_cwnd is the same window). CUBIC grows from there as after a loss, and
    /// DCTCP keeps its share of marks: Linux restores the window and the threshold, and nothing else.
    pub fn restore(&mut self, before: Limits) {
        self.size = self.size.max(before.size);
        self.threshold = self.threshold.max(before.threshold);
    }

    pub fn lost(&mut self) {
        self.reduce(self.factor_of_loss());
    }

    /// Reduce for a mark: once a window, of which the caller takes care.
    pub fn marked(&mut self) {
        let factor = match &self.rule {
            Rule::Dctcp(dctcp) => dctcp.factor(),
            _ => self.factor_of_loss(),
        };
        self.reduce(factor);
    }

    /// Count answered packets towards the share of marked ones.
    pub fn answered(&mut self, advanced: u32, marked: bool, first: u32, end: u32) {
        if let Rule::Dctcp(dctcp) = &mut self.rule {
            dctcp.answered(advanced, marked, first, end);
        }
    }

    pub fn timed_out(&mut self, anew: bool, in_flight: u32) {
        if anew {
            self.reduce(self.factor_of_loss());
            self.threshold = self.threshold.min((f64::from(in_flight) / 2.0).max(LEAST));
        }
        self.size = 1.0;
    }

    fn factor_of_loss(&self) -> f64 {
        if matches!(self.rule, Rule::Cubic(_)) {
            super::cubic::BETA
        } else {
            0.5
        }
    }

    fn reduce(&mut self, factor: f64) {
        if let Rule::Cubic(cubic) = &mut self.rule {
            cubic.reduced(self.size);
        }
        self.size = (self.size * factor).max(LEAST);
        self.threshold = self.size;
    }
}
