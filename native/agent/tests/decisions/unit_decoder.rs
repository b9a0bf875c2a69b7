//! What a flow's receiver rebuilds over paths that lose, delay and double, and what it keeps.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::coded_flow::{packets_of, policy, unit_of, Receiving, Sending, CODES};
use agent::receiving::{DecoderLimits, Repair, SOURCE_WINDOW};
use agent::{Generator, Random};
use coding::Code;
use trials::trials;

#[derive(Clone)]
enum Sent {
    Source(u32),
    Repair(Repair<Vec<u8>>),
}

/// How a way treats what is sent over it.
#[derive(Clone, Copy)]
struct Harm {
    loss: f64,
    /// Delays are drawn up to here, in the time between two packets.
    spread: f64,
    doubled: f64,
}

/// Returns what comes of 60 packets and their repairs, in the order in which it comes.
fn come_over(
    sent: &BTreeMap<u64, (u32, Vec<u8>)>,
    sender: &mut Sending,
    harm: Harm,
    random: &mut Generator,
) -> Vec<Sent> {
    let mut way: Vec<(f64, Sent)> = Vec::new();
    for (&clock, (position, packet)) in sent {
        let repairs = sender.add(*position, packet, clock as f64, random.unit() < 0.1);
        let items = std::iter::once(Sent::Source(*position)).chain(repairs.into_iter().map(Sent::Repair));
        for item in items {
            for _ in 0..if random.unit() < harm.doubled { 2 } else { 1 } {
                if random.unit() >= harm.loss {
                    way.push((clock as f64 + harm.spread * random.unit(), item.clone()));
                }
            }
        }
    }
    way.extend(sender.flush(1e9).into_iter().map(|repair| (70.0, Sent::Repair(repair))));
    way.sort_by(|first, second| first.0.total_cmp(&second.0));
    way.into_iter().map(|(_, item)| item).collect()
}

/// Returns how many packets were rebuilt of a flow that begins at a position.
fn exact(code: Code, start: u32, harm: Harm, random: &mut Generator) -> usize {
    let k = 1 + random.below(19);
    let mut sender = Sending::new(policy(code), 0.25, k);
    let positions = (0..60).map(|ahead: u32| start.wrapping_add(ahead));
    let sent: BTreeMap<u64, (u32, Vec<u8>)> =
        (0..).zip(positions.zip(packets_of(60, random.bits64(), 100))).collect();
    let bytes_of: BTreeMap<u32, &Vec<u8>> =
        sent.values().map(|(position, packet)| (*position, packet)).collect();
    let way = come_over(&sent, &mut sender, harm, random);
    let mut receiver = Receiving::new(DecoderLimits::default());
    let (mut arrived, mut rebuilt) = (BTreeSet::new(), BTreeSet::new());
    for (number, item) in way.into_iter().enumerate() {
        let now = number as f64 * 1e-4;
        let out = match item {
            Sent::Repair(repair) => receiver.repair(&repair, now),
            Sent::Source(position) => {
                arrived.insert(position);
                receiver.source(position, bytes_of[&position], now)
            }
        };
        for (position, packet) in out {
            assert!(!arrived.contains(&position), "a source that was there came again as rebuilt");
            assert!(rebuilt.insert(position), "rebuilt twice");
            assert_eq!(&packet, bytes_of[&position]);
        }
    }
    let counters = receiver.0.counters();
    assert_eq!(counters.recovered, rebuilt.len() as u64);
    assert_eq!([counters.failed_units, counters.malformed_repairs, counters.inconsistent_repairs], [0; 3]);
    assert!(arrived.union(&rebuilt).all(|&position| receiver.0.is_known(position)));
    rebuilt.len()
}

#[test]
#[cfg_attr(miri, ignore = "judges shares of thousands")]
fn rebuilt_packets_are_exactly_those_that_were_sent() {
    let mut random = Generator::new(17);
    for code in CODES {
        let mut rebuilt = 0;
        for start in [0, 5, u32::MAX - 19, (1 << 31) - 7] {
            for loss in [0.05, 0.15, 0.3] {
                for spread in [0.0, 5.0, 40.0] {
                    rebuilt += exact(code, start, Harm { loss, spread, doubled: 0.1 }, &mut random);
                }
            }
        }
        assert!(rebuilt > 100, "{code:?} rebuilt {rebuilt} packets of 2160");
    }
}

