//! Settings of a simulated run, as Python gives them.

use ::simulator::overlay::{self, Asking, Central, Group, Groups, Line, Twin};
use ::simulator::paths::Balancing;
use ::simulator::queue::{Buffer, Discipline, Limit};
use ::simulator::sharing::Sharing;
use ::simulator::time::Rate;
use ::simulator::topology::{Change, FatTree, LeafSpine, Shape};
use ::simulator::transport::tcp::{self, Control};
use ::simulator::transport::{pfabric, Transport};
use ::simulator::Error;
use agent::paths::PathSettings;
use agent::sending::Serving;
use agent::Generator;
use fabric::mode::ModeRule;
use fabric::partition::PartitionRule;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::agent::core::policy::Document;
use crate::agent::paths::{Failure, OwnPolicy};

pub(super) fn raised(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(super) fn unknown(kind: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("{kind} {name:?} is not known"))
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct FabricSettings {
    pub(super) shape: String,
    /// Leaves, hosts a leaf and spines; or k.
    pub(super) sizes: Vec<u32>,
    pub(super) host_bps: u64,
    pub(super) fabric_bps: u64,
    pub(super) delay_ps: u64,
    /// Link, bit/s, delay in ps.
    pub(super) changes: Vec<(u32, u64, Option<u64>)>,
    /// Link that is a shaper, bytes of its bucket.
    pub(super) bursts: Vec<(u32, u32)>,
}

impl FabricSettings {
    pub(super) fn shape(&self) -> PyResult<Shape> {
        let (host_rate, fabric_rate) = (Rate::new(self.host_bps), Rate::new(self.fabric_bps));
        match (self.shape.as_str(), self.sizes.as_slice()) {
            ("leaf-spine", &[leaves, hosts_per_leaf, spines]) => Ok(Shape::LeafSpine(LeafSpine {
                leaves,
                hosts_per_leaf,
                spines,
                host_rate,
                spine_rate: fabric_rate,
                delay: self.delay_ps,
            })),
            ("fat-tree", &[k]) => {
                Ok(Shape::FatTree(FatTree { k, host_rate, fabric_rate, delay: self.delay_ps }))
            }
            (shape, _) => Err(unknown("shape", shape)),
        }
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        self.changes.iter().map(|&(link, rate, delay)| Change { link, rate, delay }).collect()
    }
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct BufferSettings {
    pub(super) discipline: String,
    pub(super) limit_bytes: Option<u64>,
    pub(super) limit_packets: Option<u32>,
    pub(super) mark_from_packets: u32,
    pub(super) drops_unmarkable: bool,
    pub(super) queues: u8,
    /// Bytes and alpha of what a switch's ports share.
    pub(super) shared: Option<(u64, f64)>,
}

/// Returns what a port holds: so many packets, or so many bytes; without either, any number.
pub(super) fn limit(packets: Option<u32>, bytes: Option<u64>) -> PyResult<Limit> {
    match (packets, bytes) {
        (None, None) => Ok(Limit::Endless),
        (Some(packets), None) => Ok(Limit::Packets(packets)),
        (None, Some(bytes)) => Ok(Limit::Bytes(bytes)),
        _ => Err(PyValueError::new_err("a buffer is limited in bytes or in packets, not in both")),
    }
}

impl BufferSettings {
    pub(super) fn buffer(&self) -> PyResult<Buffer> {
        let discipline = match self.discipline.as_str() {
            "fifo" => Discipline::Fifo,
            "strict" => Discipline::Strict,
            "pfabric" => Discipline::PFabric,
            "queues" => Discipline::Queues(self.queues),
            other => return Err(unknown("queue", other)),
        };
        Ok(Buffer {
            discipline,
            limit: limit(self.limit_packets, self.limit_bytes)?,
            mark_from: self.mark_from_packets,
            drops_unmarkable: self.drops_unmarkable,
        })
    }

    pub(super) fn sharing(&self) -> Option<Sharing> {
        self.shared.map(|(bytes, alpha)| Sharing { bytes, alpha })
    }
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct RunSettings {
    pub(super) fabric: FabricSettings,
    pub(super) buffer: BufferSettings,
    pub(super) payload_bytes: u32,
    pub(super) header_bytes: u32,
    pub(super) acknowledgement_bytes: u32,
    pub(super) balancing: String,
    pub(super) seed: u64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct TcpSettings {
    pub(super) control: String,
    pub(super) initial_window: u32,
    pub(super) largest_window: u32,
    pub(super) initial_timeout_ps: u64,
    pub(super) least_timeout_ps: u64,
    pub(super) largest_timeout_ps: u64,
    pub(super) kernel_timeouts: bool,
    pub(super) timestamp_tick_ps: u64,
    pub(super) duplicates: u32,
    pub(super) sack: bool,
    pub(super) rack: bool,
    pub(super) reorder_quarters: u32,
    pub(super) reorder_slack_ps: u64,
    pub(super) marks: bool,
    pub(super) delayed_packets: u32,
    pub(super) delayed_ps: u64,
    pub(super) opening: bool,
    pub(super) undo: bool,
    pub(super) count_delivered: bool,
    pub(super) hystart: bool,
    pub(super) prr: bool,
    pub(super) mark_acknowledgements: bool,
}

impl TcpSettings {
    pub(super) fn settings(&self) -> PyResult<tcp::Settings> {
        let control = match self.control.as_str() {
            "newreno" => Control::NewReno,
            "cubic" => Control::Cubic,
            "dctcp" => Control::Dctcp,
            other => return Err(unknown("congestion control", other)),
        };
        Ok(tcp::Settings {
            control,
            initial_window: self.initial_window,
            largest_window: self.largest_window,
            initial_timeout: self.initial_timeout_ps,
            least_timeout: self.least_timeout_ps,
            largest_timeout: self.largest_timeout_ps,
            kernel_timeouts: self.kernel_timeouts,
            timestamp_tick: self.timestamp_tick_ps,
            duplicates: self.duplicates,
            sack: self.sack,
            rack: self.rack,
            reorder_quarters: self.reorder_quarters,
            reorder_slack: self.reorder_slack_ps,
            marks: self.marks,
            delayed_packets: self.delayed_packets,
            delayed_time: self.delayed_ps,
            opening: self.opening,
            undo: self.undo,
            count_delivered: self.count_delivered,
            hystart: self.hystart,
            prr: self.prr,
            mark_acknowledgements: self.mark_acknowledgements,
        })
    }
}

/// Source and destination port, endless, copy.
type FlowLine = (u16, u16, bool, Option<(u32, bool)>);

/// What a scheme asks of agents and switches.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct SchemeSettings<'py> {
    /// `protocol.policy.Policy`, in seconds of agents' clocks.
    pub(super) policy: Bound<'py, PyAny>,
    /// Of none, short, long and control: the groups while the leaf is on, and off.
    pub(super) groups: Vec<(String, String)>,
    /// Sampling time in packet times, quiet intervals, longest hold: of leaves' modes.
    pub(super) mode: Option<(f64, u32, u32)>,
    /// Deadline, burst in packets, sampling time, in packet times, and samples: of the split of paths.
    pub(super) partition: Option<(f64, f64, f64, usize)>,
    pub(super) shares: bool,
    /// By host, a `host_agent.paths.PathPolicy`: what decides classes with `entropy: file`. None: there are none.
    pub(super) own_paths: Option<Vec<Bound<'py, PyAny>>>,
    /// How long a message to or from the controller takes, where flows ask.
    pub(super) control_delay_ps: u64,
    /// Which part of these messages is lost.
    pub(super) control_loss: f64,
    pub(super) clock: f64,
    pub(super) addresses: Vec<[u8; 4]>,
    /// Ports, whether it goes on until the run is over; the row of its copy, and whether one gives way to one that is open.
    pub(super) lines: Vec<FlowLine>,
}

/// Path policies in Python, one a host.
pub(super) struct OwnPolicies<'py> {
    document: Document,
    policies: Vec<Bound<'py, PyAny>>,
    pub(super) failure: Failure,
}

impl OwnPolicies<'_> {
    /// Return the policies of a host. ValueError: it has none.
    pub(super) fn serving(&self, host: u32, random: &mut Generator) -> PyResult<Serving> {
        self.document.serving(random, || {
            let missing = || PyValueError::new_err("`entropy: file` needs a path policy for each host");
            let policy = self.policies.get(host as usize).ok_or_else(missing)?;
            Ok(Box::new(OwnPolicy::new(policy, self.failure.clone())?))
        })
    }
}

pub(super) fn group_named(name: &str) -> PyResult<Group> {
    match name {
        "spray" => Ok(Group::Spray),
        "hash" => Ok(Group::Hash),
        "label" => Ok(Group::Label),
        other => Err(unknown("group", other)),
    }
}

impl<'py> SchemeSettings<'py> {
    /// Return what makes the agents' path policies in place of the scheme's; None: those are the scheme's.
    pub(super) fn own_policies(&self) -> PyResult<Option<OwnPolicies<'py>>> {
        let document = Document::of(&self.policy)?;
        let Some(policies) = self.own_paths.clone().filter(|_| document.paths.contains(&None)) else {
            return Ok(None);
        };
        Ok(Some(OwnPolicies { document, policies, failure: Failure::default() }))
    }

    pub(super) fn settings(self) -> PyResult<overlay::Settings> {
        let document = Document::of(&self.policy)?;
        if document.paths.contains(&None) && self.own_paths.is_none() {
            return Err(PyValueError::new_err("`entropy: file` needs a path policy for each host"));
        }
        let paths = document.paths.map(|kind| kind.unwrap_or(PathSettings::FlowHash)); // until `own_policies`
        let groups =
            self.groups.iter().map(|(on, off)| Ok(Groups { on: group_named(on)?, off: group_named(off)? }));
        let groups: Vec<Groups> = groups.collect::<PyResult<_>>()?;
        let groups = groups.try_into().map_err(|_| PyValueError::new_err("there are four classes"))?;
        let lines = self.lines.into_iter().map(|(source_port, destination_port, endless, twin)| Line {
            source_port,
            destination_port,
            endless,
            twin: twin.map(|(row, of_opening)| Twin { row, of_opening }),
        });
        let mode = self.mode.map(|(sampling_packet_times, quiet_intervals, longest_hold)| ModeRule {
            sampling_packet_times,
            quiet_intervals,
            longest_hold,
        });
        let partition = self.partition.map(|rule| {
            let (deadline_packet_times, burst_packets, sampling_packet_times, samples) = rule;
            PartitionRule { deadline_packet_times, burst_packets, sampling_packet_times, samples }
        });
        let (delay, loss) = (self.control_delay_ps, self.control_loss);
        Ok(overlay::Settings {
            admission: document.host.admission.map(|policy| Asking { policy, delay, loss }),
            central: Central { mode, partition, shares: self.shares },
            send: document.host.send,
            paths,
            receive: document.host.receive,
            groups,
            clock: self.clock,
            addresses: self.addresses,
            lines: lines.collect(),
        })
    }
}

pub(super) fn transport_of(of: &Bound<'_, PyAny>) -> PyResult<Transport> {
    let number = |name: &str| of.get_item(name)?.extract::<u64>();
    let window = |name: &str| of.get_item(name)?.extract::<u32>();
    let kind: String = of.get_item("kind")?.extract()?;
    match kind.as_str() {
        "window" => Ok(Transport::Fixed { window: window("window")? }),
        "pfabric" => Ok(Transport::PFabric(pfabric::Settings {
            initial_window: window("initial_window")?,
            largest_window: window("largest_window")?,
            timeout: number("timeout_ps")?,
        })),
        "tcp" => Ok(Transport::Tcp(of.extract::<TcpSettings>()?.settings()?)),
        other => Err(unknown("transport", other)),
    }
}

pub(super) fn balancing_named(name: &str) -> PyResult<Balancing> {
    match name {
        "random" => Ok(Balancing::Random),
        "turn" => Ok(Balancing::Turn),
        "hash" => Ok(Balancing::Hash),
        "sum" => Ok(Balancing::Sum),
        other => Err(unknown("path choice", other)),
    }
}
