//! What a receiver rebuilds, counts and forgets, as the Python decoder did (recorded at d7038cc).

use crate::support::{recorded, Words};
use agent::host::Bytes;
use agent::receiving::{DecoderCounters, DecoderLimits, Rebuilt, Repair, UnitDecoder, UnitShape};
use coding::packets::Repairs;
use coding::{Code, Kernel};

/// Returns the packet of a position: the same bytes wherever it is made.
fn packet_of(position: u32, size: u32) -> Vec<u8> {
    let mut state = position.wrapping_mul(2_654_435_761).wrapping_add(size);
    let byte = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..size).map(byte).collect()
}

/// Returns the repair that a line describes: of a sound unit, then spoilt as the mark says.
fn repair_of(words: &mut Words<'_>) -> Repair<Bytes> {
    let position: u32 = words.number();
    let code = Code::numbered(words.number()).expect("a code");
    let (k, r, index, seed) = (words.number(), words.number(), words.number(), words.number());
    let sent_index: usize = words.number();
    let sizes = words.word().split(',').map(|size| size.parse().expect("a size"));
    let places = (0..).map(|ahead| position.wrapping_add(ahead));
    let packets: Vec<Vec<u8>> = places.zip(sizes).map(|(place, size)| packet_of(place, size)).collect();
    let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    let sent_r: usize = words.number();
    let repairs = Repairs::encode(code, Kernel::best(), &packets, sent_r, seed).expect("a unit");
    let (length, rest) = repairs.symbols().nth(sent_index).expect("a repair");
    let mut symbol = [length, rest].concat();
    match words.word() {
        "x" => symbol[1] ^= 1,
        "s" => symbol.truncate(2),
        "l" => symbol.push(0),
        _ => {}
    }
    Repair { position, unit: UnitShape { code, k, r, seed }, index, symbol: symbol.into() }
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

#[test]
fn units_are_rebuilt_counted_and_forgotten_as_recorded() {
    let mut decoder = UnitDecoder::new(DecoderLimits::default());
    for (number, line) in recorded(include_str!("../vectors/decoder.txt")) {
        let (mut words, mut out) = (Words::of(line), Vec::<Rebuilt<Bytes>>::new());
        match words.word() {
            "new" => {
                let (max_bytes, max_units, max_age_s) = (words.number(), words.number(), words.number());
                decoder = UnitDecoder::new(DecoderLimits { max_bytes, max_units, max_age_s });
                continue;
            }
            "ask" => {
                let position = words.number();
                let known = u8::from(decoder.is_known(position));
                assert_eq!(known, words.number::<u8>(), "line {number}: {line}");
                continue;
            }
            "source" => {
                let (position, size) = (words.number(), words.number());
                decoder.source(position, packet_of(position, size).into(), words.number(), &mut out);
            }
            _ => {
                let repair = repair_of(&mut words);
                decoder.repair(repair, words.number(), &mut out);
            }
        }
        let sum =
            |packet: &[u8]| packet.iter().map(|&byte| u32::from(byte)).sum::<u32>() + packet.len() as u32;
        let positions: Vec<String> = out
            .iter()
            .map(|rebuilt_packet| format!("{}:{}", rebuilt_packet.position, sum(&rebuilt_packet.packet)))
            .collect();
        assert_eq!(format!("[{}]", positions.join(",")), words.word(), "line {number}: {line}");
        let DecoderCounters {
            sources,
            repairs,
            recovered,
            duplicate_sources,
            late_sources,
            surplus_repairs,
            duplicate_repairs,
            late_repairs,
            malformed_repairs,
            inconsistent_repairs,
            failed_units,
            expired_units,
        } = decoder.counters();
        let said = [
            sources,
            repairs,
            recovered,
            duplicate_sources,
            late_sources,
            surplus_repairs,
            duplicate_repairs,
            late_repairs,
            malformed_repairs,
            inconsistent_repairs,
            failed_units,
            expired_units,
        ];
        let said = said.map(|count| count.to_string()).join(",");
        assert_eq!(said, words.word(), "line {number}: {line}");
        let said = format!("{} {}", decoder.kept_bytes(), decoder.kept_units());
        assert_eq!(said, format!("{} {}", words.word(), words.word()), "line {number}: {line}");
        assert_eq!(
            optional(decoder.deadline()),
            words.word().trim_end_matches(".0"),
            "line {number}: {line}"
        );
    }
}
