//! What became of coding units, as their sender learns it, and the redundancy that follows from it.
//!
//! The sender knows which datagrams make a unit, and the peer's feedback says of each how long it took, or that it is
//! lost. A unit of k sources *succeeds* if k of its k + r symbols arrive in time: an MDS code decodes then, and so does
//! an RLC, but for 1 of 255. In time is what took no longer above the fastest symbol of its unit than the estimator's
//! `overdue_s`: what a burst waits for at its own access link, which repairs only lengthen, is the same for all of the
//! unit. What no feedback ever speaks of decides nothing, for then it may be the feedback that was lost. No model of
//! blocking is needed: packets of one unit that share a path are blocked together, which the binomial model of
//! `decode_probability` does not know.
//!
//! `Margin` is the outer loop of a two-loop power control (Sampath, Kumar, Holtzman: On setting reverse link target SIR
//! in a CDMA system, IEEE VTC 1997): each failure raises the assumed pB by a step, each success lowers it by (1 - P) / P
//! steps. It stands still where the share of successes is P, so that is where it goes, from above as from below: the
//! least redundancy that keeps the stated decode probability P.

use std::collections::{BTreeMap, VecDeque};

use crate::time::Seconds;

/// Of the margin at a failure, in logits of pB.
const STEP: f64 = 0.25;
/// Bound of the margin, in logits: the odds of pB are off by a factor of 20 at most.
pub const MOST_LOGITS: f64 = 3.0;
/// Datagrams not reported by the peer yet that are kept, and units.
pub const MOST_DATAGRAMS: usize = 1 << 14;

/// Correction of pB towards the hosts of one leaf, for one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    target: f64,
    logits: f64,
    successes: u64,
    failures: u64,
}

impl Margin {
    /// Returns a margin of 0 for a decode probability (above 0 and below 1).
    pub fn new(target: f64) -> Margin {
        Margin { target, logits: 0.0, successes: 0, failures: 0 }
    }

    /// Returns the pB to assume for the next unit; 0 stays 0.
    pub fn corrected(&self, blocking_probability: f64) -> f64 {
        let p = blocking_probability;
        if !(p > 0.0 && p < 1.0) {
            return p;
        }
        let odds = p / (1.0 - p) * libm::exp(self.logits);
        odds / (1.0 + odds)
    }

    /// Notes that a unit that was sent while something was blocked has come to its end.
    ///
    /// A failure of a unit that had `most` repairs, as many as it may have, asks for more in vain.
    pub fn learn(&mut self, success: bool, most: bool) {
        if success {
            self.successes += 1;
            self.logits = (self.logits - STEP * (1.0 - self.target) / self.target).max(-MOST_LOGITS);
            return;
        }
        self.failures += 1;
        if !most {
            self.logits = (self.logits + STEP).min(MOST_LOGITS);
        }
    }

    /// Returns the correction, in logits of pB.
    pub fn logits(&self) -> f64 {
        self.logits
    }

    /// Returns how many units succeeded.
    pub fn successes(&self) -> u64 {
        self.successes
    }

    /// Returns how many units failed.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

/// A unit towards one peer, by its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitId(u64);

/// A unit has come to its end, to be learned by its margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<M> {
    /// Which margin: what `Outcomes::open` was given.
    pub margin: M,
    /// Set if k of its symbols came in time.
    pub success: bool,
    /// Set if it had as many repairs as it may have.
    pub most: bool,
}

/// One unit of one flow: sources are added as they leave, repairs when it closes.
#[derive(Clone, Debug)]
struct SentUnit<M> {
    margin: M,
    /// Its sources; None while it is open.
    k: Option<u32>,
    symbols: u32,
    lost: u32,
    most: bool,
    /// The delay that was reported first, us; all are kept as signed differences to it.
    reference_us: u32,
    delays_us: Vec<i32>,
}

impl<M> SentUnit<M> {
    fn arrived(&mut self, delay_us: u32) {
        if self.delays_us.is_empty() {
            self.reference_us = delay_us;
        }
        self.delays_us.push(delay_us.wrapping_sub(self.reference_us) as i32);
    }

