"""Path policies inside an agent's core: paths and their restriction by class, and what feedback gives the policies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.core import AgentCore
from host_agent.inner_packet import SYN
from host_agent.paths import PathPolicy as Rule
from host_agent.paths import Report, Route
from protocol.control import PathLoad, Peer
from protocol.policy import ClassPolicy, CodingPolicy, PathKind, PathSettings, Policy
from protocol.underlay import EV_FIRST, LABEL_FIRST, class_of_dscp, label_of
from tests.unit.datagram_reference import Kind, encode_feedback, encode_fields
from tests.unit.host_agent.test_agent_core import MTU, tcp

A = Peer("a", "10.0.1.1", ["10.128.1.1"], 11, "left")
B = Peer("b", "10.0.2.1", ["10.128.2.1"], 22, "right")
C = Peer("c", "10.0.1.2", ["10.128.2.2"], 33, "left")
STAMPS = (1025, 1026, 1027, 1028)


def document(kind: PathKind, coding: CodingPolicy | None = None, **changes: Any) -> Policy:
    one = ClassPolicy(PathSettings(kind), coding)
    return Policy(
        1, "test", packet_time_s=0.001, short=one, long=ClassPolicy(PathSettings(kind)), control=one
    )


class Routes(Rule):
    """Writes down which route it is asked for."""

    def __init__(self) -> None:
        self.port = 1000

    def entropy(self, flow: Any, route: Route, size: int, now: float) -> int:
        self.route = route
        return EV_FIRST

    def asked(self, core: AgentCore, kind: str, to: int = 2) -> Route:
        """Return the route of a packet of that class, of a new flow to 10.128.*to*.1."""
        self.port += 1
        for number in range(1 if kind == "short" else 3):
            packet = tcp(number, 1000, ports=(self.port, 80))
            core.packet_from_host(packet[:18] + bytes([to]) + packet[19:], 0.0)
        (*_, last) = core.datagrams_to_send()
        assert class_of_dscp(last.tos >> 2).name.lower() == kind
        return self.route


def pair(rules: Policy, own: Rule | None = None) -> tuple[AgentCore, AgentCore]:
    """Return two agents; *own*: what `file` is at the first, at the second it uses one entropy value."""
    cores = []
    for peer, far in ((A, "right"), (B, "left")):
        file: Rule = own if own is not None and peer is A else Routes()
        core = AgentCore(
            peer.host, peer.session, MTU, np.random.default_rng(1), own_path=lambda *_, file=file: file
        )
        core.set_policy(rules, 0.0)
        core.set_directory([A, B, C], 0.0)
        core.set_paths({far: STAMPS}, {})
        cores.append(core)
    return cores[0], cores[1]


def ports(core: AgentCore) -> list[int]:
    return [one.source_port for one in core.datagrams_to_send()]


def send(core: AgentCore, count: int, size: int = 1000, now: float = 0.0, first: int = 0) -> list[int]:
    for number in range(first, first + count):
        core.packet_from_host(tcp(number, size), now)
    return ports(core)


@given(
    alive=st.sets(st.integers(0, 5000), max_size=12),
    only=st.one_of(st.none(), st.sets(st.integers(0, 5000), max_size=12)),
)
def test_a_class_keeps_to_its_paths_unless_that_leaves_none(alive: set[int], only: set[int] | None) -> None:
    routes = Routes()
    core = AgentCore(A.host, A.session, MTU, np.random.default_rng(1), own_path=lambda *_: routes)
    core.set_policy(replace(document("file"), short_limit_bytes=1500), 0.0)
    core.set_directory([A, B, Peer("d", "10.0.3.1", ["10.128.3.1"], 44, "elsewhere")], 0.0)
    before = routes.asked(core, "short"), routes.asked(core, "long")
    by_class = {} if only is None else {"long": tuple(sorted(only))}
    core.set_paths({"right": tuple(sorted(alive))}, by_class)
    short, long = routes.asked(core, "short"), routes.asked(core, "long")
    assert (short, long) == before, "policies keep state by route"
    sound = {stamp for stamp in alive if 1 <= stamp <= 4095}
    usable = (sound & only if only is not None else sound) or sound
    assert short.labels == tuple(label_of(stamp) for stamp in sorted(sound))
    assert long.labels == tuple(label_of(stamp) for stamp in sorted(usable))
    assert routes.asked(core, "short", to=3).labels == ()


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(5000, 64000), min_size=1, max_size=12))
def test_round_robin_is_in_turn_over_single_and_super_packets(sizes: list[int]) -> None:
    core, _ = pair(document("round-robin"))
    used = send(core, 3)
    for number, size in enumerate(sizes):
        core.super_packet_from_host(tcp(10 + number, size), 1386, 0.0)
        used += ports(core)
    short, long = (
        [port for place, port in enumerate(used) if place * 1386 < 100_000],
        [port for place, port in enumerate(used) if place * 1386 > 103_000],
    )
    for part in (short, long):
        shares = Counter(part)
        assert set(part) <= set(map(label_of, STAMPS))
        assert max(shares.values(), default=0) - min(shares.values(), default=0) <= 3


def test_hosts_of_our_own_leaf_are_reached_without_labels() -> None:
    core, _ = pair(document("round-robin"))
    packet = tcp(0, 100)
    core.packet_from_host(packet[:16] + bytes([10, 128, 2, 2]) + packet[20:], 0.0)
    assert all(port >= EV_FIRST for port in ports(core))


def test_a_path_that_dies_is_left_with_the_next_packet() -> None:
    core, _ = pair(document("label-hash"))
    (port,) = set(send(core, 5))
    rest = tuple(stamp for stamp in STAMPS if label_of(stamp) != port)
    core.set_paths({"right": rest}, {})
    (other,) = set(send(core, 5))
    assert other - LABEL_FIRST in rest
    core.set_paths({}, {})
    assert all(one >= EV_FIRST for one in send(core, 5)), "no path is known: sprayed by entropy value"


class Listener(Rule):
    """Uses labels in turn and writes down what it gets."""

    learns = True

    def __init__(self) -> None:
        self.reports: list[tuple[Report, float]] = []
        self.losses: list[tuple[int, int]] = []
        self.over: list[int] = []
        self.turn = 0

    def entropy(self, flow: Any, route: Any, size: int, now: float) -> int:
        self.turn += 1
        return int(route.labels[self.turn % len(route.labels)])

    def reported(self, report: Report, now: float) -> None:
        self.reports.append((report, now))

    def lost(self, flow: int, leaf: str, entropy: int, now: float) -> None:
        self.losses.append((flow, entropy))

    def forget(self, flow: int) -> None:
        self.over.append(flow)


def test_policies_learn_what_became_of_each_datagram_when_it_left_and_how_long_it_took() -> None:
    noted = Listener()
    sender, receiver = pair(document("file"), noted)
    left, lost = {}, set()
    for number in range(100):
        now = 0.001 * number
        sender.packet_from_host(tcp(number, 500), now)
        (one,) = sender.datagrams_to_send()
        left[number] = (one.source_port, now)
        if number % 10 == 3:
            lost.add(number)
            continue
        stamp = one.source_port - LABEL_FIRST
        receiver.receive_datagram(
            one.data, A.underlay_ip, stamp, one.tos, now=now + 0.002 + 0.0001 * (number % 7)
        )
    now = 0.1
    while len(noted.losses) < len(lost) and now < 3.0:
        now += 0.01
        receiver.handle_timer(now)
        for one in receiver.datagrams_to_send():
            sender.receive_datagram(one.data, B.underlay_ip, 1025, one.tos, now=now)
    assert len(noted.reports) == 90
    received = {round(report.sent * 1000): report for report, _ in noted.reports}
    for number in set(range(100)) - lost:
        report = received[number]
        assert (report.entropy, report.sent) == left[number]
        assert report.stamp == report.entropy - LABEL_FIRST
        assert (report.leaf, report.flow) == ("right", 1)
        assert report.delay_s == pytest.approx(0.0001 * (number % 7), abs=2e-6)
    assert sorted(noted.losses) == sorted((1, left[number][0]) for number in lost)


def test_a_peer_that_says_that_everything_is_lost_again_and_again_is_listened_to_for_a_while() -> None:
    """A datagram of 276 bytes took 10 ms of the agent's time."""
    noted = Listener()
    sender, _ = pair(document("file"), noted)
    used = send(sender, 5)
    body = encode_feedback([], [], [], [(0, 2**32 - 1)] * 32, 0)
    sender.receive_datagram(
        encode_fields(Kind.FEEDBACK, 0, B.session, 0, 0, 0, 0, body), B.underlay_ip, 5000, 0, now=0.1
    )
    assert noted.losses == [(1, port) for port in used]


