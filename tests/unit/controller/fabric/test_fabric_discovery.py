"""Links come and go: LLDP discovery as a state machine, every frame and every moment given."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.fabric.discovery import (
    EDGE_PERIOD_S,
    HASTE_S,
    MOST_AT_ONCE,
    PERIOD_S,
    QUIET_S,
    SILENCE_PERIODS,
    SUSPECT_S,
    LinkDiscovery,
    LinkEvent,
)
from controller.fabric.events import LinkDown, LinkUp
from controller.fabric.graph import Link, PortRef
from controller.fabric.switch_data import Port

A, B, C = PortRef(1, 1), PortRef(2, 1), PortRef(3, 1)


def port(number: int, *, up: bool = True, name: str = "") -> Port:
    return Port(number, name or f"eth{number}", "02:00:00:00:00:01", up)


class Wires:
    """A discovery whose frames take 1 ms (or as `held` says) over given cables, unless they are lost."""

    def __init__(self, *cables: tuple[PortRef, PortRef]) -> None:
        self.discovery = LinkDiscovery()
        self.peers = {end: other for one, two in cables for end, other in ((one, two), (two, one))}
        self.now = 100.0
        self.events: list[LinkEvent] = []
        self.sent: list[tuple[float, PortRef]] = []
        self.lost: Callable[[PortRef], bool] = lambda sender: False
        self.held: Callable[[PortRef], float] = lambda sender: 0.001
        self._flying: list[tuple[float, PortRef, PortRef]] = []

    def connect(self, *dpids: int, ports: int = 2) -> None:
        for dpid in dpids:
            numbers = [port(number) for number in range(1, ports + 1)]
            self.events += self.discovery.switch_connected(dpid, numbers, self.now)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        flying = self._flying
        while True:
            deadline = self.discovery.deadline()
            arrival = flying[0][0] if flying else float("inf")
            self.now = max(self.now, min(arrival, end if deadline is None else deadline))
            if self.now >= end:
                self.now = end
                return
            if arrival <= self.now:
                _, receiver, sender = heapq.heappop(flying)
                self.events += self.discovery.receive(receiver, sender, self.now)
                continue
            senders, events = self.discovery.due(self.now)
            self.events += events
            for sender in senders:
                self.sent.append((self.now, sender))
                if sender in self.peers and not self.lost(sender):
                    heapq.heappush(flying, (self.now + self.held(sender), self.peers[sender], sender))


def test_a_link_is_found_in_milliseconds_when_its_second_switch_connects() -> None:
    wires = Wires((A, B))
    wires.connect(1)
    wires.run(3.0)
    assert wires.events == []
    wires.connect(2)
    wires.run(0.01)
    [event] = wires.events
    assert isinstance(event, LinkUp)
    assert (event.a, event.b) == (A, B)
    assert wires.discovery.links_up() == {Link(A, B)}


def test_one_direction_is_no_link() -> None:
    wires = Wires((A, B))
    wires.lost = lambda sender: sender == B
    wires.connect(1, 2)
    wires.run(30)
    assert wires.discovery.links_up() == frozenset()


def test_a_port_that_goes_down_takes_its_link_down_at_once_and_both_directions_must_be_proved_again() -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(5)
    events = wires.discovery.port_changed(1, port(1, up=False), wires.now)
    assert [type(event) for event in events] == [LinkDown]
    assert wires.discovery.links_up() == frozenset()
    assert wires.discovery.links_known() == {Link(A, B)}
    assert wires.discovery.is_wired(B)
    wires.events.clear()
    wires.run(5)
    assert wires.events == []
    wires.discovery.port_changed(1, port(1), wires.now)
    wires.run(0.01)
    assert [type(event) for event in wires.events] == [LinkUp]


@pytest.mark.parametrize("deaf", [A, B])
def test_a_silent_direction_is_noticed(deaf: PortRef) -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(5)
    wires.events.clear()
    began = wires.now
    wires.lost = lambda sender: sender == deaf
    wires.run(SILENCE_PERIODS * PERIOD_S + SUSPECT_S + PERIOD_S + 2 * HASTE_S)
    [event] = wires.events
    assert isinstance(event, LinkDown)
    assert event.cause == "no LLDP"
    assert event.at - began >= SILENCE_PERIODS * PERIOD_S + SUSPECT_S - PERIOD_S
    wires.lost = lambda sender: False
    wires.run(2 * PERIOD_S + 0.1)
    assert wires.discovery.links_up() == {Link(A, B)}


@pytest.mark.parametrize("deaf_s", [1.0, 9.0, 100.0])
def test_time_in_which_the_controller_did_not_listen_does_not_count(deaf_s: float) -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(5)
    wires.events.clear()
    wires.now += deaf_s  # nothing was called meanwhile
    wires.run(20)
    assert wires.events == []
    wires.lost = lambda sender: True
    wires.run(SILENCE_PERIODS * PERIOD_S + SUSPECT_S + PERIOD_S + 2 * HASTE_S)
    assert [type(event) for event in wires.events] == [LinkDown]


def test_a_link_whose_queues_drop_half_of_all_frames_stays_up() -> None:
    rng = random.Random(4)
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(1)
    wires.lost = lambda sender: rng.random() < 0.5
    wires.run(3600)
    assert [type(event) for event in wires.events] == [LinkUp]


@given(
    after=st.floats(0, 7),
    reported_from=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    listening=st.lists(st.tuples(st.sampled_from([1, 2]), st.floats(0, 1)), max_size=4),
)
def test_both_ends_of_a_link_send_every_period_however_they_found_each_other(
    after: float, reported_from: tuple[float, float], listening: list[tuple[int, float]]
) -> None:
    """An end that had answered as an edge port, before the link was up, would else be silent for an edge port's
    period: as long as the other end puts up with, so that any lateness took a sound link out of service."""
    wires = Wires((A, B))
    wires.connect(1)
    wires.run(after)
    wires.connect(2)
    reported = {sender: wires.now + seconds for sender, seconds in zip((A, B), reported_from, strict=True)}
    wires.held = lambda sender: max(0.001, reported[sender] - wires.now)
    for dpid, later in sorted((dpid, wires.now + seconds) for dpid, seconds in listening):
        wires.run(max(0.0, later - wires.now))
        wires.discovery.listening(dpid, wires.now)
    wires.run(30)
    [up] = wires.events
    assert isinstance(up, LinkUp)
    for end in (A, B):
        moments = [up.at, *(at for at, sender in wires.sent if sender == end and at > up.at), wires.now]
        assert max(after - before for before, after in pairwise(moments)) <= PERIOD_S + 1e-6


def test_a_lost_connection_changes_no_link_and_silence_counts_anew_after_it() -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(2)
    wires.discovery.switch_disconnected(2)
    wires.lost = lambda sender: True
    wires.run(60)
    wires.connect(2)
    wires.lost = lambda sender: False
    wires.run(10)
    assert [type(event) for event in wires.events] == [LinkUp]


def test_a_port_that_its_switch_lost_meanwhile_is_no_link() -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(2)
    wires.discovery.switch_disconnected(2)
    events = wires.discovery.switch_connected(2, [port(1, name="another"), port(2)], wires.now)
    assert [type(event) for event in events] == [LinkDown]
    assert wires.discovery.links_known() == frozenset()


def test_a_cable_that_was_moved() -> None:
    wires = Wires((A, B))
    wires.connect(1, 2, 3)
    wires.run(2)
    wires.events.clear()
    wires.peers = {A: C, C: A}
    wires.run(EDGE_PERIOD_S + 1)
    downs = [event for event in wires.events if isinstance(event, LinkDown)]
    assert [event.cause for event in downs] == ["rewired"]
    assert wires.discovery.links_up() == {Link(A, C)}
    assert wires.discovery.links_known() == {Link(A, C)}
    assert not wires.discovery.is_wired(B)


def test_edge_ports_are_those_that_are_up_and_lead_to_no_switch() -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(1)
    assert wires.discovery.edge_ports() == [PortRef(1, 2), PortRef(2, 2)]
    wires.discovery.port_changed(1, port(2, up=False), wires.now)
    wires.discovery.switch_disconnected(2)
    assert wires.discovery.edge_ports() == []


def test_a_switch_is_clear_when_its_ports_are_proved_or_quiet() -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(0.01)
    assert not wires.discovery.is_clear(1, wires.now)  # port 2 might still have a neighbour
    wires.run(QUIET_S)
    assert wires.discovery.is_clear(1, wires.now)
    links_only = Wires((A, B))
    links_only.connect(1, 2, ports=1)
    links_only.run(0.01)
    assert links_only.discovery.is_clear(1, links_only.now)


def test_edge_ports_are_asked_less_often() -> None:
    wires = Wires((A, B))
    wires.connect(1, 2)
    wires.run(2)
    wires.sent.clear()
    wires.run(100)
    counts = {ref: sum(sender == ref for _, sender in wires.sent) for ref in (A, PortRef(1, 2))}
    assert 95 <= counts[A] <= 101
    assert 19 <= counts[PortRef(1, 2)] <= 21


def test_a_frame_that_comes_back_to_its_own_port_is_no_link() -> None:
    wires = Wires((A, A))
    wires.connect(1)
    wires.run(2)
    assert wires.discovery.links_known() == frozenset()


def test_many_ports_have_their_turns_and_no_call_names_them_all() -> None:
    discovery = LinkDiscovery()
    discovery.switch_connected(1, [port(number) for number in range(1, 1001)], 5.0)
    named: list[PortRef] = []
    while (deadline := discovery.deadline()) == 5.0:
        ports, events = discovery.due(5.0)
        assert 0 < len(ports) <= MOST_AT_ONCE
        assert not events
        named += ports
    assert sorted(named) == [PortRef(1, number) for number in range(1, 1001)]
    assert deadline is not None


def test_turns_of_many_ports_are_no_time_without_listening() -> None:
    """A link whose far end is deaf goes down although other ports' frames are always overdue."""
    wires = Wires((A, B))
    wires.connect(1, 2, ports=1)
    wires.run(2.0)
    assert [type(event) for event in wires.events] == [LinkUp]
    wires.lost = lambda sender: True
    discovery, now = wires.discovery, wires.now
    discovery.switch_connected(3, [port(number) for number in range(1, 3001)], now)
    events: list[LinkEvent] = []
    while now < wires.now + 30.0 and not events:
        now += 0.01  # 64 ports each time are fewer than have their turn
        events = discovery.due(now)[1]
    assert [type(event) for event in events] == [LinkDown]
