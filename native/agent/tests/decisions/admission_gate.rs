//! Admission of a host's flows and retransmission episodes, as the Python agent had them (recorded at 6dac90d), but for timers
//! of updates that let no segment go, and for what answers a request (`admission_requests.rs`).

use std::collections::BTreeMap;

use crate::support::hosts::segment_of_tcp;
use crate::support::{recorded, Words};
use agent::admission::{
    AdmissionPolicy, Backlog, Decision, Destination, Episode, Gate, Message, MessageBody, RequestState,
    RequestTimes, Sent, TcpBytes,
};
use datapath::inner::{look, FlowKey};

const PEER: [u8; 4] = [10, 0, 0, 2];

/// Makes a packet whose payload, all zeros, was recorded as its length.
fn packet(words: &mut Words<'_>) -> TcpBytes {
    let hex = words.word();
    let byte = |offset| u8::from_str_radix(&hex[offset..offset + 2], 16).expect("hex");
    let mut data: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let payload: u32 = words.number();
    data.resize(data.len() + payload as usize, 0);
    TcpBytes { data: data.into(), transport: words.number(), payload }
}

fn flow_of(packet: &TcpBytes) -> FlowKey {
    look(&packet.data).expect("a sound packet").flow
}

fn header(packet: &TcpBytes) -> String {
    let header = &packet.data[..packet.data.len() - packet.payload as usize];
    header.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn message(message: &Message<Destination>) -> String {
    let Message { sequence, flow, body } = message;
    match body {
        MessageBody::Request { destination, bytes_left } => {
            assert_eq!(destination.peer, PEER);
            format!("R{sequence},{flow},10.0.0.2,{bytes_left}")
        }
        MessageBody::Finished => format!("F{sequence},{flow}"),
    }
}

fn source_port(flow: &FlowKey) -> u16 {
    let bytes = flow.bytes();
    u16::from_be_bytes([bytes[bytes.len() - 4], bytes[bytes.len() - 3]])
}

fn episode(episode: &Episode) -> String {
    let (state, trigger) = (episode.state.name(), episode.trigger.name());
    let times = [episode.begun, episode.last - episode.begun, episode.quiet_s, episode.late_s];
    let times = times.map(|time| format!("{time:.6}")).join(",");
    let Episode { in_flight_bytes, bytes, needless_bytes, queue_bytes, .. } = episode;
    let port = source_port(&episode.flow);
    format!("{port},{state},{trigger},{times},{in_flight_bytes},{bytes},{needless_bytes},{queue_bytes}")
}

fn joined(parts: impl IntoIterator<Item = String>, by: &str) -> String {
    let all = parts.into_iter().collect::<Vec<_>>().join(by);
    if all.is_empty() {
        ".".into()
    } else {
        all
    }
}

fn policy(words: &mut Words<'_>) -> Option<AdmissionPolicy> {
    let threshold_bytes = match words.word() {
        "-" => return None,
        number => number.parse().expect("bytes"),
    };
    let times =
        RequestTimes { retry_s: words.number(), refresh_s: words.number(), fail_safe_s: words.number() };
    Some(AdmissionPolicy { threshold_bytes, times, burst_s: words.number() })
}

fn backlogs(words: &mut Words<'_>) -> BTreeMap<u16, Backlog> {
    let all = words.rest::<String>();
    let known = all.iter().filter_map(|text| text.split_once(':')).filter(|(_, answer)| *answer != "-");
    known
        .map(|(port, answer)| {
            let values: Vec<u32> = answer.split(',').map(|value| value.parse().expect("a number")).collect();
            let [bytes, more, scale, segment_bytes, most_segment_bytes] = values[..] else { panic!("five") };
            let (bytes, more) = (bytes.into(), more == 1);
            let backlog = Backlog { bytes, more, scale, segment_bytes, most_segment_bytes };
            (port.parse().expect("a port"), backlog)
        })
        .collect()
}

/// Returns the gate's answer to one event.
fn said(gate: &mut Gate<TcpBytes>, event: &str) -> String {
    let mut words = Words::of(event);
    let kind = words.word();
    let now: f64 = words.number();
    match kind {
        "policy" => gate.set_policy(policy(&mut words), now),
        "sent" => {
            let packet = packet(&mut words);
            let to = Destination { flow: flow_of(&packet), peer: PEER };
            let segment = packet.segment().expect("a header");
            let announced = Some(words.word()).filter(|word| *word != "-");
            let announced = announced.map(|word| word.parse().expect("bytes"));
            gate.sent(&Sent { to, segment, announced, before: words.number() }, now);
        }
        "arrived" => {
            let mut out: Vec<String> = gate.take_released().iter().map(header).collect();
            for _ in 0..words.number::<usize>() {
                let came = packet(&mut words);
                let (mut given, segment) = (came.clone(), came.segment().expect("a header"));
                gate.arrived(&flow_of(&came).reverse(), &mut given, &segment, now);
                out.push(if *given.data == *came.data { "=".into() } else { header(&given) });
            }
            out.extend(gate.take_updates().iter().map(header));
            return joined(out, ",");
        }
        "messages" => {
            let backlogs = backlogs(&mut words);
            let messages = gate.messages(now, |flow| backlogs.get(&source_port(flow)).copied());
            return joined(messages.iter().map(message), " ");
        }
        "grant" | "stop" => {
            let (sequence, flow, answers) = (words.number(), words.number(), words.number());
            let (rate_bps, stamp) = if kind == "grant" { (words.number(), words.number()) } else { (0, 0) };
            let changed = gate.decided(Decision { sequence, flow, answers, rate_bps, stamp }, now);
            return joined(changed.map(|(flow, stamp)| format!("{}:{stamp}", source_port(&flow))), ",");
        }
        "timer" => gate.handle_timer(now),
        "sweep" => gate.sweep(now),
        "connected" => gate.connected(now),
        "late" => gate.late(words.number(), now),
        "resent" => return joined(gate.take_episodes(now).iter().map(episode), " "),
        other => panic!("{other:?} is no event"),
    }
    ".".into()
}

fn standing(gate: &Gate<TcpBytes>, latencies: usize) -> String {
    let mut totals: BTreeMap<&str, u64> = gate.counts().totals().into();
    for (name, state) in [
        ("flows_granted", RequestState::Granted),
        ("flows_waiting", RequestState::Waiting),
        ("flows_unscheduled", RequestState::Unscheduled),
    ] {
        totals.insert(name, gate.standing(state) as u64);
    }
    let counted =
        totals.iter().filter(|(_, total)| **total > 0).map(|(name, total)| format!("{name}={total}"));
    let counted = counted.collect::<Vec<_>>().join("+");
    let deadline = gate.deadline().map_or("-".into(), |deadline| format!("{deadline:?}"));
    format!("{} {deadline} {latencies} {counted}", u8::from(gate.is_shut())).trim_end().into()
}

#[test]
fn flows_are_admitted_and_watched_as_recorded() {
    let (mut gate, mut latencies) = (Gate::default(), 0);
    for (number, line) in recorded(include_str!("../vectors/admission_gate.txt")) {
        let Some((event, recorded)) = line.split_once(" > ") else {
            assert_eq!(line, "new");
            (gate, latencies) = (Gate::default(), 0);
            continue;
        };
        let said = said(&mut gate, event);
        latencies += gate.take_latencies().len();
        assert_eq!(format!("{said} | {}", standing(&gate, latencies)), recorded, "line {number}: {event}");
    }
}

const TIMES: RequestTimes = RequestTimes { retry_s: 0.02, refresh_s: 0.25, fail_safe_s: 0.1 };

fn segment_of(from: u8, to: u8, sequence: u32, acknowledged: u32, bytes: u32) -> TcpBytes {
    let data = segment_of_tcp(from, to, sequence, acknowledged, bytes);
    TcpBytes { data: data.into(), transport: 20, payload: bytes }
}

/// Lets a segment of host 1 pass.
fn leave(gate: &mut Gate<TcpBytes>, packet: &TcpBytes, announced: Option<f64>, now: f64) {
    let to = Destination { flow: flow_of(packet), peer: PEER };
    let segment = packet.segment().expect("a header");
    gate.sent(&Sent { to, segment, announced, before: 0 }, now);
}

/// Lets an acknowledgement of host 2 pass.
fn acknowledge(gate: &mut Gate<TcpBytes>, number: u32, now: f64) {
    let mut packet = segment_of(2, 1, 0, number, 0);
    let segment = packet.segment().expect("a header");
    gate.arrived(&flow_of(&packet).reverse(), &mut packet, &segment, now);
}

/// At 64 kbit/s a step of the largest windows takes longer than flows are silent before they give their grants back.
#[test]
fn a_flow_that_waits_for_its_next_window_at_a_very_low_rate_keeps_its_grant() {
    let mut gate = Gate::default();
    gate.set_policy(Some(AdmissionPolicy { threshold_bytes: 0, times: TIMES, burst_s: 0.002 }), 0.0);
    let open =
        Backlog { bytes: 999_000, more: false, scale: 14, segment_bytes: 1400, most_segment_bytes: 1400 };
    let mut newest = 0;
    let mut decide = |gate: &mut Gate<TcpBytes>, now: f64| {
        for Message { sequence: answers, flow, body } in gate.messages(now, |_| Some(open)) {
            assert!(matches!(body, MessageBody::Request { .. }), "it asks for nothing more at {now} s");
            newest += 1;
            gate.decided(Decision { sequence: newest, flow, answers, rate_bps: 64_000, stamp: 0 }, now);
        }
    };
    leave(&mut gate, &segment_of(1, 2, 0, 0, 1000), Some(1e6), 0.0);
    decide(&mut gate, 0.0);
    acknowledge(&mut gate, 1000, 0.02);
    leave(&mut gate, &segment_of(1, 2, 1000, 0, 1 << 14), Some(1e6), 0.03);
    acknowledge(&mut gate, 1000 + (1 << 14), 0.05);
    for step in 1..=10 {
        let now = 0.25 * f64::from(step);
        gate.handle_timer(now);
        decide(&mut gate, now);
    }
    assert_eq!(gate.counts().flows_stalled, 0);
    assert_eq!(gate.take_updates().len(), 1, "the next window is there");
}

#[test]
fn what_left_while_nothing_was_watched_counts_as_seen_by_the_next_policy() {
    let policy = Some(AdmissionPolicy { threshold_bytes: 1 << 40, times: TIMES, burst_s: 0.002 });
    let mut gate = Gate::default();
    gate.set_policy(policy, 0.0);
    let mut opening = segment_of_tcp(1, 2, 999, 0, 0);
    opening[33] = 0x02; // SYN
    leave(&mut gate, &TcpBytes { data: opening.into(), transport: 20, payload: 0 }, None, 0.0);
    leave(&mut gate, &segment_of(1, 2, 1000, 0, 1000), None, 0.1);
    gate.set_policy(None, 1.0);
    gate.sweep(7.0);
    assert!(!gate.is_shut(), "so what leaves next is not seen");
    gate.set_policy(policy, 9.0);
    leave(&mut gate, &segment_of(1, 2, 50_000, 0, 1000), None, 9.1);
    leave(&mut gate, &segment_of(1, 2, 49_000, 0, 1000), None, 9.2); // again
    let episodes = gate.take_episodes(20.0);
    let bytes: Vec<_> = episodes.iter().map(|episode| (episode.bytes, episode.queue_bytes)).collect();
    assert_eq!(bytes, [(1000, 0)], "its first transmission was not dropped by the host's queue");
}
