//! Flows by key, bounded: idle ones go, and the longest unseen one when the table is full.

use std::collections::VecDeque;
use std::hash::Hash;
use std::ops::{Index, IndexMut};

use datapath::prefetch::prefetch;

use crate::hash::SecretMap;
use crate::Seconds;

/// A flow without packets for longer goes.
pub const IDLE_S: Seconds = 60.0;
/// Flows of one table.
pub const MAX_FLOWS: usize = 65536;
/// Records of flows that are gone and wait for a report.
pub const MAX_FINISHED: usize = 65536;
/// So many flows in a row without a packet, and all before them have none: to be asked for moves a flow, too.
pub const STALE_RUN: usize = 64;
const NONE: u32 = u32::MAX;

/// What a table has to know of its flows.
pub trait Flow {
    /// What is said of it in reports.
    type Record;

    /// Returns when its last packet was.
    fn last(&self) -> Seconds;

    /// Returns what was counted since the last report that forgot; None: nothing.
    fn record(&self) -> Option<Self::Record>;

    /// Returns the bytes that a record takes.
    fn record_bytes(_record: &Self::Record) -> usize {
        size_of::<Self::Record>()
    }

    /// Begins to count anew.
    fn forget(&mut self);
}

/// Place of a flow in its table, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(u32);

#[derive(Debug)]
struct Slot<K, F> {
    key: K,
    flow: F,
    older: u32,
    newer: u32,
}

/// Flows by key, in the order in which they were seen.
#[derive(Debug)]
pub struct FlowTable<K, F: Flow> {
    slots: Vec<Option<Slot<K, F>>>,
    free: Vec<u32>,
    places: SecretMap<K, u32>,
    oldest: u32,
    newest: u32,
    limit: usize,
    finished: VecDeque<F::Record>,
    /// What those take.
    finished_bytes: usize,
}

impl<K: Copy + Eq + Hash, F: Flow> Default for FlowTable<K, F> {
    fn default() -> FlowTable<K, F> {
        FlowTable::new(MAX_FLOWS)
    }
}

impl<K: Copy + Eq + Hash, F: Flow> FlowTable<K, F> {
    /// Returns an empty table for `limit` flows, 1 at least.
    pub fn new(limit: usize) -> FlowTable<K, F> {
        FlowTable {
            slots: Vec::new(),
            free: Vec::new(),
            places: SecretMap::default(),
            oldest: NONE,
            newest: NONE,
            limit: limit.max(1),
            finished: VecDeque::new(),
            finished_bytes: 0,
        }
    }

    /// Has the processor fetch the flow that was seen last.
    pub fn prefetch(&self) {
        self.slots.get(self.newest as usize).map(prefetch);
    }

    /// Returns the flow that was seen last.
    pub fn newest(&self) -> Option<&F> {
        self.slot(self.newest).map(|slot| &slot.flow)
    }

    /// Returns how many flows there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns a flow of which a packet has come, at its `Flow::last`: who sets no such time is to `find` it.
    pub fn see(&mut self, key: &K) -> Option<FlowId> {
        let id = self.find(key)?;
        if id.0 != self.newest {
            self.unlink(id.0);
            self.link_newest(id.0);
        }
        Some(id)
    }

    /// Returns a flow, without counting that as seeing it.
    pub fn find(&self, key: &K) -> Option<FlowId> {
        if self.slot(self.newest).is_some_and(|slot| slot.key == *key) {
            return Some(FlowId(self.newest)); // most packets follow one of their flow
        }
        self.places.get(key).copied().map(FlowId)
    }

