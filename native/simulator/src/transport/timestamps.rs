//! Timestamps (RFC 7323): what a sender's clock shows a receiver, and which data a receiver discards by it.

use crate::time::Time;

/// A clock that shows whole ticks, or, with a tick of 0, the time itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    pub tick: Time,
}

impl Timestamps {
    pub const EXACT: Timestamps = Timestamps { tick: 0 };

    /// Return what the clock shows at `time`, in ticks.
    fn shown(self, time: Time) -> Time {
        time.checked_div(self.tick).unwrap_or(time)
    }

    /// Return whether the clock shows an earlier time at `time` than at `other` (Linux: tcp_tsopt_ecr_before).
    pub fn before(self, time: Time, other: Time) -> bool {
        self.shown(time) < self.shown(other)
    }

    /// Return whether a receiver discards what was sent at `stamp` after what was sent at `recent`: if it is more than a tick older
    /// (PAWS, RFC 7323, Section 5; Linux: TCP_PAWS_WINDOW). With a tick of 0 nothing is discarded.
    pub fn discards(self, stamp: Time, recent: Time) -> bool {
        self.tick > 0 && self.shown(stamp) + 1 < self.shown(recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_a_tick_older_is_discarded() {
        let clock = Timestamps { tick: 10 };
        assert!(
            !clock.discards(10, 29)
                && clock.discards(9, 29)
                && clock.discards(0, 20)
                && !clock.discards(0, 19)
        );
        assert!(!Timestamps::EXACT.discards(0, 1000));
    }

    #[test]
    fn times_within_a_tick_are_equal() {
        let clock = Timestamps { tick: 10 };
        assert!(!clock.before(10, 19) && clock.before(19, 20));
        assert!(Timestamps::EXACT.before(10, 11));
    }
}
