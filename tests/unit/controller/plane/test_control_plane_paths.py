"""Which paths the control plane says there are, while links and switches come and go; labels all the while."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plane.effects import PathsChanged, StateSent
from protocol.underlay import TrafficClass, label_of
from tests.unit.fabric_shapes import CAPS, LABELS, RPS, Shape, datagram, fat_tree, leaf_spine, pairs, stamp_of
from tests.unit.simulated_fabric import Simulation

Reported = dict[int, Mapping[int, tuple[int, ...]]]


def reported(sim: Simulation) -> Reported:
    """Return the paths that agents know by now."""
    return {event.leaf: event.paths for event in sim.events if isinstance(event, PathsChanged)}


def running(shape: Shape, scheme: object = LABELS) -> Simulation:
    sim = Simulation(shape)
    sim.set_scheme(scheme)  # type: ignore[arg-type]
    sim.start()
    sim.run_until(sim.plane.ready, 5)
    sim.run(1)
    return sim


def named_paths_hold(sim: Simulation, lost: int = 0) -> None:
    """Assert that agents know what there is, and that each path that they may name is the one that is taken.

    lost: a switch that forwards nothing; who can only be reached through it is not asked for.
    """
    known = reported(sim)
    for one, other in pairs(sim.shape):
        if one.place.dpid == other.place.dpid:
            continue
        paths = sim.plane.paths(one.ipv4, other.ipv4)
        if any(lost in path.switches for path in paths):
            continue
        ways = {path.stamp for path in paths}
        assert known[one.place.dpid][other.place.dpid] == tuple(sorted(ways))
        for stamp in ways:
            packet = datagram(one, other, TrafficClass.LONG, label_of(stamp))
            traces = sim.fabric.traces(packet, one.place)
            assert {trace.packet.udp_src for trace in traces} == {stamp}
            assert {trace.place for trace in traces} == {other.place}


@pytest.mark.parametrize("scheme", [LABELS, RPS, CAPS], ids=lambda scheme: scheme.name)
def test_paths_are_sent_under_every_scheme(scheme: object) -> None:
    sim = running(leaf_spine(3, 3, 1), scheme)
    stamps = tuple(stamp_of(sim.shape, 0x20000 + spine) for spine in (1, 2, 3))
    leaves = sorted(sim.shape.leaves)
    assert reported(sim) == {leaf: dict.fromkeys(sorted({*leaves} - {leaf}), stamps) for leaf in leaves}


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.sampled_from(["leaf-spine", "fat-tree"]), st.data())
def test_labels_hold_through_failures_and_recoveries(kind: str, data: st.DataObject) -> None:
    sim = running(leaf_spine(3, 3, 1) if kind == "leaf-spine" else fat_tree(4, 1))
    named_paths_hold(sim)
    link = data.draw(st.sampled_from(sim.shape.links))
    sim.cut(link)
    sim.run(0.1)
    named_paths_hold(sim)
    spine = data.draw(
        st.sampled_from(sorted(sim.shape.ports.keys() - sim.shape.leaves - {end.dpid for end in link}))
    )
    sim.kill(spine)
    sim.run(0.1)
    named_paths_hold(sim, lost=spine)
    sim.connect(spine)
    sim.run(1)
    named_paths_hold(sim)
    sim.mend(link)
    sim.run(1)
    named_paths_hold(sim)
    assert all(sim.delivers(*pair) for pair in pairs(sim.shape))


def test_only_leaves_whose_paths_changed_are_informed_and_only_once() -> None:
    sim = running(fat_tree(4, 1))
    sim.events.clear()
    core = next(link for link in sim.shape.links if link.b.dpid >> 16 == 3)
    sim.cut(core)
    sim.run(0.5)
    changes = [event for event in sim.events if isinstance(event, PathsChanged)]
    assert len(changes) == len({event.leaf for event in changes}) == len(sim.shape.leaves)
    leaf = next(link for link in sim.shape.links if link.a.dpid == 0x10001)
    sim.mend(core)
    sim.run(0.5)
    sim.events.clear()
    sim.set_scheme(RPS)
    sim.join(sim.shape.hosts[0])
    sim.run(0.5)
    assert reported(sim) == {}
    sim.cut(leaf)
    sim.run(0.5)
    assert 0x10001 in reported(sim)


def test_a_controller_that_starts_over_a_running_fabric_withdraws_no_path() -> None:
    """While it finds link after link, agents go on with the paths that they know."""
    sim = running(leaf_spine(2, 4, 1))
    before = reported(sim)
    sim.restart_controller()
    sim.set_scheme(LABELS)
    sim.events.clear()
    for dpid in sorted(sim.shape.ports, reverse=True):
        sim.connect(dpid)
        sim.run(0.2)
    sim.join_agents()
    sim.run_until(sim.plane.ready, 20)
    sim.run(1)
    assert {event.dpid for event in sim.events if isinstance(event, StateSent)} == sim.shape.ports.keys()
    changes = [event for event in sim.events if isinstance(event, PathsChanged)]
    assert {event.leaf: event.paths for event in changes} == before
    assert len(changes) == len(before)
