"""A controller that starts over a running fabric: no packet is lost, whichever connects when."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.fabric.discovery import QUIET_S
from controller.fabric.events import HostSeen
from controller.fabric.switch_data import Held
from controller.plane.effects import StateSent
from controller.plane.takeover import TAKEOVER_LIMIT_S
from protocol.underlay import TrafficClass
from tests.unit.fabric_shapes import CAPS, Shape, SimHost, fat_tree, leaf_spine, pairs
from tests.unit.simulated_fabric import Simulation

PLAIN = frozenset({"h1", "h4"})


def running(shape: Shape) -> Simulation:
    """Return a fabric at rest whose hosts h1 and h4 have no agent."""
    sim = Simulation(shape, agents=False)
    sim.set_scheme(CAPS)
    sim.start()
    for host in shape.hosts:
        if host.name in PLAIN:
            sim.arp(host, host.ipv4)
        else:
            sim.join(host)
    sim.run_until(sim.plane.ready, 3)
    sim.run(1)
    assert works(sim)
    return sim


def works(sim: Simulation, about: SimHost | None = None) -> bool:
    """Return True if all pairs of hosts, or all pairs with *about*, reach each other."""
    return all(
        sim.delivers(one, other, kind)
        for one, other in pairs(sim.shape)
        if about is None or about in (one, other)
        for kind in ((TrafficClass.LONG,) if other.name not in PLAIN else (TrafficClass.NONE,))
    )


def check(sim: Simulation) -> None:
    """Check one host's traffic at a time, every host's in turn: each check is after each switch's update."""
    about = sim.shape.hosts[len(sim.updates) % len(sim.shape.hosts)]
    assert works(sim, about), "traffic was cut during the take-over"


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(["leaf-spine", "fat-tree"]),
    st.randoms(use_true_random=False),
    st.sampled_from([0.0, 0.05, 0.7]),
    st.sampled_from([0.0, 0.5, 4.0]),
)
def test_nothing_is_lost_whatever_the_order_and_pace(
    kind: str, rng: object, pace: float, agents_after: float
) -> None:
    sim = running(leaf_spine(3, 2, 2) if kind == "leaf-spine" else fat_tree(4, 1))
    states = {dpid: switch.state for dpid, switch in sim.fabric.switches.items()}
    sim.restart_controller()
    sim.after_update = lambda: check(sim)
    sim.set_scheme(CAPS)
    order = list(sim.shape.ports)
    rng.shuffle(order)  # type: ignore[attr-defined]
    sim.events.clear()
    for dpid in order:
        sim.connect(dpid)
        sim.run(pace)
    sim.run(agents_after)
    for host in sim.shape.hosts:
        if host.name not in PLAIN:
            sim.join(host)
    sim.run_until(sim.plane.ready, 20)
    sim.run(1)
    assert works(sim)
    sent = [event.dpid for event in sim.events if isinstance(event, StateSent)]
    assert sorted(sent) == sorted(order)
    for dpid, state in states.items():
        assert sim.fabric.switches[dpid].state == state


def restarted_without(late: int, shape: Shape) -> Simulation:
    """Return a running fabric with a new controller, which all switches but *late* have called."""
    sim = running(shape)
    sim.restart_controller()
    sim.set_scheme(CAPS)
    sim.after_update = lambda: check(sim)
    for dpid in shape.ports.keys() - {late}:
        sim.connect(dpid)
    return sim


def test_a_switch_that_takes_long_to_come_back_is_waited_for() -> None:
    """Its hosts are known to the others only as addresses: no state is replaced before it is there."""
    late = 0x10003
    sim = restarted_without(late, leaf_spine(3, 2, 1))
    sim.run(8)
    assert not sim.plane.ready()
    sim.connect(late)
    sim.run_until(sim.plane.ready, 1.5)


def test_a_host_is_not_learnt_where_its_late_leaf_answers_for_it() -> None:
    """The controller looks for the hosts of agents by links that it has not found yet, for their leaf is late."""
    late = 0x10002
    sim = restarted_without(late, leaf_spine(2, 3, 1))
    for host in sim.shape.hosts:
        sim.join(host)
    sim.run(8)
    assert not sim.plane.ready()
    sim.connect(late)
    sim.run_until(sim.plane.ready, 1.5)


def test_a_switch_that_never_comes_back_is_given_up() -> None:
    sim = running(leaf_spine(3, 2, 1))
    sim.restart_controller()
    sim.set_scheme(CAPS)
    for dpid in sim.shape.ports.keys() - {0x10003}:
        sim.connect(dpid)
    took = sim.run_until(sim.plane.ready, 20)
    # then its last ports listen for other switches
    assert TAKEOVER_LIMIT_S - 0.5 <= took <= TAKEOVER_LIMIT_S + 0.5 + QUIET_S
    h1, h2, _ = sim.shape.hosts
    assert sim.delivers(h2, h1, TrafficClass.NONE)


def test_a_switch_without_hosts_in_its_state_is_not_waited_for() -> None:
    sim = Simulation(leaf_spine(2, 2, 1))
    effects = sim.plane.switch_connected(0x20001, sim.ports(0x20001), Held(), sim.now)
    assert effects.resync == {0x20001}


def test_hosts_that_switches_held_are_seen() -> None:
    """Agents learn by it at which leaf each host is, and with that their paths. Found by seed 1 of the world."""
    sim = running(leaf_spine(2, 2, 1))
    sim.restart_controller()
    sim.set_scheme(CAPS)
    sim.events.clear()
    for dpid in sim.shape.ports:
        sim.connect(dpid)
    seen = {(event.ipv4, event.place) for event in sim.events if isinstance(event, HostSeen)}
    assert seen == {(host.ipv4, host.place) for host in sim.shape.hosts}


def test_a_link_that_failed_while_the_controller_was_away_is_routed_round() -> None:
    sim = running(leaf_spine(2, 3, 2))
    sim.restart_controller()
    gone = sim.shape.links[0]
    sim.fabric.cut(gone)
    sim.set_scheme(CAPS)
    sim.start()
    sim.join_agents()
    sim.run_until(sim.plane.ready, 3)
    assert len(sim.plane.paths("10.0.1.1", "10.0.2.1")) == 2
    assert all(sim.delivers(one, other) for one, other in pairs(sim.shape))


def test_a_switch_that_was_emptied_while_the_controller_was_away_is_filled_at_once() -> None:
    sim = running(leaf_spine(2, 2, 2))
    sim.restart_controller()
    sim.fabric.switches[0x20002].state = dataclasses.replace(
        sim.fabric.switches[0x20002].state, flows={}, groups={}, meters={}
    )
    sim.set_scheme(CAPS)
    sim.start()
    sim.run_until(sim.plane.ready, 3)
    assert works(sim)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_in_a_half_known_fat_tree_no_leaf_is_taken_for_a_way_between_others(seed: int) -> None:
    """The other leaf's old state does not carry packets that are not its own."""
    sim = running(fat_tree(4, 1))
    sim.restart_controller()
    sim.set_scheme(CAPS)
    sim.after_update = lambda: check(sim)
    upper = sorted(sim.shape.ports.keys() - sim.shape.leaves)
    random.Random(seed).shuffle(upper)
    for dpid in (*sorted(sim.shape.leaves), *upper):
        sim.connect(dpid)
        sim.run(0.3)
    sim.run_until(sim.plane.ready, 20)
    assert works(sim)
