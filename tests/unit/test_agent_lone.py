"""Lone packets pass in native code as they would in Python: the same bytes, counters and timers, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import capstan_native
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agent.inner_packet import ACK, FIN, PSH, RST, SYN, InnerPacket
from host_agent.lone import MOST_WAKEUPS, REST, WINDOW_S
from host_agent.paths import path_policy
from host_agent.paths.base import Route, Turn
from protocol.admission import AdmissionPolicy
from protocol.control import Impair
from protocol.policy import ClassPolicy, CodingPolicy, PathKind, PathPolicy, Policy, ReleasePolicy
from protocol.priority import PriorityPolicy
from protocol.underlay import TrafficClass, label_of
from tests.unit.inner_packets import ICMP, ip, tcp, udp
from tests.unit.lone_rig import FOREIGN, OVERLAY, THERE, Rig, all_of
from tests.unit.test_agent_paths import Inner

HOST, PEER = OVERLAY


PATHS = sorted(set(get_args(PathKind)) - {"file"})
"""But policies from a file: an agent is started with one, and it says nothing beforehand."""


def _policy(path: PathKind, coded: bool, release: bool, priority: PriorityPolicy, limit: int) -> Policy:
    one = PathPolicy(path)
    held = ReleasePolicy(0.02) if release else None
    return Policy(
        version=1,
        scheme="test",
        short_limit_bytes=limit,
        short=ClassPolicy(one, CodingPolicy() if coded else None, held),
        long=ClassPolicy(one, None, held),
        control=ClassPolicy(PathPolicy("spray")),
        priority=priority,
    )


policies = st.builds(
    _policy,
    st.sampled_from(PATHS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([PriorityPolicy("class"), PriorityPolicy("bytes-sent", (700, 2500))]),
    st.sampled_from([1500, 100_000]),
)


def _packet(kind: str, size: int, flow: int, ends: tuple[str, str]) -> bytes:
    """A packet between two ends; *flow* tells ports apart."""
    to: dict[str, Any] = {"source": ends[0], "destination": ends[1]}
    body = bytes([size % 251]) * size
    match kind:
        case "ping":
            return ip(ICMP, b"\x08\0\0\0\0\x07" + bytes([flow, 0]) + body, **to)
        case "udp":
            return udp(body, ports=(5000 + flow, 9), **to)
        case "fragment":
            return ip(17, body + bytes(8), df=False, word=0x2000, **to)
        case "options":
            return ip(17, bytes(8) + body, options=b"\x01\x01\x01\0", **to)
        case "six":
            return ip(17, bytes(8), source="fd00:ca::1:1", destination="fd00:ca::1:2")
        case "nobody":
            return udp(body, source=ends[0], destination="10.128.9.9")
        case "short":
            return udp(body, **to)[: size % 28]
    flags = {"data": ACK, "push": ACK | PSH, "ack": ACK, "syn": SYN, "fin": ACK | FIN, "reset": RST}[kind]
    payload = body if kind in ("data", "push") else b""
    return tcp(payload, ports=(6000 + flow, 80), flags=flags, **to)


KINDS = ("ping", "udp", "data", "push", "ack") * 3
RARE = ("syn", "fin", "reset", "fragment", "options", "six", "nobody", "short")
packets = st.tuples(
    st.sampled_from(KINDS * 3 + RARE),
    st.integers(1, 1386) | st.integers(1, 1500),
    st.sampled_from([0, 0, 0, 1]),
)
harms = st.sampled_from(["no"] * 24 + ["lost", "twice", "bit", "cut", "foreign", "ce", "ect", "late", "junk"])
happenings = st.one_of(
    st.tuples(st.just("host"), st.lists(packets, min_size=1, max_size=6)),
    st.tuples(st.just("peer"), st.lists(st.tuples(packets, harms), min_size=1, max_size=6)),
    st.tuples(st.just("peer"), st.tuples(st.tuples(packets, harms))),
    st.tuples(st.just("both"), st.tuples(st.tuples(packets, harms))),
    st.tuples(st.just("again"), st.integers(1, 8)),
    st.tuples(st.just("timer"), st.sampled_from([0.0, 0.006, 0.3])),
    st.tuples(st.just("feedback"), st.none()),
)


def _arriving(harm: str, made: list[bytes], late: list[bytes]) -> list[tuple[bytes, str, int]]:
    """What comes of the peer's datagrams."""
    out: list[tuple[bytes, str, int]] = []
    for data in made:
        at = len(data) // 2
        match harm:
            case "lost":
                continue
            case "late":
                late.append(data)
                continue
            case "bit":
                data = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
            case "cut":
                data = data[:at]
            case "junk":
                data = bytes(at)
        address = FOREIGN if harm == "foreign" else THERE
        tos = {"ce": 3, "ect": 2}.get(harm, 0) | 0x20
        out += [(data, address, tos)] * (2 if harm == "twice" else 1)
    return out


