//! Records of flows as `protocol.control.FlowEntry` takes them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use agent::flow_record::{Arrived, FlowRecord, Side};
use agent::TrafficClass;
use datapath::inner::{Address, FlowKey};
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn text(address: Address) -> String {
    match address {
        Address::V4(bytes) => Ipv4Addr::from(bytes).to_string(),
        Address::V6(bytes) => Ipv6Addr::from(bytes).to_string(),
    }
}

fn name(class: TrafficClass) -> &'static str {
    match class {
        TrafficClass::None => "none",
        TrafficClass::Short => "short",
        TrafficClass::Long => "long",
        TrafficClass::Control => "control",
    }
}

/// Returns a flow's addresses and ports.
pub fn addresses<'py>(py: Python<'py>, key: &FlowKey) -> PyResult<Bound<'py, PyDict>> {
    let bytes = key.bytes();
    let port = |offset: usize| u16::from_be_bytes([bytes[offset], bytes[offset + 1]]);
    let dict = PyDict::new(py);
    dict.set_item("source", text(key.source()))?;
    dict.set_item("source_port", port(bytes.len() - 4))?;
    dict.set_item("destination", text(key.destination()))?;
    dict.set_item("destination_port", port(bytes.len() - 2))?;
    Ok(dict)
}

/// Returns the fields of an entry.
pub fn dict<'py>(py: Python<'py>, record: &FlowRecord) -> PyResult<Bound<'py, PyDict>> {
    let entry = addresses(py, &record.key)?;
    entry.set_item("protocol", record.key.protocol())?;
    entry.set_item("traffic_class", name(record.class))?;
    entry.set_item("packets", record.packets)?;
    entry.set_item("bytes", record.bytes)?;
    entry.set_item("first_s", record.first)?;
    entry.set_item("last_s", record.last)?;
    entry.set_item("repairs", record.repairs)?;
    match &record.side {
        Side::Sender { priority } => {
            entry.set_item("side", "sender")?;
            entry.set_item("priority", priority)?;
        }
        Side::Receiver(arrived) => {
            entry.set_item("side", "receiver")?;
            add(py, &entry, arrived)?;
        }
    }
    Ok(entry)
}

fn add(py: Python<'_>, entry: &Bound<'_, PyDict>, arrived: &Arrived) -> PyResult<()> {
    let mut paths: BTreeMap<u16, u64> = BTreeMap::new();
    let mut by_class: BTreeMap<TrafficClass, BTreeMap<u16, u64>> = BTreeMap::new();
    for way in &arrived.ways {
        *paths.entry(way.stamp).or_default() += way.datagrams;
        by_class.entry(way.class).or_default().insert(way.stamp, way.datagrams);
    }
    let named = |ways: &BTreeMap<u16, u64>| {
        let dict = PyDict::new(py);
        ways.iter().try_for_each(|(stamp, count)| dict.set_item(stamp.to_string(), count)).map(|()| dict)
    };
    let classes = PyDict::new(py);
    for (&class, ways) in &by_class {
        classes.set_item(name(class), named(ways)?)?;
    }
    entry.set_item("paths", named(&paths)?)?;
    entry.set_item("paths_by_class", classes)?;
    entry.set_item("recovered", arrived.recovered)?;
    entry.set_item("lost", arrived.lost)?;
    entry.set_item("reordered", arrived.reordered)?;
    entry.set_item("held", arrived.held)?;
    entry.set_item("release_timeouts", arrived.timeouts)
}
