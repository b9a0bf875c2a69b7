"""A simulated fabric that has started, for tests of the control plane."""

from __future__ import annotations

from tests.unit.fabric_shapes import CAPS, Shape, pairs
from tests.unit.simulated_fabric import Simulation


def running(shape: Shape, scheme: object = CAPS, *, agents: bool = True) -> Simulation:
    """Return a fabric that has started and come to rest."""
    sim = Simulation(shape, agents=agents)
    sim.set_scheme(scheme)  # type: ignore[arg-type]
    sim.start()
    sim.run_until(sim.plane.ready, 5)
    sim.run(1)
    sim.events.clear()
    sim.updates.clear()
    return sim


def all_deliver(sim: Simulation) -> bool:
    return all(sim.delivers(*pair) for pair in pairs(sim.shape))


def since(sim: Simulation, kind: type) -> list[object]:
    return [event for event in sim.events if isinstance(event, kind)]


def need(true: bool) -> None:
    assert true, "traffic was cut"
