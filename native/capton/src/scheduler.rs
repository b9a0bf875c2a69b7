//! The scheduler that repairs its decisions instead of making all of them anew.
//!
//! Figure 6 goes through all flows in order and grants each what the ones before it have left. What a flow is granted
//! thus depends only on earlier flows that share a link with it. So an event needs to look at the flow that it is
//! about, and, in order, at later ones on links whose use has changed: `Repair` holds those that are still to be looked
//! at. A flow's order falls while it sends, but that alone changes nothing: flows that have their line rate fit
//! together in any order, and one that waits still has the same ones before it. Only a flow with a part of its line
//! rate may gain when it overtakes another, so those are looked at by every event.
//!
//! Waiting flows are kept in order by host, those that send by link.

mod repair;

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use crate::fabric::{Fabric, Path};
use crate::{least_rate, Decision, Error, Parameters, BYTE};

/// Order: what is left and when it was asked for, the turn of the request; then where the flow is kept.
type Key = (i128, u64, u32);

const FIRST: Key = (i128::MIN, 0, 0);

#[derive(Clone, Copy, Debug)]
struct Flow {
    id: u64,
    path: Path,
    line: i64,
    least: i64,
    rate: i64,
    /// 1e-9 bit at the time `since`, of which `rate` has been taken since then.
    remaining: i128,
    since: i128,
    /// What ageing adds to its order.
    age: i128,
    turn: u64,
    end: i128,
    /// The number of the event that has touched it last, and its rate before that.
    event: u64,
    before: i64,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// Capacity less what is granted; below 0 only amid a repair.
    left: i64,
    sending: Vec<u32>,
    /// Flows that wait, of access links only.
    waiting: BTreeSet<Key>,
    /// The last flow of those that send, as long as the number is that of the event.
    last: Cell<(u64, Key)>,
    /// Access links behind it, and the most that one of them carries.
    behind: Vec<u32>,
    largest: i64,
}

/// What a repair has still to look at: a flow, and the access link whose next waiting flow follows it.
type Repair = BinaryHeap<Reverse<(Key, Option<u32>)>>;

#[derive(Clone, Debug)]
pub struct Scheduler {
    fabric: Fabric,
    parameters: Parameters,
    flows: Vec<Flow>,
    free: Vec<u32>,
    index: HashMap<u64, u32>,
    links: Vec<Link>,
    ends: BTreeSet<(i128, u32)>,
    partial: BTreeSet<u32>,
    /// No flow is granted less than this.
    least: i64,
    now: i128,
    turn: u64,
    event: u64,
    touched: Vec<u32>,
    repair: Repair,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowState {
    pub id: u64,
    pub source: usize,
    pub destination: usize,
    pub remaining_bytes: u64,
    pub rate: i64,
}

impl Scheduler {
    pub fn new(fabric: Fabric, parameters: Parameters) -> Scheduler {
        let links = fabric.behind().into_iter().zip(&fabric.capacities);
        let links = links.map(|(behind, &left)| Link { left, behind, ..Link::default() }).collect();
        let mut scheduler = Scheduler {
            fabric,
            parameters,
            flows: Vec::new(),
            free: Vec::new(),
            index: HashMap::new(),
            links,
            ends: BTreeSet::new(),
            partial: BTreeSet::new(),
            least: 0,
            now: 0,
            turn: 0,
            event: 0,
            touched: Vec::new(),
            repair: BinaryHeap::new(),
        };
        scheduler.measure();
        scheduler
    }

    /// Requests a rate for a flow of so many bytes, or sets what a known flow has left; returns the changed grants. The
    /// flow ages from `asked` on.
    pub fn request(
        &mut self,
        id: u64,
        source: usize,
        destination: usize,
        bytes: u64,
        now: i128,
        asked: i128,
    ) -> Result<Vec<Decision>, Error> {
        let path = self.fabric.path(source, destination)?;
        let known = self.index.get(&id).copied();
        if known.is_some_and(|slot| self.flows[slot as usize].path != path) {
            return Err(Error(format!("flow {id} has other ends")));
        }
        self.begin(now);
        let remaining = i128::from(bytes.max(1)) * BYTE;
        let slot = match known {
            Some(slot) => {
                self.touch(slot);
                self.take_out(slot);
                self.flows[slot as usize].remaining = remaining;
                slot
            }
            None => self.keep(id, path, remaining, asked.min(self.now)),
        };
        self.enlist(slot);
        self.look_at(slot);
        self.mend();
        Ok(self.decisions())
    }

    /// Removes a flow that has nothing left, or is given up; returns the changed grants.
    pub fn finished(&mut self, id: u64, now: i128) -> Vec<Decision> {
        self.begin(now);
        if let Some(slot) = self.index.get(&id).copied() {
            self.drop_flow(slot);
        }
        self.mend();
        self.decisions()
    }

    /// Gives up flows whose grant has outlived their bytes by the time-out; returns the changed grants, theirs first,
    /// with rate 0.
    pub fn expire(&mut self, now: i128) -> Vec<Decision> {
        self.begin(now);
        let mut decisions = Vec::new();
        while let Some(&(end, slot)) = self.ends.first() {
            if end + self.parameters.finish_timeout > self.now {
                break;
            }
            decisions.push((self.flows[slot as usize].id, 0));
            self.drop_flow(slot);
        }
        self.mend();
        decisions.extend(self.decisions());
        decisions
    }

