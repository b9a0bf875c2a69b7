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
    tcp.answered(11 * MS, &answer(1, Some((5, 9)), 0));
    assert_eq!(sent(&mut tcp, 11 * MS), [10]);
    // The retransmission of 1 arrives: it was lost, and so may be 4.
    tcp.answered(20 * MS, &answer(2, Some((5, 9)), 10 * MS));
    assert_eq!(sent(&mut tcp, 20 * MS), [4]);
}
