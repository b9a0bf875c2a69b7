use super::*;
use crate::packets::{Cargo, Marks, NO_PATH};

fn packet(flow: u32, priority: u32, bytes: u32) -> Packet {
    Packet {
        flow,
        number: 0,
        bytes,
        priority,
        destination: 0,
        path: NO_PATH,
        cargo: Cargo::Data,
        marks: Marks::default(),
        beyond: 0,
        stamp: 0,
        blocks: Default::default(),
    }
}

fn queue(discipline: Discipline, limit: Limit) -> Queue {
    Queue::new(Buffer { discipline, limit, mark_from: 0 })
}

fn all(queue: &mut Queue) -> Vec<Handle> {
    std::iter::from_fn(|| queue.take()).collect()
}

#[test]
fn fifo_refuses_what_does_not_fit() {
    let mut queue = queue(Discipline::Fifo, Limit::Bytes(3000));
    assert_eq!(queue.add(0, &packet(0, 0, 1500), Room::ENDLESS), Admission::Kept);
    assert_eq!(queue.add(1, &packet(0, 0, 1500), Room::ENDLESS), Admission::Kept);
    assert_eq!(queue.add(2, &packet(0, 0, 40), Room::ENDLESS), Admission::Refused);
    assert_eq!((queue.len(), queue.bytes()), (2, 3000));
    assert_eq!(all(&mut queue), [0, 1]);
    assert_eq!((queue.len(), queue.bytes()), (0, 0));
}

#[test]
fn packets_are_counted_where_the_limit_is_in_packets() {
    let mut queue = queue(Discipline::Fifo, Limit::Packets(2));
    assert_eq!(queue.add(0, &packet(0, 0, 9000), Room::ENDLESS), Admission::Kept);
    assert_eq!(queue.add(1, &packet(0, 0, 40), Room::ENDLESS), Admission::Kept);
    assert_eq!(queue.add(2, &packet(0, 0, 40), Room::ENDLESS), Admission::Refused);
}

#[test]
fn strict_serves_the_lowest_level_first() {
    let mut queue = queue(Discipline::Strict, Limit::Endless);
    for (handle, level) in [7, 0, 3, 0, 99, 3].into_iter().enumerate() {
        queue.add(handle as Handle, &packet(0, level, 100), Room::ENDLESS);
    }
    assert_eq!(queue.take(), Some(1));
    queue.add(6, &packet(0, 0, 100), Room::ENDLESS);
    assert_eq!(all(&mut queue), [3, 6, 2, 5, 0, 4]);
}

#[test]
fn pfabric_sends_the_best_flows_earliest_packet() {
    let mut queue = queue(Discipline::PFabric, Limit::Endless);
    // Flow 1's second packet has the best priority; its first leaves before it.
    for (handle, (flow, priority)) in [(2, 5), (1, 9), (2, 4), (1, 3), (2, 3)].into_iter().enumerate() {
        queue.add(handle as Handle, &packet(flow, priority, 1500), Room::ENDLESS);
    }
    assert_eq!(all(&mut queue), [1, 3, 0, 2, 4]);
}

#[test]
fn pfabric_drops_the_worst_and_the_last_of_equals() {
    let mut queue = queue(Discipline::PFabric, Limit::Bytes(4500));
    for (handle, priority) in [5, 8, 8].into_iter().enumerate() {
        assert_eq!(
            queue.add(handle as Handle, &packet(handle as u32, priority, 1500), Room::ENDLESS),
            Admission::Kept
        );
    }
    assert_eq!(queue.add(3, &packet(3, 1, 1500), Room::ENDLESS), Admission::Displaced(2));
    assert_eq!(queue.add(4, &packet(4, 8, 1500), Room::ENDLESS), Admission::Refused);
    assert_eq!(queue.bytes(), 4500);
    assert_eq!(all(&mut queue), [3, 0, 1]);
}

#[test]
fn arriving_packets_are_marked_from_the_threshold_on() {
    let mut queue = Queue::new(Buffer { discipline: Discipline::Fifo, limit: Limit::Endless, mark_from: 3 });
    let marked: Vec<bool> = (0..4)
        .map(|handle| {
            let marks = queue.marks();
            queue.add(handle, &packet(0, 0, 1500), Room::ENDLESS);
            marks
        })
        .collect();
    assert_eq!(marked, [false, false, true, true]);
}

#[test]
fn a_buffer_smaller_than_a_packet_is_an_error() {
    let buffer = |limit| Buffer { discipline: Discipline::Fifo, limit, mark_from: 0 };
    assert!(buffer(Limit::Bytes(1499)).check(1500).is_err());
    assert!(buffer(Limit::Packets(0)).check(1500).is_err());
    assert!(buffer(Limit::Bytes(1500)).check(1500).is_ok());
}