/// RLC, in any order; units that lack rank (1/255) need a packet or two more.
#[test]
fn any_k_of_a_units_packets_give_all_of_them() {
    let mut random = Generator::new(4);
    let start = u32::MAX - 2;
    for k in (1..=trials(30)).cycle().take(trials(120)) {
        let packets = packets_of(k, random.bits64(), 200);
        let repairs = unit_of(&packets, start, Code::Rlc, 0.45);
        let mut order: Vec<usize> = (0..k + repairs.len()).collect();
        for left in (1..order.len()).rev() {
            order.swap(left, random.below(left as u32 + 1) as usize);
        }
        let mut receiver = Receiving::new(DecoderLimits::default());
        let mut have = BTreeMap::new();
        for (count, item) in order.into_iter().enumerate() {
            let out = match packets.get(item) {
                Some(packet) => {
                    have.insert(item as u32, packet.clone());
                    receiver.source(start.wrapping_add(item as u32), packet, 0.0)
                }
                None => receiver.repair(&repairs[item - k], 0.0),
            };
            have.extend(out.into_iter().map(|(position, packet)| (position.wrapping_sub(start), packet)));
            assert!(count + 1 < k + 2 || have.len() == k);
        }
        assert_eq!(have, (0..).zip(packets).collect());
    }
}

#[test]
fn rebuilt_packets_come_out_in_order_across_the_wrap() {
    for start in [u32::MAX - 4, (1 << 31) - 5] {
        let packets = packets_of(10, 4, 200);
        let repairs = unit_of(&packets, start, Code::Rlc, 0.4);
        let mut receiver = Receiving::new(DecoderLimits::default());
        for index in [0, 9, 3, 7] {
            receiver.source(start.wrapping_add(index), &packets[index as usize], 0.0);
        }
        let out = repairs.iter().flat_map(|repair| receiver.repair(repair, 0.0));
        let positions: Vec<u32> = out.map(|(position, _)| position).collect();
        assert_eq!(positions, [1, 2, 4, 5, 6, 8].map(|ahead| start.wrapping_add(ahead)));
    }
}

/// What one unit rebuilds is the source that another one lacked.
#[test]
fn overlapping_units_help_one_another() {
    let packets = packets_of(9, 5, 200);
    let first = unit_of(&packets[..6], 0, Code::Rlc, 0.15);
    let second = unit_of(&packets[4..], 4, Code::Rlc, 0.15);
    let mut receiver = Receiving::new(DecoderLimits::default());
    for index in [0, 1, 2, 3, 7, 8] {
        receiver.source(index as u32, &packets[index], 0.0); // 4, 5 and 6 are missing
    }
    assert!(receiver.repair(&first[0], 0.0).is_empty());
    assert!(receiver.repair(&second[0], 0.0).is_empty());
    let wanted = [(4, packets[4].clone()), (6, packets[6].clone())];
    assert_eq!(receiver.source(5, &packets[5], 0.0), wanted);
}

#[test]
fn packets_are_rebuilt_once_there_are_as_many_repairs_as_gaps() {
    let packets = packets_of(8, 6, 200);
    let repairs = unit_of(&packets, 100, Code::Rlc, 0.3); // r = 4
    let mut receiver = Receiving::new(DecoderLimits::default());
    for index in [0, 1, 5, 6, 7] {
        receiver.source(100 + index, &packets[index as usize], 0.0);
    }
    assert!(receiver.0.is_known(100) && !receiver.0.is_known(102));
    assert!(receiver.repair(&repairs[0], 0.0).is_empty());
    assert!(receiver.source(103, &packets[3], 0.0).is_empty());
    let wanted = [(102, packets[2].clone()), (104, packets[4].clone())];
    assert_eq!(receiver.repair(&repairs[3], 0.0), wanted);
    assert!(receiver.0.is_known(102));
    receiver.repair(&repairs[1], 0.0);
    receiver.source(102, &packets[2], 0.0);
    let counters = receiver.0.counters();
    assert_eq!((counters.surplus_repairs, counters.duplicate_sources), (1, 1));
}