def test_policies_learn_that_a_flow_is_over() -> None:
    noted = Listener()
    sender, _ = pair(document("file"), noted)
    sender.packet_from_host(tcp(0, 0, SYN), 0.0)
    sender.packet_from_host(tcp(0, 500), 0.0)
    assert noted.over == []
    sender.packet_from_host(tcp(0, 0, SYN), 1.0)
    assert noted.over == [1], "a new connection on the ports of the old one"
    sender.handle_timer(200.0)
    assert noted.over == [1, 2], "idle for longer than flows are kept"


def test_agents_of_a_leaf_share_what_is_on_its_paths_where_the_policy_wants_it() -> None:
    core, _ = pair(document("spray"))
    assert core.path_load(0.0) is None
    core.set_policy(document("tr"), 0.0)
    assert core.path_load(0.0) == PathLoad({}, {})
    for port in range(1000, 1006):
        core.packet_from_host(tcp(0, 100, ports=(port, 80)), 0.0)
    load = core.path_load(0.001)
    assert load is not None
    assert sum(load.short_flows.values()) == 6
    assert set(load.short_flows) <= set(map(str, STAMPS))
    busy = {str(stamp): 0.1 for stamp in STAMPS[1:]}
    core.set_path_load(PathLoad({"x": 1}, {"right": {**busy, "0": 0.2, "9" * 9: 0.3}}), 0.002)
    ports(core)
    core.packet_from_host(tcp(0, 100, ports=(2000, 80)), 0.003)
    assert ports(core) == [label_of(STAMPS[0])], "the one path on which none waits"


