"""Switches that are gone for good are forgotten, and no number of them keeps a real one out."""

from __future__ import annotations

import pytest

from controller import control_plane
from controller.fabric.numbers import NumbersExhaustedError, SwitchNumbers
from controller.plane.effects import SwitchForgotten, SwitchTurnedAway
from controller.plane.forgetting import FORGET_AFTER_S, LOOK_EVERY_S, MOST_SWITCHES
from controller.plane.naming import FabricNames
from protocol.underlay import TrafficClass
from tests.unit.controller.plane.test_control_plane import all_deliver, running, since
from tests.unit.fabric_shapes import leaf_spine
from tests.unit.simulated_fabric import Simulation

SPINE = 0x20002
LONG_S = FORGET_AFTER_S + LOOK_EVERY_S + 1


def known(sim: Simulation) -> set[int]:
    return {one.dpid for one in sim.plane.snapshot().switches}


def names(sim: Simulation) -> FabricNames:
    return FabricNames(sim.plane.snapshot())


def forgotten(sim: Simulation) -> list[int]:
    return [event.dpid for event in since(sim, SwitchForgotten)]  # type: ignore[attr-defined]


def lose_power(sim: Simulation, dpid: int) -> None:
    for link in sim.shape.links:
        if dpid in (link.a.dpid, link.b.dpid):
            sim.cut(link)
    sim.kill(dpid)


def test_a_switch_without_connection_and_links_is_forgotten_and_welcome_again() -> None:
    sim = running(leaf_spine(2, 3, 1))
    lose_power(sim, SPINE)
    sim.run(FORGET_AFTER_S - 1)
    assert SPINE in known(sim)
    sim.run(2)
    assert known(sim) == set(sim.shape.ports) - {SPINE}
    assert forgotten(sim) == [SPINE]
    assert all_deliver(sim)
    for link in sim.shape.links:
        sim.mend(link)
    sim.connect(SPINE)
    sim.run_until(lambda: len(sim.plane.paths("h1", "h2")) == 3, 10)
    sim.run_until(sim.plane.ready, 5)
    assert all_deliver(sim)
    deadline = sim.plane.deadline()
    assert deadline is not None
    assert deadline < sim.now + LOOK_EVERY_S, "nothing is left to look for"


def test_events_of_a_switch_that_is_forgotten_have_its_name() -> None:
    sim = running(leaf_spine(2, 3, 1))
    lose_power(sim, SPINE)
    sim.run(FORGET_AFTER_S + 1)
    assert forgotten(sim) == [SPINE]
    assert names(sim).switch(SPINE) == "sw20002"
    assert "sw20002" not in names(sim).switches()
    sim.connect_unasked(0x900000)
    sim.do(sim.plane.switch_connected(0x900000, sim.ports(SPINE), None, sim.now))
    assert names(sim).switch(0x900000) == "sw20002"
    assert names(sim).switch(SPINE) == "0x20002", "another switch has the name now"


@pytest.mark.parametrize("comes_back", [False, True])
@pytest.mark.parametrize("leaves_first", ["agent", "leaf"])
def test_a_host_whose_agent_has_left_goes_with_its_leaf(leaves_first: str, comes_back: bool) -> None:
    """Else it would be looked for ever after, and the fabric never be ready again."""
    sim = running(leaf_spine(3, 2, 1))
    gone = sim.shape.hosts[2]

    def leave() -> None:
        sim.do(sim.plane.agent_left(gone.name, sim.now))

    if leaves_first == "agent":
        leave()
        if comes_back:
            sim.join(gone)
    lose_power(sim, gone.place.dpid)
    sim.run(LONG_S)
    assert gone.place.dpid not in known(sim)
    if comes_back and leaves_first == "agent":
        assert not sim.plane.ready()
        leave()
    elif leaves_first == "leaf":
        leave()
    sim.run_until(sim.plane.ready, 5)
    assert gone.ipv4 not in {host.ipv4 for host in sim.plane.snapshot().hosts}
    if comes_back:
        for link in sim.shape.links:
            sim.mend(link)
        sim.connect(gone.place.dpid)
        sim.join(gone)
        sim.run_until(lambda: all_deliver(sim), 10)
        sim.run_until(sim.plane.ready, 5)


