"""How large a submission may be: found before anything is laid out, and tried out where it takes no thread's time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import capstan_native
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api import exporting
from controller.api.exporting import LimitError, printed
from controller.api.problems import ProblemError
from controller.schemes.loader import scheme_names
from engine import simulated_check
from engine.simulated_check import tried_aside, tried_here
from engine.size_budget import MOST_LINKS, MOST_POINT_LINKS, MOST_SCHEME_LINKS, SizeBudget
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody, SubmissionError
from experiments.spec.check import find_spec, preset_names
from experiments.spec.fabric_links import links_of
from experiments.spec.spec import Spec, spec_from_dict
from plain.yaml_source import read
from tests.unit.api_world import BASE, api_world
from topologies.fabric_spec import FabricSpec

HUGE = {"fabric.leaves": 200, "fabric.spines": 255, "fabric.hosts_per_leaf": 50}
TREE_OF_1024 = {"topology": "fat-tree", "k": 16}
PAPERS_144 = {"leaves": 9, "spines": 16, "hosts_per_leaf": 16}


def never(spec: Spec, scheme_links: int) -> str:
    raise AssertionError("nothing is laid out that is too large")


def refused(**body: Any) -> str:
    with pytest.raises(SubmissionError) as caught:
        read_submission(SubmissionBody(preset="small", **body), never)
    (problem,) = caught.value.problems
    return problem.message


def seeds(number: int) -> dict[str, Any]:
    return {"seed": list(range(1, number + 1))}


@pytest.mark.parametrize("kind", ["simulation", "experiment"])
@pytest.mark.parametrize("sweep", [None, seeds(20)])
def test_a_huge_fabric_is_refused_before_it_is_laid_out(kind: str, sweep: Any) -> None:
    """It took 197 s and 3.9 GB, in which no other thread ran for 27 s; with a link taken down and points, minutes."""
    down = {"fabric.down": ["l1-s1"]}
    refused(kind=kind, set=HUGE | down, sweep=sweep)  # all that is imported is
    before = time.thread_time()
    said = refused(kind=kind, set=HUGE | down, sweep=sweep)
    assert time.thread_time() - before < 0.1 * (1 if sweep is None else 2)
    assert f"{200 * (255 + 50)} links" in said
    assert str(MOST_LINKS) in said
    assert "take fewer" in said


def test_points_and_schemes_count() -> None:
    links = 100 * (80 + 10)
    fabric = {"fabric.leaves": 100, "fabric.spines": 80, "fabric.hosts_per_leaf": 10}
    assert links < MOST_LINKS
    said = refused(set=fabric, sweep=seeds(20))
    assert f"{20 * links} links together" in said
    assert str(MOST_POINT_LINKS) in said
    said = refused(set=fabric, schemes=["all"], kind="simulation")
    assert f"{links * len(scheme_names())}" in said
    assert str(MOST_SCHEME_LINKS) in said


def test_each_point_counts_with_its_own_fabric() -> None:
    said = refused(set={"fabric.leaves": 100}, sweep={"fabric.spines": [2, 255]})
    assert f"{100 * (255 + 2)} links" in said


@given(
    st.fixed_dictionaries(
        {"topology": st.just("leaf-spine")},
        optional={
            "leaves": st.integers(1, 9),
            "spines": st.integers(1, 9),
            "hosts_per_leaf": st.none() | st.integers(1, 5),
        },
    )
    | st.fixed_dictionaries(
        {"topology": st.just("fat-tree")},
        optional={"k": st.sampled_from([2, 4, 6, 8]), "hosts_per_leaf": st.none() | st.integers(1, 5)},
    )
)
def test_links_are_counted_as_the_layout_makes_them(fabric: dict[str, Any]) -> None:
    assert links_of(fabric) == len(FabricSpec.from_dict(fabric).link_names())


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_whatever_a_fabric_is_it_is_counted(value: Any) -> None:
    for fabric in (value, {"leaves": value, "spines": 2}, {"topology": value, "k": 4}):
        links_of(fabric)
        size = SizeBudget(40, True)
        size.add({"fabric": fabric, "schemes": value})
        assert not size.problem()


@pytest.mark.parametrize(
    ("fabric", "schemes", "points"),
    [
        (TREE_OF_1024, ["all"], 1),
        (TREE_OF_1024, ["ecmp"] * 4, 10),
        (PAPERS_144, ["all"], 10),
        (PAPERS_144, ["ecmp"], 200),
        ({"topology": "fat-tree", "k": 22}, ["ecmp"] * 5, 2),
    ],
)
def test_what_papers_and_documents_have_is_within(fabric: Any, schemes: list[str], points: int) -> None:
    size = SizeBudget(len(scheme_names()), True)
    for _ in range(points):
        size.add({"fabric": fabric, "schemes": schemes})
    assert size.problem() == ""


@pytest.mark.parametrize("name", preset_names())
def test_presets_with_all_schemes_are_within(name: str) -> None:
    data = read(find_spec(name).read_text(), name).data
    size = SizeBudget(len(scheme_names()), True)
    size.add(data | {"schemes": ["all"]})
    assert size.problem() == ""


@pytest.mark.slow
def test_another_process_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_check, "MOST_HERE", 0)
    data = read(find_spec("small").read_text(), "small").data
    for change in ({}, {"topology": "fat-tree", "hosts_per_leaf": 1}):
        spec = spec_from_dict(data | {"fabric": data["fabric"] | change})
        said = tried_aside(spec, 1)
        assert said == tried_here(spec, 1)
        assert bool(said) == bool(change)


def test_what_needs_too_much_is_a_problem_of_the_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_check, "MOST_HERE", 0)

    def beyond(what: str, made: str, *given: Any) -> bytes:
        raise LimitError(what, made)

    monkeypatch.setattr(simulated_check, "printed", beyond)
    with pytest.raises(SubmissionError, match=r"MiB of memory .* take fewer schemes"):
        read_submission(SubmissionBody(preset="small", kind="simulation"), tried_aside)


def test_the_api_refuses_it(tmp_path: Path) -> None:
    body = {"preset": "small", "kind": "simulation", "set": HUGE}
    with api_world(tmp_path) as world:
        checked = world.ask("POST", "/experiments/check", json=body)
        assert not checked["ok"]
        assert "links" in checked["problems"][0]["message"]
        assert world.client.post(f"{BASE}/experiments", json=body).status_code == 422


def test_other_threads_go_on_while_a_fabric_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the time within the compiled part counts: Python's own lets others go on by itself."""
    ticks, ended = [0], threading.Event()

    def tick() -> None:
        while not ended.wait(0.001):
            ticks[0] += 1

    made = capstan_native.Simulation
    during: list[tuple[float, int]] = []

    def watched(*given: Any, **named: Any) -> Any:
        before, begun = ticks[0], time.perf_counter()
        simulation = made(*given, **named)
        during.append((time.perf_counter() - begun, ticks[0] - before))
        return simulation

    monkeypatch.setattr(capstan_native, "Simulation", watched)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        fabric = {"fabric.leaves": 95, "fabric.spines": 95, "fabric.hosts_per_leaf": 2}
        read_submission(SubmissionBody(preset="small", schemes=["ecmp"], set=fabric, kind="simulation"))
    finally:
        ended.set()
        thread.join()
    ((seconds, went_on),) = during
    assert seconds > 0.01, "or there is nothing to see: ten ticks"
    assert went_on >= 3


@pytest.mark.slow
def test_processes_that_draw_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "much.py").write_text("kept = bytearray(1 << 40)")
    (tmp_path / "endless.py").write_text("while True: pass")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(LimitError):
        printed("a figure", "drawn", ("much",), ())
    monkeypatch.setattr(exporting, "WITHIN", ("controller.process.limited", "2048", "1"))
    with pytest.raises(LimitError):
        printed("a figure", "drawn", ("endless",), ())


def test_a_process_that_does_not_read_holds_its_thread_no_longer_than_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deaf.py").write_text("import time\ntime.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(exporting, "DRAW_S", 0.5)
    begun = time.monotonic()
    with pytest.raises(ProblemError, match=r"within 0\.5 s"):
        printed("a figure", "drawn", ("deaf",), [b"x" * 1000] * 1000)
    assert time.monotonic() - begun < 30
