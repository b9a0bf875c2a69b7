//! What an agent remembers of its datagrams, by who asks for it.

use agent::blocking::EstimatorKind;
use agent::host::Bytes;
use agent::packet::{Burst, Sizes};
use agent::paths::PathSettings;
use agent::peers::{Known, Peers};
use agent::sending::{EstimatorChoice, SendPolicy, Sender, Serving};
use agent::{Generator, LeafId};
use datapath::inner::{FlowKey, Seen, TCP, TRANSPORT};

fn policy(estimator: Option<EstimatorChoice>) -> SendPolicy {
    SendPolicy { estimator, ..SendPolicy::plain(0.001) }
}

fn serving() -> Serving {
    Serving { policies: vec![PathSettings::Spray.policy(Generator::new(2))], serves: [0; 4] }
}

#[test]
fn datagrams_are_remembered_while_an_estimator_asks_what_became_of_them() {
    let (mut sender, mut peers) =
        (Sender::<()>::new(policy(None), serving(), Generator::new(1)), Peers::<Bytes>::default());
    let known = Known { address: [192, 0, 2, 1], session: 1, leaf: LeafId(1), overlay: Vec::new() };
    let to = peers.add(known);
    sender.adopt(&mut peers[to]);
    let flow = FlowKey::V4([TCP; 13]);
    let seen = Seen {
        flow,
        protocol: TCP,
        transport: TRANSPORT,
        payload: 1000,
        control: false,
        push: false,
        opening: false,
        ending: false,
        finishing: false,
    };
    let estimator = Some(EstimatorChoice { kind: EstimatorKind::Paths, sampling_s: None });
    for asked in [None, estimator, None] {
        let now = 1.0;
        sender.set_policy(policy(asked), serving(), &mut peers, now);
        let sizes = Sizes { count: 1, each: 1040, last: 1040 };
        let burst = Burst { flow, seen, ecn: 0, sequence: Some(0), step: 1000, sizes, packets: () };
        sender.send(&burst, to, &mut peers, now);
        let number = peers[to].number.wrapping_sub(1);
        assert_eq!(peers[to].sent.entropy_of(number).is_some(), asked.is_some());
        assert_eq!(
            peers[to].sent.entropy_of(1).is_some(),
            asked.is_some(),
            "what one policy kept, none goes on keeping"
        );
    }
}
