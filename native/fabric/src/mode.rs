//! When short flows are present at a leaf: CAPS's ON/OFF mode (CAPS, section VII), as a state machine.
//!
//! A leaf turns ON with the first short packet (the switch copies them to the controller while the leaf is OFF,
//! and only then) and OFF when `quiet_intervals` sampling times T have passed without one. Presence while ON is
//! read from a meter, whose cumulative count is exact at once; flow counters lag by 100-500 ms.
//!
//! **Timing.** Sampling once per T would notice the last packet up to T late (about 1.6 T on the average until
//! OFF, 2 T at worst). So a leaf that is ON is read every min(T, [`RESOLUTION_S`]), and a last time exactly T after
//! the last change that was seen: OFF comes between T and T + [`RESOLUTION_S`] + one meter read after the last
//! short packet.
//!
//! **No flapping.** A trickle of short packets with gaps below T never turns a leaf OFF, by construction: every
//! window of length T holds a packet. A trickle with longer gaps would turn it on and off at every gap; so the
//! time that a leaf is held ON doubles, T, 2 T, 4 T, whenever it had to turn ON again within 4 T of the last
//! short packet, and falls back to T after a gap above 4 T. Any steady trickle with gaps up to 4 T thus costs at
//! most five changes and then none; for any traffic at all, a leaf turns OFF at most three times in a row before
//! it has been without a short packet for 4 T. Short flows that come apart from each other leave the hold at T.
//! (4: the rule's `longest_hold`. CAPS's Algorithm 1 has a timer of T and no doubling: 1.)

use std::collections::BTreeMap;
use std::fmt;

use crate::meter_read::{earliest, MeterRead};

/// Least T in seconds: reading a meter and changing a flow entry take 1-5 ms, so a shorter T means nothing.
pub const SHORTEST_SAMPLING_S: f64 = 0.010;
/// How late, in seconds, the last short packet may be noticed.
pub const RESOLUTION_S: f64 = 0.008;
/// When, in seconds after a leaf turned ON, its meter is first read.
pub const FIRST_READ_S: f64 = 0.002;
/// A meter read that has not been answered for this long, in seconds, is asked again.
pub const READ_LOST_S: f64 = 0.25;
const ROUNDING_S: f64 = 1e-9;

/// When a leaf turns OFF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeRule {
    /// T in packet times (1500 B on the slowest fabric link); above 0.
    pub sampling_packet_times: f64,
    /// How many T without a short packet; at least 1.
    pub quiet_intervals: u32,
    /// How many times the shortest hold the longest one is; at least 1, which is CAPS's Algorithm 1.
    pub longest_hold: u32,
}

/// A rule by which no leaf can be kept.
#[derive(Debug, PartialEq)]
pub struct RuleError {
    rule: ModeRule,
    packet_time_s: f64,
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleError { rule, packet_time_s } = self;
        write!(
            formatter,
            "mode rule with sampling_packet_times {}, quiet_intervals {}, longest_hold {} and a packet time of \
             {packet_time_s} s: sampling and packet times must be above 0, quiet_intervals and longest_hold at least 1",
            rule.sampling_packet_times, rule.quiet_intervals, rule.longest_hold
        )
    }
}

impl std::error::Error for RuleError {}

/// Whether short flows are present at a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    On,
    /// They are not.
    #[default]
    Off,
}

/// Why a leaf changed its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A short packet was copied to the controller.
    FirstPacket,
    /// The meter's count rose unseen while the leaf was OFF.
    Meter,
    /// No short packet came for the hold time.
    Quiet,
}

/// A leaf's change of mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeChange {
    /// Which leaf.
    pub leaf: u64,
    /// What it is now.
    pub mode: Mode,
    /// Since when, in seconds.
    pub at: f64,
    /// By what.
    pub cause: Cause,
}

/// What is known of one leaf.
#[derive(Clone, Copy, Debug)]
pub struct LeafMode {
    /// Its mode.
    pub mode: Mode,
    /// Since when it has that, in seconds.
    pub since: f64,
    /// Seconds that it is held ON without a short packet: T to `longest_hold` T, times `quiet_intervals`.
    pub hold_s: f64,
    /// The count at the last sample.
    packets: Option<u64>,
    /// When a short packet was last noticed.
    last_seen: Option<f64>,
    read: MeterRead,
}

impl LeafMode {
    fn quiet(hold_s: f64, now: f64) -> LeafMode {
        let (packets, last_seen) = (None, None);
        LeafMode { mode: Mode::Off, since: now, hold_s, packets, last_seen, read: MeterRead::default() }
    }

    fn change(&mut self, leaf: u64, mode: Mode, now: f64, cause: Cause) -> ModeChange {
        self.mode = mode;
        self.since = now;
        ModeChange { leaf, mode, at: now, cause }
    }
}

/// Modes of all leaves under one rule.
#[derive(Clone, Debug)]
pub struct ModeMonitor {
    sampling_time_s: f64,
    shortest_hold_s: f64,
    longest_hold_s: f64,
    leaves: BTreeMap<u64, LeafMode>,
}