#[test]
fn old_units_and_old_sources_are_forgotten() {
    let packets = packets_of(8, 7, 200);
    let repairs = unit_of(&packets, 0, Code::Rlc, 0.3);
    let mut receiver = Receiving::new(DecoderLimits { max_age_s: 1.0, ..DecoderLimits::default() });
    receiver.source(0, &packets[0], 0.0);
    receiver.repair(&repairs[0], 5.0);
    assert_eq!(receiver.0.deadline(), Some(6.0));
    receiver.0.expire(5.9);
    assert_eq!(receiver.0.kept_units(), 1);
    receiver.0.expire(6.0);
    let expired = receiver.0.counters().expired_units;
    assert_eq!((receiver.0.kept_units(), expired, receiver.0.deadline()), (0, 1, None));
    for position in 8..SOURCE_WINDOW + 20 {
        receiver.source(position, b"y", 6.0);
    }
    assert!(!receiver.0.is_known(0));
    assert!(receiver.source(3, &packets[3], 6.0).is_empty());
    assert!(receiver.repair(&repairs[1], 6.0).is_empty());
    let counters = receiver.0.counters();
    assert_eq!((counters.late_sources, counters.late_repairs), (1, 1));
}

#[test]
#[cfg_attr(miri, ignore = "takes more packets than Miri can process in minutes")]
fn the_window_of_remembered_sources_moves_on() {
    for start in [0, u32::MAX - 299, (1 << 31) - 300] {
        let mut receiver = Receiving::new(DecoderLimits::default());
        for index in 0..3 * SOURCE_WINDOW {
            receiver.source(start.wrapping_add(index), b"12345", 0.0);
            assert_eq!(receiver.0.kept_bytes(), 5 * (index + 1).min(SOURCE_WINDOW + 1) as usize);
        }
        assert!(!receiver.0.is_known(start.wrapping_add(2 * SOURCE_WINDOW - 2)));
        assert!(receiver.0.is_known(start.wrapping_add(2 * SOURCE_WINDOW - 1)));
    }
}

#[test]
fn packets_are_rebuilt_of_a_flow_that_lost_all_sources() {
    let packets = packets_of(3, 11, 200);
    let repairs = unit_of(&packets, 50, Code::Rlc, 0.6);
    assert!(repairs.len() >= 4);
    let mut receiver = Receiving::new(DecoderLimits::default());
    let out: Vec<_> = repairs.iter().flat_map(|repair| receiver.repair(repair, 0.0)).collect();
    assert_eq!(out, (50..).zip(packets).collect::<Vec<_>>());
}

#[test]
fn a_peer_may_start_anywhere_and_early_packets_come_late() {
    let (packets, start) = (packets_of(6, 10, 200), u32::MAX - 1);
    let repairs = unit_of(&packets, start, Code::Rlc, 0.3);
    assert_eq!(repairs.len(), 3);
    let mut receiver = Receiving::new(DecoderLimits::default());
    receiver.source(3, &packets[5], 0.0);
    let mut out: Vec<_> = repairs.iter().flat_map(|repair| receiver.repair(repair, 0.0)).collect();
    for index in [0, 1] {
        out.extend(receiver.source(start.wrapping_add(index), &packets[index as usize], 0.0));
    }
    let missing = [2, 3, 4].map(|index| (start.wrapping_add(index), packets[index as usize].clone()));
    assert_eq!(out, missing);
}

#[test]
fn a_unit_that_begins_before_what_is_remembered_is_forgotten_with_the_first_source() {
    let packets = packets_of(4, 12, 200);
    let repairs = unit_of(&packets, 0, Code::Xor, 0.3);
    let mut receiver = Receiving::new(DecoderLimits::default());
    receiver.repair(&repairs[0], 0.0);
    receiver.source(SOURCE_WINDOW + 1, &packets[0], 0.0);
    assert_eq!((receiver.0.kept_units(), receiver.0.counters().expired_units), (0, 1));
    assert!(receiver.source(2, &packets[2], 0.0).is_empty());
}

#[test]
fn a_unit_that_reaches_as_far_ahead_as_numbers_do_is_refused() {
    let packets = packets_of(8, 13, 200);
    let floor = 5000u32;
    let repairs = unit_of(&packets, floor + (1 << 31) - 1, Code::Rlc, 0.3);
    let mut receiver = Receiving::new(DecoderLimits::default());
    receiver.source(floor + SOURCE_WINDOW, &packets[0], 0.0);
    repairs.iter().for_each(|repair| assert!(receiver.repair(repair, 0.0).is_empty()));
    let counters = receiver.0.counters();
    assert_eq!((receiver.0.kept_units(), counters.late_repairs), (0, repairs.len() as u64));
}