def _spread(what: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """What happens, "again" being what happened last, so many times and each packet by itself."""
    last: tuple[str, Any] = ("timer", 0.0)
    for kind, detail in what:
        if kind != "again":
            last = kind, detail
            yield last
            continue
        for _ in range(detail):
            if last[0] in ("host", "peer", "both"):
                yield from ((last[0], [one]) for one in last[1])


@settings(max_examples=60, deadline=None)
@given(
    policy=policies,
    impaired=st.sampled_from([False, False, False, True]),
    what=st.lists(happenings, min_size=4, max_size=20),
)
def test_the_same_leaves_and_comes_as_when_python_hears_first(
    policy: Policy, impaired: bool, what: list[tuple[str, Any]]
) -> None:
    with Rig(policy) as rig:
        late: list[bytes] = []
        if impaired:
            rig.impair(Impair(loss=0.3))
        for kind, detail in _spread(what):
            if kind == "host":
                rig.from_host([_packet(*one, ends=(HOST, PEER)) for one in detail])
            elif kind == "timer":
                rig.timer(detail)
            elif kind == "feedback":
                rig.peer_hears()
            else:
                arriving: list[tuple[bytes, str, int]] = [(data, THERE, 0) for data in late]
                late.clear()
                for one, harm in detail:
                    rig.peer.packet_from_host(_packet(*one, ends=(PEER, HOST)), rig.peer_now())
                    made = [datagram.data for datagram in all_of(rig.peer.datagrams_to_send())]
                    arriving += _arriving(harm, made, late)
                both = [_packet(*one, ends=(HOST, PEER)) for one, _ in detail if kind == "both"]
                rig.at_once(both, arriving)


@pytest.mark.parametrize("kind", ["ping", "udp", "push", "ack"])
def test_packets_of_a_flow_that_is_known_pass_without_python(kind: str) -> None:
    spray = ClassPolicy(PathPolicy("spray"))
    with Rig(Policy(1, "test", short=spray, long=spray, control=spray)) as rig:
        for _ in range(10):
            rig.from_host([_packet(kind, 100, 0, (HOST, PEER))])
            rig.peer.packet_from_host(_packet(kind, 100, 0, (PEER, HOST)), rig.peer_now())
            rig.from_peer([(one.data, THERE, 0x20) for one in all_of(rig.peer.datagrams_to_send())])
        assert rig.lone.sent == 9, "all but the first"
        assert rig.lone.received == 9


def test_packets_pass_before_python_has_heard_of_those_before() -> None:
    spray = ClassPolicy(PathPolicy("spray"))
    with Rig(Policy(1, "test", short=spray, long=spray, control=spray)) as rig:
        ping = _packet("ping", 100, 0, (HOST, PEER))
        rig.from_host([ping])
        rig.from_host([ping] * 5)
        assert rig.lone.sent == 5


def test_class_and_priority_change_while_python_hears_nothing() -> None:
    one = ClassPolicy(PathPolicy("flow-hash"))
    by_bytes = PriorityPolicy("bytes-sent", (700, 2500))
    with Rig(Policy(1, "test", short=one, long=one, priority=by_bytes, short_limit_bytes=1500)) as rig:
        for _ in range(2):
            rig.from_host([_packet("udp", 100, 0, (HOST, PEER))])
        for _ in range(5):
            rig.from_host([_packet("udp", 400, 0, (HOST, PEER))] * 4)
        assert rig.lone.sent > 5


@pytest.mark.parametrize("size", [300, 500, 501])
def test_a_flow_becomes_long_with_its_first_packet_behind_the_limit(size: int) -> None:
    one = ClassPolicy(PathPolicy("spray"))
    with Rig(Policy(1, "test", short=one, long=one, short_limit_bytes=1500)) as rig:
        rig.from_host([_packet("udp", size, 0, (HOST, PEER))])
        rig.from_host([_packet("udp", size, 0, (HOST, PEER))] * 7)
        assert rig.lone.sent > 1


def test_what_leaves_follows_feedback_that_is_full_while_python_hears_nothing() -> None:
    one = ClassPolicy(PathPolicy("spray"))
    with Rig(Policy(1, "test", short=one, long=one, control=one)) as rig:
        ours, theirs = (_packet("udp", 100, 0, ends) for ends in ((HOST, PEER), (PEER, HOST)))
        for _ in range(
            capstan_native.PendingFeedback.DUE + 9
        ):  # no timer tells the peer of anything meanwhile
            rig.peer.packet_from_host(theirs, rig.peer_now())
            [made] = all_of(rig.peer.datagrams_to_send())
            rig.at_once([ours], [(made.data, THERE, 0x20)])
        assert rig.reference.counters()["feedbacks_sent"] == 1
        assert rig.lone.received > capstan_native.PendingFeedback.DUE


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(PATHS),
    seed=st.integers(0, 1000),
    stamps=st.sets(st.integers(1, 4095), max_size=9),
    before=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 1400)), max_size=60),
    after=st.lists(st.tuples(st.integers(1, 1400), st.sampled_from([0.0, 1e-4, 0.1])), max_size=20),
)
def test_what_policies_say_beforehand_comes_true(
    kind: PathKind,
    seed: int,
    stamps: set[int],
    before: list[tuple[int, int]],
    after: list[tuple[int, float]],
) -> None:
    policies = [path_policy(PathPolicy(kind), 0.001, np.random.default_rng(seed)) for _ in range(2)]
    route = Route("b", TrafficClass.SHORT, tuple(map(label_of, sorted(stamps))))
    flows = [Inner(number + 1, number * 0x9E3779B1 % 2**32) for number in range(3)]
    asked, other = policies
    now = 1.0
    for flow, size in before:
        now += 1e-4
        asked.ahead(flows[flow], route)
        assert asked.entropy(flows[flow], route, size, now) == other.entropy(flows[flow], route, size, now)
    said = asked.ahead(flows[0], route)
    if said is None:
        return
    for index, (size, pause) in enumerate(after):
        now += pause
        given = asked.entropy(flows[0], route, size, now)
        if not isinstance(said, Turn):
            assert given == said
        elif index < len(said.ports):
            assert given == said.ports[index]


