//! The simulator for Python: settings as a mapping, flows as sequences, results as mappings of lists.

mod admission;
mod recording;
mod settings;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::simulator::config::{Config, Lengths};
use ::simulator::flow::Demand;
use ::simulator::recording::Window;
use ::simulator::simulation::Simulation;
use ::simulator::topology::Topology;
use agent::admission::Decision;
use agent::Generator;
use fabric::mode::Mode;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::agent::core::admission::Decided;
use crate::agent::core::policy::{types_of, Values};
use crate::agent::paths::Failure;
use crate::fabric::cause_name;

use admission::PyHostMessage;
use recording::columns_of;
use settings::{balancing_named, limit, raised, transport_of, FabricSettings, RunSettings, SchemeSettings};

/// Number of a link, and the packets, or else the bytes, that its ports hold.
type Room = (u32, Option<u32>, Option<u64>);

/// A run. It goes on in steps, between which Python may look at it, or end it by leaving it.
#[pyclass(name = "Simulation")]
pub struct Run {
    simulation: Mutex<Simulation>,
    /// What path policies in Python raised.
    failure: Failure,
}

impl Run {
    fn held(&self) -> MutexGuard<'_, Simulation> {
        self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Run {
    #[new]
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (settings, transport, starts_ps, sources, destinations, sizes, levels=None, scheme=None, rooms=None))]
    fn new(
        py: Python<'_>,
        settings: RunSettings,
        transport: &Bound<'_, PyAny>,
        starts_ps: Vec<u64>,
        sources: Vec<u32>,
        destinations: Vec<u32>,
        sizes: Vec<u64>,
        levels: Option<Vec<u32>>,
        scheme: Option<SchemeSettings<'_>>,
        rooms: Option<Vec<Room>>,
    ) -> PyResult<Run> {
        let count = starts_ps.len();
        let levels = levels.unwrap_or_else(|| vec![0; count]);
        if [sources.len(), destinations.len(), sizes.len(), levels.len()] != [count; 4] {
            return Err(PyValueError::new_err(
                "starts, sources, destinations, sizes and levels differ in number",
            ));
        }
        let demand = |row: usize| Demand {
            start: starts_ps[row],
            source: sources[row],
            destination: destinations[row],
            bytes: sizes[row],
            level: levels[row],
        };
        let sharing = settings.buffer.sharing();
        let bursts = settings.fabric.bursts.clone();
        let config = Config {
            shape: settings.fabric.shape()?,
            changes: settings.fabric.changes(),
            buffer: settings.buffer.buffer()?,
            lengths: Lengths {
                payload: settings.payload_bytes,
                header: settings.header_bytes,
                acknowledgement: settings.acknowledgement_bytes,
            },
            transport: transport_of(transport)?,
            balancing: balancing_named(&settings.balancing)?,
            seed: settings.seed,
        };
        let demands = (0..count).map(demand).collect();
        let seed = settings.seed;
        let own = scheme.as_ref().map(SchemeSettings::own_policies).transpose()?.flatten();
        let overlay = scheme.map(SchemeSettings::settings).transpose()?;
        // Large fabrics take seconds to lay out, in which other threads of Python go on.
        let made = py.detach(|| match overlay {
            Some(overlay) => Simulation::with_overlay(config, demands, overlay),
            None => Simulation::new(config, demands),
        });
        let mut simulation = made.map_err(raised)?;
        let rooms = rooms.unwrap_or_default().into_iter();
        let rooms: PyResult<Vec<_>> =
            rooms.map(|(link, packets, bytes)| Ok((link, limit(packets, bytes)?))).collect();
        simulation.set_rooms(&rooms?).map_err(raised)?;
        simulation.set_bursts(&bursts).map_err(raised)?;
        sharing.map_or(Ok(()), |sharing| simulation.share(sharing)).map_err(raised)?;
        let mut failure = Failure::default();
        if let Some(own) = own {
            let mut random = Generator::new(seed);
            simulation.set_path_policies(|host| own.serving(host, &mut random))?;
            failure = own.failure;
        }
        Ok(Run { simulation: Mutex::new(simulation), failure })
    }

    fn run(&self, py: Python<'_>, most_events: u64) -> PyResult<bool> {
        let over = py.detach(|| self.held().run(most_events)).map_err(raised);
        self.failure.raised()?;
        over
    }

    fn run_until(&self, py: Python<'_>, most_events: u64, until_ps: u64) -> PyResult<bool> {
        let done = py.detach(|| self.held().run_until(most_events, until_ps)).map_err(raised);
        self.failure.raised()?;
        done
    }

    fn stop(&self) -> PyResult<()> {
        self.held().stop().map_err(raised)?;
        self.failure.raised()
    }

    fn is_over(&self) -> bool {
        self.held().is_over()
    }

    fn acknowledged(&self, rows: Vec<usize>) -> PyResult<Vec<u64>> {
        let simulation = self.held();
        if rows.iter().any(|&row| row >= simulation.outcomes().len()) {
            return Err(PyValueError::new_err("there is no such flow"));
        }
        Ok(rows.into_iter().map(|row| simulation.acknowledged(row)).collect())
    }

    fn hashed_path(&self, row: usize) -> Option<u16> {
        self.held().hashed_path(row)
    }

    fn set_types(&self, features: Vec<String>, values: Values) -> PyResult<()> {
        self.held().set_types(&types_of(&features, values)?);
        Ok(())
    }

    fn take_asked(&self) -> Vec<PyHostMessage> {
        self.held().take_asked().into_iter().map(admission::asked).collect()
    }

    fn decide(&self, host: u32, decision: Decided) -> PyResult<()> {
        let (sequence, flow, answers, rate_bps, stamp) = decision;
        let decision = Decision { sequence, flow, answers, rate_bps, stamp };
        self.held().decide(host, decision).map_err(raised)
    }

    fn wake_at(&self, seconds: Option<f64>) {
        self.held().wake_at(seconds);
    }

    fn agents_now(&self) -> f64 {
        self.held().agents_now()
    }

    fn admission_totals(&self) -> BTreeMap<&'static str, u64> {
        admission::totals(&self.held())
    }

    fn take_latencies(&self) -> Vec<f64> {
        self.held().take_latencies()
    }

    /// Returns changes of mode: when, leaf, mode and cause.
    fn mode_changes(&self) -> Vec<(u64, u16, &'static str, &'static str)> {
        let simulation = self.held();
        let changes = simulation.events().0.iter().map(|change| {
            let mode = if change.mode == Mode::On { "on" } else { "off" };
            (change.at, change.leaf, mode, cause_name(change.cause))
        });
        changes.collect()
    }

    /// Returns splits of paths: when, stamps of low-latency and of throughput paths, and the share of the former that
    /// the loads ask for.
    fn splits(&self) -> Vec<(u64, Vec<u16>, Vec<u16>, f64)> {
        let simulation = self.held();
        let splits = simulation.events().1.iter();
        splits
            .map(|split| (split.at, split.low_latency.clone(), split.throughput.clone(), split.share))
            .collect()
    }

    /// Returns the counts of one flow, as mappings of 100,000 flows together take 70 MB.
    fn counted<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let simulation = self.held();
        let missing = || PyValueError::new_err("there is no such flow");
        let of = simulation.records().get(row).ok_or_else(missing)?;
        let counts = PyDict::new(py);
        for (name, value) in [
            ("packets", of.packets),
            ("repairs", of.repairs),
            ("recovered", of.recovered),
            ("reordered", of.reordered),
            ("held", of.held),
            ("release_timeouts", of.release_timeouts),
        ] {
            counts.set_item(name, value)?;
        }
        counts.set_item("lost", of.lost)?;
        counts.set_item("paths", &of.paths)?;
        Ok(counts)
    }

    fn record(&self, from_ps: u64, until_ps: u64, most_hops: usize) -> PyResult<()> {
        self.held().record(Window { from: from_ps, until: until_ps, most_hops }).map_err(raised)
    }

    fn recording<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.held().recording().map(|recording| columns_of(py, recording)).transpose()
    }

    fn finished(&self) -> usize {
        self.held().finished()
    }

    fn now_ps(&self) -> u64 {
        self.held().now()
    }

    fn flows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let simulation = self.held();
        let of = simulation.outcomes();
        let columns = PyDict::new(py);
        columns.set_item("completed_ps", of.iter().map(|flow| flow.completed).collect::<Vec<_>>())?;
        columns.set_item("delivered_ps", of.iter().map(|flow| flow.delivered).collect::<Vec<_>>())?;
        columns.set_item("sent", of.iter().map(|flow| flow.sent).collect::<Vec<_>>())?;
        columns.set_item("resent", of.iter().map(|flow| flow.resent).collect::<Vec<_>>())?;
        columns.set_item("resent_bytes", of.iter().map(|flow| flow.resent_bytes).collect::<Vec<_>>())?;
        columns.set_item("dropped", of.iter().map(|flow| flow.dropped).collect::<Vec<_>>())?;
        columns.set_item("early", of.iter().map(|flow| flow.early).collect::<Vec<_>>())?;
        columns.set_item("duplicates", of.iter().map(|flow| flow.duplicates).collect::<Vec<_>>())?;
        columns.set_item("acknowledged", of.iter().map(|flow| flow.acknowledged).collect::<Vec<_>>())?;
        columns.set_item("round_trip_ps", of.iter().map(|flow| flow.round_trip).collect::<Vec<_>>())?;
        columns.set_item(
            "least_round_trip_ps",
            of.iter().map(|flow| flow.least_round_trip).collect::<Vec<_>>(),
        )?;
        columns.set_item("timeouts", of.iter().map(|flow| flow.timeouts).collect::<Vec<_>>())?;
        Ok(columns)
    }

    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let simulation = self.held();
        let (of, (packets, flows)) = (simulation.totals(), simulation.most());
        let totals = PyDict::new(py);
        for (name, value) in [
            ("events", of.events),
            ("data_packets_sent", of.data_sent),
            ("data_packets_dropped", of.data_dropped),
            ("acknowledgements_dropped", of.acknowledgements_dropped),
            ("packets_dropped", of.packets.dropped),
            ("timeouts", of.timeouts),
            ("duplicates", of.duplicates),
            ("most_packets", packets as u64),
            ("most_flows", flows as u64),
        ] {
            totals.set_item(name, value)?;
        }
        Ok(totals)
    }

    fn links<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let simulation = self.held();
        let links = simulation.topology().links.iter().zip(simulation.ports());
        links
            .map(|(link, port)| {
                let (of, row) = (&port.counters, PyDict::new(py));
                row.set_item("tier", link.tier.name())?;
                row.set_item("bps", if link.up { link.rate.bits_per_second() } else { 0 })?;
                row.set_item("delay_ps", link.delay)?;
                for (name, value) in [
                    ("offered", of.offered),
                    ("delivered", of.delivered),
                    ("delivered_bytes", of.delivered_bytes),
                    ("dropped", of.dropped),
                    ("marked", of.marked),
                    ("longest_queue_packets", of.longest_queue_packets),
                    ("longest_queue_bytes", of.longest_queue_bytes),
                ] {
                    row.set_item(name, value)?;
                }
                Ok(row)
            })
            .collect()
    }

    /// Returns bytes and packets that links have delivered, packets that they have dropped, and that wait: by link.
    fn link_counts(&self) -> (Vec<u64>, Vec<u64>, Vec<u64>, Vec<u64>) {
        let simulation = self.held();
        let ports = || simulation.ports().iter();
        (
            ports().map(|port| port.counters.delivered_bytes).collect(),
            ports().map(|port| port.counters.delivered).collect(),
            ports().map(|port| port.counters.dropped).collect(),
            ports().map(|port| port.held().0 as u64).collect(),
        )
    }
}

/// Returns the numbers of the links of routes (source, destination, path), for callers that change links by name.
#[pyfunction]
fn simulated_routes(
    py: Python<'_>,
    fabric: FabricSettings,
    routes: Vec<(u32, u32, u16)>,
) -> PyResult<Vec<Vec<u32>>> {
    let (shape, changes) = (fabric.shape()?, fabric.changes());
    py.detach(|| {
        let topology = Topology::new(shape, &changes).map_err(raised)?;
        let links = |(source, destination, path): (u32, u32, u16)| {
            let inside = source.max(destination) < topology.hosts() && source != destination;
            let there = |paths: &[u16]| paths.is_empty() || paths.contains(&path);
            if !inside || !there(topology.paths(source, destination)) {
                return Err(PyValueError::new_err(format!(
                    "there is no path {path} from host {source} to host {destination}"
                )));
            }
            Ok(topology.route(source, destination, path))
        };
        routes.into_iter().map(links).collect()
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Run>()?;
    module.add_function(wrap_pyfunction!(simulated_routes, module)?)
}
