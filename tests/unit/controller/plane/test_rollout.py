"""Which switch is updated when: upper tiers first, failures at once, and a mode on its way keeps it settled."""

from __future__ import annotations

from controller.plane.in_flight import DATAPATH_LAG_S
from protocol.underlay import TrafficClass
from tests.unit.fabric_shapes import CAPS, datagram, leaf_spine
from tests.unit.simulated_fabric import Simulation


def running() -> Simulation:
    sim = Simulation(leaf_spine(2, 3, 1))
    sim.set_scheme(CAPS)
    sim.start()
    sim.run_until(sim.plane.ready, 5)
    sim.run(1)
    sim.updates.clear()
    return sim


def test_a_mode_on_its_way_leaves_the_fabric_ready() -> None:
    """Else a health check would find the fabric wanting whenever it falls into a change of mode."""
    sim = running()
    h1, h2 = sim.shape.hosts
    sim.apply_s[h1.place.dpid] = 0.05
    sim.send(datagram(h1, h2, TrafficClass.SHORT), h1)
    sim.run(0.01)
    assert [dpid for _, dpid, _ in sim.updates] == [h1.place.dpid]
    assert sim.plane.ready()
    assert sim.plane.snapshot().settled


def test_new_hosts_and_routes_are_not_settled_until_every_switch_forwards_by_them() -> None:
    sim = running()
    link = sim.shape.links[0]
    for dpid in (0x20001, 0x20002):
        sim.apply_s[dpid] = 0.1
    sim.cut(link)
    sim.run(0.01)
    reported = {dpid: at for at, dpid, _ in sim.updates}
    assert {0x10002, 0x20001} <= reported.keys(), "a failure is sent to all at once"
    assert len(set(reported.values())) == 1
    assert not sim.plane.ready()
    took = sim.run_until(sim.plane.ready, 1)
    assert 0.08 < took < 0.1 + 10 * DATAPATH_LAG_S
