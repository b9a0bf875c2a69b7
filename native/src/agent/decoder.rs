//! A flow's decoder for Python: packets are used and given as they are, and bytes are rebuilt without the interpreter.

use agent::receiving::{
    rebuild_bytes, Contradiction, DecoderCounters, DecoderLimits, Payload, Rebuilt, Repair, UnitDecoder,
    UnitShape, MAX_K, SOURCE_WINDOW,
};
use coding::Code;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::raised;

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
    rebuilt.into_iter().map(|packet| (packet.position, packet.packet.0)).collect()
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
