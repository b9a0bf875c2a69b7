//! Repairs of any kind, many of them wrong: a flow's receiver counts them, yields no wrong packet where that shows, and
//! keeps its bounds.

use crate::support::coded_flow::{packets_of, unit_of, Receiving, CODES};
use agent::receiving::{DecoderLimits, Repair, UnitShape, MAX_K, MAX_R};
use agent::{Generator, Random};
use coding::Code;
use trials::trials;

/// Positions that meet, and those where serial numbers turn.
const FAR: [u32; 4] = [u32::MAX, 1 << 31, (1 << 31) + 1, 5000];

fn bytes(random: &mut Generator, count: u32) -> Vec<u8> {
    (0..count).map(|_| random.bits32() as u8).collect()
}

fn position(random: &mut Generator) -> u32 {
    match random.below(5) {
        0 => FAR[random.below(4) as usize],
        _ => random.below(41),
    }
}

fn any_repair(random: &mut Generator) -> Repair<Vec<u8>> {
    let (code, seed) = (CODES[random.below(4) as usize], [0, 1, u32::MAX][random.below(3) as usize]);
    let unit = UnitShape { code, k: random.below(256), r: random.below(256), seed };
    let bytes = match random.below(8) {
        0 => vec![0; 70_000],
        _ => {
            let count = random.below(41);
            bytes(random, count)
        }
    };
    Repair { position: position(random), unit, index: random.below(256), symbol: bytes }
}

/// Draws a repair that is likely to meet others: one unit's head, random symbols of one length.
fn meeting_repair(random: &mut Generator) -> Repair<Vec<u8>> {
    let unit = UnitShape { code: CODES[random.below(4) as usize], k: 9, r: 4, seed: 1 };
    Repair { position: 3, unit, index: random.below(4), symbol: bytes(random, 20) }
}

#[test]
fn nothing_that_a_peer_sends_breaks_the_decoder() {
    let mut random = Generator::new(29);
    let mut failed_units = 0;
    for _ in 0..trials(400) {
        let limits = DecoderLimits { max_bytes: 3000, max_units: 4, ..DecoderLimits::default() };
        let mut receiver = Receiving::new(limits);
        for number in 0..60 {
            let now = f64::from(number) * 0.05;
            let out = match random.below(3) {
                0 => {
                    let (place, count) = (position(&mut random), random.below(41));
                    receiver.source(place, &bytes(&mut random, count), now)
                }
                1 => receiver.repair(&any_repair(&mut random), now),
                _ => receiver.repair(&meeting_repair(&mut random), now),
            };
            assert!(out.iter().all(|(_, packet)| (1..=65_535).contains(&packet.len())));
            assert!(receiver.0.kept_units() <= 4 && receiver.0.kept_bytes() <= 3000);
        }
        let counters = receiver.0.counters();
        assert_eq!(counters.sources + counters.repairs, 60);
        failed_units += counters.failed_units;
    }
    assert!(failed_units > 0, "some are decoded, and nearly all of these contradict themselves");
}

#[test]
fn repairs_that_disagree_on_their_unit_are_counted_and_harmless() {
    let packets = packets_of(8, 8, 200);
    let repairs = unit_of(&packets, 0, Code::Rlc, 0.3);
    let sound = repairs[1].clone();
    let (unit, symbol) = (sound.unit, sound.symbol.clone());
    let longer = [symbol.clone(), vec![0]].concat();
    let shorter = symbol[..symbol.len() - 1].to_vec();
    let wrong = [
        Repair { unit: UnitShape { k: 9, ..unit }, ..sound.clone() },
        Repair { unit: UnitShape { r: 5, ..unit }, ..sound.clone() },
        Repair { unit: UnitShape { seed: unit.seed ^ 1, ..unit }, ..sound.clone() },
        Repair { unit: UnitShape { code: Code::Xor, ..unit }, ..sound.clone() },
        Repair { symbol: shorter, ..sound.clone() },
        Repair { symbol: longer, ..sound },
    ];
    for repair in wrong {
        let mut receiver = Receiving::new(DecoderLimits::default());
        for index in 0..6 {
            receiver.source(index, &packets[index as usize], 0.0);
        }
        assert!(receiver.repair(&repairs[0], 0.0).is_empty());
        assert!(receiver.repair(&repair, 0.0).is_empty());
        assert_eq!(receiver.0.counters().inconsistent_repairs, 1);
        let wanted = [(6, packets[6].clone()), (7, packets[7].clone())];
        assert_eq!(receiver.repair(&repairs[2], 0.0), wanted);
    }
}

