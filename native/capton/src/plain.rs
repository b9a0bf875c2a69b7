//! The pseudocode as it stands (Figure 6): at each event all flows are brought up to date, sorted, and granted anew.
//! What `scheduler` is compared with, in decisions and in speed.

use crate::fabric::{Fabric, Path};
use crate::{least_rate, Decision, Error, Parameters, BYTE};

#[derive(Clone, Copy, Debug)]
struct Flow {
    id: u64,
    path: Path,
    remaining: i128,
    rate: i64,
    /// Order of requests, and when it was made.
    turn: u64,
    requested: i128,
    /// When all its bytes should have left; only while it is granted.
    end: Option<i128>,
}

#[derive(Clone, Debug)]
pub struct Plain {
    fabric: Fabric,
    parameters: Parameters,
    flows: Vec<Flow>,
    now: i128,
    turn: u64,
}

impl Plain {
    pub fn new(fabric: Fabric, parameters: Parameters) -> Plain {
        Plain { fabric, parameters, flows: Vec::new(), now: 0, turn: 0 }
    }

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
        self.advance(now);
        let remaining = i128::from(bytes.max(1)) * BYTE;
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.id == id) {
            if flow.path != path {
                return Err(Error(format!("flow {id} has other ends")));
            }
            flow.remaining = remaining;
            flow.end = None;
        } else {
            let turn = self.turn;
            self.turn += 1;
            let requested = asked.min(self.now);
            self.flows.push(Flow { id, path, remaining, rate: 0, turn, requested, end: None });
        }
        Ok(self.decide())
    }

    pub fn finished(&mut self, id: u64, now: i128) -> Vec<Decision> {
        self.advance(now);
        self.flows.retain(|flow| flow.id != id);
        self.decide()
    }

    pub fn expire(&mut self, now: i128) -> Vec<Decision> {
        self.advance(now);
        let (now, timeout) = (self.now, self.parameters.finish_timeout);
        let gone = |flow: &Flow| flow.end.is_some_and(|end| end + timeout <= now);
        let mut decisions: Vec<Decision> =
            self.flows.iter().filter(|flow| gone(flow)).map(|flow| (flow.id, 0)).collect();
        self.flows.retain(|flow| !gone(flow));
        decisions.extend(self.decide());
        decisions
    }

    pub fn capacity(&mut self, link: usize, rate: i64, now: i128) -> Result<Vec<Decision>, Error> {
        self.fabric.set_capacity(link, rate)?;
        self.advance(now);
        Ok(self.decide())
    }

    pub fn next_event(&self) -> Option<i128> {
        let ends = self.flows.iter().filter_map(|flow| flow.end);
        ends.min().map(|end| end + self.parameters.finish_timeout)
    }

    pub fn len(&self) -> usize {
        self.flows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Reduces the remaining sizes by what the granted rates have sent since.
    fn advance(&mut self, now: i128) {
        let passed = (now - self.now).max(0);
        self.now += passed;
        for flow in &mut self.flows {
            flow.remaining = (flow.remaining - i128::from(flow.rate) * passed).max(0);
        }
    }

    fn decide(&mut self) -> Vec<Decision> {
        let ageing = i128::from(self.parameters.ageing) * 8;
        self.flows.sort_by_key(|flow| (flow.remaining + ageing * flow.requested, flow.turn));
        let mut unallocated = self.fabric.capacities.clone();
        let mut decisions = Vec::new();
        for flow in &mut self.flows {
            let links = flow.path.links();
            let line = self.fabric.line(&flow.path);
            let rate = links.iter().map(|&link| unallocated[link as usize]).min().unwrap_or(0).min(line);
            let rate = if rate >= least_rate(line, self.parameters.least_share) { rate } else { 0 };
            for &link in links {
                unallocated[link as usize] -= rate;
            }
            if rate != flow.rate {
                flow.rate = rate;
                flow.end = None;
                decisions.push((flow.id, rate));
            }
            if rate > 0 && flow.end.is_none() {
                let rate = i128::from(rate);
                flow.end = Some(self.now + (flow.remaining + rate - 1) / rate);
            }
        }
        decisions
    }
}