    /// Sets the capacity of a virtual link, 0 if all of it failed; returns the changed grants.
    pub fn capacity(&mut self, link: usize, rate: i64, now: i128) -> Result<Vec<Decision>, Error> {
        let before = self.fabric.set_capacity(link, rate)?;
        self.begin(now);
        self.links[link].left += rate - before;
        self.measure();
        let all: Vec<u32> = self.index.values().copied().collect();
        for slot in all {
            let flow = &mut self.flows[slot as usize];
            flow.line = self.fabric.line(&flow.path);
            flow.least = least_rate(flow.line, self.parameters.least_share);
            if 0 < flow.rate && flow.rate < flow.line {
                self.partial.insert(slot); // its line rate may have grown while its grant stays
            } else {
                self.partial.remove(&slot);
            }
            self.look_at(slot);
        }
        self.mend();
        Ok(self.decisions())
    }

    /// Returns when `expire` has something to do.
    pub fn next_event(&self) -> Option<i128> {
        self.ends.first().map(|(end, _)| end + self.parameters.finish_timeout)
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub fn contains(&self, id: u64) -> bool {
        self.index.contains_key(&id)
    }

    /// Returns all flows in order.
    pub fn standing(&self, now: i128) -> Vec<FlowState> {
        let now = now.max(self.now);
        let mut order: Vec<Key> = self.index.values().map(|&slot| self.key_at(slot, now)).collect();
        order.sort_unstable();
        let standing = |&(_, _, slot): &Key| {
            let flow = &self.flows[slot as usize];
            let bytes = (self.remaining(flow, now) + BYTE - 1) / BYTE;
            FlowState {
                id: flow.id,
                source: flow.path.source() / 2,
                destination: flow.path.destination() / 2,
                remaining_bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
                rate: flow.rate,
            }
        };
        order.iter().map(standing).collect()
    }

    /// Returns, by link, its capacity and what is granted of it, bit/s.
    pub fn usage(&self) -> Vec<(i64, i64)> {
        let links = self.fabric.capacities.iter().zip(&self.links);
        links.map(|(&capacity, link)| (capacity, capacity - link.left)).collect()
    }

    // -- flows ---------------------------------------------------------------------------------------

    fn begin(&mut self, now: i128) {
        self.now = self.now.max(now);
        self.event += 1;
        self.touched.clear();
        self.repair.clear();
    }

    fn keep(&mut self, id: u64, path: Path, remaining: i128, asked: i128) -> u32 {
        let line = self.fabric.line(&path);
        let flow = Flow {
            id,
            path,
            line,
            least: least_rate(line, self.parameters.least_share),
            rate: 0,
            remaining,
            since: self.now,
            age: i128::from(self.parameters.ageing) * 8 * asked,
            turn: self.turn,
            end: 0,
            event: self.event,
            before: 0,
        };
        self.turn += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flows.push(flow);
            u32::try_from(self.flows.len() - 1).expect("as many flows as fit")
        });
        self.flows[slot as usize] = flow;
        self.index.insert(id, slot);
        self.touched.push(slot);
        slot
    }

    fn drop_flow(&mut self, slot: u32) {
        self.take_out(slot);
        self.index.remove(&self.flows[slot as usize].id);
        // its place is free for others from the next event on: nothing here stands for it any more
        self.flows[slot as usize].event = self.event;
        self.flows[slot as usize].before = 0;
        self.free.push(slot);
    }

    fn remaining(&self, flow: &Flow, now: i128) -> i128 {
        (flow.remaining - i128::from(flow.rate) * (now - flow.since)).max(0)
    }

    fn key_at(&self, slot: u32, now: i128) -> Key {
        let flow = &self.flows[slot as usize];
        (self.remaining(flow, now) + flow.age, flow.turn, slot)
    }

    fn key(&self, slot: u32) -> Key {
        self.key_at(slot, self.now)
    }

    /// Remember the flow's rate before this event.
    fn touch(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.event != self.event {
            flow.event = self.event;
            flow.before = flow.rate;
            self.touched.push(slot);
        }
    }

    /// Returns the grants that this event has changed, stops first.
    fn decisions(&self) -> Vec<Decision> {
        let flows = self.touched.iter().map(|&slot| &self.flows[slot as usize]);
        let changed = flows.filter(|flow| flow.rate != flow.before);
        let mut decisions: Vec<Decision> = changed.map(|flow| (flow.id, flow.rate)).collect();
        decisions.sort_by_key(|&(_, rate)| rate > 0);
        decisions
    }

    /// Put a flow without a rate among those that wait.
    fn enlist(&mut self, slot: u32) {
        let key = self.key(slot);
        for link in self.access(slot) {
            self.links[link].waiting.insert(key);
        }
    }

    fn unlist(&mut self, slot: u32) {
        let key = self.key(slot);
        for link in self.access(slot) {
            self.links[link].waiting.remove(&key);
        }
    }

    fn access(&self, slot: u32) -> [usize; 2] {
        let path = &self.flows[slot as usize].path;
        [path.source(), path.destination()]
    }
}
