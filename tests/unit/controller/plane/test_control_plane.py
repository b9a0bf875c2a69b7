"""The control plane over a simulated fabric: start, and failures of links and switches."""

from __future__ import annotations

import pytest

from controller.fabric.events import LinkDown, LinkUp
from controller.fabric.graph import PortRef
from controller.plane.effects import SwitchDown, SwitchUp
from protocol.underlay import TrafficClass
from tests.unit.controller.plane.started_fabric import all_deliver, need, running, since
from tests.unit.fabric_shapes import CAPS, Shape, datagram, fat_tree, leaf_spine
from tests.unit.simulated_fabric import Simulation


@pytest.mark.parametrize(
    "shape", [leaf_spine(2, 8, 2), leaf_spine(4, 4, 1), fat_tree(4, 1)], ids=["2x8", "4x4", "fat tree"]
)
def test_a_fabric_is_discovered_and_forwards_within_a_second(shape: Shape) -> None:
    sim = Simulation(shape)
    sim.set_scheme(CAPS)
    sim.start()
    forwards = sim.run_until(lambda: all_deliver(sim), 2)
    sim.run_until(sim.plane.ready, 2)
    assert forwards < 0.5
    assert sim.now - 1000 < 1.0
    snapshot = sim.plane.snapshot()
    assert len(snapshot.switches) == len(shape.ports)
    assert {(link.a, link.b) for link in snapshot.links if link.up} == set(shape.links)
    assert {(host.name, host.place) for host in snapshot.hosts} == {(h.name, h.place) for h in shape.hosts}
    assert {one.dpid: one.tier for one in snapshot.switches} == {d: (d >> 16) - 1 for d in shape.ports}
    assert {one.leaf for one in snapshot.modes} == set(shape.leaves)
    assert snapshot.settled
    assert snapshot.scheme == "caps"
    assert snapshot.switches[0].name == f"sw{snapshot.switches[0].dpid:x}"
    assert len({one.stamp for one in snapshot.switches}) == len(shape.ports)
    for dpid in shape.ports:
        assert sim.plane.wanted_state(dpid) == sim.fabric.switches[dpid].state


def test_a_fabric_at_rest_is_sent_nothing_and_asks_little() -> None:
    sim = running(leaf_spine(2, 4, 2))
    sim.frames.clear()
    sim.run(20)
    assert sim.updates == []
    assert sim.events == []
    assert len(sim.frames) <= 4 * 5  # LLDP on the hosts' ports, every five seconds


def test_switches_and_agents_may_come_in_any_order() -> None:
    sim = Simulation(leaf_spine(2, 2, 2))
    sim.join_agents()
    sim.run(3)
    for dpid in sorted(sim.shape.ports, reverse=True):
        sim.connect(dpid)
        sim.run(1.3)
    sim.run_until(sim.plane.ready, 3)
    assert all_deliver(sim)


def test_paths_between_hosts() -> None:
    sim = running(fat_tree(4, 1))
    near, far = sim.plane.paths("h1", "h2"), sim.plane.paths("h1", "10.0.8.1")
    assert [one.switches for one in near] == [(0x10001, 0x20001, 0x10002), (0x10001, 0x20002, 0x10002)]
    assert len(far) == 4
    traces = sim.fabric.traces(
        datagram(sim.shape.hosts[0], sim.shape.hosts[-1], TrafficClass.SHORT), sim.shape.hosts[0].place
    )
    assert {(trace.switches, trace.packet.udp_src) for trace in traces} == {
        (path.switches, path.stamp) for path in far
    }
    assert far[0].ports[-1] == sim.shape.hosts[-1].place.port
    assert sim.plane.paths("h1", "h1")[0].switches == (0x10001,)
    with pytest.raises(KeyError, match="'h99' is not known"):
        sim.plane.paths("h1", "h99")


