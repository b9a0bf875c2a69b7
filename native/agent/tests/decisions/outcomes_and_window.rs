//! Outcomes of units, the margin that learns of them, and the congestion window, against independent computation.

use std::collections::HashSet;

use agent::coding::{
    CodingPolicy, CodingRules, Margin, Outcomes, Progress, RedundancyRule, UnitRule, Verdict, WindowEstimate,
    INITIAL_WINDOW, MOST_LOGITS,
};
use agent::{Generator, Random};
use coding::Code;
use trials::trials;

fn learn(margin: &mut Margin, verdicts: impl IntoIterator<Item = Verdict<()>>) {
    for verdict in verdicts {
        margin.learn(verdict.success, verdict.most);
    }
}

#[test]
fn a_unit_succeeds_if_k_of_its_symbols_arrive_in_whatever_order() {
    let mut random = Generator::new(1);
    for _ in 0..trials(60) {
        let (mut outcomes, mut margin) = (Outcomes::new(0.008), Margin::new(0.9));
        let (mut expected, mut symbols) = ([0, 0], Vec::new());
        let offset_us = random.bits32(); // between the clocks
        for _ in 0..=random.below(20) {
            let (k, r) = (1 + random.below(11), random.below(6));
            let mut late: Vec<bool> = (0..k + r).map(|_| random.unit() < 0.25).collect();
            late[random.below(k + r) as usize] = false; // what delays all of a unit alike does not count
            let unit = outcomes.open(());
            outcomes.sent(symbols.len() as u32, k + r, unit);
            learn(&mut margin, outcomes.closed(unit, k, false));
            let in_time = late.iter().filter(|&&late| !late).count();
            expected[usize::from(in_time >= k as usize)] += 1;
            symbols.extend(late);
        }
        let mut numbers: Vec<u32> = (0..symbols.len() as u32).collect();
        for last in (1..numbers.len()).rev() {
            numbers.swap(last, random.below(last as u32 + 1) as usize);
        }
        for number in numbers {
            let late = symbols[number as usize];
            if late && random.unit() < 0.5 {
                learn(&mut margin, outcomes.lost(number, 1));
            } else {
                let delay_us = if late { 20_000 } else { random.below(8000) };
                learn(&mut margin, outcomes.arrived(number, offset_us.wrapping_add(delay_us)));
            }
        }
        assert_eq!([margin.failures(), margin.successes()], expected);
        assert_eq!(outcomes.waiting(), 0);
    }
}

#[test]
fn a_unit_is_decided_when_it_is_closed_and_all_of_it_is_reported() {
    let mut outcomes = Outcomes::new(0.008);
    let unit = outcomes.open(());
    outcomes.sent(0, 3, unit);
    assert!(outcomes.lost(0, 1).is_empty());
    assert!(outcomes.arrived(1, 70).is_none());
    assert!(outcomes.arrived(2, 70).is_none());
    outcomes.sent(3, 1, unit);
    assert!(outcomes.closed(unit, 3, false).is_none());
    assert!(outcomes.arrived(3, 70).is_some_and(|verdict| verdict.success && !verdict.most));
    assert!(outcomes.arrived(3, 70).is_none());
}

/// Its own burst at the access link, or clocks that drift.
#[test]
fn what_delays_a_whole_unit_does_not_make_it_fail() {
    let (mut outcomes, mut margin) = (Outcomes::new(0.008), Margin::new(0.9));
    for number in 0..99 {
        let unit = outcomes.open(());
        outcomes.sent(4 * number, 4, unit);
        learn(&mut margin, outcomes.closed(unit, 3, false));
        for symbol in 0..4 {
            let late_us = if symbol < number % 3 { 9000 } else { 0 };
            learn(&mut margin, outcomes.arrived(4 * number + symbol, 1000 * number + late_us));
        }
    }
    // none or one of four late: decoded; two: not
    assert_eq!((margin.successes(), margin.failures()), (66, 33));
}

#[test]
fn a_failure_with_all_repairs_that_may_be_asks_for_no_more() {
    let mut margin = Margin::new(0.9);
    for _ in 0..10 {
        margin.learn(false, true);
    }
    assert_eq!((margin.failures(), margin.logits()), (10, 0.0));
}

#[test]
fn the_margin_is_bounded_monotonic_and_leaves_nought_alone() {
    let mut random = Generator::new(2);
    for case in 0..trials(300) {
        let p = [0.0, 1.0, random.unit()][case % 3];
        let mut margin = Margin::new(0.5 + 0.499 * random.unit());
        let mut before = margin.corrected(p);
        assert!((before - p).abs() <= 1e-6 * p);
        for _ in 0..random.below(100) {
            let success = random.below(2) == 1;
            margin.learn(success, false);
            let after = margin.corrected(p);
            assert!((0.0..=1.0).contains(&after));
            assert!(if success { after <= before + 1e-12 } else { after >= before - 1e-12 });
            assert!(margin.logits().abs() <= MOST_LOGITS);
            before = after;
        }
        assert_eq!(margin.corrected(0.0), 0.0);
    }
}

