use super::*;
use crate::packets::{Cargo, Handle, Marks, Packet};

fn packet(flow: u32, priority: u32, bytes: u32) -> Packet {
    Packet {
        flow,
        number: 0,
        bytes,
        priority,
        destination: 0,
        cargo: Cargo::Data,
        marks: Marks::default(),
        beyond: 0,
        stamp: 0,
        blocks: Default::default(),
    }
}

/// A queue and the packets that have come to it, the first of which is 0.
struct Tried {
    queue: Queue,
    packets: Packets,
}

impl Tried {
    fn add(&mut self, packet: Packet) -> Admission {
        let frame = Frame::new(self.packets.add(packet), &packet);
        self.queue.add(frame, &self.packets, Room::ENDLESS)
    }

    fn take(&mut self) -> Option<Handle> {
        self.queue.take().map(|frame| frame.handle)
    }

    fn all(&mut self) -> Vec<Handle> {
        std::iter::from_fn(|| self.take()).collect()
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), self.queue.bytes())
    }
}

fn queue(discipline: Discipline, limit: Limit) -> Tried {
    marking(discipline, limit, 0)
}

fn marking(discipline: Discipline, limit: Limit, mark_from: u32) -> Tried {
    Tried {
        queue: Queue::new(Buffer { discipline, limit, mark_from, drops_unmarkable: false }),
        packets: Packets::default(),
    }
}

#[test]
fn fifo_refuses_what_does_not_fit() {
    let mut queue = queue(Discipline::Fifo, Limit::Bytes(3000));
    assert_eq!(queue.add(packet(0, 0, 1500)), Admission::Kept);
    assert_eq!(queue.add(packet(0, 0, 1500)), Admission::Kept);
    assert_eq!(queue.add(packet(0, 0, 40)), Admission::Refused);
    assert_eq!(queue.held(), (2, 3000));
    assert_eq!(queue.all(), [0, 1]);
    assert_eq!(queue.held(), (0, 0));
}

#[test]
fn packets_are_counted_where_the_limit_is_in_packets() {
    let mut queue = queue(Discipline::Fifo, Limit::Packets(2));
    assert_eq!(queue.add(packet(0, 0, 9000)), Admission::Kept);
    assert_eq!(queue.add(packet(0, 0, 40)), Admission::Kept);
    assert_eq!(queue.add(packet(0, 0, 40)), Admission::Refused);
}

#[test]
fn strict_serves_the_lowest_level_first() {
    let mut queue = queue(Discipline::Strict, Limit::Endless);
    for level in [7, 0, 3, 0, 99, 3] {
        queue.add(packet(0, level, 100));
    }
    assert_eq!(queue.take(), Some(1));
    queue.add(packet(0, 0, 100));
    assert_eq!(queue.all(), [3, 6, 2, 5, 0, 4]);
}

#[test]
fn pfabric_sends_the_best_flows_earliest_packet() {
    let mut queue = queue(Discipline::PFabric, Limit::Endless);
    // Flow 1's second packet has the best priority; its first leaves before it.
    for (flow, priority) in [(2, 5), (1, 9), (2, 4), (1, 3), (2, 3)] {
        queue.add(packet(flow, priority, 1500));
    }
    assert_eq!(queue.all(), [1, 3, 0, 2, 4]);
}

#[test]
fn pfabric_drops_the_worst_and_the_last_of_equals() {
    let mut queue = queue(Discipline::PFabric, Limit::Bytes(4500));
    for (flow, priority) in [(0, 5), (1, 8), (2, 8)] {
        assert_eq!(queue.add(packet(flow, priority, 1500)), Admission::Kept);
    }
    assert_eq!(queue.add(packet(3, 1, 1500)), Admission::Displaced(2));
    assert_eq!(queue.add(packet(4, 8, 1500)), Admission::Refused);
    assert_eq!(queue.held(), (3, 4500));
    assert_eq!(queue.all(), [3, 0, 1]);
}

#[test]
fn arriving_packets_are_marked_from_the_threshold_on() {
    let mut queue = marking(Discipline::Fifo, Limit::Endless, 3);
    let marked: Vec<bool> = (0..4)
        .map(|_| {
            let marks = queue.queue.marks();
            queue.add(packet(0, 0, 1500));
            marks
        })
        .collect();
    assert_eq!(marked, [false, false, true, true]);
}

#[test]
fn a_buffer_smaller_than_a_packet_is_an_error() {
    let buffer =
        |limit| Buffer { discipline: Discipline::Fifo, limit, mark_from: 0, drops_unmarkable: false };
    assert!(buffer(Limit::Bytes(1499)).check(1500).is_err());
    assert!(buffer(Limit::Packets(0)).check(1500).is_err());
    assert!(buffer(Limit::Bytes(1500)).check(1500).is_ok());
}

#[test]
fn an_error_of_a_small_buffer_has_words_and_units() {
    for (limit, words) in [
        (Limit::Bytes(1000), "a port's buffer of 1000 B"),
        (Limit::Packets(0), "a port's buffer of 0 packets"),
    ] {
        let buffer = Buffer { discipline: Discipline::Fifo, limit, mark_from: 0, drops_unmarkable: false };
        let error = buffer.check(1500).unwrap_err().to_string();
        assert_eq!(error, format!("{words} holds no packet of 1500 B: make it larger"));
    }
}
