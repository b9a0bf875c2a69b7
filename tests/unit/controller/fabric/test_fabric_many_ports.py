"""Switches with many ports: what is known of them is what a look at all would find, and no change takes such a look."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.control_plane import ControlPlane
from controller.fabric import discovery as links
from controller.fabric import joining_ports
from controller.fabric.came_up import CameUp
from controller.fabric.discovery import QUIET_S, LinkDiscovery
from controller.fabric.graph import PortRef
from controller.fabric.joining_ports import AT_ONCE
from controller.fabric.switch_data import Port
from controller.schemes.loader import load
from tests.unit.counted_calls import calls

MANY = 4000
DPID = 7


def port(number: int, up: bool = True) -> Port:
    return Port(number, f"eth{number}", "02:00:00:00:00:01", up)


STEP = st.tuples(
    st.sampled_from(["connect", "disconnect", "forget", "up", "down", "receive", "listening", "host", "due"]),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.1, 0.7, 3.0]),
)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(STEP, max_size=40), st.sampled_from([2, 256]))
def test_what_is_kept_of_a_switch_is_what_its_ports_say(
    steps: list[tuple[str, int, int, int, int, float]], at_once: int
) -> None:
    found, connected, now = LinkDiscovery(), set[int](), 100.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "AT_ONCE", at_once)
        patch.setattr(joining_ports, "AT_ONCE", at_once)
        for what, dpid, number, other_dpid, other_number, wait_s in steps:
            now += wait_s
            match what:
                case "connect":
                    found.switch_connected(dpid, [port(number) for number in range(1, 6)], now)
                    connected.add(dpid)
                case "disconnect":
                    found.switch_disconnected(dpid)
                    connected.discard(dpid)
                case "forget":
                    found.forget_switch(dpid, now)
                    connected.discard(dpid)
                case "up" | "down":
                    found.port_changed(dpid, port(number, up=what == "up"), now)
                case "receive":
                    found.receive(PortRef(dpid, number), PortRef(other_dpid, other_number), now)
                    found.receive(PortRef(other_dpid, other_number), PortRef(dpid, number), now)
                case "listening":
                    found.listening(dpid, now)
                case "host":
                    found.host_found(PortRef(dpid, number), now)
                case _:
                    found.due(now)
            waiting = found.is_joining
            for switch in (1, 2, 3):
                refs = [PortRef(switch, one) for one in range(1, 6)]
                assert found.is_wired_switch(switch) == any(map(found.is_wired, refs))
                assert (switch in found.wired_switches()) == found.is_wired_switch(switch)
                linked = {end for link in found.links_up() for end in link}
                alone = [
                    ref
                    for ref in refs
                    if ref not in linked
                    and (kept := found.port(ref)) is not None
                    and kept.up
                    and switch in connected
                ]
                for moment in (now, now + QUIET_S / 2, now + QUIET_S):
                    if not waiting:
                        quiet = all(found.is_quiet(ref, moment) for ref in alone)
                        assert found.is_clear(switch, moment) == quiet
        for _ in range(10):
            found.due(now)
        assert not found.is_joining
        assert all(found.count_ports(dpid) == 5 for dpid in connected)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 50)), max_size=400))
def test_ports_that_flap_are_kept_once_or_so(ups: list[tuple[int, int]]) -> None:
    came_up, newest = CameUp(), dict[int, float]()
    for number, since in ups:
        newest[number] = max(float(since), newest.get(number, 0.0))
        came_up.note(PortRef(DPID, number), since)
    last = came_up.last(DPID, lambda ref, since: newest[ref.port] == since)
    assert last == max(newest.values(), default=None)


def test_a_switch_with_many_ports_is_taken_up_some_at_a_time() -> None:
    found = LinkDiscovery()
    all_ports = [port(number) for number in range(1, MANY + 1)]
    found.switch_connected(DPID, all_ports, 100.0)
    assert found.count_ports(DPID) == found.count_all_ports() == MANY, "those that wait count"
    assert len(found.ports_of_all()[DPID]) == AT_ONCE
    assert not found.is_clear(DPID, 100.0)
    assert found.deadline() is not None
    found.port_changed(DPID, port(MANY, up=False), 100.0)  # newer than what waits
    steps = 0
    while found.is_joining:
        before = len(found.ports_of_all()[DPID])
        found.due(100.0)
        assert len(found.ports_of_all()[DPID]) - before <= AT_ONCE
        steps += 1
    assert steps >= MANY // AT_ONCE - 1
    assert found.ports_of_all()[DPID] == tuple(range(1, MANY + 1))
    gone = found.port(PortRef(DPID, MANY))
    assert gone is not None
    assert not gone.up
    assert found.count_all_ports() == MANY
    found.switch_connected(DPID, all_ports, 101.0)
    assert found.count_all_ports() == MANY
    found.switch_disconnected(DPID)
    assert not found.is_joining


def test_links_ports_are_taken_up_before_others() -> None:
    found = LinkDiscovery()
    all_ports = [port(number) for number in range(1, MANY + 1)]
    mine, theirs = PortRef(DPID, MANY), PortRef(DPID + 1, 1)
    found.switch_connected(DPID, all_ports, 100.0)
    found.switch_connected(DPID + 1, [port(1)], 100.0)
    while found.is_joining:
        found.due(100.0)
    found.receive(mine, theirs, 100.1)
    found.receive(theirs, mine, 100.1)
    found.switch_disconnected(DPID)
    events = found.switch_connected(DPID, [*all_ports[:-1], port(MANY, up=False)], 101.0)
    assert len(events) == 1, "the link is down at once"


def switch_of(count: int) -> ControlPlane:
    """Return a control plane with a switch of so many ports, all of which it knows."""
    plane = ControlPlane(b"0123456789abcdef")
    now = 100.0
    plane.switch_connected(DPID, [port(number) for number in range(1, count + 1)], None, now)
    while now < 110.0:
        plane.tick(now)
        deadline = plane.deadline()
        now = 110.0 if deadline is None else max(now + 1e-3, deadline)
    return plane


@pytest.mark.parametrize("up", [False, True])
def test_a_ports_change_takes_no_look_at_all_ports(up: bool) -> None:
    """A switch may say 200 of them in 16 KiB, and one with 4000 ports had each cost 5 ms."""

    plane = switch_of(MANY)
    plane.tick(111.0)
    changes = 10
    cost = calls(lambda: [plane.port_changed(DPID, port(1, up=up), 111.0) for _ in range(changes)])
    assert cost < changes * MANY / 2, "frames of 64 ports each time are less"


def test_no_step_of_joining_takes_all_ports() -> None:
    plane = ControlPlane(b"0123456789abcdef")
    ports = [port(number) for number in range(1, MANY + 1)]
    each = [calls(lambda: plane.switch_connected(DPID, ports, None, 100.0))]
    each += [calls(lambda: plane.tick(100.0)) for _ in range(MANY // AT_ONCE)]
    assert sum(each) > MANY, "it is work for each port"
    assert max(each) < sum(each) / 4


def test_a_new_switch_costs_the_others_little() -> None:
    """A switch that has not changed is not compared anew: else all would be for each of many that connect in turn."""

    def cost(count: int) -> int:
        plane, now = ControlPlane(b"0123456789abcdef"), 100.0
        plane.set_scheme(load("caps"), 1e-3, now)
        for dpid in range(1, count + 1):
            plane.switch_connected(dpid, [port(1)], None, now)
        while now < 110.0:
            now = max(now + 1e-3, plane.deadline() or 110.0)
            plane.tick(now)
        plane.switch_connected(count + 1, [port(1)], None, now)
        return calls(lambda: plane.tick(now + 0.02))

    assert cost(100) - cost(50) < 60 * 50, "84 calls each, where all of a state was looked at"
