//! What RACK finds lost, and what turns out to have been late.

use super::*;

const MS: Time = MILLISECOND;

#[test]
fn what_was_sent_before_a_retransmission_that_arrived_is_lost_though_nothing_arrived_beyond() {
    let mut tcp = Tcp::new(settings(true, true), 10);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    // Packets 3, 7, 8 and 9 are lost.
    tcp.answered(10 * MS, &answer(3, None, 0));
    tcp.answered(10 * MS, &answer(3, Some((4, 7)), 0));
    assert_eq!(sent(&mut tcp, 10 * MS), [3]);
    tcp.answered(20 * MS, &answer(7, None, 10 * MS));
    assert_eq!(sent(&mut tcp, 20 * MS), [7, 8, 9]);
}

#[test]
fn while_an_undo_is_put_off_new_packets_go_out_and_nothing_is_retransmitted() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(true, false) }, 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    tcp.answered(10 * MS, &answer(0, Some((5, 9)), 0));
    assert_eq!(sent(&mut tcp, 10 * MS), [0, 1, 2, 3], "of a window of 5, one is in flight; 4 waits");
    // The original of 0 arrives; whether those of the others were late, too, is not known yet.
    assert!(!tcp.board.reordered());
    tcp.answered(11 * MS, &answer(1, Some((5, 9)), 0));
    assert!(tcp.board.reordered());
    assert_eq!(sent(&mut tcp, 11 * MS), [10]);
    // The retransmission of 1 arrives: it was lost, and so may be 4.
    tcp.answered(20 * MS, &answer(2, Some((5, 9)), 10 * MS));
    assert_eq!(sent(&mut tcp, 20 * MS), [4]);
}

#[test]
fn what_an_undo_takes_as_not_lost_is_not_found_lost_again_at_once() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(true, true) }, 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    tcp.answered(10 * MS, &answer(0, Some((5, 9)), 0));
    assert_eq!(sent(&mut tcp, 10 * MS), [0, 1, 2, 3], "of a window of 5, one is in flight; 4 waits");
    // All four were late: what was marked beside them may be so, too.
    tcp.answered(11 * MS, &answer(4, Some((5, 9)), 0));
    assert_eq!((tcp.state, tcp.window.packets()), (State::Open, 12));
    assert!(!sent(&mut tcp, 11 * MS).contains(&4));
    tcp.answered(30 * MS, &answer(4, Some((5, 15)), 11 * MS));
    assert!(!sent(&mut tcp, 30 * MS).contains(&4), "RACK knows it no more");
    tcp.expired(tcp.deadline());
    assert_eq!(sent(&mut tcp, SECOND), [4], "a time-out does");
}

#[test]
fn the_timer_of_what_may_be_late_is_that_of_the_packet_that_waits_longest() {
    let mut tcp = Tcp::new(Settings { reorder_slack: MS, ..settings(true, true) }, 100);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    // Packet 1 comes after 2, so the network reorders: what is missing may be late by a quarter of the round trip.
    tcp.answered(40 * MS, &answer(1, None, 0));
    tcp.answered(40 * MS, &answer(1, Some((2, 3)), 0));
    tcp.answered(40 * MS, &answer(3, None, 0));
    assert_eq!(sent(&mut tcp, 40 * MS), (10..16).collect::<Vec<_>>());
    tcp.answered(42 * MS, &answer(10, None, 0));
    assert_eq!(sent(&mut tcp, 42 * MS)[..2], [16, 17]);
    tcp.answered(84 * MS, &answer(10, Some((11, 16)), 40 * MS));
    assert_eq!(tcp.deadline(), (40 + 44 + 10 + 1) * MS, "a round trip of 44 ms, a quarter of 40, the slack");
    tcp.answered(85 * MS, &answer(10, Some((17, 18)), 42 * MS));
    assert_eq!(tcp.deadline(), (42 + 43 + 10 + 1) * MS, "of 16, which was sent later than 10");
}

#[test]
fn what_an_undo_for_duplicates_leaves_lost_begins_a_recovery_at_once() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(true, false) }, 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    tcp.answered(10 * MS, &answer(0, Some((5, 9)), 0));
    assert_eq!(sent(&mut tcp, 10 * MS), [0, 1, 2, 3], "of a window of 5, one is in flight; 4 waits");
    tcp.answered(20 * MS, &answer(4, Some((5, 9)), 10 * MS));
    for number in 0..4 {
        assert_eq!((tcp.state, tcp.window.packets()), (State::Recovery, 5));
        tcp.answered(20 * MS, &Answer { repeated: Some(number), ..answer(4, Some((5, 9)), 10 * MS) });
    }
    // Of a window of 10 that was restored, half is left once more.
    assert_eq!((tcp.state, tcp.window.packets(), tcp.recover), (State::Recovery, 5, tcp.board.end()));
    assert!(sent(&mut tcp, 20 * MS).contains(&4));
}

