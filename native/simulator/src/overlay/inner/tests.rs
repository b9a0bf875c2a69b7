//! How often units are decoded that have no bytes, against the probability that redundancy is chosen by.

use agent::coding::decode_probability;
use agent::receiving::{DecoderLimits, Repair, UnitDecoder};
use coding::Code;

use super::*;
use crate::random::{Purpose, Stream};

const TRIALS: u32 = 2000;
/// Of chance, in either direction, for one comparison.
const PASSES: f64 = 0.5e-6;

fn packet(number: u32) -> Inner {
    Inner {
        place: 0,
        row: 0,
        key: [TCP; 13],
        cargo: Cargo::Data,
        marks: Marks::default(),
        rank: 0,
        push: false,
        number,
        sequence: 0,
        bytes: 1426,
        payload: 1374,
        stamp: 0,
        answer: None,
        window: None,
    }
}

/// Return whether all packets of a unit are there after those that are not blocked have come, and none is another's.
fn is_decoded(unit: UnitShape, blocked: f64, random: &mut Stream) -> bool {
    let packets: Vec<Inner> = (0..unit.k).map(packet).collect();
    let symbol = symbol(&packets, 1428);
    let (mut decoder, mut rebuilt) = (UnitDecoder::new(DecoderLimits::default()), Vec::new());
    for inner in packets {
        if random.unit() >= blocked {
            decoder.source(inner.number, inner, 0.0, &mut rebuilt);
        }
    }
    for index in 0..unit.r {
        if random.unit() >= blocked {
            decoder.repair(Repair { position: 0, unit, index, symbol: symbol.clone() }, 0.0, &mut rebuilt);
        }
    }
    assert!(rebuilt.iter().all(|found| found.position == found.packet.number));
    (0..unit.k).all(|position| decoder.is_known(position))
}

/// Return P(X <= count) and P(X >= count) for X ~ Binomial(TRIALS, p).
fn tails(count: u32, p: f64) -> [f64; 2] {
    let mut below = 0.0;
    let (mut chance, mut here) = (f64::from(TRIALS) * libm::log1p(-p), 0.0);
    for x in 0..=count {
        here = libm::exp(chance);
        below += here;
        chance += libm::log(f64::from(TRIALS - x) / f64::from(x + 1) * p / (1.0 - p));
    }
    [below, 1.0 - below + here]
}

#[test]
fn tails_are_those_of_a_binomial_distribution() {
    let [below, above] = tails(1000, 0.5);
    assert!((below - above).abs() < 1e-9 && (below + above - 1.0 - 0.01784).abs() < 1e-5);
    // by a normal distribution, 5 standard deviations: 2.87e-7
    let [below, _] = tails(888, 0.5);
    assert!((2.0e-7..4.0e-7).contains(&below), "{below}");
}

#[test]
fn units_are_decoded_as_often_as_redundancy_expects() {
    let mut random = Stream::new(17, Purpose::Paths);
    for code in [Code::Xor, Code::Rlc, Code::Ldpc, Code::Mds] {
        for (k, r, blocked) in
            [(1, 1, 0.3), (8, 1, 0.1), (10, 6, 0.2), (32, 14, 0.2), (32, 8, 0.2), (20, 16, 0.4)]
        {
            let expected = decode_probability(code, k, r, blocked);
            let decoded = (0..TRIALS).filter(|_| {
                let unit = UnitShape { code, k, r, seed: random.draw() as u32 };
                is_decoded(unit, blocked, &mut random)
            });
            let decoded = decoded.count() as u32;
            let least = tails(decoded, expected).into_iter().fold(1.0, f64::min);
            assert!(
                least >= PASSES,
                "{code:?}, k {k}, r {r}, pB {blocked}: {decoded} of {TRIALS} decoded, {expected} expected: {least:e}"
            );
        }
    }
}
