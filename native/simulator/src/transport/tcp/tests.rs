//! The sender alone, answered by hand.

mod late;

use super::*;
use crate::packets::{Block, BLOCKS};
use crate::time::{MILLISECOND, SECOND};

/// New Reno without a handshake and undoing.
pub(crate) fn settings(sack: bool, rack: bool) -> Settings {
    Settings {
        control: Control::NewReno,
        initial_window: 10,
        largest_window: 1000,
        initial_timeout: SECOND,
        least_timeout: 200 * MILLISECOND,
        largest_timeout: 60 * SECOND,
        kernel_timeouts: false,
        timestamp_tick: 0,
        duplicates: 3,
        sack,
        rack,
        reorder_quarters: 1,
        reorder_slack: 0,
        marks: false,
        delayed_packets: 1,
        delayed_time: 0,
        opening: false,
        undo: false,
        count_delivered: false,
        hystart: false,
        prr: false,
        mark_acknowledgements: false,
    }
}

fn sent(tcp: &mut Tcp, now: Time) -> Vec<u32> {
    std::iter::from_fn(|| tcp.next(now)).map(|segment| segment.number).collect()
}

fn answer(missing: u32, block: Option<(u32, u32)>, stamp: Time) -> Answer {
    let mut blocks = [Block::default(); BLOCKS];
    if let Some((first, end)) = block {
        blocks[0] = Block { first, end };
    }
    let beyond = block.map_or(0, |(first, end)| end - first);
    Answer { missing, beyond, blocks, stamp, marked: false, repeated: None }
}

/// Return what is sent after each of seven packets behind a lost one.
fn after_a_loss(tcp: &mut Tcp) -> Vec<Vec<u32>> {
    assert_eq!(sent(tcp, 0), (0..10).collect::<Vec<_>>());
    (2..9)
        .map(|end| {
            let now = MILLISECOND + u64::from(end);
            tcp.answered(now, &answer(0, Some((1, end)), 0));
            sent(tcp, now)
        })
        .collect()
}

#[test]
fn the_third_duplicate_sends_the_missing_packet_again_and_the_window_is_half() {
    for sack in [true, false] {
        let mut tcp = Tcp::new(settings(sack, false), 100);
        // Two new packets by limited transmit (RFC 3042), then the lost one. Of a window of 10, 5 are left: of 11 in
        // flight the fourth to the seventh duplicate leave more.
        let expected: [&[u32]; 7] = [&[10], &[11], &[0], &[], &[], &[], &[]];
        assert_eq!(after_a_loss(&mut tcp), expected);
        tcp.answered(3 * MILLISECOND, &answer(12, None, 2 * MILLISECOND));
        assert_eq!(sent(&mut tcp, 3 * MILLISECOND).len(), 5);
        assert_eq!(tcp.timeouts(), 0);
    }
}

#[test]
fn the_window_follows_what_arrives_with_and_without_sack() {
    for sack in [true, false] {
        let mut tcp = Tcp::new(Settings { prr: true, ..settings(sack, false) }, 100);
        // Of a window of 10, 5 are to be left: one packet goes for two that arrive, the lost one first (RFC 6937).
        let expected: [&[u32]; 7] = [&[10], &[11], &[0], &[], &[12], &[], &[13]];
        assert_eq!(after_a_loss(&mut tcp), expected, "sack {sack}");
        tcp.answered(3 * MILLISECOND, &answer(14, None, 2 * MILLISECOND));
        assert_eq!((sent(&mut tcp, 3 * MILLISECOND).len(), tcp.timeouts()), (5, 0));
    }
}

#[test]
fn a_partial_acknowledgement_sends_the_next_hole_without_sack() {
    let mut tcp = Tcp::new(settings(false, false), 20);
    sent(&mut tcp, 0);
    // Packets 0 and 4 are lost.
    for _ in 0..8 {
        tcp.answered(MILLISECOND, &answer(0, Some((1, 2)), 0));
        sent(&mut tcp, MILLISECOND);
    }
    tcp.answered(2 * MILLISECOND, &answer(4, None, MILLISECOND));
    assert!(sent(&mut tcp, 2 * MILLISECOND).contains(&4));
}

