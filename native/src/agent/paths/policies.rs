//! The compiled path policies as classes of Python.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::paths::{
    self, Load, PathPolicy, PlbSettings, Report, RepsSettings, Train, FLOWCELL_BYTES, LEAST_TIMEOUT_S, RING,
};
use agent::{FlowRef, Generator, LeafId, Route, Seconds};
use pyo3::prelude::*;

use super::leaves::leaf_id;
use super::values::{flow_of, PyLoad, PyReport, PyRoute};

/// Packets of which a policy says beforehand what they get.
const AHEAD: usize = 16;

/// Returns a generator that is seeded by one draw of Python's.
pub fn generator_of(rng: &Bound<'_, PyAny>) -> PyResult<Generator> {
    let seed: [u8; 8] = rng.call_method1("bytes", (8,))?.extract()?;
    Ok(Generator::new(u64::from_le_bytes(seed)))
}

/// A policy that Python and `Steering` both hold.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<dyn PathPolicy + Send>>);

impl Shared {
    fn held(&self) -> MutexGuard<'_, dyn PathPolicy + Send + 'static> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PathPolicy for Shared {
    fn learns(&self) -> bool {
        self.held().learns()
    }

    fn source_port(&mut self, flow: FlowRef, route: &Route, size: u32, now: Seconds) -> u16 {
        self.held().source_port(flow, route, size, now)
    }

    fn source_ports(&mut self, train: Train, now: Seconds, ports: &mut Vec<u16>) {
        self.held().source_ports(train, now, ports);
    }

    fn reported(&mut self, report: &Report, now: Seconds) {
        self.held().reported(report, now);
    }

    fn lost(&mut self, flow: i64, leaf: LeafId, port: u16, now: Seconds) {
        self.held().lost(flow, leaf, port, now);
    }

    fn forget(&mut self, flow: i64) {
        self.held().forget(flow);
    }

    fn granted(&mut self, flow: i64, stamp: u16) {
        self.held().granted(flow, stamp);
    }

    fn load(&mut self, now: Seconds) -> Option<Load> {
        self.held().load(now)
    }

    fn set_load(&mut self, load: &Load, now: Seconds) {
        self.held().set_load(load, now);
    }
}

/// A copy of a policy, to ask it what it will do; None: it would draw what others draw first.
type Copied = Box<dyn Fn(&Route) -> Option<Box<dyn PathPolicy>> + Send + Sync>;

/// What a policy can say beforehand, whatever the packets' sizes and times.
enum Ahead {
    Nothing,
    Always,
    InTurn(Copied),
}

#[pyclass(name = "Turn", frozen, get_all)]
struct PyTurn {
    owner: Py<PyAny>,
    ports: Vec<u16>,
}

#[pyclass(subclass)]
pub struct CompiledPathPolicy {
    pub shared: Shared,
    ahead: Ahead,
}

impl CompiledPathPolicy {
    fn of(policy: impl PathPolicy + Send + 'static, ahead: Ahead) -> Self {
        CompiledPathPolicy { shared: Shared(Arc::new(Mutex::new(policy))), ahead }
    }

    fn in_turn<P: PathPolicy + Clone + Send + 'static>(policy: P, begun: fn(&P, &Route) -> bool) -> Self {
        let typed = Arc::new(Mutex::new(policy));
        let copied = typed.clone();
        let ahead = Ahead::InTurn(Box::new(move |route| {
            let policy = copied.lock().unwrap_or_else(PoisonError::into_inner);
            begun(&policy, route).then(|| Box::new(policy.clone()) as Box<dyn PathPolicy>)
        }));
        CompiledPathPolicy { shared: Shared(typed), ahead }
    }
}

#[pymethods]
impl CompiledPathPolicy {
    fn entropy(&self, flow: &Bound<'_, PyAny>, route: &PyRoute, size: u32, now: f64) -> PyResult<u16> {
        Ok(self.shared.held().source_port(flow_of(flow)?, &route.route, size, now))
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
        self.shared.held().source_ports(train, now, &mut ports);
        Ok(ports)
    }

