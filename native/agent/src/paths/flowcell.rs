//! Round robin per flowcell of 64 KB over named paths: Presto.
//!
//! K. He, E. Rozner, K. Agarwal, W. Felter, J. Carter, A. Akella: "Presto: Edge-based Load Balancing for Fast
//! Datacenter Networks", ACM SIGCOMM 2015, section 3.1, Algorithm 1: a packet that no longer fits the cell begins the
//! next one, on the next label.

use crate::hash::NumberMap;
use crate::paths::{flow_entropy, PathPolicy, Train};
use crate::route::{FlowRef, Route};
use crate::time::Seconds;

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Of the labels that `turn` counts in.
    version: u32,
    turn: u64,
    port: u16,
    /// Bytes that still fit; below 0 behind a packet that is larger than a cell.
    left: i64,
}

/// A flow's first path follows from its hash. Where no path has a name, each cell has an entropy value of its own.
#[derive(Clone, Debug)]
pub struct Flowcell {
    bytes: i64,
    cells: NumberMap<i64, Cell>,
}

impl Flowcell {
    /// Returns a policy; `bytes`: most bytes of inner packets in a cell. A larger packet is a cell of its own.
    pub fn new(bytes: i64) -> Flowcell {
        Flowcell { bytes, cells: NumberMap::default() }
    }

    fn cell(&mut self, flow: FlowRef, route: &Route) -> &mut Cell {
        let bytes = self.bytes;
        let cell = self.cells.entry(flow.id).or_insert_with(|| {
            let first = u64::from(flow.hash) % route.labels.len().max(1) as u64;
            Cell { version: route.version, turn: 0, port: 0, left: 0 }.turned(first, flow, route, bytes)
        });
        if cell.version != route.version {
            cell.version = route.version;
            match route.labels.iter().position(|&label| label == cell.port) {
                Some(place) => cell.turn = place as u64,
                None => *cell = cell.turned(cell.turn, flow, route, bytes),
            }
        }
        cell
    }
}

impl Cell {
    /// Returns the empty cell of that turn.
    fn turned(self, turn: u64, flow: FlowRef, route: &Route, bytes: i64) -> Cell {
        let (turn, port) = match route.labels.len() as u64 {
            0 => (turn, flow_entropy(flow, turn)),
            paths => (turn % paths, route.labels[(turn % paths) as usize]),
        };
        Cell { version: self.version, turn, port, left: bytes }
    }
}

impl PathPolicy for Flowcell {
    fn source_port(&mut self, flow: FlowRef, route: &Route, size: u32, _now: Seconds) -> u16 {
        let bytes = self.bytes;
        let cell = self.cell(flow, route);
        if cell.left < i64::from(size) && cell.left < bytes {
            *cell = cell.turned(cell.turn + 1, flow, route, bytes);
        }
        cell.left -= i64::from(size);
        cell.port
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        let size = i64::from(train.size.max(1));
        let mut full = train.count.saturating_sub(1);
        while full > 0 {
            let port = self.source_port(train.flow, train.route, train.size, now);
            let cell = self.cell(train.flow, train.route);
            let fit = usize::try_from(cell.left / size).unwrap_or(0).min(full - 1);
            cell.left -= fit as i64 * size;
            ports.extend(std::iter::repeat_n(port, fit + 1));
            full -= fit + 1;
        }
        if train.count > 0 {
            ports.push(self.source_port(train.flow, train.route, train.last, now));
        }
    }

    fn forget(&mut self, flow: i64) {
        self.cells.remove(&flow);
    }
}
