//! A recorded window as columns for Python.

use ::simulator::recording::Recording;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Return a recording as columns by name, in three tables. Of a packet of no flow, the flow is -1.
pub(super) fn columns_of<'py>(py: Python<'py>, recording: &Recording) -> PyResult<Bound<'py, PyDict>> {
    let (packets, hops, releases) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    let sent = &recording.packets;
    packets
        .set_item("flow", sent.iter().map(|packet| packet.flow.map_or(-1, i64::from)).collect::<Vec<_>>())?;
    packets.set_item("number", sent.iter().map(|packet| packet.number).collect::<Vec<_>>())?;
    packets.set_item("kind", sent.iter().map(|packet| u16::from(packet.kind as u8)).collect::<Vec<_>>())?;
    packets.set_item("class", sent.iter().map(|packet| packet.class.index()).collect::<Vec<_>>())?;
    packets.set_item("bytes", sent.iter().map(|packet| packet.bytes).collect::<Vec<_>>())?;
    packets.set_item("source", sent.iter().map(|packet| packet.source).collect::<Vec<_>>())?;
    packets.set_item("destination", sent.iter().map(|packet| packet.destination).collect::<Vec<_>>())?;
    let passed = &recording.hops;
    hops.set_item("packet", passed.iter().map(|hop| hop.packet).collect::<Vec<_>>())?;
    hops.set_item("link", passed.iter().map(|hop| hop.link).collect::<Vec<_>>())?;
    hops.set_item("offered_ps", passed.iter().map(|hop| hop.offered).collect::<Vec<_>>())?;
    hops.set_item("waited_ps", passed.iter().map(|hop| hop.waited).collect::<Vec<_>>())?;
    hops.set_item("outcome", passed.iter().map(|hop| u16::from(hop.outcome as u8)).collect::<Vec<_>>())?;
    hops.set_item("queue", passed.iter().map(|hop| hop.queue).collect::<Vec<_>>())?;
    let released = &recording.releases;
    releases.set_item("at_ps", released.iter().map(|release| release.at).collect::<Vec<_>>())?;
    releases.set_item("flow", released.iter().map(|release| release.flow).collect::<Vec<_>>())?;
    releases.set_item("number", released.iter().map(|release| release.number).collect::<Vec<_>>())?;
    releases
        .set_item("kind", released.iter().map(|release| u16::from(release.kind as u8)).collect::<Vec<_>>())?;
    let columns = PyDict::new(py);
    columns.set_item("packets", packets)?;
    columns.set_item("hops", hops)?;
    columns.set_item("releases", releases)?;
    columns.set_item("full_at_ps", recording.full_at)?;
    Ok(columns)
}
