//! The packets of one receiving flow that its decoder remembers, by position: a ring of references.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Positions from the floor on that can be kept. A power of two.
const RING: usize = 1024;

#[pyclass]
pub struct KeptPackets {
    ring: Vec<Option<Py<PyBytes>>>,
    #[pyo3(get)]
    floor: u32,
    /// Bytes of all packets that are kept.
    #[pyo3(get)]
    bytes: usize,
}

fn slot(position: u32) -> usize {
    position as usize % RING
}

impl KeptPackets {
    fn at(&self, position: u32) -> Option<&Py<PyBytes>> {
        let inside = (position.wrapping_sub(self.floor) as usize) < RING;
        self.ring[slot(position)].as_ref().filter(|_| inside)
    }

    fn run(&self, position: u32, count: usize) -> impl Iterator<Item = Option<&Py<PyBytes>>> {
        (0..count as u32).map(move |ahead| self.at(position.wrapping_add(ahead)))
    }

    /// Whether packets at `count` positions from `position` on can be kept; none of them may be there.
    fn check(&self, position: u32, count: usize) -> PyResult<()> {
        if position.wrapping_sub(self.floor) as usize + count > RING {
            return Err(PyValueError::new_err(format!(
                "{count} packets from position {position} on cannot be kept from {} on",
                self.floor
            )));
        }
        Ok(())
    }
}

#[pymethods]
impl KeptPackets {
    #[classattr]
    const RING: usize = RING;

    #[new]
    fn new(floor: u32) -> Self {
        KeptPackets { ring: (0..RING).map(|_| None).collect(), floor, bytes: 0 }
    }

    fn __contains__(&self, position: u32) -> bool {
        self.at(position).is_some()
    }

    fn put(&mut self, py: Python<'_>, position: u32, packet: Bound<'_, PyBytes>) -> PyResult<()> {
        self.put_run(py, position, vec![packet])
    }

    fn put_run(&mut self, py: Python<'_>, position: u32, packets: Vec<Bound<'_, PyBytes>>) -> PyResult<()> {
        self.check(position, packets.len())?;
        for (ahead, packet) in (0..).zip(packets) {
            let place = &mut self.ring[slot(position.wrapping_add(ahead))];
            self.bytes += packet.as_bytes().len();
            if let Some(before) = place.replace(packet.unbind()) {
                self.bytes -= before.bind(py).as_bytes().len();
            }
        }
        Ok(())
    }

    fn count(&self, position: u32, count: usize) -> usize {
        self.run(position, count).flatten().count()
    }

    fn packets<'py>(&self, py: Python<'py>, position: u32, count: usize) -> Vec<Option<Bound<'py, PyBytes>>> {
        self.run(position, count).map(|packet| packet.map(|packet| packet.bind(py).clone())).collect()
    }

    fn raise_floor(&mut self, py: Python<'_>, steps: u32) {
        for ahead in 0..steps.min(RING as u32) {
            if let Some(packet) = self.ring[slot(self.floor.wrapping_add(ahead))].take() {
                self.bytes -= packet.bind(py).as_bytes().len();
            }
        }
        self.floor = self.floor.wrapping_add(steps);
    }
}
