"""Another simulator's figures: which runs they are of, and whether ours are within their tolerances."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.commands.simulate import simulate_command
from simulation.fabrics import Fabric, LinkChange, SettingsError
from simulation.reference import COLUMNS, Expected, read_reference, run_of
from simulation.runs import run
from simulation.settings import Buffer, FixedWindow, Paths, PFabricHosts, Settings
from simulation.summary import CLASSES, summarise
from simulation.tcp import PROFILES
from simulation.trace import Trace, as_csv
from simulation.websearch import common_trace

YAPS = Path(__file__).parents[3] / "simulation" / "yaps-websearch-144-load60.csv"
PREFIX = 1000


def settings(spines: int, transport: str, paths: Paths) -> Settings:
    """Return YAPS's settings: 16 spines of 10 Gbit/s or 4 of 40."""
    fabric = Fabric(spines=spines, fabric_gbps=160 / spines)
    if transport == "pfabric":
        return Settings(fabric, Buffer("pfabric", limit_bytes=36_864), PFabricHosts(), paths)
    return Settings(fabric, Buffer(), FixedWindow(12), paths)


def write(path: Path, of: Settings, trace: Trace, *figures: list[str]) -> None:
    """Write a reference file with figures of one run."""
    run = run_of(of, trace)
    assert run is not None
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *([*run, *figure] for figure in figures)])


@pytest.mark.slow
@pytest.mark.parametrize("paths", ["turn", "sum"])
@pytest.mark.parametrize("transport", ["window", "pfabric"])
@pytest.mark.parametrize("spines", [16, 4])
def test_the_first_1000_flows_take_as_long_as_in_yaps(spines: int, transport: str, paths: Paths) -> None:
    trace, of = common_trace().first(PREFIX), settings(spines, transport, paths)
    figures = summarise(of, trace, run(of, trace))
    expected = read_reference(YAPS, of, trace)
    within = {name: other.holds(figures[name].value) for name, other in expected.items()}
    assert {name for name, held in within.items() if held} >= {
        "FCT, all, mean",
        *(f"FCT, {name}, mean" for name in CLASSES),
        f"FCT, {CLASSES[0]}, p99",
    }
    assert False not in within.values(), {
        name: (figures[name].value, expected[name]) for name, held in within.items() if held is False
    }


def test_every_run_of_yaps_is_held() -> None:
    """The whole trace's, too, which docs/simulator.md has the commands for: eight runs of some 9 s each."""
    trace = common_trace()
    for flows in (trace, trace.first(PREFIX)):
        for spines in (16, 4):
            for transport in ("window", "pfabric"):
                for paths in ("turn", "sum"):
                    of = settings(spines, transport, "turn" if paths == "turn" else "sum")
                    expected = read_reference(YAPS, of, flows)
                    limits = (
                        {"FCT, all, mean": "1 %", "FCT, < 100 KB, mean": "1 %", "FCT, < 100 KB, p99": "5 %"}
                        if transport == "pfabric"
                        else {
                            "FCT, all, mean": "0.1 %",
                            "FCT, < 100 KB, mean": "0.3 %",
                            "FCT, < 100 KB, p99": "2 %",
                        }
                    )
                    assert (
                        limits.items() <= {name: other.tolerance for name, other in expected.items()}.items()
                    )


def test_reference_figures_are_of_the_same_run_only() -> None:
    trace, of = common_trace(), Settings()
    figures = read_reference(YAPS, of, trace)
    assert (figures["FCT, all, mean"].value, figures["FCT, < 100 KB, p99"].value) == (5147.0, 556.5)
    assert read_reference(YAPS, replace(of, seed=7), trace) == figures
    assert read_reference(YAPS, replace(of, paths="sum"), trace)["FCT, all, mean"].value == 5931.4
    four = replace(of, fabric=Fabric(spines=4, fabric_gbps=40))
    assert read_reference(YAPS, four, trace)["FCT, all, mean"].value == 5118.9
    for other in (
        replace(of, fabric=Fabric(spines=4)),
        replace(of, fabric=Fabric(host_gbps=1)),
        replace(of, fabric=Fabric(delay_us=0.3)),
        replace(of, fabric=Fabric(changes=(LinkChange(0, 0, 1),))),
        replace(of, fabric=Fabric("fat-tree")),
        replace(of, transport=FixedWindow(11)),
        replace(of, buffer=Buffer(limit_packets=500)),
        replace(of, buffer=Buffer(mark_from_packets=5)),
        replace(of, paths="random"),
    ):
        with pytest.raises(SettingsError, match="no run with these settings"):
            read_reference(YAPS, other, trace)
    sizes = trace.sizes.copy()
    sizes[17] += 1
    for flows in (trace.first(9_999), replace(trace, sizes=sizes)):
        with pytest.raises(SettingsError, match="no run with these settings"):
            read_reference(YAPS, of, flows)