    /// Returns whether k of its symbols came in time; None while it is open, or a symbol's fate is not known.
    fn success(&self, in_time_s: Seconds) -> Option<bool> {
        let k = self.k?;
        if (self.lost as usize + self.delays_us.len()) < self.symbols as usize {
            return None;
        }
        let fastest = self.delays_us.iter().min().map_or(0.0, |&delay| f64::from(delay));
        let latest = fastest + in_time_s * 1e6;
        let in_time = self.delays_us.iter().filter(|&&delay| f64::from(delay) <= latest).count();
        Some(in_time >= k as usize)
    }
}

/// The undecided units towards one peer; M names a margin.
///
/// Of units and of datagrams that were not reported, the last MOST_DATAGRAMS count: an older unit stays undecided.
#[derive(Clone, Debug)]
pub struct Outcomes<M> {
    in_time_s: Seconds,
    /// Number of the datagram that left last, without its wraps.
    newest: u64,
    unit_of: BTreeMap<u64, UnitId>,
    /// None: decided. The first one's serial number is `decided`.
    units: VecDeque<Option<SentUnit<M>>>,
    decided: u64,
}

impl<M> Outcomes<M> {
    /// Returns what knows of no unit. A symbol is in time if it took no longer than `in_time_s` above the fastest of its
    /// unit.
    pub fn new(in_time_s: Seconds) -> Outcomes<M> {
        Outcomes { in_time_s, newest: 1 << 33, unit_of: BTreeMap::new(), units: VecDeque::new(), decided: 0 }
    }

    /// Sets what is in time for units that are decided from now on.
    pub fn set_in_time(&mut self, in_time_s: Seconds) {
        self.in_time_s = in_time_s;
    }

    /// Forgets all units: they stay undecided.
    pub fn clear(&mut self) {
        self.unit_of.clear();
        self.decided += self.units.len() as u64;
        self.units.clear();
    }

    /// Returns how many datagrams of units are waited for.
    pub fn waiting(&self) -> usize {
        self.unit_of.len()
    }

    /// Begins a unit, whose verdict is for `margin`.
    pub fn open(&mut self, margin: M) -> UnitId {
        if self.units.len() >= MOST_DATAGRAMS {
            self.units.pop_front();
            self.decided += 1;
        }
        self.units.push_back(Some(SentUnit {
            margin,
            k: None,
            symbols: 0,
            lost: 0,
            most: false,
            reference_us: 0,
            delays_us: Vec::new(),
        }));
        UnitId(self.decided + self.units.len() as u64 - 1)
    }

    /// Notes that `count` datagrams from `number` on leave with sources or repairs of a unit.
    pub fn sent(&mut self, number: u32, count: u32, unit: UnitId) {
        for offset in 0..u64::from(count) {
            let number = self.unwrapped(number) + offset;
            if self.unit_of.len() >= MOST_DATAGRAMS {
                self.unit_of.pop_first();
            }
            self.unit_of.insert(number, unit);
        }
        if count > 0 {
            self.newest = self.newest.max(self.unwrapped(number) + u64::from(count) - 1);
        }
        if let Some(sent) = self.unit(unit) {
            sent.symbols += count;
        }
    }

    /// Returns how many symbols of a unit have left.
    pub fn symbols(&mut self, unit: UnitId) -> u32 {
        self.unit(unit).map_or(0, |sent| sent.symbols)
    }

    /// Notes that all symbols of a unit have left, `k` of them sources; `most`: it could not have had more repairs.
    pub fn closed(&mut self, unit: UnitId, k: u32, most: bool) -> Option<Verdict<M>> {
        let sent = self.unit(unit)?;
        sent.k = Some(k);
        sent.most = most;
        self.decide(unit)
    }

    /// Notes that the peer has got a datagram after `delay_us` (arbitrary offset).
    pub fn arrived(&mut self, number: u32, delay_us: u32) -> Option<Verdict<M>> {
        let number = self.unwrapped(number);
        let unit = self.unit_of.remove(&number)?;
        self.unit(unit)?.arrived(delay_us);
        self.decide(unit)
    }

