"""Congestion marks of switches reach agents' path policies and estimators, by the outer header and peers' feedback."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from cli.specs import load_spec
from experiments.spec.simulated import Simulation
from experiments.spec.spec import SchemeChoice
from simulation.experiment import simulate_document
from simulation.fabrics import SettingsError

ONLY_MARKS = {
    "congested_packet_times": 100_000,  # no delay counts
    "rounds": 1,
    "idle_rounds": 1,
    "congested_share": 0.05,
}


def most_paths(mark_from_packets: int) -> int:
    """Return the most paths that a flow used under PLB, whose hosts speak DCTCP."""
    overrides = {of_class: {"path": ONLY_MARKS} for of_class in ("short", "long", "control")}
    spec = replace(
        load_spec("small", ("plb",)).spec,
        schemes=(SchemeChoice("plb", "plb", overrides),),
        simulation=Simulation(congestion_control="dctcp", mark_from_packets=mark_from_packets),
    )
    _, (run,) = simulate_document(spec)
    return max(len(flow.paths) for flow in run.flows)


def test_plb_leaves_a_path_whose_ports_mark_and_stays_where_none_does() -> None:
    assert most_paths(0) == 1
    assert most_paths(5) > 1


def repairs_per_packet(estimator: str, simulation: Simulation) -> float:
    """Return how many repairs there were for a packet of a host under CAPS with that estimator."""
    scheme = SchemeChoice("caps", "caps", {"short.coding.estimator": estimator})
    spec = replace(load_spec("small", ("caps",)).spec, schemes=(scheme,), simulation=simulation)
    _, runs = simulate_document(replace(spec, repeats=5))
    flows = [flow for run in runs for flow in run.flows]
    return sum(flow.repairs for flow in flows) / sum(flow.packets for flow in flows)


def marking_from(packets: int) -> Simulation:
    """Return hosts with DCTCP, whose ports mark from so many waiting packets on."""
    return Simulation(congestion_control="dctcp", mark_from_packets=packets)


def test_the_estimator_by_marks_asks_for_more_repairs_the_more_ports_mark() -> None:
    by_marks = [repairs_per_packet("marks", marking_from(packets)) for packets in (40, 20, 3)]
    assert all(more > fewer > 0 for fewer, more in pairwise(by_marks)), by_marks
    assert by_marks[-1] > 1.4 * by_marks[0], by_marks
    for packets, of_marks in zip((40, 3), by_marks[::2], strict=True):
        assert of_marks > repairs_per_packet("loss-rate", marking_from(packets)), "losses say less"


@pytest.mark.parametrize(
    ("simulation", "words"),
    [
        (marking_from(0), "mark_from_packets: .* ports mark nothing.* give 1 or more"),
        (Simulation(mark_from_packets=20), "congestion_control: .* cannot be marked.* give dctcp"),
        (Simulation(), "congestion_control: .* cannot be marked.* give dctcp"),
    ],
)
def test_where_nothing_is_marked_the_estimator_by_marks_is_refused(
    simulation: Simulation, words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        repairs_per_packet("marks", simulation)