def test_nothing_passes_a_gate() -> None:
    one = ClassPolicy(PathPolicy("spray"))
    with Rig(Policy(1, "test", short=one, long=one, control=one, admission=AdmissionPolicy())) as rig:
        for _ in range(3):
            rig.from_host([_packet("push", 100, 0, (HOST, PEER))])
        assert rig.lone.sent == 0


def test_an_agent_that_wakes_up_often_makes_no_plans_until_a_calm_window_has_passed() -> None:
    with Rig(Policy(1, "test")) as rig:
        rig.from_host([_packet("push", 100, 0, (HOST, PEER))])
        lone, at = rig.lone, 1e6

        def wakeups(number: int) -> list[bool]:
            nonlocal at
            began, at = at, at + WINDOW_S
            return [lone.plans(began + index / number * WINDOW_S) is not None for index in range(number)]

        assert all(wakeups(REST))
        assert any(wakeups(2 * MOST_WAKEUPS))
        assert not any(wakeups(MOST_WAKEUPS))
        assert any(wakeups(2 * MOST_WAKEUPS))
        at += 2 * WINDOW_S  # asleep
        assert any(wakeups(MOST_WAKEUPS))


def test_plans_that_name_what_is_not_there_are_refused() -> None:
    reader, receiver = capstan_native.TunReader(InnerPacket), capstan_native.DatagramReceiver(1500)
    passage = capstan_native.LonePassage(reader, receiver, -1, -1, [], bytes(4), 1, 1426)
    peer = (bytes(4), 0, 0, 0, 0)
    for sends, receives in (
        ([(bytes(13), 1, 0, 0, 0, 0, None, None)], []),
        ([(bytes(13), 0, 0, 0, 0, 0, (0, 0, None, 0), None)], []),
        ([], [(1, 0, bytes(13), 0)]),
        ([(bytes(37), 0, 0, 0, 0, 0, None, None)], []),
    ):
        with pytest.raises(ValueError, match=r"plan|length"):
            passage.plan([peer], [], sends, receives)
