//! One host's agent, for Python: `agent::host::Core`.

pub(crate) mod admission;
#[cfg(feature = "linux")]
mod carry;
pub mod policy;
mod records;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agent::admission::Decision;
use agent::departure::UnderlayAddress;
use agent::host::{Core, Datagram, FromUnderlay, HostPolicy, Identity};
use agent::paths::{BoxedPolicy, LivePaths};
use agent::peers::Known;
use agent::receiving::Receiver;
use agent::sending::Sender;
use agent::{Generator, TrafficClass};
use datapath::header::HEADER_BYTES;
use datapath::inner::{Address, FlowKey};
use datapath::mac::{Key, NumberedKey, PairKeys, KEY_BYTES};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use self::admission::{Decided, PyMessage};
use crate::agent::paths::{leaf_id, Failure, OwnPolicy, PyLoad};
use crate::texts::{text_of, Texts};
pub use policy::path_settings;
use policy::{types_of, Document, Values};

/// Underlay address, session, leaf and overlay addresses of an agent.
type Listed = ([u8; 4], u32, String, Vec<Vec<u8>>);

/// The number of the key that sends, and all that are taken, by number.
type PeerKeys = (u8, Vec<(u8, [u8; KEY_BYTES])>);

#[pyclass]
pub struct HostCore {
    pub core: Mutex<Core>,
    random: Generator,
    texts: Texts,
    failure: Failure,
}

/// Returns the core, which only one thread has while it is borrowed.
pub fn held(core: &mut Mutex<Core>) -> &mut Core {
    core.get_mut().unwrap_or_else(PoisonError::into_inner)
}

fn address(bytes: &[u8]) -> PyResult<Address> {
    Address::of(bytes).ok_or_else(|| PyValueError::new_err("an address has 4 or 16 bytes"))
}

fn key(bytes: &[u8]) -> PyResult<FlowKey> {
    FlowKey::of(bytes).ok_or_else(|| PyValueError::new_err("a flow has 13 or 37 bytes"))
}

/// Passes packets on to a policy in Python, that of the operator's own file.
fn own(policy: Option<&Bound<'_, PyAny>>, failure: &Failure) -> PyResult<BoxedPolicy> {
    let missing = || PyValueError::new_err("this agent was started without a path policy of its own");
    Ok(Box::new(OwnPolicy::new(policy.ok_or_else(missing)?, failure.clone())?))
}

impl HostCore {
    /// Raises what a path policy in Python raised.
    pub fn raised(&self) -> PyResult<()> {
        self.failure.raised()
    }
}

#[pymethods]
impl HostCore {
    #[new]
    fn new(
        policy: &Bound<'_, PyAny>,
        session: u32,
        mtu: usize,
        broadcasts: Vec<Vec<u8>>,
        seed: u64,
        now: f64,
    ) -> PyResult<Self> {
        let mut random = Generator::new(seed);
        let document = Document::of(policy)?;
        let failure = Failure::default();
        let paths = document.serving(&mut random, || own(None, &failure))?;
        let broadcasts = broadcasts.iter().map(|bytes| address(bytes)).collect::<PyResult<_>>()?;
        let HostPolicy { send, receive, admission } = document.host;
        let sender = Sender::new(send, paths, random.split());
        let mut core = Core::new(Identity { session, mtu, broadcasts }, sender, Receiver::new(receive), now);
        core.gate.set_policy(admission, now);
        Ok(HostCore { core: Mutex::new(core), random, texts: Texts::new(), failure })
    }

    /// Act on a policy document; `file`: what decides its classes with `entropy: file`.
    fn set_policy(
        &mut self,
        policy: &Bound<'_, PyAny>,
        file: Option<&Bound<'_, PyAny>>,
        now: f64,
    ) -> PyResult<()> {
        let document = Document::of(policy)?;
        let paths = document.serving(&mut self.random, || own(file, &self.failure))?;
        held(&mut self.core).set_policy(document.host, paths, now);
        self.raised()
    }

