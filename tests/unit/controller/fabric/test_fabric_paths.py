"""Tiers, equal-cost paths and numbers of switches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.fabric.graph import Link, Wiring
from controller.fabric.numbers import NumbersExhaustedError, SwitchNumbers
from controller.fabric.paths import Routing, compute_routing
from tests.unit.fabric_shapes import Shape, fat_tree, leaf_spine, shortest_paths

shapes = st.one_of(
    st.builds(leaf_spine, st.integers(1, 4), st.integers(1, 4), st.just(1)),
    st.builds(fat_tree, st.just(4), st.just(1)),
)


def routing_of(shape: Shape, up: list[Link], lost: frozenset[int] = frozenset()) -> Routing:
    usable = frozenset(shape.ports) - lost
    return compute_routing(Wiring(frozenset(shape.links), frozenset(up), shape.leaves, usable))


def ways(routing: Routing, one: int, other: int) -> set[tuple[int, ...]]:
    return {(*(dpid for dpid, _ in steps), other) for steps in routing.paths(one, other)}


@settings(max_examples=60, deadline=None)
@given(shapes, st.data())
def test_paths_are_all_shortest_ones_and_never_loop_whatever_is_down_or_lost(
    shape: Shape, data: st.DataObject
) -> None:
    down = data.draw(st.sets(st.sampled_from(shape.links), max_size=6))
    lost = frozenset(data.draw(st.sets(st.sampled_from(sorted(shape.ports)), max_size=3)))
    up = [link for link in shape.links if link not in down]
    routing = routing_of(shape, up, lost)
    best = [link for link in up if not {link.a.dpid, link.b.dpid} & (lost - shape.leaves)]
    for one in shape.leaves:
        for other in shape.leaves - {one}:
            found = ways(routing, one, other)
            assert all(len(set(way)) == len(way) for way in found)
            expected = shortest_paths(best, shape.leaves, one, other)
            if expected:
                assert found == expected
            elif shortest_paths(up, shape.leaves, one, other):
                assert found, "cut off though a lost switch may still forward"
            elif shortest_paths(up, frozenset(), one, other):
                assert found, "cut off though another leaf could help"
            else:
                assert not found


@settings(max_examples=40, deadline=None)
@given(shapes, st.data())
def test_next_hops_never_loop_wherever_a_packet_starts(shape: Shape, data: st.DataObject) -> None:
    down = data.draw(st.sets(st.sampled_from(shape.links), max_size=8))
    lost = frozenset(data.draw(st.sets(st.sampled_from(sorted(shape.ports)), max_size=4)))
    routing = routing_of(shape, [link for link in shape.links if link not in down], lost)

    def walk(dpid: int, leaf: int, before: frozenset[int]) -> None:
        assert dpid not in before
        if dpid != leaf:
            for hop in routing.next_hops[dpid][leaf]:
                walk(hop.to, leaf, before | {dpid})

    for dpid, table in routing.next_hops.items():
        for leaf in table:
            walk(dpid, leaf, frozenset())


def test_tiers_and_what_is_below() -> None:
    routing = routing_of(fat_tree(4, 1), fat_tree(4, 1).links)
    assert {dpid: tier for dpid, tier in routing.tiers.items() if dpid >> 16 != tier + 1} == {}
    assert routing.below[0x20001] == {0x10001, 0x10002}
    assert len(routing.below[0x30001]) == 8
    assert routing.turns(0x20001, 0x10002)
    assert not routing.turns(0x20001, 0x10003)
    assert routing.turns(0x30001, 0x10003)


def test_tiers_stay_when_links_go_down() -> None:
    shape = fat_tree(4, 1)
    up = [link for link in shape.links if 0x20001 not in (link.a.dpid, link.b.dpid)]
    assert routing_of(shape, up).tiers == routing_of(shape, shape.links).tiers


def test_two_leaves_on_one_cable() -> None:
    shape = Shape()
    shape.add_hosts(1, 1, 1)
    shape.add_hosts(2, 2, 1)
    shape.add_link(1, 2)
    assert ways(routing_of(shape, shape.links), 1, 2) == {(1, 2)}


def test_a_chain_of_leaves() -> None:
    shape = Shape()
    for dpid in (1, 2, 3):
        shape.add_hosts(dpid, dpid, 1)
    shape.add_link(1, 2)
    shape.add_link(2, 3)
    routing = routing_of(shape, shape.links)
    assert ways(routing, 1, 3) == {(1, 2, 3)}
    assert routing.transit_leaves == {2}


def test_no_hosts_no_tiers() -> None:
    assert compute_routing(Wiring(frozenset(), frozenset(), frozenset(), frozenset())) == Routing()


@given(st.sets(st.integers(1, 2**64 - 1), min_size=1, max_size=200))
def test_numbers_are_stamps_all_different_and_stay(dpids: set[int]) -> None:
    numbers = SwitchNumbers()
    numbers.assign(dpids)
    first = {dpid: numbers[dpid] for dpid in dpids}
    assert len(set(first.values())) == len(dpids)
    assert all(1 <= number <= 4095 for number in first.values())
    numbers.assign({*dpids, 12345678, 4711})
    assert {dpid: numbers[dpid] for dpid in dpids} == first


def test_a_labs_switches_get_the_same_numbers_in_whatever_order_they_come() -> None:
    dpids = sorted({**leaf_spine(20, 20, 1).ports, **fat_tree(8, 1).ports})
    forth, back = SwitchNumbers(), SwitchNumbers()
    for dpid in dpids:
        forth.assign([dpid])
    for dpid in reversed(dpids):
        back.assign([dpid])
    assert [forth[dpid] for dpid in dpids] == [back[dpid] for dpid in dpids]
    small = SwitchNumbers()
    small.assign(range(1, 1024))
    assert all(small[dpid] == dpid for dpid in range(1, 1024))


def test_there_are_4095_numbers() -> None:
    numbers = SwitchNumbers()
    numbers.assign(range(1, 4096))
    with pytest.raises(NumbersExhaustedError, match="one too many"):
        numbers.assign([4096])
