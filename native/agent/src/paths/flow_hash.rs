//! One entropy value per flow: what ECMP does, whichever group a switch uses (RFC 2992).

use crate::paths::{flow_entropy, PathPolicy, Train};
use crate::route::{FlowRef, Route};
use crate::time::Seconds;

/// A function of the flow alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowHash;

impl PathPolicy for FlowHash {
    fn source_port(&mut self, flow: FlowRef, _route: &Route, _size: u32, _now: Seconds) -> u16 {
        flow_entropy(flow, 0)
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        self.repeat(train, now, ports);
    }
}
