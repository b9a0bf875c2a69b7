"""A path policy of one's own in simulation: it decides every packet's path, and what is wrong with it is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.app import capstan
from cli.specs import load_spec, need_path_policy
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.spec.spec import Axis, SchemeChoice, Spec
from host_agent.paths.own import read_path_policy
from simulation.batch import prepare, simulate
from simulation.fabrics import SettingsError

LAB = Path("docs/labs/2-path-policy")
SOLUTION = Path("docs/labs/solutions/2-path-policy.py")
POLICY = """\
from host_agent.paths.base import PathPolicy, flow_entropy

class Mine(PathPolicy):
    def __init__(self, rng, packet_time_s):
        self.rng, self.asked = rng, 0

    def entropy(self, flow, route, size, now):
        self.asked += 1
        return {chosen}
"""


def policy(directory: Path, chosen: str) -> Path:
    file = directory / "mine.py"
    file.write_text(POLICY.replace("{chosen}", chosen), encoding="utf-8")
    return file


def lab(count: int = 10) -> Spec:
    spec = load_spec(str(LAB / "lab2.yaml")).spec
    flows = replace(spec.workload.flows, count=count)
    mine = SchemeChoice(str(LAB / "mine.yaml"), "mine")
    workload = replace(spec.workload, flows=flows)
    return replace(spec, schemes=(mine,), baseline="mine", workload=workload, repeats=1)


def flows_of(file: Path, spec: Spec) -> list[tuple[float | None, dict[str, int]]]:
    """Return time and paths of each flow under the policy of a file."""
    ((_, run),) = simulate([prepare(spec, own_paths=read_path_policy(file))])
    return [(flow.fct_s, dict(flow.paths)) for flow in run.flows]


def test_every_packet_takes_the_path_that_the_file_says(tmp_path: Path) -> None:
    one = flows_of(policy(tmp_path, "route.labels[3]"), lab())
    assert {tuple(paths) for _, paths in one} == {("4",)}
    turn = flows_of(policy(tmp_path, "route.labels[self.asked % len(route.labels)]"), lab())
    long = [paths for fct_s, paths in turn if fct_s is None]
    assert len(long) == 4
    for paths in long:
        assert len(paths) == 8
        assert max(paths.values()) < 1.2 * min(paths.values())
    hashed = flows_of(LAB / "start.py", lab())
    assert all(len(paths) == 1 for _, paths in hashed)
    assert len({tuple(paths) for _, paths in hashed}) > 1


def test_the_same_seed_gives_the_same_run_and_another_another(tmp_path: Path) -> None:
    file = policy(tmp_path, "route.labels[self.rng.integers(len(route.labels))]")
    first = flows_of(file, lab())
    assert flows_of(file, lab()) == first
    assert flows_of(file, replace(lab(), seed=2)) != first


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("1 // 0", r"mine\.py, line 9: ZeroDivisionError"),
        ("80", r"entropy\(\) gave 80, which is neither one of route\.labels nor an entropy value"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(tmp_path: Path, chosen: str, words: str) -> None:
    with pytest.raises(SettingsError, match=rf"scheme mine, repeat 1: .*{words}"):
        flows_of(policy(tmp_path, chosen), lab())


def test_without_a_file_it_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"scheme mine: .*--path-policy FILE"):
        prepare(lab())
    answer = CliRunner().invoke(capstan, ["simulate", str(LAB / "lab2.yaml"), "--results", str(tmp_path)])
    assert answer.exit_code == 2
    assert "--path-policy FILE" in answer.stderr
    body = SubmissionBody(
        preset="small", schemes=["ecmp"], kind="simulation", set={"policy": {"long": {"entropy": "file"}}}
    )
    with pytest.raises(SubmissionError, match="--path-policy FILE"):
        read_submission(body)


@pytest.mark.parametrize(
    "change",
    [
        {"policy": {"long.entropy": "file"}},
        {"schemes": (SchemeChoice("ecmp", "ecmp", {"long.entropy": "file"}),)},
        {"sweep": (Axis("paths", ("policy.long.entropy",), ("file",)),)},
    ],
    ids=["of all schemes", "of one", "at a point of a sweep"],
)
def test_a_file_is_asked_for_by_what_an_experiment_makes_of_its_schemes(change: dict[str, Any]) -> None:
    spec = load_spec("small", ("ecmp",)).spec
    need_path_policy(spec, None)
    with pytest.raises(SystemExit) as ended:
        need_path_policy(replace(spec, **change), None)
    assert ended.value.code == 2


def test_show_names_the_command_that_takes_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.commands.show.need_lab", lambda _command: None)
    answer = CliRunner().invoke(capstan, ["show", str(LAB / "lab2.yaml")])
    assert answer.exit_code == 2
    assert "`show` takes none: use ./capstan run SPEC --path-policy FILE" in answer.stderr


def test_schemes_without_the_file_are_as_they_are_without_it() -> None:
    both = prepare(load_spec("small", ("rps",)).spec, own_paths=read_path_policy(SOLUTION))
    alone = prepare(load_spec("small", ("rps",)).spec)
    assert [run.flows for _, run in simulate([both])] == [run.flows for _, run in simulate([alone])]


@pytest.mark.slow
def test_lab_2_can_be_tried_without_switches(tmp_path: Path) -> None:
    """Its page: the solution's long flows get 1.2 to 1.9 times as much as ECMP's, in this run 1.5 times."""
    out = tmp_path / "out.json"
    arguments = ["simulate", str(LAB / "lab2.yaml"), "--path-policy", str(SOLUTION), "--json", str(out)]
    answer = CliRunner().invoke(capstan, [*arguments, "--results", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    schemes = json.loads(out.read_text())["schemes"]
    assert schemes["mine"]["long"]["goodput_mbps"] > 1.2 * schemes["ecmp"]["long"]["goodput_mbps"]
    assert schemes["mine"]["paths"]["long"]["paths_per_flow"] == 8