def test_a_switch_that_may_still_forward_stays() -> None:
    sim = running(leaf_spine(2, 3, 1))
    sim.kill(SPINE)  # its cables keep their light
    sim.run(LONG_S)
    assert SPINE in known(sim)
    for link in sim.shape.links:
        if link.b.dpid == SPINE or link.a.dpid == SPINE:
            sim.cut(link)
    sim.run(LOOK_EVERY_S + 1)
    assert SPINE not in known(sim)


def test_a_leaf_that_is_forgotten_leaves_nothing_in_others_tables() -> None:
    sim = running(leaf_spine(3, 2, 1), agents=False)
    h1, h2, h3 = sim.shape.hosts
    for host in sim.shape.hosts:
        sim.arp(host, h1.ipv4)
    sim.run(0.5)
    assert sim.delivers(h1, h3, TrafficClass.NONE)
    lose_power(sim, h3.place.dpid)
    sim.run(LONG_S)
    assert {host.ipv4 for host in sim.plane.snapshot().hosts} == {h1.ipv4, h2.ipv4}
    text = repr(sim.fabric.switches[h1.place.dpid].state)
    assert h3.ipv4 not in text
    assert h2.ipv4 in text
    for dpid in sim.connected:
        assert sim.plane.wanted_state(dpid) == sim.fabric.switches[dpid].state


def ghost(sim: Simulation, dpid: int, *, stays: bool = False) -> None:
    sim.do(sim.plane.switch_connected(dpid, (), None, sim.now))
    if not stays:
        sim.do(sim.plane.switch_disconnected(dpid, sim.now))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Limit the switches that get numbers to 12, not 4095, so that a test may use them up; return 12."""
    monkeypatch.setattr(control_plane, "MOST_SWITCHES", 12)
    return 12


def test_all_numbers_are_for_switches() -> None:
    numbers = SwitchNumbers()
    numbers.assign(range(1, MOST_SWITCHES + 1))
    with pytest.raises(NumbersExhaustedError):
        numbers.assign([MOST_SWITCHES + 1])
    numbers.release(17)
    numbers.assign([MOST_SWITCHES + 1])
    assert numbers[MOST_SWITCHES + 1] == 17


def test_ghosts_make_room_for_a_real_switch(few: int) -> None:
    sim = Simulation(leaf_spine(2, 2, 1))
    for number in range(5 * few):
        sim.connect_unasked(0x900000 + number)
        ghost(sim, 0x900000 + number)
        sim.connected.discard(0x900000 + number)
    assert len(known(sim)) == few
    sim.start()
    sim.run_until(sim.plane.ready, 5)
    assert all_deliver(sim)
    assert set(sim.shape.ports) <= known(sim)
    assert len(known(sim)) == few
    sim.run(LONG_S)
    assert known(sim) == set(sim.shape.ports)
    assert all_deliver(sim)


def test_only_the_surplus_switch_is_turned_away(few: int) -> None:
    sim = running(leaf_spine(2, 2, 1))
    before = {dpid: sim.plane.wanted_state(dpid) for dpid in sim.shape.ports}
    turned_away = []
    for number in range(few):
        effects = sim.plane.switch_connected(0x900000 + number, (), None, sim.now)
        turned_away += effects.turned_away
        sim.events += effects.events
    assert len(known(sim)) == few
    assert turned_away == [0x900000 + number for number in range(few - len(before), few)]
    assert [event.dpid for event in since(sim, SwitchTurnedAway)] == turned_away  # type: ignore[attr-defined]
    assert {dpid: sim.plane.wanted_state(dpid) for dpid in before} == before
    assert all_deliver(sim)
    sim.plane.switch_disconnected(0x900000, sim.now)
    assert not sim.plane.switch_connected(0x9000FF, (), None, sim.now).turned_away
