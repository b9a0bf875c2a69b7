//! A recorded window as columns for Python.

use ::simulator::recording::Recording;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Return a recording as columns by name, in three tables. Of a packet of no flow, the flow is -1.
pub(super) fn columns_of<'py>(py: Python<'py>, recording: &Recording) -> PyResult<Bound<'py, PyDict>> {
    let (packets, hops, releases) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    let of = &recording.packets;
    packets.set_item("flow", of.iter().map(|one| one.flow.map_or(-1, i64::from)).collect::<Vec<_>>())?;
    packets.set_item("number", of.iter().map(|one| one.number).collect::<Vec<_>>())?;
    packets.set_item("kind", of.iter().map(|one| u16::from(one.kind as u8)).collect::<Vec<_>>())?;
    packets.set_item("class", of.iter().map(|one| one.class.index()).collect::<Vec<_>>())?;
    packets.set_item("bytes", of.iter().map(|one| one.bytes).collect::<Vec<_>>())?;
    packets.set_item("source", of.iter().map(|one| one.source).collect::<Vec<_>>())?;
    packets.set_item("destination", of.iter().map(|one| one.destination).collect::<Vec<_>>())?;
    let of = &recording.hops;
    hops.set_item("packet", of.iter().map(|one| one.packet).collect::<Vec<_>>())?;
    hops.set_item("link", of.iter().map(|one| one.link).collect::<Vec<_>>())?;
    hops.set_item("offered_ps", of.iter().map(|one| one.offered).collect::<Vec<_>>())?;
    hops.set_item("waited_ps", of.iter().map(|one| one.waited).collect::<Vec<_>>())?;
    hops.set_item("outcome", of.iter().map(|one| u16::from(one.outcome as u8)).collect::<Vec<_>>())?;
    hops.set_item("queue", of.iter().map(|one| one.queue).collect::<Vec<_>>())?;
    let of = &recording.releases;
    releases.set_item("at_ps", of.iter().map(|one| one.at).collect::<Vec<_>>())?;
    releases.set_item("flow", of.iter().map(|one| one.flow).collect::<Vec<_>>())?;
    releases.set_item("number", of.iter().map(|one| one.number).collect::<Vec<_>>())?;
    releases.set_item("kind", of.iter().map(|one| u16::from(one.kind as u8)).collect::<Vec<_>>())?;
    let columns = PyDict::new(py);
    columns.set_item("packets", packets)?;
    columns.set_item("hops", hops)?;
    columns.set_item("releases", releases)?;
    columns.set_item("full_at_ps", recording.full_at)?;
    Ok(columns)
}