#[test]
fn a_reordered_packet_is_forgiven_by_time_and_not_by_count() {
    for (rack, again) in [(true, false), (false, true)] {
        let mut tcp = Tcp::new(settings(true, rack), 1000);
        sent(&mut tcp, 0);
        // Packet 0 comes after the first two, and shows that the network reorders; 10 then after four others.
        tcp.answered(MILLISECOND, &answer(0, Some((1, 3)), 0));
        tcp.answered(MILLISECOND + 1, &answer(10, None, 0));
        let begin = MILLISECOND + 1;
        sent(&mut tcp, begin);
        tcp.answered(2 * MILLISECOND, &answer(10, Some((11, 15)), begin));
        assert_eq!(sent(&mut tcp, 2 * MILLISECOND).contains(&10), again);
        if rack {
            // It is lost a quarter of the round trip later.
            let due = tcp.deadline();
            assert!(due > 2 * MILLISECOND && due < 3 * MILLISECOND, "{due}");
            tcp.expired(due);
            assert!(sent(&mut tcp, due).contains(&10));
        }
    }
}

#[test]
fn a_time_out_begins_with_one_packet_and_waits_twice_as_long_the_next_time() {
    let mut tcp = Tcp::new(settings(true, false), 100);
    sent(&mut tcp, 0);
    let mut now = 0;
    for wait in [SECOND, 2 * SECOND, 4 * SECOND] {
        assert_eq!(tcp.deadline(), now + wait);
        now += wait;
        tcp.expired(now);
        assert_eq!(sent(&mut tcp, now), [0]);
    }
    tcp.answered(now + MILLISECOND, &answer(1, None, now));
    assert_eq!(sent(&mut tcp, now + MILLISECOND), [1, 2]);
    assert_eq!(tcp.deadline(), now + MILLISECOND + 200 * MILLISECOND);
}

#[test]
fn settings_that_cannot_send_are_errors() {
    assert!(settings(true, true).check().is_ok());
    assert!(settings(false, true).check().is_err());
    assert!(Settings { initial_window: 0, ..settings(true, true) }.check().is_err());
    assert!(Settings { delayed_packets: 2, ..settings(true, true) }.check().is_err());
}

#[test]
fn a_reduction_for_a_packet_that_was_only_late_is_undone() {
    for undo in [true, false] {
        let mut tcp = Tcp::new(Settings { undo, ..settings(true, false) }, 1000);
        assert!(after_a_loss(&mut tcp).contains(&vec![0]));
        // Packet 0 as it was sent at first arrives, and then, a second time, as it was sent again.
        let now = 3 * MILLISECOND;
        tcp.answered(now, &answer(12, None, 0));
        let left = sent(&mut tcp, now).len();
        assert_eq!(left, if undo { 12 } else { 5 }, "of a window of 10 that has grown by two, or 5");
        tcp.answered(now + 1, &Answer { repeated: Some(0), ..answer(12, None, 2 * MILLISECOND) });
        tcp.board.see_reordering();
        tcp.answered(now + 2, &Answer { repeated: Some(0), ..answer(12, None, 2 * MILLISECOND) });
        assert_eq!(tcp.patience.window(4), 1, "quarters of a round trip: it counts with what arrives next");
        tcp.answered(now + 3, &answer(13, None, now));
        assert_eq!(tcp.patience.window(4), if undo { 2 } else { 1 });
    }
}

#[test]
fn a_reduction_for_a_packet_that_was_lost_is_not_undone() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(true, false) }, 1000);
    assert!(after_a_loss(&mut tcp).contains(&vec![0]));
    tcp.answered(3 * MILLISECOND, &answer(12, None, 2 * MILLISECOND));
    assert_eq!(sent(&mut tcp, 3 * MILLISECOND).len(), 5);
}

#[test]
fn a_reduction_is_undone_once_no_retransmission_is_in_flight() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(true, false) }, 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    tcp.answered(MILLISECOND, &answer(0, Some((2, 9)), 0));
    assert_eq!(sent(&mut tcp, MILLISECOND)[..2], [0, 1]);
    // The originals of 0 and of 1 arrive.
    tcp.answered(2 * MILLISECOND, &answer(1, Some((2, 9)), 0));
    assert_eq!((tcp.window.packets(), tcp.state), (5, State::Recovery), "packet 1 is in flight again");
    tcp.answered(3 * MILLISECOND, &answer(9, None, 0));
    assert_eq!((tcp.window.packets(), tcp.state), (12, State::Open), "10, which has grown by two");
}

