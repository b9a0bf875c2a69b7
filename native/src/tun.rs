//! Packets from the host, as a TUN device with IFF_VNET_HDR gives them.

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use datapath::coalesce;
use datapath::inner::{self, Seen, TCP, UDP};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::inbox::open;

/// One read of a TUN device with IFF_VNET_HDR, until it is taken.
pub struct Waiting {
    buffer: Vec<u8>,
    length: Option<usize>,
}

impl Waiting {
    /// Read the next packet, unless there is one already.
    pub fn fetch(&mut self, fd: RawFd) -> io::Result<()> {
        if self.length.is_some() {
            return Ok(());
        }
        // SAFETY: the kernel writes at most as many bytes as there are.
        let length = unsafe { libc::read(fd, self.buffer.as_mut_ptr().cast(), self.buffer.len()) };
        if length >= 0 {
            self.length = Some(length as usize);
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }

    /// Returns what was read and not taken yet.
    pub fn data(&self) -> Option<&[u8]> {
        self.length.map(|length| &self.buffer[..length])
    }

    /// Discards what was read.
    pub fn clear(&mut self) {
        self.length = None;
    }
}

/// Reads what the host sends from a TUN device with IFF_VNET_HDR.
#[pyclass]
pub struct TunReader {
    pub waiting: Arc<Mutex<Waiting>>,
    /// The class of what is seen of an inner packet: a named tuple.
    seen: Py<PyType>,
}

const GSO_ECN: u8 = 0x80;

/// Returns true if the checksum that the kernel left unfinished is of a kind that is finished when the packet is
/// written.
fn is_known_checksum(packet: &[u8]) -> bool {
    packet.len() >= inner::TRANSPORT
        && matches!(packet[9], TCP | UDP)
        && packet[6] & 0x3F == 0
        && packet[7] == 0
}

#[pymethods]
impl TunReader {
    #[new]
    fn new(seen: &Bound<'_, PyType>) -> PyResult<Self> {
        if !seen.is_subclass_of::<PyTuple>()? {
            return Err(PyValueError::new_err("what is seen of a packet must be a tuple"));
        }
        let waiting = Waiting { buffer: vec![0; coalesce::VNET_BYTES + 65536], length: None };
        Ok(TunReader { waiting: Arc::new(Mutex::new(waiting)), seen: seen.clone().unbind() })
    }

    fn read<'py>(&self, py: Python<'py>, fd: RawFd) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut waiting = open(&self.waiting);
        waiting.fetch(fd)?;
        let Some(data) = waiting.data() else { return Ok(None) };
        let packet = match known(data) {
            Some((packet, size, seen)) => {
                let seen = seen_by(self.seen.bind(py), &seen)?;
                (PyBytes::new(py, packet), size, seen).into_pyobject(py)?
            }
            None => (PyBytes::new(py, data), -1, py.None()).into_pyobject(py)?,
        };
        waiting.clear();
        Ok(Some(packet))
    }
}

/// Returns the packet, the payload of a segment (0: it is not to be cut) and the fields of its headers, where a read is
/// of the commonest kinds.
pub fn known(data: &[u8]) -> Option<(&[u8], i32, Seen)> {
    let (header, packet) = data.split_at_checked(coalesce::VNET_BYTES)?;
    let size = i32::from(u16::from_ne_bytes([header[4], header[5]]));
    let size = match header[1] & !GSO_ECN {
        coalesce::GSO_NONE if header[0] & coalesce::NEEDS_CHECKSUM != 0 && !is_known_checksum(packet) => {
            return None
        }
        coalesce::GSO_NONE => 0,
        coalesce::GSO_TCP4 if size > 0 => size,
        _ => return None,
    };
    Some((packet, size, inner::look_plain(packet)?))
}

/// Returns what Python calls an `InnerPacket`: of *class*, a named tuple.
fn seen_by<'py>(class: &Bound<'py, PyType>, seen: &Seen) -> PyResult<Bound<'py, PyAny>> {
    let (py, destination) = (class.py(), seen.flow.destination());
    let fields = (
        if destination.bytes().len() == 4 { 4 } else { 6 },
        PyBytes::new(py, seen.flow.bytes()),
        PyBytes::new(py, destination.bytes()),
        seen.protocol,
        seen.transport,
        seen.payload,
        seen.control,
        seen.push,
        seen.opening,
    );
    py.get_type::<PyTuple>().call_method1("__new__", (class, fields))
}

#[pyfunction]
fn look_at<'py>(
    packet: &[u8],
    seen: &Bound<'py, PyType>,
    error: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyAny>> {
    match inner::look(packet) {
        Ok(headers) => seen_by(seen, &headers),
        Err(malformed) => Err(PyErr::from_value(error.call1((malformed.reason, malformed.text))?)),
    }
}

/// Add this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TunReader>()?;
    module.add_function(wrap_pyfunction!(look_at, module)?)
}
