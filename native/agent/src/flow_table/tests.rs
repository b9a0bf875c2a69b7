use super::*;
use crate::random::{Generator, Random};
use trials::trials;

#[derive(Clone, Debug)]
struct Counted {
    key: u32,
    last: Seconds,
    packets: u64,
}

impl Flow for Counted {
    type Record = (u32, u64);

    fn last(&self) -> Seconds {
        self.last
    }

    fn record(&self) -> Option<(u32, u64)> {
        (self.packets > 0).then_some((self.key, self.packets))
    }

    fn forget(&mut self) {
        self.packets = 0;
    }
}

#[test]
fn a_table_keeps_the_flows_that_a_list_in_the_order_of_sight_keeps() {
    let mut random = Generator::new(3);
    for limit in [1, 2, 7, 40] {
        let mut table: FlowTable<u32, Counted> = FlowTable::new(limit);
        let mut list: Vec<u32> = Vec::new();
        let (mut sent, mut reported) = (0, 0);
        for step in 0..trials(4000u32) {
            let (key, now) = (random.below(60), f64::from(step));
            match random.below(10) {
                0 => {
                    assert_eq!(table.end(&key).is_some(), list.contains(&key));
                    list.retain(|&known| known != key);
                }
                2 if step % 5 == 0 => {
                    let taken = table.take(&key);
                    assert_eq!(taken.is_some(), list.contains(&key));
                    sent -= taken.map_or(0, |flow| flow.packets); // in no report
                    list.retain(|&known| known != key);
                    assert!(!table.is_empty() || table.slots.capacity() + table.free.capacity() == 0);
                }
                1 if step % 7 == 0 => {
                    reported += table.report(true).iter().map(|&(_, packets)| packets).sum::<u64>();
                }
                _ => {
                    let id = table.see(&key).unwrap_or_else(|| {
                        let (id, gone) = table.put(key, Counted { key, last: now, packets: 0 });
                        let expected = (list.len() >= limit).then(|| list.remove(0));
                        assert_eq!(gone.map(|flow| flow.key), expected);
                        id
                    });
                    list.retain(|&known| known != key);
                    list.push(key);
                    table[id].last = now;
                    table[id].packets += 1;
                    sent += 1;
                }
            }
            assert!(table.iter().map(|flow| flow.key).eq(list.iter().copied()));
            if step % 50 == 0 {
                let recent: Vec<u32> = table.recent(now - 9.0).iter().map(|flow| flow.key).collect();
                let last = |key: &&u32| table.find(key).map_or(0.0, |id| table[id].last);
                let expected: Vec<u32> =
                    list.iter().rev().filter(|key| last(key) > now - 9.0).copied().collect();
                assert_eq!(recent, expected);
            }
        }
        reported += table.report(false).iter().map(|&(_, packets)| packets).sum::<u64>();
        assert_eq!(reported, sent, "each packet is reported once");
        let gone = table.expire(4000.0 + IDLE_S);
        assert_eq!(gone.len(), list.len());
        assert!(table.is_empty());
    }
}

#[test]
fn flows_that_were_only_looked_up_hide_no_recent_ones_unless_they_are_many() {
    let mut random = Generator::new(5);
    for _ in 0..trials(300) {
        let mut table: FlowTable<u32, Counted> = FlowTable::default();
        let (mut looked_up, steps) = (0, random.below(300));
        for step in 0..steps {
            let (key, now) = (random.below(200), f64::from(step));
            match table.see(&key) {
                None => drop(table.put(key, Counted { key, last: now, packets: 1 })),
                Some(id) if random.below(2) == 0 => table[id].last = now,
                Some(_) => looked_up += 1,
            }
        }
        let since = f64::from(random.below(301));
        let mut wanted: Vec<u32> =
            table.iter().filter(|flow| flow.last > since).map(|flow| flow.key).collect();
        let mut keys: Vec<u32> = table.recent(since).iter().map(|flow| flow.key).collect();
        wanted.sort_unstable();
        keys.sort_unstable();
        if looked_up <= STALE_RUN {
            assert_eq!(keys, wanted);
        }
        assert!(keys.iter().all(|key| wanted.binary_search(key).is_ok()));
        keys.dedup();
        assert!(keys.len() <= wanted.len());
    }
}

#[test]
fn of_records_that_wait_for_a_report_the_oldest_go() {
    let mut table: FlowTable<u32, Counted> = FlowTable::default();
    for key in 0..10 {
        let _ = table.put(key, Counted { key, last: 0.0, packets: 1 });
        let _ = table.end(&key);
    }
    let each = size_of::<(u32, u64)>();
    assert_eq!(table.finished_bytes(), 10 * each);
    table.keep_finished(3 * each + 1);
    assert_eq!(table.report(true), [(7, 1), (8, 1), (9, 1)]);
    assert_eq!(table.finished_bytes(), 0);
}