#[test]
fn a_reduction_is_undone_when_each_retransmission_was_reported_as_a_duplicate() {
    let mut tcp = Tcp::new(Settings { undo: true, ..settings(true, false) }, 1000);
    assert!(after_a_loss(&mut tcp).contains(&vec![0]));
    // What was sent again fills the gap, and then comes what was sent at first.
    tcp.answered(3 * MILLISECOND, &answer(12, None, 2 * MILLISECOND));
    assert_eq!(tcp.window.packets(), 5);
    tcp.answered(4 * MILLISECOND, &Answer { repeated: Some(0), ..answer(12, None, 2 * MILLISECOND) });
    assert_eq!((tcp.window.packets(), tcp.undo.take()), (10, None));
}

#[test]
fn dctcps_reduction_for_what_was_late_is_undone_unless_a_mark_makes_it_due() {
    // Marks on the answer that begins the recovery, on one within it, on that which shows the original, or on none.
    for (marked, left) in
        [(None, 12), (Some(MILLISECOND + 4), 5), (Some(MILLISECOND + 6), 5), (Some(3 * MILLISECOND), 5)]
    {
        let of = Settings { control: Control::Dctcp, marks: true, undo: true, ..settings(true, false) };
        let mut tcp = Tcp::new(of, 1000);
        assert_eq!(sent(&mut tcp, 0).len(), 10);
        for (now, answer) in (2..9)
            .map(|end| (MILLISECOND + u64::from(end), answer(0, Some((1, end)), 0)))
            .chain([(3 * MILLISECOND, answer(12, None, 0))])
        {
            tcp.answered(now, &Answer { marked: marked == Some(now), ..answer });
            sent(&mut tcp, now);
        }
        assert_eq!((tcp.state, tcp.undo.take()), (State::Open, None));
        // The mark on the last answer is one of a window in which no other was, and reduces for itself.
        let left = if marked == Some(3 * MILLISECOND) { 2 } else { left };
        assert_eq!(tcp.window.packets(), left, "marked at {marked:?}");
    }
}

#[test]
fn a_reduction_for_a_mark_ends_what_could_be_undone_before() {
    let of = Settings { control: Control::Dctcp, marks: true, undo: true, ..settings(true, false) };
    for marked in [false, true] {
        let mut tcp = Tcp::new(of, 1000);
        assert!(after_a_loss(&mut tcp).contains(&vec![0]));
        tcp.answered(3 * MILLISECOND, &Answer { marked, ..answer(12, None, 2 * MILLISECOND) });
        let window = tcp.window.packets();
        tcp.answered(4 * MILLISECOND, &Answer { repeated: Some(0), ..answer(12, None, 2 * MILLISECOND) });
        assert_eq!(tcp.window.packets(), if marked { window } else { 10 });
    }
}

#[test]
fn a_loss_within_the_round_trip_of_a_mark_restores_nothing() {
    let of = Settings { control: Control::Dctcp, marks: true, undo: true, ..settings(true, false) };
    let mut tcp = Tcp::new(of, 1000);
    assert_eq!(sent(&mut tcp, 0).len(), 10);
    // A share of 1 (the first window's) halves the window of 11, or so.
    tcp.answered(MILLISECOND, &Answer { marked: true, ..answer(1, None, 0) });
    let reduced = tcp.window.packets();
    assert!(reduced < 10);
    tcp.answered(MILLISECOND + 1, &answer(1, Some((2, 6)), 0));
    assert_eq!(tcp.state, State::Recovery);
    sent(&mut tcp, MILLISECOND + 1);
    tcp.answered(2 * MILLISECOND, &answer(6, None, 0));
    assert!(tcp.state == State::Open && tcp.window.packets() < reduced);
}