def test_leaves_that_another_agent_invents_take_no_place_among_those_that_there_are() -> None:
    core, _ = pair(document("tr"))
    busy = {str(stamp): 0.1 for stamp in STAMPS[1:]}
    for turn in range(2):  # together more than leaves have numbers
        invented = {f"invented {turn} {number}": {"1": 0.1} for number in range(40_000)}
        core.set_path_load(PathLoad({}, {**invented, "right": busy}), 0.0)
    core.packet_from_host(tcp(0, 100, ports=(2000, 80)), 0.001)
    assert ports(core) == [label_of(STAMPS[0])], "what is said of leaves that there are counts"


def test_what_others_have_on_our_paths_is_forgotten_with_the_connection_that_said_it() -> None:
    """A controller begins each connection with nothing said, and says nothing while others have nothing."""
    core, _ = pair(document("tr"))
    core.set_path_load(PathLoad({}, {"right": {str(stamp): 0.1 for stamp in STAMPS[1:]}}), 0.0)
    core.disconnected(0.001)
    for port in range(1000, 1012):
        core.packet_from_host(tcp(0, 100, ports=(port, 80)), 0.002)
    assert set(ports(core)) == set(map(label_of, STAMPS)), "none is known to wait"


@pytest.mark.parametrize("kind", ["flowlet", "round-robin", "reps"])
def test_a_policy_that_is_said_again_changes_nothing(kind: PathKind) -> None:
    """As a controller does whenever an agent has lost its connection and found it again."""
    core, undisturbed = pair(document(kind))[0], pair(document(kind))[0]
    for first in range(0, 100, 5):
        core.set_policy(document(kind), 0.0)
        assert send(core, 5, first=first) == send(undisturbed, 5, first=first)


@pytest.mark.parametrize("kind", ["flowlet", "round-robin", "reps"])
def test_the_policy_of_a_controller_that_was_started_again_changes_nothing(kind: PathKind) -> None:
    """It says the same under the next version. Said so within a connection, it is another run's: that begins anew."""
    core, undisturbed, anew = (pair(document(kind))[0] for _ in range(3))
    changed = False
    for first in range(0, 100, 5):
        version = 2 + first
        core.disconnected(0.0)
        core.set_policy(replace(document(kind), version=version), 0.0)
        anew.set_policy(replace(document(kind), version=version), 0.0)
        used = send(undisturbed, 5, first=first)
        assert send(core, 5, first=first) == used
        changed |= send(anew, 5, first=first) != used
        assert core.policy.version == version
    assert changed


def test_another_policy_after_a_connection_has_ended_is_in_force() -> None:
    core = pair(document("spray"))[0]
    core.disconnected(0.0)
    core.set_policy(replace(document("tr"), version=2), 0.0)
    assert core.path_load(0.0) == PathLoad({}, {})
    core.set_policy(replace(document("tr"), version=3), 0.0)
    assert core.policy.version == 3


@pytest.mark.parametrize("kind", [kind for kind in get_args(PathKind) if kind != "file"])
def test_agents_share_paths_under_the_policies_that_the_controller_expects_it_of(kind: PathKind) -> None:
    policy = document(kind)
    assert (pair(policy)[0].path_load(0.0) is not None) == policy.shares_paths