    fn set_directory(&mut self, peers: Vec<Listed>, own: Option<Vec<Vec<u8>>>) -> PyResult<()> {
        let addresses =
            |all: Vec<Vec<u8>>| all.iter().map(|bytes| address(bytes)).collect::<PyResult<Vec<_>>>();
        let mut directory = Vec::with_capacity(peers.len());
        for (address, session, leaf, overlay) in peers {
            let overlay = addresses(overlay)?;
            directory.push(Known { address, session, leaf: leaf_id(&leaf)?, overlay });
        }
        let own = own.map(addresses).transpose()?.map(|own| own.into_iter().collect());
        held(&mut self.core).set_directory(directory, own);
        Ok(())
    }

    fn set_keys(&mut self, keys: HashMap<UnderlayAddress, PeerKeys>) {
        let of_pair = |(sending, all): PeerKeys| {
            let numbered =
                |(number, bytes): (u8, [u8; KEY_BYTES])| NumberedKey { number, key: Key::new(bytes) };
            let receiving: Vec<NumberedKey> = all.into_iter().map(numbered).collect();
            let sending = receiving.iter().find(|known| known.number == sending).copied();
            PairKeys { sending, receiving }
        };
        let keys = keys.into_iter().map(|(address, pair)| (address, of_pair(pair))).collect();
        held(&mut self.core).set_keys(keys);
    }

    fn set_paths(
        &mut self,
        paths: HashMap<String, Vec<u16>>,
        by_class: HashMap<String, Vec<u16>>,
    ) -> PyResult<()> {
        let mut live = LivePaths::default();
        for (leaf, stamps) in paths {
            live.stamps.insert(leaf_id(&leaf)?, stamps.into_iter().collect());
        }
        for (name, class) in
            [("short", TrafficClass::Short), ("long", TrafficClass::Long), ("control", TrafficClass::Control)]
        {
            if let Some(stamps) = by_class.get(name) {
                live.by_class.insert(class, stamps.iter().copied().collect());
            }
        }
        held(&mut self.core).sender.wrapping.steering.routes.set_paths(live);
        Ok(())
    }

    fn path_load(&mut self, py: Python<'_>, now: f64) -> PyResult<Option<PyLoad>> {
        let load = held(&mut self.core).sender.wrapping.steering.load(now);
        self.raised()?;
        load.map(|load| PyLoad::of(py, &load)).transpose()
    }

    fn set_path_load(&mut self, py: Python<'_>, load: &PyLoad, now: f64) -> PyResult<()> {
        held(&mut self.core).sender.wrapping.steering.set_load(&load.load(py)?, now);
        self.raised()
    }

    fn set_flow_types(&mut self, features: Vec<String>, values: Values) -> PyResult<()> {
        held(&mut self.core).sender.set_types(types_of(&features, values)?);
        Ok(())
    }

    fn packet_from_host(&mut self, packet: &[u8], now: f64) -> PyResult<()> {
        held(&mut self.core).packet_from_host(packet, now);
        self.raised()
    }

    fn super_packet_from_host(&mut self, packet: &[u8], size: usize, now: f64) -> PyResult<()> {
        held(&mut self.core).super_packet_from_host(packet, size, now);
        self.raised()
    }

    fn receive_datagram(
        &mut self,
        data: &[u8],
        address: [u8; 4],
        source_port: u16,
        tos: u8,
        now: f64,
    ) -> PyResult<()> {
        held(&mut self.core)
            .receive_datagram(FromUnderlay { data: data.into(), address, source_port, tos }, now);
        self.raised()
    }

    fn handle_timer(&mut self, now: f64) -> PyResult<()> {
        held(&mut self.core).handle_timer(now);
        self.raised()
    }

    fn timer(&mut self) -> f64 {
        held(&mut self.core).timer()
    }

