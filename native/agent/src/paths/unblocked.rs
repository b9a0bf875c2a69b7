//! Random packet spraying over the paths that are not blocked, by label.
//!
//! Ours, after CAPS (IEEE/ACM ToN 2019), which sprays over all paths and repairs what blocked ones delay: where a sender
//! can name paths, and feedback says how long each packet took, it need not send into a queue that it knows. A path is
//! blocked from when a packet was delayed on it by more than `congested_s` above the least, or was not reported for twice
//! that long (the report itself waits behind such a queue) and what feedback waits, for `avoid_s`; then the next packets try
//! it again. If all are blocked, all are used.

use std::collections::BTreeMap;

use crate::paths::spray::entropy_value;
use crate::paths::{PathId, PathPolicy, Report};
use crate::random::Random;
use crate::route::{FlowRef, LeafId, Route};
use crate::time::Seconds;
use crate::underlay::{label_of, stamp_of_label};

/// When a path is avoided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnblockedSettings {
    /// Delay above the least from which a packet was blocked.
    pub congested_s: Seconds,
    /// For how long a blocked path is avoided.
    pub avoid_s: Seconds,
    /// How long after the first datagram that it speaks of a peer's feedback goes out.
    pub feedback_after_s: Seconds,
}

impl UnblockedSettings {
    /// Returns the longest time for which a packet that was not blocked stays unreported: a round trip, and the time
    /// over which its report gathers, which may wait as long again for datagrams to leave with.
    fn silence_s(&self) -> Seconds {
        2.0 * (self.congested_s + self.feedback_after_s)
    }
}

/// What is known of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Until when it is avoided.
    until: Seconds,
    /// When the oldest packet left that was not reported yet.
    waits_since: Option<Seconds>,
}

/// Draws among the labels of paths that are not blocked.
#[derive(Clone, Debug)]
pub struct Unblocked<R> {
    random: R,
    settings: UnblockedSettings,
    known: BTreeMap<PathId, Known>,
    /// Labels to draw from; empty between packets.
    free: Vec<u16>,
}

impl<R: Random> Unblocked<R> {
    /// Returns a policy that draws from `random`.
    pub fn new(random: R, settings: UnblockedSettings) -> Unblocked<R> {
        Unblocked { random, settings, known: BTreeMap::new(), free: Vec::new() }
    }

    fn is_free(&mut self, path: PathId, now: Seconds) -> bool {
        let Some(known) = self.known.get_mut(&path) else { return true };
        if known.waits_since.is_some_and(|since| now - since > self.settings.silence_s()) {
            *known = Known { until: now + self.settings.avoid_s, waits_since: None };
        }
        known.until <= now
    }
}

impl<R: Random> PathPolicy for Unblocked<R> {
    fn learns(&self) -> bool {
        true
    }

    fn source_port(&mut self, flow: FlowRef, route: &Route, _size: u32, now: Seconds) -> u16 {
        if route.labels.is_empty() {
            return entropy_value(&mut self.random);
        }
        let path = |label| PathId { leaf: route.leaf, stamp: stamp_of_label(label) };
        let mut free = std::mem::take(&mut self.free);
        free.extend(route.labels.iter().copied().filter(|&label| self.is_free(path(label), now)));
        let labels = if free.is_empty() { &route.labels[..] } else { &free[..] };
        let label = labels[self.random.below(labels.len() as u32) as usize];
        free.clear();
        self.free = free;
        if flow.id >= 0 {
            // our own feedback is not reported
            self.known.entry(path(label)).or_default().waits_since.get_or_insert(now);
        }
        label
    }

    fn reported(&mut self, report: &Report, now: Seconds) {
        let path = PathId { leaf: report.leaf, stamp: report.stamp };
        let Some(known) = self.known.get_mut(&path) else { return };
        if known.waits_since.is_some_and(|since| since <= report.sent) {
            known.waits_since = None;
        }
        let blocked = report.is_congested(self.settings.congested_s);
        known.until = if blocked { now + self.settings.avoid_s } else { 0.0 };
    }

