//! The share of paths whose recent one-way delay is far above the best: the default.
//!
//! *Far* is THRESHOLD_PACKETS packet times (and never under NOISE_S, the hiccups of software switches and agents). Short
//! flows alone queue a few packets; a long flow fills the buffer, which is 256. So the threshold separates them anywhere
//! in between, and a packet that is late by less is not worth a repair, which itself leaves several packet times after it.
//! Only differences of delays count, as the clocks are two machines'.
//!
//! Every path weighs the same, for spraying is even. A path keeps its last state until nothing was known of it for as long
//! as eight full buffers take (and at least 2 s): long flows stay on their paths for longer than the pauses between short
//! ones, and silence speaks for a blocked path rather than against it. The best delay is the least of the last 10 to
//! 20 s, so that it holds even while all paths are blocked, and clocks that drift (1e-4) stay within the threshold.
//!
//! Overdue datagrams whose label names a path count as blocked ones of it. Those without make a share of their own, and
//! pB is the larger of both shares: mostly it is the blocked paths that they were on, and adding would count them twice.

use crate::blocking::average::Average;
use crate::blocking::{BlockingEstimator, MAX_BLOCKING_PROBABILITY, PRIOR};
use crate::hash::NumberMap;
use crate::least_delay::LeastDelay;
use crate::serial::serial_difference;
use crate::time::Seconds;
use crate::underlay::STAMP_LAST;

const THRESHOLD_PACKETS: f64 = 8.0;
const NOISE_S: Seconds = 0.002;
const BUFFER_PACKETS: f64 = 256.0;
const MIN_AGE_S: Seconds = 2.0;
/// Datagrams after which the prior has no weight left.
const SURE_SAMPLES: f64 = 8.0;
/// Weight of a new datagram in the share of lost and overdue ones (the n-th one's is at least 1/n).
const LOSS_SMOOTHING: f64 = 1.0 / 64.0;

/// Returns the delay above the best from which a datagram counts as blocked, for a packet time.
pub fn threshold_s(packet_time_s: Seconds) -> Seconds {
    (THRESHOLD_PACKETS * packet_time_s).max(NOISE_S)
}

/// What is known of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathState {
    /// Which path.
    pub stamp: u16,
    /// Its last delay above the best.
    pub excess_s: Seconds,
    /// Share of blocked datagrams, each new one counting one half.
    pub blocked: f64,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    stamp: u16,
    /// Last delay above the reference, us; of a lost datagram, what it was before.
    excess_us: i32,
    blocked: f64,
    at: Seconds,
}

/// The estimator; see above.
#[derive(Clone, Debug)]
pub struct Paths {
    overdue_s: Seconds,
    threshold_us: f64,
    max_age_s: Seconds,
    /// In the order of their first datagrams.
    paths: Vec<Path>,
    place_of: NumberMap<u16, usize>,
    /// First delay ever: all others are kept as signed differences to it, which do not wrap.
    reference: Option<u32>,
    best: LeastDelay,
    samples: u64,
    reported_at: Seconds,
    events: u64,
    lost: f64,
    rtt: Average,
    least_rtt_s: Seconds,
    excess_s: Average,
}

impl Paths {
    /// Returns an estimator that knows nothing. `max_age_s`: how long a path keeps its state, None for eight buffers.
    pub fn new(packet_time_s: Seconds, max_age_s: Option<Seconds>) -> Paths {
        let overdue_s = threshold_s(packet_time_s);
        Paths {
            overdue_s,
            threshold_us: (1e6 * overdue_s).round_ties_even(),
            max_age_s: max_age_s.unwrap_or((8.0 * BUFFER_PACKETS * packet_time_s).max(MIN_AGE_S)),
            paths: Vec::new(),
            place_of: NumberMap::default(),
            reference: None,
            best: LeastDelay::default(),
            samples: 0,
            reported_at: 0.0,
            events: 0,
            lost: 0.0,
            rtt: Average::default(),
            least_rtt_s: 0.0,
            excess_s: Average::default(),
        }
    }