    fn datagrams_to_send<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let texts = &mut self.texts;
        let tuple = |datagram: Datagram| {
            let bytes = HEADER_BYTES + datagram.body.len();
            let data = PyBytes::new_with(py, bytes, |data| {
                data[..HEADER_BYTES].copy_from_slice(&datagram.header);
                data[HEADER_BYTES..].copy_from_slice(&datagram.body);
                Ok(())
            })?;
            let address: Bound<'py, PyString> = text_of(py, texts, datagram.address);
            let (source, destination, tos) = (datagram.source_port, datagram.destination_port, datagram.tos);
            (address, source, destination, tos, data).into_pyobject(py)
        };
        held(&mut self.core).datagrams_to_send().into_iter().map(tuple).collect()
    }

    fn packets_to_deliver<'py>(&mut self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        held(&mut self.core).packets_to_deliver().iter().map(|packet| PyBytes::new(py, packet)).collect()
    }

    fn counters<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut totals: HashMap<&str, u64> = HashMap::new();
        for (name, total) in held(&mut self.core).totals() {
            *totals.entry(name).or_default() += total;
        }
        let charged: usize = held(&mut self.core).peers.iter().map(|peer| peer.budget.charged()).sum();
        totals.insert("kept_for_peers_bytes", charged as u64);
        totals.into_pyobject(py)
    }

    fn announce(&mut self, flow: &[u8], size: f64) -> PyResult<()> {
        held(&mut self.core).announce(key(flow)?, size);
        Ok(())
    }

    /// Processes a decision of the controller: its number, the flow, the request that it answers, rate and path.
    fn decided(&mut self, decision: Decided, now: f64) -> PyResult<()> {
        let (sequence, flow, answers, rate_bps, stamp) = decision;
        held(&mut self.core).decided(Decision { sequence, flow, answers, rate_bps, stamp }, now);
        self.raised()
    }

    fn connected(&mut self, now: f64) {
        held(&mut self.core).gate.connected(now);
    }

    fn late(&mut self, late_s: f64, now: f64) {
        held(&mut self.core).gate.late(late_s, now);
    }

    fn admission_messages(&mut self, backlog: &Bound<'_, PyAny>, now: f64) -> PyResult<Vec<PyMessage>> {
        admission::messages(&mut held(&mut self.core).gate, backlog, now)
    }

    fn episodes<'py>(&mut self, py: Python<'py>, now: f64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let episodes = held(&mut self.core).gate.take_episodes(now);
        episodes.iter().map(|episode| admission::dict(py, episode)).collect()
    }

    fn take_latencies(&mut self) -> Vec<f64> {
        held(&mut self.core).gate.take_latencies()
    }

    fn blocking_probability(&mut self, now: f64) -> Vec<([u8; 4], f64)> {
        let peers: Vec<_> =
            held(&mut self.core).peers.iter().map(|peer| (peer.known.address, peer.known.leaf)).collect();
        let sender = &mut held(&mut self.core).sender;
        peers
            .into_iter()
            .filter_map(|(address, leaf)| Some((address, sender.blocking_probability(leaf, now)?)))
            .collect()
    }

    /// Takes flow, payload, beginning and end of flows that have ended, the oldest *most*; each is returned once.
    fn finished_flows<'py>(
        &mut self,
        py: Python<'py>,
        most: usize,
    ) -> Vec<(Bound<'py, PyBytes>, u64, f64, f64)> {
        let ended = &mut held(&mut self.core).sender.ended.waiting;
        let count = most.min(ended.len());
        let tuple = |flow: agent::sending::EndedFlow| {
            (PyBytes::new(py, flow.key.bytes()), flow.payload, flow.first, flow.end)
        };
        ended.drain(..count).map(tuple).collect()
    }

    fn flow_report<'py>(&mut self, py: Python<'py>, forget: bool) -> PyResult<Vec<Bound<'py, PyDict>>> {
        held(&mut self.core).flow_report(forget).iter().map(|record| records::dict(py, record)).collect()
    }

    fn active_flows<'py>(
        &mut self,
        py: Python<'py>,
        since: f64,
        most: usize,
    ) -> PyResult<(Vec<Bound<'py, PyDict>>, usize)> {
        let (flows, more) = held(&mut self.core).active_flows(since, most);
        Ok((flows.iter().map(|record| records::dict(py, record)).collect::<PyResult<_>>()?, more))
    }
}

/// Add this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    #[cfg(feature = "linux")]
    module.add_class::<carry::Carrier>()?;
    module.add_class::<HostCore>()
}
