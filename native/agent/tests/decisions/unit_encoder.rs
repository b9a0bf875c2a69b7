//! When units of a flow close, and how many repairs they get.

use crate::support::coded_flow::{packets_of, policy, unit_of, Sending};
use agent::coding::{CodingPolicy, RedundancyRule, UnitRule};
use agent::receiving::Repair;
use coding::Code;

fn sizes(repairs: &[Repair<Vec<u8>>]) -> Vec<(u32, u32)> {
    repairs.iter().map(|repair| (repair.position, repair.unit.k)).collect()
}

#[test]
fn a_unit_closes_at_k_with_the_papers_repairs() {
    let mut sender = Sending::new(policy(Code::Rlc), 0.2, 10);
    let mut made: Vec<Vec<Repair<Vec<u8>>>> =
        (0..10).map(|index| sender.add(7 + index, &vec![b'x'; index as usize + 1], 0.0, false)).collect();
    let last = made.pop().expect("ten packets");
    assert!(made.iter().all(Vec::is_empty));
    // ceil(10 / 0.8 - 10) = 3
    let heads: Vec<_> = last.iter().map(|r| (r.position, r.unit.k, r.unit.r, r.index)).collect();
    assert_eq!(heads, [(7, 10, 3, 0), (7, 10, 3, 1), (7, 10, 3, 2)]);
    assert!(last.iter().all(|repair| repair.symbol.len() == 2 + 10));
    assert!(last.iter().all(|repair| repair.unit.seed == last[0].unit.seed));
    assert_eq!(sender.encoder.deadline(), None);
}

#[test]
fn a_push_closes_the_unit_with_repairs_for_what_it_holds() {
    let mut sender = Sending::new(policy(Code::Rlc), 0.2, 10);
    assert!(sender.add(0, b"a", 0.0, false).is_empty());
    let repairs = sender.add(1, b"bc", 0.0, true);
    let shapes: Vec<_> = repairs.iter().map(|repair| (repair.unit.k, repair.unit.r)).collect();
    assert_eq!(shapes, [(2, 1)]);
}

#[test]
fn an_idle_unit_closes_at_its_deadline_and_not_before() {
    let mut sender = Sending::new(policy(Code::Rlc), 0.2, 32);
    assert_eq!(sender.encoder.deadline(), None);
    sender.add(0, b"a", 1.0, false);
    sender.add(1, b"b", 1.002, false);
    assert_eq!(sender.encoder.deadline(), Some(1.002 + 0.005));
    assert!(sender.flush(1.0069).is_empty());
    assert_eq!(sizes(&sender.flush(1.0071)), [(0, 2)]);
    assert!(sender.flush(9.0).is_empty());
    assert_eq!(sender.encoder.open_packets(), 0);
}

#[test]
fn a_jump_of_positions_closes_the_unit_before_it() {
    let mut sender = Sending::new(policy(Code::Rlc), 0.2, 32);
    sender.add(5, b"a", 0.0, false);
    sender.add(6, b"b", 0.0, false);
    assert_eq!(sizes(&sender.add(9, b"c", 0.0, false)), [(5, 2)]);
    assert_eq!(sizes(&sender.end()), [(9, 1)]);
}

#[test]
fn a_unit_goes_on_across_the_wrap_of_positions() {
    let mut sender = Sending::new(policy(Code::Rlc), 0.2, 4);
    let positions = [u32::MAX - 1, u32::MAX, 0, 1];
    let made = positions.map(|position| sizes(&sender.add(position, b"a", 0.0, false)));
    assert_eq!(made, [vec![], vec![], vec![], vec![(u32::MAX - 1, 4)]]);
}

#[test]
fn nothing_is_added_where_nothing_is_blocked() {
    for redundancy in [RedundancyRule::Paper, RedundancyRule::TargetDecodeProbability] {
        let mut sender = Sending::new(CodingPolicy { redundancy, ..policy(Code::Rlc) }, 0.0, 4);
        assert!((0..4).all(|position| sender.add(position, b"a", 0.0, false).is_empty()));
        assert_eq!((sender.encoder.units(), sender.encoder.repairs()), (1, 0));
    }
}

#[test]
fn unit_size_is_cut_to_the_policys() {
    let mut sender = Sending::new(CodingPolicy { max_k: 4, ..policy(Code::Rlc) }, 0.2, 100);
    let made: Vec<usize> = (0..4).map(|position| sender.add(position, b"a", 0.0, false).len()).collect();
    assert_eq!(made, [0, 0, 0, 1]);
    sender.aim(0.2, 0);
    assert_eq!(sender.add(4, b"a", 0.0, false).len(), 1);
}

#[test]
fn the_same_seed_gives_the_same_repairs() {
    let packets = packets_of(40, 3, 200);
    let symbols = || -> Vec<Vec<u8>> {
        unit_of(&packets, 0, Code::Rlc, 0.2).into_iter().map(|repair| repair.symbol).collect()
    };
    assert_eq!(symbols().len(), 10);
    assert_eq!(symbols(), symbols());
}

/// TCP sets PSH at the end of every write, in the middle of windows.
#[test]
fn a_push_closes_a_unit_at_once_but_a_window_only_if_nothing_follows_soon() {
    let near = |deadline: Option<f64>, wanted: f64| deadline.is_some_and(|at| (at - wanted).abs() < 1e-9);
    for unit in [UnitRule::Optimal, UnitRule::Window] {
        let rule = RedundancyRule::OnePerUnit;
        let policy = CodingPolicy { redundancy: rule, unit, flush_s: 0.01, ..policy(Code::Xor) };
        let mut sender = Sending::new(policy, 0.1, 8);
        assert!(sender.add(0, b"a", 1.0, false).is_empty());
        assert!(near(sender.encoder.deadline(), 1.01));
        let repairs = sender.add(1, b"b", 1.0, true);
        if unit == UnitRule::Optimal {
            assert_eq!(sizes(&repairs), [(0, 2)]);
            continue;
        }
        assert!(repairs.is_empty());
        assert!(near(sender.encoder.deadline(), 1.0025));
        assert!(sender.add(2, b"c", 1.002, false).is_empty());
        assert!(near(sender.encoder.deadline(), 1.012));
        assert!(sender.flush(1.0119).is_empty());
        assert_eq!(sizes(&sender.flush(1.0121)), [(0, 3)]);
    }
}
