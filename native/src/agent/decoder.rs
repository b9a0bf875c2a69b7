//! A flow's decoder for Python: packets are used and given as they are, and bytes are rebuilt without the interpreter.

use agent::receiving::{
    rebuild_bytes, Contradiction, DecoderCounters, DecoderLimits, Payload, Rebuilt, Repair, UnitDecoder,
    UnitShape, MAX_K, MAX_R, MAX_SYMBOL_BYTES, SOURCE_WINDOW,
};
use agent::serial::serial_difference;
use coding::packets::LENGTH_BYTES;
use coding::Code;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::raised;

/// Bytes of a repair before its symbol: code, k, r, index, and 8 more.
const HEAD_BYTES: usize = 12;

/// A packet of Python's.
struct Packet(Py<PyBytes>);

impl Clone for Packet {
    fn clone(&self) -> Self {
        Python::attach(|py| Packet(self.0.clone_ref(py)))
    }
}

impl Payload for Packet {
    type Symbol = Py<PyBytes>;

    fn bytes(&self) -> usize {
        Python::attach(|py| self.0.bind(py).as_bytes().len())
    }

    fn symbol_bytes(symbol: &Py<PyBytes>) -> usize {
        Python::attach(|py| symbol.bind(py).as_bytes().len())
    }

    fn rebuild(
        unit: UnitShape,
        packets: &[Option<&Packet>],
        repairs: &[(u32, Py<PyBytes>)],
    ) -> Result<Vec<(u32, Packet)>, Contradiction> {
        Python::attach(|py| {
            let packets: Vec<Option<&[u8]>> =
                packets.iter().map(|packet| packet.map(|packet| packet.0.as_bytes(py))).collect();
            let repairs: Vec<(usize, &[u8])> =
                repairs.iter().map(|(index, symbol)| (*index as usize, symbol.as_bytes(py))).collect();
            let rebuilt = py.detach(|| rebuild_bytes(unit, &packets, &repairs))?;
            let packet = |bytes: Vec<u8>| Packet(PyBytes::new(py, &bytes).unbind());
            Ok(rebuilt.into_iter().map(|(place, bytes)| (place, packet(bytes))).collect())
        })
    }
}

type Sources = Vec<(u32, Py<PyBytes>)>;

fn sources(rebuilt: Vec<Rebuilt<Packet>>) -> Sources {
    rebuilt.into_iter().map(|one| (one.position, one.packet.0)).collect()
}

#[pyclass(name = "DecoderCounters", frozen, eq)]
#[derive(PartialEq)]
struct PyDecoderCounters(DecoderCounters);

macro_rules! counters {
    ($($name:ident)*) => {
        #[pymethods]
        impl PyDecoderCounters {
            $(#[getter]
            fn $name(&self) -> u64 {
                self.0.$name
            })*
        }
    };
}

counters! {
    sources repairs recovered duplicate_sources late_sources surplus_repairs duplicate_repairs late_repairs
    malformed_repairs inconsistent_repairs failed_units expired_units
}

#[pyclass(name = "UnitDecoder")]
struct PyUnitDecoder(UnitDecoder<Packet>);

/// Whether a repair as on the wire is of a unit that can be; its index is not looked at.
fn is_sound(body: &[u8]) -> bool {
    body.len() > HEAD_BYTES + LENGTH_BYTES
        && body.len() - HEAD_BYTES <= MAX_SYMBOL_BYTES
        && Code::numbered(body[0]).is_ok()
        && (1..=MAX_K).contains(&body[1].into())
        && u32::from(body[2]) <= MAX_R
}

#[pymethods]
impl PyUnitDecoder {
    #[classattr]
    const MAX_K: u32 = MAX_K;
    #[classattr]
    const WINDOW: u32 = SOURCE_WINDOW;

    #[new]
    #[pyo3(signature = (max_bytes=1 << 20, max_units=16, max_age_s=2.0))]
    fn new(max_bytes: usize, max_units: usize, max_age_s: f64) -> Self {
        PyUnitDecoder(UnitDecoder::new(DecoderLimits { max_bytes, max_units, max_age_s }))
    }

