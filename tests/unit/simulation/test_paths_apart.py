"""Long flows on paths of their own: what a simulation finds, hash by hash, and what cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cli.specs import load_spec
from experiments.spec.simulated import Simulation, lab_problem
from experiments.spec.spec import SchemeChoice, Spec
from simulation.batch import prepare, simulate
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError
from simulation.paths_apart import with_paths_apart
from workloads.description import LongFlows
from workloads.plan import Plan, PlannedFlow

SEEDS = range(1, 9)


def spec(seed: int, *, apart: bool, number: int = 4) -> Spec:
    """Return long flows alone on the four paths of `small`, hashed."""
    made = load_spec("small", ("ecmp",)).spec
    flows = replace(made.workload.flows, count=3)
    return replace(
        made,
        schemes=(SchemeChoice("ecmp", "ecmp"),),
        baseline="ecmp",
        workload=replace(made.workload, flows=flows, long_flows=LongFlows(number)),
        simulation=Simulation(long_paths_apart=apart or None),
        repeats=2,
        seed=seed,
    )


def paths_of_long_flows(of: Spec) -> list[Counter[str]]:
    """Return how many long flows each path carries, of every run."""
    return [
        Counter(path for flow in run.flows if flow.state == "background" for path in flow.paths)
        for _, run in simulate([prepare(of)])
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_four_long_flows_fill_four_paths(seed: int) -> None:
    assert [set(paths.values()) for paths in paths_of_long_flows(spec(seed, apart=True))] == [{1}] * 2


def test_planned_ports_let_some_collide() -> None:
    """Four hashes among four paths are apart in 4! / 4^4 = 9 % of runs."""
    runs = [paths for seed in SEEDS for paths in paths_of_long_flows(spec(seed, apart=False))]
    assert sum(len(paths) < 4 for paths in runs) > len(runs) / 2


def test_every_scheme_gets_the_same_flows() -> None:
    both = replace(
        spec(1, apart=True), schemes=(SchemeChoice("ecmp", "ecmp"), SchemeChoice("caps", "caps")), repeats=1
    )
    runs = [run for _, run in simulate([prepare(both)])]
    assert len({run.plan for run in runs}) == 1
    assert len({tuple((flow.id, flow.source_port) for flow in run.flows) for run in runs}) == 1


def test_a_run_that_is_kept_already_is_of_the_same_flows() -> None:
    """A kept run has the plan's digest, as it was before paths were drawn apart."""
    both = replace(
        spec(1, apart=True), schemes=(SchemeChoice("ecmp", "ecmp"), SchemeChoice("caps", "caps")), repeats=1
    )
    planned = both.plan(0)
    _, (first, second) = simulate_document(both)
    assert [flow.source_port for flow in first.flows] != [flow.source_port for flow in planned.flows]
    kept = replace(first, plan=planned.digest())
    document, runs = simulate_document(both, finished=[kept])
    assert runs == [kept, second]
    assert set(document["schemes"]) == {"ecmp", "caps"}


def test_more_long_flows_than_paths_are_refused_before_a_run() -> None:
    with pytest.raises(SettingsError, match="5 long flows cannot have paths of their own among 4"):
        prepare(spec(1, apart=True, number=5))


def test_a_lab_refuses_it() -> None:
    assert lab_problem(Simulation(long_paths_apart=True)) is not None


def plan(ports: Sequence[int]) -> Plan:
    flows = (PlannedFlow(row, "h1", "h2", port, 0.0, None, "long") for row, port in enumerate(ports))
    return Plan(tuple(flows), (0.0, 1.0))


def test_ports_that_are_apart_stay_and_others_are_of_no_other_flow() -> None:
    def hashed(candidates: Plan) -> list[int | None]:
        return [flow.source_port % 3 for flow in candidates.flows]

    ports = [flow.source_port for flow in with_paths_apart(plan([10_002, 10_005, 10_001]), 3, hashed).flows]
    assert ports[0] == 10_002
    assert sorted(port % 3 for port in ports) == [0, 1, 2]
    assert len(set(ports)) == 3


def test_flows_without_a_choice_of_path_are_refused() -> None:
    with pytest.raises(SettingsError, match="a path of its own"):
        with_paths_apart(plan([10_000]), 3, lambda candidates: [None] * len(candidates.flows))
