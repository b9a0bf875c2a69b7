"""Congestion marks of switches reach the path policies of agents, by the outer header and the peer's feedback."""

from __future__ import annotations

from dataclasses import replace

from cli.specs import load_spec
from experiments.spec.simulated import Simulation
from experiments.spec.spec import SchemeChoice
from simulation.experiment import simulate_document

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
