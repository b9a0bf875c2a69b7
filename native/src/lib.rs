//! What is compiled, for Python: `capstan_native`, described in capstan_native/.
//!
//! Packets and arrays are used where they are while the interpreter is not held (bytes do not change; the caller keeps
//! other threads from writing arrays meanwhile, as with numpy's own functions). What has come of a unit is copied.

mod agent;
mod capton;
#[cfg(feature = "linux")]
mod datapath;
mod fabric;
#[cfg(feature = "linux")]
mod inbox;
mod json;
mod simulator;
mod texts;
#[cfg(feature = "linux")]
mod tun;
#[cfg(feature = "linux")]
mod undecided;

use coding::packets::{Received, Repairs};
use coding::{ldpc, Code, Error, Kernel};
use pyo3::buffer::PyBuffer;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

create_exception!(
    capstan_native,
    ContradictionError,
    PyValueError,
    "Received symbols of one unit cannot all be right: no packet of it may be rebuilt."
);

fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Invalid(_) => PyValueError::new_err(text),
        Error::Contradiction(_) => ContradictionError::new_err(text),
    }
}

fn kernel_named(name: Option<&str>) -> PyResult<Kernel> {
    name.map_or(Ok(Kernel::best()), Kernel::named).map_err(raised)
}

/// Rows of an array of bytes, used where they are.
struct Rows {
    buffer: PyBuffer<u8>,
    count: usize,
    width: usize,
}

impl Rows {
    fn of(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Rows> {
        let wrong = |text: &str| PyValueError::new_err(format!("{name} {text}"));
        let buffer = PyBuffer::<u8>::get(array)
            .map_err(|error| wrong(&format!("must be an array of uint8: {error}")))?;
        if buffer.dimensions() != 2 || !buffer.is_c_contiguous() {
            return Err(wrong("must be two-dimensional and contiguous"));
        }
        let (count, width) = (buffer.shape()[0], buffer.shape()[1]);
        if width == 0 {
            return Err(wrong("must have rows of at least one byte"));
        }
        Ok(Rows { buffer, count, width })
    }

    fn bytes(&self) -> &[u8] {
        let length = self.count * self.width;
        if length == 0 {
            return &[]; // the address of an empty buffer may be null
        }
        // SAFETY: the buffer is contiguous, of bytes, and is held as long as `self`.
        unsafe { std::slice::from_raw_parts(self.buffer.buf_ptr().cast(), length) }
    }

    fn rows(&self) -> Vec<&[u8]> {
        (0..self.count).map(|row| &self.bytes()[row * self.width..][..self.width]).collect()
    }
}

/// An array of bytes that a result goes into: writable, and apart from all `inputs`.
struct Output(Rows);

impl Output {
    fn of(name: &str, array: &Bound<'_, PyAny>, inputs: &[&Rows]) -> PyResult<Output> {
        let rows = Rows::of(name, array)?;
        if rows.buffer.readonly() {
            return Err(PyValueError::new_err(format!("{name} must be writable")));
        }
        let own = rows.bytes().as_ptr_range();
        for input in inputs {
            let other = input.bytes().as_ptr_range();
            if own.start < other.end && other.start < own.end {
                return Err(PyValueError::new_err(format!("{name} must not overlap what is read")));
            }
        }
        Ok(Output(rows))
    }

    fn bytes(&mut self) -> &mut [u8] {
        let length = self.0.count * self.0.width;
        if length == 0 {
            return &mut [];
        }
        // SAFETY: as `Rows::bytes`; the buffer is writable and overlaps nothing that is read.
        unsafe { std::slice::from_raw_parts_mut(self.0.buffer.buf_ptr().cast(), length) }
    }
}

#[pyfunction]
fn kernels() -> Vec<&'static str> {
    Kernel::available().into_iter().map(Kernel::name).collect()
}

#[pyfunction]
#[pyo3(signature = (code, sources, seed, out, kernel=None))]
fn encode(
    py: Python<'_>,
    code: u8,
    sources: &Bound<'_, PyAny>,
    seed: u32,
    out: &Bound<'_, PyAny>,
    kernel: Option<&str>,
) -> PyResult<()> {
    let (code, kernel) = (Code::numbered(code).map_err(raised)?, kernel_named(kernel)?);
    let sources = Rows::of("sources", sources)?;
    let mut out = Output::of("out", out, &[&sources])?;
    if out.0.width != sources.width {
        return Err(PyValueError::new_err(format!(
            "repairs of {} B do not fit sources of {} B",
            out.0.width, sources.width
        )));
    }
    let (rows, width) = (sources.rows(), sources.width);
    let result = out.bytes();
    py.detach(|| code.encode(kernel, seed, &rows, width, result)).map_err(raised)
}