    fn lost(&mut self, _flow: i64, leaf: LeafId, port: u16, now: Seconds) {
        let path = PathId { leaf, stamp: stamp_of_label(port) };
        if let Some(known) = self.known.get_mut(&path).filter(|_| label_of(path.stamp) == port) {
            *known = Known { until: now + self.settings.avoid_s, waits_since: None };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use trials::trials;

    use super::*;
    use crate::random::Generator;
    use crate::TrafficClass;

    const SETTINGS: UnblockedSettings =
        UnblockedSettings { congested_s: 0.01, avoid_s: 1.0, feedback_after_s: 0.005 };
    const FLOW: FlowRef = FlowRef { id: 1, hash: 7 };

    fn route(stamps: std::ops::Range<u16>) -> Route {
        let labels: Vec<u16> = stamps.map(label_of).collect();
        Route { labels: Arc::from(labels), version: 1, ..Route::unnamed(LeafId(2), TrafficClass::Short) }
    }

    fn report(port: u16, delay_s: Seconds, sent: Seconds) -> Report {
        let stamp = stamp_of_label(port);
        Report { flow: 1, leaf: LeafId(2), port, stamp, delay_s, sent, marked: false }
    }

    #[test]
    #[cfg_attr(miri, ignore = "judges a share of thousands")]
    fn blocked_paths_are_avoided_for_their_time_and_then_tried_again() {
        let mut paths = Unblocked::new(Generator::new(5), SETTINGS);
        let route = route(1..9);
        let slow = label_of(3);
        let mut used = [0; 16];
        let mut now = 0.0;
        for _ in 0..20_000 {
            now += 0.0001;
            let port = paths.source_port(FLOW, &route, 1400, now);
            used[usize::from(stamp_of_label(port))] += 1;
            let delay_s = if port == slow { 0.2 } else { 0.001 };
            paths.reported(&report(port, delay_s, now), now);
        }
        assert!((1..=3).contains(&used[3]), "once a second: {used:?}");
        let others = used.iter().enumerate().filter(|&(stamp, _)| stamp != 3 && (1..9).contains(&stamp));
        assert!(others.clone().all(|(_, &count)| count > 2500), "evenly: {used:?}");
    }

    #[test]
    fn on_a_fast_fabric_free_paths_are_free_while_feedback_is_gathered() {
        // 1 Gbit/s: 50 packet times are shorter than feedback waits
        let settings = UnblockedSettings { congested_s: 0.0006, ..SETTINGS };
        let mut paths = Unblocked::new(Generator::new(9), settings);
        let route = route(1..9);
        let slow = label_of(3);
        let mut used = [0; 16];
        let mut gathered = Vec::new();
        for step in 1..trials(20_000) {
            let now = f64::from(step) * 0.0001;
            let port = paths.source_port(FLOW, &route, 1400, now);
            used[usize::from(stamp_of_label(port))] += 1;
            gathered.push(report(port, if port == slow { 0.01 } else { 0.0001 }, now));
            if step % 100 == 0 {
                gathered.drain(..).for_each(|report| paths.reported(&report, now));
            }
        }
        assert!((1..100).contains(&used[3]), "until its packets are reported, each second: {used:?}");
    }

    #[test]
    fn a_path_whose_datagrams_are_marked_is_avoided() {
        let mut paths = Unblocked::new(Generator::new(8), SETTINGS);
        let route = route(1..3);
        let marked = paths.source_port(FLOW, &route, 1400, 0.0);
        paths.reported(&Report { marked: true, ..report(marked, 0.0, 0.0) }, 0.0);
        for step in 1..100 {
            let now = f64::from(step) * 0.001;
            let port = paths.source_port(FLOW, &route, 1400, now);
            assert_ne!(port, marked);
            paths.reported(&report(port, 0.0, now), now);
        }
    }

    #[test]
    fn a_path_that_nothing_is_reported_of_is_blocked() {
        let mut paths = Unblocked::new(Generator::new(6), SETTINGS);
        let route = route(1..3);
        let silent = paths.source_port(FLOW, &route, 1400, 0.0);
        for step in 0..200 {
            let now = 0.031 + f64::from(step) * 0.001;
            let port = paths.source_port(FLOW, &route, 1400, now);
            assert_ne!(port, silent);
            paths.reported(&report(port, 0.0, now), now);
        }
    }

    #[test]
    fn feedback_which_is_not_reported_blocks_no_path() {
        let mut paths = Unblocked::new(Generator::new(6), SETTINGS);
        let (route, feedback) = (route(1..3), FlowRef { id: -5, hash: 7 });
        let first = paths.source_port(feedback, &route, 60, 0.0);
        let times = (0..20).map(|step| 0.031 + f64::from(step) * 0.001);
        let again = times.filter(|&now| paths.source_port(feedback, &route, 60, now) == first);
        assert!(again.count() > 0);
    }

    #[test]
    fn where_all_are_blocked_all_are_used() {
        let mut paths = Unblocked::new(Generator::new(7), SETTINGS);
        let route = route(1..5);
        let mut used = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let port = paths.source_port(FLOW, &route, 1400, 0.0);
            paths.reported(&report(port, 5.0, 0.0), 0.0);
            used.insert(port);
        }
        assert_eq!(used.len(), 4);
    }
}
