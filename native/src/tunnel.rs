//! Rules of IP tunnels for Python: ECN, packets that are too large, addresses that no host has.

use datapath::tunnel::{self, Decapsulated};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Returns the packet if it has a whole IP header.
fn sound(packet: &[u8]) -> PyResult<&[u8]> {
    let header = match packet.first().map(|first| first >> 4) {
        Some(4) => usize::from(packet[0] & 0x0F).max(5) * 4,
        _ => 40,
    };
    if packet.len() < header {
        return Err(PyValueError::new_err(format!("{} B are no IP packet", packet.len())));
    }
    Ok(packet)
}

#[pyfunction]
fn ecn_of(packet: &[u8]) -> PyResult<u8> {
    Ok(tunnel::ecn_of(sound(packet)?))
}

#[pyfunction]
fn decapsulate_ecn<'py>(packet: Bound<'py, PyBytes>, outer: u8) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let inner = tunnel::ecn_of(sound(packet.as_bytes())?);
    Ok(match tunnel::decapsulate(inner, outer) {
        Decapsulated::AsItIs => Some(packet),
        Decapsulated::Dropped => None,
        Decapsulated::With(ecn) => {
            let mut marked = packet.as_bytes().to_vec();
            tunnel::set_ecn(&mut marked, ecn);
            Some(PyBytes::new(packet.py(), &marked))
        }
    })
}

#[pyfunction]
fn dont_fragment(packet: &[u8]) -> PyResult<bool> {
    Ok(tunnel::dont_fragment(sound(packet)?))
}

#[pyfunction]
fn too_big<'py>(py: Python<'py>, packet: &[u8], mtu: u32) -> PyResult<Option<Bound<'py, PyBytes>>> {
    Ok(tunnel::too_big(sound(packet)?, mtu).map(|answer| PyBytes::new(py, &answer)))
}

#[pyfunction]
fn unreachable<'py>(py: Python<'py>, packet: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
    Ok(tunnel::unreachable(sound(packet)?).map(|answer| PyBytes::new(py, &answer)))
}

#[pyfunction]
fn fragment<'py>(py: Python<'py>, packet: &[u8], mtu: usize) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let pieces = tunnel::fragment(sound(packet)?, mtu).ok_or_else(|| {
        PyValueError::new_err(format!("an MTU of {mtu} B leaves no room behind the packet's header"))
    })?;
    Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ecn_of, module)?)?;
    module.add_function(wrap_pyfunction!(decapsulate_ecn, module)?)?;
    module.add_function(wrap_pyfunction!(dont_fragment, module)?)?;
    module.add_function(wrap_pyfunction!(too_big, module)?)?;
    module.add_function(wrap_pyfunction!(unreachable, module)?)?;
    module.add_function(wrap_pyfunction!(fragment, module)?)
}
