//! The sender's side of one flow's coding: packets go in as they leave, a unit whose repairs are to be made comes out.
//!
//! Sources are sent at once by the caller (the codes are systematic); the encoder only keeps them until their unit
//! closes: at its size k, on a push (PSH or a drained queue), on a jump of positions, or when no packet came for
//! `flush_s`. The number of repairs is that of the unit's actual k.
//!
//! A push does not close a unit that is a window, for TCP sets PSH at the end of every write, in the middle of windows;
//! such a unit closes when no packet follows the push for PUSH_SHARE of `flush_s`.

use std::mem;

use coding::packets::LENGTH_BYTES;
use coding::Code;

use crate::coding::policy::UnitRule;
use crate::coding::redundancy::Progress;
use crate::coding::rules::CodingRules;
use crate::random::Random;
use crate::time::Seconds;

const PUSH_SHARE: f64 = 0.25;

/// What the next units of a flow aim at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// pB of one packet.
    pub blocking_probability: f64,
    /// Sources of a unit; cut to 1 to max_k.
    pub k: u32,
    /// What the flow has sent before them.
    pub flow: Progress,
}

/// Source packets that leave at consecutive positions; `payload` is where they lie, or nothing in a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Source<P> {
    /// Of the first packet, modulo 2^32; each packet of a flow has the next one.
    pub position: u32,
    /// How many they are: 1 to `UnitEncoder::room`.
    pub count: u32,
    /// Bytes of the longest packet.
    pub longest: u32,
    /// Set if nothing follows the last one at once.
    pub push: bool,
    /// What is kept of them until their unit closes.
    pub payload: P,
}

/// A unit whose repairs are to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedUnit<P> {
    /// Of its first source.
    pub position: u32,
    /// Which code its repairs are of.
    pub code: Code,
    /// Its sources.
    pub k: u32,
    /// Its repairs, 1 or more.
    pub r: u32,
    /// What the code's coefficients follow from; 0 for a code without.
    pub seed: u32,
    /// Bytes of each symbol: the longest packet and its length.
    pub symbol_bytes: u32,
    /// Its packets, as they were taken in.
    pub payloads: Vec<P>,
}

/// One sending flow. Times must not run backwards.
#[derive(Clone, Debug)]
pub struct UnitEncoder<P> {
    aim: Aim,
    windows: bool,
    flush_s: Seconds,
    first: u32,
    payloads: Vec<P>,
    count: u32,
    longest: u32,
    last: Seconds,
    pushed: bool,
    units: u64,
    repairs: u64,
}

impl<P> UnitEncoder<P> {
    /// Returns an encoder without an open unit, which aims at max_k and no repairs.
    pub fn new(rules: &CodingRules) -> UnitEncoder<P> {
        let policy = rules.policy();
        UnitEncoder {
            aim: Aim { blocking_probability: 0.0, k: policy.max_k, flow: Progress::default() },
            windows: policy.unit == UnitRule::Window,
            flush_s: policy.flush_s,
            first: 0,
            payloads: Vec::new(),
            count: 0,
            longest: 0,
            last: 0.0,
            pushed: false,
            units: 0,
            repairs: 0,
        }
    }

    /// Sets what the next units aim at; an open one is closed by it, too.
    pub fn set_aim(&mut self, aim: Aim, rules: &CodingRules) {
        self.aim = Aim { k: aim.k.min(rules.policy().max_k).max(1), ..aim };
    }

    /// Returns how many packets are in the open unit.
    pub fn open_packets(&self) -> u32 {
        self.count
    }

    /// Returns how many packets the unit still takes until it closes at its size.
    pub fn room(&self) -> u32 {
        self.aim.k.saturating_sub(self.count).max(1)
    }

