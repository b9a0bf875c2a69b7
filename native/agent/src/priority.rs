//! Priority of a flow's packets: by bytes sent against the thresholds of its type, or by its announced size (TPFS, PIAS).
//!
//! A flow carries what its next packet needs: its type of service by class, and how much it may send before that changes.
//! So a packet costs one comparison; types are looked up when a flow begins, and for all flows when types or policy change.

use std::collections::HashMap;
use std::sync::Arc;

use datapath::inner::FlowKey;

use crate::class::{TrafficClass, PRIORITIES};

/// More bytes than any flow sends.
pub const NEVER: u64 = 1 << 62;
/// Values of types that are kept.
pub const MOST_VALUES: usize = 65536;

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
    /// Bytes after which a flow's priority falls.
    pub thresholds: Arc<[u64]>,
    /// Whether types of flows have thresholds of their own, and the controller wants to hear of flows that have ended.
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
    /// Which features tell types apart; none: there are no types.
    pub features: Vec<Feature>,
    /// Thresholds by the bytes of those features, one after the other.
    pub of_value: HashMap<Vec<u8>, Arc<[u64]>>,
}

/// What is known of a flow when it is given its priority.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Whose packets they are.
    pub key: &'a FlowKey,
    /// What it has sent, bytes.
    pub payload: u64,
    /// What it was announced with, bytes.
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
    tos: [[u8; 4]; PRIORITIES],
}

impl Priorities {
    /// Sets policy and types; all flows are to be assigned anew.
    pub fn set(&mut self, policy: PriorityPolicy, types: FlowTypes) {
        for (priority, tos) in self.tos.iter_mut().enumerate() {
            for class in TrafficClass::ALL {
                let level = match class {
                    TrafficClass::None => 0,
                    TrafficClass::Control => policy.of_class[class.index()],
                    _ if policy.rule == PriorityRule::Class => policy.of_class[class.index()],
                    _ => priority as u8,
                };
                tos[class.index()] = class.dscp(level) << 2;
            }
        }
        (self.policy, self.types) = (policy, types);
    }

    /// Returns whether the controller wants to hear of flows that have ended.
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
            let found = self.value(subject.key).and_then(|value| self.types.of_value.get(&value));
            if subject.payload == 0 {
                typed = if found.is_some() { Typed::Known } else { Typed::Unknown };
            }
            thresholds = found.cloned().unwrap_or(thresholds);
        }
        flow.thresholds = thresholds;
        match subject.announced {
            Some(size) if policy.rule == PriorityRule::Size => {
                let below = flow.thresholds.iter().filter(|&&threshold| (threshold as f64) < size).count();
                flow.demote_at = NEVER;
                flow.tos = self.tos[below.min(PRIORITIES - 1)];
            }
            _ => self.demote(subject.payload, flow),
        }
        typed
    }

    /// Gives a flow the priority of the payload that it has sent.
    pub fn demote(&self, payload: u64, flow: &mut FlowPriority) {
        let passed = flow.thresholds.iter().filter(|&&threshold| threshold <= payload).count();
        flow.demote_at = flow.thresholds.get(passed).copied().unwrap_or(NEVER);
        flow.tos = self.tos[passed.min(PRIORITIES - 1)];
    }

    fn value(&self, key: &FlowKey) -> Option<Vec<u8>> {
        if self.types.features.is_empty() {
            return None;
        }
        let bytes = key.bytes();
        let ports = &bytes[bytes.len() - 4..];
        let mut value = Vec::with_capacity(36);
        for feature in &self.types.features {
            match feature {
                Feature::Source => value.extend_from_slice(key.source().bytes()),
                Feature::Destination => value.extend_from_slice(key.destination().bytes()),
                Feature::SourcePort => value.extend_from_slice(&ports[..2]),
                Feature::DestinationPort => value.extend_from_slice(&ports[2..]),
            }
        }
        Some(value)
    }
}
