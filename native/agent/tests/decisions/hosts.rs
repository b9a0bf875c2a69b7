//! What the agents of several hosts do together, datagram by datagram.

use agent::blocking::EstimatorKind;
use agent::flow_record::{FlowRecord, Side};
use agent::host::Core;
use agent::paths::{LivePaths, PathSettings};
use agent::peers::Known;
use agent::sending::{EstimatorChoice, Serving};
use agent::underlay::stamp_of;
use agent::{Generator, LeafId};
use coding::Code;

use crate::support::coded_flow;
use crate::support::hosts::{delivered, hand_over, host, known, packet, policy, segment_of_tcp, set_peers};
use trials::trials;

#[test]
fn a_clock_that_drifts_blocks_no_path() {
    let mut rules = policy();
    rules.send.estimator = Some(EstimatorChoice { kind: EstimatorKind::Paths, sampling_s: None });
    let mut here = host(1, &[11, 12], rules);
    let mut peers =
        [(11, 0.0), (12, 5e-5)].map(|(number, drift)| (number, drift, host(number, &[1], policy())));
    let mut most = 0f64;
    for step in 0..trials(8000) {
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
#[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
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

#[test]
fn the_receiver_of_an_idle_flow_forgets_it_later_than_its_sender() {
    let (mut one, mut here) = (host(1, &[2], policy()), host(2, &[1], policy()));
    let mut pass = |here: &mut Core, numbers: std::ops::Range<u32>, now: f64| {
        numbers.for_each(|number| one.packet_from_host(&packet(1, 2, number), now));
        one.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 1, 1, here, now));
    };
    pass(&mut here, 0..10, 0.0);
    here.handle_timer(60.5); // its sender looks for idle flows half a second later
    pass(&mut here, 10..12, 60.6);
    assert!(delivered(&mut here).into_iter().eq(0..12));
    let report = here.flow_report(true);
    let [FlowRecord { side: Side::Receiver(arrived), packets: 12, .. }] = &report[..] else {
        panic!("one flow of twelve packets, not {report:?}")
    };
    assert_eq!(arrived.lost, 0);
    here.handle_timer(123.0);
    assert!(here.totals().contains(&("receive_flows", 0)));
}

#[test]
#[cfg_attr(miri, ignore = "takes more datagrams than Miri can process in minutes")]
fn what_is_overdue_blocks_the_path_that_its_label_names() {
    let mut rules = policy();
    rules.send.estimator = Some(EstimatorChoice { kind: EstimatorKind::Paths, sampling_s: None });
    rules.send.coding[1] = Some(coded_flow::policy(Code::Xor));
    let mut here = host(1, &[11], policy());
    let turns = PathSettings::RoundRobin.policy(Generator::new(3));
    here.set_policy(rules, Serving { policies: vec![turns], serves: [0; 4] }, 0.0);
    let mut there = host(11, &[1], policy());
    let (leaf, mut pb) = (LeafId(1), 1.0);
    for (since, alive) in [(0, 1..=4), (1000, 2..=4)] {
        let stamps = [(leaf, alive.collect())].into();
        here.sender.wrapping.steering.routes.set_paths(LivePaths { stamps, ..LivePaths::default() });
        for step in since..since + 1000 {
            let now = 0.001 * f64::from(step);
            here.packet_from_host(&packet(1, 11, step), now);
            here.handle_timer(now);
            for sent in here.datagrams_to_send() {
                let stamp = stamp_of(sent.source_port).expect("a label");
                if stamp != 1 {
                    hand_over(&sent, 1, stamp, &mut there, now);
                }
            }
            there.handle_timer(now);
            there.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 11, 0, &mut here, now));
            pb = here.sender.blocking_probability(leaf, now).expect("an estimate");
        }
    }
    assert!((pb - 0.25).abs() < 0.01, "one path of four is blocked, though nothing uses it any more: {pb}");
}

#[test]
fn what_is_never_reported_since_peer_or_policy_changed_blocks_no_path() {
    let mut coded = policy();
    coded.send.estimator = Some(EstimatorChoice { kind: EstimatorKind::Paths, sampling_s: None });
    coded.send.coding[1] = Some(coded_flow::policy(Code::Xor));
    for restarts in [true, false] {
        let (mut here, mut there) = (host(1, &[], coded.clone()), host(11, &[1], policy()));
        let before = if restarts { Known { session: 99, ..known(11) } } else { known(11) };
        here.set_directory(vec![before], None);
        for number in 0..200 {
            here.packet_from_host(&packet(1, 11, number), 0.001 * f64::from(number));
        }
        here.handle_timer(0.3);
        assert!(here.datagrams_to_send().len() > 200, "packets and repairs, which are lost");
        if restarts {
            set_peers(&mut here, &[11]);
        } else {
            for rules in [policy(), coded.clone()] {
                let policies = vec![PathSettings::Spray.policy(Generator::new(1))];
                here.set_policy(rules, Serving { policies, serves: [0; 4] }, 0.3);
            }
        }
        let mut now = 0.32;
        for number in 200..220 {
            now += 0.001;
            here.packet_from_host(&packet(1, 11, number), now);
            here.handle_timer(now + 0.0005);
            here.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 1, 1, &mut there, now));
        }
        there.handle_timer(now + 0.01);
        there.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 11, 0, &mut here, now + 0.01));
        let pb = here.sender.blocking_probability(LeafId(1), now + 0.01).expect("an estimate");
        assert!(pb < 0.15, "{pb}, the peer restarts: {restarts}");
    }
}