#[test]
fn impossible_heads_and_symbols_are_counted() {
    let repair = |k, r, index, bytes| Repair {
        position: 0,
        unit: UnitShape { code: Code::Rlc, k, r, seed: 0 },
        index,
        symbol: vec![0; bytes],
    };
    let heads = [(0, 1, 0), (MAX_K + 1, 1, 0), (4, MAX_R + 1, 0), (4, 2, 2)];
    let wrong_heads = heads.map(|(k, r, index)| repair(k, r, index, 40));
    let wrong_symbols = [0, 1, 2, 65_538].map(|bytes| repair(4, 2, 0, bytes));
    for repair in wrong_heads.into_iter().chain(wrong_symbols) {
        let mut receiver = Receiving::new(DecoderLimits::default());
        assert!(receiver.repair(&repair, 0.0).is_empty());
        assert_eq!((receiver.0.counters().malformed_repairs, receiver.0.kept_units()), (1, 0));
    }
}

/// A rebuilt length that does not fit, or no zeros where there must be: the unit is given up, and stays so.
#[test]
fn a_unit_with_a_corrupt_repair_yields_no_wrong_bytes_where_that_shows() {
    for code in CODES {
        let packets: Vec<Vec<u8>> =
            (0..8u8).map(|index| vec![index; if index == 0 { 10 } else { 40 }]).collect();
        let repairs = unit_of(&packets, 0, code, 0.3);
        let mut corrupt = repairs[0].clone();
        *corrupt.symbol.last_mut().expect("a symbol") ^= 1;
        let mut receiver = Receiving::new(DecoderLimits::default());
        for index in 1..8 {
            receiver.source(index, &packets[index as usize], 0.0); // packet 0 has 30 bytes of padding
        }
        let mut out = receiver.repair(&corrupt, 0.0);
        if code == Code::Ldpc {
            // its first repair may not cover packet 0
            out.extend(repairs[1..].iter().flat_map(|repair| receiver.repair(repair, 0.0)));
        }
        assert!(out.is_empty(), "{code:?}");
        assert_eq!(receiver.0.counters().failed_units, 1, "{code:?}");
        assert!(!receiver.0.is_known(0));
        assert!(receiver.repair(&repairs[repairs.len() - 1], 0.0).is_empty());
        assert!(receiver.0.counters().late_repairs >= 1);
        assert!(receiver.source(0, &packets[0], 0.0).is_empty());
        assert!(receiver.0.is_known(0));
    }
}

#[test]
fn a_source_too_long_for_its_unit_gives_the_unit_up() {
    let packets = packets_of(4, 9, 20);
    let repairs = unit_of(&packets, 0, Code::Rlc, 0.4);
    let mut receiver = Receiving::new(DecoderLimits::default());
    receiver.source(0, &[0; 500], 0.0);
    for index in [1, 2] {
        receiver.source(index, &packets[index as usize], 0.0);
    }
    assert!(receiver.repair(&repairs[0], 0.0).is_empty());
    assert_eq!(receiver.0.counters().failed_units, 1);
}

#[test]
fn memory_is_bounded_in_bytes_and_units() {
    let limits = DecoderLimits { max_bytes: 100_000, max_units: 8, ..DecoderLimits::default() };
    let mut receiver = Receiving::new(limits);
    for number in 0..trials(300) {
        receiver.source(1000 * number, &[0; 1400], 0.0);
        let unit = UnitShape { code: Code::Rlc, k: 100, r: 60, seed: number };
        receiver.repair(&Repair { position: 1000 * number + 5, unit, index: 1, symbol: vec![0; 1402] }, 0.0);
        assert!(receiver.0.kept_bytes() <= 100_000 && receiver.0.kept_units() <= 8);
    }
    let mut giant = Receiving::new(limits);
    let unit = UnitShape { code: Code::Rlc, k: 100, r: 64, seed: 1 };
    for index in 0..64 {
        giant.repair(&Repair { position: 0, unit, index, symbol: vec![0; 65_000] }, 0.0);
        assert!(giant.0.kept_bytes() <= 100_000);
    }
}
