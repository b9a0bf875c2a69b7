"""How many packets TR reorders in presets, where paths differ in load, rate or delay: the bound of docs/paths.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cli.specs import load_spec
from experiments.spec.spec import Spec
from experiments.spec.sweep import points
from simulation.batch import prepare, simulate


def reordered(spec: Spec, seeds: range) -> float:
    """Return the share of all seeds' packets that came after a later one of their flow."""
    late, sent = 0, 0
    for seed in seeds:
        ((_, run),) = simulate([prepare(replace(spec, seed=seed, repeats=1))])
        late += sum(flow.reordered for flow in run.flows)
        sent += sum(flow.packets for flow in run.flows)
    return late / sent


def specs(name: str, scheme: str) -> list[Spec]:
    """Return the points of a preset under one scheme."""
    return [point.spec for point in points(load_spec(name, (scheme,)).spec)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seeds"), [("small", 20), ("tr-fig7-8", 20), ("tr-fig2-3", 3)])
def test_of_all_packets_at_most_one_in_a_thousand_is_late(name: str, seeds: int) -> None:
    for spec in specs(name, "tr"):
        share = reordered(spec, range(1, seeds + 1))
        assert share <= 0.001, f"{spec.title}: {share:.3%}"


def test_packets_that_are_sprayed_are_far_beyond_that_bound() -> None:
    for spec in [*specs("small", "rps"), *specs("tr-fig7-8", "rps")]:
        share = reordered(spec, range(1, 3))
        assert share > 0.2, f"{spec.title}: {share:.2%}"