#[test]
fn a_retransmission_of_the_recovery_before_is_not_taken_for_an_original() {
    let mut tcp = Tcp::new(Settings { undo: true, duplicates: 2, ..settings(true, false) }, 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    // 0 is lost, and 10 in its recovery: its end begins another one, while 10 is in flight again.
    tcp.answered(10 * MS, &answer(0, Some((1, 10)), 0));
    assert_eq!(sent(&mut tcp, 10 * MS), [0, 10, 11, 12, 13]);
    tcp.answered(20 * MS, &answer(0, Some((11, 13)), 10 * MS));
    assert_eq!(sent(&mut tcp, 20 * MS), [10, 14, 15]);
    tcp.answered(21 * MS, &answer(10, Some((11, 13)), 10 * MS));
    assert_eq!((tcp.state, tcp.recover, tcp.board.retransmitted()), (State::Recovery, 16, 1));
    // 13 is retransmitted later than 10, whose retransmission arrives.
    tcp.answered(22 * MS, &answer(10, Some((14, 16)), 20 * MS));
    assert_eq!(sent(&mut tcp, 22 * MS), [13]);
    tcp.answered(30 * MS, &answer(13, Some((14, 16)), 20 * MS));
    assert_eq!((tcp.state, tcp.held), (State::Recovery, false));
}

#[test]
fn an_answer_that_was_overtaken_says_what_has_arrived() {
    let mut tcp = Tcp::new(settings(true, false), 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    tcp.answered(10 * MS, &answer(2, None, 0));
    sent(&mut tcp, 10 * MS);
    let before = (6, tcp.round_trip.latest(), tcp.deadline());
    // It left before 1 arrived, and later than 3, 4 and 5.
    tcp.answered(20 * MS, &answer(1, Some((3, 6)), 0));
    assert_eq!((tcp.state, tcp.board.beyond(), tcp.acknowledged().0), (State::Recovery, 3, 2));
    assert_eq!((tcp.window.packets(), tcp.round_trip.latest(), tcp.deadline()), before, "half of 12");
    assert_eq!(sent(&mut tcp, 20 * MS), [2]);
}

#[test]
fn an_answer_that_was_overtaken_reports_duplicates() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(true, false) }, 1000);
    assert!(after_a_loss(&mut tcp).contains(&vec![0]));
    tcp.answered(3 * MS, &answer(12, None, 2 * MS));
    assert_eq!(tcp.window.packets(), 5);
    tcp.answered(4 * MS, &Answer { repeated: Some(0), ..answer(9, None, 2 * MS) });
    assert_eq!(tcp.window.packets(), 10);
}

#[test]
fn without_sack_no_duplicate_is_reported() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(false, false) }, 1000);
    assert!(after_a_loss(&mut tcp).contains(&vec![0]));
    tcp.answered(3 * MS, &answer(12, None, 2 * MS));
    assert_eq!(tcp.window.packets(), 5);
    tcp.answered(4 * MS, &Answer { repeated: Some(0), ..answer(12, None, 2 * MS) });
    assert_eq!(tcp.window.packets(), 5);
}

#[test]
fn what_one_answer_says_of_several_packets_shows_no_reordering() {
    let mut tcp = Tcp::new(settings(true, true), 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    // 0 waited for 1 to be acknowledged, which was lost: 2 acknowledges it.
    tcp.answered(10 * MS, &answer(1, Some((2, 3)), 0));
    assert!(!tcp.board.reordered());
    tcp.answered(11 * MS, &answer(3, None, 0));
    assert!(tcp.board.reordered(), "1 was late");
}

#[test]
fn rack_looks_for_losses_when_something_arrives_or_its_timer_is_due() {
    let mut tcp = Tcp::new(settings(true, true), 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    tcp.board.see_reordering();
    tcp.answered(40 * MS, &answer(1, None, 0));
    tcp.answered(40 * MS, &answer(1, Some((2, 5)), 0));
    assert_eq!(tcp.deadline(), 50 * MS);
    tcp.answered(51 * MS, &Answer { repeated: Some(0), ..answer(1, Some((2, 5)), 0) });
    assert!(tcp.state == State::Open && !sent(&mut tcp, 51 * MS).contains(&1));
    tcp.expired(52 * MS);
    assert!(tcp.state == State::Recovery && sent(&mut tcp, 52 * MS).contains(&1));
}
