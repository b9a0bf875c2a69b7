"""Traces, reference figures, and the command that simulates one beside the other."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cli.commands.simulate import simulate_command
from simulation.fabrics import SettingsError
from simulation.reference import read_reference
from simulation.runs import run
from simulation.settings import Settings
from simulation.summary import summarise
from simulation.trace import TraceError, read_trace
from simulation.websearch import SHA256, as_csv, common_trace

YAPS = Path(__file__).parents[3] / "simulation" / "yaps-websearch-144-load60.csv"


def test_the_common_trace_is_the_published_one() -> None:
    assert hashlib.sha256(as_csv(common_trace()).encode()).hexdigest() == SHA256


def test_a_trace_reads_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    trace = common_trace().first(50)
    path.write_text(as_csv(trace))
    again = read_trace(path)
    assert as_csv(again) == as_csv(trace)
    assert not again.levels.any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("start,src,dst,bytes\n1,2,3,4\n", "line 1: the columns are"),
        ("start_ns,src,dst,bytes\n", "no flows"),
        ("start_ns,src,dst,bytes\n1,2,3,4\n1,2,3\n", "line 3"),
        ("start_ns,src,dst,bytes\n1,2,3,4.5\n", "line 2"),
        ("start_ns,src,dst,bytes\n1,-2,3,4\n", "line 2.*below 0"),
        ("start_ns,src,dst,bytes\n1,2,3,99999999999999999999\n", "line 2"),
    ],
)
def test_a_trace_that_cannot_be_read_says_where(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=words):
        read_trace(path)


def test_levels_are_a_fifth_column(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("start_ns,src,dst,bytes,level\n1,2,3,4,5\n")
    assert read_trace(path).levels.tolist() == [5]


def test_percentiles_and_means_are_those_of_numpy() -> None:
    trace = common_trace().first(60)
    result = run(Settings(), trace)
    figures = summarise(Settings(), trace, result)
    short = result.completed_ps[trace.sizes < 100_000] / 1e6
    assert figures["FCT, < 100 KB, p99"].value == pytest.approx(np.percentile(short, 99))
    assert figures["FCT, all, mean"].value == pytest.approx(result.completed_ps.mean() / 1e6)
    assert figures["slowdown, all, mean"].value >= 1


def test_reference_figures_are_of_the_same_run_only() -> None:
    figures = read_reference(YAPS, Settings(), 10_000)
    assert figures["FCT, all, mean"] == 5147.0
    assert figures["FCT, < 100 KB, p99"] == 556.5
    assert read_reference(YAPS, Settings(paths="sum"), 10_000)["FCT, all, mean"] == 5931.4
    assert read_reference(YAPS, Settings(), 9_999) == {}
    assert read_reference(YAPS, Settings(paths="random"), 10_000) == {}


def test_a_file_without_figures_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "figures.csv"
    path.write_text("a,b\n")
    with pytest.raises(SettingsError, match="columns"):
        read_reference(path, Settings(), 1)
    path.write_text("spines,transport,paths,flows,figure,value\n16,window,turn,1,FCT,much\n")
    with pytest.raises(SettingsError, match="line 2"):
        read_reference(path, Settings(), 1)


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(as_csv(common_trace().first(40)))
    return path


def test_the_command_prints_figures_beside_references(trace_file: Path, tmp_path: Path) -> None:
    reference = tmp_path / "reference.csv"
    reference.write_text(
        'spines,transport,paths,flows,figure,value\n16,pfabric,turn,40,"FCT, all, mean",1000\n'
    )
    of = CliRunner().invoke(
        simulate_command,
        ["--trace-file", str(trace_file), "--transport", "pfabric", "--reference", str(reference)],
    )
    assert of.exit_code == 0, of.output
    assert "1000.0" in of.output
    assert "queues: pfabric, 36864 B" in of.output


def test_the_json_document_has_settings_figures_and_flows(trace_file: Path) -> None:
    arguments = ["--trace-file", str(trace_file), "--flows", "30", "--link", "0-0=0", "--json", "-"]
    first = CliRunner().invoke(simulate_command, arguments)
    assert first.exit_code == 0, first.output
    document = json.loads(first.stdout)
    assert document["settings"]["transport"] == {"kind": "window", "window": 12}
    assert document["settings"]["fabric"]["changes"] == [
        {"leaf": 0, "spine": 0, "gbps": 0.0, "delay_us": None}
    ]
    assert len(document["flows"]["completed_ps"]) == 30
    assert document["figures"]["FCT, all, mean"]["unit"] == "us"
    assert CliRunner().invoke(simulate_command, arguments).stdout == first.stdout


@pytest.mark.parametrize(
    "options", [["--link", "0-99=1"], ["--buffer-packets", "1"], ["--leaves", "2"], ["--fat-tree", "5"]]
)
def test_what_cannot_be_is_one_line(trace_file: Path, options: list[str]) -> None:
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(trace_file), *options])
    assert isinstance(of.exception, SettingsError)
    assert "\n" not in str(of.exception)


@pytest.mark.parametrize(
    ("options", "transport", "buffer"),
    [
        ([], {"kind": "window", "window": 12}, {"queue": "fifo", "mark_from_packets": 0}),
        (["--profile", "ns2"], {"control": "newreno", "initial_window": 2, "sack": False}, {"queue": "fifo"}),
        (
            ["--profile", "linux", "--window", "4"],
            {"control": "cubic", "rack": True, "initial_window": 4},
            {},
        ),
        (
            ["--transport", "dctcp", "--timeout-us", "500"],
            {"control": "dctcp", "least_timeout_ps": 500_000_000, "marks": True},
            {"mark_from_packets": 65},
        ),
        (
            ["--transport", "newreno", "--profile", "datacenter"],
            {"control": "newreno", "marks": False, "rack": True},
            {"mark_from_packets": 0},
        ),
        (["--transport", "pfabric", "--window", "8"], {"initial_window": 8, "largest_window": 15}, {}),
    ],
)
def test_profiles_and_options_make_the_transport(
    trace_file: Path, options: list[str], transport: dict[str, object], buffer: dict[str, object]
) -> None:
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(trace_file), *options, "--json", "-"])
    assert of.exit_code == 0, of.output
    chosen = json.loads(of.stdout)["settings"]
    assert transport.items() <= chosen["transport"].items()
    assert buffer.items() <= chosen["buffer"].items()
    assert json.loads(of.stdout)["figures"]["FCT, all, mean"]["value"] > 0


@pytest.mark.parametrize("transport", ["window", "pfabric"])
def test_a_profile_of_what_is_no_tcp_is_an_error(trace_file: Path, transport: str) -> None:
    options = ["--trace-file", str(trace_file), "--profile", "linux", "--transport", transport]
    of = CliRunner().invoke(simulate_command, options)
    assert isinstance(of.exception, SettingsError)
    assert "leave it out" in str(of.exception)
