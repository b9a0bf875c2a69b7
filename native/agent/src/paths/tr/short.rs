//! Which short flows are active, and on which paths.

use std::collections::BTreeMap;

use crate::hash::NumberMap;
use crate::time::Seconds;

#[derive(Clone, Copy, Debug)]
struct Active {
    label: u16,
    last: Seconds,
    /// Its place in `order`.
    turn: u64,
}

/// Active short flows; those silent for longest come first.
#[derive(Clone, Debug, Default)]
pub struct ShortFlows {
    active: NumberMap<i64, Active>,
    order: BTreeMap<u64, i64>,
    turns: u64,
    by_label: NumberMap<u16, i64>,
}

impl ShortFlows {
    /// Notes that a packet of a short flow leaves on the path of that label.
    pub fn sent(&mut self, flow: i64, label: u16, now: Seconds) {
        self.silence(flow);
        self.turns += 1;
        self.active.insert(flow, Active { label, last: now, turn: self.turns });
        self.order.insert(self.turns, flow);
        *self.by_label.entry(label).or_default() += 1;
    }

    /// Counts a flow no longer.
    pub fn silence(&mut self, flow: i64) {
        let Some(gone) = self.active.remove(&flow) else { return };
        self.order.remove(&gone.turn);
        if let Some(count) = self.by_label.get_mut(&gone.label) {
            *count -= 1;
        }
    }

    /// Counts flows no longer that have sent nothing for more than `most` seconds.
    pub fn expire(&mut self, now: Seconds, most: Seconds) {
        while let Some((_, &flow)) = self.order.first_key_value() {
            if self.active.get(&flow).is_some_and(|active| now - active.last <= most) {
                return;
            }
            self.silence(flow);
        }
    }

    /// Returns how many are active on the path of that label.
    pub fn on(&self, label: u16) -> i64 {
        self.by_label.get(&label).copied().unwrap_or(0)
    }

    /// Returns labels and how many are active there, where there are any, in no order.
    pub fn by_label(&self) -> impl Iterator<Item = (u16, i64)> + '_ {
        self.by_label.iter().filter(|(_, &count)| count != 0).map(|(&label, &count)| (label, count))
    }
}
