"""Switches that take their time: nothing is sent that is not in force yet, and none waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.fabric.arp import REPLY, decode_arp
from controller.fabric.events import LinkUp
from controller.plane.in_flight import CONFIRM_LIMIT_S, DATAPATH_LAG_S, InFlight
from protocol.underlay import TrafficClass
from tests.unit.fabric_shapes import CAPS, LABELS, Shape, fat_tree, leaf_spine, pairs
from tests.unit.simulated_fabric import Simulation

KINDS = ("leaf-spine", "fat tree")


def shape_of(kind: str) -> Shape:
    return leaf_spine(3, 3, 1) if kind == "leaf-spine" else fat_tree(4, 1)


def slow(sim: Simulation, data: st.DataObject) -> None:
    """Let every switch take 0 to 0.4 s for a change."""
    for dpid in sim.shape.ports:
        sim.apply_s[dpid] = data.draw(st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.4]))


def running(shape: Shape) -> Simulation:
    sim = Simulation(shape)
    sim.set_scheme(LABELS)
    sim.start()
    sim.run_until(sim.plane.ready, 8)
    sim.run(1)
    return sim


def all_deliver(sim: Simulation) -> None:
    assert all(sim.delivers(*pair) for pair in pairs(sim.shape)), "traffic was cut"


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_a_fabric_that_says_it_is_ready_forwards(kind: str, data: st.DataObject) -> None:
    sim = Simulation(shape_of(kind))
    sim.set_scheme(CAPS)
    slow(sim, data)
    sim.start()
    sim.run_until(sim.plane.ready, 10)
    all_deliver(sim)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_a_host_that_gets_an_answer_to_arp_reaches_who_was_asked_for(kind: str, data: st.DataObject) -> None:
    sim = Simulation(shape_of(kind), agents=False)
    sim.set_scheme(CAPS)
    slow(sim, data)
    sim.start()
    sim.run_until(sim.plane.ready, 10)
    sim.run(1)
    one, other = data.draw(st.permutations(sim.shape.hosts))[:2]
    sim.frames.clear()
    sim.arp(one, other.ipv4)

    def answered() -> bool:
        arps = [decode_arp(frame) for _, place, frame in sim.frames if place == one.place]
        return any(arp is not None and arp.operation == REPLY and arp.sender_ip == other.ipv4 for arp in arps)

    sim.run_until(answered, 5)
    assert sim.delivers(one, other, TrafficClass.NONE)
    assert sim.delivers(other, one, TrafficClass.NONE)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(st.sampled_from(KINDS), st.data())
def test_a_mended_link_and_a_returned_switch_lose_no_packet(kind: str, data: st.DataObject) -> None:
    sim = running(shape_of(kind))
    gone = data.draw(st.sampled_from(sim.shape.links))
    top = max(sim.shape.ports)
    sim.cut(gone)
    sim.run(1)
    slow(sim, data)
    sim.after_update = lambda: all_deliver(sim)
    sim.mend(gone)
    sim.run_until(
        lambda: any(isinstance(event, LinkUp) and gone.a == event.a for event in sim.events[-9:]), 2
    )
    sim.run_until(sim.plane.ready, 5)
    all_deliver(sim)
    sim.after_update = lambda: None
    sim.kill(top)
    sim.run(2)
    all_deliver(sim)
    sim.after_update = lambda: all_deliver(sim)
    sim.connect(top)
    sim.run_until(sim.plane.ready, 5)
    sim.run(1)
    all_deliver(sim)


def test_a_switch_that_never_confirms_delays_no_other_for_long() -> None:
    sim = running(leaf_spine(2, 3, 1))
    link = sim.shape.links[0]
    sim.cut(link)
    sim.run(1)
    sim.apply_s[0x20002] = 1000.0
    sim.updates.clear()
    sim.mend(link)
    sim.run(0.3)
    first = {dpid for _, dpid, _ in sim.updates}
    assert 0x10002 not in first or 0x20001 in first
    sim.run(CONFIRM_LIMIT_S)
    assert len(sim.plane.paths("h1", "h2")) == 3
    all_deliver(sim)
    sim.run_until(sim.plane.ready, 2)


def test_new_routes_reach_leaves_after_the_switches_above_have_them() -> None:
    sim = running(fat_tree(4, 1))
    core = next(link for link in sim.shape.links if link.b.dpid >> 16 == 3)
    sim.cut(core)
    sim.run(1)
    for dpid in sim.shape.ports:
        sim.apply_s[dpid] = 0.05
    sim.updates.clear()
    sim.mend(core)
    sim.run(1)
    at = {dpid: when for when, dpid, _ in sim.updates}
    tiers = {tier: [when for dpid, when in at.items() if dpid >> 16 == tier] for tier in (1, 2, 3)}
    assert max(tiers[3]) + 0.05 <= min(tiers[2])
    assert max(tiers[2]) + 0.05 <= min(tiers[1])


@given(
    st.lists(
        st.tuples(st.sampled_from(["sent", "applied", "wait"]), st.integers(1, 4), st.integers(0, 400)),
        max_size=40,
    )
)
def test_a_round_is_in_force_when_all_switches_that_were_sent_one_before_have_confirmed(
    steps: list[tuple[str, int, int]],
) -> None:
    """Against the definition, over each switch's whole history."""
    flight, now = InFlight(), 0.0
    sent: list[tuple[int, int, float]] = []  # (round, dpid, at)
    done: dict[tuple[int, int], float] = {}

    def confirm(dpid: int) -> None:
        for number, other, _ in sent:
            if other == dpid:
                done.setdefault((number, dpid), now)

    for what, dpid, ms in steps:
        if what == "sent":
            flight.sent((dpid,), now)
            sent.append((flight.round, dpid, now))
        elif what == "applied":
            flight.applied(dpid, now)
            confirm(dpid)
        else:
            now += ms / 1000
        for number, other, at in sent:
            if (number, other) not in done and at + CONFIRM_LIMIT_S <= now:
                confirm(other)  # silent for too long: given up, with all that came after
        in_force = flight.in_force(now)
        expected = 0
        for number in range(1, flight.round + 1):
            times = [done.get((one, other)) for one, other, _ in sent if one <= number]
            if all(time is not None and time + DATAPATH_LAG_S <= now for time in times):
                expected = number
        assert in_force == expected
        open_now = {other for number, other, _ in sent if (number, other) not in done}
        assert flight.unconfirmed(now) == open_now
    now += CONFIRM_LIMIT_S
    flight.in_force(now)
    assert flight.in_force(now + DATAPATH_LAG_S) == flight.round
    assert flight.deadline() is None


def test_rounds_without_updates_are_none() -> None:
    flight = InFlight()
    flight.sent((), 1.0)
    assert (flight.round, flight.in_force(1.0), flight.deadline()) == (0, 0, None)
    flight.sent((1, 2), 1.0)
    flight.applied(1, 1.1)
    assert flight.unconfirmed(1.1) == {2}
    assert flight.deadline() == pytest.approx(1.0 + CONFIRM_LIMIT_S)
    flight.applied(2, 1.2)
    assert flight.in_force(1.2) == 0
    assert flight.deadline() == pytest.approx(1.2 + DATAPATH_LAG_S)
    assert flight.in_force(1.2 + DATAPATH_LAG_S) == 1
