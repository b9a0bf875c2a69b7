//! The compiled path policies as classes of Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent::paths::{
    self, PathPolicy, PlbSettings, RepsSettings, Train, FLOWCELL_BYTES, LEAST_TIMEOUT_S, RING,
};
use agent::Generator;
use pyo3::prelude::*;

use super::leaves::leaf_id;
use super::values::{flow_of, PyLoad, PyReport, PyRoute};

/// Returns a generator that is seeded by one draw of Python's.
pub fn generator_of(rng: &Bound<'_, PyAny>) -> PyResult<Generator> {
    let seed: [u8; 8] = rng.call_method1("bytes", (8,))?.extract()?;
    Ok(Generator::new(u64::from_le_bytes(seed)))
}

#[pyclass(subclass)]
pub struct CompiledPathPolicy {
    shared: Mutex<Box<dyn PathPolicy + Send>>,
}

impl CompiledPathPolicy {
    fn of(policy: impl PathPolicy + Send + 'static) -> Self {
        CompiledPathPolicy { shared: Mutex::new(Box::new(policy)) }
    }

    fn held(&self) -> MutexGuard<'_, Box<dyn PathPolicy + Send>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl CompiledPathPolicy {
    fn entropy(&self, flow: &Bound<'_, PyAny>, route: &PyRoute, size: u32, now: f64) -> PyResult<u16> {
        Ok(self.held().source_port(flow_of(flow)?, &route.route, size, now))
    }

    fn entropies(
        &self,
        flow: &Bound<'_, PyAny>,
        route: &PyRoute,
        size: u32,
        count: usize,
        last: u32,
        now: f64,
    ) -> PyResult<Vec<u16>> {
        let train = Train { flow: flow_of(flow)?, route: &route.route, size, last, count };
        let mut ports = Vec::with_capacity(count);
        self.held().source_ports(train, now, &mut ports);
        Ok(ports)
    }

    fn reported(&self, report: &PyReport, now: f64) -> PyResult<()> {
        self.held().reported(&report.report()?, now);
        Ok(())
    }

    fn lost(&self, flow: i64, leaf: &str, entropy: u16, now: f64) -> PyResult<()> {
        self.held().lost(flow, leaf_id(leaf)?, entropy, now);
        Ok(())
    }

    fn forget(&self, flow: i64) {
        self.held().forget(flow);
    }

    fn grant(&self, flow: i64, stamp: u16) {
        self.held().granted(flow, stamp);
    }

    fn load(&self, py: Python<'_>, now: f64) -> PyResult<Option<PyLoad>> {
        let load = self.held().load(now);
        load.map(|load| PyLoad::of(py, &load)).transpose()
    }

    fn set_load(&self, py: Python<'_>, load: &PyLoad, now: f64) -> PyResult<()> {
        self.held().set_load(&load.load(py)?, now);
        Ok(())
    }
}

/// A class of Python for a kind of policy: what Python asks of the class, and how it is made.
macro_rules! policy {
    ($name:ident, learns: $learns:literal, $($methods:tt)*) => {
        #[pyclass(extends = CompiledPathPolicy)]
        pub struct $name;

        #[pymethods]
        #[allow(non_upper_case_globals)] // names of Python's
        impl $name {
            #[classattr]
            const learns: bool = $learns;

            $($methods)*
        }
    };
}

fn made<T>(policy: CompiledPathPolicy, kind: T) -> PyClassInitializer<T>
where
    T: pyo3::PyClass<BaseType = CompiledPathPolicy>,
{
    PyClassInitializer::from(policy).add_subclass(kind)
}

policy! {
    Spray, learns: false,
    #[new]
    fn new(rng: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let policy = paths::Spray::new(generator_of(rng)?);
        Ok(made(CompiledPathPolicy::of(policy), Spray))
    }
}

policy! {
    FlowHash, learns: false,
    #[new]
    fn new() -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::FlowHash), FlowHash)
    }
}

policy! {
    LabelHash, learns: false,
    #[new]
    fn new() -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::LabelHash::new()), LabelHash)
    }
}

policy! {
    RoundRobin, learns: false,
    #[new]
    fn new(rng: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let policy = paths::RoundRobin::new(generator_of(rng)?);
        Ok(made(CompiledPathPolicy::of(policy), RoundRobin))
    }
}

policy! {
    Granted, learns: false,
    #[new]
    fn new() -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::Granted::new()), Granted)
    }
}

policy! {
    Flowcell, learns: false,
    #[new]
    #[pyo3(signature = (flowcell_bytes=FLOWCELL_BYTES))]
    fn new(flowcell_bytes: i64) -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::Flowcell::new(flowcell_bytes)), Flowcell)
    }
}

policy! {
    Flowlet, learns: false,
    #[new]
    fn new(rng: &Bound<'_, PyAny>, gap_s: f64) -> PyResult<PyClassInitializer<Self>> {
        let policy = paths::Flowlet::new(generator_of(rng)?, gap_s);
        Ok(made(CompiledPathPolicy::of(policy), Flowlet))
    }
}

policy! {
    Tr, learns: true,
    #[new]
    fn new(packet_time_s: f64) -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::Tr::new(packet_time_s)), Tr)
    }
}

policy! {
    Reps, learns: true,
    #[classattr]
    const RING: usize = RING;

    #[new]
    fn new(
        rng: &Bound<'_, PyAny>,
        congested_s: f64,
        explore_packets: u32,
        freeze_s: f64,
    ) -> PyResult<PyClassInitializer<Self>> {
        let settings = RepsSettings { congested_s, explore_packets, freeze_s };
        let policy = paths::Reps::new(generator_of(rng)?, settings);
        Ok(made(CompiledPathPolicy::of(policy), Reps))
    }
}

policy! {
    Plb, learns: true,
    #[classattr]
    const LEAST_TIMEOUT_S: f64 = LEAST_TIMEOUT_S;

    #[new]
    fn new(
        rng: &Bound<'_, PyAny>,
        congested_s: f64,
        congested_share: f64,
        rounds: u32,
        idle_rounds: u32,
        suspend_s: f64,
    ) -> PyResult<PyClassInitializer<Self>> {
        let settings = PlbSettings { congested_s, congested_share, rounds, idle_rounds, suspend_s };
        let policy = paths::Plb::new(generator_of(rng)?, settings);
        Ok(made(CompiledPathPolicy::of(policy), Plb))
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CompiledPathPolicy>()?;
    module.add_class::<Spray>()?;
    module.add_class::<FlowHash>()?;
    module.add_class::<LabelHash>()?;
    module.add_class::<RoundRobin>()?;
    module.add_class::<Granted>()?;
    module.add_class::<Flowcell>()?;
    module.add_class::<Flowlet>()?;
    module.add_class::<Tr>()?;
    module.add_class::<Reps>()?;
    module.add_class::<Plb>()
}