def test_a_file_without_figures_is_an_error(tmp_path: Path) -> None:
    path, trace = tmp_path / "figures.csv", common_trace().first(1)
    path.write_text("a,b\n")
    with pytest.raises(SettingsError, match="columns"):
        read_reference(path, Settings(), trace)
    for figure in (["FCT", "much", ""], ["FCT", "1", "some"], ["FCT", "1"]):
        write(path, Settings(), trace, figure)
        with pytest.raises(SettingsError, match="line 2"):
            read_reference(path, Settings(), trace)


def test_tolerances_are_shares_of_the_value_or_ranges() -> None:
    share = Expected(200.0, "0.5 %")
    assert [share.holds(ours) for ours in (198.9, 199.1, 200.9, 201.1)] == [False, True, True, False]
    bounds = Expected(8.0, "0 to 100")
    assert [bounds.holds(ours) for ours in (0, 100, 101)] == [True, True, False]
    assert Expected(8.0).holds(9) is None


@pytest.mark.parametrize(("value", "code", "within"), [(1000.0, 3, False), (None, 0, True)])
def test_the_command_says_what_is_within_its_tolerance(
    tmp_path: Path, value: float | None, code: int, within: bool
) -> None:
    trace, of = common_trace().first(40), settings(16, "pfabric", "turn")
    file, reference = tmp_path / "trace.csv", tmp_path / "reference.csv"
    file.write_text(as_csv(trace))
    ours = summarise(of, trace, run(of, trace))["FCT, all, mean"].value
    other = ["FCT, all, mean", str(value or ours * 1.009), "1 %"]
    write(reference, of, trace, other, ["time-outs", "7", ""])
    arguments = ["--trace-file", str(file), "--transport", "pfabric", "--reference", str(reference)]
    of_command = CliRunner().invoke(simulate_command, arguments)
    assert of_command.exit_code == code, of_command.output
    assert ("yes" in of_command.stdout, "NO" in of_command.stdout) == (within, not within)
    assert ("beyond the reference's tolerance: FCT, all, mean" in of_command.stderr) is not within
    assert "queues: pfabric, 36864 B" in of_command.output
    document = json.loads(CliRunner().invoke(simulate_command, [*arguments, "--json", "-"]).stdout)
    assert document["figures"]["FCT, all, mean"]["within_tolerance"] is within
    assert document["figures"]["time-outs"]["within_tolerance"] is None


def test_a_reference_with_a_figure_that_is_none_is_an_error(tmp_path: Path) -> None:
    trace = common_trace().first(40)
    file, reference = tmp_path / "trace.csv", tmp_path / "reference.csv"
    file.write_text(as_csv(trace))
    write(reference, Settings(), trace, ["AFCT", "1", "1 %"])
    of = CliRunner().invoke(simulate_command, ["--trace-file", str(file), "--reference", str(reference)])
    assert "no figure 'AFCT'" in str(of.exception)


@pytest.mark.slow
def test_dctcp_sprays_before_it_hashes_as_in_yaps() -> None:
    """The order of AFCT and of the class means of YAPS's DCTCP with 16 spines (its figures are another DCTCP's).

    Where it was reversed, on the whole trace, the cause was packets sent again in vain: 0.9 % of those of this prefix.
    """
    trace = common_trace().first(2 * PREFIX)
    means = []
    for paths in ("turn", "sum"):
        of = Settings(
            buffer=Buffer(mark_from_packets=65),
            transport=PROFILES["datacenter"],
            paths="turn" if paths == "turn" else "sum",
        )
        result = run(of, trace)
        figures = summarise(of, trace, result)
        means.append([figures[f"FCT, {name}, mean"].value for name in ("all", *CLASSES)])
        assert result.resent.sum() < result.sent.sum() / 500, "nothing is dropped"
    assert all(spray < hashed for spray, hashed in zip(*means, strict=True)), means
