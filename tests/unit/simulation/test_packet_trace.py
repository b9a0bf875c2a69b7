"""Recordings of simulated runs: their files agree with the runs' own figures, and what is none is refused."""

from __future__ import annotations

import errno
import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cli.app import capstan
from cli.specs import load_spec
from experiments.results.document import Run
from experiments.results.packet_trace import (
    KINDS,
    OUTCOMES,
    PacketTrace,
    PacketTraceError,
    parse_trace,
    trace_bytes,
)
from experiments.spec.simulated import SharedBuffer, Simulation
from experiments.spec.spec import SchemeChoice
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from simulation.packet_trace import Recorder


def recorded(scheme: str, from_ms: float = 0.0, for_ms: float = 1e6) -> tuple[PacketTrace, Run]:
    """Return the recording of a run of ten flows of `small`, and the run."""
    spec = load_spec("small", (scheme,)).spec
    workload = replace(spec.workload, flows=replace(spec.workload.flows, count=4))
    spec = replace(spec, workload=workload, schemes=(SchemeChoice(scheme, scheme),), repeats=1)
    recorder = Recorder(from_ms, for_ms)
    _, (run,) = simulate_document(spec, recorder=recorder)
    assert recorder.trace is not None
    return recorder.trace, run


@pytest.fixture(scope="module")
def caps() -> tuple[PacketTrace, Run]:
    return recorded("caps", 0.0, 1500.0)


def test_packets_of_a_flow_are_those_that_its_agents_counted(caps: tuple[PacketTrace, Run]) -> None:
    trace, run = caps
    assert not trace.cut
    assert trace.repeat == run.repeat == 0
    of_flow = {flow_id: row for row, flow_id in enumerate(trace.flows["id"])}
    kinds = Counter(zip(trace.packets["flow"], (KINDS[kind] for kind in trace.packets["kind"]), strict=True))
    ended = [flow for flow in run.flows if flow.fct_s and flow.started_s + flow.fct_s < 1.0]
    assert ended
    for flow in ended:
        row = of_flow[flow.id]
        to = [
            KINDS[kind]
            for kind, place, end in zip(
                trace.packets["kind"], trace.packets["flow"], trace.packets["destination"], strict=True
            )
            if place == row and end == trace.flows["destination"][row]
        ]
        assert to.count("repair") == flow.repairs
        assert len(to) - to.count("repair") == flow.packets
        assert kinds[row, "acknowledgement"] > 0


