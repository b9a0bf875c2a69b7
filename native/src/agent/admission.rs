//! Admission for Python. Packets come with what is seen of them: `host_agent.inner_packet.InnerPacket`.

use agent::admission::{Segment, TcpBytes, WindowClamp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The TCP header of a packet, by what is seen of it.
fn seen_segment(packet: &[u8], seen: &Bound<'_, PyAny>) -> PyResult<(usize, Segment)> {
    let transport = seen.getattr("transport")?.extract()?;
    let payload = seen.getattr("payload")?.extract()?;
    let segment = Segment::read(packet, transport, payload).ok_or_else(|| {
        PyValueError::new_err(format!(
            "a packet of {} B has no TCP header at offset {transport}",
            packet.len()
        ))
    })?;
    Ok((transport, segment))
}

#[pyclass(name = "WindowClamp")]
struct PyWindowClamp(WindowClamp<TcpBytes>);

#[pymethods]
impl PyWindowClamp {
    #[new]
    fn new(burst_s: f64) -> Self {
        PyWindowClamp(WindowClamp::new(burst_s))
    }

    #[getter]
    fn known(&self) -> bool {
        self.0.is_known()
    }

    #[getter]
    fn sent_bytes(&self) -> u64 {
        self.0.sent_bytes()
    }

    #[getter]
    fn segment_bytes(&self) -> i64 {
        self.0.segment_bytes()
    }

    #[pyo3(signature = (scale, segment_bytes, most_segment_bytes=0))]
    fn join(&mut self, scale: u32, segment_bytes: u32, most_segment_bytes: u32) {
        self.0.join(scale, segment_bytes, most_segment_bytes);
    }

    fn left(&mut self, packet: &[u8], seen: &Bound<'_, PyAny>) -> PyResult<()> {
        let (_, segment) = seen_segment(packet, seen)?;
        self.0.left(&segment);
        Ok(())
    }

    fn set_rate(&mut self, bytes_per_s: f64, now: f64) {
        self.0.set_rate(bytes_per_s, now);
    }

    fn arrived<'py>(
        &mut self,
        packet: &Bound<'py, PyBytes>,
        seen: &Bound<'py, PyAny>,
        now: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (transport, segment) = seen_segment(packet.as_bytes(), seen)?;
        let mut limited = TcpBytes { data: packet.as_bytes().to_vec(), transport, payload: segment.payload };
        self.0.arrived(&mut limited, &segment, now);
        if limited.data == packet.as_bytes() {
            return Ok(packet.clone());
        }
        Ok(PyBytes::new(packet.py(), &limited.data))
    }

    fn update<'py>(&mut self, py: Python<'py>, now: f64) -> Option<Bound<'py, PyBytes>> {
        self.0.update(now).map(|packet| PyBytes::new(py, &packet.data))
    }

    fn deadline(&self) -> Option<f64> {
        self.0.deadline()
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyWindowClamp>()
}