    #[getter]
    fn counters(&self) -> PyDecoderCounters {
        PyDecoderCounters(self.0.counters())
    }

    #[getter]
    fn kept_bytes(&self) -> usize {
        self.0.kept_bytes()
    }

    #[getter]
    fn kept_units(&self) -> usize {
        self.0.kept_units()
    }

    fn source(&mut self, position: u64, packet: Py<PyBytes>, now: f64) -> Sources {
        let mut rebuilt = Vec::new();
        self.0.source(position as u32, Packet(packet), now, &mut rebuilt);
        sources(rebuilt)
    }

    fn repair(
        &mut self,
        position: u64,
        head: &Bound<'_, PyAny>,
        symbol: Py<PyBytes>,
        now: f64,
    ) -> PyResult<Sources> {
        let number = |name: &str| head.getattr(name)?.extract::<u32>();
        let code = Code::numbered(head.getattr("code")?.extract()?).map_err(raised)?;
        let unit = UnitShape { code, k: number("k")?, r: number("r")?, seed: number("seed")? };
        let repair = Repair { position: position as u32, unit, index: number("index")?, symbol };
        let mut rebuilt = Vec::new();
        self.0.repair(repair, now, &mut rebuilt);
        Ok(sources(rebuilt))
    }

    fn takes_run(&mut self, position: u32, count: u32, now: f64) -> bool {
        self.0.expire(now);
        let Some(newest) = self.0.newest() else { return false };
        let all_new = serial_difference(position, newest) > 0 || self.0.missing(position, count) == count;
        all_new && !self.0.is_forgotten(position) && !self.0.waits_within(position, count)
    }

    fn source_run(&mut self, position: u32, packets: Vec<Py<PyBytes>>, now: f64) {
        let mut rebuilt = Vec::new();
        for (ahead, packet) in (0..).zip(packets) {
            self.0.source(position.wrapping_add(ahead), Packet(packet), now, &mut rebuilt);
        }
    }

    fn surplus_run(&mut self, py: Python<'_>, position: u32, bodies: Vec<Py<PyBytes>>, now: f64) -> bool {
        self.0.expire(now);
        let Some(first) = bodies.first().map(|body| body.as_bytes(py)) else { return false };
        let alike = |body: &[u8]| body.len() == first.len() && body[..3] == first[..3] && body[3] < first[2];
        let surplus = is_sound(first)
            && !self.0.has_unit(position)
            && !self.0.is_forgotten(position)
            && self.0.missing(position, first[1].into()) == 0
            && bodies.iter().all(|body| alike(body.as_bytes(py)));
        if surplus {
            self.0.surplus(bodies.len() as u64);
        }
        surplus
    }

    fn needs_none_of(
        &self,
        py: Python<'_>,
        position: u32,
        repairs: Vec<(u32, u32, Vec<Py<PyBytes>>)>,
    ) -> bool {
        let none = |(behind, unit, bodies): &(u32, u32, Vec<Py<PyBytes>>)| {
            let Some(first) = bodies.first().map(|body| body.as_bytes(py)).filter(|body| is_sound(body))
            else {
                return false;
            };
            let (k, ahead) = (i64::from(first[1]), i64::from(serial_difference(*unit, position)));
            ahead + k <= i64::from(*behind)
                && !self.0.has_unit(*unit)
                && !self.0.is_forgotten(*unit)
                && self.0.missing(*unit, k.min(-ahead).max(0) as u32) == 0
        };
        self.0.newest().is_some() && repairs.iter().all(none)
    }

    fn surplus(&mut self, count: u64) {
        self.0.surplus(count);
    }

    fn known(&self, position: u64) -> bool {
        self.0.is_known(position as u32)
    }

    fn pending(&self, position: u64) -> bool {
        self.0.is_pending(position as u32)
    }

    fn shortfall(&self, position: u64) -> Option<u32> {
        self.0.shortfall(position as u32)
    }

    fn deadline(&self) -> Option<f64> {
        self.0.deadline()
    }

    fn expire(&mut self, now: f64) {
        self.0.expire(now);
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDecoderCounters>()?;
    module.add_class::<PyUnitDecoder>()
}
