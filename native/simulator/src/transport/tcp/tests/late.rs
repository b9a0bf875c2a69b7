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
