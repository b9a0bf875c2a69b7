//! Priority of a flow's packets: by bytes sent against the thresholds of its type, or by its announced size (TPFS, PIAS).
//!
//! A flow carries what its next packet needs: its type of service by class, and how much it may send before that changes.
//! So a packet costs one comparison; types are looked up when a flow begins, and for all flows when types or policy change.

use std::collections::HashMap;
use std::sync::Arc;

use crate::class::{TrafficClass, PRIORITIES};

/// More bytes than any flow sends.
pub const NEVER: u64 = 1 << 62;

/// What a flow's next packet needs.
#[derive(Clone, Debug)]
pub struct FlowPriority {
    thresholds: Arc<[u64]>,
    /// Payload at which its priority falls next, bytes.
    pub demote_at: u64,
    /// Type of service without congestion marks, by class.
    pub tos: [u8; 4],
}

impl Default for FlowPriority {
    fn default() -> FlowPriority {
        FlowPriority { thresholds: Arc::from([]), demote_at: NEVER, tos: [0; 4] }
    }
}

impl FlowPriority {
    /// Returns the priority of the next packet, if it is of that class.
    pub fn level(&self, class: TrafficClass) -> u8 {
        (self.tos[class.index()] >> 2) % PRIORITIES as u8
    }
}

/// What decides priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorityRule {
    /// The class alone.
    #[default]
    Class,
    /// What the flow has sent.
    Sent,
    /// What it was announced with, else what it has sent.
    Size,
}

/// Priorities by a policy document.
#[derive(Clone, Debug, Default)]
pub struct PriorityPolicy {
    /// What decides.
    pub rule: PriorityRule,
    /// Priorities of classes, where the class alone decides; that of control always does.
    pub of_class: [u8; 4],
    /// Bytes after which a flow's priority falls: fewer than there are priorities, not falling.
    pub thresholds: Arc<[u64]>,
    /// Whether types of flows have thresholds of their own, and the controller wants to know of flows that have ended.
    pub predicted: bool,
}

/// A feature of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Source address.
    Source,
    /// Destination address.
    Destination,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
}

/// Types of flows: thresholds by the values of some features.
#[derive(Clone, Debug, Default)]
pub struct FlowTypes {
    /// Which features distinguish types; none: there are no types.
    pub features: Vec<Feature>,
    /// Thresholds by the bytes of those features, one after the other.
    pub of_value: HashMap<Vec<u8>, Arc<[u64]>>,
}

/// What is known of a flow when it is given its priority.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Protocol (1 B), source, destination (4 or 16 B each), ports (2 B each).
    pub key: &'a [u8],
    /// What it has sent, bytes.
    pub payload: u64,
    /// What it was announced with, bytes; infinite where it has no end.
    pub announced: Option<f64>,
}

/// Whether a flow's type was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// It was not, or it has sent something already.
    NotAsked,
    /// It has thresholds of its own.
    Known,
    /// It has none.
    Unknown,
}

/// What the flows of one host get.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    policy: PriorityPolicy,
    types: FlowTypes,
    /// By priority and class.
    tos: [[u8; 4]; PRIORITIES],
}

impl Priorities {
    /// Sets policy and types; all flows are to be assigned anew.
    pub fn set(&mut self, policy: PriorityPolicy, types: FlowTypes) {
        for (priority, tos) in self.tos.iter_mut().enumerate() {
            *tos = TrafficClass::ALL.map(|class| {
                let own = policy.of_class[class.index()];
                let level = match class {
                    TrafficClass::None => 0,
                    TrafficClass::Control => own,
                    _ if policy.rule == PriorityRule::Class => own,
                    _ => priority as u8,
                };
                class.dscp(level) << 2
            });
        }
        (self.policy, self.types) = (policy, types);
    }

    /// Returns whether the controller wants to know of flows that have ended.
    pub fn predicted(&self) -> bool {
        self.policy.predicted
    }

    /// Returns the type of service of what belongs to no flow.
    pub fn control_tos(&self) -> u8 {
        self.tos[0][TrafficClass::Control.index()]
    }

    /// Gives a flow what its next packet needs: at its beginning, and when policy, types or its size change.
    pub fn assign(&self, subject: Subject<'_>, flow: &mut FlowPriority) -> Typed {
        let policy = &self.policy;
        if policy.rule == PriorityRule::Class {
            *flow = FlowPriority { tos: self.tos[0], ..FlowPriority::default() };
            return Typed::NotAsked;
        }
        let (mut thresholds, mut typed) = (policy.thresholds.clone(), Typed::NotAsked);
        if policy.predicted {
            let types = self.types.of_value.get(&self.value(subject.key));
            if subject.payload == 0 {
                typed = if types.is_some() { Typed::Known } else { Typed::Unknown };
            }
            thresholds = types.cloned().unwrap_or(thresholds);
        }
        flow.thresholds = thresholds;
        match subject.announced {
            Some(size) if policy.rule == PriorityRule::Size => {
                let below = flow.thresholds.partition_point(|&threshold| (threshold as f64) < size);
                flow.demote_at = NEVER;
                flow.tos = self.tos[below.min(PRIORITIES - 1)];
            }
            _ => self.demote(subject.payload, flow),
        }
        typed
    }

    /// Gives a flow the priority of the payload that it has sent: for its next packet, when that reaches `demote_at`.
    pub fn demote(&self, payload: u64, flow: &mut FlowPriority) {
        let passed = flow.thresholds.partition_point(|&threshold| threshold <= payload);
        flow.demote_at = flow.thresholds.get(passed).copied().unwrap_or(NEVER);
        flow.tos = self.tos[passed.min(PRIORITIES - 1)];
    }

    /// Returns the bytes of a flow's features.
    fn value(&self, key: &[u8]) -> Vec<u8> {
        let mut value = Vec::with_capacity(36);
        let Some((addresses, ports)) = key.get(1..).and_then(|rest| rest.split_last_chunk::<4>()) else {
            return value;
        };
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        for feature in &self.types.features {
            value.extend_from_slice(match feature {
                Feature::Source => source,
                Feature::Destination => destination,
                Feature::SourcePort => &ports[..2],
                Feature::DestinationPort => &ports[2..],
            });
        }
        value
    }
}
