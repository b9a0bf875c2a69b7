use agent::coding::{Aim, ClosedUnit, CodingPolicy, CodingRules, Progress, Source, UnitEncoder};

use super::{code, lines, optional, rule, unit_rule};
use crate::support::{tried, Replay, Words};

struct Flow {
    rules: CodingRules,
    encoder: UnitEncoder<String>,
    packets: u32,
}

impl Flow {
    fn of(words: &mut Words) -> Flow {
        let rules = CodingRules::new(CodingPolicy {
            code: code(words),
            redundancy: rule(words),
            target_decode_probability: words.number(),
            unit: unit_rule(words),
            max_k: words.number(),
            max_r: words.number(),
            max_overhead: words.number(),
            flush_s: words.number(),
        });
        Flow { encoder: UnitEncoder::new(&rules), rules, packets: 0 }
    }

    /// Applies one event; returns what it closed, and checks what else was recorded.
    fn event(&mut self, kind: &str, words: &mut Words, random: &mut Replay) -> Vec<ClosedUnit<String>> {
        match kind {
            "take" => {
                let (position, longest) = (words.number(), words.number());
                let (now, push) = (words.number(), words.word() == "1");
                draws(words, random);
                let payload = self.packets.to_string();
                self.packets += 1;
                let source = Source { position, count: 1, longest, push, payload };
                self.encoder.take(source, now, &mut self.rules, random)
            }
            "rows" => {
                let (position, count) = (words.number(), words.number());
                let (width, last): (u32, u32) = (words.number(), words.number());
                let (now, push) = (words.number(), words.word() == "1");
                draws(words, random);
                assert!(count <= self.encoder.room());
                let longest = if count > 1 { width } else { last };
                let source = Source { position, count, longest, push, payload: format!("r0-{count}") };
                self.encoder.take(source, now, &mut self.rules, random)
            }
            "flush" => {
                let (now, deadline): (f64, Option<f64>) = (words.number(), optional(words));
                draws(words, random);
                assert_eq!(self.encoder.deadline(), deadline);
                let due = deadline.is_some_and(|deadline| now >= deadline);
                let closed = if due { self.encoder.end(&mut self.rules, random) } else { None };
                closed.into_iter().collect()
            }
            "end" => {
                draws(words, random);
                self.encoder.end(&mut self.rules, random).into_iter().collect()
            }
            other => panic!("no {other}"),
        }
    }
}

fn draws(words: &mut Words, random: &mut Replay) {
    let drawn = words.word();
    if drawn != "-" {
        random.add(drawn.split(',').map(|draw| draw.parse().unwrap()));
    }
}

fn assert_closed(closed: Vec<ClosedUnit<String>>, words: &mut Words) {
    assert_eq!(words.word(), "|");
    for unit in closed {
        assert_eq!(unit.position, words.number::<u32>());
        let numbers = [unit.k, unit.r, unit.seed, unit.symbol_bytes];
        assert_eq!(numbers, [(); 4].map(|()| words.number::<u32>()));
        assert_eq!(unit.payloads.join(","), words.word());
    }
    assert!(words.rest::<String>().is_empty(), "more units were closed");
}

#[test]
fn units_are_as_recorded() {
    let mut flow: Option<Flow> = None;
    let (mut random, mut seen) = (Replay::default(), 0);
    for (kind, mut words) in lines(include_str!("../../vectors/units.txt")) {
        seen += 1;
        if kind == "flow" {
            flow = Some(Flow::of(&mut words));
            continue;
        }
        let flow = flow.as_mut().expect("a flow comes first");
        match kind {
            "aim" => {
                let (blocking_probability, k) = (words.number(), words.number());
                let progress = Progress { sent_bytes: words.number(), window: optional(&mut words) };
                flow.encoder.set_aim(Aim { blocking_probability, k, flow: progress }, &flow.rules);
            }
            "totals" => {
                let encoder = &flow.encoder;
                let totals = [encoder.units(), encoder.repairs(), encoder.open_packets().into()];
                assert_eq!(totals, [(); 3].map(|()| words.number::<u64>()));
                assert_eq!(encoder.room(), words.number::<u32>());
            }
            _ => {
                let closed = flow.event(kind, &mut words, &mut random);
                assert_closed(closed, &mut words);
                assert_eq!(random.left(), 0, "as many draws as recorded");
            }
        }
    }
    assert_eq!(seen, tried(40 * 38));
}