impl ModeMonitor {
    /// Watches no leaf yet. `packet_time_s`: 1500 B on the slowest fabric link, in seconds.
    ///
    /// # Errors
    ///
    /// [`RuleError`] where the rule or the packet time is out of range.
    pub fn new(rule: ModeRule, packet_time_s: f64) -> Result<ModeMonitor, RuleError> {
        let above_0 = packet_time_s > 0.0 && rule.sampling_packet_times > 0.0;
        if !above_0 || rule.quiet_intervals.min(rule.longest_hold) < 1 {
            return Err(RuleError { rule, packet_time_s });
        }
        let sampling_time_s = (rule.sampling_packet_times * packet_time_s).max(SHORTEST_SAMPLING_S);
        let shortest_hold_s = sampling_time_s * f64::from(rule.quiet_intervals);
        let longest_hold_s = shortest_hold_s * f64::from(rule.longest_hold);
        Ok(ModeMonitor { sampling_time_s, shortest_hold_s, longest_hold_s, leaves: BTreeMap::new() })
    }

    /// Returns T in seconds.
    pub fn sampling_time_s(&self) -> f64 {
        self.sampling_time_s
    }

    /// Watches `leaf`, which starts OFF; a leaf that is known already keeps its state.
    pub fn leaf_added(&mut self, leaf: u64, now: f64) {
        let hold_s = self.shortest_hold_s;
        self.leaves.entry(leaf).or_insert_with(|| LeafMode::quiet(hold_s, now));
    }

    /// Forgets `leaf`, if it is known.
    pub fn leaf_removed(&mut self, leaf: u64) {
        self.leaves.remove(&leaf);
    }

    /// Returns what is known of `leaf`.
    pub fn leaf(&self, leaf: u64) -> Option<&LeafMode> {
        self.leaves.get(&leaf)
    }

    /// Returns the leaves that are watched, ascending.
    pub fn leaves(&self) -> impl Iterator<Item = u64> + '_ {
        self.leaves.keys().copied()
    }

    /// Returns the mode of a switch with these leaves below it: ON while any of them is.
    pub fn mode_above(&self, leaves: impl IntoIterator<Item = u64>) -> Mode {
        let on = |leaf| self.leaf(leaf).is_some_and(|state| state.mode == Mode::On);
        if leaves.into_iter().any(on) {
            Mode::On
        } else {
            Mode::Off
        }
    }

    /// Returns the change if a short packet's copy from `leaf` turned it ON.
    ///
    /// Further copies that were under way, and copies from a leaf that is gone, change nothing.
    pub fn first_packet(&mut self, leaf: u64, now: f64) -> Option<ModeChange> {
        self.packet_noticed(leaf, now, Cause::FirstPacket)
    }

    /// Returns the change that follows from a read: the meter of `leaf` has counted `packets` since it was made.
    ///
    /// A lower count than before (the switch was restarted) counts as traffic. An answer for a leaf that is
    /// gone changes nothing.
    pub fn sample(&mut self, leaf: u64, packets: u64, now: f64) -> Option<ModeChange> {
        let state = self.leaves.get_mut(&leaf)?;
        let asked = state.read.asked.take();
        let before = state.packets.replace(packets);
        let risen = before != Some(packets);
        if state.mode == Mode::Off {
            // The one read after turning OFF: a packet that passed before the switch began to copy again.
            state.read.next = None;
            let unseen = before.is_some() && risen;
            return if unseen { self.packet_noticed(leaf, now, Cause::Meter) } else { None };
        }
        let asked = asked.unwrap_or(now);
        let last_seen = match state.last_seen {
            // The count is as old as the question at worst, so the silence is only as long as up to the question.
            Some(seen) if !risen && asked - seen >= state.hold_s - ROUNDING_S => {
                state.read.next = Some(now + RESOLUTION_S);
                return Some(state.change(leaf, Mode::Off, now, Cause::Quiet));
            }
            Some(seen) if !risen => seen,
            _ => now,
        };
        state.last_seen = Some(last_seen);
        // From the question on, not from the answer: how long the switch takes must not add up.
        let step = now.max(asked + self.sampling_time_s.min(RESOLUTION_S));
        state.read.next = Some(step.min(now.max(last_seen + state.hold_s)));
        None
    }

    /// Returns the leaves whose meter is to be read now, ascending; each is named once per read.
    pub fn due(&mut self, now: f64) -> Vec<u64> {
        let reads = self.leaves.iter_mut().map(|(&leaf, state)| (leaf, &mut state.read));
        reads.filter_map(|(leaf, read)| read.ask(READ_LOST_S, now).then_some(leaf)).collect()
    }

    /// Returns when [`due`](Self::due) next names a leaf, in seconds; `None` while all are OFF.
    pub fn deadline(&self) -> Option<f64> {
        earliest(self.leaves.values().filter_map(|state| state.read.when(READ_LOST_S)))
    }

    fn packet_noticed(&mut self, leaf: u64, now: f64, cause: Cause) -> Option<ModeChange> {
        let state = self.leaves.get_mut(&leaf)?;
        let before = state.last_seen.replace(now);
        if state.mode == Mode::On {
            return None;
        }
        let again = before.is_some_and(|before| now - before <= self.longest_hold_s);
        state.hold_s =
            if again { (2.0 * state.hold_s).min(self.longest_hold_s) } else { self.shortest_hold_s };
        // What the meter has counted before is not known: its first count looks like a packet, so let it be early.
        state.read.next = Some(now + FIRST_READ_S);
        Some(state.change(leaf, Mode::On, now, cause))
    }
}
