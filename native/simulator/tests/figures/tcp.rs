//! TCP over a fabric: slow start's rounds, DCTCP's standing queue, losses mended without time-outs, delayed answers.

use crate::runs::{demand, leaf_spine, outcomes, run, tcp, window};
use simulator::config::Config;
use simulator::paths::Balancing;
use simulator::queue::Limit;
use simulator::simulation::Simulation;
use simulator::time::{MICROSECOND, MILLISECOND};
use simulator::transport::tcp::{Control, Settings};
use simulator::transport::Transport;

const PACKET: u64 = 1500 * 800;

fn settings(control: Control) -> Settings {
    tcp(control, 2)
}

/// Configure a leaf with hosts of 10 Gbit/s, and one path to each other host.
fn config(settings: Settings) -> Config {
    let mut config = window(leaf_spine(1, 16, 1, 10, 10), Balancing::Hash);
    config.transport = Transport::Tcp(settings);
    config
}

#[test]
fn slow_start_takes_as_many_rounds_as_doubling_does() {
    // Links of 100 us, so that a round trip is longer than any window here takes to send: rounds do not overlap.
    let delay = 100 * MICROSECOND;
    for initial in [1, 2, 10] {
        for rounds in 1..=6 {
            let mut tcp = settings(Control::NewReno);
            tcp.initial_window = initial;
            let mut config = config(tcp);
            let simulator::topology::Shape::LeafSpine(leaf_spine) = &mut config.shape else { unreachable!() };
            leaf_spine.delay = delay;
            // Exactly what `rounds` doubled windows carry. Each acknowledgement sends two packets at once, so the last
            // packet of a round leaves as many packet times after the round's begin as the round before had, and one.
            let packets = u64::from(initial) * ((1 << rounds) - 1);
            let of = outcomes(config, vec![demand(0, 0, 1, packets)])[0];
            let round_trip = 2 * PACKET + 2 * 40 * 800 + 4 * delay;
            let last = u64::from(initial) * (1 << (rounds - 1));
            assert_eq!(
                of.completed,
                Some(rounds * round_trip + (last - 1) * PACKET),
                "{initial}, {rounds} rounds"
            );
        }
    }
}

#[test]
fn dctcps_queue_stands_near_its_threshold_and_the_link_stays_full() {
    // Two long flows into one host. The analysis of the DCTCP paper (Section 3.3): the queue's largest is K + N packets,
    // its swing about sqrt(N (C RTT + K) / 2) / 2; with K above C RTT / 7 it does not run empty.
    const K: u32 = 65;
    let mut tcp = settings(Control::Dctcp);
    tcp.initial_window = 10;
    let mut config = config(tcp);
    config.buffer.mark_from = K;
    let simulator::topology::Shape::LeafSpine(leaf_spine) = &mut config.shape else { unreachable!() };
    leaf_spine.delay = 10 * MICROSECOND;
    let packets = 20_000;
    let simulation = run(config, vec![demand(0, 0, 15, packets), demand(0, 1, 15, packets)]);
    let port = &simulation.ports()[16 + 15];
    assert_eq!(simulation.totals().data_dropped, 0);
    // Slow start overshoots once, by less than it had doubled to.
    assert!(port.counters.longest_queue_packets < 3 * u64::from(K), "{:?}", port.counters);
    let ends = simulation.outcomes().iter().map(|of| of.delivered.unwrap());
    let (first, last) = (ends.clone().min().unwrap(), ends.max().unwrap());
    let full = 2 * packets * PACKET;
    assert!(last < full + full / 50, "the link was idle for {} of {last} ps", last - full);
    assert!(first > last / 10 * 9, "shares differ: {first} and {last} ps");
    assert!(port.counters.marked > packets / 100);
}

#[test]
fn dctcp_keeps_a_shorter_queue_than_newreno() {
    let longest = |control| {
        let mut config = config(settings(control));
        config.buffer.mark_from = 20;
        config.buffer.limit = Limit::Packets(250);
        let demands = (0..4).map(|source| demand(0, source, 15, 5_000)).collect();
        let simulation = run(config, demands);
        (simulation.ports()[31].counters.longest_queue_packets, simulation.totals().data_dropped)
    };
    let (reno, dctcp) = (longest(Control::NewReno), longest(Control::Dctcp));
    assert_eq!(reno.0, 250);
    assert!(reno.1 > 0);
    assert!(dctcp.0 < 125 && dctcp.1 == 0, "{dctcp:?}");
}

#[test]
fn every_kind_ends_all_flows_over_small_buffers_and_many_paths() {
    for control in [Control::NewReno, Control::Cubic, Control::Dctcp] {
        for (sack, rack) in [(false, false), (true, false), (true, true)] {
            for delayed_packets in [1, 2] {
                let mut tcp = settings(control);
                (tcp.sack, tcp.rack, tcp.delayed_packets) = (sack, rack, delayed_packets);
                tcp.delayed_time = MILLISECOND;
                let mut config = window(leaf_spine(4, 4, 4, 10, 5), Balancing::Random);
                config.transport = Transport::Tcp(tcp);
                config.buffer.limit = Limit::Packets(30);
                config.buffer.mark_from = 10;
                let demands = (0..96)
                    .map(|flow| demand(u64::from(flow) * 5 * MICROSECOND, flow % 12, 12 + flow % 4, 200))
                    .collect();
                let simulation = run(config, demands);
                assert_eq!(simulation.finished(), 96);
                let of = simulation.outcomes();
                assert!(of.iter().all(|of| of.sent - of.resent == 200));
                assert!(
                    simulation.totals().data_dropped > 0,
                    "{control:?}: the buffers were meant to be too small"
                );
            }
        }
    }
}