#[test]
fn the_share_of_late_acknowledgements_is_of_every_acknowledgement() {
    let mut rules = policy();
    rules.send.estimator = Some(EstimatorChoice { kind: EstimatorKind::RttAverage, sampling_s: Some(10.0) });
    rules.send.coding[1] = Some(coded_flow::policy(Code::Xor));
    let (mut here, mut there) = (host(1, &[11], rules), host(11, &[1], policy()));
    let (segments, bytes) = (20u32, 1000u32);
    for segment in 0..segments {
        here.packet_from_host(&segment_of_tcp(1, 11, segment * bytes, 0, bytes), 0.001 * f64::from(segment));
    }
    here.datagrams_to_send();
    // 17 round trips of 10 ms and three of 100: those are above twice the average of 23.5
    for segment in 0..segments {
        let now = 0.001 * f64::from(segment) + if segment < 17 { 0.01 } else { 0.1 };
        there.packet_from_host(&segment_of_tcp(11, 1, 0, (segment + 1) * bytes, 0), now);
        there.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 11, 0, &mut here, now));
    }
    let pb = here.sender.blocking_probability(LeafId(1), 11.0).expect("an estimate");
    assert_eq!(pb, 3.0 / 20.0);
}

#[test]
fn path_policies_forget_our_feedback_to_a_peer_that_is_gone() {
    let mut here = host(1, &[11], policy());
    let policies = vec![PathSettings::Flowlet { gap_s: 1e9 }.policy(Generator::new(1))];
    here.set_policy(policy(), Serving { policies, serves: [0; 4] }, 0.0);
    let mut there = host(11, &[1], policy());
    let mut ports = Vec::new();
    for turn in 0..3 {
        for number in 0..2 {
            let now = f64::from(10 * turn + number);
            there.packet_from_host(&packet(11, 1, number), now);
            there.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 11, 1, &mut here, now));
            here.handle_timer(now + 0.5);
            ports.extend(here.datagrams_to_send().iter().map(|feedback| feedback.source_port));
        }
        [&[][..], &[11][..]].into_iter().for_each(|peers| set_peers(&mut here, peers));
    }
    assert_eq!(ports.len(), 6);
    assert!(ports.chunks(2).all(|of_turn| of_turn[0] == of_turn[1]), "a peer that stays");
    assert!(ports[0] != ports[2] && ports[2] != ports[4], "a path of its own each time that the peer came");
}

#[test]
fn feedback_that_is_lost_on_its_way_to_a_host_that_only_sends_is_reported_in_time() {
    let (mut here, mut there) = (host(1, &[11], policy()), host(11, &[1], policy()));
    let mut now = 0.0;
    for number in 0..3 {
        now = f64::from(number);
        here.packet_from_host(&packet(1, 11, number), now);
        here.datagrams_to_send().iter().for_each(|sent| hand_over(sent, 1, 1, &mut there, now));
        there.handle_timer(now + 0.1);
        let feedback = there.datagrams_to_send();
        assert_eq!(feedback.len(), 1);
        if number != 1 {
            hand_over(&feedback[0], 11, 0, &mut here, now + 0.1);
        }
        here.handle_timer(now + 0.2);
        assert!(here.datagrams_to_send().is_empty());
    }
    let due = now + 0.1 + policy().receive.loss_after_s;
    here.handle_timer(due - 0.001);
    assert!(here.datagrams_to_send().is_empty());
    here.handle_timer(due + 0.001);
    let report = here.datagrams_to_send();
    assert_eq!(report.len(), 1);
    hand_over(&report[0], 1, 0, &mut there, due + 0.001);
    assert!(there.totals().contains(&("lost_at_peers", 1)));
}

#[test]
fn what_arrives_is_reported_in_time_while_a_datagram_is_missing() {
    let (mut here, mut there) = (host(1, &[11], policy()), host(11, &[1], policy()));
    let (mut now, mut reported) = (0.0, Vec::new());
    for number in 0..200 {
        now = 0.001 * f64::from(number);
        while there.timer() <= now {
            let due = there.timer();
            there.handle_timer(due);
            let feedback = there.datagrams_to_send().len();
            reported.extend(std::iter::repeat_n(due, feedback));
        }
        here.packet_from_host(&packet(1, 11, number), now);
        let sent = here.datagrams_to_send();
        if number != 7 {
            sent.iter().for_each(|sent| hand_over(sent, 1, 1, &mut there, now));
        }
    }
    reported.push(now);
    let feedback_after_s = there.receiver.feedback_after_s();
    assert!(now < policy().receive.loss_after_s, "the datagram is not given up yet");
    let longest = reported.windows(2).map(|two| two[1] - two[0]).fold(reported[0], f64::max);
    assert!(longest <= feedback_after_s + 0.001 + 1e-9, "{longest} s between feedback");
}