#[pyfunction]
#[pyo3(signature = (code, sources, missing, repairs, indices, r, seed, out, kernel=None))]
#[allow(clippy::too_many_arguments)] // Python's callers name them
fn decode(
    py: Python<'_>,
    code: u8,
    sources: &Bound<'_, PyAny>,
    missing: Vec<usize>,
    repairs: &Bound<'_, PyAny>,
    indices: Vec<usize>,
    r: usize,
    seed: u32,
    out: &Bound<'_, PyAny>,
    kernel: Option<&str>,
) -> PyResult<Vec<usize>> {
    let (code, kernel) = (Code::numbered(code).map_err(raised)?, kernel_named(kernel)?);
    let sources = Rows::of("sources", sources)?;
    let repairs = Rows::of("repairs", repairs)?;
    let mut out = Output::of("out", out, &[&sources, &repairs])?;
    let width = sources.width;
    if repairs.width != width
        || out.0.width != width
        || repairs.count != indices.len()
        || out.0.count < missing.len()
    {
        return Err(PyValueError::new_err(format!(
            "{}x{} sources, {} of them missing, {}x{} repairs with {} indices and {}x{} results do not fit",
            sources.count,
            width,
            missing.len(),
            repairs.count,
            repairs.width,
            indices.len(),
            out.0.count,
            out.0.width
        )));
    }
    let mut known: Vec<Option<&[u8]>> = sources.rows().into_iter().map(Some).collect();
    for &index in &missing {
        if known.get_mut(index).and_then(Option::take).is_none() {
            return Err(PyValueError::new_err(format!(
                "missing source {index} is out of range or given twice"
            )));
        }
    }
    let received: Vec<(usize, &[u8])> = indices.into_iter().zip(repairs.rows()).collect();
    let result = out.bytes();
    py.detach(|| {
        let rebuilt = code.decode(kernel, seed, r, &known, &received, width)?;
        result[..rebuilt.symbols.len()].copy_from_slice(&rebuilt.symbols);
        Ok(rebuilt.indices)
    })
    .map_err(raised)
}

#[pyfunction]
#[pyo3(signature = (code, packets, r, seed, kernel=None))]
fn encode_packets<'py>(
    py: Python<'py>,
    code: u8,
    packets: Vec<Bound<'py, PyBytes>>,
    r: usize,
    seed: u32,
    kernel: Option<&str>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let (code, kernel) = (Code::numbered(code).map_err(raised)?, kernel_named(kernel)?);
    code.check(packets.len(), r).map_err(raised)?;
    let packets: Vec<&[u8]> = packets.iter().map(|packet| packet.as_bytes()).collect();
    let repairs = py.detach(|| Repairs::encode(code, kernel, &packets, r, seed)).map_err(raised)?;
    let symbol = |(length, packet): (&[u8], &[u8])| {
        PyBytes::new_with(py, length.len() + packet.len(), |symbol| {
            symbol[..length.len()].copy_from_slice(length);
            symbol[length.len()..].copy_from_slice(packet);
            Ok(())
        })
    };
    repairs.symbols().map(symbol).collect()
}

#[pyfunction]
#[pyo3(signature = (code, packets, repairs, r, seed, kernel=None))]
fn decode_packets<'py>(
    py: Python<'py>,
    code: u8,
    packets: Vec<Option<Bound<'py, PyBytes>>>,
    repairs: &Bound<'py, PyDict>,
    r: usize,
    seed: u32,
    kernel: Option<&str>,
) -> PyResult<Vec<(usize, Bound<'py, PyBytes>)>> {
    let (code, kernel) = (Code::numbered(code).map_err(raised)?, kernel_named(kernel)?);
    code.check(packets.len(), r).map_err(raised)?;
    let repairs: Vec<(usize, Bound<'py, PyBytes>)> = repairs
        .iter()
        .map(|(index, symbol)| Ok((index.extract()?, symbol.cast_into()?)))
        .collect::<PyResult<_>>()?;
    let known: Vec<Option<&[u8]>> =
        packets.iter().map(|packet| packet.as_ref().map(|packet| packet.as_bytes())).collect();
    let received: Vec<(usize, &[u8])> =
        repairs.iter().map(|(index, symbol)| (*index, symbol.as_bytes())).collect();
    let unit = Received::pack(&known, &received).map_err(raised)?;
    let rebuilt = py.detach(|| unit.decode(code, kernel, r, seed)).map_err(raised)?;
    Ok(rebuilt.into_iter().map(|(index, packet)| (index, PyBytes::new(py, &packet))).collect())
}

#[pyfunction]
fn worth_trying(code: u8, missing: usize, repairs: usize) -> PyResult<bool> {
    Ok(Code::numbered(code).map_err(raised)?.worth_trying(missing, repairs))
}

#[pyfunction]
fn ldpc_rows(k: usize, r: usize, seed: u32) -> PyResult<Vec<Vec<usize>>> {
    Code::Ldpc.check(k, r).map_err(raised)?;
    Ok(ldpc::rows(k, r, seed))
}

#[pymodule]
fn capstan_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ContradictionError", module.py().get_type::<ContradictionError>())?;
    module.add_function(wrap_pyfunction!(kernels, module)?)?;
    module.add_function(wrap_pyfunction!(encode, module)?)?;
    module.add_function(wrap_pyfunction!(decode, module)?)?;
    module.add_function(wrap_pyfunction!(encode_packets, module)?)?;
    module.add_function(wrap_pyfunction!(decode_packets, module)?)?;
    module.add_function(wrap_pyfunction!(worth_trying, module)?)?;
    module.add_function(wrap_pyfunction!(ldpc_rows, module)?)?;
    agent::register(module)?;
    capton::register(module)?;
    fabric::register(module)?;
    json::register(module)?;
    #[cfg(feature = "linux")]
    {
        datapath::register(module)?;
        tun::register(module)?;
        undecided::register(module)?;
    }
    simulator::register(module)
}