def test_each_hop_goes_on_where_the_one_before_it_ended(caps: tuple[PacketTrace, Run]) -> None:
    trace, _ = caps
    at: dict[int, tuple[str, int]] = {}
    hops = trace.hops
    for row, (packet, link) in enumerate(zip(hops["packet"], hops["link"], strict=True)):
        if packet in at:
            node, arrived_ps = at.pop(packet)
            assert trace.links["from"][link] == node
            assert hops["offered_ps"][row] == arrived_ps
        else:
            assert trace.links["from"][link] == trace.hosts[trace.packets["source"][packet]]
        if OUTCOMES[hops["outcome"][row]] == "sent":
            crossing = -(-trace.packets["bytes"][packet] * 8 * 10**12 // trace.links["bps"][link])
            end_ps = hops["offered_ps"][row] + hops["waited_ps"][row] + crossing
            at[packet] = trace.links["to"][link], end_ps + trace.links["delay_ps"][link]
    for packet, (node, arrived_ps) in at.items():
        if arrived_ps < trace.length_ps:
            assert node == trace.hosts[trace.packets["destination"][packet]]


def test_modes_of_leaves_are_those_of_the_run(caps: tuple[PacketTrace, Run]) -> None:
    trace, run = caps
    in_window = [
        (change["at_s"], change["mode"] == "on") for change in run.modes or () if change["at_s"] <= 1.5
    ]
    assert in_window
    assert [
        (at / 1e12, on) for at, on in zip(trace.modes["at_ps"], trace.modes["on"], strict=True)
    ] == in_window


def test_a_later_window_knows_the_modes_at_its_begin(caps: tuple[PacketTrace, Run]) -> None:
    whole, _ = caps
    trace, _ = recorded("caps", 700.0, 300.0)
    state = {
        leaf: on
        for at, leaf, on in zip(whole.modes["at_ps"], whole.modes["leaf"], whole.modes["on"], strict=True)
        if at <= 700 * 10**9
    }
    first = {
        leaf: on
        for at, leaf, on in zip(trace.modes["at_ps"], trace.modes["leaf"], trace.modes["on"], strict=True)
        if at == 0
    }
    assert first == state
    assert max(trace.hops["offered_ps"]) < 300 * 10**9


@pytest.mark.parametrize(
    ("scheme", "simulation", "room"),
    [
        ("ecmp", Simulation(), 256),
        ("ecmp-pq", Simulation(), 2 * 256),
        ("pfabric", Simulation(), 36_864 // 1500),
        ("ecmp", Simulation(buffer_bytes=30_000), 30_000 // 1500),
        ("ecmp", Simulation(shared_buffer=SharedBuffer(60_000)), 0),
    ],
)
def test_ports_of_switches_have_their_room_under_the_scheme(
    scheme: str, simulation: Simulation, room: int
) -> None:
    recorder = Recorder(0.0, 50.0)
    simulate_document(replace(load_spec("small", (scheme,)).spec, simulation=simulation), recorder=recorder)
    assert recorder.trace is not None
    links = recorder.trace.links
    rooms = zip(links["from"], links["room_packets"], strict=True)
    assert {packets for sender, packets in rooms if not sender.startswith("h")} == {room}


def test_a_recording_is_read_as_it_was_written(caps: tuple[PacketTrace, Run], tmp_path: Path) -> None:
    trace, _ = caps
    content = trace_bytes(trace)
    assert content == trace_bytes(trace)
    (tmp_path / "caps.trace").write_bytes(content)
    assert asdict(parse_trace((tmp_path / "caps.trace").read_bytes())) == {
        **asdict(trace),
        **{
            name: dict(getattr(trace, name))
            for name in ("links", "flows", "packets", "hops", "releases", "modes")
        },
    }


def test_a_window_in_which_nothing_happens_is_an_error() -> None:
    with pytest.raises(
        SettingsError, match=r"no packet was under way from 9e\+06 ms on .* record another window"
    ):
        recorded("ecmp", 9e6, 1.0)


def changed(trace: PacketTrace, change: Callable[[dict[str, Any]], None]) -> bytes:
    document = json.loads(gzip.decompress(trace_bytes(trace)))
    change(document)
    return gzip.compress(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda document: document.update(format="pcap"), "format is not"),
        (lambda document: document.update(version=2), "version 2: this Capstan reads version 1"),
        (lambda document: document.pop("hops"), "a field is missing"),
        (lambda document: document["hops"]["link"].pop(), "hops: columns differ in length"),
        (
            lambda document: document["hops"]["link"].__setitem__(0, 10**6),
            r"hops.link, row 1: 1000000 is not",
        ),
        (
            lambda document: document["packets"]["kind"].__setitem__(1, "x"),
            r"packets.kind, row 2: 'x' is not",
        ),
        (lambda document: document["packets"]["flow"].__setitem__(0, -2), r"packets.flow, row 1: -2 is not"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_place(
    caps: tuple[PacketTrace, Run], change: Callable[[dict[str, Any]], None], words: str
) -> None:
    with pytest.raises(PacketTraceError, match=words):
        parse_trace(changed(caps[0], change))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_trace_or_refused(content: bytes) -> None:
    for data in (content, gzip.compress(content)):
        with pytest.raises(PacketTraceError):
            parse_trace(data)


@pytest.mark.slow
def test_a_file_that_unpacks_to_more_than_a_trace_has_is_refused() -> None:
    with pytest.raises(PacketTraceError, match="more than 64 MB"):
        parse_trace(gzip.compress(b" " * 65_000_000))


def test_the_command_records_one_run(tmp_path: Path) -> None:
    file = tmp_path / "ecmp.trace"
    options = ["--results", str(tmp_path), "--trace", str(file), "--trace-from", "200", "--trace-for", "150"]
    done = CliRunner().invoke(capstan, ["simulate", "small", "--scheme", "ecmp", *options])
    assert done.exit_code == 0, done.output
    trace = parse_trace(file.read_bytes())
    assert (trace.scheme, trace.begin_ps, trace.length_ps) == ("ecmp", 200 * 10**9, 150 * 10**9)
    refused = CliRunner().invoke(capstan, ["simulate", "small", *options])
    assert refused.exit_code == 2
    assert "give one --scheme" in refused.output


def test_the_command_records_a_point_of_a_sweep(tmp_path: Path) -> None:
    swept, file = tmp_path / "swept.yaml", tmp_path / "ecmp.trace"
    axis = "{label: flows, fields: [workload.flows.count], values: [4, 6]}"
    swept.write_text(f"{load_spec('small').text}sweep: [{axis}]\n", encoding="utf-8")
    options = ["--scheme", "ecmp", "--results", str(tmp_path), "--trace", str(file), "--trace-for", "150"]
    refused = CliRunner().invoke(capstan, ["simulate", str(swept), *options])
    assert refused.exit_code == 2
    assert "of a sweep over one axis one --point" in refused.output
    done = CliRunner().invoke(capstan, ["simulate", str(swept), "--point", "4", *options])
    assert done.exit_code == 0, done.output
    assert parse_trace(file.read_bytes()).scheme == "ecmp"
    (kept,) = tmp_path.glob("small-*")
    spec = load_spec(str(kept / "spec.yaml")).spec
    assert (spec.workload.flows.count, spec.sweep) == (4, ())


def test_a_recording_that_cannot_be_written_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("cli.recordings.write_trace", full)
    options = ["--results", str(tmp_path), "--trace", str(tmp_path / "x.trace"), "--trace-for", "50"]
    done = CliRunner().invoke(capstan, ["simulate", "small", "--scheme", "ecmp", *options])
    assert done.exit_code == 1
    assert "No space left on device: the recording was not written" in done.output
    assert "and as experiment 1" in done.output
    (kept,) = tmp_path.glob("small-*")
    assert (kept / "result.json").is_file()
