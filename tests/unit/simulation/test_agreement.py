"""Lab and simulation side by side: what agrees, and what does not."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.app import capstan
from cli.specs import load_spec
from experiments.results.document import json_text
from simulation.agreement import Agreement, Measured, agreements
from simulation.experiment import simulate_document


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    spec = load_spec("small", ("ecmp", "rps")).spec
    return simulate_document(replace(spec, repeats=2))[0]


@pytest.mark.parametrize(
    ("lab", "other", "agrees"),
    [
        (Measured(100, None), Measured(114.9, None), True),
        (Measured(100, None), Measured(115.1, None), False),
        (Measured(100, None), Measured(84.9, None), False),
        (Measured(100, (60, 140)), Measured(170, (139, 200)), True),
        (Measured(100, (60, 140)), Measured(170, (141, 200)), False),
        (Measured(100, (60, 140)), Measured(170, None), False),
        (Measured(0, None), Measured(5, None), False),
        (Measured(0, None), Measured(0, None), True),
    ],
)
def test_figures_agree_that_are_near_or_whose_intervals_overlap(
    lab: Measured, other: Measured, agrees: bool
) -> None:
    assert Agreement("ecmp", "mean", "ms", lab, other, 0.15).agrees == agrees


def test_a_result_agrees_with_itself_in_every_measure(simulated: dict[str, Any]) -> None:
    found = list(agreements(simulated, simulated, 0.0))
    assert {(one.scheme, one.measure) for one in found} == {
        (scheme, measure)
        for scheme in ("ecmp", "rps")
        for measure in ("mean time, short flows", "goodput, long flows")
    }
    assert all(one.agrees and one.ratio == 1 for one in found)


def test_long_flows_that_carried_nothing_in_the_lab_are_compared(simulated: dict[str, Any]) -> None:
    lab = deepcopy(simulated)
    lab["schemes"]["rps"]["long"] |= {"goodput_mbps": 0.0, "goodput_ci_mbps": [0.0, 0.0]}
    (different,) = [one for one in agreements(lab, simulated) if not one.agrees]
    assert (different.scheme, different.measure) == ("rps", "goodput, long flows")
    assert different.ratio is None


def test_results_of_other_flows_cannot_be_compared(simulated: dict[str, Any]) -> None:
    other = simulate_document(replace(load_spec("small", ("ecmp", "rps")).spec, seed=5, repeats=2))[0]
    with pytest.raises(ValueError, match="other flows or schemes"):
        list(agreements(simulated, other))


def test_the_command_compares_a_kept_result_and_ends_with_1_where_it_differs(
    tmp_path: Path, simulated: dict[str, Any]
) -> None:
    kept = {name: deepcopy(value) for name, value in simulated.items() if name not in ("kind", "simulation")}
    (tmp_path / "result.json").write_text(json_text(kept), encoding="utf-8")
    arguments = ["agree", "--result", str(tmp_path), "--json", "-"]
    answer = CliRunner().invoke(capstan, arguments)
    assert answer.exit_code == 0, answer.output
    assert all(one["agrees"] for one in json.loads(answer.stdout)["agreements"])
    for name, value in (("afct_ms", 1.0), ("afct_ci_ms", [0.9, 1.1])):
        kept["schemes"]["rps"]["short"][name] = value
    (tmp_path / "result.json").write_text(json_text(kept), encoding="utf-8")
    answer = CliRunner().invoke(capstan, arguments)
    assert answer.exit_code == 1
    different = [one for one in json.loads(answer.stdout)["agreements"] if not one["agrees"]]
    assert [(one["scheme"], one["measure"]) for one in different] == [("rps", "mean time, short flows")]


def test_what_limited_or_disturbed_the_lab_is_shown_beside_its_figures(
    tmp_path: Path, simulated: dict[str, Any]
) -> None:
    kept = {name: deepcopy(value) for name, value in simulated.items() if name not in ("kind", "simulation")}
    kept["cpu_limited"] = kept["schemes"]["rps"]["cpu_limited"] = True
    (tmp_path / "result.json").write_text(json_text(kept), encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["agree", "--result", str(tmp_path)])
    assert "CPU LIMITED" in answer.stdout
    assert "rps*: goodput" in answer.stdout
    assert "ecmp: goodput" in answer.stdout
    answer = CliRunner().invoke(capstan, ["agree", "--result", str(tmp_path), "--json", "-"])
    marked = {one["scheme"]: one["cpu_limited"] for one in json.loads(answer.stdout)["agreements"]}
    assert marked == {"ecmp": False, "rps": True}


@pytest.mark.parametrize("option", [["--fit"], ["--scale", "0.5"], ["--repeats", "3"], ["--scheme", "caps"]])
def test_a_kept_result_is_not_changed(tmp_path: Path, option: list[str]) -> None:
    answer = CliRunner().invoke(capstan, ["agree", "--result", str(tmp_path), *option])
    assert answer.exit_code == 2
    assert "are options of SPEC" in answer.output


def test_links_like_the_labs_take_a_packets_own_time_from_its_flow(simulated: dict[str, Any]) -> None:
    spec = replace(load_spec("small", ("ecmp",)).spec, repeats=2)
    shaped = simulate_document(spec, shaped=True)[0]
    assert any("Links are shapers" in notice for notice in shaped["notices"])
    assert not any("Links are shapers" in notice for notice in simulated["notices"])
    assert not any("take no time" in notice for notice in shaped["notices"]), "hosts take some, too"
    of_shapers, of_wires = (of["schemes"]["ecmp"]["short"]["afct_ms"] for of in (shaped, simulated))
    assert of_shapers < of_wires


def test_a_simulation_is_not_compared_with_itself_by_accident(
    tmp_path: Path, simulated: dict[str, Any]
) -> None:
    (tmp_path / "result.json").write_text(json_text(simulated), encoding="utf-8")
    answer = CliRunner().invoke(capstan, ["agree", "--result", str(tmp_path)])
    assert answer.exit_code == 1
    assert "of a sweep or a simulation" in answer.output