/// Returns the share of 6000 units of 20 sources that succeed, and repairs per source, over their second half.
///
/// blocked(n) gives how many of n symbols of one unit are blocked; the estimator knows the mean share, 0.2, exactly.
fn successes_and_overhead(adaptive: bool, blocked: &mut dyn FnMut(u32) -> u32) -> (f64, f64) {
    const UNITS: u32 = 6000;
    const K: u32 = 20;
    let redundancy =
        if adaptive { RedundancyRule::Adaptive } else { RedundancyRule::TargetDecodeProbability };
    let mut rules = CodingRules::new(CodingPolicy {
        code: Code::Rlc,
        redundancy,
        target_decode_probability: 0.95,
        unit: UnitRule::Optimal,
        max_k: 255,
        max_r: 64,
        max_overhead: 8.0,
        flush_s: 0.01,
    });
    let mut margin = Margin::new(0.95);
    let (mut successes, mut repairs) = (0, 0);
    for number in 0..UNITS {
        let p = if adaptive { margin.corrected(0.2) } else { 0.2 };
        let r = rules.repairs(p, K, Progress { sent_bytes: 0, window: None });
        let success = blocked(K + r) <= r;
        margin.learn(success, false);
        if number >= UNITS / 2 {
            successes += u32::from(success);
            repairs += r;
        }
    }
    let counted = f64::from(UNITS / 2);
    (f64::from(successes) / counted, f64::from(repairs) / counted / f64::from(K))
}

/// Each unit finds 1 of 4 to all of its 8 paths' worth of packets blocked: the binomial model is far off.
#[test]
#[cfg_attr(miri, ignore = "judges shares of thousands")]
fn adaptive_redundancy_reaches_its_target_where_packets_are_blocked_together() {
    let mut random = Generator::new(1);
    let mut clustered = move |n: u32| {
        let share = 1.0 - libm::pow(random.unit(), 0.25); // Beta(1, 4), of mean 0.2
        (0..n).map(|_| u32::from(random.unit() < share)).sum()
    };
    let (fixed, _) = successes_and_overhead(false, &mut clustered);
    let (reached, _) = successes_and_overhead(true, &mut clustered);
    assert!(fixed < 0.9, "{fixed}");
    assert!((reached - 0.95).abs() <= 0.01, "{reached}");
}

/// Blocking in turn (every fifth packet) is more even than the binomial model believes: fewer repairs do.
#[test]
#[cfg_attr(miri, ignore = "judges shares of thousands")]
fn adaptive_redundancy_pays_no_more_than_the_least_r_that_reaches_the_target() {
    let mut random = Generator::new(2);
    let mut in_turn = move |n: u32| {
        let first = random.below(5);
        (0..n).map(|index| u32::from((index + first) % 5 == 0)).sum()
    };
    let (fixed, dear) = successes_and_overhead(false, &mut in_turn);
    let (reached, cheap) = successes_and_overhead(true, &mut in_turn);
    assert_eq!(fixed, 1.0);
    assert!((reached - 0.95).abs() <= 0.01, "{reached}");
    assert!(cheap <= 5.0 / 20.0, "5 repairs: 25 packets, of which always 5 are blocked");
    assert!(dear > 1.5 * cheap);
}

/// Sends what a window in packets allows; every packet is acknowledged one round trip later.
struct IdealTcp {
    estimate: WindowEstimate,
    size: u32,
    next: u32,
    flying: Vec<u32>,
    seen: HashSet<u32>,
}

impl IdealTcp {
    fn new(next: u32, size: u32) -> IdealTcp {
        IdealTcp { estimate: WindowEstimate::default(), size, next, flying: Vec::new(), seen: HashSet::new() }
    }

    fn round(&mut self, window: usize) {
        let acks = std::mem::take(&mut self.flying);
        let beginning = if acks.is_empty() { vec![self.next] } else { Vec::new() };
        for (index, &ack) in acks.iter().chain(&beginning).enumerate() {
            self.estimate.acknowledged(ack);
            let still_to_come = acks.len().saturating_sub(index + 1);
            while still_to_come + self.flying.len() < window {
                self.estimate.sent(self.next, self.size, self.size);
                self.seen.insert(self.estimate.packets());
                self.next = self.next.wrapping_add(self.size);
                self.flying.push(self.next);
            }
        }
    }
}

#[test]
fn the_window_is_what_is_in_flight_over_two_round_trips() {
    let mut random = Generator::new(3);
    for case in 0..trials(100) {
        let start = if case % 2 == 0 { random.bits32() } else { random.below(100_000).wrapping_neg() };
        let mut tcp = IdealTcp::new(start, 100 + random.below(1301));
        let mut window = 1;
        for _ in 0..=random.below(8) {
            window = 1 + random.below(80);
            tcp.round(window as usize);
        }
        for _ in 0..3 {
            tcp.round(window as usize);
        }
        assert_eq!(tcp.estimate.packets(), window);
    }
}

#[test]
fn the_first_window_is_the_initial_one() {
    let mut tcp = IdealTcp::new(7, 1000);
    tcp.round(INITIAL_WINDOW as usize);
    assert_eq!(tcp.seen, HashSet::from([INITIAL_WINDOW]));
    tcp.round(20);
    tcp.round(40);
    assert_eq!(tcp.estimate.packets(), 40);
}

#[test]
fn acks_of_nothing_and_of_too_much_do_no_harm() {
    let mut window = WindowEstimate::default();
    window.acknowledged(5);
    window.sent(1000, 100, 100);
    window.acknowledged(900);
    window.acknowledged(5000); // a FIN's, at most
    window.sent(1100, 100, 100);
    assert_eq!(window.packets(), 1);
}