    /// Notes that the peer has given up `count` datagrams from `first` on; returns what that decides.
    pub fn lost(&mut self, first: u32, count: u32) -> Vec<Verdict<M>> {
        let first = self.unwrapped(first);
        let gone: Vec<u64> =
            self.unit_of.range(first..first + u64::from(count)).map(|(&number, _)| number).collect();
        let mut verdicts = Vec::new();
        for number in gone {
            let Some(unit) = self.unit_of.remove(&number) else { continue };
            if let Some(sent) = self.unit(unit) {
                sent.lost += 1;
                verdicts.extend(self.decide(unit));
            }
        }
        verdicts
    }

    /// Returns the number that is nearest to the newest one. (It begins above the half of a wrap, and only grows.)
    fn unwrapped(&self, number: u32) -> u64 {
        let ahead = number.wrapping_sub(self.newest as u32) as i32;
        self.newest.saturating_add_signed(i64::from(ahead))
    }

    fn unit(&mut self, unit: UnitId) -> Option<&mut SentUnit<M>> {
        let place = unit.0.checked_sub(self.decided)?;
        self.units.get_mut(place as usize)?.as_mut()
    }

    fn decide(&mut self, unit: UnitId) -> Option<Verdict<M>> {
        let in_time_s = self.in_time_s;
        let success = self.unit(unit)?.success(in_time_s)?;
        let place = unit.0.checked_sub(self.decided)?;
        let sent = self.units.get_mut(place as usize)?.take()?;
        while let Some(None) = self.units.front() {
            self.units.pop_front();
            self.decided += 1;
        }
        Some(Verdict { margin: sent.margin, success, most: sent.most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
    fn a_unit_that_is_never_reported_holds_no_more_than_the_bounds() {
        let mut outcomes = Outcomes::new(0.008);
        let stale = outcomes.open(0);
        outcomes.sent(0, 1, stale);
        for number in 1..3 * MOST_DATAGRAMS as u32 {
            let unit = outcomes.open(0);
            outcomes.sent(number, 1, unit);
            assert_eq!(outcomes.closed(unit, 1, false), None);
            assert!(outcomes.arrived(number, 5).is_some_and(|verdict| verdict.success));
            assert!(outcomes.units.len() <= MOST_DATAGRAMS);
            assert_eq!(outcomes.waiting(), 1);
        }
        assert_eq!(outcomes.closed(stale, 1, false), None, "it is too old");
        assert_eq!(outcomes.arrived(0, 5), None);
        assert_eq!(outcomes.waiting(), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
    fn no_more_datagrams_are_waited_for_than_are_kept() {
        let mut outcomes = Outcomes::new(0.008);
        let unit = outcomes.open(());
        for number in 0..5 * MOST_DATAGRAMS as u32 {
            outcomes.sent(number.wrapping_sub(77), 1, unit);
            assert!(outcomes.waiting() <= MOST_DATAGRAMS);
        }
    }

    #[test]
    fn units_that_are_forgotten_teach_nothing() {
        let mut outcomes = Outcomes::new(0.008);
        let (old, number) = (outcomes.open('o'), 7);
        outcomes.sent(number, 1, old);
        outcomes.clear();
        assert_eq!(outcomes.closed(old, 1, false), None);
        let new = outcomes.open('n');
        assert_ne!(new, old);
        outcomes.sent(number + 1, 1, new);
        assert_eq!(outcomes.closed(new, 1, false), None);
        assert_eq!(outcomes.arrived(number, 5), None);
        assert_eq!(outcomes.arrived(number + 1, 5).map(|verdict| verdict.margin), Some('n'));
    }

    #[test]
    fn numbers_that_wrap_are_the_same_datagrams() {
        for first in [0, u32::MAX - 2, u32::MAX / 2 - 2, 1 << 31] {
            let mut outcomes = Outcomes::new(0.008);
            let unit = outcomes.open('m');
            outcomes.sent(first, 6, unit);
            assert_eq!(outcomes.closed(unit, 4, true), None);
            for offset in 0..4 {
                assert_eq!(
                    outcomes.arrived(first.wrapping_add(offset), (u32::MAX - 1).wrapping_add(offset)),
                    None
                );
            }
            let verdicts = outcomes.lost(first.wrapping_add(4), 9);
            assert_eq!(verdicts, [Verdict { margin: 'm', success: true, most: true }]);
        }
    }
}
