"""How many packets TR reorders in simulated presets: the bounds of docs/paths.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cli.specs import load_spec
from experiments.spec.spec import Spec
from experiments.spec.sweep import points
from simulation.batch import prepare, simulate

SEEDS = 20


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
@pytest.mark.parametrize("name", ["small", "tr-fig7-8"])
def test_of_all_packets_at_most_one_in_two_hundred_is_late_where_paths_differ_in_load_or_rate(
    name: str,
) -> None:
    for spec in specs(name, "tr"):
        share = reordered(spec, range(1, SEEDS + 1))
        assert share <= 0.005, f"{spec.title}: {share:.2%}"


@pytest.mark.slow
def test_where_delays_differ_at_most_one_packet_in_fifty_is_late() -> None:
    for spec in specs("tr-fig2-3", "tr"):
        share = reordered(spec, range(3, 4))  # the one of the first five seeds with most
        assert share <= 0.02, f"{spec.title}: {share:.2%}"


def test_packets_that_are_sprayed_are_far_beyond_that_bound() -> None:
    for spec in [*specs("small", "rps"), *specs("tr-fig7-8", "rps")]:
        share = reordered(spec, range(1, 3))
        assert share > 0.2, f"{spec.title}: {share:.2%}"
