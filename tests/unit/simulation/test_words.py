"""What results and traces print of the settings in use: all of them, in words."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.app import capstan
from cli.specs import load_spec
from experiments.spec.simulated import SharedBuffer, Simulation
from simulation.experiment import simulate_document
from simulation.settings import Buffer, FixedWindow, PFabricHosts, Sharing
from simulation.tcp import PROFILES, Tcp
from simulation.words import marks_words, room_words, tcp_words, transport_words

CHANGED: dict[str, Any] = {
    "control": "cubic",
    "initial_window": 7,
    "largest_window": 77,
    "initial_timeout_us": 2_500_000.0,
    "least_timeout_us": 5_000.0,
    "largest_timeout_us": 30_000_000.0,
    "duplicates": 9,
    "sack": False,
    "rack": False,
    "reorder_quarters": 4,
    "reorder_slack_us": 3000.0,
    "marks": False,
    "delayed_packets": 3,
    "delayed_us": 700.0,
    "opening": True,
    "undo": False,
    "hystart": True,
    "prr": True,
    "mark_acknowledgements": True,
    "kernel_timeouts": True,
    "count_delivered": True,
    "timestamp_tick_us": 2000.0,
}


@pytest.mark.parametrize("name", [item.name for item in fields(Tcp)])
def test_every_setting_of_a_tcp_changes_its_words(name: str) -> None:
    base = replace(PROFILES["datacenter"], delayed_packets=2, delayed_us=500.0)
    assert tcp_words(replace(base, **{name: CHANGED[name]})) != tcp_words(base)


def test_the_words_of_linux_are_those_of_its_settings() -> None:
    assert transport_words(PROFILES["linux"], "linux") == (
        "TCP profile linux with cubic, initial window 10 packets, at most 10000; time-outs from 200 ms more than the "
        "round trip to 60 s, the first 1 s; losses by time (RACK, a quarter of the least round trip, its timer 6 ms "
        "later; at once from 3 duplicate acknowledgements on); with SACK; an acknowledgement for 2 packets or after "
        "40 ms; with a handshake, HyStart, proportional rate reduction, undone reductions, windows that grow by all "
        "that has arrived, timestamps of 1 ms by which late data is discarded (PAWS)"
    )


def test_hosts_without_tcp_and_ports_have_words_too() -> None:
    assert transport_words(FixedWindow(12)) == "a fixed window of 12 packets, no timer"
    assert transport_words(PFabricHosts()) == "pFabric, windows of 12 to 15 packets, time-out of 45 us"
    assert room_words(Buffer()) == "fifo, endless"
    assert room_words(Buffer("queues", limit_packets=9, queues=4)) == "4 strict queues, each 9 packets"
    assert room_words(Buffer("pfabric", limit_bytes=36_864)) == "pfabric, 36864 B"
    assert marks_words(Buffer(mark_from_packets=65)) == "marks from 65 waiting packets on"
    assert marks_words(Buffer(shared=Sharing(9000))) == "no marks"


@pytest.mark.parametrize(
    ("simulation", "words"),
    [
        (Simulation(), "fifo, 256 packets under ecmp, dctcp; 8 strict queues, each 256 packets under pias"),
        (Simulation(buffer_bytes=150_000), "fifo, 150000 B under ecmp, dctcp"),
        (
            Simulation(shared_buffer=SharedBuffer(600_000)),
            "fifo, 256 packets at hosts, at switches of a shared buffer",
        ),
    ],
)
def test_a_result_says_what_its_ports_hold(simulation: Simulation, words: str) -> None:
    spec = load_spec("small", ("ecmp", "pias", "dctcp")).spec
    few = replace(spec.workload, flows=replace(spec.workload.flows, count=4))
    document, _ = simulate_document(replace(spec, workload=few, simulation=simulation))
    assert words in document["notices"][0]
    assert tcp_words(PROFILES["linux"]) in document["notices"][0]
    assert document["simulation"]["profile"] == "linux"


def test_a_trace_prints_profile_settings_and_marks_in_words(tmp_path: Path) -> None:
    trace = tmp_path / "flows.csv"
    trace.write_text("start_ns,src,dst,bytes\n0,0,20,3000\n", encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["simulate", "--trace-file", str(trace), "--transport", "dctcp"])
    assert answer.exit_code == 0, answer.output
    assert "Tcp(" not in answer.stdout
    words = transport_words(PROFILES["datacenter"], "datacenter")
    assert f"transport: {words}" in answer.stdout
    assert "queues: fifo, endless; marks from 65 waiting packets on" in answer.stdout