    fn ahead(
        this: &Bound<'_, Self>,
        flow: &Bound<'_, PyAny>,
        route: &Bound<'_, PyRoute>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (py, own, flow) = (this.py(), this.borrow(), flow_of(flow)?);
        let way = &route.borrow().route;
        match &own.ahead {
            Ahead::Nothing => Ok(None),
            Ahead::Always => {
                let port = own.shared.held().source_port(flow, way, 0, 0.0);
                Ok(Some(port.into_pyobject(py)?.into_any().unbind()))
            }
            Ahead::InTurn(copied) => {
                let Some(mut policy) = copied(way) else { return Ok(None) };
                let ports = (0..AHEAD).map(|_| policy.source_port(flow, way, 0, 0.0)).collect();
                let by_route = !way.labels.is_empty() && !this.is_instance_of::<Spray>();
                let owner = if by_route { route.as_any() } else { this.as_any() };
                let turn = PyTurn { owner: owner.clone().unbind(), ports };
                Ok(Some(Py::new(py, turn)?.into_any()))
            }
        }
    }

    fn reported(&self, report: &PyReport, now: f64) -> PyResult<()> {
        self.shared.held().reported(&report.report()?, now);
        Ok(())
    }

    fn lost(&self, flow: i64, leaf: &str, entropy: u16, now: f64) -> PyResult<()> {
        self.shared.held().lost(flow, leaf_id(leaf)?, entropy, now);
        Ok(())
    }

    fn forget(&self, flow: i64) {
        self.shared.held().forget(flow);
    }

    fn grant(&self, flow: i64, stamp: u16) {
        self.shared.held().granted(flow, stamp);
    }

    fn load(&self, py: Python<'_>, now: f64) -> PyResult<Option<PyLoad>> {
        let load = self.shared.held().load(now);
        load.map(|load| PyLoad::of(py, &load)).transpose()
    }

    fn set_load(&self, py: Python<'_>, load: &PyLoad, now: f64) -> PyResult<()> {
        self.shared.held().set_load(&load.load(py)?, now);
        Ok(())
    }
}

/// A class of Python for a kind of policy: what Python asks of the class, and how it is made.
macro_rules! policy {
    ($name:ident, learns: $learns:literal, by_size: $by_size:literal, $($methods:tt)*) => {
        #[pyclass(extends = CompiledPathPolicy)]
        pub struct $name;

        #[pymethods]
        #[allow(non_upper_case_globals)] // names of Python's
        impl $name {
            #[classattr]
            const learns: bool = $learns;
            #[classattr]
            const by_size: bool = $by_size;

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
    Spray, learns: false, by_size: false,
    #[new]
    fn new(rng: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let policy = paths::Spray::new(generator_of(rng)?);
        Ok(made(CompiledPathPolicy::in_turn(policy, |_, _| true), Spray))
    }
}

policy! {
    FlowHash, learns: false, by_size: false,
    #[new]
    fn new() -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::FlowHash, Ahead::Always), FlowHash)
    }
}

policy! {
    LabelHash, learns: false, by_size: true,
    #[new]
    fn new() -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::LabelHash::new(), Ahead::Always), LabelHash)
    }
}

policy! {
    RoundRobin, learns: false, by_size: true,
    #[new]
    fn new(rng: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let policy = paths::RoundRobin::new(generator_of(rng)?);
        Ok(made(CompiledPathPolicy::in_turn(policy, paths::RoundRobin::has_begun), RoundRobin))
    }
}

policy! {
    Granted, learns: false, by_size: true,
    #[new]
    fn new() -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::Granted::new(), Ahead::Nothing), Granted)
    }
}

policy! {
    Flowcell, learns: false, by_size: true,
    #[new]
    #[pyo3(signature = (flowcell_bytes=FLOWCELL_BYTES))]
    fn new(flowcell_bytes: i64) -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::Flowcell::new(flowcell_bytes), Ahead::Nothing), Flowcell)
    }
}

policy! {
    Flowlet, learns: false, by_size: true,
    #[new]
    fn new(rng: &Bound<'_, PyAny>, gap_s: f64) -> PyResult<PyClassInitializer<Self>> {
        let policy = paths::Flowlet::new(generator_of(rng)?, gap_s);
        Ok(made(CompiledPathPolicy::of(policy, Ahead::Nothing), Flowlet))
    }
}

policy! {
    Tr, learns: true, by_size: true,
    #[new]
    fn new(packet_time_s: f64) -> PyClassInitializer<Self> {
        made(CompiledPathPolicy::of(paths::Tr::new(packet_time_s), Ahead::Nothing), Tr)
    }
}

policy! {
    Reps, learns: true, by_size: true,
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
        Ok(made(CompiledPathPolicy::of(policy, Ahead::Nothing), Reps))
    }
}

policy! {
    Plb, learns: true, by_size: true,
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
        Ok(made(CompiledPathPolicy::of(policy, Ahead::Nothing), Plb))
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTurn>()?;
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
