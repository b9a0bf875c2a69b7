//! What admission says to the controller, for Python.

use std::net::Ipv4Addr;

use agent::admission::{Backlog, Episode, Gate, MessageBody, TcpBytes};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::agent::core::records::addresses;

/// Of a decision its number, flow, answered request, rate (bit/s; 0: it has to wait) and path.
pub type Decided = (u32, u32, u32, u64, u16);

/// Of a message its number, flow, and of a request its destination and the bytes left.
pub type PyMessage = (u32, u32, Option<(String, u64)>);

/// Returns messages for the controller. `backlog`: `host_agent.admission.unsent.Unsent` of a flow, or None.
pub fn messages(gate: &mut Gate<TcpBytes>, backlog: &Bound<'_, PyAny>, now: f64) -> PyResult<Vec<PyMessage>> {
    let mut failure = None;
    let messages = gate.messages(now, |flow| {
        let answer = backlog.call1((PyBytes::new(backlog.py(), flow.bytes()),)).and_then(backlog_of);
        answer.unwrap_or_else(|error| {
            failure = Some(error);
            None
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let request = |body| match body {
        MessageBody::Request { destination, bytes_left } => {
            let destination: agent::admission::Destination = destination;
            Some((Ipv4Addr::from(destination.peer).to_string(), bytes_left))
        }
        MessageBody::Finished => None,
    };
    Ok(messages.into_iter().map(|message| (message.sequence, message.flow, request(message.body))).collect())
}

fn backlog_of(answer: Bound<'_, PyAny>) -> PyResult<Option<Backlog>> {
    if answer.is_none() {
        return Ok(None);
    }
    Ok(Some(Backlog {
        bytes: answer.getattr("bytes")?.extract()?,
        more: answer.getattr("more")?.extract()?,
        scale: answer.getattr("scale")?.extract()?,
        segment_bytes: answer.getattr("segment_bytes")?.extract()?,
        most_segment_bytes: answer.getattr("most_segment_bytes")?.extract()?,
    }))
}

/// Returns the fields of a `protocol.sent_again.Resent`.
pub fn dict<'py>(py: Python<'py>, episode: &Episode) -> PyResult<Bound<'py, PyDict>> {
    let micro = |seconds: f64| (seconds * 1e6).round() / 1e6;
    let fields = addresses(py, &episode.flow)?;
    fields.set_item("state", episode.state.name())?;
    fields.set_item("trigger", episode.trigger.name())?;
    fields.set_item("at_s", micro(episode.begun))?;
    fields.set_item("lasted_s", micro(episode.last - episode.begun))?;
    fields.set_item("quiet_s", micro(episode.quiet_s))?;
    fields.set_item("late_s", micro(episode.late_s))?;
    fields.set_item("in_flight_bytes", episode.in_flight_bytes)?;
    fields.set_item("bytes", episode.bytes)?;
    fields.set_item("needless_bytes", episode.needless_bytes)?;
    fields.set_item("queue_bytes", episode.queue_bytes)?;
    Ok(fields)
}
