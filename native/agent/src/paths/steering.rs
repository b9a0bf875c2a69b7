//! All path policies of an agent: which serves a traffic class, what they choose from, and what they learn.

use datapath::feedback::Feedback;
use datapath::sent::{SentLog, RING};

use crate::class::TrafficClass;
use crate::packet::Sizes;
use crate::paths::{Departures, FlowHash, Load, PathPolicy, Report, Routes, Train};
use crate::route::{FlowRef, LeafId};
use crate::time::Seconds;

/// Numbers that one feedback says are lost and that are looked at: as many as its sender can miss (`receiving::WINDOW`).
const MOST_LOST: u32 = 2 * RING as u32;

/// A policy of an agent.
pub type BoxedPolicy = Box<dyn PathPolicy + Send + Sync>;

/// A peer, and what left for it.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// Where the peer is.
    pub leaf: LeafId,
    /// The source ports of the last datagrams to it.
    pub log: &'a SentLog,
    /// When they left, and of which flow and class.
    pub departures: &'a Departures,
}

/// The path policies of an agent and their routes.
pub struct Steering {
    /// Each once, though it may serve several classes.
    policies: Vec<BoxedPolicy>,
    /// Which of them, by traffic class.
    serves: [usize; 4],
    /// What they choose from.
    pub routes: Routes,
}

impl Default for Steering {
    fn default() -> Steering {
        Steering { policies: vec![Box::new(FlowHash)], serves: [0; 4], routes: Routes::default() }
    }
}

impl Steering {
    /// Begins anew with these policies; `serves`: which of them serves each traffic class. All of it must be there.
    pub fn set_policies(&mut self, policies: Vec<BoxedPolicy>, serves: [usize; 4]) {
        assert!(
            serves.iter().all(|&place| place < policies.len()),
            "a class is served by a policy that is not there"
        );
        (self.policies, self.serves) = (policies, serves);
    }

    /// Returns true if any policy wants to know what became of its datagrams.
    pub fn learns(&self) -> bool {
        self.policies.iter().any(|policy| policy.learns())
    }

    /// Appends the source ports of the next datagrams of a flow and class to a leaf, whose contents have these sizes.
    pub fn source_ports(
        &mut self,
        (leaf, class, flow): (LeafId, TrafficClass, FlowRef),
        sizes: Sizes,
        now: Seconds,
        ports: &mut Vec<u16>,
    ) {
        let route = &self.routes.to(leaf)[class.index()];
        let Sizes { count, each, last } = sizes;
        let train = Train { flow, route, size: each, last, count: count as usize };
        self.policies[self.serves[class.index()]].source_ports(train, now, ports);
    }

    /// Returns the policy of a class.
    pub fn policy(&mut self, class: TrafficClass) -> &mut (dyn PathPolicy + Send + Sync) {
        &mut *self.policies[self.serves[class.index()]]
    }

    /// Processes a peer's feedback. `above_least`: from a delay less what its path takes while idle, how much it is above
    /// the least, both in us; it is asked of reports that a policy wants, in their order.
    pub fn learn(
        &mut self,
        sent: Sent,
        feedback: &Feedback,
        mut above_least: impl FnMut(u32) -> u32,
        now: Seconds,
    ) {
        for receipt in &feedback.receipts {
            let departed = sent.departures.of(receipt.number);
            if departed.flow == 0 || !self.policy(departed.class).learns() {
                continue;
            }
            let Some(port) = sent.log.entropy_of(receipt.number) else { continue };
            let above_us = above_least(self.routes.queued_us(sent.leaf, receipt));
            let report = Report {
                flow: i64::from(departed.flow),
                leaf: sent.leaf,
                port,
                stamp: receipt.stamp,
                delay_s: f64::from(above_us) * 1e-6,
                sent: departed.at,
                marked: receipt.marked,
            };
            self.policy(departed.class).reported(&report, now);
        }
        let mut left = MOST_LOST;
        for &(first, count) in &feedback.lost {
            let count = count.min(left);
            left -= count;
            for ahead in 0..count {
                let number = first.wrapping_add(ahead);
                let departed = sent.departures.of(number);
                let policy = self.policy(departed.class);
                let Some(port) = sent.log.entropy_of(number) else { continue };
                if departed.flow != 0 && policy.learns() {
                    policy.lost(i64::from(departed.flow), sent.leaf, port, now);
                }
            }
        }
    }

    /// Drops what is kept of a flow that is over.
    pub fn forget(&mut self, flow: i64) {
        for policy in &mut self.policies {
            policy.forget(flow);
        }
    }

    /// Notes that the controller has granted a flow a path (0: none of its own).
    pub fn granted(&mut self, flow: i64, stamp: u16) {
        for policy in &mut self.policies {
            policy.granted(flow, stamp);
        }
    }

    /// Returns what the other agents of our leaf are to know of us; None: no policy shares anything.
    pub fn load(&mut self, now: Seconds) -> Option<Load> {
        self.policies.iter_mut().filter_map(|policy| policy.load(now)).reduce(|mut all, load| {
            for (stamp, count) in load.short_flows {
                *all.short_flows.entry(stamp).or_default() += count;
            }
            all.delays_s.extend(load.delays_s);
            all
        })
    }

    /// Sets the load that the other agents of our leaf have together, from now on.
    pub fn set_load(&mut self, load: &Load, now: Seconds) {
        for policy in &mut self.policies {
            policy.set_load(load, now);
        }
    }
}
