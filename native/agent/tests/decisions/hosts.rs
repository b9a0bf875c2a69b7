//! What the agents of several hosts do together, datagram by datagram.

use agent::blocking::EstimatorKind;
use agent::flow_record::Side;
use agent::sending::EstimatorChoice;
use agent::LeafId;

use crate::support::hosts::{delivered, hand_over, host, known, packet, policy, set_peers};

#[test]
fn a_gap_in_one_peers_datagrams_delays_no_feedback_to_another() {
    let (mut one, mut other) = (host(1, &[3], policy()), host(2, &[3], policy()));
    let mut here = host(3, &[1, 2], policy());
    (0..3).for_each(|number| one.packet_from_host(&packet(1, 3, number), 0.0));
    let sent = one.datagrams_to_send();
    [0, 2].into_iter().for_each(|kept: usize| hand_over(&sent[kept], 1, 1, &mut here, 0.0));
    here.handle_timer(0.005);
    assert_eq!(here.datagrams_to_send().len(), 1, "what came of the first peer is reported");
    assert!(here.timer() > 0.25, "its missing datagram can wait");
    other.packet_from_host(&packet(2, 3, 0), 0.01);
    hand_over(&other.datagrams_to_send()[0], 2, 1, &mut here, 0.01);
    assert_eq!(here.timer(), 0.01 + 0.005);
    here.handle_timer(0.015);
    let addresses: Vec<_> = here.datagrams_to_send().iter().map(|datagram| datagram.address).collect();
    assert_eq!(addresses, [known(2).address]);
    assert!((here.timer() - 0.3).abs() < 1e-9, "the missing datagram is given up when its time is over");
    here.handle_timer(0.3);
    assert_eq!(here.datagrams_to_send()[0].address, known(1).address);
}

#[test]
fn a_clock_that_drifts_blocks_no_path() {
    let mut rules = policy();
    rules.send.estimator = Some(EstimatorChoice { kind: EstimatorKind::Paths, sampling_s: None });
    let mut here = host(1, &[11, 12], rules);
    let mut peers =
        [(11, 0.0), (12, 5e-5)].map(|(number, drift)| (number, drift, host(number, &[1], policy())));
    let mut most = 0f64;
    for step in 0..8000 {
        let now = 0.05 * f64::from(step);
        for (number, drift, peer) in &mut peers {
            let theirs = now * (1.0 + *drift) + 0.001;
            here.packet_from_host(&packet(1, *number, step), now);
            for sent in here.datagrams_to_send() {
                hand_over(&sent, 1, 1 + (step % 4) as u16, peer, theirs);
            }
            peer.handle_timer(theirs + 0.005);
            for sent in peer.datagrams_to_send() {
                hand_over(&sent, *number, 0, &mut here, now + 0.006);
            }
        }
        if step > 100 {
            most = here.sender.blocking_probability(LeafId(1), now + 0.007).map_or(1.0, |pb| pb.max(most));
        }
    }
    assert!(most < 0.05, "{most}");
}

#[test]
fn a_flow_that_is_older_than_what_is_known_of_it_loses_nothing_that_overtakes() {
    for before in [0, 10, 4095, 4096, 5000, 9000] {
        let (mut one, mut here) = (host(1, &[2], policy()), host(2, &[1], policy()));
        for number in 0..before {
            one.packet_from_host(&packet(1, 2, number), 0.0);
        }
        one.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 1, 1, &mut here, 0.0));
        assert!(delivered(&mut here).into_iter().eq(0..before));
        [&[][..], &[1][..]].into_iter().for_each(|peers| set_peers(&mut here, peers));
        here.flow_report(true);
        for number in 0..10 {
            one.packet_from_host(&packet(1, 2, number), 0.1);
        }
        let sent = one.datagrams_to_send();
        sent.iter().rev().chain(&sent).for_each(|sent| hand_over(sent, 1, 1, &mut here, 0.1));
        assert!(delivered(&mut here).into_iter().eq((0..10).rev()), "behind {before} packets");
        let Side::Receiver(arrived) = &here.flow_report(true)[0].side else {
            panic!("what came is reported")
        };
        assert_eq!(arrived.lost, if before + 9 < 4096 { u64::from(before) } else { 0 });
    }
}
