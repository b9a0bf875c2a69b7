"""Traces, reference figures, and the command that simulates one beside the other."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cli.commands.simulate import simulate_command
from simulation.fabrics import SettingsError
from simulation.runs import run
from simulation.settings import Settings
from simulation.summary import summarise
from simulation.trace import LATEST_START_NS, Trace, TraceError, as_csv, read_trace
from simulation.websearch import SHA256, common_trace


def test_the_common_trace_is_the_published_one() -> None:
    assert hashlib.sha256(as_csv(common_trace()).encode()).hexdigest() == SHA256 == common_trace().sha256()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_trace_reads_as_it_was_written(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "trace.csv"
    trace = common_trace().first(50)
    path.write_text(as_csv(trace), encoding=encoding)
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
        ("start_ns,src,dst,bytes\n1,2,3,4\n5\n", "line 3: .5. is not 4 whole numbers"),
        ("start_ns,src,dst,bytes\n1,2,3,4.5\n", "line 2"),
        ("start_ns,src,dst,bytes\n1,-2,3,4\n", "line 2.*below 0"),
        ("start_ns,src,dst,bytes\n1,2,3,99999999999999999999\n", "line 2"),
        (
            "start_ns,src,dst,bytes\n1,2,3,4\n99999999999999999,2,3,4\n",
            f"line 3: start_ns .* {LATEST_START_NS}",
        ),
        ("start_ns,src,dst,bytes\n1,2,4294967296,4\n", "line 2: dst is 4294967296: give at most 4294967295"),
        ("start_ns,src,dst,bytes,level\n1,2,3,4,4294967296\n", "line 2: level"),
    ],
)
def test_a_trace_that_cannot_be_read_says_where(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=words):
        read_trace(path)


def test_the_latest_start_is_simulated_and_one_later_is_not() -> None:
    first = common_trace().first(20)

    def late(by: int) -> Trace:
        return replace(first, starts_ns=first.starts_ns - first.starts_ns[0] + by)

    span = int(first.starts_ns[-1] - first.starts_ns[0])
    assert (run(Settings(), late(LATEST_START_NS - span)).completed_ps > 0).all()
    with pytest.raises(
        SettingsError, match=f"flow 19 starts at {LATEST_START_NS + 1} ns: .* {LATEST_START_NS} ns"
    ):
        run(Settings(), late(LATEST_START_NS - span + 1))


def test_levels_are_a_fifth_column(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("start_ns,src,dst,bytes,level\n1,2,3,4,5\n")
    trace = read_trace(path)
    assert trace.levels.tolist() == [5]
    assert as_csv(trace) == path.read_text()


def test_percentiles_and_means_are_those_of_numpy() -> None:
    trace = common_trace().first(60)
    result = run(Settings(), trace)
    figures = summarise(Settings(), trace, result)
    short = result.completed_ps[trace.sizes < 100_000] / 1e6
    assert figures["FCT, < 100 KB, p99"].value == pytest.approx(np.percentile(short, 99))
    assert figures["FCT, all, mean"].value == pytest.approx(result.completed_ps.mean() / 1e6)
    assert figures["slowdown, all, mean"].value >= 1


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(as_csv(common_trace().first(40)))
    return path


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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--flows", "99999999999"),
        ("--leaves", "100001"),
        ("--hosts-per-leaf", "99999999999"),
        ("--spines", "99999999999"),
        ("--fat-tree", "74"),
        ("--host-gbps", "10001"),
        ("--fabric-gbps", "0"),
        ("--delay-us", "-1"),
        ("--window", "99999999999"),
        ("--largest-window", "99999999999"),
        ("--timeout-us", "1e10"),
        ("--mark-from", "99999999999"),
        ("--buffer-bytes", "99999999999999999999"),
        ("--buffer-packets", "99999999999"),
        ("--shared-buffer-bytes", "99999999999999999999"),
        ("--alpha", "1e10"),
        ("--seed", "99999999999999999999"),
    ],
)
def test_a_number_that_cannot_be_names_its_option(trace_file: Path, option: str, value: str) -> None:
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(trace_file), option, value])
    assert of.exit_code == 2
    assert f"'{option}'" in of.output
    assert "range" in of.output


@pytest.mark.parametrize("change", ["0-0=99999", "0-0=1@1e10", "0-0=1@99999999999"])
def test_a_link_that_cannot_be_is_named(trace_file: Path, change: str) -> None:
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(trace_file), "--link", change])
    assert isinstance(of.exception, SettingsError)
    assert str(of.exception).startswith(f"link '{change}'")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--profile", "linux", "--mark-from", "5"], "--mark-from 5: no host reads marks"),
        (["--mark-from", "5"], "--mark-from 5: no host reads marks"),
        (["--transport", "pfabric", "--mark-from", "5"], "--mark-from 5: no host reads marks"),
        (
            ["--transport", "dctcp", "--buffer-packets", "20"],
            "--mark-from 65 (the default): ports hold 20 packets",
        ),
        (
            ["--transport", "dctcp", "--mark-from", "21", "--buffer-packets", "20"],
            "--mark-from 21: ports hold",
        ),
    ],
)
def test_marks_that_no_host_reads_or_that_never_come_are_an_error(
    trace_file: Path, options: list[str], words: str
) -> None:
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(trace_file), *options])
    assert isinstance(of.exception, SettingsError)
    assert words in str(of.exception)


@pytest.mark.parametrize("options", [["--largest-window", "20"], ["--timeout-us", "45"]])
@pytest.mark.parametrize("transport", [[], ["--transport", "window"]])
def test_options_that_a_fixed_window_has_not_are_an_error(
    trace_file: Path, options: list[str], transport: list[str]
) -> None:
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(trace_file), *transport, *options])
    assert isinstance(of.exception, SettingsError)
    assert str(of.exception).startswith(f"{' '.join(options)}: the window is fixed")


@pytest.mark.parametrize("option", ["--leaves", "--hosts-per-leaf", "--spines"])
def test_sizes_of_a_leaf_spine_beside_a_fat_tree_are_an_error(trace_file: Path, option: str) -> None:
    options = ["--trace-file", str(trace_file), "--fat-tree", "8", option, "4"]
    of = CliRunner().invoke(simulate_command, options)
    assert of.exit_code == 2
    assert f"{option} is of a leaf-spine" in of.output


def test_marks_that_come_rarely_are_noticed(trace_file: Path) -> None:
    arguments = ["--trace-file", str(trace_file), "--transport", "dctcp", "--mark-from", "20"]
    few = CliRunner().invoke(simulate_command, [*arguments, "--buffer-bytes", "29999"])
    assert (few.exit_code, "ports hold 29999 B, 19 full packets" in few.stderr) == (0, True)
    enough = CliRunner().invoke(simulate_command, [*arguments, "--buffer-bytes", "30000"])
    assert (enough.exit_code, "full packets" in enough.stderr) == (0, False)


def test_a_small_buffer_is_named_with_its_unit(trace_file: Path) -> None:
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(trace_file), "--buffer-bytes", "1000"])
    assert str(of.exception) == "a port's buffer of 1000 B holds no packet of 1500 B: make it larger"
