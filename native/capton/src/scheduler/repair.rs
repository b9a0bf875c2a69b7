//! Repairing: which flows an event has to look at, and what each is granted.

use super::*;

impl Scheduler {
    pub(super) fn look_at(&mut self, slot: u32) {
        self.repair.push(Reverse((self.key(slot), None)));
    }

    /// Examine all flows that are to be examined, in order.
    pub(super) fn mend(&mut self) {
        let partial: Vec<u32> = self.partial.iter().copied().collect();
        for slot in partial {
            self.look_at(slot);
        }
        let mut last = None;
        while let Some(Reverse((key, walk))) = self.repair.pop() {
            if last.is_none_or(|(decided, _)| decided != key) {
                self.decide(key);
            }
            if let (Some(link), true) = (walk, last != Some((key, walk))) {
                self.walk(link, key);
            }
            last = Some((key, walk));
        }
    }

    /// Grant a flow what those before it have left.
    fn decide(&mut self, key: Key) {
        let slot = key.2;
        let flow = self.flows[slot as usize];
        let mut rate = flow.line;
        for &link in flow.path.links() {
            rate = rate.min(self.open_to(link as usize, key, flow.rate, rate));
        }
        if rate < flow.least {
            rate = 0;
        }
        if rate < flow.rate {
            self.touch(slot);
            self.withdraw(slot);
            self.walk_freed(&flow, key);
            if rate > 0 {
                self.give(slot, rate);
            }
        } else if rate > flow.rate {
            self.touch(slot);
            if flow.rate > 0 {
                self.withdraw(slot);
            }
            self.give(slot, rate);
            for &link in flow.path.links() {
                self.look_at_crowded(link as usize, key);
            }
        }
    }

    /// Returns the rate that a link has for the flow at this place of the order, which holds `own` of it; exact only
    /// below `enough`.
    fn open_to(&self, link: usize, key: Key, own: i64, enough: i64) -> i64 {
        let link = &self.links[link];
        let mut open = link.left + own;
        if open < enough {
            for &other in &link.sending {
                if self.key(other) > key {
                    open += self.flows[other as usize].rate;
                }
            }
        }
        open
    }

    /// Grants a waiting flow a rate, from now on.
    pub(super) fn give(&mut self, slot: u32, rate: i64) {
        self.unlist(slot);
        let now = self.now;
        let flow = &mut self.flows[slot as usize];
        flow.rate = rate;
        flow.since = now;
        flow.end = now + (flow.remaining + i128::from(rate) - 1) / i128::from(rate);
        let flow = *flow;
        self.ends.insert((flow.end, slot));
        if rate < flow.line {
            self.partial.insert(slot);
        }
        for &link in flow.path.links() {
            let link = &mut self.links[link as usize];
            link.left -= rate;
            link.sending.push(slot);
            link.last.set((0, FIRST));
        }
    }

    /// Withdraws the grant of a flow, which waits again.
    pub(super) fn withdraw(&mut self, slot: u32) {
        let flow = self.flows[slot as usize];
        let remaining = self.remaining(&flow, self.now);
        self.ends.remove(&(flow.end, slot));
        self.partial.remove(&slot);
        for &link in flow.path.links() {
            let link = &mut self.links[link as usize];
            link.left += flow.rate;
            link.sending.retain(|&other| other != slot);
            link.last.set((0, FIRST));
        }
        let stored = &mut self.flows[slot as usize];
        stored.remaining = remaining;
        stored.since = self.now;
        stored.rate = 0;
        self.enlist(slot);
    }

    /// Take a flow out of all orders before anything is looked at, and look at all that may have its rate.
    pub(super) fn take_out(&mut self, slot: u32) {
        let flow = self.flows[slot as usize];
        if flow.rate > 0 {
            self.withdraw(slot);
        }
        self.unlist(slot);
        if flow.rate > 0 {
            self.walk_freed(&flow, FIRST);
        }
    }

    /// Examine the waiting flows behind `key` that may have the rate of a flow that had it until now.
    fn walk_freed(&mut self, flow: &Flow, key: Key) {
        for (place, &link) in flow.path.links().iter().enumerate() {
            if place < 2 {
                self.walk(link, key);
            } else if self.links[link as usize].left - flow.rate < self.links[link as usize].largest {
                // it may have kept other flows waiting
                for access in 0..self.links[link as usize].behind.len() {
                    self.walk(self.links[link as usize].behind[access], key);
                }
            }
        }
    }

    /// Examine an access link's next waiting flow behind `key` for which none of its links is closed. One that is
    /// passed over is looked at when the link that is closed is freed.
    fn walk(&mut self, number: u32, key: Key) {
        for next in self.links[number as usize].waiting.range((Excluded(key), Unbounded)) {
            if self.closed(number, *next) {
                return;
            }
            let path = &self.flows[next.2 as usize].path;
            if !path.links().iter().any(|&link| self.closed(link, *next)) {
                self.repair.push(Reverse((*next, Some(number))));
                return;
            }
        }
    }

    /// Returns true if a link certainly has nothing for a waiting flow at this place of the order.
    fn closed(&self, number: u32, key: Key) -> bool {
        let link = &self.links[number as usize];
        if link.left >= self.least {
            return false;
        }
        let (mut event, mut last) = link.last.get();
        if event != self.event {
            last = link.sending.iter().map(|&slot| self.key(slot)).max().unwrap_or(FIRST);
            event = self.event;
            link.last.set((event, last));
        }
        last < key || self.open_to(number as usize, key, 0, self.least) < self.least
    }

    /// Examine the flows behind `key` that a link can no longer carry: the last ones.
    fn look_at_crowded(&mut self, number: usize, key: Key) {
        let mut excess = -self.links[number].left;
        let mut bound = None;
        while excess > 0 {
            let link = &self.links[number];
            let later = link.sending.iter().map(|&slot| self.key(slot));
            let later = later.filter(|&place| place > key && bound.is_none_or(|bound| place < bound));
            let Some(last) = later.max() else { break };
            self.look_at(last.2);
            excess -= self.flows[last.2 as usize].rate;
            bound = Some(last);
        }
    }

    /// Computes what depends on capacities.
    pub(super) fn measure(&mut self) {
        let capacities = &self.fabric.capacities;
        for link in &mut self.links {
            let behind = link.behind.iter().map(|&access| capacities[access as usize]);
            link.largest = behind.max().unwrap_or(0);
        }
        let least = capacities.iter().copied().filter(|&rate| rate > 0).min().unwrap_or(0);
        self.least = least_rate(least, self.parameters.least_share);
    }
}