    /// Returns how many units were closed so far.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Returns how many repairs they have.
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    /// Processes packets that leave now.
    ///
    /// Returns the units that want repairs after them: an older one that had to close because the positions do not
    /// follow it, and the one that these packets close.
    pub fn take(
        &mut self,
        source: Source<P>,
        now: Seconds,
        rules: &mut CodingRules,
        random: &mut impl Random,
    ) -> Vec<ClosedUnit<P>> {
        let mut closed = Vec::new();
        if self.count > 0 && source.position.wrapping_sub(self.first) != self.count {
            closed.extend(self.end(rules, random));
        }
        if self.count == 0 {
            self.first = source.position;
        }
        self.payloads.push(source.payload);
        self.count += source.count;
        self.longest = self.longest.max(source.longest);
        self.last = now;
        self.pushed = source.push;
        if (source.push && !self.windows) || self.count >= self.aim.k {
            closed.extend(self.end(rules, random));
        }
        closed
    }

    /// Returns when the open unit has to be closed by `end`; None while no unit is open.
    pub fn deadline(&self) -> Option<Seconds> {
        let share = if self.pushed && self.windows { PUSH_SHARE } else { 1.0 };
        (self.count > 0).then_some(self.last + share * self.flush_s)
    }

    /// Closes the open unit, whatever its deadline (end of flow, change of policy or class).
    ///
    /// Returns the unit; None if it gets no repairs, or none was open.
    pub fn end(&mut self, rules: &mut CodingRules, random: &mut impl Random) -> Option<ClosedUnit<P>> {
        let (k, longest) = (mem::take(&mut self.count), mem::take(&mut self.longest));
        let payloads = mem::take(&mut self.payloads);
        if k == 0 {
            return None;
        }
        self.units += 1;
        let r = rules.repairs(self.aim.blocking_probability, k, self.aim.flow);
        if r == 0 {
            return None;
        }
        self.repairs += u64::from(r);
        let code = rules.policy().code;
        let seed = if seeded(code) { random.bits32() } else { 0 };
        let symbol_bytes = LENGTH_BYTES as u32 + longest;
        Some(ClosedUnit { position: self.first, code, k, r, seed, symbol_bytes, payloads })
    }
}

/// Returns true if the code's coefficients follow from a seed.
fn seeded(code: Code) -> bool {
    matches!(code, Code::Rlc | Code::Ldpc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::policy::{CodingPolicy, RedundancyRule};
    use crate::random::Generator;
    use trials::trials;

    fn rules(unit: UnitRule) -> CodingRules {
        CodingRules::new(CodingPolicy {
            code: Code::Rlc,
            redundancy: RedundancyRule::Paper,
            target_decode_probability: 0.95,
            unit,
            max_k: 16,
            max_r: 16,
            max_overhead: 8.0,
            flush_s: 0.01,
        })
    }

    #[test]
    fn every_packet_is_in_one_unit_however_they_come() {
        let mut random = Generator::new(5);
        for unit in [UnitRule::Optimal, UnitRule::Window] {
            let mut rules = rules(unit);
            for _ in 0..trials(200) {
                let mut encoder = UnitEncoder::new(&rules);
                let (mut taken, mut coded, mut position) = (Vec::new(), Vec::new(), random.bits32());
                let mut keep = |closed: &ClosedUnit<(u32, u32)>| {
                    let sources: u32 = closed.payloads.iter().map(|(_, count)| count).sum();
                    assert_eq!((closed.position, closed.k), (closed.payloads[0].0, sources));
                    assert_eq!(closed.symbol_bytes, 102);
                    coded.extend(closed.payloads.iter().copied());
                };
                for step in 0..40 {
                    let flow = Progress::default();
                    let k = random.below(20);
                    encoder.set_aim(Aim { blocking_probability: 0.3, k, flow }, &rules);
                    let count = 1 + random.below(encoder.room());
                    let payload = (position, count);
                    let push = random.below(8) == 0;
                    let source = Source { position, count, longest: 100, push, payload };
                    taken.push(payload);
                    encoder.take(source, f64::from(step), &mut rules, &mut random).iter().for_each(&mut keep);
                    assert!(encoder.open_packets() < 16);
                    position = position.wrapping_add(count + u32::from(random.below(10) == 0));
                }
                encoder.end(&mut rules, &mut random).iter().for_each(&mut keep);
                assert_eq!(coded, taken, "at pB = 0.3 every unit has repairs");
                assert!(encoder.end(&mut rules, &mut random).is_none());
                assert_eq!(encoder.deadline(), None);
            }
        }
    }
}