#[test]
fn one_loss_is_mended_within_round_trips_not_a_time_out() {
    // A window that grows into a buffer of 40 packets loses; the least time-out would take 200 ms.
    for (sack, rack) in [(false, false), (true, false), (true, true)] {
        let mut tcp = settings(Control::NewReno);
        (tcp.sack, tcp.rack, tcp.least_timeout) = (sack, rack, 200 * MILLISECOND);
        tcp.initial_window = 10;
        let mut config = window(leaf_spine(2, 2, 1, 10, 1), Balancing::Hash);
        config.transport = Transport::Tcp(tcp);
        config.buffer.limit = Limit::Packets(40);
        let of = outcomes(config, vec![demand(0, 0, 2, 2_000)])[0];
        assert!(of.dropped > 0);
        assert_eq!(of.timeouts, 0, "sack {sack}, rack {rack}");
        let full = 2_000 * 10 * PACKET;
        assert!(of.completed.unwrap() < full + full / 10, "sack {sack}, rack {rack}: {of:?}");
    }
}

#[test]
fn a_delayed_answer_comes_for_two_packets_or_in_time() {
    let mut tcp = settings(Control::NewReno);
    (tcp.delayed_packets, tcp.delayed_time, tcp.initial_window) = (2, MILLISECOND, 10);
    let simulation = run(config(tcp), vec![demand(0, 0, 1, 10)]);
    assert_eq!(simulation.totals().packets.made, 10 + 5);
    // The initial window of one packet waits for the timer, which is not the flow's last.
    tcp.initial_window = 1;
    let of = outcomes(config(tcp), vec![demand(0, 0, 1, 2)])[0];
    let one_way = 2 * PACKET + 2 * 200_000;
    let back = 2 * 40 * 800 + 2 * 200_000;
    assert_eq!(of.completed, Some(one_way + MILLISECOND + back + one_way + back));
}

#[test]
fn dctcps_queue_swings_as_its_analysis_says() {
    // One flow, whose window is what is in flight: the share of marks alpha is about sqrt(2 / W), W = C RTT + K, the queue
    // reaches K + 1 packets, and swings by (W + 1) alpha / 2, about sqrt(2 W) / 2 (Alizadeh et al., SIGCOMM 2010, 3.3).
    for (delay_us, mark_from) in [(10, 40), (10, 80), (25, 80), (50, 160)] {
        let mut tcp = settings(Control::Dctcp);
        tcp.initial_window = 10;
        let mut config = config(tcp);
        config.buffer.mark_from = mark_from;
        let simulator::topology::Shape::LeafSpine(leaf_spine) = &mut config.shape else { unreachable!() };
        leaf_spine.delay = delay_us * MICROSECOND;
        let mut simulation = Simulation::new(config, vec![demand(0, 0, 1, 60_000)]).unwrap();
        let (mut least, mut most) = (usize::MAX, 0);
        while !simulation.run(5).unwrap() {
            // From the middle of the flow to before its end: alpha has settled.
            if (30_000..55_000).contains(&simulation.ports()[16 + 1].counters.delivered) {
                let (waiting, _) = simulation.ports()[0].held();
                (least, most) = (least.min(waiting), most.max(waiting));
            }
        }
        let round_trip = 4 * delay_us * MICROSECOND + 2 * PACKET + 2 * 40 * 800;
        let window = round_trip as f64 / PACKET as f64 + f64::from(mark_from);
        let (swing, expected) = ((most - least) as f64, (2.0 * window).sqrt() / 2.0);
        assert!(most.abs_diff(mark_from as usize + 1) <= 2, "{least} to {most}, marked from {mark_from}");
        assert!((swing / expected - 1.0).abs() < 0.3, "{least} to {most}: {expected:.1} expected");
    }
}

/// Make two hosts send each other much, so that each one's port has data and acknowledgements.
fn both_ways(mark_acknowledgements: bool, drops_unmarkable: bool) -> Simulation {
    let mut tcp = settings(Control::Dctcp);
    (tcp.mark_acknowledgements, tcp.opening) = (mark_acknowledgements, true);
    let mut config = config(tcp);
    (config.buffer.mark_from, config.buffer.drops_unmarkable) = (20, drops_unmarkable);
    run(config, vec![demand(0, 0, 1, 20_000), demand(0, 1, 0, 20_000)])
}

fn marked(simulation: &Simulation) -> u64 {
    simulation.ports().iter().map(|port| port.counters.marked).sum()
}

#[test]
fn acknowledgements_are_marked_where_they_may_be_and_that_changes_nothing_else() {
    let (plain, markable) = (both_ways(false, false), both_ways(true, false));
    assert!(marked(&markable) > marked(&plain), "{} marks, {}", marked(&markable), marked(&plain));
    // Their marks are not echoed.
    assert_eq!(markable.outcomes(), plain.outcomes());
    assert_eq!(markable.totals(), plain.totals());
}

#[test]
fn what_cannot_be_marked_is_dropped_at_the_threshold_where_ports_do_so() {
    let dropped = |simulation: &Simulation| simulation.totals().packets.dropped;
    let passing = both_ways(false, false);
    assert_eq!(dropped(&passing), 0);
    let dropping = both_ways(false, true);
    assert!(dropping.totals().acknowledgements_dropped > 0);
    assert_eq!((dropping.totals().data_dropped, dropping.finished()), (0, 2));
    // What can be marked never is.
    let markable = both_ways(true, true);
    assert_eq!((dropped(&markable), markable.outcomes()), (0, passing.outcomes()));
}