def test_a_cut_link_is_routed_round_within_milliseconds_and_used_again_when_mended() -> None:
    sim = running(leaf_spine(3, 3, 1))
    gone = sim.shape.links[4]
    sim.cut(gone)
    assert [event.cause for event in since(sim, LinkDown)] == ["port down"]  # type: ignore[attr-defined]
    assert sim.run_until(lambda: all_deliver(sim), 1) < 0.01
    sim.run_until(sim.plane.ready, 0.01)
    sim.after_update = lambda: need(all_deliver(sim))
    sim.mend(gone)
    sim.run_until(lambda: bool(since(sim, LinkUp)), 1)
    sim.run(0.1)
    assert len(sim.plane.paths("h1", "h2")) == 3


def test_a_link_that_is_dark_in_one_direction_only_is_routed_round() -> None:
    sim = running(leaf_spine(2, 3, 1))
    end = sim.shape.links[1].b
    sim.lost_frames = lambda sender: sender == end
    sim.run_until(lambda: len(sim.plane.paths("h1", "h2")) == 2, 10)
    [down] = since(sim, LinkDown)
    assert down.cause == "no LLDP"  # type: ignore[attr-defined]


@pytest.mark.parametrize("shape", [leaf_spine(2, 3, 1), fat_tree(4, 1)], ids=["spine", "core"])
def test_a_killed_switch_is_avoided_and_gets_its_state_back_before_its_packets(shape: Shape) -> None:
    sim = running(shape)
    dead = max(shape.ports)
    paths = len(sim.plane.paths("h1", sim.shape.hosts[-1].name))
    sim.kill(dead)
    assert len(since(sim, SwitchDown)) == 1
    assert sim.run_until(lambda: all_deliver(sim), 1) < 0.01
    assert len(sim.plane.paths("h1", sim.shape.hosts[-1].name)) == paths - 1
    sim.run(20)
    sim.after_update = lambda: need(all_deliver(sim))
    sim.updates.clear()
    back = sim.now
    sim.apply_s[dead] = 0.3
    sim.connect(dead)
    sim.run(0.301)
    assert sim.fabric.switches[dead].state == sim.plane.wanted_state(dead)
    sim.run_until(lambda: len(sim.plane.paths("h1", sim.shape.hosts[-1].name)) == paths, 3)
    others = [at for at, dpid, _ in sim.updates if dpid != dead]
    assert 0.3 < min(others) - back < 0.32, "packets may come before its state is in place, or long after"
    [up] = since(sim, SwitchUp)
    assert not up.taken_over  # type: ignore[attr-defined]


def test_a_killed_leaf_gets_its_state_back() -> None:
    sim = running(leaf_spine(2, 3, 2))
    sim.kill(0x10001)
    sim.run(5)
    sim.connect(0x10001)
    assert all_deliver(sim)
    sim.run_until(sim.plane.ready, 1)
    assert all_deliver(sim)


def test_lost_connections_alone_cut_no_host_off() -> None:
    sim = running(leaf_spine(2, 2, 1))
    sim.after_update = lambda: need(all_deliver(sim))
    for dpid in sim.shape.ports:
        sim.disconnect(dpid)
        sim.run(2)
    assert all_deliver(sim)
    assert not sim.plane.ready()
    for dpid in sim.shape.ports:
        sim.connect(dpid)
        sim.run(0.3)
    sim.run_until(sim.plane.ready, 2)
    assert {up.taken_over for up in since(sim, SwitchUp)} == {True}  # type: ignore[attr-defined]


def test_the_last_spine_that_reaches_a_leaf_dies() -> None:
    sim = running(leaf_spine(2, 1, 2))
    sim.cut(sim.shape.links[0])
    sim.run(0.1)
    h1, h2, h3, _ = sim.shape.hosts
    assert sim.delivers(h1, h2)
    assert not sim.delivers(h1, h3)
    assert sim.plane.paths("h1", "h3") == ()


def test_a_switch_that_connects_again_without_having_left_is_synchronised() -> None:
    sim = running(leaf_spine(2, 2, 1))
    sim.connect(0x20001)
    sim.run_until(sim.plane.ready, 1)
    assert all_deliver(sim)
    assert PortRef(0x20001, 1) not in [ref for link in sim.shape.links for ref in link if ref.dpid == 0x10001]
