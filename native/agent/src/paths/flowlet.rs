//! A random path per flowlet: LetFlow.
//!
//! E. Vanini, R. Pan, M. Alizadeh, P. Taheri, T. Edsall: "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet
//! Switching", USENIX NSDI 2017, section 3: whenever a flow has paused for longer than the gap, its next packets take a
//! path drawn uniformly. Flowlets are long on free paths and short on busy ones, which is all the balancing that there
//! is.

use crate::hash::NumberMap;
use crate::paths::spray::entropy_value;
use crate::paths::{PathPolicy, Train};
use crate::random::Random;
use crate::route::{FlowRef, Route};
use crate::time::Seconds;

#[derive(Clone, Copy, Debug)]
struct LastSent {
    /// Of the labels that `port` was drawn from.
    version: u32,
    port: u16,
    at: Seconds,
}

/// Where no path has a name, each flowlet has an entropy value of its own.
#[derive(Clone, Debug)]
pub struct Flowlet<R> {
    random: R,
    gap_s: Seconds,
    flows: NumberMap<i64, LastSent>,
}

impl<R: Random> Flowlet<R> {
    /// Returns a policy; a pause of more than `gap_s` ends a flowlet (the paper: 500 us).
    pub fn new(random: R, gap_s: Seconds) -> Flowlet<R> {
        Flowlet { random, gap_s, flows: NumberMap::default() }
    }
}

impl<R: Random> PathPolicy for Flowlet<R> {
    fn source_port(&mut self, flow: FlowRef, route: &Route, _size: u32, now: Seconds) -> u16 {
        let Some(last) = self.flows.get_mut(&flow.id) else {
            let port = drawn(&mut self.random, route);
            self.flows.insert(flow.id, LastSent { version: route.version, port, at: now });
            return port;
        };
        if last.version != route.version {
            last.version = route.version;
            if !route.names(last.port) {
                last.port = drawn(&mut self.random, route);
            }
        }
        if now - last.at > self.gap_s {
            last.port = drawn(&mut self.random, route);
        }
        last.at = now;
        last.port
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        self.repeat(train, now, ports);
    }

    fn forget(&mut self, flow: i64) {
        self.flows.remove(&flow);
    }
}

fn drawn(random: &mut impl Random, route: &Route) -> u16 {
    match route.labels.len() {
        0 => entropy_value(random),
        paths => route.labels[random.below(paths as u32) as usize],
    }
}