    fn count(&mut self, now: Seconds) {
        if now - self.reported_at > self.max_age_s {
            // after a silence what was sure before is so no more
            (self.samples, self.events, self.lost) = (0, 0, 0.0);
        }
        self.samples += 1;
        self.reported_at = now;
    }

    fn count_lost(&mut self, lost: f64) {
        self.events += 1;
        self.lost += LOSS_SMOOTHING.max(1.0 / self.events as f64) * (lost - self.lost);
    }

    /// Processes a datagram of a path; `excess_us`: None if it did not come.
    fn learn_path(&mut self, stamp: u16, excess_us: Option<i32>, blocked: bool, now: Seconds) {
        let blocked = f64::from(u8::from(blocked));
        let place = *self.place_of.entry(stamp).or_insert(self.paths.len());
        let fresh = Path { stamp, excess_us: excess_us.unwrap_or(0), blocked, at: now };
        match self.paths.get_mut(place) {
            None => self.paths.push(fresh),
            Some(path) if now - path.at > self.max_age_s => *path = fresh,
            Some(path) => {
                path.excess_us = excess_us.unwrap_or(path.excess_us);
                path.blocked = 0.5 * path.blocked + 0.5 * blocked;
                path.at = now;
            }
        }
    }

    fn recent(&self, now: Seconds) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(move |path| now - path.at <= self.max_age_s)
    }
}

impl BlockingEstimator for Paths {
    fn ack_rtt(&mut self, rtt_s: Seconds, _now: Seconds) {
        if rtt_s.is_nan() || rtt_s <= 0.0 {
            return;
        }
        self.least_rtt_s = if self.least_rtt_s > 0.0 { self.least_rtt_s.min(rtt_s) } else { rtt_s };
        // an ACK that waited behind a gap shows a blocked path or a timer, not the round trip
        if rtt_s <= self.least_rtt_s + self.threshold_us * 1e-6 {
            self.rtt.add(rtt_s);
        }
    }

    fn path_delay(&mut self, stamp: u16, delay_us: u32, now: Seconds) {
        if stamp > STAMP_LAST {
            return;
        }
        let reference = *self.reference.get_or_insert(delay_us);
        let excess_us = serial_difference(delay_us, reference);
        let above_best_us = f64::from(self.best.above(delay_us, now));
        let blocked = above_best_us > self.threshold_us;
        self.count(now);
        if blocked {
            self.excess_s.add(above_best_us * 1e-6);
        } else {
            self.count_lost(0.0); // a blocked one has been counted when it was overdue
        }
        self.learn_path(stamp, Some(excess_us), blocked, now);
    }

    fn path_loss(&mut self, stamp: Option<u16>, now: Seconds) {
        self.count(now);
        match stamp.filter(|&stamp| stamp <= STAMP_LAST) {
            None => self.count_lost(1.0),
            Some(stamp) => self.learn_path(stamp, None, true, now),
        }
    }

    fn blocking_probability(&mut self, now: Seconds) -> f64 {
        let (mut paths, mut shares) = (0, 0.0);
        for path in self.recent(now) {
            paths += 1;
            shares += path.blocked;
        }
        if paths == 0 {
            return PRIOR;
        }
        let known = (self.samples as f64 / SURE_SAMPLES).min(1.0);
        let measured = (shares / f64::from(paths)).max(self.lost);
        (known * measured + (1.0 - known) * PRIOR).min(MAX_BLOCKING_PROBABILITY)
    }

    fn rtt_s(&self) -> Seconds {
        self.rtt.or_zero()
    }

    fn blocked_rtt_s(&self) -> Seconds {
        self.rtt_s() + self.excess_s.or_zero()
    }

    fn overdue_s(&self) -> Seconds {
        self.overdue_s
    }

    fn paths(&self, now: Seconds) -> Vec<PathState> {
        let best =
            self.reference.zip(self.best.us()).map_or(0, |(first, best)| serial_difference(best, first));
        let best = f64::from(best);
        let state = |path: &Path| PathState {
            stamp: path.stamp,
            excess_s: ((f64::from(path.excess_us) - best) * 1e-6).max(0.0),
            blocked: path.blocked,
        };
        self.recent(now).map(state).collect()
    }
}