    /// Adds a new flow. Returns its place, and the flow that had to go for it.
    pub fn put(&mut self, key: K, flow: F) -> (FlowId, Option<F>) {
        let mut gone = self.end(&key);
        if gone.is_none() && self.places.len() >= self.limit {
            gone = self.end_oldest();
        }
        let slot = Slot { key, flow, older: NONE, newer: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = Some(slot);
                place
            }
            None => {
                if self.slots.len() == self.slots.capacity() {
                    // most peers have a flow or two: room for four at once is 2.5 kB a peer
                    self.slots.reserve_exact((self.slots.len() / 2).max(1));
                }
                self.slots.push(Some(slot));
                (self.slots.len() - 1) as u32
            }
        };
        self.places.insert(key, place);
        self.link_newest(place);
        (FlowId(place), gone)
    }

    /// Drops and returns a flow; what was counted of it is kept for the next report.
    pub fn end(&mut self, key: &K) -> Option<F> {
        let flow = self.take(key)?;
        if let Some(record) = flow.record() {
            if self.finished.len() >= MAX_FINISHED {
                self.drop_record();
            }
            self.finished_bytes += F::record_bytes(&record);
            self.finished.push_back(record);
        }
        Some(flow)
    }

    /// Returns the bytes of the records that wait for a report.
    pub fn finished_bytes(&self) -> usize {
        self.finished_bytes
    }

    /// Drops the oldest of these records, until they take `most` bytes at most.
    pub fn keep_finished(&mut self, most: usize) {
        while self.finished_bytes > most {
            self.drop_record();
        }
        self.finished.shrink_to(2 * self.finished.len());
    }

    fn drop_record(&mut self) {
        if let Some(record) = self.finished.pop_front() {
            self.finished_bytes -= F::record_bytes(&record);
        }
    }

    /// Drops and returns a flow, which is in no report; a table that is empty then takes no room for flows.
    pub fn take(&mut self, key: &K) -> Option<F> {
        let place = self.places.remove(key)?;
        self.unlink(place);
        let slot = self.slots[place as usize].take()?;
        if self.places.is_empty() {
            (self.slots, self.free) = (Vec::new(), Vec::new());
        } else {
            self.free.push(place);
        }
        Some(slot.flow)
    }

    /// Drops and returns the flows that were idle for `IDLE_S`.
    pub fn expire(&mut self, now: Seconds) -> Vec<F> {
        let mut gone = Vec::new();
        while let Some(slot) = self.slot(self.oldest) {
            if now - slot.flow.last() <= IDLE_S {
                break;
            }
            gone.extend(self.end_oldest());
        }
        gone
    }

    /// Returns the flows, those first that were not seen for longest.
    pub fn iter(&self) -> impl Iterator<Item = &F> {
        let first = self.slot(self.oldest);
        std::iter::successors(first, |slot| self.slot(slot.newer)).map(|slot| &slot.flow)
    }

    /// Returns all flows' places, those first that were not seen for longest.
    pub fn ids(&self) -> Vec<FlowId> {
        let mut ids = Vec::with_capacity(self.len());
        let mut place = self.oldest;
        while let Some(slot) = self.slot(place) {
            ids.push(FlowId(place));
            place = slot.newer;
        }
        ids
    }

    /// Returns the flows with a packet since then, the last seen first; costs nothing for those that were not seen for
    /// long.
    pub fn recent(&self, since: Seconds) -> Vec<&F> {
        let (mut flows, mut stale, mut place) = (Vec::new(), 0, self.newest);
        while let Some(slot) = self.slot(place) {
            place = slot.older;
            if slot.flow.last() > since {
                stale = 0;
                flows.push(&slot.flow);
                continue;
            }
            stale += 1;
            if stale > STALE_RUN {
                break;
            }
        }
        flows
    }

    /// Returns what was counted of all flows since the last report that forgot.
    pub fn report(&mut self, forget: bool) -> Vec<F::Record>
    where
        F::Record: Clone,
    {
        let mut records: Vec<F::Record> = self.finished.iter().cloned().collect();
        records.extend(self.iter().filter_map(Flow::record));
        if forget {
            (self.finished, self.finished_bytes) = (VecDeque::new(), 0);
            self.slots.iter_mut().flatten().for_each(|slot| slot.flow.forget());
        }
        records
    }

    /// Drops and returns the flow that was not seen for longest, as `end` does.
    pub fn end_oldest(&mut self) -> Option<F> {
        let key = self.slot(self.oldest)?.key;
        self.end(&key)
    }

    fn slot(&self, place: u32) -> Option<&Slot<K, F>> {
        self.slots.get(place as usize)?.as_ref()
    }

    fn slot_mut(&mut self, place: u32) -> Option<&mut Slot<K, F>> {
        self.slots.get_mut(place as usize)?.as_mut()
    }

    fn unlink(&mut self, place: u32) {
        let Some(slot) = self.slot(place) else { return };
        let (older, newer) = (slot.older, slot.newer);
        match self.slot_mut(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
        match self.slot_mut(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let before = self.newest;
        if let Some(slot) = self.slot_mut(place) {
            slot.older = before;
            slot.newer = NONE;
        }
        match self.slot_mut(before) {
            Some(slot) => slot.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
    }
}

impl<K, F: Flow> Index<FlowId> for FlowTable<K, F> {
    type Output = F;

    /// Returns the flow at a place that is taken.
    fn index(&self, id: FlowId) -> &F {
        match &self.slots[id.0 as usize] {
            Some(slot) => &slot.flow,
            None => panic!("a flow that is gone was asked for"),
        }
    }
}

impl<K, F: Flow> IndexMut<FlowId> for FlowTable<K, F> {
    fn index_mut(&mut self, id: FlowId) -> &mut F {
        match &mut self.slots[id.0 as usize] {
            Some(slot) => &mut slot.flow,
            None => panic!("a flow that is gone was asked for"),
        }
    }
}

#[cfg(test)]
mod tests;