#[test]
fn with_proportional_reduction_a_recovery_sends_on_while_packets_arrive() {
    for (prr, expected) in [(true, 5), (false, 3)] {
        let mut tcp = Tcp::new(Settings { prr, ..settings(true, false) }, 1000);
        sent(&mut tcp, 0);
        // Packet 0 is lost; each answer is of one packet more. The first two send a new one; of the five of the recovery every
        // second sends, or the first alone.
        let during: usize = (2..9)
            .map(|end| {
                tcp.answered(MILLISECOND + u64::from(end), &answer(0, Some((1, end)), 0));
                sent(&mut tcp, MILLISECOND + u64::from(end)).len()
            })
            .sum();
        assert_eq!(during, expected);
    }
}

#[test]
fn a_kernels_time_out_is_a_round_trip_and_the_least_and_begins_with_the_first_packets_retransmission() {
    for (kernel_timeouts, [answered, again]) in [(true, [220, 265]), (false, [210, 210])] {
        let mut tcp = Tcp::new(Settings { kernel_timeouts, ..settings(true, false) }, 1000);
        sent(&mut tcp, 0);
        tcp.answered(10 * MILLISECOND, &answer(1, None, 0));
        assert_eq!(tcp.deadline(), answered * MILLISECOND);
        tcp.answered(55 * MILLISECOND, &answer(1, Some((2, 9)), 0));
        assert_eq!(sent(&mut tcp, 55 * MILLISECOND).first(), Some(&1));
        assert_eq!(tcp.deadline(), again * MILLISECOND);
    }
}

#[test]
fn a_window_that_counts_what_is_delivered_grows_by_it_where_the_network_reorders_far() {
    for (count_delivered, grown) in [(true, [14, 15, 20]), (false, [12, 14, 14])] {
        let of = Settings { count_delivered, duplicates: 9, ..settings(true, false) };
        let mut tcp = Tcp::new(of, 1000);
        assert_eq!(sent(&mut tcp, 0).len(), 10);
        let mut after = |missing, block| {
            tcp.answered(MILLISECOND, &answer(missing, block, 0));
            sent(&mut tcp, MILLISECOND);
            tcp.window.packets()
        };
        assert_eq!(after(4, None), grown[0]);
        assert_eq!(after(4, Some((5, 9))), grown[0], "nothing known to come late");
        assert_eq!(after(9, None), grown[1], "all but 4 had been said to have arrived");
        assert_eq!(after(9, Some((10, 15))), grown[2]);
    }
}

#[test]
fn a_duplicate_of_an_earlier_recovery_undoes_no_later_reduction() {
    let of = Settings { undo: true, ..settings(true, false) };
    for (number, undone) in [(0, false), (12, true), (13, false)] {
        let mut tcp = Tcp::new(of, 1000);
        assert!(after_a_loss(&mut tcp).contains(&vec![0]));
        tcp.answered(3 * MILLISECOND, &answer(12, None, 2 * MILLISECOND));
        sent(&mut tcp, 3 * MILLISECOND);
        // 12 is lost, too.
        tcp.answered(4 * MILLISECOND, &answer(12, Some((13, 17)), 3 * MILLISECOND));
        assert!(sent(&mut tcp, 4 * MILLISECOND).contains(&12));
        let reduced = tcp.window.packets();
        tcp.answered(5 * MILLISECOND, &answer(13, Some((14, 17)), 4 * MILLISECOND));
        tcp.answered(6 * MILLISECOND, &Answer { repeated: Some(number), ..answer(13, None, 0) });
        assert_eq!(tcp.window.packets() > reduced, undone, "a duplicate of {number}");
    }
}

#[test]
fn an_original_sent_within_a_tick_of_a_retransmission_is_not_known_by_its_timestamp() {
    for (timestamp_tick, left) in [(0, 12), (MILLISECOND, 12), (2 * MILLISECOND, 5)] {
        let mut tcp = Tcp::new(Settings { undo: true, timestamp_tick, ..settings(true, false) }, 1000);
        assert!(after_a_loss(&mut tcp).contains(&vec![0]));
        tcp.answered(3 * MILLISECOND, &answer(12, None, 0));
        assert_eq!(sent(&mut tcp, 3 * MILLISECOND).len(), left, "ticks of {timestamp_tick} ps");
    }
}
