use agent::coding::{Margin, Outcomes, UnitId, Verdict};

use super::{assert_about, lines};
use crate::support::Words;

/// One peer's units, and the two margins that they are learned by.
struct Peer {
    outcomes: Outcomes<usize>,
    margins: [Margin; 2],
    units: Vec<UnitId>,
}

impl Peer {
    fn of(words: &mut Words) -> Peer {
        let outcomes = Outcomes::new(words.number());
        let margin = Margin::new(words.number());
        Peer { outcomes, margins: [margin.clone(), margin], units: Vec::new() }
    }

    fn event(&mut self, kind: &str, words: &mut Words) -> Vec<Verdict<usize>> {
        match kind {
            "open" => {
                assert_eq!(self.units.len(), words.number::<usize>());
                self.units.push(self.outcomes.open(words.number()));
                Vec::new()
            }
            "sent" => {
                let (number, count) = (words.number(), words.number());
                let unit = self.units[words.number::<usize>()];
                self.outcomes.sent(number, count, unit);
                Vec::new()
            }
            "closed" => {
                let unit = self.units[words.number::<usize>()];
                self.outcomes.closed(unit, words.number(), words.word() == "1").into_iter().collect()
            }
            "arrived" => self.outcomes.arrived(words.number(), words.number()).into_iter().collect(),
            "lost" => self.outcomes.lost(words.number(), words.number()),
            other => panic!("no {other}"),
        }
    }
}

#[test]
fn outcomes_are_as_recorded() {
    let mut peer: Option<Peer> = None;
    let mut decided = 0;
    for (kind, mut words) in lines(include_str!("../../vectors/outcomes.txt")) {
        if kind == "peer" {
            peer = Some(Peer::of(&mut words));
            continue;
        }
        let peer = peer.as_mut().expect("a peer comes first");
        if kind == "corrected" {
            let p = words.number();
            peer.margins.iter().for_each(|margin| assert_about(margin.corrected(p), words.number()));
            continue;
        }
        for verdict in peer.event(kind, &mut words) {
            peer.margins[verdict.margin].learn(verdict.success, verdict.most);
            decided += 1;
        }
        assert_eq!(peer.outcomes.waiting(), words.number::<usize>());
        for margin in &peer.margins {
            assert_eq!([margin.successes(), margin.failures()], [(); 2].map(|()| words.number::<u64>()));
            assert_eq!(margin.logits(), words.number::<f64>(), "bit for bit");
        }
    }
    assert!(cfg!(miri) || decided > 100, "{decided}");
}
