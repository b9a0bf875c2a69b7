"""Even spraying over any number of ports, as Open vSwitch lays buckets out; port ranges as masks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.openflow.choosing import UNSTAMPED_PORTS, choose_part
from controller.openflow.pipeline import AGENT_PORTS, FORGED_PORTS
from controller.openflow.port_ranges import prefixes
from controller.openflow.spraying import spray_order, spray_parts
from controller.openflow.tables import AGENT, HASH, LEAF_MASK, Table
from controller.openflow.view import Towards
from controller.openflow.wanted import Group, Output, ToGroup
from protocol.underlay import BASE_PORT, EV_FIRST, EV_LAST, FLOW_KEYS, LABEL_FIRST, LABEL_LAST


def slots_of(buckets: int) -> Counter[int]:
    """Return how many slots of a dp_hash group each of *buckets* equal buckets gets (OVS: ofproto-dpif.c, Webster)."""
    slots = 16
    while slots < buckets:
        slots *= 2
    assert slots <= 256
    divisors = [1] * buckets
    won: Counter[int] = Counter()
    for _ in range(slots):
        winner = min(range(buckets), key=lambda bucket: divisors[bucket])
        won[winner] += 1
        divisors[winner] += 2
    return won


@pytest.mark.parametrize("count", range(2, 65))
def test_every_port_gets_its_share_within_three_per_cent(count: int) -> None:
    ports = tuple(range(10, 10 + count))
    parts = spray_parts(count)
    share: Counter[int] = Counter()
    for part in range(parts):
        order = spray_order(ports, part)
        won = slots_of(len(order))
        for bucket, port in enumerate(order):
            share[port] += won[bucket] / won.total() / parts
    assert set(share) == set(ports)
    assert all(abs(value * count - 1) < 0.03 for value in share.values())


@pytest.mark.parametrize("count", [257, 300])
def test_more_ports_than_slots_are_one_bucket_each(count: int) -> None:
    assert spray_parts(count) == 1
    assert spray_order(tuple(range(count)), 0) == tuple(range(count))


@given(st.integers(2, 80))
def test_entropy_values_are_split_over_the_parts_without_gap_or_overlap(count: int) -> None:
    groups, flows = choose_part(7, [Towards(3, tuple(range(1, count + 1)))])
    sprays = {group.id for group in groups if group.method == "dp_hash"}
    assert len(sprays) == spray_parts(count)
    used: Counter[int] = Counter()
    for ev in range(EV_FIRST, EV_FIRST + 64):
        hits = [
            flow
            for flow in flows
            if flow.match.metadata is not None
            and (3 | AGENT) & flow.match.metadata[1] == flow.match.metadata[0]
            and (flow.match.udp_src is None or ev & flow.match.udp_src[1] == flow.match.udp_src[0])
        ]
        best = max(hits, key=lambda flow: flow.priority)
        assert sum(flow.priority == best.priority for flow in hits) == 1
        [action] = best.actions
        assert isinstance(action, ToGroup)
        used[action.group] += 1
    assert set(used) == sprays
    assert len(set(used.values())) == 1


@given(st.sets(st.integers(1, 400), min_size=2, max_size=30), st.integers(1, 4095), st.booleans())
def test_groups_are_the_next_hops_exactly(ports: set[int], leaf: int, turns: bool) -> None:
    groups, flows = choose_part(1, [Towards(leaf, tuple(sorted(ports)), 99 if turns else None)])
    assert {reached(group) for group in groups} == {frozenset(ports)}
    assert {group.basis for group in groups} == {groups[0].basis}
    named = {action.group for flow in flows for action in flow.actions if isinstance(action, ToGroup)}
    assert named == {group.id for group in groups}
    assert all(flow.table == Table.CHOOSE for flow in flows)
    assert all(flow.match.metadata and flow.match.metadata[1] & (LEAF_MASK | HASH) for flow in flows)


def reached(group: Group) -> frozenset[int]:
    return frozenset(
        action.port for bucket in group.buckets for action in bucket.actions if isinstance(action, Output)
    )


@given(st.integers(0, 65535), st.integers(0, 65535))
def test_prefixes_match_exactly_their_range(one: int, other: int) -> None:
    first, last = min(one, other), max(one, other)
    pairs = prefixes(first, last)
    edges = {0, first - 1, first, (first + last) // 2, last, last + 1, 65535} & set(range(65536))
    for port in edges:
        hits = sum(port & mask == value for value, mask in pairs)
        assert hits == (first <= port <= last)
    assert sum(65536 - mask for _, mask in pairs) == last - first + 1


def test_the_ranges_in_use() -> None:
    for port in range(65536):
        agent = sum(port & mask == value for value, mask in AGENT_PORTS)
        unstamped = sum(port & mask == value for value, mask in UNSTAMPED_PORTS)
        forged = sum(port & mask == value for value, mask in FORGED_PORTS)
        assert agent == (BASE_PORT <= port < BASE_PORT + FLOW_KEYS)
        assert unstamped == (EV_FIRST <= port <= EV_LAST or LABEL_FIRST <= port <= LABEL_LAST)
        assert forged == 1 - unstamped


def test_no_range() -> None:
    with pytest.raises(ValueError, match="not a range"):
        prefixes(5, 4)
    with pytest.raises(ValueError, match="not a range"):
        prefixes(5, 65536)
